"""Renders a template into one self-contained HTML page."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

import understudy
from understudy.core.pages import words

_PACKAGE = Path(understudy.__file__).parent


def render(template: str, **context: Any) -> str:
    """The page of a template, named by folder and file: `logs/release/card.html`, or by an absolute path.

    The template lies in `templates` of that folder.
    """
    package, _, name = template.rpartition("/")
    page = _environment(package).get_template(name)
    return page.render(style=_style(), version=understudy.__version__, **context)


@lru_cache
def _environment(package: str) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(
            [_PACKAGE / package / "templates", _PACKAGE / "core" / "pages" / "templates"]
        ),
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
    return environment


@lru_cache
def _style() -> str:
    return (_PACKAGE / "core" / "pages" / "templates" / "style.css").read_text(encoding="utf-8")


def number(value: float | None, digits: int = 3) -> str:
    """A measured figure with so many digits. Not for a delta, which must not be rounded to 0."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    # Adding 0 turns a negative zero into zero.
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def percent(value: float) -> str:
    """A share in percent; the space does not break."""
    return f"{100 * value:.1f}\u00a0%" if abs(value) < 0.0995 else f"{100 * value:.0f}\u00a0%"


def count(value: int) -> str:
    """A number of things, thousands set apart."""
    return f"{value:,}"
