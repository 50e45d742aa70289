"""Exam sheets: a row per learner, a column per item, with 0 and 1, true and false, or points."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.columns import Columns
from understudy.core.files.outcomes import NEEDS_LOW_MARK, PassMark, seem_low_grades
from understudy.core.files.parquet import intact
from understudy.core.files.people.identifiers import Identifier
from understudy.core.files.people.learner_ids import digests_of_names
from understudy.core.files.people.mentions import identifiers_in_actions
from understudy.core.files.people.withdrawals import Withdrawn
from understudy.core.files.source import Guess, Source, keeping_values_inside
from understudy.core.files.tables import ParquetTable, Sheet
from understudy.core.files.words import counted, share_of_points
from understudy.errors import DataError, UsageError
from understudy.exams.formats.cells import (
    FIRST_PROBLEM,
    HINTS,
    NEED_A_MAXIMUM,
    PROBLEMS,
    code_of,
    holds_answers,
    n_steps,
)
from understudy.exams.formats.grouping import Grouping
from understudy.exams.formats.sheet_header import Header, Heading, Items, read_header, refuse_answers
from understudy.exams.formats.summary_rows import KINDS, not_a_learner, refuse_max, rows_left_out, rows_named
from understudy.exams.responses import ExamOrigin, Points, Responses

# Of the points, where nothing is declared.
USUAL_SHARE = 0.5
# Fewer digits may be points.
_NUMBER_OF_A_LEARNER = r"^\d{4,}$"
# A table of so many columns may have a row per answer.
_LEAST_LONG, _MOST_LONG = 3, 6
# The code of errors about a sheet that may be a list of answers.
_A_LIST = "list-of-answers"
_LIST = (
    "if each row is one answer, call the columns learner, item and correct, or say which columns these are."
)
_LIST_SETTINGS = ("learner", "item", "outcome")
_LIST_ROLES: dict[str, Any] = {"roles": ("learner", "action", "outcome"), "taken": ()}
# So many cells are read at a time: as text they take about 20 bytes each, typed at most 8.
_CELLS_AT_A_TIME = 1 << 24


@dataclass(frozen=True, repr=False)
class TypedParquet:
    """A Parquet file as a sheet: its numbers stay numbers, as a million learners as text take too long."""

    table: ParquetTable
    _data: bytes
    notes: tuple[str, ...] = field(default=(), init=False)
    guesses: tuple[Guess, ...] = field(default=(), init=False)
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
        with intact(self.file, self._data):
            frame = pl.read_parquet(io.BytesIO(self._data), columns=names)
            columns = {role: frame[self.names[at]] for role, at in positions.items()}
            return pl.DataFrame({**columns, "line": pl.int_range(1, frame.height + 1, eager=True)})


def typed_parquet(table: ParquetTable, source: Source) -> TypedParquet:
    """The sheet in a Parquet file."""
    return TypedParquet(table, source.data)


def read_wide(
    sheet: Sheet,
    columns: Columns,
    withdrawn: Withdrawn | None,
    mark: PassMark,
    items: Items | None = None,
    *,
    keep_names: bool,
    step: float | None = None,
    grouping: Grouping | None = None,
) -> Responses:
    """The responses in a sheet; those who withdrew are gone before a cell is looked at.

    With a `step`, the points of items that have a maximum are kept, in steps. With a `grouping`, learners are in its
    declared groups, and its column is no item.
    """
    header = read_header(sheet.names, columns, sheet.file, items)
    heading = None
    if grouping is not None:
        header, heading = grouping.apart(header, sheet.file)
    try:
        found, kept = _read(sheet, header, withdrawn, mark, step, frozenset(items or ()), keep_names)
        if grouping is None or heading is None:
            return found
        return grouping.applied(found, sheet.read({"group": heading.position})["group"][kept], sheet.file)
    except DataError as error:
        error.fields["n_items"] = sum(item.numbered or item.maximum is not None for item in header.items)
        if error.code == _A_LIST or not _seems_long(sheet, header):
            raise
        hint = f"{_LIST} Otherwise: {error.hint}"
        raise DataError(
            error.message, hint=hint, code=_A_LIST, settings=_LIST_SETTINGS, **_LIST_ROLES
        ) from None


def _read(
    sheet: Sheet,
    header: Header,
    withdrawn: Withdrawn | None,
    mark: PassMark,
    step: float | None,
    listed: frozenset[str],
    keep_names: bool,
) -> tuple[Responses, pl.Series]:
    """The responses, and the positions of their rows in the sheet."""
    if not header.items:
        raise _no_items(sheet)
    _refuse_maxima(sheet, header, mark)
    rows = _Rows.of(sheet, header, withdrawn)
    matrix, items, dropped = _answers(sheet, header, rows, mark, step, listed)
    if not items:
        raise _no_items(sheet)
    refuse_answers(items, sheet.file)
    if header.learner is None and len(items) == 1 and any(heading.position == 0 for heading in dropped):
        _refuse_long(sheet, header)
    _refuse_same_names(items, sheet.file)
    names, matrix, nobody, kept = _settle_learners(rows, matrix, sheet, header.learner)
    if not (matrix >= 0).any():
        raise _no_items(sheet)
    notes = [*sheet.notes, *rows.notes, *nobody]
    if header.learner is not None:
        notes.append(f"The learner is in {header.learner.shown}.")
    notes += _notes_on_columns(items, header.others, dropped, mark, step)
    origin = ExamOrigin(
        notes=tuple(notes),
        identifiers=_people_in(items, names),
        n_withdrawn=rows.n_withdrawn,
        n_absent=rows.n_absent,
        guesses=rows.guesses,
        digests=None if names is None else digests_of_names(names),
        learners=tuple(names) if keep_names and names is not None else (),
        named=names is not None,
        dropped=tuple(heading.shown for heading in dropped),
        pass_share=_share_that_counts(items, mark) if step is None else None,
    )
    points = None
    if step is not None:
        points = tuple(
            Points() if item.maximum is None else Points(n_steps(item, step), step) for item in items
        )
    titles = tuple(item.title for item in items)
    chosen = pl.int_range(len(rows.lines), eager=True) if rows.chosen is None else rows.chosen
    return Responses(matrix, titles, declared=True, origin=origin, points=points), chosen.filter(kept)


def _share_that_counts(items: Sequence[Heading], mark: PassMark) -> float | None:
    """The share of the points from which on an answer is right; none for items of 0 and 1, unless one was declared.

    What the cells hold does not decide: a share is told where the header or the list of items gives points.
    """
    has_points = any(item.maximum is not None for item in items)
    return mark.share if has_points or mark.share != USUAL_SHARE else None


def _refuse_maxima(sheet: Sheet, header: Header, mark: PassMark) -> None:
    """Refuse a mark in points where the header gives maxima: one number is not the same for items of 2 and of 15."""
    if mark.points is not None and (n_items := sum(item.maximum is not None for item in header.items)):
        raise UsageError(
            f"{sheet.file}: the pass mark '{mark}' is a number of points or a grade, but the header gives the maximum "
            f"of {counted(n_items, 'item')}.",
            hint="declare a share of the points, such as 0.5, or take the maxima out of the header.",
            code="maxima-and-mark",
            settings=("pass_share",),
        )


def _seems_long(sheet: Sheet, header: Header) -> bool:
    """Whether a table of few columns repeats what should name its rows, so that a row may be one answer."""
    first = header.learner or next(
        heading for heading in (*header.items, *header.others) if heading.position == 0
    )
    if not _LEAST_LONG <= len(sheet.names) <= _MOST_LONG or first.maximum is not None or first.numbered:
        return False
    values = sheet.read({"first": first.position})["first"].drop_nulls()
    if values.dtype.is_nested():
        return False
    texts = values.cast(pl.String, strict=False).str.strip_chars()
    return 1 < 2 * texts.n_unique() <= len(texts) and not texts.is_in(("0", "1", "")).all()


def _refuse_long(sheet: Sheet, header: Header) -> None:
    if _seems_long(sheet, header):
        raise DataError(
            f"{sheet.file}: no column names the learners, one column holds answers, and the first one repeats "
            "its values: each row seems to be one answer.",
            hint=_LIST,
            settings=_LIST_SETTINGS,
            code=_A_LIST,
            **_LIST_ROLES,
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
    guesses: tuple[Guess, ...] = ()

    @classmethod
    def of(cls, sheet: Sheet, header: Header, withdrawn: Withdrawn | None) -> _Rows:
        """The rows of a sheet without those below the learners and without those who withdrew."""
        learner = header.learner
        texts = [0, *(heading.position for heading in header.others if heading.kind == "other")]
        wanted = {str(at): at for at in sorted({*texts, *([learner.position] if learner else [])})}
        frame = sheet.read(wanted)
        n_rows, notes = frame.height, []
        row_of = pl.int_range(n_rows, eager=True)
        refuse_max(frame, sheet)
        for words, what in KINDS:
            not_learners = rows_named(frame, words, None if learner is None else str(learner.position))
            if not_learners.any():
                if learner is None:
                    raise not_a_learner(sheet, int(frame["line"][int(not_learners.arg_max() or 0)]), what)
                frame, row_of = frame.filter(~not_learners), row_of.filter(~not_learners)
                notes.append(rows_left_out(int(not_learners.sum()), what))
        if learner is None and withdrawn is not None:
            raise DataError(
                f"{sheet.file}: a list of learners who withdrew was given, but no column names the learners.",
                hint="say which column names them, or remove their rows from the file.",
                settings=("learner",),
            )
        if learner is None:
            kept = None if frame.height == n_rows else row_of
            return cls(frame["line"], None, kept, tuple(notes), guesses=sheet.guesses)
        names = _as_names(frame[str(learner.position)], sheet.file, learner)
        table = pl.DataFrame({"learner": names, "line": frame["line"], "row": row_of})
        n_withdrawn, n_absent, guesses = 0, 0, sheet.guesses
        if withdrawn is not None:
            left = withdrawn.leave_out(table, learner.title)
            table, n_withdrawn, n_absent = left.frame, left.n_learners, left.n_absent
            guesses += left.guesses
            notes.append(left.note)
        chosen = None if table.height == n_rows else table["row"]
        return cls(table["line"], table["learner"], chosen, tuple(notes), n_withdrawn, n_absent, guesses)


def _settle_learners(
    rows: _Rows, matrix: NDArray[np.int8], sheet: Sheet, learner: Heading | None
) -> tuple[pl.Series | None, NDArray[np.int8], list[str], pl.Series]:
    """The learners, once each, their answers, notes, and which rows are kept.

    Rows with neither a name nor an answer are left out.
    """
    names, lines, notes = rows.learners, rows.lines, []
    # Without a column of names every row is a learner: whether there is one must not depend on the answers.
    nameless = np.zeros(len(lines), dtype=bool) if names is None else names.is_null().to_numpy()
    kept = ~nameless
    if nameless.any():
        kept[nameless] = (matrix[nameless] >= 0).any(axis=1)
        if n_empty := int((~kept).sum()):
            matrix, lines = matrix[kept], lines.filter(pl.Series(kept))
            names = None if names is None else names.filter(pl.Series(kept))
            notes.append(rows_left_out(n_empty, "without a name and without an answer"))
    if not len(lines):
        raise DataError(f"{sheet.file}: no learner is left to read.", hint="check the export.")
    if names is not None and learner is not None:
        hint = "give each learner one row with a name, or choose another column for the learner."
        for bad, what in (
            (names.is_null(), "names no learner"),
            (~names.is_first_distinct(), "names a learner for a second time"),
        ):
            if bad.any():
                where = _at(bad.to_numpy(), lines, sheet.place)
                raise DataError(
                    f"{sheet.file}: {learner.shown} {what} {where}.",
                    hint=hint,
                    code="not-one-row-each",
                    settings=("learner",),
                )
    return names, matrix, notes, pl.Series(kept)


def _as_names(values: pl.Series, file: str, learner: Heading) -> pl.Series:
    with keeping_values_inside(
        f"{file}: {learner.shown} cannot be read as learners' names.", hint="keep one plain value per cell."
    ):
        return values.cast(pl.String).str.strip_chars().replace("", None)


def _answers(
    sheet: Sheet,
    header: Header,
    rows: _Rows,
    mark: PassMark,
    step: float | None,
    listed: frozenset[str],
) -> tuple[NDArray[np.int8], list[Heading], list[Heading]]:
    """The matrix, its items, and the columns that turned out not to hold answers.

    An item that is `listed` is one whatever its cells hold: what one learner wrote must not leave out the answers of
    others.
    """
    candidates = header.items
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
            codes = frame.select(code_of(frame[str(item.position)], item, mark, step) for item in group)
        found = []
        for item, column in zip(group, codes, strict=True):
            if item.title in listed or holds_answers(column, item):
                cells = frame[str(item.position)]
                if header.learner is None:
                    _refuse_numbers_of_learners(column, item, sheet, cells)
                _refuse_problems(column, item, sheet, rows.lines, cells)
                found.append(item)
            else:
                dropped.append(item)
        # Column by column into a matrix by rows would touch every row once for each column.
        block = codes.select(str(item.position) for item in found).to_numpy(order="c") if found else None
        if block is not None:
            matrix[:, len(items) : len(items) + len(found)] = block
        items += found
    return matrix if len(items) == len(candidates) else matrix[:, : len(items)].copy(), items, dropped


def _refuse_numbers_of_learners(codes: pl.Series, item: Heading, sheet: Sheet, cells: pl.Series) -> None:
    """Refuse a column with another number on each row where none names the learners: it may be theirs."""
    if not codes.is_in(NEED_A_MAXIMUM).any() or not cells.is_unique().all():
        return
    if not cells.cast(pl.String).str.strip_chars().str.contains(_NUMBER_OF_A_LEARNER).fill_null(False).all():
        return
    raise DataError(
        f"{sheet.file}: {item.shown} has a different number on each row, and no column names the learners.",
        hint="if these are the learners' numbers, name the column for the learner.",
        code="not-an-answer",
        settings=("learner",),
        **({"declare": {"learner": item.title}} if item.named else {}),
    )


def _refuse_problems(
    codes: pl.Series, item: Heading, sheet: Sheet, lines: pl.Series, cells: pl.Series
) -> None:
    numbers = codes.to_numpy()
    if numbers.max(initial=0) >= FIRST_PROBLEM:
        problem = int(numbers[(numbers >= FIRST_PROBLEM).argmax()])
        lacks_maximum = problem in NEED_A_MAXIMUM
        low = lacks_maximum and seem_low_grades(cells)
        declare = {"pass_share": "<=NUMBER"} if low else {"items": "ITEMS"} if lacks_maximum else None
        raise DataError(
            f"{sheet.file}: {item.shown} {PROBLEMS[problem]} {_at(numbers == problem, lines, sheet.place)}.",
            hint=f"{NEEDS_LOW_MARK}. Otherwise: {HINTS[problem]}" if low else HINTS[problem],
            code="not-an-answer",
            settings=("items", "pass_share") if lacks_maximum else (),
            **({"declare": declare} if declare else {}),
        )


def _at(bad: NDArray[np.bool_], lines: pl.Series, place: str) -> str:
    return f"on {place} {lines[int(bad.argmax())]} ({counted(int(bad.sum()), 'such row')})"


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
        code="no-items",
    )


def _notes_on_columns(
    items: Sequence[Heading],
    others: Sequence[Heading],
    dropped: Sequence[Heading],
    mark: PassMark,
    step: float | None,
) -> list[str]:
    """What was rounded and what was left out, by columns."""
    notes = []
    n_points = sum(item.maximum is not None for item in items)
    if n_points and step is not None:
        notes.append(f"The points of {counted(n_points, 'item')} count, in steps of {step:g}.")
    elif n_points:
        notes.append(
            f"The points of {counted(n_points, 'item')} were rounded: correct from "
            f"{share_of_points(mark.share or 0.0)} on."
        )
    if mark.points is not None:
        notes.append(f"A number counts as correct {mark.in_words()}, as declared.")
    totals = [heading for heading in others if heading.kind == "total"]
    rest = [heading for heading in others if heading.kind == "other"]
    for left_out, does, do in (
        (totals, "sums up items", "sum up items"),
        (rest, "is not an item", "are not items"),
        (dropped, "holds no answers", "hold no answers"),
    ):
        if left_out:
            shown = ", ".join(heading.shown.removeprefix("column ") for heading in left_out[:12])
            more = f" and {len(left_out) - 12} more" if len(left_out) > 12 else ""
            why = f"that {does} was" if len(left_out) == 1 else f"that {do} were"
            notes.append(f"{counted(len(left_out), 'column')} {why} left out: {shown}{more}.")
    return notes
