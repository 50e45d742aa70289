"""Noisy item totals: the one place where private difficulties touch the learners, and what it costs.

Which noise is added follows from public numbers only (items, answers per learner, epsilon,
delta, and what a missing answer means), never from the answers. Everything that is computed
from the noisy totals afterwards is post-processing.

How far learners' answers agree (`agreement.py`) is measured along with the items: it is the total of a few more items,
all alike, that every learner answers. A learner adds at most 1 to it, as to any item, so every proof below holds with
these items among the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from understudy.core.privacy.composition import analytic_rho, from_gaussians
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.mechanisms import gaussian, knorm_cube, knorm_hexagon, laplace
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.noise_moments import cube_variance, hexagon_covariance, laplace_variance
from understudy.errors import UsageError
from understudy.exams.agreement import FEWEST_ANSWERS, Agreement
from understudy.exams.noise_law import NORMAL, NoiseLaw
from understudy.exams.responses import ItemTotals, Responses

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]

# What a missing answer means: wrong, as in an exam; or that the learner was not asked.
Missing = Literal["wrong", "skipped"]

# Steps of the lattice on which Gaussian noise is drawn, per answer: so fine that the proof for
# the discrete Gaussian costs next to nothing, see `analytic_delta`.
_STEPS = 1024
_LEAST_SIGMA = 64.0

# A learner's numbers are rounded down to multiples of 1 / _FINE, so that sums of them are exact.
_FINE = 1 << 20

# Of so many items one more is measured for agreement: at 20 items the noise of all grows by a twentieth.
_ITEMS_PER_AGREEMENT_CELL = 20


@dataclass(frozen=True)
class NoisyAgreement:
    """The agreement of answers, the variance of its noise, and the fewest answers that a learner needs for it.

    `total` is the mean over the cells that measured it, without the noise that is seen; `cells` are their noisy (right,
    answered), from which a law of noise that is not normal tells more.
    """

    total: float
    variance: float
    fewest: int
    cells: Floats | None = None


@dataclass(frozen=True, eq=False)
class NoisyTotals:
    """Per item: how many were right, and how many answered, each with noise.

    `covariance` is that of the noise of (correct, answered), the same for every item, and `law` its shape. Where
    every item counts for every learner, `answered` is the public number of learners, without noise.
    """

    correct: Floats
    answered: Floats
    covariance: Floats
    n_learners: int
    agreement: NoisyAgreement | None = None
    law: NoiseLaw = NORMAL


# Which counts of an item get noise: its right answers, where a missing answer is wrong and so every learner answers;
# else right and answered, or right and wrong.
Cells = Literal["right", "right, answered", "right, wrong"]


@dataclass(frozen=True, eq=False)
class Measurement:
    """A mechanism that releases item totals once.

    `add_noise` takes the cells, `covariance` is that of the noise of an item's (correct, answered), `law` its shape,
    and `guarantee` is what is proved when no more than `at_most` answers of a learner (None: any number) enter the
    totals. The last `agreement_cells` items are the agreement of answers.
    """

    name: str
    cells: Cells
    add_noise: Callable[[IntArray, Noise], Floats | IntArray]
    covariance: Floats
    guarantee: Guarantee
    at_most: int | None = None
    agreement_cells: int = 0
    law: NoiseLaw = NORMAL

    def release(self, responses: Responses, noise: Noise) -> NoisyTotals:
        """The totals of the responses with noise, and the agreement if the mechanism has cells for it."""
        if not self.agreement_cells:
            return self.measure(responses.totals(), noise)
        return self.measure(
            responses.totals(), noise, Agreement.of(responses.correct, complete=self.cells == "right")
        )

    def measure(self, totals: ItemTotals, noise: Noise, agreement: Agreement | None = None) -> NoisyTotals:
        """The totals with noise."""
        right, answered, n_learners = totals.correct, totals.answered, totals.n_learners
        if agreement is not None:
            right = np.append(right, np.full(self.agreement_cells, agreement.whole))
            answered = np.append(answered, np.full(self.agreement_cells, n_learners))
        if self.cells == "right":
            noisy = self.add_noise(right, noise).astype(np.float64)
            both = np.stack([noisy, np.full(len(right), float(n_learners))], axis=1)
        else:
            second = answered if self.cells == "right, answered" else answered - right
            both = self.add_noise(np.stack([right, second], axis=1), noise).astype(np.float64)
            if self.cells == "right, wrong":
                both[:, 1] += both[:, 0]
        n_items = len(totals.correct)
        found = None if agreement is None else self.agreement_of(both[n_items:], n_learners, agreement.fewest)
        return NoisyTotals(both[:n_items, 0], both[:n_items, 1], self.covariance, n_learners, found, self.law)

    def agreement_of(self, cells: Floats, n_learners: int, fewest: int) -> NoisyAgreement:
        """Every learner answers these cells, so the noise of the answers is seen: what it explains is removed."""
        (_, shared), (_, other) = self.covariance
        slope = shared / other if other else 0.0
        total = (cells[:, 0] - slope * (cells[:, 1] - n_learners)).mean()
        return NoisyAgreement(float(total), self.agreement_variance, fewest, cells)

    @property
    def agreement_variance(self) -> float:
        """Variance of the noise in the mean of the agreement cells, as far as it cannot be seen."""
        (own, shared), (_, other) = self.covariance
        return float(own - (shared**2 / other if other else 0.0)) / self.agreement_cells


# Of (right, right + wrong) with independent noise of variance 1 on right and wrong.
_RIGHT_AND_WRONG = np.array([[1.0, 1.0], [1.0, 2.0]])


def cube(n_items: int, epsilon: float) -> Measurement:
    """`knorm_cube` on the totals of right answers: epsilon-DP.

    A learner adds a vector of {0, 1}^I: see `knorm_cube` for the proof.
    """
    name = "K-norm mechanism over the cube on item totals"
    return Measurement(
        name,
        "right",
        lambda counts, noise: knorm_cube(counts, epsilon=epsilon, noise=noise),
        np.diag([cube_variance(n_items, epsilon), 0.0]),
        Guarantee(epsilon, mechanisms=(name,)),
        law=NoiseLaw.cube(n_items, epsilon),
    )


def hexagon(n_items: int, epsilon: float) -> Measurement:
    """`knorm_hexagon` on (right, answered) of each item, with any number of answers: epsilon-DP.

    A learner adds (0, 0), (0, 1) or (1, 1) to each item: see `knorm_hexagon` for the proof.
    """
    name = "K-norm mechanism over the hexagon on (right, answered) totals"
    return Measurement(
        name,
        "right, answered",
        lambda counts, noise: knorm_hexagon(counts, epsilon=epsilon, noise=noise),
        hexagon_covariance(n_items, epsilon),
        Guarantee(epsilon, mechanisms=(name,)),
        law=NoiseLaw.hexagon(n_items, epsilon),
    )


def laplace_right_and_wrong(at_most: int, epsilon: float) -> Measurement:
    """Laplace noise on (right, wrong) of each item, at most `at_most` answers per learner: epsilon-DP.

    A learner adds a vector of {0, 1}^(2I) with at most m ones. One learner replaced by another: at most m ones go
    and m ones come, so the L1 norm moves by at most 2m.
    """
    name = "discrete Laplace mechanism on (right, wrong) totals"
    return Measurement(
        name,
        "right, wrong",
        lambda counts, noise: laplace(counts, sensitivity=2.0 * at_most, epsilon=epsilon, noise=noise),
        laplace_variance(2.0 * at_most, epsilon) * _RIGHT_AND_WRONG,
        Guarantee(epsilon, mechanisms=(name,)),
        at_most,
        law=NoiseLaw("laplace"),
    )


def gaussian_right(n_items: int, epsilon: float, delta: float) -> Measurement:
    """Gaussian noise on the totals of right answers.

    One learner replaced moves each total by at most 1, all of them by at most sqrt(I) in the L2 norm. See `gaussian`
    and `analytic_delta` for the proof.
    """
    return gaussian_cells(
        "discrete Gaussian mechanism on item totals",
        "right",
        math.sqrt(n_items),
        n_items,
        np.diag([1.0, 0.0]),
        epsilon,
        delta,
    )


def gaussian_right_and_wrong(n_items: int, at_most: int, epsilon: float, delta: float) -> Measurement:
    """Gaussian noise on (right, wrong) of each item, at most `at_most` answers per learner.

    As in `laplace_right_and_wrong` at most 2m cells move, by 1 each: the L2 norm by at most sqrt(2m).
    """
    measurement = gaussian_cells(
        "discrete Gaussian mechanism on (right, wrong) totals",
        "right, wrong",
        math.sqrt(2.0 * at_most),
        2 * n_items,
        _RIGHT_AND_WRONG,
        epsilon,
        delta,
    )
    return replace(measurement, at_most=at_most)


def gaussian_cells(
    name: str, cells: Cells, sensitivity: float, n_cells: int, form: Floats, epsilon: float, delta: float
) -> Measurement:
    """Noise on a lattice of steps far smaller than one answer; `form` is the covariance of noise of variance 1."""
    rho = _rho(epsilon, delta, n_cells)
    if _STEPS * sensitivity / math.sqrt(2.0 * rho) < _LEAST_SIGMA:
        raise UsageError(
            "the accounting of Gaussian noise does not cover so large an epsilon.",
            hint="choose an epsilon below 100, or the method knorm.",
        )

    def add_noise(counts: IntArray, noise: Noise) -> Floats:
        noisy = gaussian(counts * _STEPS, sensitivity=sensitivity * _STEPS, rho=rho, noise=noise)
        return noisy.astype(np.float64) / _STEPS

    guarantee = from_gaussians(rho, epsilon, delta, (name,), n_cells=n_cells, sigma=_LEAST_SIGMA)
    return Measurement(name, cells, add_noise, sensitivity**2 / (2.0 * rho) * form, guarantee)


@lru_cache
def _rho(epsilon: float, delta: float, n_cells: int) -> float:
    return analytic_rho(epsilon, delta, n_cells=n_cells, sigma=_LEAST_SIGMA)


def whole_sums(numbers: Floats) -> IntArray:
    """Sums over learners of numbers in [0, 1], rounded down: one learner replaced moves each by at most 1."""
    return np.asarray(np.floor(numbers * _FINE).astype(np.int64).sum(axis=0) // _FINE)


def choose_measurement(
    method: str,
    *,
    n_items: int,
    missing: Missing,
    at_most: int | None,
    epsilon: float,
    delta: float,
    agreement: bool = False,
) -> Measurement:
    """The mechanism with the smallest predicted error; `method` is knorm (pure epsilon) or gaussian."""
    most = n_items if at_most is None else min(at_most, n_items)
    if most < 1:
        raise UsageError(
            f"at most {at_most} answers of a learner leave nothing to count.", hint="give at least 1."
        )
    more = _agreement_cells(n_items if missing == "wrong" else most, missing) if agreement else 0
    size = n_items + more
    if missing == "wrong":
        chosen = cube(size, epsilon) if method == "knorm" else gaussian_right(size, epsilon, delta)
    elif method == "gaussian":
        chosen = gaussian_right_and_wrong(size, most + more, epsilon, delta)
    else:
        chosen = min(
            hexagon(size, epsilon), laplace_right_and_wrong(most + more, epsilon), key=predicted_variance
        )
    bound = None if chosen.at_most is None else most
    return replace(chosen, at_most=bound, agreement_cells=more)


def _agreement_cells(n_answers: int, missing: Missing) -> int:
    """How many items agreement counts for; none where learners have too few answers to agree with each other."""
    if n_answers < (2 if missing == "wrong" else FEWEST_ANSWERS):
        return 0
    return max(1, round(n_answers / _ITEMS_PER_AGREEMENT_CELL))


def predicted_variance(measurement: Measurement) -> float:
    """Variance that the noise adds to right - chance * answered, averaged over chances from 0 to 1.

    That difference is what a difficulty is estimated from, see `estimators/noisy_totals.py`.
    """
    chance = np.linspace(0.0, 1.0, 101)
    return float(noise_variance(measurement.covariance, chance).mean())


def noise_variance(covariance: Floats, chance: Floats) -> Floats:
    """Variance of the noise in right - chance * answered."""
    return np.asarray(
        covariance[0, 0] - 2.0 * chance * covariance[0, 1] + chance**2 * covariance[1, 1], dtype=np.float64
    )


# An item this many standard deviations below its chance of guessing is clearly below it; by chance so are at most
# this share of items (Laplace noise has the longest tails), and more of them than happens once in a thousand exams
# say that the declared guessing does not fit.
_CLEARLY, _BY_CHANCE, _RARE = 2.0, 0.03, 1e-3


def below_guess(totals: NoisyTotals, guess: Floats) -> int:
    """How many items were solved clearly less often than by guessing, or 0 if chance explains them.

    Post-processing of the noisy totals: right - guess * answered has mean 0 where nobody knows the answer, and more
    elsewhere.
    """
    guessed = guess > 0
    if not guessed.any():
        return 0
    answered = np.clip(totals.answered, 0.0, totals.n_learners)
    variance = noise_variance(totals.covariance, guess) + answered * guess * (1.0 - guess)
    difference = totals.correct - guess * totals.answered
    below = int(np.count_nonzero(guessed & (difference < -_CLEARLY * np.sqrt(variance))))
    return below if below and bdtrc(below - 1, int(guessed.sum()), _BY_CHANCE) < _RARE else 0
