"""Statistics of times and declared columns, and what each learner adds to them: a part of `LogStatistics`.

Of times: rows by hour of the week, session starts by day, gaps by kind of step, pauses, first and last days, numbers
of sessions, and how long learners stay. Of columns: cells of learners alone and in pairs (also with how much and how
well learners did), and cells of rows by action and outcome. All of it is counted in one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.logs.attacks.timing import gap_classes, gap_edges
from understudy.logs.column_codes import (
    N_LENGTHS,
    N_RATES,
    ColumnCodes,
    column_named,
    length_classes,
    success_classes,
)
from understudy.logs.interactions import IntArray, Interactions, pair_codes
from understudy.logs.schedule import HOURS_OF_WEEK, Schedule

Floats = NDArray[np.float64]

TIME_KINDS = ("hours", "days", "gaps", "pauses", "begins", "leaves", "sessions", "spans")
COLUMN_KINDS = ("cells", "row cells")
# Days of a longer term are put together.
MOST_DAYS = 150
# Classes of numbers of sessions and of spans, by powers of two; spans count hours.
N_SESSIONS, N_SPANS = 12, 16
# Cells of rows by action and outcome; where there would be more, they are counted by outcome alone.
MOST_CELLS = 20_000


@dataclass(frozen=True)
class LearnerCells:
    """Cells of a kind: `learner` adds `value` to `cell`. The sums are divided by the learners' `size`."""

    learner: IntArray
    cell: IntArray
    value: Floats
    n_cells: int
    size: Floats

    def only(self, kept: NDArray[np.bool_]) -> LearnerCells:
        """The same with some of the cells; the sums are still divided by the sizes of all."""
        there = kept[self.cell]
        place = np.cumsum(kept) - 1
        return LearnerCells(
            self.learner[there], place[self.cell[there]], self.value[there], int(kept.sum()), self.size
        )


def learner_cells(learner: IntArray, cell: IntArray, n_cells: int, size: NDArray[np.generic]) -> LearnerCells:
    """Cells that learners add 1 to."""
    return LearnerCells(learner, cell.astype(np.int64), np.ones(len(cell)), n_cells, size.astype(np.float64))


class TimeDetails:
    """The statistics of times, on grids that follow from a population."""

    def __init__(self, population: Interactions) -> None:
        assert population.term is not None
        self._minutes = population.term.session_minutes
        self._edges = gap_edges(population)
        day = Schedule(population).day
        self._first = int(day.min()) if len(day) else 0
        n_days = int(day.max()) - self._first + 1 if len(day) else 1
        self._width = -(-n_days // MOST_DAYS)
        self._n_days = -(-n_days // self._width)

    def of(self, log: Interactions) -> list[tuple[str, LearnerCells]]:
        """The kinds of statistics of a log, in a fixed order; without times all of them are 0."""
        n, n_gaps = log.n_learners, len(self._edges) + 1
        if not log.has_times:
            none = np.empty(0, dtype=np.int64)
            widths = (HOURS_OF_WEEK, self._n_days, 4 * n_gaps, n_gaps, self._n_days, self._n_days)
            return [
                (kind, learner_cells(none, none, width, np.zeros(n)))
                for kind, width in zip(TIME_KINDS, (*widths, N_SESSIONS, N_SPANS), strict=True)
            ]
        schedule = Schedule(log, self._minutes)
        begins, goes_on, learner = schedule.begins, schedule.continues, log.learner
        pauses = begins & ~schedule.first
        classes = gap_classes(schedule, self._edges)
        active, ones = schedule.active, np.ones(n)
        day = np.clip((schedule.day - self._first) // self._width, 0, self._n_days - 1)
        hours = schedule.span / 3600.0
        return [
            ("hours", learner_cells(learner, schedule.hour_of_week, HOURS_OF_WEEK, log.lengths)),
            ("days", _counted(learner[begins], day[begins], self._n_days, n)),
            (
                "gaps",
                _counted(
                    learner[goes_on], pair_codes(schedule.step_kind, classes, n_gaps)[goes_on], 4 * n_gaps, n
                ),
            ),
            ("pauses", _counted(learner[pauses], classes[pauses], n_gaps, n)),
            ("begins", learner_cells(active, day[schedule.starts], self._n_days, ones)),
            ("leaves", learner_cells(active, day[schedule.stops], self._n_days, ones)),
            (
                "sessions",
                learner_cells(active, _octave(schedule.n_sessions[active], N_SESSIONS), N_SESSIONS, ones),
            ),
            ("spans", learner_cells(active, _octave(hours, N_SPANS), N_SPANS, ones)),
        ]


class ColumnDetails:
    """The statistics of declared columns."""

    def __init__(self, population: Interactions) -> None:
        self._columns = population.columns
        self._codes = [ColumnCodes(column) for column in population.columns]
        width = 1 if population.outcome is None else 2
        of_rows = [codes for codes in self._codes if codes.declared.of == "row"]
        cells = sum(codes.n_codes for codes in of_rows) * population.n_actions * width
        self._by_action = cells <= MOST_CELLS

    def of(self, log: Interactions) -> list[tuple[str, LearnerCells]]:
        """The kinds of statistics of a log; what a column adds that the log lacks is 0."""
        everybody, ones = np.arange(log.n_learners), np.ones(log.n_learners)
        known = [(length_classes(log), N_LENGTHS)]
        if log.outcome is not None:
            known.append((success_classes(log), N_RATES))
        table = self._coded(log, "learner")
        pairs = [(cells, n) for cells, n in table]
        for place, (cells, n) in enumerate(table):
            for other, n_other in (*table[place + 1 :], *known):
                there = None if cells is None or other is None else pair_codes(cells, other, n_other)
                pairs.append((there, n * n_other))
        if self._by_action:
            code, n_code = log.code, log.n_actions * (1 if log.outcome is None else 2)
        elif log.outcome is not None:
            code, n_code = log.success, 2
        else:
            code, n_code = np.zeros(log.n_rows, dtype=np.int64), 1
        rows: list[tuple[IntArray | None, int]] = [
            (None if cells is None else pair_codes(cells, code, n_code), n * n_code)
            for cells, n in self._coded(log, "row")
        ]
        return [
            (kind, _side_by_side(learner, parts, size))
            for kind, learner, parts, size in (
                ("cells", everybody, pairs, ones),
                ("row cells", log.learner, rows, log.lengths),
            )
            if parts
        ]

    def _coded(self, log: Interactions, of: str) -> list[tuple[IntArray | None, int]]:
        """The codes of the columns of rows or learners, None where the log lacks one; and how many there are."""
        coded: list[tuple[IntArray | None, int]] = []
        for column, codes in zip(self._columns, self._codes, strict=True):
            if codes.declared.of == of:
                found = column_named(log, column)
                coded.append((None if found is None else codes.of(found), codes.n_codes))
        return coded


def _side_by_side(
    learner: IntArray, parts: list[tuple[IntArray | None, int]], size: NDArray[np.generic]
) -> LearnerCells:
    """Several codes of the same learners or rows as cells of one kind."""
    begin = np.cumsum([0, *(width for _, width in parts)])
    there = [(cells, first) for (cells, _), first in zip(parts, begin, strict=False) if cells is not None]
    if not there:
        none = np.empty(0, dtype=np.int64)
        return learner_cells(none, none, int(begin[-1]), size)
    cells = np.concatenate([cells + first for cells, first in there])
    return learner_cells(np.tile(learner, len(there)), cells, int(begin[-1]), size)


def _counted(learner: IntArray, cell: IntArray, n_cells: int, n_learners: int) -> LearnerCells:
    """LearnerCells whose sizes are how many each learner has."""
    return learner_cells(learner, cell, n_cells, np.bincount(learner, minlength=n_learners))


def _octave(number: NDArray[np.generic], n_classes: int) -> IntArray:
    """Classes by powers of two: below 1, 1, 2 to 3, 4 to 7 and so on."""
    return np.clip(np.frexp(number.astype(np.float64))[1], 0, n_classes - 1)
