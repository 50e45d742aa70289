"""Regressions: what goes with the outcome when other habits are held fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import (
    Evidence,
    logistic_regression,
    ordinal_regression,
    partial_rank_correlation,
    regression,
)
from understudy.cohorts.findings.habits import Habits

Floats = NDArray[np.float64]


def _named(names: Sequence[str], tests: Sequence[Evidence]) -> list[Finding]:
    return [Finding.of(name, test) for name, test in zip(names, tests, strict=True)]


@register("regression", "Which windows explain achievement when the others are held fixed?", "labels")
def outcome_on_windows(cohort: Cohort) -> list[Finding]:
    """Least squares of the outcome on log-minutes of all windows."""
    habits = Habits(cohort)
    return _named(habits.windows, regression(np.log1p(habits.minutes), habits.outcome))


@register("regression", "Which windows move a learner to a higher group?", "labels")
def ordered_outcome_on_activity(cohort: Cohort) -> list[Finding]:
    """Proportional-odds regression of the outcome on the share of active weeks of all windows."""
    habits = Habits(cohort)
    return _named(habits.windows, ordinal_regression(habits.activity, habits.outcome))


@register("regression", "What distinguishes the highest achievers from all others?", "labels")
def highest_on_windows(cohort: Cohort) -> list[Finding]:
    """Logistic regression of being in the highest group on log-minutes of all windows."""
    habits = Habits(cohort)
    return _named(habits.windows, logistic_regression(np.log1p(habits.minutes), habits.high))


@register("regression", "What distinguishes the lowest achievers from all others?", "labels")
def lowest_on_windows(cohort: Cohort) -> list[Finding]:
    """Logistic regression of being in the lowest group on log-minutes of all windows."""
    habits = Habits(cohort)
    return _named(habits.windows, logistic_regression(np.log1p(habits.minutes), habits.low))


@register("regression", "Does regularity matter beyond the amount of work?", "labels")
def outcome_on_total_and_regularity(cohort: Cohort) -> list[Finding]:
    """Least squares of the outcome on log-minutes and evenness over the weeks."""
    habits = Habits(cohort)
    predictors = np.column_stack([habits.log_total, habits.evenness])
    return _named(["log minutes", "evenness"], regression(predictors, habits.outcome))


@register("regression", "Is it the number of active weeks or the minutes in them?", "labels")
def outcome_on_activity_and_intensity(cohort: Cohort) -> list[Finding]:
    """Least squares of the outcome on the share of active weeks and the minutes in them."""
    habits = Habits(cohort)
    n_active = (habits.values > 0).sum(axis=(1, 2))
    long = np.where(n_active > 0, habits.log_values.sum(axis=(1, 2)) / np.maximum(n_active, 1), np.nan)
    predictors = np.column_stack([habits.activity.mean(axis=1), long])
    return _named(["active weeks", "minutes in them"], regression(predictors, habits.outcome))


@register("regression", "Does the time of day matter for learners with the same amount of work?", "labels")
def share_given_total(cohort: Cohort) -> list[Finding]:
    """Partial rank correlation of each window's share with the outcome, given total minutes."""
    habits = Habits(cohort)
    return [
        Finding.of(window, partial_rank_correlation(column, habits.outcome, habits.total))
        for window, column in zip(habits.windows, habits.share.T, strict=True)
    ]


@register("regression", "Is there too much of a good thing?", "labels")
def curvature_of_total(cohort: Cohort) -> list[Finding]:
    """Least squares of the outcome on log-minutes and their square: the square's coefficient."""
    habits = Habits(cohort)
    centred = habits.log_total - (habits.log_total.mean() if len(habits.log_total) else 0.0)
    return [Finding.of("square", regression(np.column_stack([centred, centred**2]), habits.outcome)[1])]


@register("regression", "Does work pay more for regular learners?", "labels")
def total_times_regularity(cohort: Cohort) -> list[Finding]:
    """Least squares of the outcome on log-minutes, evenness and their product: the product's coefficient."""
    habits = Habits(cohort)
    total, even = habits.log_total, habits.evenness
    present = np.isfinite(even)
    total, even = total[present], even[present]
    if not len(total):
        return [Finding.of("product", Evidence(0.0, 1.0))]
    total, even = total - total.mean(), even - even.mean()
    tests = regression(np.column_stack([total, even, total * even]), habits.outcome[present])
    return [Finding.of("product", tests[2])]


@register("regression", "Does early work matter beyond late work?", "labels")
def outcome_on_halves(cohort: Cohort) -> list[Finding]:
    """Least squares of the outcome on mean log-minutes of the first and of the second half."""
    habits = Habits(cohort)
    predictors = np.column_stack([half.sum(axis=1) for half in habits.halves])
    return _named(["first half", "second half"], regression(predictors, habits.outcome))
