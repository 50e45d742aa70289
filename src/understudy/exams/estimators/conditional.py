"""Conditional maximum likelihood for the Rasch model: difficulties without any assumption about abilities.

Given a learner's score r on the items answered, the chance of which items were right does not
depend on the ability:

    P(x | r) = exp(-sum of x_i difficulty_i) / gamma_r(exp(-difficulty)),

with gamma_r the elementary symmetric function of order r (Andersen 1972; Fischer 1981). Only
differences of difficulties are estimated, so their mean is set to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components

from understudy.exams.estimators.score_groups import ScoreGroups

Floats = NDArray[np.float64]

_BLOCK = 8192
# Items are tied whose e^easiness differ by less than this share.
_TIED = 1e-4


@dataclass(frozen=True)
class Conditional:
    """Difficulties with mean zero, on the scale of log-odds, and their standard errors.

    An item is infinitely easy or hard (-inf, +inf, standard error inf) when the responses bound
    its difficulty on one side only, and nan when nothing compares it with the others.
    """

    difficulty: Floats
    standard_error: Floats
    log_likelihood: float
    n_iterations: int


def fit_conditional(
    correct: NDArray[np.int8], *, tolerance: float = 1e-10, max_iterations: int = 100
) -> Conditional:
    """Fit a matrix of learners by items (1 right, 0 wrong, below 0 not answered) by Newton's method.

    Stops when no derivative exceeds `tolerance` times the number of learners who count.
    """
    n_items = correct.shape[1]
    difficulty, standard_error = np.full(n_items, np.nan), np.full(n_items, np.nan)
    if not correct.size:
        return Conditional(difficulty, standard_error, 0.0, 0)
    kept, difficulty = _bounded(correct)
    standard_error[np.isinf(difficulty)] = np.inf
    if len(kept) < 2:
        return Conditional(difficulty, standard_error, 0.0, 0)
    groups = ScoreGroups.of(correct[:, kept])
    fitted, information, value, n_iterations = _newton(groups, tolerance, max_iterations)
    difficulty[kept] = fitted
    # The information is singular along a common shift, which the mean of zero fixes; with
    # `_regular` the inverse has 1/trace too much in every entry.
    variance = np.diag(np.linalg.inv(_regular(information))) - 1 / np.trace(information)
    standard_error[kept] = np.sqrt(variance)
    return Conditional(difficulty, standard_error, value, n_iterations)


def log_likelihood(correct: NDArray[np.int8], difficulty: Floats) -> tuple[float, Floats, Floats]:
    """The conditional log-likelihood at some difficulties, its gradient and its information matrix."""
    return _evaluate(ScoreGroups.of(correct), np.asarray(difficulty, dtype=np.float64))


def _bounded(correct: NDArray[np.int8]) -> tuple[NDArray[np.intp], Floats]:
    """The items to fit, and for the others what is known of them.

    A learner who is right on i and wrong on j shows that i may be easier than j. Difficulties are
    bounded among items where such sayings lead from each item to each other one (Fischer 1981).
    The largest such set of items is fitted; items that sayings lead to from there are harder
    than anything bounds, items that only lead there are easier.
    """
    n_items = correct.shape[1]
    easier = np.zeros((n_items, n_items))
    for start in range(0, len(correct), _BLOCK):
        block = correct[start : start + _BLOCK]
        easier += (block > 0).T.astype(np.float32) @ (block == 0).astype(np.float32)
    graph = easier > 0
    _, label = connected_components(graph, directed=True, connection="strong")
    kept = np.flatnonzero(label == np.argmax(np.bincount(label)))
    difficulty = np.full(n_items, np.nan)
    difficulty[_reached(graph, kept[0])] = np.inf
    difficulty[_reached(graph.T, kept[0])] = -np.inf
    difficulty[kept] = np.nan
    if len(kept) == 1:
        difficulty = _one_sided(graph)
    return kept, difficulty


def _reached(graph: NDArray[np.bool_], start: int) -> NDArray[np.int32]:
    reached, _ = breadth_first_order(graph, int(start))
    return reached


def _one_sided(easier: NDArray[np.bool_]) -> Floats:
    """Where no two items bound each other: hard or easy against some other items, or neither."""
    is_hard, is_easy = easier.any(axis=0), easier.any(axis=1)
    return np.where(is_hard & ~is_easy, np.inf, np.where(is_easy & ~is_hard, -np.inf, np.nan))


def _newton(groups: ScoreGroups, tolerance: float, max_iterations: int) -> tuple[Floats, Floats, float, int]:
    # log((wrong + 1/2) / (right + 1/2)): close enough for Newton's method.
    right = groups.right_by_item
    difficulty = np.log((groups.answered_by_item - right + 0.5) / (right + 0.5))
    difficulty -= difficulty.mean()
    value, gradient, information = _evaluate(groups, difficulty)
    n_learners = int(groups.size.sum())
    iteration = 0
    while np.abs(gradient).max() > tolerance * n_learners and iteration < max_iterations:
        iteration += 1
        step = np.linalg.solve(_regular(information), gradient)
        slope, scale = gradient @ step, 1.0
        while True:
            trial = _evaluate(groups, difficulty + scale * step)
            # Near the optimum the gain drowns in rounding: accept the full step there.
            if trial[0] >= value + 1e-4 * scale * slope - 1e-13 * abs(value) or scale < 1e-8:
                break
            scale /= 2
        difficulty = difficulty + scale * step
        value, gradient, information = trial
    return difficulty - difficulty.mean(), information, value, iteration


def _regular(information: Floats) -> Floats:
    """The information with a constant added, which makes it regular and leaves steps of mean zero as they are."""
    return np.asarray(information + np.trace(information) / len(information) ** 2)


def _evaluate(groups: ScoreGroups, difficulty: Floats) -> tuple[float, Floats, Floats]:
    """Log-likelihood, gradient and information of difficulties."""
    log_gamma, expected, information = _by_pattern(
        groups.items,
        groups.item_starts,
        groups.group_starts,
        groups.score,
        groups.size.astype(np.float64),
        difficulty,
    )
    value = -float(groups.right_by_item @ difficulty) - log_gamma
    return value, expected - groups.right_by_item, information


@njit(cache=True, nogil=True)
def _log_gamma(easiness):  # type: ignore[no-untyped-def]
    """Logarithms of the elementary symmetric functions: sums of positive terms, so no digits are lost."""
    n_items = len(easiness)
    log_gamma = np.full(n_items + 1, -np.inf)
    log_gamma[0] = 0.0
    for i in range(n_items):
        for r in range(i + 1, 0, -1):
            # Without the item, and with it.
            a, b = log_gamma[r], log_gamma[r - 1] + easiness[i]
            high, low = max(a, b), min(a, b)
            log_gamma[r] = high + np.log1p(np.exp(low - high))
    return log_gamma


@njit(cache=True, nogil=True)
def _chances(easiness, log_ratio, right, wrong):  # type: ignore[no-untyped-def]
    """P(right | score r) of one item for r = 0..m, and P(wrong | r), both with all their digits.

    `log_ratio[r]` is log(gamma_{r-1} / gamma_r). From gamma_r = gamma_r without the item +
    e^easiness gamma_{r-1} without it follows P(right | r) = e^easiness gamma_{r-1}/gamma_r
    P(wrong | r-1). Upwards, an error shrinks by the factor P(right)/P(wrong), so that direction
    is used up to a chance of one half; from there on the same equation is used downwards.
    """
    n_items = len(log_ratio) - 1
    right[0], wrong[0] = 0.0, 1.0
    turn = 0
    while turn < n_items and right[turn] <= 0.5:
        turn += 1
        right[turn] = min(1.0, np.exp(easiness + log_ratio[turn]) * wrong[turn - 1])
        wrong[turn] = 1.0 - right[turn]
    right[n_items], wrong[n_items] = 1.0, 0.0
    for r in range(n_items, turn + 1, -1):
        wrong[r - 1] = min(1.0, np.exp(-easiness - log_ratio[r]) * right[r])
        right[r - 1] = 1.0 - wrong[r - 1]
    if 0 < turn < n_items:
        # P(wrong) near the turn, from above too: a chance close to 1 may be reached in one step.
        wrong[turn] = min(1.0, np.exp(-easiness - log_ratio[turn + 1]) * right[turn + 1])


@njit(cache=True, nogil=True)
def _tied_covariance(k, j, easiness, log_ratio, right, wrong, count):  # type: ignore[no-untyped-def]
    """Covariance of two items of (nearly) the same easiness, summed over scores.

    The recursion of `_chances` on the items without k gives P(j right | k right, score r).
    """
    m = len(easiness)
    others_ratio = np.empty(m)
    chance, remainder = np.empty(m), np.empty(m)
    for r in range(1, m):
        others_ratio[r] = log_ratio[r] + np.log(wrong[k, r - 1] / wrong[k, r])
    _chances(easiness[j], others_ratio, chance, remainder)
    total = 0.0
    for r in range(1, m):
        if count[r] > 0.0:
            total += count[r] * right[k, r] * (chance[r - 1] - right[j, r])
    return total


@njit(cache=True, nogil=True)
def _by_pattern(items, item_starts, group_starts, score, size, difficulty):  # type: ignore[no-untyped-def]
    """Sum over learners of log gamma, of P(right | score), and of the covariance given the score.

    Leaving item k or item j out of gamma_r differs by (easiness_j - easiness_k) gamma_{r-1} without both, so that the
    covariance of two items follows from their chances: with p = P(right | r), w = 1 - p and q the ratio of the
    harder item's e^easiness to the easier one's, it is (p_hard w_easy - q p_easy w_hard) / (1 - q). Rounding errors
    grow by 1 / (1 - q): items closer than `_TIED` are treated by `_tied_covariance`.
    """
    n_items = len(difficulty)
    total = 0.0
    expected = np.zeros(n_items)
    information = np.zeros((n_items, n_items))
    for p in range(len(item_starts) - 1):
        own = items[item_starts[p] : item_starts[p + 1]]
        own = own[np.argsort(difficulty[own])]  # from the easiest on: ties are neighbours
        m = len(own)
        easiness = -difficulty[own]
        # Learners with nothing or everything right do not count; their terms are constants.
        informative = 0.0
        count = np.zeros(m + 1)
        for g in range(group_starts[p], group_starts[p + 1]):
            count[score[g]] = size[g]
            if 0 < score[g] < m:
                informative += size[g]
        if count[m] > 0:
            total += count[m] * easiness.sum()
            for k in range(m):
                expected[own[k]] += count[m]
        if informative == 0.0:
            continue
        log_gamma = _log_gamma(easiness)
        log_ratio = np.zeros(m + 1)
        for r in range(1, m + 1):
            log_ratio[r] = log_gamma[r - 1] - log_gamma[r]
        right = np.empty((m, m + 1))
        wrong = np.empty((m, m + 1))
        for k in range(m):
            _chances(easiness[k], log_ratio, right[k], wrong[k])
        scores = np.flatnonzero(count[:m])
        scores = scores[scores > 0]
        counts = count[scores]
        for s in range(len(scores)):
            total += counts[s] * log_gamma[scores[s]]
            for k in range(m):
                chance_right = right[k, scores[s]]
                expected[own[k]] += counts[s] * chance_right
                information[own[k], own[k]] += counts[s] * chance_right * wrong[k, scores[s]]
        # By score, so that the loop over pairs reads neighbours.
        chance, remainder = np.empty((len(scores), m)), np.empty((len(scores), m))
        for s in range(len(scores)):
            for k in range(m):
                chance[s, k], remainder[s, k] = right[k, scores[s]], wrong[k, scores[s]]
        powers = np.exp(easiness - easiness[0])
        tied_at, tied = np.nan, 0.0
        for k in range(m):
            for j in range(k):
                ratio = powers[k] / powers[j] if powers[j] > 0.0 else np.exp(easiness[k] - easiness[j])
                if 1.0 - ratio < _TIED:
                    same = easiness[k] == easiness[j]
                    if not (same and tied_at == easiness[k]):
                        covariance = _tied_covariance(k, j, easiness, log_ratio, right, wrong, count)
                        if same:
                            # Of items with equal easiness every pair has the same covariance.
                            tied_at, tied = easiness[k], covariance
                    else:
                        covariance = tied
                else:
                    covariance = 0.0
                    for s in range(len(scores)):
                        covariance += counts[s] * (
                            chance[s, k] * remainder[s, j] - ratio * chance[s, j] * remainder[s, k]
                        )
                    covariance /= 1.0 - ratio
                information[own[k], own[j]] += covariance
                information[own[j], own[k]] += covariance
    return total, expected, information
