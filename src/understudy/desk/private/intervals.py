"""Intervals that hold the noise: of ratios of noisy sums, of differences, of quantiles.

The noise is known: independent, normal for all practical purposes, with a standard deviation that is public. So an
interval is the set of values that the noisy sums do not refute, with the variance of the noise added to that of
sampling, and where the noise hides a denominator it is all that is possible.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm, t

from understudy.desk.private.schema import Floats

LEVEL = 0.95
Z = float(norm.ppf(0.5 + LEVEL / 2))


def clipped(value: float, possible: tuple[float, float]) -> float:
    """The nearest value that is possible."""
    return min(max(value, possible[0]), possible[1])


def critical(n: float) -> float:
    """How many standard errors an interval reaches, for a variance estimated from n learners."""
    return float(t.ppf(0.5 + LEVEL / 2, max(n - 1.0, 2.0)))


def ratio_interval(
    total: float,
    n: float,
    *,
    total_sd: float,
    n_sd: float,
    variance: float | None,
    covariance: float = 0.0,
    possible: tuple[float, float] = (-1.0, 1.0),
) -> tuple[float, float]:
    """The interval of m = E[total] / E[n] for a noisy total and a noisy number of learners (Fieller 1954).

    It holds every m with (total - m n)^2 <= k^2 (total_sd^2 - 2 m `covariance` + m^2 n_sd^2 + n V), V the variance of
    one learner's value: `variance`, or m (1 - m) of a share where that is None (Wilson 1927). Where n may be 0 for all
    that is known, every m that is possible is in it.
    """
    k = Z if variance is None else critical(n)
    learners = max(n, 0.0)
    a = n**2 - (k * n_sd) ** 2
    b = -2.0 * total * n + 2.0 * k**2 * covariance
    c = total**2 - k**2 * (total_sd**2 + learners * (variance or 0.0))
    if variance is None:
        a, b = a + k**2 * learners, b - k**2 * learners
    if n <= 0 or a <= 0:
        return possible
    middle, reach = -b / (2.0 * a), math.sqrt(max(b**2 - 4.0 * a * c, 0.0)) / (2.0 * a)
    return clipped(middle - reach, possible), clipped(middle + reach, possible)


def ratio_noise(
    total: float, n: float, *, total_sd: float, n_sd: float, covariance: float = 0.0, most: float = 1.0
) -> float:
    """The standard deviation of the noise of total / n, to first order; the ratio is `most` at the most."""
    if n <= 0:
        return math.inf
    m = min(max(total / n, -most), most)
    return math.sqrt(max(total_sd**2 - 2.0 * m * covariance + (m * n_sd) ** 2, 0.0)) / n


def difference_interval(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[float, float]:
    """The interval of one minus the other from (value, low, high) of each (Zou and Donner 2008)."""
    (value, low, high), (value_2, low_2, high_2) = one, other
    gap = value - value_2
    return gap - math.hypot(value - low, high_2 - value_2), gap + math.hypot(high - value, value_2 - low_2)


def quantile_interval(
    share: float, edges: Floats, below: Floats, below_sd: Floats, n_learners: float
) -> tuple[float, float]:
    """The interval of a quantile, from noisy shares `below` each edge (Woodruff 1952).

    Left of the quantile fewer than `share` of the learners are. The lower end is the last edge up to which every edge
    is refuted to be as far as the quantile, so that it lies beyond it only if the first edge beyond is refuted;
    likewise the upper end. What lies between two edges is not known, so ends are edges.
    """
    sd = np.hypot(below_sd, math.sqrt(share * (1.0 - share) / max(n_learners, 1.0)))
    too_low, too_high = below + Z * sd < share, below - Z * sd > share
    too_low[0], too_high[-1] = True, True
    first = int(np.argmin(too_low)) - 1 if not too_low.all() else len(edges) - 2
    last = len(edges) - int(np.argmin(too_high[::-1])) if not too_high.all() else 1
    return float(edges[max(first, 0)]), float(edges[min(last, len(edges) - 1)])
