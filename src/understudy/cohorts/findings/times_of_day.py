"""Time-of-day patterns: when learners work, and whether it goes with the outcome."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import (
    mean_away_from_zero,
    mean_difference,
    rank_correlation,
    rank_difference,
    share_difference,
)
from understudy.cohorts.findings.habits import Habits, entropy
from understudy.cohorts.findings.relations import with_outcome

Floats = NDArray[np.float64]


@register(
    "time of day", "Do learners who do a larger share of their work in a window achieve more?", "labels"
)
def share_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of each window's share of a learner's minutes and the outcome."""
    habits = Habits(cohort)
    return with_outcome(habits, habits.share)


@register("time of day", "Do late or early workers achieve more?", "labels")
def chronotype_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the mean hour of work and the outcome."""
    habits = Habits(cohort)
    return [Finding.of("mean hour", rank_correlation(habits.mean_hour, habits.outcome))]


@register("time of day", "Which windows do learners prefer?", "windows")
def preferred_windows(cohort: Cohort) -> list[Finding]:
    """Paired t test of each window's log-minutes against the mean of all windows."""
    habits = Habits(cohort)
    often = np.log1p(habits.minutes)
    excess = often - often.mean(axis=1, keepdims=True)
    return [
        Finding.of(window, mean_away_from_zero(column))
        for window, column in zip(habits.windows, excess.T, strict=True)
    ]


@register("time of day", "Do high achievers have another favourite window than low ones?", "labels")
def favourite_window_by_group(cohort: Cohort) -> list[Finding]:
    """Fisher's exact test of having most minutes in a window, highest against lowest label."""
    habits = Habits(cohort)
    favourite = np.where(habits.total > 0, habits.minutes.argmax(axis=1), -1)
    return [
        Finding.of(
            window, share_difference((favourite == place)[habits.high], (favourite == place)[habits.low])
        )
        for place, window in enumerate(habits.windows)
    ]


@register("time of day", "Do learners who spread their work over the day achieve more?", "labels")
def spread_over_day_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the entropy of a learner's minutes over the windows and the outcome."""
    habits = Habits(cohort)
    return [Finding.of("entropy", rank_correlation(entropy(habits.minutes), habits.outcome))]


@register("time of day", "Do learners move to later hours as the term goes on?", "weeks")
def shift_of_hours(cohort: Cohort) -> list[Finding]:
    """Paired t test of the mean hour, second half of the term less the first."""
    return [Finding.of("second half", mean_away_from_zero(_shift(Habits(cohort))))]


@register("time of day", "Do low achievers move to later hours more than high ones?", "labels")
def shift_of_hours_by_group(cohort: Cohort) -> list[Finding]:
    """Welch's t test of the shift of the mean hour between halves, highest against lowest label."""
    habits = Habits(cohort)
    shift = _shift(habits)
    return [Finding.of("second half", mean_difference(shift[habits.high], shift[habits.low]))]


@register("time of day", "Do those who ever work in the latest window achieve less?", "labels")
def latest_window_and_outcome(cohort: Cohort) -> list[Finding]:
    """Mann-Whitney test of the outcome, learners with more activity in the latest window than the median."""
    habits = Habits(cohort)
    late = habits.activity[:, int(np.argmax(habits.hours))]
    often = late > (np.median(late) if len(late) else 0.0)
    return [
        Finding.of("often against rarely", rank_difference(habits.outcome[often], habits.outcome[~often]))
    ]


def _shift(habits: Habits) -> Floats:
    middle = habits.n_weeks // 2
    hours = []
    for part in (habits.values[:, :, :middle], habits.values[:, :, middle:]):
        minutes = part.sum(axis=2)
        total = minutes.sum(axis=1)
        hours.append(np.where(total > 0, minutes @ habits.hours / np.where(total > 0, total, 1.0), np.nan))
    shift: Floats = hours[1] - hours[0]
    return shift
