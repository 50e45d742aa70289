"""Renders a template into one self-contained HTML page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jinja2

import understudy
from understudy.pages import words

_PACKAGE = Path(understudy.__file__).parent


def render(template: str, **context: Any) -> str:
    """The page of a template, named by package and file: `release/card.html`."""
    package, _, name = template.partition("/")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_PACKAGE / package / "templates", _PACKAGE / "pages" / "templates"]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["percent"] = percent
    environment.filters["count"] = count
    environment.filters["story"] = words.story
    environment.filters["sentence"] = words.sentence
    environment.filters["in_100"] = words.in_100
    style = (_PACKAGE / "pages" / "templates" / "style.css").read_text(encoding="utf-8")
    return environment.get_template(name).render(style=style, version=understudy.__version__, **context)


def number(value: float | None, digits: int = 3) -> str:
    """A figure for people: a few significant digits, never a delta rounded to 0."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value != 0 and abs(value) < 10**-digits:
        return f"{value:.1e}"
    return f"{value:.{digits}f}".replace("-", "−")


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.1f} %" if abs(value) < 0.0995 else f"{100 * value:.0f} %"


def count(value: int) -> str:
    """A number of things, thousands set apart."""
    return f"{value:,}"
