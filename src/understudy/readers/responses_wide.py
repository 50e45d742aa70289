"""Exam sheets: a row per learner, a column per item, with 0 and 1, true and false, or points."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.errors import DataError
from understudy.readers.columns import Columns
from understudy.readers.identifiers import Identifier
from understudy.readers.mentions import identifiers_in_actions
from understudy.readers.parquet import ParquetTable
from understudy.readers.responses_cells import HINTS, PROBLEMS, code_of, holds_answers
from understudy.readers.responses_headings import Header, Heading, read_header, refuse_answers
from understudy.readers.source import Source, keeping_values_inside
from understudy.readers.withdrawn import Withdrawn
from understudy.records import Responses
from understudy.records.interactions import SIMULATED_PREFIX

# The rows below the learners in the exports of learning platforms.
_FOOTERS = (
    *("overall average", "group average", "average", "mean", "gesamtdurchschnitt", "gruppendurchschnitt"),
    *("durchschnitt", "mittelwert", "moyenne globale", "moyenne", "promedio general", "promedio"),
)
_FOOTER_ROWS = 2
# So many cells are read at a time: as text they take about 20 bytes each, typed at most 8.
_CELLS_AT_A_TIME = 1 << 24


class Sheet(Protocol):
    """What a sheet is read from: a `Table`, or a file that knows the types of its columns."""

    @property
    def file(self) -> str:
        """The file's name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the order of the file."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be assumed to read the file."""

    @property
    def place(self) -> str:
        """What a row's number counts: "line" or "row"."""

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """The columns at these positions, under the given names, and `line`."""


@dataclass(frozen=True, repr=False)
class TypedParquet:
    """A Parquet file as a sheet: its numbers stay numbers, as a million learners as text take too long."""

    table: ParquetTable
    _data: bytes
    notes: tuple[str, ...] = field(default=(), init=False)
    place: str = field(default="row", init=False)

    @property
    def file(self) -> str:
        """See `Sheet.file`."""
        return self.table.file

    @property
    def names(self) -> tuple[str, ...]:
        """See `Sheet.names`."""
        return self.table.names

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Sheet.read`."""
        names = [self.names[at] for at in positions.values()]
        with keeping_values_inside(
            f"{self.file}: the Parquet file is damaged or cut short.",
            hint="copy the file again, or write it again with polars or pandas.",
        ):
            frame = pl.read_parquet(io.BytesIO(self._data), columns=names)
            columns = {role: frame[self.names[at]] for role, at in positions.items()}
            return pl.DataFrame({**columns, "line": pl.int_range(1, frame.height + 1, eager=True)})


@dataclass(frozen=True, repr=False)
class WideSheet:
    """What was read from a sheet, with the names of its learners if it has any."""

    responses: Responses
    learners: pl.Series | None
    notes: tuple[str, ...]
    n_withdrawn: int = 0
    n_absent: int = 0
    identifiers: tuple[Identifier, ...] = ()
    dropped: tuple[str, ...] = ()


def typed_parquet(table: ParquetTable, source: Source) -> TypedParquet:
    """The sheet in a Parquet file."""
    return TypedParquet(table, source.data)


def read_wide(sheet: Sheet, columns: Columns, withdrawn: Withdrawn | None, pass_share: float) -> WideSheet:
    """The responses in a sheet; those who withdrew are gone before a cell is looked at."""
    header = read_header(sheet.names, columns, sheet.file)
    if not header.items:
        raise _no_items(sheet)
    rows = _Rows.of(sheet, header, withdrawn)
    matrix, items, dropped = _answers(sheet, header.items, rows, pass_share)
    if not items:
        raise _no_items(sheet)
    refuse_answers(items, sheet.file)
    _refuse_same_names(items, sheet.file)
    names, matrix, nobody = _settle_learners(rows, matrix, sheet, header.learner)
    notes = [*sheet.notes, *rows.notes, *nobody]
    if header.learner is not None:
        notes.append(f"The learner is in {header.learner.shown}.")
    notes += _told(items, header.others, dropped, pass_share)
    simulated = names is not None and bool(names.str.starts_with(SIMULATED_PREFIX).all())
    return WideSheet(
        Responses(matrix, tuple(item.title for item in items), declared=True, simulated=simulated),
        names,
        tuple(notes),
        rows.n_withdrawn,
        rows.n_absent,
        _people_in(items, names),
        tuple(heading.shown for heading in dropped),
    )


def _people_in(items: Sequence[Heading], names: pl.Series | None) -> tuple[Identifier, ...]:
    """Items' names that point at people, as those of a sheet with rows and columns exchanged do."""
    titles = pl.Series([item.title for item in items], dtype=pl.String)
    known = pl.Series([], dtype=pl.String) if names is None else names.drop_nulls()
    return tuple(identifiers_in_actions("the header", titles, known))


@dataclass(frozen=True, repr=False)
class _Rows:
    """The rows that are read: their lines, learners, and positions if they are not all of them."""

    lines: pl.Series
    learners: pl.Series | None
    chosen: pl.Series | None
    notes: tuple[str, ...]
    n_withdrawn: int = 0
    n_absent: int = 0

    @classmethod
    def of(cls, sheet: Sheet, header: Header, withdrawn: Withdrawn | None) -> _Rows:
        """The rows of a sheet without those below the learners and without those who withdrew."""
        learner = header.learner
        texts = [0, *(heading.position for heading in header.others if heading.kind == "other")]
        wanted = {str(at): at for at in sorted({*texts, *([learner.position] if learner else [])})}
        frame = sheet.read(wanted)
        n_rows, notes = frame.height, []
        if n_footers := _count_footers(frame):
            frame = frame.head(frame.height - n_footers)
            notes.append(f"{n_footers} rows of averages below the learners were left out.")
        if learner is None and withdrawn is not None:
            raise DataError(
                f"{sheet.file}: a list of learners who withdrew was given, but no column names the learners.",
                hint="name the column with --learner, or remove their rows from the file.",
            )
        row = pl.int_range(frame.height, eager=True)
        if learner is None:
            kept = None if frame.height == n_rows else row
            return cls(frame["line"], None, kept, tuple(notes))
        names = _as_names(frame[str(learner.position)], sheet.file, learner)
        table = pl.DataFrame({"learner": names, "line": frame["line"], "row": row})
        n_withdrawn = n_absent = 0
        if withdrawn is not None:
            left = withdrawn.leave_out(table, learner.title)
            table, n_withdrawn, n_absent = left.frame, left.n_learners, left.n_absent
            notes.append(left.note)
        chosen = None if table.height == n_rows else table["row"]
        return cls(table["line"], table["learner"], chosen, tuple(notes), n_withdrawn, n_absent)


def _settle_learners(
    rows: _Rows, matrix: NDArray[np.int8], sheet: Sheet, learner: Heading | None
) -> tuple[pl.Series | None, NDArray[np.int8], list[str]]:
    """The learners, once each, and their answers; rows with neither a name nor an answer are nobody's."""
    names, lines, notes = rows.learners, rows.lines, []
    # Without a column of names every row is a learner: whether there is one must not depend on the answers.
    nameless = np.zeros(len(lines), dtype=bool) if names is None else names.is_null().to_numpy()
    if nameless.any():
        somebody = ~nameless
        somebody[nameless] = (matrix[nameless] >= 0).any(axis=1)
        if n_nobody := int((~somebody).sum()):
            matrix, lines = matrix[somebody], lines.filter(pl.Series(somebody))
            names = None if names is None else names.filter(pl.Series(somebody))
            notes.append(f"{n_nobody} rows without a name and without an answer were left out.")
    if not len(lines):
        raise DataError(f"{sheet.file}: no learner is left to read.", hint="check the export.")
    if names is not None and learner is not None:
        hint = "give each learner one row with a name; choose the column that names them with --learner."
        for bad, what in (
            (names.is_null(), "names no learner"),
            (~names.is_first_distinct(), "names a learner for a second time"),
        ):
            if bad.any():
                where = _at(bad.to_numpy(), lines, sheet.place)
                raise DataError(f"{sheet.file}: {learner.shown} {what} {where}.", hint=hint)
    return names, matrix, notes


def _count_footers(frame: pl.DataFrame) -> int:
    """How many rows at the end are averages; Moodle writes them below the learners."""
    last = frame.drop("line").tail(_FOOTER_ROWS)
    texts = last.select(
        pl.col(pl.String).str.strip_chars().str.to_lowercase().is_in(_FOOTERS).fill_null(False)
    )
    if not texts.width:
        return 0
    footer = texts.select(pl.any_horizontal(pl.all())).to_series().to_list()
    return next((n for n, is_footer in enumerate(reversed(footer)) if not is_footer), len(footer))


def _as_names(values: pl.Series, file: str, learner: Heading) -> pl.Series:
    with keeping_values_inside(
        f"{file}: {learner.shown} cannot be read as learners' names.", hint="keep one plain value per cell."
    ):
        return values.cast(pl.String).str.strip_chars().replace("", None)


def _answers(
    sheet: Sheet, candidates: Sequence[Heading], rows: _Rows, pass_share: float
) -> tuple[NDArray[np.int8], list[Heading], list[Heading]]:
    """The matrix, its items, and the columns that turned out not to hold answers."""
    matrix = np.empty((len(rows.lines), len(candidates)), dtype=np.int8)
    at_a_time = max(1, _CELLS_AT_A_TIME // max(1, len(rows.lines)))
    items: list[Heading] = []
    dropped: list[Heading] = []
    for start in range(0, len(candidates), at_a_time):
        group = candidates[start : start + at_a_time]
        frame = sheet.read({str(item.position): item.position for item in group})
        if rows.chosen is not None:
            frame = frame[rows.chosen]
        with keeping_values_inside(
            f"{sheet.file}: the answers cannot be read.", hint="keep one plain value per cell."
        ):
            codes = frame.select(code_of(frame[str(item.position)], item, pass_share) for item in group)
        found = []
        for item, column in zip(group, codes, strict=True):
            if holds_answers(column, item):
                _refuse_problems(column, item, sheet, rows.lines)
                found.append(item)
            else:
                dropped.append(item)
        # Column by column into a matrix by rows would touch every row once for each column.
        block = codes.select(str(item.position) for item in found).to_numpy(order="c") if found else None
        if block is not None:
            matrix[:, len(items) : len(items) + len(found)] = block
        items += found
    return matrix if len(items) == len(candidates) else matrix[:, : len(items)].copy(), items, dropped


def _refuse_problems(codes: pl.Series, item: Heading, sheet: Sheet, lines: pl.Series) -> None:
    numbers = codes.to_numpy()
    if numbers.max(initial=0) > 1:
        problem = int(numbers[(numbers > 1).argmax()])
        raise DataError(
            f"{sheet.file}: {item.shown} {PROBLEMS[problem]} {_at(numbers == problem, lines, sheet.place)}.",
            hint=HINTS[problem],
        )


def _at(bad: NDArray[np.bool_], lines: pl.Series, place: str) -> str:
    return f"on {place} {lines[int(bad.argmax())]} ({int(bad.sum())} such rows)"


def _refuse_same_names(items: Sequence[Heading], file: str) -> None:
    seen: dict[str, int] = {}
    for item in items:
        if item.title in seen:
            raise DataError(
                f"{file}: columns {seen[item.title] + 1} and {item.position + 1} are items of the same name "
                "once the points are taken off.",
                hint="rename one of them, or remove it if it is a copy.",
            )
        seen[item.title] = item.position


def _no_items(sheet: Sheet) -> DataError:
    return DataError(
        f"{sheet.file}: none of the {len(sheet.names)} columns holds answers to an item.",
        hint="a sheet has a row per learner and a column per item with 0 and 1, or with points and a header such "
        "as 'Q1 (15 points)'; a file with a row per answer has columns named learner, item and correct.",
    )


def _told(
    items: Sequence[Heading], others: Sequence[Heading], dropped: Sequence[Heading], pass_share: float
) -> list[str]:
    """What was rounded and what was left out, by columns."""
    notes = []
    if n_points := sum(item.maximum is not None for item in items):
        notes.append(
            f"The points of {n_points} items were rounded: correct from {pass_share:g} of the maximum on."
        )
    totals = [heading for heading in others if heading.kind == "total"]
    rest = [heading for heading in others if heading.kind == "other"]
    for left_out, why in ((totals, "sum up items"), (rest, "are no items"), (dropped, "hold no answers")):
        if left_out:
            shown = ", ".join(heading.shown.removeprefix("column ") for heading in left_out[:12])
            more = f" and {len(left_out) - 12} more" if len(left_out) > 12 else ""
            notes.append(f"{len(left_out)} columns that {why} were left out: {shown}{more}.")
    return notes
