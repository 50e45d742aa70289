"""Cells of declared columns: texts of a file become codes and numbers, each cell by itself.

What a cell may be is declared, so no learner's cell decides how another one is read. Where the categories of a column
are to be found privately (`Declared.found`), `values` holds every text of the data, as the names of actions do that
were not declared: they are not public, and a private generator releases those that enough learners share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.events.read_options import CellOptions
from understudy.core.files.notes import Count, CountingNote
from understudy.core.files.outcomes import is_missing, number_in, read_outcomes, words_of
from understudy.core.files.times import read_each_time, unit_in_name
from understudy.core.files.words import counted
from understudy.core.names import natural_order
from understudy.errors import DataError
from understudy.logs.declared.columns import OTHER, Column, Declared, Kind

# Columns of a synthetic file that have a role there.
RESERVED = ("learner", "action", "outcome", "time")
_FORMS = {
    Kind.number: "a number",
    Kind.flag: "yes or no (also 1 and 0, true and false, ja and nein)",
    Kind.time: "a time",
}


@dataclass(frozen=True, repr=False)
class ReadColumn:
    """A column that was read, and sentences on cells that were not taken as they stand."""

    column: Column
    notes: tuple[str, ...] = ()


def check_declared(columns: Sequence[Declared]) -> None:
    """Refuse columns that could not be written: two of one name, or one with the name of a role."""
    seen: set[str] = set()
    for declared in columns:
        if declared.name in RESERVED:
            raise DataError(
                f"column '{declared.name}' is declared, but a column of that name has a role in a synthetic file.",
                hint="rename it in the file and in the declaration.",
                code="bad-declaration",
            )
        if declared.name in seen:
            raise DataError(
                f"column '{declared.name}' is declared twice.",
                hint="leave one of them out.",
                code="bad-declaration",
            )
        seen.add(declared.name)


def read_column(
    cells: pl.Series,
    declared: Declared,
    lines: pl.Series,
    options: CellOptions = CellOptions(),  # noqa: B008 (frozen)
    place: str = "line",
) -> ReadColumn:
    """The cells of a column as codes or numbers; empty ones are missing.

    A text that is none of the declared categories is `OTHER`, a number outside of its bounds becomes the nearer bound.
    What cannot be read at all stops the reading; with `set_aside` it counts as missing.
    """
    empty = is_missing(cells)
    if declared.kind is Kind.category:
        return _categories(cells, declared, empty)
    if declared.kind is Kind.flag:
        values = read_outcomes(cells).cast(pl.Float64)
    elif declared.kind is Kind.number:
        values = words_of(cells).to_frame("word").select(number_in(pl.col("word"))).to_series()
    else:
        unit = options.time_unit or unit_in_name(declared.name) or "s"
        times = read_each_time(cells, unit=unit, order=options.date_order, since_start=True)
        values = times.dt.epoch("us") / 1e6
    values = values.set(empty, None)
    unreadable = values.is_null() & ~empty
    notes = []
    if unreadable.any():
        if not options.set_aside:
            raise _unreadable(declared, unreadable, lines, place)
        notes.append(
            CountingNote(
                f"Column '{declared.name}': ",
                Count(int(unreadable.sum()), "cell"),
                " cannot be read and counted as empty.",
            )
        )
    numbers = values.fill_null(np.nan).to_numpy()
    if declared.kind is Kind.flag:
        return ReadColumn(Column(declared, np.where(np.isnan(numbers), -1, numbers)), tuple(notes))
    bounded = within_bounds(numbers, declared)
    if n_outside := int((np.abs(bounded - numbers) > (declared.step or 0.0) / 2 + 1e-9).sum()):
        notes.append(
            CountingNote(
                f"Column '{declared.name}': ",
                Count(n_outside, "cell"),
                " outside of the declared bounds, taken as the nearer bound.",
            )
        )
    return ReadColumn(Column(declared, bounded), tuple(notes))


def within_bounds(numbers: NDArray[Any], declared: Declared) -> NDArray[Any]:
    """Numbers as multiples of the declared step, no smaller and no larger than declared."""
    if declared.step is not None:
        numbers = np.round(numbers / declared.step) * declared.step
    low = -np.inf if declared.low is None else declared.low
    high = np.inf if declared.high is None else declared.high
    bounded: NDArray[Any] = np.clip(numbers, low, high)
    return bounded


def one_per_learner(read: ReadColumn, learner: NDArray[Any], n_learners: int) -> ReadColumn:
    """The cells of a column that describes learners, read from rows; empty cells of a learner do not count."""
    cells = read.column.cells
    there = ~read.column.missing
    first = np.full(n_learners, read.column.declared.missing_cell, dtype=cells.dtype)
    first[learner[there][::-1]] = cells[there][::-1]
    differs = there & (cells != first[learner])
    if differs.any():
        n_learners_differing = len(np.unique(learner[differs]))
        raise DataError(
            f"column '{read.column.declared.name}' is declared to describe learners, but changes within "
            f"{counted(n_learners_differing, 'learner')}.",
            hint="declare it as a column of rows, or give a table with one row per learner.",
            code="changes-within-learner",
        )
    return replace(read, column=replace(read.column, cells=first))


def _categories(cells: pl.Series, declared: Declared, empty: pl.Series) -> ReadColumn:
    texts = cells.cast(pl.String).str.strip_chars().set(empty, None)
    if declared.found and not declared.values:
        names = natural_order(set(texts.drop_nulls().unique().to_list()) - {OTHER})
        declared = replace(declared, values=tuple(names))
    known = [name.strip() for name in declared.values]
    codes = texts.replace_strict(
        [*known], [*range(len(known))], default=len(known), return_dtype=pl.Int32
    ).set(empty, -1)
    strange = int(((codes == len(known)) & (texts != OTHER).fill_null(False)).sum())
    notes = (
        (
            CountingNote(
                f"Column '{declared.name}': ",
                Count(strange, "cell"),
                f" with none of the declared values, counted as '{OTHER}'.",
            ),
        )
        if strange
        else ()
    )
    return ReadColumn(Column(declared, codes.to_numpy()), notes)


def _unreadable(declared: Declared, bad: pl.Series, lines: pl.Series, place: str) -> DataError:
    line = lines[int(bad.arg_max() or 0)]
    return DataError(
        f"column '{declared.name}' holds something other than {_FORMS[declared.kind]} on {place} {line} "
        f"({counted(int(bad.sum()), 'such cell')}).",
        hint="declare another kind, repair these cells, or set them aside: they are empty then.",
        code="not-as-declared",
        settings=("set_aside",),
        column=declared.name,
        n_rows=int(bad.sum()),
    )
