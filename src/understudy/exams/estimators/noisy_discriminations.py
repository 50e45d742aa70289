"""Difficulties and discriminations from noisy totals of right answers and of how they go with the rest.

Abilities are N(0, 1), and an item is solved with chance sigma(a (b - d)). Given the ability, the mean sign of the other
items is about normal, so that the expected clipped one, and with it both totals, follow from all items' parameters.
Each item has a posterior on a grid of (a, d), with log a ~ N(level, spread^2) and d ~ N(mean, sd^2); the expected rest
is that of the other items' posterior means, found in rounds. Level and spread of log a, and mean and sd of d, are
integrated out on a few values, or found from the posterior means. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, logsumexp

from understudy.exams.estimators.noisy_totals import Prior
from understudy.exams.mechanisms.discrimination import GAIN, NoisyPairs

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_NORMAL, _NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_NORMAL_WEIGHTS = _NORMAL_WEIGHTS / _NORMAL_WEIGHTS.sum()
_LOG_SLOPES = np.linspace(-2.2, 1.8, 21)
_PLACES = np.arange(-12.0, 12.001, 0.1)
_POINTS, _REACH = 41, 6.0
_LEVELS = np.linspace(-1.2, 1.0, 12)
_SPREADS = np.array([0.1, 0.2, 0.35, 0.55])
_USUAL_LEVEL, _DOUBT_OF_LEVEL, _USUAL_SPREAD, _DOUBT_OF_SPREAD = 0.2, 0.6, 0.3, 0.6
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class DiscriminationEstimate:
    """Posterior means and standard deviations; `order_error` leaves out what moves all items together."""

    difficulty: Floats
    standard_error: Floats
    order_error: Floats
    log_slope: Floats
    log_slope_error: Floats
    prior: Prior


def estimate_discriminations(noisy: NoisyPairs, prior: Prior | None = None) -> DiscriminationEstimate:
    """Difficulties and discriminations of all items."""
    coarse = _fits(_Grid.of(noisy, np.tile(_LOG_SLOPES, (len(noisy.right), 1))), _LEVELS, prior)
    weight = _weights(coarse)
    # Then finer, around what is likely: with many learners slopes are known to a few hundredths.
    slope, doubt = _moments(weight, [fit.slope for fit in coarse], [fit.slope_variance for fit in coarse])
    steps = np.linspace(-4.0, 4.0, len(_LOG_SLOPES))
    slopes = np.clip(slope[:, None] + np.maximum(doubt, 0.03)[:, None] * steps, -3.5, 2.5)
    level, width = _moments(weight, [fit.level for fit in coarse], 0.0)
    levels = float(level) + max(float(width), 0.08) * np.linspace(-2.5, 2.5, 7)
    fits = _fits(_Grid.of(noisy, slopes), levels, prior)
    weight = _weights(fits)
    difficulty, log_slope = (
        weight @ np.array([getattr(fit, name) for fit in fits]) for name in ("place", "slope")
    )
    alone = weight @ np.array([fit.place_variance for fit in fits])
    squares = weight @ np.array([fit.place**2 for fit in fits])
    together = np.maximum(squares - difficulty**2, 0.0) + 1.0 / noisy.n_learners
    of_slope = weight @ np.array([fit.slope_variance + fit.slope**2 for fit in fits]) - log_slope**2
    mean, spread = weight @ np.array([fit.prior for fit in fits])
    return DiscriminationEstimate(
        difficulty,
        np.sqrt(alone + together),
        np.sqrt(alone),
        log_slope,
        # The class at hand spreads by a little more or less than 1, and all slopes with it.
        np.sqrt(np.maximum(of_slope, 0.0) + 0.5 / noisy.n_learners),
        Prior(float(mean), float(spread)),
    )


def _fits(grid: _Grid, levels: Floats, prior: Prior | None) -> list[_Fit]:
    return [grid.fit(float(level), float(spread), prior) for level in levels for spread in _SPREADS]


def _weights(fits: list[_Fit]) -> Floats:
    logs = np.array([fit.evidence for fit in fits])
    return np.asarray(np.exp(logs - logsumexp(logs)))


def _moments(weight: Floats, values: ArrayLike, variances: ArrayLike) -> tuple[Floats, Floats]:
    """Mean and standard deviation over fits, each with a variance of its own."""
    value = np.asarray(values)
    mean = weight @ value
    own = np.broadcast_to(np.asarray(variances), value.shape)
    return np.asarray(mean), np.sqrt(np.maximum(weight @ (own + value**2) - mean**2, 0.0))


@dataclass(frozen=True, eq=False)
class _Fit:
    evidence: float
    level: float
    place: Floats
    place_variance: Floats
    slope: Floats
    slope_variance: Floats
    prior: tuple[float, float]


@dataclass(frozen=True, eq=False)
class _Grid:
    """By item, slope and chance: difficulties, signs by ability, right answers beyond those expected."""

    noisy: NoisyPairs
    log_slopes: Floats
    place: Floats
    sign: Floats
    apart: Floats
    variance: Floats
    width: Floats

    @classmethod
    def of(cls, noisy: NoisyPairs, log_slopes: Floats) -> _Grid:
        n = noisy.n_learners
        reach = _REACH * math.sqrt(noisy.variance + 0.25 * n) / n
        low, high = (logit(np.clip(noisy.right / n + s * reach, 3e-3, 1.0 - 3e-3)) for s in (-1, 1))
        low, high = np.minimum(low, high - 0.5), np.maximum(high, low + 0.5)
        log_odds = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _POINTS)
        place = np.empty((*log_slopes.shape, _POINTS))
        for item, k in np.ndindex(*log_slopes.shape):
            curve = _curve(round(float(log_slopes[item, k]), 3))
            place[item, k] = np.interp(log_odds[item], curve[::-1], _PLACES[::-1])
        chance = expit(np.exp(log_slopes)[..., None, None] * (_NODES - place[..., None]))
        within = (chance * (1.0 - chance)) @ _WEIGHTS
        variance = noisy.variance + n * within
        mean = n * (chance @ _WEIGHTS)
        apart = noisy.right[:, None, None] - mean
        width = np.maximum(np.abs(np.gradient(place, axis=2)), 1e-9)
        return cls(noisy, log_slopes, place, 2.0 * chance - 1.0, apart, variance, width)

    def fit(self, level: float, spread: float, prior: Prior | None) -> _Fit:
        """The posterior of all items where log a ~ N(level, spread^2)."""
        n, n_items = self.noisy.n_learners, len(self.place)
        log_slope = np.full(n_items, level)
        place = self.place[:, self.place.shape[1] // 2, _POINTS // 2]
        mean, sd = (prior.mean, prior.spread) if prior is not None else (0.0, 1.5)
        own_step = np.maximum(np.gradient(self.log_slopes, axis=1), 1e-9)
        of_slope = -0.5 * ((self.log_slopes - level) / spread) ** 2 - math.log(spread) + np.log(own_step)
        log_right = -0.5 * (self.apart**2 / self.variance + np.log(self.variance))
        for _ in range(_ROUNDS):
            expected, second = _rest(log_slope, place)
            product = np.einsum("ikpq,qi->ikp", self.sign, _WEIGHTS[:, None] * expected)
            squares = np.einsum("ikpq,qi->ikp", self.sign**2, _WEIGHTS[:, None] * expected**2)
            within = np.maximum(_WEIGHTS @ second - squares.transpose(1, 2, 0), 1e-3).transpose(2, 0, 1)
            variance = self.noisy.variance + 0.25 * n * within + 1.0 / 12.0
            difference = self.noisy.with_rest[:, None, None] + 0.5 - 0.5 * n * (1.0 + product)
            # Given the ability, the two totals of an item vary together: by the expected rest times p (1 - p).
            shared = np.einsum("ikpq,qi->ikp", 0.25 * n * (1.0 - self.sign**2), _WEIGHTS[:, None] * expected)
            slope = shared / self.variance
            difference = difference - slope * self.apart
            variance = np.maximum(variance - slope * shared, self.noisy.variance + 1.0 / 12.0)
            logs = log_right - 0.5 * (difference**2 / variance + np.log(variance))
            logs = logs + of_slope[..., None] + np.log(self.width)
            logs = logs - 0.5 * ((self.place - mean) / sd) ** 2 - math.log(sd)
            total = logsumexp(logs, axis=(1, 2), keepdims=True)
            weight = np.exp(logs - total)
            place = (weight * self.place).sum(axis=(1, 2))
            log_slope = (weight.sum(axis=2) * self.log_slopes).sum(axis=1)
            place_variance = (weight * self.place**2).sum(axis=(1, 2)) - place**2
            slope_variance = (weight.sum(axis=2) * self.log_slopes**2).sum(axis=1) - log_slope**2
            if prior is None:
                mean = float(place.mean())
                sd = math.sqrt(
                    max(float((place - mean) ** 2 @ np.ones(n_items) + place_variance.sum()) / n_items, 0.09)
                )
        evidence = float(total.sum()) - 0.5 * ((level - _USUAL_LEVEL) / _DOUBT_OF_LEVEL) ** 2
        evidence -= 0.5 * (math.log(spread / _USUAL_SPREAD) / _DOUBT_OF_SPREAD) ** 2
        evidence -= 0.5 * (math.log(sd / 1.5) / 0.5) ** 2 + 0.5 * (mean / 1.25) ** 2
        return _Fit(
            evidence,
            level,
            place,
            np.maximum(place_variance, 0.0),
            log_slope,
            np.maximum(slope_variance, 0.0),
            (mean, sd),
        )


@lru_cache(maxsize=8192)
def _curve(log_slope: float) -> Floats:
    """Log-odds of a random learner's chance at each difficulty."""
    chance = expit(math.exp(log_slope) * (_NODES - _PLACES[:, None])) @ _WEIGHTS
    return np.asarray(logit(np.clip(chance, 1e-9, 1.0 - 1e-9)))


def _rest(log_slope: Floats, place: Floats) -> tuple[Floats, Floats]:
    """By ability and item: mean and mean square of the clipped sign of all other items, which is about normal."""
    chance = expit(np.exp(log_slope) * (_NODES[:, None] - place))
    sign, scatter = 2.0 * chance - 1.0, 4.0 * chance * (1.0 - chance)
    others = chance.shape[1] - 1.0
    middle = (sign.sum(axis=1, keepdims=True) - sign) / others
    sd = np.sqrt(scatter.sum(axis=1, keepdims=True) - scatter) / others
    clipped = np.clip(GAIN * (middle[..., None] + sd[..., None] * _NORMAL), -1.0, 1.0)
    return clipped @ _NORMAL_WEIGHTS, clipped**2 @ _NORMAL_WEIGHTS
