"""Noisy item totals: the one place where private difficulties touch the learners, and what it costs.

Which noise is added follows from public numbers only (items, answers per learner, epsilon,
delta, and what a missing answer means), never from the answers. Everything that is computed
from the noisy totals afterwards is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.composition import analytic_rho, from_gaussians
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.mechanisms import gaussian, knorm_cube, knorm_hexagon, laplace
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.noise_moments import cube_variance, hexagon_covariance, laplace_variance
from understudy.errors import UsageError
from understudy.exams.responses import ItemTotals

Floats = NDArray[np.float64]

# What a missing answer means: wrong, as in an exam; or that the learner was not asked.
Missing = Literal["wrong", "skipped"]

# Steps of the lattice on which Gaussian noise is drawn, per answer: so fine that the proof for
# the discrete Gaussian costs next to nothing, see `analytic_delta`.
_STEPS = 1024
_LEAST_SIGMA = 64.0


@dataclass(frozen=True, eq=False)
class NoisyTotals:
    """Per item: how many were right, and how many answered, each with noise.

    `covariance` is that of the noise of (correct, answered), the same for every item. Where
    every item counts for everybody, `answered` is the public number of learners, without noise.
    """

    correct: Floats
    answered: Floats
    covariance: Floats
    n_learners: int


class Measurement(Protocol):
    """A mechanism that releases item totals once."""

    @property
    def name(self) -> str:
        """What the guarantee calls it."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about the noisy totals."""
        ...

    @property
    def covariance(self) -> Floats:
        """Covariance of the noise of an item's (correct, answered)."""
        ...

    @property
    def at_most(self) -> int | None:
        """How many answers of a learner may enter the totals; None for any number."""
        ...

    def measure(self, totals: ItemTotals, noise: Noise) -> NoisyTotals:
        """The totals with noise."""
        ...


@dataclass(frozen=True)
class Cube:
    """`knorm_cube` on the totals of right answers, for when a missing answer is wrong: epsilon-DP."""

    n_items: int
    epsilon: float
    name: str = "K-norm mechanism over the cube on item totals"
    at_most: int | None = None

    @property
    def guarantee(self) -> Guarantee:
        """A learner adds a vector of {0, 1}^I: see `knorm_cube` for the proof."""
        return Guarantee(self.epsilon, mechanisms=(self.name,))

    @cached_property
    def covariance(self) -> Floats:
        """Noise on right answers only."""
        return np.diag([cube_variance(self.n_items, self.epsilon), 0.0])

    def measure(self, totals: ItemTotals, noise: Noise) -> NoisyTotals:
        """See `Measurement.measure`."""
        noisy = knorm_cube(totals.correct, epsilon=self.epsilon, noise=noise)
        return _complete(noisy.astype(np.float64), self.covariance, totals.n_learners)


@dataclass(frozen=True)
class Hexagon:
    """`knorm_hexagon` on (right, answered) of each item, with any number of answers: epsilon-DP."""

    n_items: int
    epsilon: float
    name: str = "K-norm mechanism over the hexagon on (right, answered) totals"
    at_most: int | None = None

    @property
    def guarantee(self) -> Guarantee:
        """A learner adds (0, 0), (0, 1) or (1, 1) to each item: see `knorm_hexagon` for the proof."""
        return Guarantee(self.epsilon, mechanisms=(self.name,))

    @cached_property
    def covariance(self) -> Floats:
        """Noise on both."""
        return hexagon_covariance(self.n_items, self.epsilon)

    def measure(self, totals: ItemTotals, noise: Noise) -> NoisyTotals:
        """See `Measurement.measure`."""
        pairs = np.stack([totals.correct, totals.answered], axis=1)
        noisy = knorm_hexagon(pairs, epsilon=self.epsilon, noise=noise).astype(np.float64)
        return NoisyTotals(noisy[:, 0], noisy[:, 1], self.covariance, totals.n_learners)


@dataclass(frozen=True)
class RightAndWrong:
    """Laplace noise on (right, wrong) of each item, at most `at_most` answers a learner: epsilon-DP.

    A learner adds a vector of {0, 1}^(2I) with at most m ones. One learner replaced by
    another: at most m ones go and m ones come, so the L1 norm moves by at most 2m.
    """

    n_items: int
    at_most: int
    epsilon: float
    name: str = "discrete Laplace mechanism on (right, wrong) totals"

    @property
    def guarantee(self) -> Guarantee:
        """See `laplace` for the proof."""
        return Guarantee(self.epsilon, mechanisms=(self.name,))

    @cached_property
    def covariance(self) -> Floats:
        """Of (right, right + wrong) with independent noise on right and wrong."""
        return _from_right_and_wrong(laplace_variance(2.0 * self.at_most, self.epsilon))

    def measure(self, totals: ItemTotals, noise: Noise) -> NoisyTotals:
        """See `Measurement.measure`."""
        cells = np.stack([totals.correct, totals.answered - totals.correct], axis=1)
        noisy = laplace(cells, sensitivity=2.0 * self.at_most, epsilon=self.epsilon, noise=noise)
        return _summed(noisy.astype(np.float64), self.covariance, totals.n_learners)


@dataclass(frozen=True)
class GaussianTotals:
    """Gaussian noise on the totals of right answers, for when a missing answer is wrong.

    One learner replaced moves each total by at most 1, all of them by at most sqrt(I) in the L2
    norm. The noise is drawn on a lattice of steps far smaller than one answer.
    """

    n_items: int
    epsilon: float
    delta: float
    name: str = "discrete Gaussian mechanism on item totals"
    at_most: int | None = None

    @cached_property
    def _rho(self) -> float:
        return _rho(self.epsilon, self.delta, self.n_items)

    @property
    def guarantee(self) -> Guarantee:
        """See `gaussian` and `analytic_delta` for the proof."""
        return _gaussian_guarantee(self._rho, self.epsilon, self.delta, self.name, self.n_items)

    @cached_property
    def covariance(self) -> Floats:
        """Noise on right answers only."""
        return np.diag([self.n_items / (2.0 * self._rho), 0.0])

    def measure(self, totals: ItemTotals, noise: Noise) -> NoisyTotals:
        """See `Measurement.measure`."""
        noisy = _gaussian(totals.correct, math.sqrt(self.n_items), self._rho, noise)
        return _complete(noisy, self.covariance, totals.n_learners)


@dataclass(frozen=True)
class GaussianRightAndWrong:
    """Gaussian noise on (right, wrong) of each item, at most `at_most` answers a learner.

    As in `RightAndWrong` at most 2m cells move, by 1 each: the L2 norm by at most sqrt(2m).
    """

    n_items: int
    at_most: int
    epsilon: float
    delta: float
    name: str = "discrete Gaussian mechanism on (right, wrong) totals"

    @cached_property
    def _rho(self) -> float:
        return _rho(self.epsilon, self.delta, 2 * self.n_items)

    @property
    def guarantee(self) -> Guarantee:
        """See `gaussian` and `analytic_delta` for the proof."""
        return _gaussian_guarantee(self._rho, self.epsilon, self.delta, self.name, 2 * self.n_items)

    @cached_property
    def covariance(self) -> Floats:
        """Of (right, right + wrong) with independent noise on right and wrong."""
        return _from_right_and_wrong(self.at_most / self._rho)

    def measure(self, totals: ItemTotals, noise: Noise) -> NoisyTotals:
        """See `Measurement.measure`."""
        cells = np.stack([totals.correct, totals.answered - totals.correct], axis=1)
        noisy = _gaussian(cells, math.sqrt(2.0 * self.at_most), self._rho, noise)
        return _summed(noisy, self.covariance, totals.n_learners)


def choose_measurement(
    method: str, *, n_items: int, missing: Missing, at_most: int | None, epsilon: float, delta: float
) -> Measurement:
    """The mechanism with the smallest predicted error; `method` is knorm (pure epsilon) or gaussian."""
    most = n_items if at_most is None else min(at_most, n_items)
    if most < 1:
        raise UsageError(
            f"at most {at_most} answers of a learner leave nothing to count.", hint="give at least 1."
        )
    candidates: list[Measurement]
    if missing == "wrong":
        candidates = [
            Cube(n_items, epsilon) if method == "knorm" else GaussianTotals(n_items, epsilon, delta)
        ]
    elif method == "knorm":
        candidates = [Hexagon(n_items, epsilon), RightAndWrong(n_items, most, epsilon)]
    else:
        candidates = [GaussianRightAndWrong(n_items, most, epsilon, delta)]
    return min(candidates, key=predicted_variance)


def predicted_variance(measurement: Measurement) -> float:
    """Variance that the noise adds to right - chance * answered, averaged over chances from 0 to 1.

    That difference is what a difficulty is estimated from, see `estimate.py`.
    """
    chance = np.linspace(0.0, 1.0, 101)
    return float(noise_variance(measurement.covariance, chance).mean())


def noise_variance(covariance: Floats, chance: Floats) -> Floats:
    """Variance of the noise in right - chance * answered."""
    return np.asarray(
        covariance[0, 0] - 2.0 * chance * covariance[0, 1] + chance**2 * covariance[1, 1], dtype=np.float64
    )


def _complete(correct: Floats, covariance: Floats, n_learners: int) -> NoisyTotals:
    return NoisyTotals(correct, np.full(len(correct), float(n_learners)), covariance, n_learners)


def _summed(cells: Floats, covariance: Floats, n_learners: int) -> NoisyTotals:
    return NoisyTotals(cells[:, 0], cells.sum(axis=1), covariance, n_learners)


def _from_right_and_wrong(variance: float) -> Floats:
    return variance * np.array([[1.0, 1.0], [1.0, 2.0]])


@lru_cache
def _rho(epsilon: float, delta: float, n_cells: int) -> float:
    return analytic_rho(epsilon, delta, n_cells=n_cells, sigma=_LEAST_SIGMA)


def _gaussian_guarantee(rho: float, epsilon: float, delta: float, name: str, n_cells: int) -> Guarantee:
    return from_gaussians(rho, epsilon, delta, (name,), n_cells=n_cells, sigma=_LEAST_SIGMA)


def _gaussian(counts: NDArray[np.int64], sensitivity: float, rho: float, noise: Noise) -> Floats:
    if _STEPS * sensitivity / math.sqrt(2.0 * rho) < _LEAST_SIGMA:
        raise UsageError(
            "the accounting of Gaussian noise does not cover so large an epsilon.",
            hint="choose an epsilon below 100, or -m knorm.",
        )
    noisy = gaussian(counts * _STEPS, sensitivity=sensitivity * _STEPS, rho=rho, noise=noise)
    return noisy.astype(np.float64) / _STEPS
