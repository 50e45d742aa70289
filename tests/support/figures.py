"""Sentences with figures on a page, for tests that compute every figure again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser

_UNITS = {
    *(
        "title",
        "p",
        "li",
        "h1",
        "h2",
        "h3",
        "tr",
        "dl",
        "div",
        "figcaption",
        "blockquote",
        "section",
        "table",
    ),
    *("thead", "tbody", "ul", "main", "header", "footer", "figure", "body", "html"),
}
_HIDDEN = {"style", "script", "svg"}


class _Page(HTMLParser):
    """The texts of a page: a paragraph, a list item or the row of a table each, and what pictures say in words."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden = 0
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNITS:
            self._end()
        self._text += " "
        self._hidden += tag in _HIDDEN
        label = dict(attrs).get("aria-label")
        if label and not self._hidden:
            self.texts.append(label)

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN
        self._text += " "
        if tag in _UNITS:
            self._end()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._text += data

    def _end(self) -> None:
        if text := " ".join(self._text.split()):
            self.texts.append(text)
        self._text = ""


def numbers(text: str) -> list[str]:
    """The numbers in a text, as they are written, without the commas of thousands."""
    found = re.findall(r"[−-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", text)
    return [number.replace(",", "").replace("−", "-") for number in found]


def unexplained(
    page: str, expected: Mapping[str, Iterable[object]], names: Iterable[str]
) -> list[tuple[str, list[str], list[str] | None]]:
    """Texts with figures that are not the expected ones: each with its figures, and those that were expected.

    `expected` has the figures of a text by how it begins; a text with a figure that it does not know is unexplained.
    `names` are no figures: numbers of cards, dates, versions.
    """
    reader = _Page()
    reader.feed(page)
    wrong = []
    for text in dict.fromkeys(reader.texts):
        shown = text
        for name in sorted(map(str, names), key=len, reverse=True):
            shown = shown.replace(name, "")
        if not (found := numbers(shown)):
            continue
        begins = max((start for start in expected if shown.strip().startswith(start)), key=len, default=None)
        wanted = None if begins is None else [str(value) for value in expected[begins]]
        if found != wanted:
            wrong.append((text, found, wanted))
    return wrong
