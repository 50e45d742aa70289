"""Renders the desk's pages: one layout, one stylesheet, and the words that every page needs.

A page finds the open desk in `request.app.state.desk` and the token for its forms in `request.state.csrf`; forms
that post write `{{ csrf_field }}` inside.
"""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape
from pygments.lexers import PythonLexer
from pygments.token import STANDARD_TYPES
from starlette.requests import Request
from starlette.responses import HTMLResponse

from understudy.desk.domain.people import Person
from understudy.desk.domain.states import STEPS, state_text
from understudy.desk.web import wording
from understudy.errors import UnderstudyError

# The stylesheet knows few colours: keywords, strings, numbers and comments by family, and some names.
_FAMILIES = ("k", "s", "m", "c")
_NAMES = ("ow", "nf", "nc", "nd", "nn")


@lru_cache(maxsize=16)
def highlighted(code: str) -> Markup:
    """The code as HTML; its lines are `line-1`, `line-2` and so on, for links."""
    lines: list[list[str]] = [[]]
    for kind, text in PythonLexer(stripnl=False).get_tokens(code):
        name = _class_of(STANDARD_TYPES.get(kind, ""))
        for place, part in enumerate(text.split("\n")):
            if place:
                lines.append([])
            if part:
                shown = escape(part)
                lines[-1].append(f'<span class="{name}">{shown}</span>' if name else str(shown))
    # The last one is empty: code ends with a line's end.
    numbered = "".join(
        f'<span class="line" id="line-{place}">{"".join(parts)}\n</span>'
        for place, parts in enumerate(lines[:-1], 1)
    )
    return Markup(f"<pre>{numbered}</pre>")


def _class_of(name: str) -> str:
    return name if name in _NAMES else name[:1] if name[:1] in _FAMILIES else ""


_LEAST, _MOST = 1e-7, 1e15
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
STATIC = Path(__file__).parent / "static"


def render(
    request: Request,
    template: str,
    *,
    person: Person | None = None,
    status: int = 200,
    problem: UnderstudyError | None = None,
    done: str = "",
    simulated: bool = False,
    **context: Any,
) -> HTMLResponse:
    """A page for a user, or a public one. `problem` is shown above everything else, with what to do about it.

    `simulated`: whether the learners that the page is about are, so that it does not speak of real data.
    """
    text = (
        _environment()
        .get_template(template)
        .render(
            person=person,
            problem=problem,
            desk_title=request.app.state.desk.settings.title,
            here=request.url.path,
            done=wording.of_data(
                done or wording.CONFIRMATIONS.get(request.query_params.get("done", ""), ""), simulated
            ),
            simulated=simulated,
            csrf_field=_csrf_field(request),
            version=version(),
            **context,
        )
    )
    return HTMLResponse(text, status_code=status)


@cache
def version() -> str:
    """Of the static files: part of their addresses, so that a browser never shows old ones."""
    content = b"".join(path.read_bytes() for path in sorted(STATIC.iterdir()) if path.is_file())
    return hashlib.sha256(content).hexdigest()[:10]


def _csrf_field(request: Request) -> Markup:
    token = getattr(request.state, "csrf", "")
    return Markup('<input type="hidden" name="csrf" value="{}">').format(token)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("understudy.desk.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(day=_day, number=_number, cell=_cell, short=_short, real=_real)
    environment.globals.update(words=wording, highlighted=highlighted, state_text=state_text, STEPS=STEPS)
    return environment


@pass_context
def _real(context: Context, text: str) -> str:
    return wording.of_data(text, bool(context["simulated"]))


def _day(value: date | datetime) -> str:
    return f"{value.day} {value:%B %Y}"


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _cell(value: Any) -> str:
    """A number, a text or nothing, as a table shows it."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value}".replace("-", "−")
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _float(value: float) -> str:
    """All its digits up to ten, as people write them: 0.00001, and 3 × 10⁻⁹ where zeros could not be counted."""
    if not value:
        return "0"
    shown = f"{value:.10g}"
    mantissa, _, power = shown.partition("e")
    if power and _LEAST <= abs(value) < _MOST:
        shown = f"{Decimal(shown):f}"
    elif power:
        shown = f"{mantissa} × 10{str(int(power)).translate(_RAISED)}"
    return shown.replace("-", "−")


def _short(value: Any) -> str:
    """To compare with, not to take away: four digits are enough."""
    return _cell(float(f"{value:.4g}") if isinstance(value, float) else value)
