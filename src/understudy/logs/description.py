"""Facts about a log: its size, its lengths, its repeats (seed synthetic-logs, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.times import counts_from_a_start
from understudy.logs.interactions import IntArray, Interactions, counted_pairs, totals
from understudy.logs.large.parts import sum_over


@dataclass(frozen=True)
class Description:
    """The description of a log (Vie, Rigaux and Minn 2022, Table 2), and the actions that have no finite difficulty."""

    n_rows: int
    n_learners: int
    n_actions: int
    success_rate: float | None
    """None where the log has no outcomes, and so of the actions without a finite difficulty."""
    repeats_median: float
    repeats_max: int
    length_min: int
    length_median: float
    length_max: int
    n_always_right: int | None
    n_always_wrong: int | None
    n_by_one_learner: int
    first_time: str | None
    last_time: str | None
    seconds_since_start: float | None
    """The last time, where times count from a start of their own: then there are no dates."""


@dataclass(frozen=True)
class _RowCounts:
    """What is counted of some learners' rows."""

    attempts: IntArray
    """By action, as are the next two."""
    successes: NDArray[np.float64] | None
    learners: IntArray
    repeats: NDArray[np.float64]
    """The median of each learner's attempts at an action."""
    most_repeats: int

    @classmethod
    def of(cls, log: Interactions) -> _RowCounts:
        """Those of a log."""
        learner, action, repeats = counted_pairs(log.learner, log.action, log.n_actions)
        return cls(
            np.bincount(log.action, minlength=log.n_actions),
            None if log.outcome is None else totals(log.action, log.outcome, log.n_actions),
            np.bincount(action, minlength=log.n_actions),
            _medians(learner, repeats, log.n_learners),
            int(repeats.max(initial=0)),
        )

    def __add__(self, other: _RowCounts) -> _RowCounts:
        successes = None
        if self.successes is not None and other.successes is not None:
            successes = self.successes + other.successes
        return _RowCounts(
            self.attempts + other.attempts,
            successes,
            self.learners + other.learners,
            np.concatenate([self.repeats, other.repeats]),
            max(self.most_repeats, other.most_repeats),
        )


def describe(log: Interactions) -> Description:
    """Describe a log.

    Repeats are attempts of a learner at an action: the median over learners of each learner's
    median, and the maximum over everything (Vie, Rigaux and Minn 2022, section 5.1).
    """
    counts = sum_over(log, _RowCounts.of)
    attempts, successes = counts.attempts, counts.successes
    return Description(
        n_rows=log.n_rows,
        n_learners=log.n_learners,
        n_actions=int((attempts > 0).sum()),
        success_rate=None if successes is None else float(successes.sum() / max(log.n_rows, 1)),
        repeats_median=float(np.median(counts.repeats)) if log.n_rows else 0.0,
        repeats_max=counts.most_repeats,
        length_min=int(log.lengths.min(initial=log.n_rows)),
        length_median=float(np.median(log.lengths)) if log.n_learners else 0.0,
        length_max=int(log.lengths.max(initial=0)),
        n_always_right=None if successes is None else int(((attempts > 0) & (successes == attempts)).sum()),
        n_always_wrong=None if successes is None else int(((attempts > 0) & (successes == 0)).sum()),
        n_by_one_learner=int((counts.learners == 1).sum()),
        **_times(log),
    )


def _times(log: Interactions) -> dict[str, Any]:
    """The first and the last day; or how long it took, where times count from a start: none lies after 1973."""
    times: dict[str, Any] = dict.fromkeys(("first_time", "last_time", "seconds_since_start"))
    if log.time is not None and log.n_rows:
        first, last = log.time.min(), log.time.max()
        if counts_from_a_start(pl.Series(log.time)):
            times["seconds_since_start"] = float((last - np.datetime64(0, "us")) / np.timedelta64(1, "s"))
        else:
            times |= {
                name: str(day.astype("datetime64[D]"))
                for name, day in (("first_time", first), ("last_time", last))
            }
    return times


def n_by_one_learner(log: Interactions) -> int:
    """Actions that a single learner attempted: their very names may identify the learner."""
    return int((sum_over(log, _RowCounts.of).learners == 1).sum())


def attempts_of_pairs(log: Interactions) -> tuple[IntArray, IntArray]:
    """For each (learner, action) pair that occurs: the learner, and the number of attempts."""
    learner, _, count = counted_pairs(log.learner, log.action, log.n_actions)
    return learner, count.astype(np.int64)


def _medians(learner: IntArray, values: NDArray[np.float64], n_learners: int) -> NDArray[np.float64]:
    """The median of each learner's values; every learner has at least one."""
    order = np.lexsort((values, learner))
    counts = np.bincount(learner, minlength=n_learners)
    counts = counts[counts > 0]
    begin = np.cumsum(counts) - counts
    ordered = values[order]
    middle: NDArray[np.float64] = (ordered[begin + (counts - 1) // 2] + ordered[begin + counts // 2]) / 2
    return middle
