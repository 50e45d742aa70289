"""How far a learner's answers agree with each other: the one number per learner that tells the spread of abilities.

Item totals do not show how much learners differ. Pairs of answers do: where abilities are equal, two answers of one
learner are both right or both wrong as often as chance has it; the more abilities differ, the more often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, pdtr

Floats = NDArray[np.float64]

# Where learners skip items, those with fewer answers than this say nothing about agreement.
FEWEST_ANSWERS = 4
# A learner's number is rounded down to a multiple of 1 / _STEPS, so that sums are exact.
_STEPS = 1 << 20
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Agreement:
    """The sum of the learners' numbers, each in [0, 1] and in steps of 1 / 2^20; additive over learners.

    With a answers of which r are right, the mean over pairs of answers of +1 (alike) or -1 (not) is
    u = ((2r - a)^2 - a) / (a (a - 1)), at least -1 / (a - 1). A learner with at least `fewest` answers adds
    (u - least) / (1 - least), where least = -1 / (fewest - 1); others add what u = 0 adds.
    """

    steps: int
    fewest: int

    @classmethod
    def of(cls, correct: NDArray[np.int8], *, complete: bool) -> Agreement:
        """Of a matrix of learners by items (1 right, 0 wrong, below 0 skipped), two items or more.

        `complete` is a public fact: every learner has an answer to every item, so no answer decides about `fewest`.
        """
        fewest = fewest_answers(correct.shape[1], complete=complete)
        right = np.count_nonzero(correct > 0, axis=1).astype(np.float64)
        n_answers = np.count_nonzero(correct >= 0, axis=1).astype(np.float64)
        enough = n_answers >= fewest
        pairs = np.where(enough, n_answers * (n_answers - 1.0), 1.0)
        alike = np.where(enough, ((2.0 * right - n_answers) ** 2 - n_answers) / pairs, 0.0)
        number = np.clip((alike - _least(fewest)) / (1.0 - _least(fewest)), 0.0, 1.0)
        return cls(int(np.floor(number * _STEPS).astype(np.int64).sum()), fewest)

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.steps + other.steps, self.fewest)

    @property
    def whole(self) -> int:
        """The sum, rounded down: one learner replaced moves it by at most 1.

        The steps move by at most 2^20, and numbers that differ by at most 2^20 have quotients that differ by at most 1.
        """
        return self.steps // _STEPS


def fewest_answers(n_items: int, *, complete: bool) -> int:
    """How many answers a learner needs to have agreement; all items, where every learner answered all."""
    return n_items if complete else min(FEWEST_ANSWERS, n_items)


def _least(fewest: int) -> float:
    return -1.0 / (fewest - 1)


def expected_agreement(
    difficulty: Floats,
    variance: Floats,
    sd: float,
    *,
    guess: Floats,
    answers: Floats,
    n_learners: int,
    fewest: int,
) -> tuple[float, float]:
    """Mean and variance of `Agreement.whole` if abilities are N(0, sd^2), and items as found.

    `variance` is the doubt about each difficulty, `answers` the expected number of answers to each item. Given the
    ability, the mean of a learner's pairs is taken over the items as often as they are answered, and over what each
    difficulty may be (a logistic function averaged over a normal law is about a flatter one, MacKay 1992); where
    learners skip, how many have fewer answers than `fewest` is guessed (Poisson), and the guess doubted by its own
    size.
    """
    share = answers / answers.sum()
    per_learner = max(float(answers.sum()) / n_learners, 2.0)
    flatter = 1.0 / np.sqrt(1.0 + math.pi * variance / 8.0)
    chance = guess + (1.0 - guess) * expit((sd * _NODES[:, None] - difficulty) * flatter)
    sign = 2.0 * chance - 1.0
    middle = sign @ share
    alike = (middle**2 - sign**2 @ share**2) / (1.0 - share @ share)
    mean = float(_WEIGHTS @ alike)
    # Of a learner: abilities differ, and a few answers scatter around what the ability lets expect.
    spread = (1.0 - sign**2) @ share / per_learner
    scatter = float(_WEIGHTS @ (alike**2 + 4.0 * middle**2 * spread + 2.0 * spread**2)) - mean**2
    # The doubt about the difficulties moves the mean of all signs, and its square.
    slope = flatter * (_WEIGHTS @ ((chance - guess) * (1.0 - chance) / (1.0 - guess)))
    doubt = (2.0 * float(_WEIGHTS @ middle)) ** 2 * float(4.0 * (share**2 * slope**2) @ variance)
    few = 0.0 if fewest == len(difficulty) else float(pdtr(fewest - 1, per_learner))
    scale = n_learners / (1.0 - _least(fewest))
    total = scale * ((1.0 - few) * mean - _least(fewest)) - 0.5
    return total, scale**2 * (scatter / n_learners + doubt + (few * mean) ** 2) + 1.0 / 12.0
