"""Noisy totals that tell discriminations: the one place where a private two-parameter model touches the learners.

Totals of right answers do not show how well an item distinguishes learners. What shows it is whether those who solve it
have more of the other items right. With y = 1 for right and -1 for wrong, and t the mean of y over all other items,
times `GAIN` and clipped to [-1, 1], a learner adds (1 + y t) / 2 to a second total of each item: a number in [0, 1].
One learner replaced moves each total by at most 1, and so the total rounded down, which is what gets noise. So all
that is proved for totals of right answers (`totals.py`) holds, for twice as many items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.exams.mechanisms.totals import Measurement, cube, gaussian_right, whole_sums
from understudy.exams.responses import Responses

Floats = NDArray[np.float64]

# Means of many answers are small; so many times as large they are mostly within [-1, 1].
GAIN = 2.5
# By how much a learner's second number changes on average where the logarithm of a discrimination does, and how much
# it scatters: at discrimination 1, difficulty 1 and 20 items (0.053 with 10 items, 0.064 with 100; at difficulty 0 it
# is 0.10).
_SIGNAL, _SCATTER = 0.059, 0.14
# If the logarithm of a discrimination were known no better than this, nothing would be told: items differ by less.
MOST_ERROR = 0.5


@dataclass(frozen=True, eq=False)
class NoisyPairs:
    """Totals of right answers and of how they go with the rest, by item, with noise of this variance."""

    right: Floats
    with_rest: Floats
    variance: float
    n_learners: int


@dataclass(frozen=True, eq=False)
class DiscriminationMeasurement:
    """A mechanism that releases both totals once; what is missing is wrong."""

    inner: Measurement

    @property
    def name(self) -> str:
        """What stands in the guarantee."""
        return self.inner.name.replace("item totals", "item totals and how they go with the rest")

    @property
    def guarantee(self) -> Guarantee:
        """What is proved."""
        return replace(self.inner.guarantee, mechanisms=(self.name,))

    def expected_error(self, n_learners: int) -> float:
        """About the standard error of the logarithm of a discrimination: from public numbers."""
        variance = float(self.inner.covariance[0, 0]) + _SCATTER * n_learners
        return math.sqrt(variance) / (_SIGNAL * n_learners)

    def release(self, responses: Responses, noise: Noise) -> NoisyPairs:
        """The totals of the responses with noise."""
        right = np.maximum(responses.correct, 0)
        cells = np.concatenate([right.sum(axis=0, dtype=np.int64), whole_sums(goes_with_rest(right))])
        noisy = self.inner.add_noise(cells, noise).astype(np.float64)
        n_items = responses.n_items
        return NoisyPairs(
            noisy[:n_items], noisy[n_items:], float(self.inner.covariance[0, 0]), responses.n_learners
        )


def discrimination_measurement(
    method: str, n_items: int, *, epsilon: float, delta: float
) -> DiscriminationMeasurement:
    """The mechanism for so many items, two of them or more; `method` is knorm (pure epsilon) or gaussian."""
    size = 2 * n_items
    return DiscriminationMeasurement(
        cube(size, epsilon) if method == "knorm" else gaussian_right(size, epsilon, delta)
    )


def goes_with_rest(right: NDArray[np.int8]) -> Floats:
    """Per learner and item, in [0, 1]: (1 + y t) / 2."""
    signs = 2.0 * right - 1.0
    rest = (signs.sum(axis=1, keepdims=True) - signs) / (right.shape[1] - 1.0)
    return np.asarray(0.5 + 0.5 * signs * np.clip(GAIN * rest, -1.0, 1.0))
