"""Clusters: profiles of learners found without the outcome, then related to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import (
    clusters,
    mean_difference,
    rank_correlation,
    rank_difference,
)
from understudy.cohorts.findings.habits import Habits

Floats = NDArray[np.float64]


def _ordered_by(place: NDArray[np.intp], amount: Floats) -> NDArray[np.intp]:
    """Clusters numbered by their mean amount, so that a direction has a meaning."""
    found = np.unique(place)
    means = [np.nanmean(amount[place == one]) for one in found]
    rank = np.empty(place.max(initial=0) + 1, dtype=np.intp)
    rank[found[np.argsort(means, kind="stable")]] = np.arange(len(found))
    return rank[place]


@register("cluster", "Do busier profiles of learners achieve more?", "labels")
def amount_profiles(cohort: Cohort) -> list[Finding]:
    """Three clusters by log-minutes in each window, ordered by total minutes: rho with the outcome."""
    habits = Habits(cohort)
    place = _ordered_by(clusters(np.log1p(habits.minutes), 3), habits.total)
    return [Finding.of("busier profile", rank_correlation(place, habits.outcome))]


@register("cluster", "Do profiles that differ in time of day differ in achievement?", "labels")
def time_profiles(cohort: Cohort) -> list[Finding]:
    """Two clusters by shares of the windows, the later against the earlier one: Mann-Whitney test."""
    habits = Habits(cohort)
    worked = habits.total > 0
    place = _ordered_by(clusters(habits.share[worked], 2), habits.mean_hour[worked])
    outcome = habits.outcome[worked]
    return [Finding.of("later profile", rank_difference(outcome[place == 1], outcome[place == 0]))]


@register("cluster", "Do early, steady and late workers differ in achievement?", "labels")
def pace_profiles(cohort: Cohort) -> list[Finding]:
    """Three clusters by log-minutes in thirds of the term around the learner's mean, ordered by lateness."""
    habits = Habits(cohort)
    parts = np.column_stack([habits.part(0, 1 / 3), habits.part(1 / 3, 2 / 3), habits.part(2 / 3, 1)])
    pace = parts - parts.mean(axis=1, keepdims=True)
    place = _ordered_by(clusters(pace, 3), pace[:, 2] - pace[:, 0])
    return [Finding.of("later pace", rank_correlation(place, habits.outcome))]


@register("cluster", "Do active and inactive profiles differ in achievement?", "labels")
def activity_profiles(cohort: Cohort) -> list[Finding]:
    """Two clusters by the share of active weeks in each window, the more active one: Welch's t test."""
    habits = Habits(cohort)
    place = _ordered_by(clusters(habits.activity, 2), habits.activity.mean(axis=1))
    test = mean_difference(habits.outcome[place == 1], habits.outcome[place == 0])
    return [Finding.of("more active profile", test)]


@register("cluster", "Is the main dimension of habits related to achievement?", "labels")
def main_component(cohort: Cohort) -> list[Finding]:
    """First principal component of activity and log-minutes of all windows: rho with the outcome.

    Its sign is chosen so that more minutes in all windows count as positive.
    """
    habits = Habits(cohort)
    columns = np.column_stack([np.log1p(habits.minutes), habits.activity])
    spread = columns.std(axis=0) if len(columns) else np.zeros(columns.shape[1])
    z = (columns - columns.mean(axis=0))[:, spread > 0] / spread[spread > 0] if len(columns) else columns
    if not z.size:
        return [Finding.of("component", rank_correlation([], []))]
    score = z @ np.linalg.svd(z, full_matrices=False)[2][0]
    sign = np.sign((score - score.mean()) @ (habits.log_total - habits.log_total.mean())) or 1.0
    return [Finding.of("component", rank_correlation(sign * score, habits.outcome))]
