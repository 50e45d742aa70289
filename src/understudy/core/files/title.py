"""A title above the header of a table: told as such, before its words are taken for names of columns."""

from __future__ import annotations

import re

import polars as pl

from understudy.core.files.delimited import guess_separator
from understudy.core.files.source import Source, decode
from understudy.core.files.tables import Table
from understudy.errors import DataError

_LINES = 20
_UNNAMED = re.compile(r"column \d+")


def refuse_title(table: Table) -> None:
    """Refuse a table whose first line has one name only, while some line below it is filled."""
    named = sum(not _UNNAMED.fullmatch(name) for name in table.names)
    # Two columns are too few: statistics programs leave the name of the rows' names empty.
    if named != 1 or len(table.names) < 3:
        return
    frame = table.read({str(at): at for at in range(len(table.names))}).head(_LINES)
    cells = pl.exclude("line").cast(pl.String, strict=False).str.strip_chars().fill_null("")
    filled = frame.select(pl.sum_horizontal(cells != "")).to_series()
    if (filled >= 3).any():
        raise _title(table.file, table.place, int(frame["line"][int((filled >= 3).arg_max() or 0)]))


def refuse_title_line(source: Source) -> None:
    """Refuse a text whose first line is one field, while a line below it has several."""
    if b"\0" in source.data[:4096]:
        return
    lines = decode(source, latin=True).data[: 1 << 16].decode(errors="ignore").split("\n")[:_LINES]
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not filled or filled[0][1].lstrip().startswith(("{", "[")) or _n_filled(filled[0][1]) != 1:
        return
    for number, line in filled[1:]:
        if _n_filled(line) > 1:
            raise _title(source.name, "line", number, filled[0][0])


def _n_filled(line: str) -> int:
    return sum(bool(field.strip(' "\r')) for field in line.split(guess_separator(line)))


def _title(file: str, place: str, header: int, title: int = 1) -> DataError:
    return DataError(
        f"{file}: {place} {title} looks like a title; the header seems to be on {place} {header}.",
        hint="remove the lines above the header.",
    )
