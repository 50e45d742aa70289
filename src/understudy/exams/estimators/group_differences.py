"""Which items are harder for one group than for another beside ability, from noisy totals of the groups.

In group g of n_g learners abilities are N(m_g, sd^2), and item i has the difficulty b_ig = d_i - m_g + (what differs)
on the scale whose zero is the group's mean. Of its learners n_g P(b_ig) have it right on average, with the variance
n_g E[p (1 - p)]; the noise comes on top, taken as normal (K-norm noise of a dozen cells and more has shorter tails).
Given sd and n_g, b_ig has a posterior under a wide normal prior, on a grid. The difference b_ig - b_i0 to the first
group holds m_0 - m_g for all items alike: it is the mean of the other items that do not differ themselves, weighted by
precision, and is taken away. Items that differ leave this scale one by one, the clearest first.

Sizes are known with noise only, and sd by the measured agreement and a prior (`noisy_totals.py`): both are integrated
out, so that what is stated is a mixture of normal laws. An error in a group's size moves its easy items more than its
hard ones, which would look like differences. P-values are corrected by Holm's (1979) method over all items and groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, ndtr

from understudy.exams.agreement import expected_agreement
from understudy.exams.mechanisms.group import NoisyGroups

Floats = NDArray[np.float64]

# Statements that an item differs are wrong in at most this share of comparisons without a difference.
LEVEL = 0.05
# Before looking: wide, as it must not draw a noisy group to the middle while another stays where it is.
_PRIOR_SD = 4.0
_FURTHEST = 16.0
_TABLE = np.linspace(-_FURTHEST, _FURTHEST, 3201)
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_COARSE, _FINE = 129, 61
# As for difficulties: the spread of abilities that is usual, and the doubt about its logarithm.
_USUAL_SD, _DOUBT_OF_SD = 1.5, 0.6
_SDS = np.geomspace(0.3, 5.0, 25)
_STEPS_OF_SD = np.linspace(-2.0, 2.0, 5)
_STEPS_OF_SIZE = np.linspace(-2.5, 2.5, 7)


@dataclass(frozen=True, eq=False)
class Differences:
    """Rows are the groups but the first, columns the items: how much harder an item is than in the first group.

    `low` and `high` are 95 % intervals of each, `differs` holds for all together. `ability` is how much abler the group
    is than the first one, with its standard error; `sizes` are estimated learners of all groups.
    """

    difference: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    p_value: Floats
    differs: NDArray[np.bool_]
    ability: Floats
    ability_error: Floats
    sizes: Floats
    ability_sd: float


def group_differences(noisy: NoisyGroups, ability_sd: float | None = None) -> Differences:
    """The differences of all groups to the first one; sd is found from the agreement unless it is given."""
    sds, sd_weight = (
        (np.array([ability_sd]), np.ones(1)) if ability_sd is not None else _likely_spreads(noisy)
    )
    n_groups = len(noisy.sizes)
    groups = [_Group.of(noisy, group, sds) for group in range(n_groups)]
    pairs = [_Pair.of(groups[0], other, sd_weight) for other in groups[1:]]
    anchors = np.ones((n_groups - 1, noisy.right.shape[1]), dtype=bool)
    while True:
        p_value = np.array([pair.p_value(kept) for pair, kept in zip(pairs, anchors, strict=True)])
        differs = _holm(p_value)
        # A scale of fewer than half of the items would be theirs, and not that of the exam.
        may_leave = differs & anchors & (anchors.sum(axis=1, keepdims=True) > (anchors.shape[1] + 1) // 2)
        if not may_leave.any():
            break
        anchors[np.unravel_index(np.argmin(np.where(may_leave, p_value, 2.0)), p_value.shape)] = False
    stated = [pair.stated(kept) for pair, kept in zip(pairs, anchors, strict=True)]
    difference, error, low, high = (np.array([each[part] for each in stated]) for part in range(4))
    shifts = np.array([pair.shift(kept) for pair, kept in zip(pairs, anchors, strict=True)])
    sizes = np.array([group.size for group in groups])
    sd = float(np.exp(sd_weight @ np.log(sds)))
    drawn = sd**2 * (1.0 / sizes[0] + 1.0 / sizes[1:])
    return Differences(
        difference,
        error,
        low,
        high,
        p_value,
        differs,
        -shifts[:, 0],
        np.sqrt(shifts[:, 1] + drawn),
        sizes,
        sd,
    )


def _likely_spreads(noisy: NoisyGroups) -> tuple[Floats, Floats]:
    """Spreads of abilities that are likely, and the weight of each."""

    def log_weight(sds: Floats) -> Floats:
        found = -0.5 * (np.log(sds / _USUAL_SD) / _DOUBT_OF_SD) ** 2
        if noisy.agreement is not None:
            found += np.array([_log_agreement(noisy, noisy.agreement, float(sd)) for sd in sds])
        return np.asarray(found - logsumexp(found))

    logs = np.log(_SDS)
    for _ in range(3):
        weight = np.exp(log_weight(np.exp(logs)))
        centre = float(weight @ logs)
        step = float(np.diff(logs).max())
        width = max(math.sqrt(float(weight @ logs**2) - centre**2 + 1e-12), step / 3.0)
        if width > 2.0 * step:
            break
        logs = centre + width * np.linspace(-3.0, 3.0, 13)
    sds = np.exp(centre + width * _STEPS_OF_SD)
    return sds, np.exp(log_weight(sds))


def _log_agreement(noisy: NoisyGroups, agreement: float, sd: float) -> float:
    """Log-likelihood of the measured agreement, at the sizes that were measured."""
    n_items = noisy.right.shape[1]
    mean = variance = 0.0
    for right, size in zip(noisy.right, noisy.sizes, strict=True):
        n = float(np.clip(size, 1.0, noisy.n_learners))
        place, doubt, _ = _posterior(right, np.array([n]), noisy.variance, sd)
        expected, scatter = expected_agreement(
            place[0],
            doubt[0],
            sd,
            guess=np.zeros(n_items),
            answers=np.full(n_items, n),
            n_learners=max(int(n), 1),
            fewest=n_items,
        )
        mean += expected
        variance += scatter + noisy.variance * (expected / n) ** 2
    # Every sum is rounded down once, and not once per group.
    mean += 0.5 * (len(noisy.sizes) - 1)
    variance += noisy.agreement_variance
    return -0.5 * ((agreement - mean) ** 2 / variance + math.log(variance))


def _posterior(right: Floats, sizes: Floats, noise: float, sd: float) -> tuple[Floats, Floats, Floats]:
    """Means and variances of the difficulties (sizes by items), and the evidence of each size."""
    chances = expit(sd * _NODES - _TABLE[:, None])
    know = chances @ _WEIGHTS
    scatter = (chances * (1.0 - chances)) @ _WEIGHTS
    # What is expected before looking are chances: the same ones lie further apart where abilities do.
    prior_sd = _PRIOR_SD * math.sqrt((1.0 + 0.35 * sd**2) / (1.0 + 0.35 * _USUAL_SD**2))
    n = sizes[:, None, None]
    low = np.full((len(sizes), len(right)), -_FURTHEST)
    high = -low
    for points in (_COARSE, _FINE, _FINE):
        grid = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, points)
        variance = n * np.interp(grid, _TABLE, scatter) + noise
        away = right[:, None] - n * np.interp(grid, _TABLE, know)
        log = -0.5 * (away**2 / variance + np.log(variance) + (grid / prior_sd) ** 2)
        whole = logsumexp(log, axis=2)
        weight = np.exp(log - whole[..., None])
        mean = (weight * grid).sum(axis=2)
        spread = np.maximum((weight * grid**2).sum(axis=2) - mean**2, 0.0)
        step = (high - low) / (points - 1)
        reach = 6.0 * np.maximum(np.sqrt(spread), 0.7 * step)
        evidence = (whole + np.log(step)).sum(axis=1)
        low, high = np.maximum(mean - reach, -_FURTHEST), np.minimum(mean + reach, _FURTHEST)
    return mean, spread, evidence


@dataclass(frozen=True, eq=False)
class _Group:
    """Difficulties in one group: spreads by sizes by items, and the weight of each size at each spread."""

    mean: Floats
    variance: Floats
    weight: Floats
    size: float

    @classmethod
    def of(cls, noisy: NoisyGroups, group: int, sds: Floats) -> _Group:
        noise = math.sqrt(noisy.variance)
        measured = noisy.sizes[group]
        # A size that noise has moved out of what is possible leaves the possible ones close to it.
        middle = float(np.clip(measured, 1.0, noisy.n_learners))
        sizes = np.clip(middle + noise * _STEPS_OF_SIZE, 1.0, noisy.n_learners)
        prior = -0.5 * ((sizes - measured) / noise) ** 2
        found = [_posterior(noisy.right[group], sizes, noisy.variance, float(sd)) for sd in sds]
        log = prior + np.array([evidence for _, _, evidence in found])
        weight = np.exp(log - logsumexp(log, axis=1, keepdims=True))
        return cls(
            np.array([mean for mean, _, _ in found]),
            np.array([variance for _, variance, _ in found]),
            weight,
            float((weight @ sizes).mean()),
        )


@dataclass(frozen=True, eq=False)
class _Pair:
    """Raw differences of a group to the first: cases (of spread and sizes) by items, with the weight of each case."""

    raw: Floats
    variance: Floats
    weight: Floats

    @classmethod
    def of(cls, first: _Group, other: _Group, sd_weight: Floats) -> _Pair:
        n_items = first.mean.shape[2]
        raw = other.mean[:, None] - first.mean[:, :, None]
        variance = other.variance[:, None] + first.variance[:, :, None]
        weight = sd_weight[:, None, None] * first.weight[:, :, None] * other.weight[:, None]
        return cls(raw.reshape(-1, n_items), variance.reshape(-1, n_items), weight.ravel() / weight.sum())

    def centred(self, anchors: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Per case, each item against the scale of the other anchors, and the standard deviation of that."""
        precision = anchors / self.variance
        whole = precision.sum(axis=1, keepdims=True) - precision
        shift = ((precision * self.raw).sum(axis=1, keepdims=True) - precision * self.raw) / whole
        return self.raw - shift, np.sqrt(self.variance + 1.0 / whole)

    def p_value(self, anchors: NDArray[np.bool_]) -> Floats:
        """Twice the weight on the less likely side of no difference."""
        mean, sd = self.centred(anchors)
        return np.asarray(2.0 * np.minimum(self.weight @ ndtr(mean / sd), self.weight @ ndtr(-mean / sd)))

    def stated(self, anchors: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean, standard deviation and 95 % interval of the mixture."""
        means, sds = self.centred(anchors)
        mean = self.weight @ means
        sd = np.sqrt(self.weight @ (sds**2 + means**2) - mean**2)
        low, high = (self._quantile(means, sds, mean, sd, tail) for tail in (0.025, 0.975))
        return mean, sd, low, high

    def _quantile(self, means: Floats, sds: Floats, mean: Floats, sd: Floats, tail: float) -> Floats:
        below, above = mean - 8.0 * sd, mean + 8.0 * sd
        for _ in range(40):
            middle = 0.5 * (below + above)
            less = self.weight @ ndtr((middle - means) / sds) < tail
            below, above = np.where(less, middle, below), np.where(less, above, middle)
        return np.asarray(0.5 * (below + above))

    def shift(self, anchors: NDArray[np.bool_]) -> tuple[float, float]:
        """What all anchors differ by, and its variance."""
        precision = anchors / self.variance
        whole = precision.sum(axis=1)
        shifts = (precision * self.raw).sum(axis=1) / whole
        mean = float(self.weight @ shifts)
        return mean, float(self.weight @ (1.0 / whole + shifts**2)) - mean**2


def _holm(p_value: Floats) -> NDArray[np.bool_]:
    order = np.argsort(p_value, axis=None)
    held = np.cumprod(p_value.ravel()[order] <= LEVEL / (p_value.size - np.arange(p_value.size)))
    found = np.zeros(p_value.size, dtype=bool)
    found[order[held.astype(bool)]] = True
    return found.reshape(p_value.shape)
