"""Habits: what analyses read off a learner's weeks, one number per learner (and window)."""

from __future__ import annotations

from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Hours before this one belong to the night before.
_DAWN = 5
N_WEEKS_BEFORE_EXAM = 3
N_WEEKS_OF_START = 2


class Habits:
    """A cohort as researchers describe it. Arrays have learners first; windows or weeks follow."""

    def __init__(self, cohort: Cohort) -> None:
        # Not the cohort itself: `habits_of` keeps habits as long as there is a cohort.
        self.values: Floats = cohort.values
        self.label = cohort.label
        self.labels = cohort.schema.labels
        self.features = cohort.schema.features
        self.windows = [feature.name for feature in cohort.schema.features]
        self.n_weeks = cohort.schema.n_weeks
        self.outcome: Floats = cohort.label.astype(np.float64)
        # The lowest and the highest declared label: the extremes that group comparisons contrast.
        self.low: Flags = cohort.label == 0
        self.high: Flags = cohort.label == cohort.schema.n_labels - 1

    @cached_property
    def by_week(self) -> Floats:
        """Minutes of each week, all windows together."""
        total: Floats = self.values.sum(axis=1)
        return total

    @cached_property
    def log_weeks(self) -> Floats:
        """log(1 + minutes) of each week, all windows together: minutes are heavy-tailed."""
        return np.log1p(self.by_week)

    @cached_property
    def log_values(self) -> Floats:
        """log(1 + minutes) by window and week."""
        return np.log1p(self.values)

    @cached_property
    def minutes(self) -> Floats:
        """Mean minutes per week, by window."""
        mean: Floats = self.values.mean(axis=2)
        return mean

    @cached_property
    def total(self) -> Floats:
        """Mean minutes per week, all windows together."""
        total: Floats = self.minutes.sum(axis=1)
        return total

    @cached_property
    def log_total(self) -> Floats:
        """log(1 + total)."""
        return np.log1p(self.total)

    @cached_property
    def log_minutes(self) -> Floats:
        """log(1 + minutes), by window."""
        return np.log1p(self.minutes)

    @cached_property
    def active(self) -> Floats:
        """1 where there were minutes and 0 elsewhere, by window and week."""
        return (self.values > 0).astype(np.float64)

    @cached_property
    def activity(self) -> Floats:
        """Share of weeks with any minutes, by window."""
        share: Floats = self.active.mean(axis=2)
        return share

    @cached_property
    def weeks_active(self) -> Floats:
        """Share of weeks with any minutes in any window."""
        share: Floats = (self.by_week > 0).mean(axis=1)
        return share

    @cached_property
    def intensity(self) -> Floats:
        """Mean log-minutes of the active weeks, by window; missing for learners who were never active."""
        return _mean_of_active(self.log_values.sum(axis=2), self.active.sum(axis=2))

    @cached_property
    def intensity_in_all(self) -> Floats:
        """Mean log-minutes of the active weeks, all windows together; missing for learners who were never active."""
        return _mean_of_active(self.log_values.sum(axis=(1, 2)), self.active.sum(axis=(1, 2)))

    @cached_property
    def share(self) -> Floats:
        """Share of a learner's minutes that falls in each window; missing without any minutes."""
        total = self.total[:, None]
        return np.where(total > 0, self.minutes / np.where(total > 0, total, 1.0), np.nan)

    @cached_property
    def hours(self) -> Floats:
        """The middle of each window on the clock, the night after midnight counting as late.

        Features without declared hours count in the order in which they are declared.
        """
        if any(feature.hours is None for feature in self.features):
            return np.arange(len(self.features), dtype=np.float64)
        middle = np.array([sum(feature.hours or (0, 0)) / 2 for feature in self.features])
        return np.where(middle < _DAWN, middle + 24.0, middle)

    @cached_property
    def mean_hour(self) -> Floats:
        """Chronotype: the mean hour of a learner's minutes."""
        hour: Floats = self.share @ self.hours
        return hour

    @cached_property
    def shift_of_hours(self) -> Floats:
        """Mean hour of the second half of the term less that of the first; missing without minutes in one."""
        middle = self.n_weeks // 2
        first, second = (
            part.sum(axis=2) for part in (self.values[:, :, :middle], self.values[:, :, middle:])
        )
        with np.errstate(invalid="ignore"):
            shift: Floats = second @ self.hours / second.sum(axis=1) - first @ self.hours / first.sum(axis=1)
        return shift

    @cached_property
    def favourite(self) -> NDArray[np.intp]:
        """The window with most minutes; -1 without any."""
        return np.where(self.total > 0, self.minutes.argmax(axis=1), -1)

    @cached_property
    def evenness(self) -> Floats:
        """Regularity: entropy of a learner's minutes over the weeks, 1 when all weeks are alike."""
        even: Floats = entropy(self.by_week) / np.log(self.n_weeks)
        return even

    @cached_property
    def variation(self) -> Floats:
        """Coefficient of variation of a learner's weeks."""
        mean = self.by_week.mean(axis=1)
        return np.where(mean > 0, self.by_week.std(axis=1) / np.where(mean > 0, mean, 1.0), np.nan)

    @cached_property
    def longest_break(self) -> Floats:
        """Longest run of weeks without any minutes."""
        longest, running = np.zeros(len(self.by_week)), np.zeros(len(self.by_week))
        for idle in (self.by_week <= 0).T:
            running = np.where(idle, running + 1, 0.0)
            longest = np.maximum(longest, running)
        return longest

    @cached_property
    def halves(self) -> tuple[Floats, Floats]:
        """Mean log-minutes of the first and of the second half of the term, by window."""
        middle = self.n_weeks // 2
        return self.log_values[:, :, :middle].mean(axis=2), self.log_values[:, :, middle:].mean(axis=2)

    @cached_property
    def thirds(self) -> Floats:
        """Mean log-minutes of each third of the term."""
        return np.column_stack([self.part(0.0, 1 / 3), self.part(1 / 3, 2 / 3), self.part(2 / 3, 1.0)])

    @cached_property
    def without_rhythm(self) -> Floats:
        """Log-minutes by window and week, less what the whole class did: see `without_rhythm`."""
        return without_rhythm(self.log_values)

    def part(self, first: float, last: float) -> Floats:
        """Mean log-minutes per week in a part of the term, given by its limits as shares of the weeks."""
        start = min(round(first * self.n_weeks), self.n_weeks - 1)
        stop = max(round(last * self.n_weeks), start + 1)
        mean: Floats = self.log_weeks[:, start:stop].mean(axis=1)
        return mean


_KNOWN: WeakKeyDictionary[Cohort, Habits] = WeakKeyDictionary()


def habits_of(cohort: Cohort) -> Habits:
    """The habits of a cohort, computed once for all analyses and forgotten with it."""
    if cohort not in _KNOWN:
        _KNOWN[cohort] = Habits(cohort)
    return _KNOWN[cohort]


def _mean_of_active(total: Floats, n_active: Floats) -> Floats:
    return np.where(n_active > 0, total / np.maximum(n_active, 1.0), np.nan)


def above_median(column: Floats) -> Flags:
    """Which learners have more than the median."""
    flags: Flags = column > (np.median(column) if len(column) else 0.0)
    return flags


def entropy(amounts: Floats) -> Floats:
    """Entropy of each row's shares in nats; missing for rows without any amount."""
    total = amounts.sum(axis=1, keepdims=True)
    share = amounts / np.where(total > 0, total, 1.0)
    bits = -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=1)
    return np.where(total[:, 0] > 0, bits, np.nan)


def slopes(series: Floats) -> Floats:
    """Least-squares slope over the weeks, along the last axis."""
    week = np.arange(series.shape[-1], dtype=np.float64)
    week -= week.mean()
    slope: Floats = series @ week / (week @ week)
    return slope


def rise_before_exam(series: Floats) -> Floats:
    """Mean of the last weeks less the mean of those before, along the last axis."""
    n = min(N_WEEKS_BEFORE_EXAM, series.shape[-1] - 1)
    rise: Floats = series[..., -n:].mean(axis=-1) - series[..., :-n].mean(axis=-1)
    return rise


def slow_start(series: Floats) -> Floats:
    """Mean of the first weeks less the mean of those after, along the last axis."""
    n = min(N_WEEKS_OF_START, series.shape[-1] - 1)
    start: Floats = series[..., :n].mean(axis=-1) - series[..., n:].mean(axis=-1)
    return start


def middle_dip(series: Floats) -> Floats:
    """The week in the middle of the term less the mean of the two before and after it."""
    middle = series.shape[-1] // 2
    around = [
        week for week in range(middle - 2, middle + 3) if week != middle and 0 <= week < series.shape[-1]
    ]
    dip: Floats = series[..., middle] - series[..., around].mean(axis=-1)
    return dip


def week_to_week(series: Floats) -> Floats:
    """Autocorrelation of successive weeks along the last axis; missing for constant series.

    A series in random order has an expected value of -1/T, not 0; that is added back.
    """
    centred = series - series.mean(axis=-1, keepdims=True)
    power = (centred**2).sum(axis=-1)
    product = (centred[..., 1:] * centred[..., :-1]).sum(axis=-1)
    still = power <= 1e-12
    return np.where(still, np.nan, product / np.where(still, 1.0, power) + 1.0 / series.shape[-1])


def without_rhythm(series: Floats) -> Floats:
    """Series less what the whole class did in the week: neither a learner's level nor the term's rhythm."""
    level = series.mean(axis=-1, keepdims=True)
    rhythm = series.mean(axis=0, keepdims=True) if len(series) else series
    rest: Floats = series - level - rhythm + (series.mean() if series.size else 0.0)
    return rest


def row_correlations(first: Floats, second: Floats) -> Floats:
    """Pearson's r of each learner's two series; missing where one is constant."""
    a = first - first.mean(axis=-1, keepdims=True)
    b = second - second.mean(axis=-1, keepdims=True)
    power = (a**2).sum(axis=-1) * (b**2).sum(axis=-1)
    still = power <= 1e-18
    return np.where(still, np.nan, (a * b).sum(axis=-1) / np.sqrt(np.where(still, 1.0, power)))
