"""What kind of file somebody gave, among those that the commands about cohorts write, for errors that say so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

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
