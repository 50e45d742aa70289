"""Submitted code as people read it: highlighted and numbered, by classes of the stylesheet only."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup, escape
from pygments.lexers import PythonLexer
from pygments.token import STANDARD_TYPES

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
