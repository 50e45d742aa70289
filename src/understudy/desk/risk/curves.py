"""From scores to figures: false positives and negatives, mu, regret and advantage (seed, section IV-E)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

# Between these false-positive rates mu is read off; nearer to the edges a few shadows decide.
STABLE = (0.1, 0.9)
_ALPHA = np.linspace(*STABLE, 81)
_QUANTILE = ndtri(1 - _ALPHA)


@dataclass(frozen=True, eq=False)
class Curve:
    """False-positive and false-negative rates of all thresholds, the strictest first."""

    false_positive: Floats
    false_negative: Floats


def curve(inside: Floats, outside: Floats) -> Curve:
    """The curve of scores of shadows with the learner (`inside`) and without (`outside`)."""
    scores = np.concatenate([inside, outside])
    member = np.concatenate([np.ones(len(inside)), np.zeros(len(outside))])
    order = np.argsort(-scores, kind="stable")
    scores, member = scores[order], member[order]
    # One point per distinct score: ties are accepted together.
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    hits = np.cumsum(member)[last] / max(len(inside), 1)
    alarms = np.cumsum(1 - member)[last] / max(len(outside), 1)
    return Curve(np.concatenate([[0.0], alarms]), np.concatenate([[1.0], 1 - hits]))


def mu_of(inside: Floats, outside: Floats) -> float:
    """The median over the stable range of the mu that each point of the curve has.

    A point (alpha, beta) lies on the curve of mu = q(1 - alpha) - q(beta), q the standard normal quantile.
    Rates are kept half a shadow away from 0 and 1. Below 0 there is no leak, and 0 is said.
    """
    return max(0.0, signed_mu_of(inside, outside))


def signed_mu_of(inside: Floats, outside: Floats) -> float:
    """The same, below 0 where the scores are worse than guessing: what chance alone gives goes both ways."""
    found = curve(inside, outside)
    beta = np.interp(_ALPHA, found.false_positive, found.false_negative)
    half = 0.5 / max(len(inside), 1)
    return float(np.median(_QUANTILE - ndtri(np.clip(beta, half, 1 - half))))


def most_mu(n_shadows: int) -> float:
    """The largest mu that so many shadows can show: that of an answer that gives somebody away for certain.

    Rates are kept half a shadow away from 0. A learner is exactly once in exp(-1) of the shadows, and half of
    them are judged: with m of these, mu ends at q(1 - 1 / (2 m)). Beyond it nothing is told apart.
    """
    judged = max(1.0, n_shadows / 2 * math.exp(-1))
    return float(ndtri(1 - 0.5 / judged))


def regret_of(inside: Floats, outside: Floats, mu: float) -> float:
    """How far the curve lies from the Gaussian one of this mu: the largest difference of the rates."""
    found = curve(inside, outside)
    gaussian = ndtr(ndtri(1 - found.false_positive) - mu)
    return float(np.max(np.abs(found.false_negative - gaussian)))


def threshold_of(inside: Floats, outside: Floats) -> float:
    """The score from which on saying "in" wins most often, halfway to the next score below.

    Halfway, because it is applied to scores of other shadows, which are never quite the same.
    """
    scores = np.unique(np.concatenate([inside, outside]))
    gain = np.searchsorted(np.sort(outside), scores) / max(len(outside), 1)
    gain = gain - np.searchsorted(np.sort(inside), scores) / max(len(inside), 1)
    best = int(np.argmax(gain))
    return float(scores[best] if best == 0 else (scores[best] + scores[best - 1]) / 2)


def advantage_at(inside: Floats, outside: Floats, threshold: float) -> float:
    """True-positive minus false-positive rate of saying "in" from a score on (equation 19)."""
    hits, alarms = (np.count_nonzero(side >= threshold) / max(len(side), 1) for side in (inside, outside))
    return float(hits - alarms)


def points_of(inside: Floats, outside: Floats, n_points: int = 21) -> Floats:
    """The false-negative rate at evenly spaced false-positive rates, 0 and 1 among them, for a figure."""
    found = curve(inside, outside)
    # Of several points with the same false positives the last has the fewest false negatives.
    last = np.append(np.flatnonzero(np.diff(found.false_positive)), len(found.false_positive) - 1)
    grid = np.linspace(0.0, 1.0, n_points)
    return np.asarray(np.interp(grid, found.false_positive[last], found.false_negative[last]))
