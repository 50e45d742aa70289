"""From scores to figures: false positives and negatives, mu, regret and advantage (seed, section IV-E)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Floats = NDArray[np.float64]

# Between these false-positive rates mu is read off; nearer to the edges a few shadows decide.
STABLE = (0.1, 0.9)


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
    found = curve(inside, outside)
    alpha = np.linspace(*STABLE, 81)
    beta = np.interp(alpha, found.false_positive, found.false_negative)
    half = 0.5 / max(len(inside), 1)
    mu = norm.ppf(1 - alpha) - norm.ppf(np.clip(beta, half, 1 - half))
    return max(0.0, float(np.median(mu)))


def regret_of(inside: Floats, outside: Floats, mu: float) -> float:
    """How far the curve lies from the Gaussian one of this mu: the largest difference of the rates."""
    found = curve(inside, outside)
    gaussian = norm.cdf(norm.ppf(1 - found.false_positive) - mu)
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
    return float(np.mean(inside >= threshold) - np.mean(outside >= threshold))
