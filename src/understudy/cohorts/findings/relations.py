"""Correlations: what goes with the outcome, and what goes together."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import mean_away_from_zero, rank_correlation
from understudy.cohorts.findings.habits import Habits, row_correlations, without_rhythm

Floats = NDArray[np.float64]


def with_outcome(habits: Habits, columns: Floats) -> list[Finding]:
    """Rank correlation of the outcome with one number per window."""
    return [
        Finding.of(window, rank_correlation(column, habits.outcome))
        for window, column in zip(habits.windows, columns.T, strict=True)
    ]


@register("correlation", "Do learners with more minutes, in which window, achieve more?", "labels")
def minutes_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of mean minutes a week and the outcome, in all and by window."""
    habits = Habits(cohort)
    overall = Finding.of("all windows", rank_correlation(habits.total, habits.outcome))
    return [overall, *with_outcome(habits, habits.minutes)]


@register("correlation", "Do learners who are active in more weeks achieve more?", "labels")
def activity_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the share of active weeks and the outcome, in all and by window."""
    habits = Habits(cohort)
    overall = Finding.of("any window", rank_correlation(habits.weeks_active, habits.outcome))
    return [overall, *with_outcome(habits, habits.activity)]


@register("correlation", "Do learners who work longer when they work achieve more?", "labels")
def intensity_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of mean log-minutes of active weeks and the outcome, by window."""
    habits = Habits(cohort)
    return with_outcome(habits, habits.intensity)


@register("correlation", "Do regular learners achieve more?", "labels")
def regularity_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the outcome with evenness over the weeks and with their variation."""
    habits = Habits(cohort)
    return [
        Finding.of("evenness", rank_correlation(habits.evenness, habits.outcome)),
        Finding.of("variation", rank_correlation(habits.variation, habits.outcome)),
    ]


@register("correlation", "Do longer breaks go with lower achievement?", "labels")
def breaks_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the longest run of idle weeks and the outcome."""
    habits = Habits(cohort)
    return [Finding.of("longest break", rank_correlation(habits.longest_break, habits.outcome))]


@register("correlation", "Does a single long week go with achievement?", "labels")
def peak_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the largest week and the outcome, in all and by window."""
    habits = Habits(cohort)
    overall = Finding.of("all windows", rank_correlation(habits.by_week.max(axis=1), habits.outcome))
    return [overall, *with_outcome(habits, habits.values.max(axis=2))]


@register("correlation", "Which part of the term tells most about achievement?", "labels")
def parts_of_term_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of mean log-minutes in each third of the term and the outcome."""
    habits = Habits(cohort)
    parts = {"first third": (0.0, 1 / 3), "second third": (1 / 3, 2 / 3), "last third": (2 / 3, 1.0)}
    return [
        Finding.of(name, rank_correlation(habits.part(*limits), habits.outcome))
        for name, limits in parts.items()
    ]


@register("correlation", "Do learners who work much in one window also do in another?", "learners")
def between_windows(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of mean minutes in every two windows."""
    habits = Habits(cohort)
    return [
        Finding.of(
            f"{habits.windows[i]} and {habits.windows[j]}",
            rank_correlation(habits.minutes[:, i], habits.minutes[:, j]),
        )
        for i, j in combinations(range(len(habits.windows)), 2)
    ]


@register("correlation", "Do learners who are active more often also work longer each time?", "learners")
def activity_and_intensity(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the share of active weeks and mean log-minutes of active weeks, by window."""
    habits = Habits(cohort)
    columns = zip(habits.windows, habits.activity.T, habits.intensity.T, strict=True)
    return [Finding.of(window, rank_correlation(often, long)) for window, often, long in columns]


@register("correlation", "In weeks with more of one window, is there less of another?", "weeks")
def windows_within_learners(cohort: Cohort) -> list[Finding]:
    """Mean within-learner correlation of every two windows over the weeks, rhythm removed (t test)."""
    habits = Habits(cohort)
    series = without_rhythm(habits.log_values)
    varies = np.ptp(habits.values, axis=2) > 0
    found = []
    for i, j in combinations(range(len(habits.windows)), 2):
        both = varies[:, i] & varies[:, j]
        test = mean_away_from_zero(row_correlations(series[both, i], series[both, j]))
        found.append(Finding.of(f"{habits.windows[i]} and {habits.windows[j]}", test))
    return found
