"""Causal discovery: a small DirectLiNGAM, and what one week says about the next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import (
    NOTHING,
    Evidence,
    clusters,
    gini,
    inequality_difference,
    logistic_regression,
    mean_away_from_zero,
    mean_difference,
    ordinal_regression,
    partial_rank_correlation,
    rank_correlation,
    rank_difference,
    regression,
    serial_correlation,
    sobel,
)
from understudy.cohorts.findings.habits import Habits, row_correlations, week_to_week, without_rhythm

Floats = NDArray[np.float64]

N_RESAMPLES = 100
# Resamples must not change from run to run, nor between the cohorts that are compared.
_SEED = 20_110


@register("causal discovery", "Which windows cause achievement, and does achievement cause habits?", "labels")
def causes_of_outcome(cohort: Cohort) -> list[Finding]:
    """DirectLiNGAM (Shimizu et al. 2011) on log-minutes of all windows and the outcome.

    The coefficient of each window in the outcome's equation and of the outcome in each window's; 0
    where the causal order says otherwise. The p-value is that of 99 resamples of the learners:
    twice the share on the other side of 0, zeros on both.
    """
    habits = Habits(cohort)
    names = [*(f"{window} on outcome" for window in habits.windows)]
    names += [f"outcome on {window}" for window in habits.windows]
    columns = np.column_stack([np.log1p(habits.minutes), habits.outcome])
    n, k = columns.shape
    if n < 2 * k + 4:
        return [Finding.of(name, NOTHING) for name in names]
    place = np.random.default_rng(_SEED).integers(n, size=(N_RESAMPLES, n))
    place[0] = np.arange(n)
    effects = direct_lingam(columns[place])
    tests = [*effects[:, -1, :-1].T, *effects[:, :-1, -1].T]
    return [Finding.of(name, _resampled(values)) for name, values in zip(names, tests, strict=True)]


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


@register(
    "causal discovery", "Does much work in one window lead to more or less in another a week later?", "weeks"
)
def one_week_leads_to_next(cohort: Cohort) -> list[Finding]:
    """t test of within-learner correlations of a window with another a week later, rhythm removed."""
    habits = Habits(cohort)
    series = without_rhythm(habits.log_values)
    varies = (np.ptp(habits.values[:, :, :-1], axis=2) > 0) & (np.ptp(habits.values[:, :, 1:], axis=2) > 0)
    found = []
    for i, j in permutations(range(len(habits.windows)), 2):
        both = varies[:, i] & varies[:, j]
        test = mean_away_from_zero(row_correlations(series[both, i, :-1], series[both, j, 1:]))
        found.append(Finding.of(f"{habits.windows[i]} to {habits.windows[j]}", test))
    return found


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
