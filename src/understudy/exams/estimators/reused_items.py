"""Items that an earlier exam had, too: each has a prior of its own, its earlier difficulty.

The earlier exam has another zero (its class was better or worse), so that all its difficulties are shifted by one
number, c ~ N(0, 1); and an item may have drifted, by N(0, drift^2). Whether items of the same name are the same at all
is not taken for granted, as `Q1` is the first task of every exam: how well the earlier difficulties agree with the
noisy totals decides between some drifts and items that have nothing in common but their names, with equal odds before
looking. It all computes with noisy totals and with an earlier release, so it costs no privacy beyond theirs.

Posteriors are taken to be normal: dividing one by its prior gives the likelihood of the totals, as normal too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# How far reused items may drift, in log-odds; and the earlier class may be better or worse by this.
_DRIFTS = (0.1, 0.25, 0.5, 1.0)
_SHIFT = 1.0
# A posterior that is hardly narrower than its prior has seen nothing: the least precision of a likelihood.
_LEAST_PRECISION = 1e-6


@dataclass(frozen=True, eq=False)
class Reused:
    """Difficulties with those of the earlier exam in them.

    `same` is how likely it is that items of the same name are the same.
    """

    difficulty: Floats
    variance: Floats
    same: float
    n_items: int


def with_reused_items(
    difficulty: Floats, variance: Floats, mean: float, spread: float, earlier: Floats, earlier_error: Floats
) -> Reused:
    """The posterior N(difficulty, variance), which has the prior N(mean, spread^2), with item-level priors instead.

    `earlier` is nan where the earlier exam did not have an item, or not its error.
    """
    reused = np.isfinite(earlier) & np.isfinite(earlier_error)
    if not reused.any():
        return Reused(difficulty, variance, 0.0, 0)
    precision = np.maximum(1.0 / variance[reused] - 1.0 / spread**2, _LEAST_PRECISION)
    seen = (difficulty[reused] / variance[reused] - mean / spread**2) / precision
    of_seen = 1.0 / precision
    logs = [_log_density(seen - mean, spread**2 + of_seen, 0.0)]
    means, variances = [difficulty[reused]], [variance[reused]]
    for drift in _DRIFTS:
        own = earlier_error[reused] ** 2 + drift**2
        apart = seen - earlier[reused]
        logs.append(_log_density(apart, own + of_seen, _SHIFT**2) - np.log(len(_DRIFTS)))
        shift_precision = 1.0 / _SHIFT**2 + (1.0 / (own + of_seen)).sum()
        shift = (apart / (own + of_seen)).sum() / shift_precision
        weight = 1.0 / (own * precision + 1.0)  # of the earlier difficulty
        means.append((1.0 - weight) * seen + weight * (earlier[reused] + shift))
        variances.append(weight * own + weight**2 / shift_precision)
    share = np.exp(np.array(logs) - logsumexp(logs))
    found, doubt = difficulty.copy(), variance.copy()
    found[reused] = share @ np.array(means)
    doubt[reused] = share @ (np.array(variances) + np.array(means) ** 2) - found[reused] ** 2
    return Reused(found, np.maximum(doubt, 1e-12), float(1.0 - share[0]), int(reused.sum()))


def _log_density(values: Floats, variance: Floats, shared: float) -> float:
    """Of normal values with these variances, and a variance that all of them share (Sherman and Morrison 1950)."""
    total = (1.0 / variance).sum()
    square = (values**2 / variance).sum()
    if shared:
        square -= (values / variance).sum() ** 2 / (1.0 / shared + total)
    return float(-0.5 * (square + np.log(variance).sum() + np.log1p(shared * total)))
