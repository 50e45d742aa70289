"""Marginal maximum likelihood for the Rasch model: abilities are drawn from a normal distribution.

The likelihood of a group of learners with score r on the items answered is

    integral of exp(r t) / product of (1 + exp(t - difficulty_i)) times the density of N(0, sd^2) at t,

times exp(-sum of right items' difficulties) (Bock and Aitkin 1981; Thissen 1982). Its negative
logarithm is convex in the difficulties: the integrand is log-concave in t and them, and
integration over t keeps that (Prekopa). Difficulties refer to an ability of mean zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from understudy.exams.estimators.score_groups import ScoreGroups

Floats = NDArray[np.float64]

# A standard deviation that is estimated stays in here: below, abilities are equal for all purposes.
SMALLEST_SD = 0.01
LARGEST_SD = 20.0
# The prior is integrated up to so many standard deviations; beyond are 1e-23 of it.
_REACH = 10.0
# Nodes whose posterior weight is so far below the highest one, as a logarithm, are left out: 1e-19 of it.
_DEPTH = 44.0


@dataclass(frozen=True)
class Marginal:
    """Difficulties on the scale of log-odds, standard errors, and the spread of abilities.

    An item that all learners (no learner) who answered got right has difficulty -inf (+inf) and
    standard error inf; one that no learner answered has nan. `sd_error` is 0 where sd was given,
    and nan where its estimate is at `SMALLEST_SD` or `LARGEST_SD` or the responses do not bound it.
    """

    difficulty: Floats
    standard_error: Floats
    sd: float
    sd_error: float
    log_likelihood: float
    n_iterations: int


def fit_marginal(
    correct: NDArray[np.int8], *, sd: float | None = 1.0, tolerance: float = 1e-9, max_iterations: int = 100
) -> Marginal:
    """Fit a matrix of learners by items: 1 right, 0 wrong, below 0 not answered; `sd` None estimates it.

    Newton's method with the observed information, until no derivative exceeds `tolerance`
    times the number of learners.
    """
    if sd is not None and not (sd > 0 and math.isfinite(sd)):
        raise ValueError(f"the standard deviation of abilities is above 0, not {sd}")
    groups = ScoreGroups.of(correct)
    right, answered = groups.right_by_item, groups.answered_by_item
    difficulty = np.full(correct.shape[1], np.nan)
    difficulty[(answered > 0) & (right == answered)] = -np.inf
    difficulty[(answered > 0) & (right == 0)] = np.inf
    standard_error = np.abs(difficulty)
    kept = np.flatnonzero((right > 0) & (right < answered))
    if not len(kept):
        return Marginal(difficulty, standard_error, sd if sd is not None else math.nan, math.nan, 0.0, 0)
    if len(kept) < len(difficulty):
        # An item of infinite difficulty has the same chance for every learner: it drops out.
        groups = ScoreGroups.of(correct[:, kept])
    fit = _newton(groups, sd, tolerance, max_iterations)
    errors = np.sqrt(np.diag(np.linalg.inv(fit.information)))
    difficulty[kept], standard_error[kept] = fit.parameters[: len(kept)], errors[: len(kept)]
    if sd is not None:
        return Marginal(difficulty, standard_error, sd, 0.0, -fit.value, fit.n_iterations)
    fitted = math.exp(fit.parameters[-1])
    # The delta method: sd is the exponential of the parameter.
    sd_error = fitted * errors[-1] if len(errors) > len(kept) else math.nan
    return Marginal(difficulty, standard_error, fitted, sd_error, -fit.value, fit.n_iterations)


def log_likelihood(correct: NDArray[np.int8], difficulty: Floats, sd: float) -> tuple[float, Floats, Floats]:
    """The marginal log-likelihood, its gradient and observed information in (difficulties, log sd)."""
    groups = ScoreGroups.of(correct)
    value, gradient, information = _evaluate(groups, np.append(difficulty, math.log(sd)), len(difficulty) + 1)
    return -value, -gradient, information


@dataclass(frozen=True)
class _Fit:
    parameters: Floats
    information: Floats
    value: float
    n_iterations: int


def _newton(groups: ScoreGroups, sd: float | None, tolerance: float, max_iterations: int) -> _Fit:
    right, answered = groups.right_by_item, groups.answered_by_item
    start_sd = 1.0 if sd is None else sd
    # The mean of a logistic curve over normal abilities is flatter than the curve (Camilli 1994).
    difficulty = np.log((answered - right) / right) * math.sqrt(1 + start_sd**2 / 1.702**2)
    parameters = np.append(difficulty, math.log(start_sd))
    n_free = len(parameters) if sd is None else len(difficulty)
    limits = math.log(SMALLEST_SD), math.log(LARGEST_SD)
    value, gradient, information = _evaluate(groups, parameters, n_free)
    n_learners = int(groups.size.sum())
    iteration = 0
    while iteration < max_iterations:
        # A spread at its smallest (largest) that would shrink (grow) further is where it has to be.
        at_limit = sd is None and bool(parameters[-1] == limits[0 if gradient[-1] > 0 else 1])
        free = len(difficulty) if at_limit else n_free
        if np.abs(gradient[:free]).max() <= tolerance * n_learners:
            break
        iteration += 1
        step = np.zeros(len(parameters))
        step[:free] = -_solve(information[:free, :free], gradient[:free], n_items=len(difficulty))
        # A first guess of the spread may be far off; its logarithm moves by at most one.
        scale = 1.0 if sd is not None else min(1.0, 1.0 / max(abs(step[-1]), 1e-300))
        slope = gradient[:free] @ step[:free]
        while True:
            moved = parameters + scale * step
            if sd is None:
                moved[-1] = min(max(moved[-1], limits[0]), limits[1])
            trial = _evaluate(groups, moved, n_free)
            # Near the optimum the gain drowns in rounding: accept the full step there.
            if trial[0] <= value + 1e-4 * scale * slope + 1e-13 * abs(value) or scale < 1e-8:
                break
            scale /= 2
        parameters = moved
        value, gradient, information = trial
    if sd is None and (parameters[-1] in limits or np.linalg.eigvalsh(_correlated(information))[0] < 1e-9):
        # At a limit, or where responses do not bound it (one item), the spread has no standard error.
        information = information[:-1, :-1]
    return _Fit(parameters, information, value, iteration)


def _correlated(information: Floats) -> Floats:
    """The matrix scaled to a diagonal of ones, so that its smallest eigenvalue means something."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    return np.asarray(information * np.outer(scale, scale))


def _solve(information: Floats, gradient: Floats, *, n_items: int) -> Floats:
    """Newton's step; where the spread's curvature is not positive, a gradient step for the spread alone."""
    if len(gradient) > n_items:
        items, cross = information[:n_items, :n_items], information[:n_items, -1]
        left = information[-1, -1] - cross @ np.linalg.solve(items, cross)
        if left <= 1e-8 * abs(information[-1, -1]):
            step = np.empty(len(gradient))
            step[:n_items] = np.linalg.solve(items, gradient[:n_items])
            step[-1] = gradient[-1] / max(abs(information[-1, -1]), 1e-12)
            return step
    return np.asarray(np.linalg.solve(information, gradient))


def _nodes(sd: float, most_answers: int) -> tuple[Floats, Floats]:
    """Equally spaced abilities and the logarithms of their weights.

    The sum over a grid of spacing h misses a smooth peak of standard deviation s by about
    2 exp(-2 (pi s / h)^2), and the posterior of an ability has s of at least
    1 / sqrt(1/sd^2 + most_answers/4): with h at 0.9 times that, 5e-11.
    """
    spacing = min(0.5, 0.9 / math.sqrt(1 / sd**2 + most_answers / 4))
    half = math.ceil(_REACH * sd / spacing)
    ability = spacing * np.arange(-half, half + 1, dtype=np.float64)
    log_weight = -0.5 * (ability / sd) ** 2
    return ability, log_weight - logsumexp(log_weight)


def _evaluate(groups: ScoreGroups, parameters: Floats, n_free: int) -> tuple[float, Floats, Floats]:
    """Negative log-likelihood, its gradient and its second derivatives in (difficulties, log sd).

    With E and Cov over the posterior of the ability t given the score, p_i the chance of item i
    at t and x = t/sd, the derivatives of a learner's term are x_i - E p_i and 1 - E x^2, and
    the second ones E p_i (1 - p_i) [i = j] - Cov(p_i, p_j), -Cov(p_i, x^2) and
    2 E x^2 - Var(x^2) (Louis 1982).
    """
    difficulty, sd = parameters[:-1], math.exp(parameters[-1])
    ability, log_weight = _nodes(sd, groups.most_answers)
    eta = ability[None, :] - difficulty[:, None]
    chance = expit(eta)
    value, gradient, information = _by_pattern(
        groups.items,
        groups.item_starts,
        groups.group_starts,
        groups.score,
        groups.size.astype(np.float64),
        ability,
        log_weight,
        np.append(chance, ((ability / sd) ** 2)[None, :], axis=0),
        np.logaddexp(0.0, eta),
        chance * expit(-eta),
    )
    value += float(groups.right_by_item @ difficulty)
    gradient[:-1] += groups.right_by_item
    return value, gradient[:n_free], information[:n_free, :n_free]


@njit(cache=True, nogil=True)
def _by_pattern(  # type: ignore[no-untyped-def]
    items, item_starts, group_starts, score, size, ability, log_weight, chance, softplus, scatter
):
    """Sums over learners: minus the log-likelihood, E p and E x^2 - 1, and the information.

    The last row of `chance` is x^2: a pattern treats it like an item that every learner answered. Of a pattern
    of m items only the m^2 covariances of these are touched, and only nodes that are possible for its scores.
    """
    n_items, n_nodes = softplus.shape
    value = 0.0
    gradient = np.zeros(n_items + 1)
    information = np.zeros((n_items + 1, n_items + 1))
    for p in range(len(item_starts) - 1):
        own = np.append(items[item_starts[p] : item_starts[p + 1]], n_items)
        first_group, end_group = group_starts[p], group_starts[p + 1]
        n_groups, m = end_group - first_group, len(own) - 1
        prior = log_weight.copy()
        for k in range(m):
            for q in range(n_nodes):
                prior[q] -= softplus[own[k], q]
        posterior = np.empty((n_groups, n_nodes))
        first_node, end_node = n_nodes, 0
        for g in range(n_groups):
            row = score[first_group + g] * ability + prior
            top = row.max()
            total = 0.0
            for q in range(n_nodes):
                row[q] = math.exp(row[q] - top) if row[q] > top - _DEPTH else 0.0
                total += row[q]
                if row[q] > 0.0:
                    first_node, end_node = min(first_node, q), max(end_node, q + 1)
            value -= size[first_group + g] * (top + math.log(total))
            posterior[g] = row / total
        # By item and node: the chances, and per group their means.
        likely = np.empty((m + 1, end_node - first_node))
        for k in range(m + 1):
            likely[k] = chance[own[k], first_node:end_node]
        posterior = np.ascontiguousarray(posterior[:, first_node:end_node])
        means = likely @ posterior.T
        weights = size[first_group:end_group]
        by_node = weights @ posterior
        for k in range(m + 1):
            expected = 0.0
            for g in range(n_groups):
                expected += weights[g] * means[k, g]
                means[k, g] *= math.sqrt(weights[g])
            gradient[own[k]] -= expected
            if k < m:
                inner = 0.0
                for q in range(len(by_node)):
                    inner += by_node[q] * scatter[own[k], first_node + q]
                information[own[k], own[k]] += inner
            else:
                gradient[n_items] += weights.sum()
                information[n_items, n_items] += 2.0 * expected
            for q in range(len(by_node)):
                likely[k, q] *= math.sqrt(by_node[q])
        covariance = likely @ likely.T - means @ means.T
        for k in range(m + 1):
            for j in range(m + 1):
                information[own[k], own[j]] -= covariance[k, j]
    return value, gradient, information
