"""Schedule: when the rows of a log happened, as attacks, measures and a first look at a log need it.

Nothing here depends on what is declared about a term but the pause that ends a session: days and hours are those of
the calendar, and a row's gap is the time since the learner's row before.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.logs.declared.term import SESSION_MINUTES
from understudy.logs.interactions import IntArray, Interactions

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

HOURS_OF_WEEK = 168
_SECOND = 1_000_000
_HOUR = 3600 * _SECOND
_DAY = 24 * _HOUR
# The first of January 1970 was a Thursday; weeks begin on Mondays.
_THURSDAY = 3


class Schedule:
    """The times of a log; sessions end with a pause of more than `session_minutes`."""

    def __init__(self, log: Interactions, session_minutes: float | None = None) -> None:
        assert log.time is not None
        self._log = log
        self.time: NDArray[np.int64] = log.time.astype("datetime64[us]").astype(np.int64)
        declared = SESSION_MINUTES if log.term is None else log.term.session_minutes
        self.pause_seconds = 60.0 * (session_minutes or declared)

    @cached_property
    def first(self) -> Flags:
        """Rows that are the first of their learner."""
        first = np.zeros(self._log.n_rows, dtype=bool)
        first[self._log.offsets[:-1][self._log.lengths > 0]] = True
        return first

    @cached_property
    def gap(self) -> Floats:
        """Seconds since the learner's row before; 0 for the first."""
        gap = np.diff(self.time, prepend=self.time[:1]) / _SECOND
        return np.where(self.first, 0.0, gap)

    @cached_property
    def begins(self) -> Flags:
        """Rows that begin a session."""
        return self.first | (self.gap > self.pause_seconds)

    @cached_property
    def continues(self) -> Flags:
        """Rows that go on with a session."""
        return ~self.begins

    @cached_property
    def day(self) -> IntArray:
        """Days since 1970."""
        return self.time // _DAY

    @cached_property
    def week(self) -> IntArray:
        """Weeks since 1970, from Monday to Sunday."""
        return (self.day + _THURSDAY) // 7

    @cached_property
    def hour(self) -> IntArray:
        """Hours since 1970."""
        return self.time // _HOUR

    @cached_property
    def hour_of_week(self) -> IntArray:
        """Hours since Monday at midnight, from 0 to 167."""
        return (self.hour + 24 * _THURSDAY) % HOURS_OF_WEEK

    @cached_property
    def hour_shares(self) -> Floats:
        """Shares of rows by hour of the week."""
        return np.bincount(self.hour_of_week, minlength=HOURS_OF_WEEK) / max(self._log.n_rows, 1)

    @cached_property
    def n_sessions(self) -> IntArray:
        """Sessions of each learner."""
        return np.bincount(self._log.learner[self.begins], minlength=self._log.n_learners)

    @cached_property
    def active(self) -> IntArray:
        """Learners who have a row."""
        return np.flatnonzero(self._log.lengths)

    @cached_property
    def starts(self) -> IntArray:
        """The first row of each active learner."""
        return self._log.offsets[:-1][self.active]

    @cached_property
    def stops(self) -> IntArray:
        """The last row of each active learner."""
        return self._log.offsets[1:][self.active] - 1

    @cached_property
    def span(self) -> Floats:
        """Seconds from the first row of each active learner to the last."""
        return (self.time[self.stops] - self.time[self.starts]) / _SECOND

    @cached_property
    def step_kind(self) -> IntArray:
        """The kind of the step to each row."""
        return step_kinds(self._log)

    @property
    def n_step_kinds(self) -> int:
        """How many kinds of steps there are."""
        return n_step_kinds(self._log)


def step_kinds(log: Interactions) -> IntArray:
    """The kind of the step to each row: to the same action (0) or another, and after which outcome, if there are any.

    The first row of a learner has a kind as well, which means nothing.
    """
    other = np.zeros(log.n_rows, dtype=np.int64)
    other[1:] = log.action[1:] != log.action[:-1]
    if log.outcome is None:
        return other
    before = np.zeros(log.n_rows, dtype=np.int64)
    before[1:] = log.outcome[:-1]
    return 2 * other + before


def n_step_kinds(log: Interactions) -> int:
    """How many kinds there are."""
    return 2 if log.outcome is None else 4
