"""Analyses that are a test, a habit and a question: correlations, groups, times of day, trends, persistence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.findings.bank import Declared, Test, declare
from understudy.cohorts.findings.evidence import (
    common_rhythm,
    gini,
    inequality_difference,
    mean_away_from_zero,
    mean_difference,
    mean_differences,
    rank_correlation,
    rank_difference,
    rank_differences,
    serial_correlation,
    share_difference,
    spread_difference,
)
from understudy.cohorts.findings.habits import (
    Habits,
    above_median,
    entropy,
    middle_dip,
    rise_before_exam,
    row_correlations,
    slopes,
    slow_start,
    week_to_week,
)

Floats = NDArray[np.float64]
Columns = Mapping[str, Any]
Samples = Mapping[str, tuple[Any, ...]]


def with_outcome(habits: Habits, columns: Columns) -> Samples:
    """Design: each habit beside the outcome."""
    return {name: (column, habits.outcome) for name, column in columns.items()}


def by_group(habits: Habits, columns: Columns) -> Samples:
    """Design: each habit of the highest label against that of the lowest."""
    return {name: (column[habits.high], column[habits.low]) for name, column in columns.items()}


def alone(habits: Habits, columns: Columns) -> Samples:
    """Design: each habit by itself."""
    return {name: (column,) for name, column in columns.items()}


RHO = Test(rank_correlation, with_outcome)
RHO_OF_PAIRS = Test(rank_correlation)
WELCH = Test(mean_difference, by_group)
WELCH_OF_PAIRS = Test(mean_difference)
MANN_WHITNEY = Test(rank_difference, by_group)
MANN_WHITNEY_OF_PAIRS = Test(rank_difference)
FISHER = Test(share_difference, by_group)
T_TEST = Test(mean_away_from_zero, alone)
SERIAL = Test(serial_correlation, alone)


def windows(habits: Habits, by_window: Floats) -> Columns:
    """A column for each window, from learners by windows."""
    return dict(zip(habits.windows, np.moveaxis(by_window, 1, 0), strict=True))


def pairs(habits: Habits, first: Floats, second: Floats) -> Samples:
    """Two columns for each window."""
    return dict(zip(habits.windows, zip(first.T, second.T, strict=True), strict=True))


def in_all(habits: Habits, overall: Floats, by_window: Floats) -> Columns:
    """A column of all windows together, and one for each."""
    return {"all windows": overall, **windows(habits, by_window)}


def changes(change: Callable[[Floats], Floats]) -> Callable[[Habits], Columns]:
    """A change of log-minutes over the term, in all and by window."""
    return lambda habits: in_all(habits, change(habits.log_weeks), change(habits.log_values))


def _neighbours(habits: Habits) -> Samples:
    return {
        f"{habits.labels[upper]} and {habits.labels[lower]}": tuple(
            habits.total[habits.label == label] for label in (upper, lower)
        )
        for lower, upper in pairwise(range(len(habits.labels)))
    }


def _within_learners(habits: Habits) -> Columns:
    series, varies = habits.without_rhythm, np.ptp(habits.values, axis=2) > 0
    return {
        f"{habits.windows[i]} and {habits.windows[j]}": row_correlations(series[both, i], series[both, j])
        for i, j in combinations(range(len(habits.windows)), 2)
        for both in [varies[:, i] & varies[:, j]]
    }


def _often_late(habits: Habits) -> Samples:
    often = above_median(habits.activity[:, int(np.argmax(habits.hours))])
    return {"often against rarely": (habits.outcome[often], habits.outcome[~often])}


def _persistence(habits: Habits) -> Columns:
    active = week_to_week(habits.active)
    n_known = np.isfinite(active).sum(axis=1)
    mean = np.where(n_known > 0, np.nansum(active, axis=1) / np.maximum(n_known, 1), np.nan)
    return {"minutes": week_to_week(habits.log_weeks), "activity": mean}


# fmt: off
declare(
    "correlation",
    Declared("minutes_and_outcome", RHO, lambda h: in_all(h, h.total, h.minutes),
             "Do learners with more minutes, in which window, achieve more?",
             "Spearman's rho of mean minutes per week and the outcome, in all and by window",
             label_effects=("active", "l")),
    Declared("activity_and_outcome", RHO, lambda h: {"any window": h.weeks_active, **windows(h, h.activity)},
             "Do learners who are active in more weeks achieve more?",
             "Spearman's rho of the share of active weeks and the outcome, in all and by window",
             label_effects=("active",)),
    Declared("intensity_and_outcome", RHO, lambda h: windows(h, h.intensity),
             "Do learners who work longer when they work achieve more?",
             "Spearman's rho of mean log-minutes of active weeks and the outcome, by window", label_effects=("l",)),
    Declared("regularity_and_outcome", RHO, lambda h: {"evenness": h.evenness, "variation": h.variation},
             "Do regular learners achieve more?",
             "Spearman's rho of the outcome with evenness over the weeks and with their variation",
             rests_on=("habits", "spread")),
    Declared("breaks_and_outcome", RHO, lambda h: {"longest break": h.longest_break},
             "Do longer breaks go with lower achievement?",
             "Spearman's rho of the longest run of idle weeks and the outcome", rests_on=("habits", "persistence")),
    Declared("peak_and_outcome", RHO, lambda h: in_all(h, h.by_week.max(axis=1), h.values.max(axis=2)),
             "Does a single long week go with achievement?",
             "Spearman's rho of the largest week and the outcome, in all and by window",
             rests_on=("habits", "sketch"), label_effects=("active", "l")),
    Declared("parts_of_term_and_outcome", RHO,
             lambda h: dict(zip(("first third", "second third", "last third"), h.thirds.T, strict=True)),
             "Which part of the term goes most with achievement?",
             "Spearman's rho of mean log-minutes in each third of the term and the outcome",
             rests_on=("habits", "rhythm")),
    Declared("between_windows", RHO_OF_PAIRS,
             lambda h: {f"{a} and {b}": (x, y)
                        for (a, x), (b, y) in combinations(zip(h.windows, h.minutes.T, strict=True), 2)},
             "Do learners who work much in one window also work much in another?",
             "Spearman's rho of mean minutes in every two windows", null="learners"),
    Declared("activity_and_intensity", RHO_OF_PAIRS, lambda h: pairs(h, h.activity, h.intensity),
             "Do learners who are active more often also work longer each time?",
             "Spearman's rho of the share of active weeks and mean log-minutes of active weeks, by window",
             null="learners"),
    Declared("windows_within_learners", T_TEST, _within_learners,
             "In weeks with more of one window, is there less of another?",
             "Mean within-learner correlation of every two windows over the weeks, rhythm removed (t test)",
             null="weeks", rests_on=("persistence",)),
)

declare(
    "group difference",
    Declared("minutes_by_group", MANN_WHITNEY, lambda h: in_all(h, h.total, h.minutes),
             "Do the highest achievers spend more minutes than the lowest?",
             "Mann-Whitney test of mean minutes per week, highest against lowest label", label_effects=("active", "l")),
    Declared("activity_by_group", WELCH, lambda h: windows(h, h.activity),
             "Are the highest achievers active in more weeks than the lowest?",
             "Welch's t test of the share of active weeks, highest against lowest label, by window",
             label_effects=("active",)),
    Declared("idle_weeks_by_group", MANN_WHITNEY, lambda h: {"idle weeks": 1.0 - h.weeks_active},
             "Do the lowest achievers have more weeks without any work?",
             "Mann-Whitney test of the share of idle weeks, highest against lowest label"),
    Declared("intensity_by_group", WELCH, lambda h: windows(h, h.intensity),
             "Do the highest achievers work longer when they work?",
             "Welch's t test of mean log-minutes of active weeks, highest against lowest label, by window",
             label_effects=("l",)),
    Declared("variability_by_group", WELCH, lambda h: {"variation": h.variation},
             "Do the weeks of the highest achievers vary less?",
             "Welch's t test of the coefficient of variation over the weeks, highest against lowest label",
             rests_on=("habits", "spread")),
    Declared("spread_by_group", Test(spread_difference, by_group), lambda h: {"log minutes": h.log_total},
             "Are low achievers more different from each other than high ones?",
             "Brown-Forsythe test of the spread of log-minutes between learners, highest against lowest label"),
    Declared("halves_by_group", WELCH, lambda h: windows(h, h.halves[1] - h.halves[0]),
             "Do high achievers gain more from the first half to the second?",
             "Welch's t test of the change between halves of the term, highest against lowest label, by window",
             rests_on=("habits", "rhythm")),
    Declared("minutes_across_groups", Test(rank_differences, with_outcome, directed=False),
             lambda h: windows(h, h.minutes),
             "Do the groups differ at all in minutes?",
             "Kruskal-Wallis test of mean minutes over all labels, by window; without direction"),
    Declared("habits_across_groups", Test(mean_differences, with_outcome, directed=False),
             lambda h: {"active weeks": h.activity.mean(axis=1), "log minutes": h.log_total, "evenness": h.evenness},
             "Do the groups differ at all in activity and regularity?",
             "Analysis of variance over all labels of active weeks, log-minutes and evenness; without direction"),
    Declared("neighbouring_groups", MANN_WHITNEY_OF_PAIRS, _neighbours,
             "Does each group work more than the one below it?",
             "Mann-Whitney test of mean minutes per week between labels next to each other"),
    Declared("busy_learners_by_group", FISHER, lambda h: {"above the median": above_median(h.total)},
             "Is the busier half of the class found among the high achievers?",
             "Fisher's exact test of being above the median minutes, highest against lowest label"),
)

declare(
    "time of day",
    Declared("share_and_outcome", RHO, lambda h: windows(h, h.share),
             "Do learners who do a larger share of their work in a window achieve more?",
             "Spearman's rho of each window's share of a learner's minutes and the outcome",
             rests_on=("habits", "levels")),
    Declared("chronotype_and_outcome", RHO, lambda h: {"mean hour": h.mean_hour},
             "Do late or early workers achieve more?",
             "Spearman's rho of the mean hour of work and the outcome", rests_on=("habits", "levels")),
    Declared("preferred_windows", T_TEST,
             lambda h: windows(h, h.log_minutes - h.log_minutes.mean(axis=1, keepdims=True)),
             "Which windows do learners prefer?",
             "Paired t test of each window's log-minutes against the mean of all windows",
             null="windows", rests_on=("levels",)),
    Declared("favourite_window_by_group", FISHER,
             lambda h: {window: h.favourite == place for place, window in enumerate(h.windows)},
             "Do high achievers have another favourite window than low ones?",
             "Fisher's exact test of having most minutes in a window, highest against lowest label",
             rests_on=("habits", "levels")),
    Declared("spread_over_day_and_outcome", RHO, lambda h: {"entropy": entropy(h.minutes)},
             "Do learners who spread their work over the day achieve more?",
             "Spearman's rho of the entropy of a learner's minutes over the windows and the outcome",
             rests_on=("habits", "levels")),
    Declared("shift_of_hours", T_TEST, lambda h: {"second half": h.shift_of_hours},
             "Do learners move to later hours as the term goes on?",
             "Paired t test of the mean hour, second half of the term less the first",
             null="weeks", rests_on=("levels", "rhythm_by_feature")),
    Declared("shift_of_hours_by_group", WELCH, lambda h: {"second half": h.shift_of_hours},
             "Do low achievers move to later hours more than high ones?",
             "Welch's t test of the shift of the mean hour between halves, highest against lowest label",
             rests_on=("habits", "levels", "rhythm_by_feature")),
    Declared("latest_window_and_outcome", MANN_WHITNEY_OF_PAIRS, _often_late,
             "Do those who ever work in the latest window achieve less?",
             "Mann-Whitney test of the outcome, learners with more activity in the latest window than the median",
             rests_on=("habits", "levels")),
)

declare(
    "trend",
    Declared("weekly_slope", T_TEST, changes(slopes),
             "Does work increase or fade over the term?",
             "t test of learners' weekly slopes of log-minutes, in all and by window",
             null="weeks", rests_on=("rhythm",)),
    Declared("weekly_slope_by_group", WELCH, changes(slopes),
             "Do high and low achievers drift apart over the term?",
             "Welch's t test of weekly slopes, highest against lowest label", rests_on=("habits", "rhythm")),
    Declared("exam_rise", T_TEST, changes(rise_before_exam),
             "Is there a rise before the exam?",
             "t test of the last three weeks less those before", null="weeks", rests_on=("rhythm",)),
    Declared("exam_rise_by_group", WELCH, changes(rise_before_exam),
             "Do high achievers rise more before the exam?",
             "Welch's t test of the rise before the exam, highest against lowest label",
             rests_on=("habits", "rhythm")),
    Declared("holiday_dip", T_TEST, changes(middle_dip),
             "Is there a dip in the middle of the term?",
             "t test of the middle week less its four neighbours", null="weeks", rests_on=("rhythm",)),
    Declared("holiday_dip_by_group", WELCH, lambda h: {"all windows": middle_dip(h.log_weeks)},
             "Who keeps working through the middle of the term?",
             "Welch's t test of the dip in the middle of the term, highest against lowest label",
             rests_on=("habits", "rhythm")),
    Declared("start_of_term", T_TEST, lambda h: {"all windows": slow_start(h.log_weeks)},
             "Is there a slow start?",
             "t test of the first two weeks less those after", null="weeks", rests_on=("rhythm",)),
    Declared("common_rhythm", Test(common_rhythm, alone, directed=False), lambda h: {"weeks": h.log_weeks},
             "Do learners share a weekly rhythm?",
             "Repeated-measures analysis of variance of log-minutes over the weeks; without direction",
             null="weeks", rests_on=("rhythm",)),
)

declare(
    "persistence",
    Declared("minutes_persist", SERIAL, lambda h: in_all(h, h.log_weeks, h.log_values),
             "Does a busy week follow a busy week?",
             "Serial correlation of log-minutes between successive weeks, in all and by window",
             null="weeks", rests_on=("persistence",)),
    Declared("activity_persists", SERIAL, lambda h: windows(h, h.active),
             "Does an active week follow an active week?",
             "Serial correlation of being active between successive weeks, by window",
             null="weeks", rests_on=("persistence",)),
    Declared("persistence_and_outcome", RHO, _persistence,
             "Do learners with persistent habits achieve more?",
             "Spearman's rho of the outcome with the autocorrelation of log-minutes and of activity",
             rests_on=("habits", "persistence")),
    Declared("learners_keep_their_place", RHO_OF_PAIRS, lambda h: pairs(h, *h.halves),
             "Are the busy learners of the first half those of the second?",
             "Spearman's rho of log-minutes in both halves of the term, by window",
             null="learners", rests_on=("persistence",)),
)

declare(
    "inequality",
    Declared("inequality_by_group", Test(inequality_difference, by_group), lambda h: {"minutes": h.total},
             "Is work shared out less evenly among low achievers than among high ones?",
             "Gini coefficient of minutes between learners, highest against lowest label, jackknife errors"),
    Declared("concentration_and_outcome", RHO,
             lambda h: windows(h, np.where(h.values.any(axis=2), gini(h.values), np.nan)),
             "Do learners who concentrate their work on few weeks achieve less?",
             "Spearman's rho of the outcome and the Gini coefficient of a learner's weeks, by window",
             rests_on=("habits", "spread")),
)
# fmt: on
