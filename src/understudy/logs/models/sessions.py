"""Sessions: a log's rows on the calendar of its term, divided where a learner paused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.declared.term import Term
from understudy.logs.interactions import IntArray, Interactions, totals
from understudy.logs.schedule import HOURS_OF_WEEK

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
# Days are counted from 1970-01-01, a Thursday; weeks begin on Monday.
_EPOCH, _EPOCH_WEEKDAY = date(1970, 1, 1), 3
# Up to so many days starts and stops are counted by day, beyond by week.
_SHORT_TERM = 28
# Classes of gaps within sessions and of pauses between them, on logarithmic grids.
N_GAPS, N_PAUSES = 32, 32


@dataclass(frozen=True)
class Calendar:
    """The days of a term and the grids on which its times are counted: all of it public.

    Times are microseconds since 1970, in multiples of `resolution`. A pause of more than `limit` ends a session.
    Starts and stops are counted in `n_bins` bins of `bin_days` days; those of whole weeks begin on Mondays.
    """

    first_day: date
    n_days: int
    resolution: int
    limit: int
    bin_days: int

    @classmethod
    def of(cls, term: Term, most_bins: int) -> Calendar:
        """The calendar of a term with days, with no more bins than that for starts and stops."""
        assert term.first is not None
        unit = 1 if term.n_days <= _SHORT_TERM else 7
        n_units = -(-(term.n_days + term.first.weekday() * (unit == 7)) // unit)
        return cls(
            term.first,
            term.n_days,
            max(round(term.resolution * SECOND), 1),
            round(term.session_minutes * 60 * SECOND),
            unit * -(-n_units // max(most_bins, 1)),
        )

    @property
    def last_day(self) -> date:
        """The last day of the term."""
        return self.first_day + timedelta(days=self.n_days - 1)

    @property
    def midnight(self) -> int:
        """When the first day begins."""
        return (self.first_day - _EPOCH).days * DAY

    @property
    def start(self) -> int:
        """The first time in the term that the platform could write."""
        return -(-self.midnight // self.resolution) * self.resolution

    @property
    def end(self) -> int:
        """The last one; where no multiple of the resolution lies in the term, the first one after its beginning."""
        last = (self.midnight + self.n_days * DAY - 1) // self.resolution * self.resolution
        return max(last, self.start)

    @property
    def first_bin(self) -> int:
        """When the first bin begins: at the latest with the first day."""
        early = self.first_day.weekday() if self.bin_days % 7 == 0 and self.n_days > _SHORT_TERM else 0
        return self.midnight - early * DAY

    @property
    def bin_lengths(self) -> NDArray[np.float64]:
        """Days of the term in each bin."""
        begin = self.first_bin + self.bin_days * DAY * np.arange(self.n_bins + 1)
        days = np.diff(np.clip(begin, self.midnight, self.midnight + self.n_days * DAY)) / DAY
        return np.asarray(days, dtype=np.float64)

    @property
    def n_bins(self) -> int:
        """Bins for starts and stops."""
        return -(-(self.midnight - self.first_bin + self.n_days * DAY) // (self.bin_days * DAY))

    def bin_of(self, time: IntArray) -> IntArray:
        """The bin in which each time lies."""
        place: IntArray = np.clip((time - self.first_bin) // (self.bin_days * DAY), 0, self.n_bins - 1)
        return place

    def hour_of_week(self, time: IntArray) -> IntArray:
        """The hour of the week of each time, from Monday at midnight on."""
        hour: IntArray = (time // HOUR + _EPOCH_WEEKDAY * 24) % HOURS_OF_WEEK
        return hour

    @cached_property
    def gap_edges(self) -> IntArray:
        """Class g of gaps holds edges[g] to edges[g + 1] - 1 units of the resolution, from none to the limit."""
        most = self.limit // self.resolution + 1
        edges: IntArray = np.unique(np.round(np.geomspace(1, max(most, 1), N_GAPS)).astype(np.int64))
        return np.concatenate([[0], edges])

    @cached_property
    def pause_edges(self) -> IntArray:
        """The same of pauses between sessions, from the limit to the length of the term."""
        least = self.limit // self.resolution + 1
        most = max((self.end - self.start) // self.resolution + 1, least + 1)
        return np.unique(np.round(np.geomspace(least, most, N_PAUSES + 1)).astype(np.int64))

    def gap_class(self, gap: IntArray) -> IntArray:
        """The class of each gap, in units of the resolution; all beyond the limit are one class more."""
        place: IntArray = np.searchsorted(self.gap_edges, gap, side="right") - 1
        return place

    def pause_class(self, pause: IntArray) -> IntArray:
        """The class of each pause between sessions, in units of the resolution."""
        place = np.searchsorted(self.pause_edges, pause, side="right") - 1
        return np.clip(place, 0, len(self.pause_edges) - 2)


@dataclass(frozen=True)
class Timeline:
    """When the rows of a log happened, and where sessions begin: what each learner has depends on that learner's rows.

    Times before or after the term are moved to its ends, and one that runs backwards to the one before it.
    """

    log: Interactions
    calendar: Calendar

    @cached_property
    def time(self) -> NDArray[np.int64]:
        """Microseconds since 1970, in multiples of the resolution, never running backwards."""
        calendar = self.calendar
        time = microseconds(self.log)
        time = np.clip(time - time % calendar.resolution, calendar.start, calendar.end)
        rising: NDArray[np.int64] = _rising(self.log.offsets, time)
        return rising

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Rows that are the first of their learner."""
        first = np.zeros(self.log.n_rows, dtype=bool)
        first[self.log.offsets[:-1][self.log.lengths > 0]] = True
        return first

    @cached_property
    def gap(self) -> NDArray[np.int64]:
        """Units of the resolution since the learner's row before; 0 for the first."""
        gap = np.diff(self.time, prepend=self.time[:1]) // self.calendar.resolution
        return np.where(self.first, 0, gap)

    @cached_property
    def pause(self) -> NDArray[np.bool_]:
        """Rows before which the learner paused: they begin a session, and are not the learner's first."""
        return self.gap * self.calendar.resolution > self.calendar.limit

    @cached_property
    def session(self) -> IntArray:
        """The session of each row, numbered through all learners."""
        return np.cumsum(self.first | self.pause) - 1

    @cached_property
    def n_sessions(self) -> IntArray:
        """Sessions of each learner."""
        counts: IntArray = totals(self.log.learner, self.first | self.pause, self.log.n_learners).astype(
            np.int64
        )
        return counts


def microseconds(log: Interactions) -> NDArray[np.int64]:
    """The times of a log as whole microseconds since 1970."""
    assert log.time is not None
    whole: NDArray[np.int64] = log.time.astype("datetime64[us]").astype(np.int64)
    return whole


@njit(cache=True, nogil=True)
def _rising(offsets, time):  # type: ignore[no-untyped-def]
    """The largest time so far of each learner."""
    rising = time.copy()
    for i in range(len(offsets) - 1):
        for row in range(offsets[i] + 1, offsets[i + 1]):
            rising[row] = max(rising[row], rising[row - 1])
    return rising
