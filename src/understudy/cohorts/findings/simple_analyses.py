"""Group differences: the highest label against the lowest, and labels next to each other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import (
    NOTHING,
    Evidence,
    mean_away_from_zero,
    mean_difference,
    mean_differences,
    rank_correlation,
    rank_difference,
    rank_differences,
    share_difference,
    spread_difference,
)
from understudy.cohorts.findings.habits import (
    Habits,
    entropy,
    middle_dip,
    rise_before_exam,
    row_correlations,
    slopes,
    slow_start,
    without_rhythm,
)

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


def _in_all(habits: Habits, change: Callable[[Floats], Floats]) -> list[Finding]:
    """t test of a change of log-minutes over the term, in all and by window."""
    found = [Finding.of("all windows", mean_away_from_zero(change(habits.log_weeks)))]
    by_window = change(habits.log_values)
    for place, window in enumerate(habits.windows):
        found.append(Finding.of(window, mean_away_from_zero(by_window[:, place])))
    return found


def _by_group(habits: Habits, change: Callable[[Floats], Floats]) -> list[Finding]:
    """Welch's t test of a change, highest against lowest label, in all and by window."""
    overall, by_window = change(habits.log_weeks), change(habits.log_values)
    found = [Finding.of("all windows", mean_difference(overall[habits.high], overall[habits.low]))]
    for place, window in enumerate(habits.windows):
        column = by_window[:, place]
        found.append(Finding.of(window, mean_difference(column[habits.high], column[habits.low])))
    return found


@register("trend", "Does work increase or fade over the term?", "weeks")
def weekly_slope(cohort: Cohort) -> list[Finding]:
    """t test of learners' weekly slopes of log-minutes, in all and by window."""
    return _in_all(Habits(cohort), slopes)


@register("trend", "Do high and low achievers drift apart over the term?", "labels")
def weekly_slope_by_group(cohort: Cohort) -> list[Finding]:
    """Welch's t test of weekly slopes, highest against lowest label."""
    return _by_group(Habits(cohort), slopes)


@register("trend", "Is there a rise before the exam?", "weeks")
def exam_rise(cohort: Cohort) -> list[Finding]:
    """t test of the last three weeks less those before."""
    return _in_all(Habits(cohort), rise_before_exam)


@register("trend", "Do high achievers rise more before the exam?", "labels")
def exam_rise_by_group(cohort: Cohort) -> list[Finding]:
    """Welch's t test of the rise before the exam, highest against lowest label."""
    return _by_group(Habits(cohort), rise_before_exam)


@register("trend", "Is there a dip in the middle of the term?", "weeks")
def holiday_dip(cohort: Cohort) -> list[Finding]:
    """t test of the middle week less its four neighbours."""
    return _in_all(Habits(cohort), middle_dip)


@register("trend", "Who keeps working through the middle of the term?", "labels")
def holiday_dip_by_group(cohort: Cohort) -> list[Finding]:
    """Welch's t test of the dip in the middle of the term, highest against lowest label."""
    return _by_group(Habits(cohort), middle_dip)[:1]


@register("trend", "Is there a slow start?", "weeks")
def start_of_term(cohort: Cohort) -> list[Finding]:
    """t test of the first two weeks less those after."""
    return _in_all(Habits(cohort), slow_start)[:1]


@register("trend", "Do learners share a weekly rhythm?", "weeks")
def common_rhythm(cohort: Cohort) -> list[Finding]:
    """Repeated-measures analysis of variance of log-minutes over the weeks; without direction."""
    return [Finding.of("weeks", _rhythm(Habits(cohort).log_weeks), directed=False)]


def _rhythm(weeks: Floats) -> Evidence:
    """F test of week effects with learner effects removed; the effect is partial eta squared."""
    n, n_weeks = weeks.shape
    if n < 3:
        return NOTHING
    rhythm = weeks.mean(axis=0) - weeks.mean()
    rest = weeks - weeks.mean(axis=1, keepdims=True) - rhythm
    between, within = n * float((rhythm**2).sum()), float((rest**2).sum())
    if within <= 1e-12 * weeks.size:
        return NOTHING
    freedom = (n_weeks - 1, (n - 1) * (n_weeks - 1))
    f = (between / freedom[0]) / (within / freedom[1])
    return Evidence(between / (between + within), float(fdtrc(*freedom, f)))
