"""Values of a declaration in TOML, with errors that name the key and the line it stands on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from understudy.errors import DataError

Number = TypeVar("Number", int, float)
Parsed = TypeVar("Parsed")
Default = TypeVar("Default")


class DeclarationError(DataError):
    """A declaration that cannot hold: which key is wrong and, in a [[feature]], of which one (from 1)."""

    def __init__(self, message: str, *, hint: str = "", key: str = "", feature: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.feature = feature

    def at(self, place: str) -> DeclarationError:
        """The same, with the place before it."""
        return DeclarationError(
            f"{place}: {self.message}", hint=self.hint, key=self.key, feature=self.feature
        )


def declared_value(
    content: dict[str, Any], key: str, parse: Callable[[Any], Parsed], form: str, default: Default
) -> Parsed | Default:
    """The value of a key as `parse` takes it, or the default; `form` says what it should be."""
    if key not in content:
        return default
    try:
        return parse(content[key])
    except (TypeError, ValueError, OverflowError):
        raise DeclarationError(f"`{key}` is not {form}.", hint=f"`{key}` is {form}.", key=key) from None


def number(value: Any) -> float:
    """A number, and no text or truth value that could be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def whole_number(value: Any) -> int:
    """A number without a fraction."""
    if number(value) != int(value):
        raise ValueError
    return int(value)


def _listed(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return value


def words(value: Any) -> tuple[str, ...]:
    """A list of words."""
    return tuple(str(word) for word in _listed(value))


def numbers(value: Any) -> tuple[float, ...]:
    """A list of numbers."""
    return tuple(number(one) for one in _listed(value))


def pair_of(kind: Callable[[Any], Number]) -> Callable[[Any], tuple[Number, Number]]:
    """What takes a list of two."""

    def pair(value: Any) -> tuple[Number, Number]:
        first, second = _listed(value)
        return kind(first), kind(second)

    return pair


_ASSIGNED = re.compile(r"""\s*["']?([A-Za-z_]+)["']?\s*=""")


def place_in(said: str, text: str, keys: Sequence[str]) -> str:
    """Where TOML ended, and in which key; nothing of the line else, since it may be any file."""
    found = re.search(r"line (\d+), column (\d+)", said)
    line = int(found.group(1)) if found else max(len(text.splitlines()), 1)
    lines = text.splitlines()
    key = _ASSIGNED.match(lines[line - 1]) if line <= len(lines) else None
    named = f", in `{key.group(1)}`," if key and key.group(1) in keys else ""
    column = f", column {found.group(2)}" if found else ""
    return f", line {line}{column}{named}"


def line_of(text: str, key: str, feature: int | None) -> int | None:
    """The line on which a key of a file stands, or its [[feature]] if the key is missing there."""
    n_features, header, inside = 0, None, False
    for at, line in enumerate(text.splitlines(), 1):
        begins_inside = inside
        inside ^= bool((line.count('"""') + line.count("'''")) % 2)
        if begins_inside:
            continue  # words of a long text
        if re.match(r"\s*\[\[\s*feature\s*\]\]", line):
            n_features += 1
            if n_features == (feature or 1):
                header = at
        assigned = _ASSIGNED.match(line)
        if assigned and assigned.group(1) == key and n_features == (feature or 0):
            return at
    return header if feature is not None or key == "feature" else None


Kind = Literal["table", "workbook", "declaration", "summary", "suggestions", "json"]

# As the files themselves say it: see `summary.FORMAT` and `feedback.FORMAT`.
FORMATS: dict[str, Kind] = {
    "understudy cohort summary": "summary",
    "understudy cohort suggestions": "suggestions",
}
WORDS: dict[Kind, str] = {
    "table": "a table of learners",
    "workbook": "a workbook",
    "declaration": "the declaration of a cohort",
    "summary": "a private summary",
    "suggestions": "suggestions for the next cycle",
    "json": "JSON",
}
_FORMAT = re.compile(rb'"format"\s*:\s*"([a-z ]{1,60})"')
_HEAD = 4096


def kind_of_file(path: Path) -> Kind | None:
    """The kind, from how the file begins and, for text, from its name; None where neither tells."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    if head.startswith(b"PAR1"):
        return "table"
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return "workbook"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        found = _FORMAT.search(head)
        return FORMATS.get(found.group(1).decode(), "json") if found else "json"
    suffixes: dict[str, Kind] = {".toml": "declaration", ".json": "json", ".csv": "table", ".tsv": "table"}
    return suffixes.get(path.suffix.lower())
