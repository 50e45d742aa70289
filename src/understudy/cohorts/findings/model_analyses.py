"""Analyses that fit a model: regressions, mediation, profiles of learners, and what causes what."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.findings.bank import Declared, Test, declare
from understudy.cohorts.findings.evidence import (
    NO_EVIDENCE,
    Evidence,
    clusters,
    logistic_regression,
    ordinal_regression,
    partial_rank_correlation,
    regression,
    sobel,
)
from understudy.cohorts.findings.habits import Habits, row_correlations
from understudy.cohorts.findings.simple_analyses import (
    MANN_WHITNEY_OF_PAIRS,
    RHO,
    RHO_OF_PAIRS,
    T_TEST,
    WELCH_OF_PAIRS,
    Columns,
    Samples,
    pairs,
    windows,
)

Floats = NDArray[np.float64]

LEAST_SQUARES = Test(regression)
ORDINAL = Test(ordinal_regression)
LOGISTIC = Test(logistic_regression)
SOBEL = Test(sobel)

N_RESAMPLES = 100
# Resamples must not change from run to run, nor between the cohorts that are compared.
_SEED = 20_110


def _centred(column: Floats) -> Floats:
    centred: Floats = column - (np.nanmean(column) if np.isfinite(column).any() else 0.0)
    return centred


def _curvature(habits: Habits) -> dict[Any, Any]:
    centred = _centred(habits.log_total)
    return {(None, "square"): (np.column_stack([centred, centred**2]), habits.outcome)}


def _interaction(habits: Habits) -> dict[Any, Any]:
    known = np.isfinite(habits.evenness)
    total, even = _centred(habits.log_total[known]), _centred(habits.evenness[known])
    predictors = np.column_stack([total, even, total * even])
    return {(None, None, "product"): (predictors, habits.outcome[known])}


# fmt: off
declare(
    "regression",
    Declared("outcome_on_windows", LEAST_SQUARES, lambda h: {tuple(h.windows): (h.log_minutes, h.outcome)},
             "Which windows explain achievement when the others are held fixed?",
             "Least squares of the outcome on log-minutes of all windows"),
    Declared("ordered_outcome_on_activity", ORDINAL, lambda h: {tuple(h.windows): (h.activity, h.outcome)},
             "Which windows move a learner to a higher group?",
             "Proportional-odds regression of the outcome on the share of active weeks of all windows"),
    Declared("highest_on_windows", LOGISTIC, lambda h: {tuple(h.windows): (h.log_minutes, h.high)},
             "What distinguishes the highest achievers from all others?",
             "Logistic regression of being in the highest group on log-minutes of all windows"),
    Declared("lowest_on_windows", LOGISTIC, lambda h: {tuple(h.windows): (h.log_minutes, h.low)},
             "What distinguishes the lowest achievers from all others?",
             "Logistic regression of being in the lowest group on log-minutes of all windows"),
    Declared("outcome_on_total_and_regularity", LEAST_SQUARES,
             lambda h: {("log minutes", "evenness"): (np.column_stack([h.log_total, h.evenness]), h.outcome)},
             "Does regularity matter beyond the amount of work?",
             "Least squares of the outcome on log-minutes and evenness over the weeks",
             rests_on=("habits", "spread")),
    Declared("outcome_on_activity_and_intensity", LEAST_SQUARES,
             lambda h: {("active weeks", "minutes in them"): (
                 np.column_stack([h.activity.mean(axis=1), h.intensity_in_all]), h.outcome)},
             "Is it the number of active weeks or the minutes in them?",
             "Least squares of the outcome on the share of active weeks and the minutes in them"),
    Declared("share_given_total", Test(partial_rank_correlation),
             lambda h: {name: (column, h.outcome, h.total) for name, column in windows(h, h.share).items()},
             "Does the time of day matter for learners with the same amount of work?",
             "Partial rank correlation of each window's share with the outcome, given total minutes",
             rests_on=("habits", "levels")),
    Declared("curvature_of_total", LEAST_SQUARES, _curvature,
             "Is there too much of a good thing?",
             "Least squares of the outcome on log-minutes and their square: the square's coefficient"),
    Declared("total_times_regularity", LEAST_SQUARES, _interaction,
             "Does work pay more for regular learners?",
             "Least squares of the outcome on log-minutes, evenness and their product: the product's coefficient",
             rests_on=("habits", "spread")),
    Declared("outcome_on_halves", LEAST_SQUARES,
             lambda h: {("first half", "second half"): (
                 np.column_stack([half.sum(axis=1) for half in h.halves]), h.outcome)},
             "Does early work matter beyond late work?",
             "Least squares of the outcome on mean log-minutes of the first and of the second half",
             rests_on=("habits", "rhythm")),
)

declare(
    "mediation",
    Declared("regularity_mediates_time", SOBEL, lambda h: {"indirect": (h.log_total, h.evenness, h.outcome)},
             "Does more time help because it makes work regular?",
             "Sobel test: log-minutes -> evenness -> outcome", rests_on=("habits", "spread")),
    Declared("late_work_mediates_early_work", SOBEL,
             lambda h: {"indirect": (*(half.sum(axis=1) for half in h.halves), h.outcome)},
             "Does an early start help because work goes on?",
             "Sobel test: first half -> second half -> outcome"),
    Declared("time_mediates_activity", SOBEL,
             lambda h: {window: (*pair, h.outcome) for window, pair in pairs(h, h.activity, h.log_minutes).items()},
             "Does being active often help because it adds up to more minutes?",
             "Sobel test: share of active weeks -> log-minutes -> outcome, by window"),
)
# fmt: on


def _profiles(points: Floats, k: int, amount: Floats) -> NDArray[np.intp]:
    """Clusters of learners, numbered by their mean amount, so that a direction has a meaning."""
    place = clusters(points, k)
    found = np.unique(place)
    means = [np.nanmean(amount[place == cluster]) for cluster in found]
    rank = np.empty(place.max(initial=0) + 1, dtype=np.intp)
    rank[found[np.argsort(means, kind="stable")]] = np.arange(len(found))
    return rank[place]


def _split(outcome: Floats, place: NDArray[np.intp]) -> tuple[Floats, Floats]:
    return outcome[place == 1], outcome[place == 0]


def _time_profiles(habits: Habits) -> Samples:
    worked = habits.total > 0
    place = _profiles(habits.share[worked], 2, habits.mean_hour[worked])
    return {"later profile": _split(habits.outcome[worked], place)}


def _pace_profiles(habits: Habits) -> Columns:
    pace = habits.thirds - habits.thirds.mean(axis=1, keepdims=True)
    return {"later pace": _profiles(pace, 3, pace[:, 2] - pace[:, 0])}


def _activity_profiles(habits: Habits) -> Samples:
    place = _profiles(habits.activity, 2, habits.activity.mean(axis=1))
    return {"more active profile": _split(habits.outcome, place)}


def _main_component(habits: Habits) -> Samples:
    """Its sign is chosen so that more minutes in all windows count as positive."""
    columns = np.column_stack([habits.log_minutes, habits.activity])
    spread = columns.std(axis=0) if len(columns) else np.zeros(columns.shape[1])
    if not (spread > 0).any():
        return {"component": ([], [])}
    z = (columns - columns.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    score = z @ np.linalg.svd(z, full_matrices=False)[2][0]
    sign = np.sign((score - score.mean()) @ _centred(habits.log_total)) or 1.0
    return {"component": (sign * score, habits.outcome)}


# fmt: off
declare(
    "cluster",
    Declared("amount_profiles", RHO, lambda h: {"busier profile": _profiles(h.log_minutes, 3, h.total)},
             "Do busier profiles of learners achieve more?",
             "Three clusters by log-minutes in each window, ordered by total minutes: rho with the outcome"),
    Declared("time_profiles", MANN_WHITNEY_OF_PAIRS, _time_profiles,
             "Do profiles that differ in time of day differ in achievement?",
             "Two clusters by shares of the windows, the later against the earlier one: Mann-Whitney test"),
    Declared("pace_profiles", RHO, _pace_profiles,
             "Do early, steady and late workers differ in achievement?",
             "Three clusters by log-minutes in thirds of the term around the learner's mean, ordered by lateness"),
    Declared("activity_profiles", WELCH_OF_PAIRS, _activity_profiles,
             "Do active and inactive profiles differ in achievement?",
             "Two clusters by the share of active weeks in each window, the more active one: Welch's t test"),
    Declared("main_component", RHO_OF_PAIRS, _main_component,
             "Is the main dimension of habits related to achievement?",
             "First principal component of activity and log-minutes of all windows: rho with the outcome"),
)
# fmt: on


def _causes(columns: Floats) -> list[Evidence]:
    """The coefficients of each column in the last one's equation and of the last in each column's.

    A coefficient is 0 where the causal order excludes it. The p-value is that of 99 resamples of the
    learners: twice the share on the other side of 0, zeros on both.
    """
    n, k = columns.shape
    if n < 2 * k + 4:
        return [NO_EVIDENCE] * (2 * k - 2)
    place = np.random.default_rng(_SEED).integers(n, size=(N_RESAMPLES, n))
    place[0] = np.arange(n)
    effects = direct_lingam(columns[place])
    return [_resampled(values) for values in (*effects[:, -1, :-1].T, *effects[:, :-1, -1].T)]


def _outcome_and_windows(habits: Habits) -> dict[Any, Any]:
    names = (
        *(f"{window} on outcome" for window in habits.windows),
        *(f"outcome on {window}" for window in habits.windows),
    )
    return {names: (np.column_stack([habits.log_minutes, habits.outcome]),)}


def _leads(habits: Habits) -> Columns:
    series, values = habits.without_rhythm, habits.values
    varies = (np.ptp(values[:, :, :-1], axis=2) > 0) & (np.ptp(values[:, :, 1:], axis=2) > 0)
    return {
        f"{habits.windows[i]} to {habits.windows[j]}": row_correlations(
            series[both, i, :-1], series[both, j, 1:]
        )
        for i, j in permutations(range(len(habits.windows)), 2)
        for both in [varies[:, i] & varies[:, j]]
    }


# fmt: off
declare(
    "causal discovery",
    Declared("causes_of_outcome", Test(_causes), _outcome_and_windows,
             "Which windows cause achievement, and does achievement cause habits?",
             "DirectLiNGAM (Shimizu et al. 2011) on log-minutes of all windows and the outcome"),
    Declared("one_week_leads_to_next", T_TEST, _leads,
             "Does much work in one window lead to more or less in another a week later?",
             "t test of within-learner correlations of a window with another a week later, rhythm removed",
             null="weeks", rests_on=("persistence",)),
)
# fmt: on


def _resampled(values: Floats) -> Evidence:
    """The first value is that of the data; the others are resamples."""
    below, above = float((values[1:] <= 0).mean()), float((values[1:] >= 0).mean())
    return Evidence(float(values[0]), min(1.0, 2.0 * min(below, above) + 2.0 / len(values)))


def direct_lingam(samples: Floats) -> Floats:
    """Adjacency matrices (effects x causes, standardised) of many samples: samples x rows x columns.

    In each round the variable that is most independent of its residuals comes first, judged by the
    difference of mutual information of Hyvarinen and Smith (2013), and is regressed out of the others.
    Coefficients are those of least squares on the predecessors.
    """
    n_samples, n, k = samples.shape
    z = _standardised(samples)
    left, names = z, np.broadcast_to(np.arange(k), (n_samples, k))
    rows = np.arange(n_samples)
    order = np.empty((n_samples, k), dtype=np.intp)
    for step in range(k):
        first = _most_exogenous(left)
        order[:, step] = names[rows, first]
        others = np.arange(k - step)[None, :] != first[:, None]
        root = left[rows, :, first]
        left = left.transpose(0, 2, 1)[others].reshape(n_samples, k - step - 1, n).transpose(0, 2, 1)
        names = names[others].reshape(n_samples, k - step - 1)
        slope = np.einsum("sn,snk->sk", root, left) / n
        left = _standardised(left - slope[:, None, :] * root[:, :, None])
    return _coefficients(z, order)


def _most_exogenous(left: Floats) -> NDArray[np.intp]:
    """The place of the variable least in need of the others: samples x rows x variables, standardised."""
    n_samples, n, k = left.shape
    if k == 1:
        return np.zeros(n_samples, dtype=np.intp)
    r = np.einsum("sni,snj->sij", left, left) / n
    scale = np.sqrt(np.maximum(1.0 - r**2, 1e-12))
    own = _entropy(left)
    # rest[i, j]: entropy of what is left of i after j is regressed out.
    rest = np.stack(
        [
            _entropy((left - r[:, None, :, j] * left[:, :, j : j + 1]) / scale[:, None, :, j])
            for j in range(k)
        ],
        axis=2,
    )
    # Positive where i is rather the cause of j.
    towards = (own[:, None, :] + rest) - (own[:, :, None] + rest.transpose(0, 2, 1))
    towards[:, np.arange(k), np.arange(k)] = 0.0
    best: NDArray[np.intp] = np.argmin((np.minimum(0.0, towards) ** 2).sum(axis=2), axis=1)
    return best


def _entropy(x: Floats) -> Floats:
    """Hyvarinen's (1998) maximum-entropy approximation for standardised columns, over the rows."""
    a = np.abs(x)
    # log cosh x without overflow, and x exp(-x^2 / 2), of which the mean is 0 for a symmetric law.
    log_cosh = (a + np.log1p(np.exp(-2.0 * a))).mean(axis=1) - np.log(2.0)
    odd = (x * np.exp(-(x**2) / 2.0)).mean(axis=1)
    entropy: Floats = (1.0 + np.log(2.0 * np.pi)) / 2.0 - 79.047 * (log_cosh - 0.37457) ** 2 - 7.4129 * odd**2
    return entropy


def _coefficients(z: Floats, order: NDArray[np.intp]) -> Floats:
    """Least squares of each variable on those before it in its sample's order."""
    n_samples, n, k = z.shape
    sorted_z = np.take_along_axis(z, order[:, None, :], axis=2)
    gram = np.einsum("sni,snj->sij", sorted_z, sorted_z) / n
    gram += 1e-9 * np.eye(k)
    effects = np.zeros((n_samples, k, k))
    for step in range(1, k):
        slope = np.linalg.solve(gram[:, :step, :step], gram[:, :step, step : step + 1])[:, :, 0]
        for before in range(step):
            effects[np.arange(n_samples), order[:, step], order[:, before]] = slope[:, before]
    return effects


def _standardised(samples: Floats) -> Floats:
    centred = samples - samples.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    scaled: Floats = centred / np.where(spread > 1e-9, spread, 1.0)
    return scaled
