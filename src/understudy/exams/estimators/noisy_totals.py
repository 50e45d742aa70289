"""Difficulties from noisy totals: marginal likelihood, with the noise taken into account.

With abilities N(0, sd^2) an item of difficulty d is answered correctly with chance

    P(d) = E[sigma(sd * x - d)],  x standard normal,

by a learner drawn at random. Of an item's noisy totals (right, answered) the difference
right - P(d) * answered has mean 0 and variance answered P (1 - P) + the known variance of the noise,
which gives a likelihood of d (exactly for Gaussian noise; K-norm noise in many items is near
enough: the exact likelihood changed no correlation by more than 0.002 in 40 simulated classes).
Difficulties are N(mean, spread^2); mean and spread are integrated out over a weak prior of their
own (mean N(0, 2^2), spread about 1.5 within a factor of e), or given. The estimate is the
posterior mean, its standard error the posterior standard deviation, which includes sampling,
noise and the doubt about mean and spread. All of it is post-processing of the noisy totals and
costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import expit, logsumexp

from understudy.errors import UsageError
from understudy.exams.totals_mechanism import NoisyTotals, noise_variance

Floats = NDArray[np.float64]

# Difficulties beyond this are not distinguished from it: one answer in millions.
_FURTHEST = 15.0
_POINTS = 81
# Log-likelihood below the highest one that is still looked at (7.7 standard deviations).
_DEPTH = 30.0
_MEANS = np.linspace(-5.0, 5.0, 13)
_SPREADS = np.geomspace(0.3, 5.0, 8)


@dataclass(frozen=True)
class Prior:
    """Difficulties are N(mean, spread^2)."""

    mean: float
    spread: float

    @classmethod
    def parse(cls, text: str) -> Prior:
        """The prior as people write it: MEAN,SD."""
        mean, _, spread = text.partition(",")
        try:
            prior = cls(float(mean), float(spread))
        except ValueError:
            raise UsageError(
                f"a prior is MEAN,SD or a difficulties file, not '{text}'.",
                hint="for example 0,2.",
                settings=("prior",),
            ) from None
        if not (abs(prior.mean) <= 10 and 0.01 <= prior.spread <= 20):
            raise UsageError(
                f"difficulties around {prior.mean:g} that spread by {prior.spread:g} were asked for.",
                hint="the mean lies between -10 and 10, the standard deviation between 0.01 and 20.",
                settings=("prior",),
            )
        return prior


@dataclass(frozen=True, eq=False)
class Estimate:
    """Posterior means and standard deviations; `chance` is a random learner's at each item."""

    difficulty: Floats
    standard_error: Floats
    chance: Floats
    prior: Prior


def estimate_difficulties(
    totals: NoisyTotals, ability_sd: float = 1.0, prior: Prior | None = None
) -> Estimate:
    """Difficulties of all items; the prior's mean and spread are estimated too unless given."""
    grid, likelihood = _likelihoods(totals, ability_sd)
    if prior is not None:
        means, spreads = np.array([prior.mean]), np.array([prior.spread])
    else:
        means, spreads = _closer(grid, likelihood)
    weight, first, second = _posterior(grid, likelihood, means, spreads)
    difficulty = weight @ first
    variance = np.maximum(weight @ second - difficulty**2, 0.0)
    pairs = np.array([(mean, spread) for mean in means for spread in spreads])
    found = Prior(float(weight @ pairs[:, 0]), float(np.exp(weight @ np.log(pairs[:, 1]))))
    chance = np.asarray(chance_curve(ability_sd)(np.clip(difficulty, -_FURTHEST, _FURTHEST)))
    return Estimate(difficulty, np.sqrt(variance), chance, found)


@lru_cache(maxsize=32)
def chance_curve(ability_sd: float) -> CubicSpline:
    """P as a function of the difficulty, for |d| up to 15.

    The trapezoid rule converges at the rate exp(-2 pi^2 / step) for a logistic function, whose
    poles are pi away, so that a quarter is a fine step; the spline adds an error below 1e-8.
    """
    step = min(0.25, ability_sd / 2.0)
    nodes = np.arange(-math.ceil(8.5 * ability_sd / step), math.ceil(8.5 * ability_sd / step) + 1) * step
    weights = np.exp(-0.5 * (nodes / ability_sd) ** 2)
    difficulty = np.arange(-_FURTHEST - 1.0, _FURTHEST + 1.0, 0.05)
    return CubicSpline(difficulty, expit(nodes - difficulty[:, None]) @ (weights / weights.sum()))


def _likelihoods(totals: NoisyTotals, ability_sd: float) -> tuple[Floats, Floats]:
    """Per item a grid of difficulties that holds all that is likely, and the likelihood on it."""
    curve = chance_curve(ability_sd)
    low = np.full(len(totals.correct), -_FURTHEST)
    high = np.full(len(totals.correct), _FURTHEST)
    unit = np.linspace(0.0, 1.0, _POINTS)
    # Each round zooms in by up to forty times; precise totals of millions of learners need three.
    for _ in range(4):
        grid = low[:, None] + (high - low)[:, None] * unit
        value = _log_likelihood(totals, np.asarray(curve(grid)))
        value -= value.max(axis=1, keepdims=True)
        inside = value > -_DEPTH
        first = np.maximum(inside.argmax(axis=1) - 1, 0)
        last = np.minimum(_POINTS - inside[:, ::-1].argmax(axis=1), _POINTS - 1)
        rows = np.arange(len(low))
        if ((last - first) > _POINTS / 2).all():
            break
        low, high = grid[rows, first], grid[rows, last]
    return grid, np.exp(value)


def _log_likelihood(totals: NoisyTotals, chance: Floats) -> Floats:
    # Noise can make the number of answers impossible; what enters a variance is possible.
    answered = np.clip(totals.answered, 1.0, totals.n_learners)[:, None]
    variance = answered * chance * (1.0 - chance) + noise_variance(totals.covariance, chance)
    # Without noise (covariance 0) a total of 0 or N would make the variance vanish at the ends.
    variance = np.maximum(variance, 1e-6)
    difference = totals.correct[:, None] - chance * totals.answered[:, None]
    return np.asarray(-0.5 * difference**2 / variance - 0.5 * np.log(variance))


def _closer(grid: Floats, likelihood: Floats) -> tuple[Floats, Floats]:
    """Means and spreads of the prior around those that the coarse grid finds likely."""
    weight, _, _ = _posterior(grid, likelihood, _MEANS, _SPREADS)
    table = weight.reshape(len(_MEANS), len(_SPREADS))
    centre, width = _moments(table.sum(axis=1), _MEANS)
    scale, spread = _moments(table.sum(axis=0), np.log(_SPREADS))
    width = max(width, 0.1)
    spread = max(spread, 0.05)
    steps = np.linspace(-2.5, 2.5, 7)
    logs = np.clip(scale + spread * steps, math.log(_SPREADS[0]), math.log(_SPREADS[-1]))
    return centre + width * steps, np.exp(np.unique(logs))


def _moments(weight: Floats, values: Floats) -> tuple[float, float]:
    mean = float(weight @ values)
    return mean, math.sqrt(max(float(weight @ values**2) - mean**2, 0.0))


def _posterior(
    grid: Floats, likelihood: Floats, means: Floats, spreads: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weight of each (mean, spread), and under it the first and second moment of each difficulty."""
    n_items = len(grid)
    cell = (grid[:, 1] - grid[:, 0])[:, None]
    evidence = np.empty((len(means), len(spreads)))
    first = np.empty((len(means), len(spreads), n_items))
    second = np.empty_like(first)
    for m, mean in enumerate(means):
        for s, spread in enumerate(spreads):
            joint = likelihood * np.exp(-0.5 * ((grid - mean) / spread) ** 2) * (cell / spread)
            # Far from everything likely, the least number keeps the ratio defined.
            total = np.maximum(joint.sum(axis=1), 1e-290)
            evidence[m, s] = np.log(total).sum() - 0.5 * (mean / 2.0) ** 2 - 2.0 * math.log(spread / 1.5) ** 2
            first[m, s] = (joint * grid).sum(axis=1) / total
            second[m, s] = (joint * grid**2).sum(axis=1) / total
    weight = np.exp(evidence.ravel() - logsumexp(evidence))
    return weight, first.reshape(-1, n_items), second.reshape(-1, n_items)
