"""How large the sheets of a workbook would be in memory: a cell far away makes a sheet of billions of cells.

The library that reads workbooks takes memory for the whole rectangle, and ends the process where there is not enough.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import IO

from understudy.core.files.source import Source, keeping_values_inside
from understudy.errors import DataError

DAMAGED = "{name}: the Excel workbook is damaged, protected, or no workbook."
SAVE_AGAIN = "save it again as .xlsx without a password, or export it as csv."
# Some gigabytes of cells; and of the text of a workbook, which is a fiftieth of that when it is packed.
MOST_CELLS = 50_000_000
MOST_UNPACKED = 4 << 30
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
_PIECE = 1 << 20
# Cells by their columns and rows, and rows alone. Spreadsheets end at XFD1048576, and the first 26 columns of so many
# rows are not too many cells.
_CELL = re.compile(rb"""\sr\s*=\s*["']([A-Za-z]*)(\d+)""")
_FAR_CELL = re.compile(rb"""\sr\s*=\s*["'](?:[A-Za-z]{2}|[A-Za-z]?(?:\d{8}|[2-9]\d{6}))""")
_MOST_LETTERS, _MOST_DIGITS = 3, 7
# A reference that is to be believed is shorter than this: so much of a piece is looked at again with the next one.
_OVERLAP = 64


def check_workbook_size(source: Source) -> None:
    """Refuse a workbook with a sheet that would not fit into memory, or whose sheets cannot be looked at."""
    if not source.data.startswith(b"PK"):
        return  # of an older kind, whose sheets are small
    with (
        keeping_values_inside(DAMAGED.format(name=source.name), hint=SAVE_AGAIN),
        zipfile.ZipFile(io.BytesIO(source.data)) as archive,
    ):
        members = archive.infolist()
        if sum(member.file_size for member in members) > MOST_UNPACKED:
            raise _too_large(source.name, f"{MOST_UNPACKED >> 30} GB when it is unpacked")
        for member in members:
            if not _SHEET.fullmatch(member.filename):
                continue
            with archive.open(member) as file:
                # All of it, since its checksum is compared at the end.
                found = [_FAR_CELL.search(piece) for piece in _pieces(file)]
            with archive.open(member) as file:
                n_cells = _rectangle(file) if any(found) else 0
            if n_cells > MOST_CELLS:
                raise _too_large(source.name, f"{MOST_CELLS:,} cells on a sheet, most of them empty")


def _too_large(name: str, what: str) -> DataError:
    return DataError(
        f"{name}: the workbook has more than {what}.",
        hint="delete empty rows and columns behind the table, where a cell was touched by accident, or export the "
        "sheet as csv.",
        code="workbook-too-large",
    )


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while piece := file.read(_PIECE):
        yield rest + piece
        rest = piece[-_OVERLAP:]


def _rectangle(file: IO[bytes]) -> int:
    """The number of cells between the outermost ones."""
    rows: list[int] = []
    columns: list[int] = []
    for piece in _pieces(file):
        found = _CELL.findall(piece)
        letters, digits = {column.upper() for column, _ in found}, {row for _, row in found}
        if any(len(column) > _MOST_LETTERS for column in letters) or any(
            len(row) > _MOST_DIGITS for row in digits
        ):
            return MOST_CELLS + 1  # no spreadsheet has such a cell
        if found:
            rows = [min([*rows, *map(int, digits)]), max([*rows, *map(int, digits)])]
            columns = [min([*columns, *map(_column, letters)]), max([*columns, *map(_column, letters)])]
    return (rows[1] - rows[0] + 1) * (columns[1] - columns[0] + 1) if rows else 0


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number
