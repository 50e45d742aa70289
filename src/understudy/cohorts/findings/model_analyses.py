"""Causal discovery: a small DirectLiNGAM, and what one week says about the next."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.bank import Finding, register
from understudy.cohorts.findings.evidence import NOTHING, Evidence, mean_away_from_zero
from understudy.cohorts.findings.habits import Habits, row_correlations, without_rhythm

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
