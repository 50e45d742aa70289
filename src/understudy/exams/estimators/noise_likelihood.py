"""The likelihood of an item's noisy totals, for each law of the noise.

Given n answers, of which each is right with chance c, the right answers are about normal with mean n c. The noise is
summed out exactly: normal noise adds its variance; noise within a body leaves an interval of right answers that are
possible, all alike; Laplace noise on right and on wrong answers leaves an interval with exponential tails.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.exams.mechanisms.totals import NoisyTotals
from understudy.exams.noise_law import laplace_scale

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# The logarithm of the least number that is distinguished from zero.
_IMPOSSIBLE = -690.0


def answers_log_likelihood(totals: NoisyTotals, n_answers: Floats, radius: float, step: Floats) -> Floats:
    """Of the noisy number of answers alone, at numbers of answers that stand for `step` of them, items by numbers."""
    away = np.abs(totals.answered[:, None] - n_answers)
    if totals.law.kind == "hexagon":
        # Twice the radius less |a| lattice points, for |a| within the radius; a number in part if it is at the end.
        within = np.clip((radius - away) / step + 0.5, 1e-12, 1.0)
        return np.asarray(np.log(within * np.maximum(2.0 * radius - away, 1e-12) / (3.0 * radius**2)))
    if totals.law.kind == "laplace":
        # Of the sum of two.
        scale = laplace_scale(totals.covariance)
        return np.asarray(np.log1p(away / scale) - away / scale - math.log(4.0 * scale))
    variance = float(totals.covariance[1, 1])
    return np.asarray(-0.5 * away**2 / variance - 0.5 * math.log(variance))


def log_likelihood(
    totals: NoisyTotals, n_answers: Floats, log_weight: Floats, radius: float, chance: Floats, scatter: Floats
) -> Floats:
    """Of an item's right answers at each of its chances, summed over numbers of answers (items by numbers).

    `log_weight` is that of each number of answers, with the noisy number known. `scatter` is the variance of an answer
    given the learner, on average.
    """
    kind, n_learners = totals.law.kind, float(totals.n_learners)
    right, answered = totals.correct[:, None], totals.answered[:, None]
    value = np.empty_like(chance)
    if kind == "normal":
        (own, shared), (_, other) = totals.covariance
        slope = shared / other if other else 0.0
        # The noise of the answers tells part of the noise of the right ones.
        known = right - slope * (answered - n_answers)
        _normal(known, n_answers, log_weight, own - slope * shared, n_learners, chance, scatter, value)
        return value
    if kind == "laplace":
        scale = laplace_scale(totals.covariance)
        # Right answers may be as many as were counted, or as are left by the wrong ones.
        left = n_answers - (answered - right)
        low, high = np.minimum(right, left), np.maximum(right, left)
        away = np.abs(answered - n_answers)
        # Both densities, given that of their sum.
        log_weight = log_weight - (high - low) / scale + away / scale - np.log1p(away / scale)
        log_weight -= math.log(scale)
        rate = 2.0 / scale
    else:
        # a is the noise of the answers: 0 in the cube.
        a = answered - n_answers if kind == "hexagon" else np.zeros_like(n_answers)
        low = right - np.minimum(radius, a + radius)
        high = right - np.maximum(-radius, a - radius)
        log_weight = log_weight - np.log(np.maximum(high - low, 1e-12))
        rate = math.inf
    _band(low, high, rate, n_answers, log_weight, n_learners, chance, scatter, value)
    return value


def agreement_log_likelihood(totals: NoisyTotals, mean: float, variance: float, radius: float) -> float:
    """Of the cells that measured agreement, if it is normal with this mean and variance."""
    measured, kind = totals.agreement, totals.law.kind
    assert measured is not None
    if kind == "normal" or measured.cells is None:
        variance += measured.variance
        return -0.5 * (measured.total - mean) ** 2 / variance - 0.5 * math.log(variance)
    right, answered = measured.cells.T
    # Every learner answers these cells.
    a = answered - totals.n_learners
    deviation = math.sqrt(variance)
    if kind == "laplace":
        scale = laplace_scale(totals.covariance)
        # Counts of right answers, and those that the wrong ones leave.
        places = np.concatenate([right, right - a])
        away = np.abs(places[:, None] - (mean + deviation * _NODES)).sum(axis=0) / scale
        least = float(away.min())
        return math.log(float(_WEIGHTS @ np.exp(least - away))) - least
    if float(np.abs(a).max()) > radius:
        return _IMPOSSIBLE
    low = float((right - np.minimum(radius, a + radius)).max())
    high = float((right - np.maximum(-radius, a - radius)).min())
    body = 2.0 * radius if kind == "cube" else 3.0 * radius**2
    share = _between((low - mean) / deviation, (high - mean) / deviation) if high > low else 0.0
    return (math.log(share) if share > 0.0 else _IMPOSSIBLE) - len(a) * math.log(body)


@njit(cache=True, nogil=True)
def _sampling(n_answers, n_learners, chance, scatter):  # type: ignore[no-untyped-def]
    """Variance of the right answers: those who answer are drawn from all learners, and differ."""
    between = max(chance * (1.0 - chance) - scatter, 0.0)
    return n_answers * (scatter + (1.0 - n_answers / n_learners) * between)


@njit(cache=True, nogil=True)
def _normal(  # type: ignore[no-untyped-def]
    right, n_answers, log_weight, noise, n_learners, chance, scatter, value
):
    n_items, n_points = chance.shape
    n_nodes = n_answers.shape[1]
    terms = np.empty(n_nodes)
    for i in range(n_items):
        for j in range(n_points):
            top = -np.inf
            for k in range(n_nodes):
                # Without noise a total of 0 or N would make the variance vanish at the ends.
                variance = max(
                    _sampling(n_answers[i, k], n_learners, chance[i, j], scatter[i, j]) + noise, 1e-6
                )
                difference = right[i, k] - n_answers[i, k] * chance[i, j]
                terms[k] = -0.5 * (difference**2 / variance + math.log(variance)) + log_weight[i, k]
                top = max(top, terms[k])
            total = 0.0
            for k in range(n_nodes):
                total += math.exp(terms[k] - top)
            value[i, j] = top + math.log(total)


@njit(cache=True, nogil=True)
def _band(  # type: ignore[no-untyped-def]
    low, high, rate, n_answers, log_weight, n_learners, chance, scatter, value
):
    """Any number between low and high alike, beyond them less by e^(-rate times how far): against a normal number."""
    n_items, n_points = chance.shape
    n_nodes = n_answers.shape[1]
    weight = np.empty(n_nodes)
    for i in range(n_items):
        top = -np.inf
        for k in range(n_nodes):
            top = max(top, log_weight[i, k])
        for k in range(n_nodes):
            weight[k] = math.exp(log_weight[i, k] - top)
        for j in range(n_points):
            total = 0.0
            for k in range(n_nodes):
                if weight[k] < 1e-30:
                    continue
                variance = max(_sampling(n_answers[i, k], n_learners, chance[i, j], scatter[i, j]), 1e-6)
                deviation = math.sqrt(variance)
                middle = n_answers[i, k] * chance[i, j]
                below, above = (low[i, k] - middle) / deviation, (high[i, k] - middle) / deviation
                part = _between(below, above)
                if rate < np.inf:
                    steep = rate * deviation
                    part += _tail(above, steep) + _tail(-below, steep)
                total += weight[k] * part
            # Far from everything possible, the least number keeps the logarithm finite.
            value[i, j] = top + math.log(max(total, 1e-300))


@njit(cache=True, nogil=True)
def _between(low, high):  # type: ignore[no-untyped-def]
    """The share of a standard normal variable between two numbers, without cancellation in its tails."""
    # All of it, to the last digit: so it is for most items where noise is large, and error functions take long.
    if low < -9.0 and high > 9.0:
        return 1.0
    if low > 0.0:
        return 0.5 * (math.erfc(low / math.sqrt(2.0)) - math.erfc(high / math.sqrt(2.0)))
    return 0.5 * (math.erfc(-high / math.sqrt(2.0)) - math.erfc(-low / math.sqrt(2.0)))


@njit(cache=True, nogil=True)
def _tail(start, steep):  # type: ignore[no-untyped-def]
    """E[e^(-steep (x - start)); x > start] for a standard normal x: e^(steep^2/2 + steep start) Q(start + steep)."""
    place = start + steep
    if place < 20.0:
        return math.exp(0.5 * steep**2 + steep * start) * 0.5 * math.erfc(place / math.sqrt(2.0))
    # Q(t) = phi(t) / t (1 - 1/t^2 + 3/t^4 - 15/t^6 + ...), and e^(steep^2/2 + steep start - t^2/2) = e^(-start^2/2).
    square = 1.0 / place**2
    series = 1.0 - square * (1.0 - 3.0 * square * (1.0 - 5.0 * square * (1.0 - 7.0 * square)))
    return math.exp(-0.5 * start**2) / (place * math.sqrt(2.0 * math.pi)) * series
