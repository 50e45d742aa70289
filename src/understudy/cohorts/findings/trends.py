"""Trends: how work changes over the term, and for whom."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import NOTHING, Evidence, mean_away_from_zero, mean_difference
from understudy.cohorts.findings.habits import Habits, middle_dip, rise_before_exam, slopes, slow_start

Floats = NDArray[np.float64]


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
