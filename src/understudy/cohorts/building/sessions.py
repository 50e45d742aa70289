"""Events to sessions to minutes per window of the day and week of the term.

A session is a run of events of one learner with no more than `gap` between neighbours. It lasts
from its first event to its last and `credit` longer: it is not known how long the last page was
read, so a lone click counts `credit` minutes. Minutes are real ones. A session is split exactly
where a window, a day or a week begins on the learner's clock.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.cohorts.schema import Feature, Schema
from understudy.core.files.times import check_zone, clock_of, instants_of
from understudy.errors import DataError, UsageError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MINUTE = 60_000_000  # microseconds, the unit of all times here
# Offsets of today's time zones are multiples of it, so a clock never jumps inside such a cell.
_CELL = 15 * MINUTE
_DAY = 24 * 60 * MINUTE
_HOURS = np.arange(24)


@dataclass(frozen=True)
class Rule:
    """What makes a session: minutes of inactivity that end it, minutes counted for its last event."""

    gap: float = 30.0
    credit: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.gap <= 24 * 60:
            raise UsageError(
                f"a gap of {self.gap:g} minutes was asked for.", hint="between 0 and 1440; 30 is usual."
            )
        if not 0 <= self.credit <= self.gap:
            raise UsageError(
                f"{self.credit:g} minutes were asked for the last event of a session, of a gap of {self.gap:g}.",
                hint="from 0 up to the gap, or sessions would overlap.",
            )


@dataclass(frozen=True, repr=False)
class Sessions:
    """A row per session: the learner's position, begin and end in microseconds."""

    learner: Ints
    start: Ints
    end: Ints

    @property
    def n_sessions(self) -> int:
        """Number of sessions."""
        return len(self.learner)


def find_sessions(learner: Ints, time: Ints, rule: Rule = Rule()) -> Sessions:  # noqa: B008 (frozen)
    """The sessions of events in any order; events at the same time count once."""
    order = np.lexsort((time, learner))
    who, when = learner[order], time[order]
    if not len(who):
        return Sessions(who, when, when)
    begins = np.ones(len(who), dtype=bool)
    begins[1:] = (who[1:] != who[:-1]) | (when[1:] - when[:-1] > round(rule.gap * MINUTE))
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(who)) - 1
    return Sessions(who[first], when[first], when[last] + round(rule.credit * MINUTE))


@dataclass(frozen=True)
class Term:
    """The weeks of a schema on the calendar of a place.

    Without a `time_zone` times are those of a clock that never changes.
    """

    start: date
    n_weeks: int
    time_zone: str | None = None

    def __post_init__(self) -> None:
        if not 1971 <= self.start.year <= 2200:
            raise UsageError(f"a term from {self.start} was asked for.", hint="give it as 2024-09-02.")
        if self.time_zone is not None:
            check_zone(self.time_zone)

    @property
    def note(self) -> str:
        """That weeks begin on the day of the week on which the term does, if that may be a mistake."""
        day = self.start.strftime("%A")
        if self.start.weekday() == 0:
            return ""
        return f"{self.start} is a {day}: the weeks of the term begin on {day}s."

    def clock(self) -> tuple[Ints, Ints]:
        """Cells of a quarter of an hour: when each begins, and what the clock shows since the term's start.

        Both in microseconds. They reach a day beyond the term on either side.
        """
        origin = _microseconds(self.start)
        cells = np.arange(origin - _DAY, origin + (self.n_weeks * 7 + 1) * _DAY + 1, _CELL)
        if self.time_zone is None:
            return cells, cells - origin
        shown = clock_of(pl.Series(cells).cast(pl.Datetime("us")), self.time_zone)
        return cells, shown.cast(pl.Int64).to_numpy() - origin

    def instants(self, local: pl.Series) -> tuple[pl.Series, int]:
        """Clock times as instants, and how many of them were unclear.

        An hour that comes twice is taken for the first one; one that is skipped is read as if the
        clock had not been changed yet.
        """
        return (local, 0) if self.time_zone is None else instants_of(local, self.time_zone)

    def week_of(self, feature: Feature | None = None) -> tuple[Ints, Ints]:
        """Borders in time, and the week that begins at each: -1 outside the feature's hours and the term."""
        cells, shown = self.clock()
        week = np.where(shown >= 0, shown // (7 * _DAY), -1)
        week[week >= self.n_weeks] = -1
        if feature is not None:
            week[~_within(feature, (shown % _DAY) // (60 * MINUTE))] = -1
        changes = np.flatnonzero(np.diff(week, prepend=-2))
        return cells[changes], week[changes]

    def contains(self, time: Ints) -> NDArray[np.bool_]:
        """Which times lie in the term."""
        borders, week = self.week_of()
        place = np.searchsorted(borders, time, side="right") - 1
        return (place >= 0) & (week[np.maximum(place, 0)] >= 0)


def minutes_per_week(sessions: Sessions, n_learners: int, schema: Schema, term: Term) -> Floats:
    """Minutes of each learner, in the hours of each feature, in each week of the term."""
    check_hours(schema)
    values = np.zeros((n_learners, schema.n_features, schema.n_weeks))
    for place, feature in enumerate(schema.features):
        borders, week = term.week_of(feature)
        # What lies before the first border or behind the last one is outside the term.
        start, end = np.maximum(sessions.start, borders[0]), np.minimum(sessions.end, borders[-1])
        some = end > start
        learner, start, end = sessions.learner[some], start[some], end[some]
        first = np.searchsorted(borders, start, side="right") - 1
        n_parts = np.searchsorted(borders, end, side="left") - first
        part = np.repeat(first - np.cumsum(n_parts) + n_parts, n_parts) + np.arange(n_parts.sum())
        within = week[part] >= 0
        part = part[within]
        whole = np.repeat(np.arange(len(first)), n_parts)[within]
        length = np.minimum(end[whole], borders[part + 1]) - np.maximum(start[whole], borders[part])
        cell = learner[whole] * schema.n_weeks + week[part]
        sums = np.bincount(cell, weights=length, minlength=n_learners * schema.n_weeks)
        values[:, place] = sums.reshape(n_learners, schema.n_weeks) / MINUTE
    return values


def check_hours(schema: Schema) -> None:
    """Refuse a schema whose features are not minutes in hours of the day."""
    for feature in schema.features:
        if feature.hours is None or feature.unit != "minutes":
            raise DataError(
                f"feature '{feature.name}' is not declared as minutes in hours of the day.",
                hint="a log of events gives minutes: write hours = [5, 12] for each [[feature]].",
            )


def check_windows(schema: Schema) -> None:
    """Refuse a schema whose features are not windows of the day that exclude each other."""
    check_hours(schema)
    for window, other in itertools.combinations(schema.features, 2):
        both = np.flatnonzero(_within(window, _HOURS) & _within(other, _HOURS))
        if len(both):
            raise DataError(
                f"the windows '{window.name}' and '{other.name}' overlap (hours {hours_in_words(both)}): minutes there "
                "would count twice.",
                hint="write each hour into one [[feature]] only: hours = [5, 12] ends where [12, 17] begins.",
            )


def hours_without_window(schema: Schema) -> Ints:
    """Hours of the day that belong to no window; public, as the schema is."""
    covered = np.zeros(24, dtype=bool)
    for feature in schema.features:
        covered |= _within(feature, _HOURS)
    return np.flatnonzero(~covered)


def hours_in_words(hours: Ints) -> str:
    """Runs of hours, each with the first hour that is not in it: "0 to 5, 22 to 24"."""
    runs = np.split(hours, np.flatnonzero(np.diff(hours) > 1) + 1)
    return ", ".join(f"{run[0]} to {run[-1] + 1}" for run in runs)


def _within(feature: Feature, hour: Ints) -> NDArray[np.bool_]:
    assert feature.hours is not None
    first, end = feature.hours
    if first < end:
        return (hour >= first) & (hour < end)
    return (hour >= first) | (hour < end)  # over midnight


def _microseconds(day: date) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000
