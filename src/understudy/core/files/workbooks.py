"""Tables in Excel workbooks: on the sheet and the rows that were named, or found by looking for a table.

What is found by looking is a guess unless it is the first row of the first sheet: rows above the table (a title)
and below it (notes) are told from learners' rows by what is in their cells. Where a table ends is a guess in any case
if something follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from understudy.core.files.columns import count_known
from understudy.core.files.source import Guess, Source, keeping_values_inside
from understudy.core.files.tables import FrameTable
from understudy.core.files.workbook_size import DAMAGED, SAVE_AGAIN, check_workbook_size
from understudy.errors import DataError, UsageError

MAGICS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
NOTES_BELOW = "delete what stands below the table, or move it to another sheet."
ROWS_BY_NUMBER = (
    "something stands below the rows that were named, and with one more row of a learner these numbers would leave "
    "another learner's row out"
)
# A header is among the first rows, and a table has two columns at least.
_ROWS_LOOKED_AT = 20
_FEWEST_NAMES = 2
# "Results", "2", "Results!4:120", "2!4:120" or "4:120".
_PLACE = re.compile(r"^(?:(?P<sheet>.+?)(?:!(?=\d+:\d+$)|$))?(?:(?P<first>\d+):(?P<last>\d+))?$")


@dataclass(frozen=True)
class _Place:
    """Where a table is: its sheet by position from 0, and its rows from the header to the last one, from 1."""

    sheet: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.sheet + 1}!{self.first}:{self.last}"


def read_workbook(source: Source, place: str | None = None, *, look: bool = True) -> FrameTable:
    """The table at a place such as 'Results!4:120', every cell as text.

    Without rows, or without a place, the table is looked for. With `look` off it is all of the sheet, from its
    first row on.
    """
    import fastexcel

    check_workbook_size(source)
    with keeping_values_inside(DAMAGED.format(name=source.name), hint=SAVE_AGAIN):
        workbook = fastexcel.read_excel(source.data)
        names = workbook.sheet_names

    def cells_of(sheet: int) -> pl.DataFrame:
        with keeping_values_inside(
            f"{source.name}: sheet {sheet + 1} cannot be read.",
            hint="save the workbook again as .xlsx, or export the sheet as csv.",
        ):
            # As text, a date as 2024-05-31 14:05:09: a type for a whole column would depend on every row of it.
            return workbook.load_sheet(
                sheet, header_row=None, skip_rows=0, dtypes="string", whitespace_as_null=True
            ).to_polars()

    sheet, rows = _named(place, names, source.name)
    candidates = [sheet] if sheet is not None else list(range(len(names) if look else 1))
    for at in candidates:
        cells = cells_of(at)
        found = _Place(at, *rows) if rows else _find(cells, at) if look else _Place(at, 1, cells.height)
        if found is not None and found.last <= cells.height and cells.width >= _FEWEST_NAMES:
            break
    else:
        where = f"sheet {candidates[0] + 1} has" if len(candidates) == 1 else f"all {len(names)} sheets have"
        raise DataError(
            f"{source.name}: {where} no table{' on these rows' if rows else ''}.",
            hint="name the sheet that has one, with its rows where it does not fill the sheet.",
            code="no-table",
            settings=("sheet",),
        )
    return _table(cells, found, source.name, len(names), sheet is not None, rows is not None)


def _table(
    cells: pl.DataFrame, place: _Place, file: str, n_sheets: int, sheet_named: bool, rows_named: bool
) -> FrameTable:
    header, body = cells.row(place.first - 1), cells[place.first : place.last]
    names = tuple(
        (name or "").strip() or f"column {position}" for position, name in enumerate(header, start=1)
    )
    filled = ~body.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if not filled.any():
        raise DataError(f"{file}: the log is empty: there is a header but no row.", hint="check the export.")
    guesses: tuple[Guess, ...] = ()
    around = place.first > 1 or place.last < cells.height
    notes = []
    if n_sheets > 1 and not sheet_named:
        notes.append(
            f"Only the {'first' if not place.sheet else 'table on sheet ' + str(place.sheet + 1)} of {n_sheets} sheets "
            "was read."
        )
    if around:
        notes.append(
            f"The table has its header on row {place.first} and ends on row {place.last} of sheet {place.sheet + 1}."
        )
    if place.last < cells.height:
        # Also where rows were named: one more row of a learner would push another learner's row below the last one.
        because = ROWS_BY_NUMBER if rows_named else ""
        guesses = (Guess("where the workbook's table ends", hint=NOTES_BELOW, because=because),)
    elif (around and not rows_named) or (place.sheet and not sheet_named):
        declare = {"sheet": str(place)}
        guesses = (Guess("where the workbook's table is", ("sheet",), declare=declare),)
    rows = pl.int_range(place.first + 1, place.first + 1 + body.height, eager=True).filter(filled)
    return FrameTable(file, names, body.filter(filled), rows, tuple(notes), guesses)


def _named(place: str | None, names: list[str], file: str) -> tuple[int | None, tuple[int, int] | None]:
    """The sheet and the rows that a place names."""
    if place is None:
        return None, None
    parts = _PLACE.match(place.strip())
    assert parts is not None
    sheet, first, last = parts.groups()
    rows = None if first is None else (int(first), int(last))
    if rows is not None and not 0 < rows[0] < rows[1]:
        raise UsageError(
            f"the rows of a table go from its header to its last row, not from {first} to {last}.",
            hint="write them as 4:120, the numbers that the spreadsheet shows.",
            code="no-such-rows",
            settings=("sheet",),
        )
    if sheet is None:
        return 0, rows
    alike = [at for at, name in enumerate(names) if name.strip().casefold() == sheet.strip().casefold()]
    if not alike and sheet.isdecimal() and 0 < int(sheet) <= len(names):
        alike = [int(sheet) - 1]
    if len(alike) != 1:
        raise UsageError(
            f"{file}: there is no sheet '{sheet}' among the {len(names)} of the workbook.",
            hint="write the name as on its tab, or its number from 1 on.",
            code="no-such-sheet",
            settings=("sheet",),
        )
    return alike[0], rows


def _find(cells: pl.DataFrame, sheet: int) -> _Place | None:
    """The table of a sheet: below its title, above its notes; None where there is none."""
    filled = (
        cells.select(pl.sum_horizontal(pl.all().is_not_null())).to_series() if cells.width else pl.Series([])
    )
    above = filled.head(_ROWS_LOOKED_AT).to_list()
    known = [
        at for at in range(len(above)) if count_known([name or "" for name in cells.row(at)]) >= _FEWEST_NAMES
    ]
    # Rows of a title have few cells; a header has about as many as the table.
    wide = [at for at, n_cells in enumerate(above) if n_cells >= max(_FEWEST_NAMES, max(above) / 2)]
    if not wide:
        return None
    header = 0 if wide[0] == 0 else (known or wide)[0]
    return _Place(sheet, header + 1, _last(filled, header) + 1)


def _last(filled: pl.Series, header: int) -> int:
    """The last row of a table: rows with one cell each that follow a blank row, to the end of the sheet, are notes."""
    counts = filled.to_numpy()
    tables = (counts[header:] > 1).nonzero()[0]
    last = header + int(tables[-1]) if len(tables) else header
    blank = (counts[last + 1 :] == 0).nonzero()[0]
    return last + int(blank[0]) if len(blank) else len(counts) - 1
