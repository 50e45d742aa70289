"""How habits work: mediation, persistence from week to week, inequality."""

from __future__ import annotations

import numpy as np

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import (
    gini,
    inequality_difference,
    rank_correlation,
    serial_correlation,
    sobel,
)
from understudy.cohorts.findings.habits import Habits, week_to_week


@register("mediation", "Does more time help because it makes work regular?", "labels")
def regularity_mediates_time(cohort: Cohort) -> list[Finding]:
    """Sobel test: log-minutes -> evenness -> outcome."""
    habits = Habits(cohort)
    return [Finding.of("indirect", sobel(habits.log_total, habits.evenness, habits.outcome))]


@register("mediation", "Does an early start help because work goes on?", "labels")
def late_work_mediates_early_work(cohort: Cohort) -> list[Finding]:
    """Sobel test: first half -> second half -> outcome."""
    habits = Habits(cohort)
    first, second = (half.sum(axis=1) for half in habits.halves)
    return [Finding.of("indirect", sobel(first, second, habits.outcome))]


@register("mediation", "Does being active often help because it adds up to more minutes?", "labels")
def time_mediates_activity(cohort: Cohort) -> list[Finding]:
    """Sobel test: share of active weeks -> log-minutes -> outcome, by window."""
    habits = Habits(cohort)
    columns = zip(habits.windows, habits.activity.T, np.log1p(habits.minutes).T, strict=True)
    return [Finding.of(window, sobel(often, long, habits.outcome)) for window, often, long in columns]


@register("persistence", "Does a busy week follow a busy week?", "weeks")
def minutes_persist(cohort: Cohort) -> list[Finding]:
    """Serial correlation of log-minutes between successive weeks, in all and by window."""
    habits = Habits(cohort)
    found = [Finding.of("all windows", serial_correlation(habits.log_weeks))]
    for place, window in enumerate(habits.windows):
        found.append(Finding.of(window, serial_correlation(habits.log_values[:, place])))
    return found


@register("persistence", "Does an active week follow an active week?", "weeks")
def activity_persists(cohort: Cohort) -> list[Finding]:
    """Serial correlation of being active between successive weeks, by window."""
    habits = Habits(cohort)
    active = (habits.values > 0).astype(np.float64)
    return [
        Finding.of(window, serial_correlation(active[:, place]))
        for place, window in enumerate(habits.windows)
    ]


@register("persistence", "Do learners with persistent habits achieve more?", "labels")
def persistence_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the outcome with the autocorrelation of log-minutes and of activity."""
    habits = Habits(cohort)
    active = week_to_week((habits.values > 0).astype(np.float64))
    n_known = np.isfinite(active).sum(axis=1)
    mean = np.where(n_known > 0, np.nansum(active, axis=1) / np.maximum(n_known, 1), np.nan)
    return [
        Finding.of("minutes", rank_correlation(week_to_week(habits.log_weeks), habits.outcome)),
        Finding.of("activity", rank_correlation(mean, habits.outcome)),
    ]


@register("persistence", "Are the busy learners of the first half those of the second?", "learners")
def learners_keep_their_place(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of log-minutes in both halves of the term, by window."""
    habits = Habits(cohort)
    first, second = habits.halves
    columns = zip(habits.windows, first.T, second.T, strict=True)
    return [Finding.of(window, rank_correlation(early, late)) for window, early, late in columns]


@register("inequality", "Is work shared out less evenly among low achievers than among high ones?", "labels")
def inequality_by_group(cohort: Cohort) -> list[Finding]:
    """Gini coefficient of minutes between learners, highest against lowest label, jackknife errors."""
    habits = Habits(cohort)
    test = inequality_difference(habits.total[habits.high], habits.total[habits.low])
    return [Finding.of("minutes", test)]


@register("inequality", "Do learners who concentrate their work on few weeks achieve less?", "labels")
def concentration_and_outcome(cohort: Cohort) -> list[Finding]:
    """Spearman's rho of the outcome and the Gini coefficient of a learner's weeks, by window."""
    habits = Habits(cohort)
    found = []
    for place, window in enumerate(habits.windows):
        weeks = habits.values[:, place]
        unequal = [gini(row) if row.any() else np.nan for row in weeks]
        found.append(Finding.of(window, rank_correlation(unequal, habits.outcome)))
    return found
