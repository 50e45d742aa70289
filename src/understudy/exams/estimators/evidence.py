"""What an item's noisy totals tell about its difficulty, without any prior: what several schools can be weighed by.

The likelihood of `noisy_totals.py` is linearised where the difficulty is thought to be, as in a step of Fisher scoring;
the caller takes steps until that place does not move. It is computed from the noisy totals, and costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.exams.estimators.chances import FURTHEST, Answering, chance_curve
from understudy.exams.mechanisms.totals import noise_variance

Floats = NDArray[np.float64]

# Where the number of answers is not known to this many of its standard errors, one step says nothing.
_CLEAR_ANSWERS = 3.0
# Further out one learner in thousands decides; a step from there would be too long.
_FURTHEST_STEP = 7.0


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A school's noisy totals with all that their likelihood needs."""

    right: Floats
    answered: Floats
    covariance: Floats
    """Of the noise of (right, answered), the same for every item."""
    n_learners: int
    sd: float
    answering: Answering

    def linearised(self, difficulty: Floats) -> tuple[Floats, Floats]:
        """Place and variance of each item's likelihood, seen from these difficulties; nan where there is none."""
        at = np.clip(difficulty, -_FURTHEST_STEP, _FURTHEST_STEP)[:, None]
        chance, slope, variance = (part[:, 0] for part in self._right(at))
        steep = np.minimum(slope, -1e-9 * self.n_learners)
        found = at[:, 0] + (self.right - chance * self.answered) / steep
        unclear = self.unclear
        return np.where(unclear, np.nan, found), np.where(unclear, np.nan, variance / steep**2)

    def log_density(self, difficulty: Floats, between: Floats) -> Floats:
        """Of the totals at these difficulties, items by points; each item's own may differ by a variance `between`."""
        chance, slope, variance = self._right(np.clip(difficulty, -FURTHEST, FURTHEST))
        variance = variance + slope**2 * between[:, None]
        away = self.right[:, None] - chance * self.answered[:, None]
        return np.where(self.unclear[:, None], 0.0, -0.5 * (away**2 / variance + np.log(variance)))

    def stretch(self, difficulty: Floats) -> Floats:
        """How far the same totals move each difficulty, per unit of the logarithm of the spread of abilities.

        Difficulties move apart, about in proportion to themselves (Camilli 1994); here exactly, without discriminations
        that differ.
        """
        at = np.clip(difficulty, -_FURTHEST_STEP, _FURTHEST_STEP)
        change = chance_curve(1.02 * self.sd)(at) - chance_curve(self.sd / 1.02)(at)
        return np.asarray(-change / (2.0 * math.log(1.02)) / np.minimum(chance_curve(self.sd)(at, 1), -1e-9))

    @property
    def unclear(self) -> NDArray[np.bool_]:
        """Items of which noise hides how many answered."""
        return np.asarray(self.answered < _CLEAR_ANSWERS * math.sqrt(self.covariance[1, 1]))

    def _right(self, at: Floats) -> tuple[Floats, Floats, Floats]:
        """The chance of a right answer, the change of right answers with difficulty, and their variance."""
        guess = np.broadcast_to(np.asarray(self.answering.guess, dtype=np.float64), at.shape[0])[:, None]
        know, slope, within, squared = np.zeros((4, *at.shape))
        for discrimination, weight in zip(*self.answering.discriminations(), strict=True):
            curve = chance_curve(float(self.sd * discrimination))
            place = np.clip(discrimination * at, -FURTHEST, FURTHEST)
            chance, change = np.clip(curve(place), 0.0, 1.0), np.minimum(curve(place, 1), 0.0)
            know += weight * chance
            squared += weight * chance**2
            slope += weight * discrimination * change
            within -= weight * change
        chance = guess + (1.0 - guess) * know
        scatter = guess * (1.0 - guess) * (1.0 - know) + (1.0 - guess) ** 2 * within
        n_learners = float(self.n_learners)
        n = np.clip(self.answered, 1.0, n_learners)[:, None]
        between = np.maximum(chance * (1.0 - chance) - scatter, 0.0)
        variance = n * (scatter + (1.0 - n / n_learners) * between) + noise_variance(self.covariance, chance)
        # Which discrimination the item has is not known.
        variance += (n * (1.0 - guess)) ** 2 * np.maximum(squared - know**2, 0.0)
        return chance, n * (1.0 - guess) * slope, np.maximum(variance, 1e-6)
