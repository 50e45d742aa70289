"""Group differences: the highest label against the lowest, and labels next to each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import (
    mean_difference,
    mean_differences,
    rank_difference,
    rank_differences,
    share_difference,
    spread_difference,
)
from understudy.cohorts.findings.habits import Habits

Floats = NDArray[np.float64]


@register("group difference", "Do the highest achievers spend more minutes than the lowest?", "labels")
def minutes_by_group(cohort: Cohort) -> list[Finding]:
    """Mann-Whitney test of mean minutes a week, highest against lowest label."""
    habits = Habits(cohort)
    columns = {"all windows": habits.total, **dict(zip(habits.windows, habits.minutes.T, strict=True))}
    return [
        Finding.of(name, rank_difference(column[habits.high], column[habits.low]))
        for name, column in columns.items()
    ]


@register("group difference", "Are the highest achievers active in more weeks than the lowest?", "labels")
def activity_by_group(cohort: Cohort) -> list[Finding]:
    """Welch's t test of the share of active weeks, highest against lowest label, by window."""
    habits = Habits(cohort)
    return [
        Finding.of(window, mean_difference(column[habits.high], column[habits.low]))
        for window, column in zip(habits.windows, habits.activity.T, strict=True)
    ]


@register("group difference", "Do the lowest achievers have more weeks without any work?", "labels")
def idle_weeks_by_group(cohort: Cohort) -> list[Finding]:
    """Mann-Whitney test of the share of idle weeks, highest against lowest label."""
    habits = Habits(cohort)
    idle = 1.0 - habits.weeks_active
    return [Finding.of("idle weeks", rank_difference(idle[habits.high], idle[habits.low]))]


@register("group difference", "Do the highest achievers work longer when they work?", "labels")
def intensity_by_group(cohort: Cohort) -> list[Finding]:
    """Welch's t test of mean log-minutes of active weeks, highest against lowest label, by window."""
    habits = Habits(cohort)
    return [
        Finding.of(window, mean_difference(column[habits.high], column[habits.low]))
        for window, column in zip(habits.windows, habits.intensity.T, strict=True)
    ]


@register("group difference", "Do the weeks of the highest achievers vary less?", "labels")
def variability_by_group(cohort: Cohort) -> list[Finding]:
    """Welch's t test of the coefficient of variation over the weeks, highest against lowest label."""
    habits = Habits(cohort)
    test = mean_difference(habits.variation[habits.high], habits.variation[habits.low])
    return [Finding.of("variation", test)]


@register("group difference", "Are low achievers more different from each other than high ones?", "labels")
def spread_by_group(cohort: Cohort) -> list[Finding]:
    """Brown-Forsythe test of the spread of log-minutes between learners, highest against lowest label."""
    habits = Habits(cohort)
    test = spread_difference(habits.log_total[habits.high], habits.log_total[habits.low])
    return [Finding.of("log minutes", test)]


@register("group difference", "Do high achievers gain more from the first half to the second?", "labels")
def halves_by_group(cohort: Cohort) -> list[Finding]:
    """Welch's t test of the change between halves of the term, highest against lowest label, by window."""
    habits = Habits(cohort)
    first, second = habits.halves
    return [
        Finding.of(window, mean_difference(change[habits.high], change[habits.low]))
        for window, change in zip(habits.windows, (second - first).T, strict=True)
    ]


@register("group difference", "Do the groups differ at all in minutes?", "labels")
def minutes_across_groups(cohort: Cohort) -> list[Finding]:
    """Kruskal-Wallis test of mean minutes over all labels, by window; without direction."""
    habits = Habits(cohort)
    return [
        Finding.of(window, rank_differences(column, habits.outcome), directed=False)
        for window, column in zip(habits.windows, habits.minutes.T, strict=True)
    ]


@register("group difference", "Do the groups differ at all in activity and regularity?", "labels")
def habits_across_groups(cohort: Cohort) -> list[Finding]:
    """Analysis of variance over all labels of active weeks, log-minutes and evenness; without direction."""
    habits = Habits(cohort)
    columns = {
        "active weeks": habits.activity.mean(axis=1),
        "log minutes": habits.log_total,
        "evenness": habits.evenness,
    }
    return [
        Finding.of(name, mean_differences(column, habits.outcome), directed=False)
        for name, column in columns.items()
    ]


@register("group difference", "Does each group work more than the one below it?", "labels")
def neighbouring_groups(cohort: Cohort) -> list[Finding]:
    """Mann-Whitney test of mean minutes a week between labels next to each other."""
    habits = Habits(cohort)
    return [
        Finding.of(
            f"{cohort.schema.labels[upper]} and {cohort.schema.labels[lower]}",
            rank_difference(habits.total[cohort.label == upper], habits.total[cohort.label == lower]),
        )
        for lower, upper in pairwise(range(cohort.schema.n_labels))
    ]


@register("group difference", "Is the busier half of the class found among the high achievers?", "labels")
def busy_learners_by_group(cohort: Cohort) -> list[Finding]:
    """Fisher's exact test of being above the median minutes, highest against lowest label."""
    habits = Habits(cohort)
    busy = habits.total > (np.median(habits.total) if len(habits.total) else 0.0)
    return [Finding.of("above the median", share_difference(busy[habits.high], busy[habits.low]))]
