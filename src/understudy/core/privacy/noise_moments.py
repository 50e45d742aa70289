"""Moments of the mechanisms' noise: what an estimator may know about it, for it is public.

The K-norm mechanisms draw a radius T with weight f(t)^I e^(-epsilon t), f(t) the number of
lattice points of an item's body at radius t (`mechanisms.knorm_cube`, `knorm_hexagon`). Here the
distribution of T is summed in floating point; the noise itself is drawn exactly, in `noise`.
"""

from __future__ import annotations

import math

import numpy as np

from understudy.core.privacy.noise import FloatArray, IntArray

# The numbers of lattice points, 2t + 1 and 3t^2 + 3t + 1, by their coefficients.
_CUBE = (1, 2)
_HEXAGON = (1, 3, 3)
# What may be left out of the distribution of T at each end, before it is scaled to one.
_LEFT_OUT = 1e-13


def laplace_variance(sensitivity: float, epsilon: float) -> float:
    """Variance of a cell of `mechanisms.laplace`.

    2 q / (1 - q)^2 with q = e^(-epsilon / sensitivity), written without the cancellation.
    """
    return 0.5 / math.sinh(0.5 * epsilon / sensitivity) ** 2


def cube_variance(n_items: int, epsilon: float) -> float:
    """Variance of a cell of `mechanisms.knorm_cube`: E[T (T + 1)] / 3. Cells are uncorrelated.

    A uniform integer of [-t, t] has second moment t (t + 1) / 3, and mean 0 at every t.
    """
    radius, probability = _radius_weights(_CUBE, n_items, epsilon)
    return float(probability @ (radius * (radius + 1.0) / 3.0))


def hexagon_covariance(n_items: int, epsilon: float) -> FloatArray:
    """Covariance of (correct, answered) of an item under `mechanisms.knorm_hexagon`, 2 x 2.

    Rows of different items are uncorrelated. Within the hexagon of radius t, a row with the given
    c has 2t + 1 - |c| points, so that the sum of c^2 is

        2 sum over c = 1 ... t of c^2 (2t + 1 - c) = t (t + 1) (5t^2 + 5t + 2) / 6,

    over 3t^2+3t+1 points. (c, a) -> (a, c) and (c, a) -> (c - a, -a) map the hexagon to itself,
    so a^2 and (c - a)^2 have the same sum, and c a = (c^2 + a^2 - (c - a)^2) / 2 half of it: the
    correlation is 1/2 for every t.
    """
    radius, probability = _radius_weights(_HEXAGON, n_items, epsilon)
    square = radius * (radius + 1.0)
    variance = float(probability @ (square * (5.0 * square + 2.0) / (6.0 * (3.0 * square + 1.0))))
    return variance * np.array([[1.0, 0.5], [0.5, 1.0]])


def cube_radius_weights(n_items: int, epsilon: float) -> tuple[IntArray, FloatArray]:
    """Values t of the cube's radius T, consecutive, and their probabilities: all but 1e-12 of them."""
    return _without_tails(*_radius_weights(_CUBE, n_items, epsilon))


def hexagon_radius_weights(n_items: int, epsilon: float) -> tuple[IntArray, FloatArray]:
    """Values t of the hexagon's radius T, consecutive, and their probabilities: all but 1e-12 of them."""
    return _without_tails(*_radius_weights(_HEXAGON, n_items, epsilon))


def _radius_weights(body: tuple[int, ...], n_items: int, epsilon: float) -> tuple[IntArray, FloatArray]:
    """T with weight f(t)^n e^(-epsilon t), the polynomial f given by its coefficients."""
    if n_items < 1 or not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError(
            f"a radius needs an item or more and a finite epsilon above 0, not {n_items} and {epsilon}"
        )
    degree = len(body) - 1
    mode = math.floor(degree * n_items / epsilon)
    reach = math.ceil((8.0 * math.sqrt(degree * n_items) + 40.0) / epsilon) + 4
    while True:
        radius = np.arange(max(0, mode - reach), mode + reach + 1, dtype=np.int64)
        n_points = np.polynomial.polynomial.polyval(radius.astype(np.float64), body)
        at_mode = float(sum(coefficient * mode**power for power, coefficient in enumerate(body)))
        # Relative to the mode and through log1p: the two large terms would cancel otherwise.
        logs = n_items * np.log1p((n_points - at_mode) / at_mode) - epsilon * (radius - mode)
        weights = np.exp(logs - logs.max())
        total = float(weights.sum())
        below = _rest(logs[1] - logs[0], weights[0]) if radius[0] > 0 else 0.0
        above = _rest(logs[-2] - logs[-1], weights[-1])
        if max(below, above) <= _LEFT_OUT * total:
            break
        reach *= 2
    return radius, weights / total


def _without_tails(radius: IntArray, probability: FloatArray) -> tuple[IntArray, FloatArray]:
    first = int(np.searchsorted(np.cumsum(probability), _LEFT_OUT))
    stop = len(radius) - int(np.searchsorted(np.cumsum(probability[::-1]), _LEFT_OUT))
    return radius[first:stop], probability[first:stop] / probability[first:stop].sum()


def _rest(log_ratio: float, weight: float) -> float:
    """Bound of all weights beyond the outermost: they are log-concave, so a geometric series holds them."""
    return math.inf if log_ratio <= 0 else float(weight) / math.expm1(log_ratio)
