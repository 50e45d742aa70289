"""Difficulties of items with points, from noisy shares of points: marginal likelihood, with the noise in it.

Items follow the partial credit model (`partial_credit.py`) with thresholds that one number describes besides the
difficulty: d + log(k / (m + 1 - k)) / 2 + shape (2k - m - 1) / (m - 1) for k = 1 ... m. Shape 0 is half-way between an
item of m equal tasks that succeed or fail on their own (their thresholds are log(k / (m + 1 - k))) and one of equal
thresholds; above, parts of the points are more common, below, all or nothing is. An item's shape is N(shape, 0.7^2)
around one of the exam, which the measured parts of points tell; that its thresholds are not symmetrical is a skew,
N(0, 0.8^2). (Thresholds that differ at random by 0.7, or by design, have about these.) The spread of
abilities is told by the measured agreement, as in `noisy_totals.py`.

Shares have mean N P(d), P the mean share of a random learner, and the variance of the noise plus N E[Var(share |
ability)]. Spread, shape, and the mean and spread of difficulties are integrated out. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, gammaln, logit, logsumexp

from understudy.exams.estimators.credits import log_chances
from understudy.exams.estimators.noisy_totals import Prior
from understudy.exams.estimators.partial_credit import half_points
from understudy.exams.mechanisms.points import NoisyPoints
from understudy.exams.responses import Points

Floats = NDArray[np.float64]

# Abilities to sum over, in standard deviations.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_PLACES = np.arange(-16.0, 16.001, 0.2)
_BEYOND = np.arange(-40.0, 40.001, 0.02)
_POINTS = 61
# Shares this many standard deviations from the measured one are still looked at.
_REACH = 6.0
_SHAPES = np.linspace(-2.4, 2.4, 7)
_DOUBT_OF_SHAPE, _SHAPES_DIFFER, _SKEWS_DIFFER = 1.0, 0.7, 0.8
_USUAL_SD, _DOUBT_OF_SD = 1.0, 0.7
_SDS = np.geomspace(0.25, 4.0, 7)
_LEAST_SD, _MOST_SD = 0.2, 4.5
_MEANS = np.linspace(-4.0, 4.0, 13)
_SPREADS = np.geomspace(0.3, 4.0, 7)
_DOUBT_OF_MEAN, _USUAL_SPREAD, _DOUBT_OF_SPREAD = 1.5, 1.2, 0.6
# Where a difficulty, or an item's shape, may be: in standard deviations, with weights.
_THREE, _THREE_WEIGHTS = np.array([-math.sqrt(3.0), 0.0, math.sqrt(3.0)]), np.array([1.0, 4.0, 1.0]) / 6.0
# How an item differs from the exam's shape, and in skew: a rule for two normal numbers, exact to degree 3.
_ITEMS_DIFFER = (
    (0.0, 0.0, 1.0 / 3.0),
    *((sign * math.sqrt(3.0), 0.0, 1.0 / 6.0) for sign in (-1.0, 1.0)),
    *((0.0, sign * math.sqrt(3.0), 1.0 / 6.0) for sign in (-1.0, 1.0)),
)


@dataclass(frozen=True, eq=False)
class PointsEstimate:
    """Posterior means and standard deviations, as `noisy_totals.Estimate`; `credits` are those of the mean shape."""

    difficulty: Floats
    standard_error: Floats
    order_error: Floats
    credits: tuple[Floats, ...]
    prior: Prior
    ability_sd: float
    shape: float


def shape_credits(n_steps: int, shape: float, skew: float = 0.0) -> Floats:
    """The credits of an item with these steps, relative to the ability at which half of the points are expected.

    With a skew, thresholds at both ends are further up than those in the middle.
    """
    k = np.arange(n_steps + 1, dtype=np.float64)
    binomial = gammaln(n_steps + 1.0) - gammaln(k + 1.0) - gammaln(n_steps - k + 1.0)
    credits = np.asarray(0.5 * binomial + shape * k * (n_steps - k) / max(n_steps - 1, 1))
    if not skew or n_steps < 3:
        return credits
    square = ((2.0 * k[1:] - n_steps - 1.0) / (n_steps - 1.0)) ** 2
    credits[1:] -= skew * np.cumsum(square - square.mean())
    return np.asarray(credits + k * half_points(-credits))


def estimate_from_points(
    noisy: NoisyPoints,
    points: tuple[Points, ...],
    ability_sd: float | None = None,
    prior: Prior | None = None,
) -> PointsEstimate:
    """Difficulties of all items; mean and spread of the prior are estimated too unless given, and sd if it is None."""
    exam = _Exam.of(noisy, points, prior)
    coarse = exam.fits(_SDS if ability_sd is None else np.array([ability_sd]), exam.shapes)
    weight = np.exp(_log_weights(coarse, doubt=ability_sd is None))
    sds = np.array([ability_sd])
    if ability_sd is None:
        sds = np.exp(_around(weight, [math.log(fit.sd) for fit in coarse], 0.02))
        sds = np.unique(np.clip(sds, _LEAST_SD, _MOST_SD))
    shapes = exam.shapes if len(exam.shapes) == 1 else _around(weight, [fit.shape for fit in coarse], 0.05)
    if prior is None:
        means = _around(weight, [fit.mean for fit in coarse], [fit.mean_doubt for fit in coarse])
        logs = _around(weight, [fit.log_spread for fit in coarse], [fit.log_spread_doubt for fit in coarse])
        exam = exam.with_laws(means, np.exp(logs))
    found = exam.fits(sds, shapes)
    weight = np.exp(_log_weights(found, doubt=ability_sd is None))
    difficulties = np.array([fit.difficulty for fit in found])
    difficulty = weight @ difficulties
    alone = weight @ np.array([fit.variance for fit in found])
    # Which learners were in the class, the spread of abilities and the shape move all items together.
    sampled = float(weight @ [fit.sd**2 for fit in found]) / noisy.n_learners
    together = np.maximum(weight @ difficulties**2 - difficulty**2, 0.0) + sampled
    shape = float(weight @ [fit.shape for fit in found])
    return PointsEstimate(
        difficulty,
        np.sqrt(alone + together),
        np.sqrt(alone),
        tuple(shape_credits(item.steps, shape) for item in points),
        Prior(
            float(weight @ [fit.mean for fit in found]),
            math.exp(float(weight @ [fit.log_spread for fit in found])),
        ),
        math.exp(float(weight @ [math.log(fit.sd) for fit in found])),
        shape,
    )


def _around(weight: Floats, values: ArrayLike, doubts: ArrayLike) -> Floats:
    """Seven values around the mean of these, over five standard deviations; each has doubts of its own."""
    value, doubt = np.asarray(values), np.broadcast_to(np.asarray(doubts), len(weight))
    centre = float(weight @ value)
    width = math.sqrt(max(float(weight @ (value**2 + doubt**2)) - centre**2, 1e-6))
    return np.asarray(centre + width * np.linspace(-2.5, 2.5, 7))


def _log_weights(found: list[_Fit], *, doubt: bool) -> Floats:
    logs = np.array([fit.evidence for fit in found])
    if doubt:
        logs -= [0.5 * (math.log(fit.sd / _USUAL_SD) / _DOUBT_OF_SD) ** 2 for fit in found]
    return np.asarray(logs - logsumexp(logs))


@dataclass(frozen=True, eq=False)
class _Fit:
    """The posterior at one spread of abilities and one shape."""

    sd: float
    shape: float
    evidence: float
    difficulty: Floats
    variance: Floats
    mean: float
    mean_doubt: float
    log_spread: float
    log_spread_doubt: float


@dataclass(frozen=True, eq=False)
class _Curve:
    """Of an item of some steps and shape, by its difficulty: mean share, and its variance given the ability."""

    log_odds: Floats
    within: Floats

    def places(self, log_odds: Floats) -> tuple[Floats, Floats]:
        """The difficulties that have these mean shares, and the variances there."""
        place = np.interp(log_odds, self.log_odds[::-1], _PLACES[::-1])
        return place, np.interp(place, _PLACES, self.within)


def _moments(beyond: Floats, n_steps: int, shape: float, skew: float = 0.0) -> tuple[Floats, Floats]:
    """Mean and variance of the share where abilities are so far beyond the difficulty: read off a table."""
    mean, variance = _table(n_steps, shape, skew)
    return np.interp(beyond, _BEYOND, mean), np.interp(beyond, _BEYOND, variance)


@lru_cache(maxsize=1024)
def _table(n_steps: int, shape: float, skew: float) -> tuple[Floats, Floats]:
    chance = np.exp(log_chances(_BEYOND, shape_credits(n_steps, shape, skew)))
    share = np.arange(n_steps + 1) / n_steps
    mean = chance @ share
    return mean, chance @ share**2 - mean**2


@lru_cache(maxsize=4096)
def _curve(sd: float, n_steps: int, shape: float, skew: float) -> _Curve:
    mean, variance = _moments(sd * _NODES - _PLACES[:, None], n_steps, shape, skew)
    share = np.clip(mean @ _WEIGHTS, 1e-9, 1.0 - 1e-9)
    return _Curve(logit(share), np.maximum(variance @ _WEIGHTS, 1e-9))


@dataclass(frozen=True, eq=False)
class _Exam:
    noisy: NoisyPoints
    steps: NDArray[np.int64]
    log_odds: Floats
    """Mean shares to look at: items by points."""
    means: Floats
    spreads: Floats
    log_prior: Floats

    @classmethod
    def of(cls, noisy: NoisyPoints, points: tuple[Points, ...], prior: Prior | None) -> _Exam:
        n = noisy.n_learners
        share = noisy.shares / n
        reach = _REACH * math.sqrt(noisy.variance + 0.25 * n + 1.0) / n
        low, high = (logit(np.clip(share + sign * reach, 2e-3, 1.0 - 2e-3)) for sign in (-1, 1))
        # Shares beyond what is possible leave the ends.
        low, high = np.minimum(low, high - 0.5), np.maximum(high, low + 0.5)
        log_odds = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _POINTS)
        steps = np.array([item.steps for item in points])
        given = (_MEANS, _SPREADS) if prior is None else (np.array([prior.mean]), np.array([prior.spread]))
        return cls(noisy, steps, log_odds, *_laws(*given))

    @property
    def shapes(self) -> Floats:
        """Shapes to begin with; one where no item has parts of points."""
        return _SHAPES if (self.steps > 1).any() else np.zeros(1)

    def with_laws(self, means: Floats, spreads: Floats) -> _Exam:
        """The same with other means and spreads of difficulties to integrate over."""
        return _Exam(self.noisy, self.steps, self.log_odds, *_laws(means, spreads))

    def fits(self, sds: Floats, shapes: Floats) -> list[_Fit]:
        """At each spread of abilities and each shape."""
        return [self._at(float(sd), float(shape)) for sd in sds for shape in shapes]

    def _at(self, sd: float, shape: float) -> _Fit:
        by_shape = [
            (
                *self._likelihood(sd, shape + _SHAPES_DIFFER * node, _SKEWS_DIFFER * skew),
                math.log(weight),
            )
            for node, skew, weight in (_ITEMS_DIFFER if (self.steps > 1).any() else _ITEMS_DIFFER[:1])
        ]
        places = np.concatenate([place for place, _, _ in by_shape], axis=1)
        return self._fit(
            sd, shape, places, np.concatenate([logs + weight for _, logs, weight in by_shape], axis=1)
        )

    def _likelihood(self, sd: float, shape: float, skew: float) -> tuple[Floats, Floats]:
        """Difficulties, and the logarithms of their likelihoods times their widths."""
        n, noisy = self.noisy.n_learners, self.noisy
        place, within = np.empty_like(self.log_odds), np.empty_like(self.log_odds)
        for steps in np.unique(self.steps):
            rows = self.steps == steps
            place[rows], within[rows] = _curve(sd, int(steps), shape, skew).places(self.log_odds[rows])
        # A sum that is rounded down to a whole number loses half of it, or nothing where it is one.
        lost = (0.5 * (1.0 - 1.0 / self.steps))[:, None]
        variance = noisy.variance + n * within + lost / 6.0
        difference = noisy.shares[:, None] + lost - n * expit(self.log_odds)
        width = np.maximum(-np.gradient(place, axis=1), 1e-12)
        return place, -0.5 * (difference**2 / variance + np.log(variance)) + np.log(width)

    def _fit(self, sd: float, shape: float, places: Floats, logs: Floats) -> _Fit:
        top = logs.max(axis=1, keepdims=True)
        likelihood = np.exp(logs - top)
        n_pairs = len(self.means)
        total, first, second = (np.empty((n_pairs, len(places))) for _ in range(3))
        for pair in range(n_pairs):
            prior = (
                np.exp(-0.5 * ((places - self.means[pair]) / self.spreads[pair]) ** 2) / self.spreads[pair]
            )
            weight = likelihood * prior
            total[pair] = np.maximum(weight.sum(axis=1), 1e-290)
            first[pair] = (weight * places).sum(axis=1) / total[pair]
            second[pair] = (weight * places**2).sum(axis=1) / total[pair]
        evidence = np.log(total).sum(axis=1) + self.log_prior
        whole = float(logsumexp(evidence))
        of_pair = np.exp(evidence - whole)
        difficulty = of_pair @ first
        variance = np.maximum(of_pair @ second - difficulty**2, 0.0)
        whole += float(top.sum()) - 0.5 * (shape / _DOUBT_OF_SHAPE) ** 2
        whole += self._log_density_of_pairs_and_parts(sd, shape, difficulty, variance)
        mean, log_spread = float(of_pair @ self.means), float(of_pair @ np.log(self.spreads))
        mean_doubt = math.sqrt(max(float(of_pair @ self.means**2) - mean**2, 0.01))
        log_spread_doubt = math.sqrt(max(float(of_pair @ np.log(self.spreads) ** 2) - log_spread**2, 0.0025))
        return _Fit(sd, shape, whole, difficulty, variance, mean, mean_doubt, log_spread, log_spread_doubt)

    def _log_density_of_pairs_and_parts(
        self, sd: float, shape: float, difficulty: Floats, variance: Floats
    ) -> float:
        """Of the measured agreement and parts of points, if items are as found."""
        noisy, n, n_items = self.noisy, self.noisy.n_learners, len(difficulty)
        mean, within, parts, moved = self._by_ability(sd, shape, difficulty, np.sqrt(variance))
        value = 0.0
        if noisy.agreement is not None:
            sign = 2.0 * mean - 1.0
            middle = sign.mean(axis=1)
            alike = (n_items * middle**2 - (sign**2).mean(axis=1)) / (n_items - 1.0)
            spread = 4.0 * within.mean(axis=1) / n_items
            expected = float(_WEIGHTS @ alike)
            scatter = float(_WEIGHTS @ (alike**2 + 4.0 * middle**2 * spread + 2.0 * spread**2)) - expected**2
            # What the doubts about difficulties do to the mean of all signs, and so to its square.
            doubt = (
                (2.0 * float(_WEIGHTS @ middle)) ** 2 * float((4.0 * moved[0] ** 2) @ variance) / n_items**2
            )
            least = -1.0 / (n_items - 1.0)
            scale = n / (1.0 - least)
            value += _log_density(
                noisy.agreement + 0.5,
                scale * (expected - least),
                scale**2 * (scatter / n + doubt) + noisy.agreement_variance + 1.0 / 12.0,
            )
        if noisy.parts is not None:
            graded = self.steps > 1
            share = parts[:, graded].mean(axis=1)
            expected = float(_WEIGHTS @ share)
            scatter = float(_WEIGHTS @ share**2) - expected**2 + 0.1 / graded.sum()
            doubt = float((moved[1] ** 2)[graded].sum()) / graded.sum() ** 2
            value += _log_density(
                noisy.parts + 0.5,
                n * expected,
                n * scatter + n**2 * doubt + noisy.parts_variance + 1.0 / 12.0,
            )
        return value

    def _by_ability(
        self, sd: float, shape: float, difficulty: Floats, doubt: Floats
    ) -> tuple[Floats, Floats, Floats, tuple[Floats, Floats]]:
        """By node and item: mean and variance of shares, parts of points; by item how far doubts move the two means."""
        sums = [np.zeros((len(_NODES), len(difficulty))) for _ in range(3)]
        slope, scatter = np.zeros(len(difficulty)), np.zeros(len(difficulty))
        for steps in np.unique(self.steps):
            rows = np.flatnonzero(self.steps == steps)
            shapes = _THREE * _SHAPES_DIFFER if steps > 1 else np.zeros(3)
            seen = []
            for place, weight in zip(_THREE, _THREE_WEIGHTS, strict=True):
                beyond = sd * _NODES[:, None] - (difficulty + place * doubt)[rows]
                for of_shape, of_weight in zip(shape + shapes, _THREE_WEIGHTS, strict=True):
                    mean, within = _moments(beyond, int(steps), float(of_shape))
                    parts = 4.0 * (mean * (1.0 - mean) - within)
                    for total, values in zip(sums, (mean, within, parts), strict=True):
                        total[:, rows] += weight * of_weight * values
                    seen.append((weight * of_weight, _WEIGHTS @ mean, _WEIGHTS @ parts))
            weights = np.array([each[0] for each in seen])[:, None]
            parts_seen = np.array([each[2] for each in seen])
            middle = (weights * parts_seen).sum(axis=0)
            scatter[rows] = np.sqrt((weights * (parts_seen - middle) ** 2).sum(axis=0))
            within = sums[1][:, rows]
            # The derivative of the mean share by the difficulty is minus its variance, times the steps.
            slope[rows] = steps * (_WEIGHTS @ within)
        return sums[0], sums[1], sums[2], (slope, scatter)


def _laws(means: Floats, spreads: Floats) -> tuple[Floats, Floats, Floats]:
    """Every pair of a mean and a spread of difficulties, and the logarithm of its weight before looking."""
    mean, spread = (grid.ravel() for grid in np.meshgrid(means, spreads, indexing="ij"))
    logs = -0.5 * (mean / _DOUBT_OF_MEAN) ** 2
    logs -= 0.5 * (np.log(spread / _USUAL_SPREAD) / _DOUBT_OF_SPREAD) ** 2
    return mean, spread, logs


def _log_density(value: float, mean: float, variance: float) -> float:
    return -0.5 * (value - mean) ** 2 / variance - 0.5 * math.log(variance)
