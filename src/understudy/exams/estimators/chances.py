"""The chance that a learner drawn at random solves an item, as a function of its difficulty.

With abilities N(0, sd^2), an item of difficulty d and discrimination a, solved by guessing with chance g,

    P(d) = g + (1 - g) E[sigma(a (sd x - d))],  x standard normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

Floats = NDArray[np.float64]

# Difficulties beyond this are not distinguished from it: one answer in millions.
FURTHEST = 15.0
_BLOCK = 1024
_PLACES = np.arange(-FURTHEST - 3.0, FURTHEST + 3.0, 0.05)


@dataclass(frozen=True, eq=False)
class Answering:
    """What is declared about answers besides ability and difficulty.

    `guess` is the chance of being right without knowing, one for all items or one per item. Discriminations differ
    from item to item by `discrimination_spread`, the standard deviation of their logarithms.
    """

    guess: Floats | float = 0.0
    discrimination_spread: float = 0.0

    def discriminations(self) -> tuple[Floats, Floats]:
        """Discriminations to integrate over, and their weights."""
        if not self.discrimination_spread:
            return np.ones(1), np.ones(1)
        nodes, weights = np.polynomial.hermite_e.hermegauss(7)
        return np.exp(self.discrimination_spread * nodes), weights / weights.sum()


@lru_cache(maxsize=64)
def chance_curve(ability_sd: float) -> CubicSpline:
    """E[sigma(sd x - d)] as a function of d, for |d| up to 15 and a little beyond.

    The trapezoid rule converges at the rate exp(-2 pi^2 / step) for a logistic function, whose
    poles are pi away, so that a quarter is a fine step; the spline adds an error below 1e-8.
    """
    # Imported here: it is slow to load, and not every command needs it.
    from scipy.interpolate import CubicSpline

    step = min(0.25, ability_sd / 2.0)
    nodes = np.arange(-math.ceil(8.5 * ability_sd / step), math.ceil(8.5 * ability_sd / step) + 1) * step
    weights = np.exp(-0.5 * (nodes / ability_sd) ** 2)
    return CubicSpline(_PLACES, expit(nodes - _PLACES[:, None]) @ (weights / weights.sum()))


def difficulties_at(log_odds: Floats, ability_sd: float) -> Floats:
    """The difficulties at which a random learner's chance has these log-odds; at most `FURTHEST` and a little away."""
    chance = np.clip(chance_curve(ability_sd)(_PLACES), 1e-300, 1.0 - 1e-16)
    # From hard to easy, so that log-odds rise.
    return np.asarray(np.interp(log_odds, (np.log(chance) - np.log1p(-chance))[::-1], _PLACES[::-1]))


def mean_chances(ability: Floats, difficulty: Floats) -> Floats:
    """The mean over these abilities of the chance at each difficulty: what a learner drawn from them has.

    Learners with the same score on the same items have the same ability, so few different ones are common.
    """
    values, counts = np.unique(ability, return_counts=True)
    total = np.zeros(len(difficulty))
    for start in range(0, len(values), _BLOCK):
        block = slice(start, start + _BLOCK)
        total += counts[block] @ expit(values[block, None] - difficulty)
    return total / max(len(ability), 1)
