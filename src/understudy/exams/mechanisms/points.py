"""Noisy shares of points: the one place where private difficulties of items with points touch the learners.

A learner adds to each item the share of its points that they have, a number in [0, 1], and to two more sums a number
in [0, 1] each: how far their answers agree (`agreement.py`, with shares for right and wrong), and how often they have a
part of the points rather than all or none. One learner replaced moves each sum by at most 1, and so each sum rounded
down, which is what gets noise. So all that is proved for totals of right answers (`totals.py`) holds.

A histogram of points per item would tell more, but one learner moves two cells of each item, and there are as many
times more cells as an item has steps: its noise is that many times larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.exams.mechanisms.totals import Measurement, cube, gaussian_right, whole_sums
from understudy.exams.responses import Points, Responses

Floats = NDArray[np.float64]

# Of so many items one more is measured for agreement, and one for parts of points.
_ITEMS_PER_CELL = 20


@dataclass(frozen=True, eq=False)
class NoisyPoints:
    """Sums over learners with noise of this variance: shares of points by item, agreement, parts of points.

    The last two are means of cells that measure the same, and None where there are no such cells.
    """

    shares: Floats
    agreement: float | None
    parts: float | None
    variance: float
    agreement_variance: float
    parts_variance: float
    n_learners: int


@dataclass(frozen=True, eq=False)
class PointsMeasurement:
    """A mechanism that releases shares of points once; what is missing has no points."""

    inner: Measurement
    agreement_cells: int
    parts_cells: int

    @property
    def name(self) -> str:
        """What stands in the guarantee."""
        return self.inner.name.replace("item totals", "shares of points")

    @property
    def guarantee(self) -> Guarantee:
        """What is proved."""
        return replace(self.inner.guarantee, mechanisms=(self.name,))

    def release(self, responses: Responses, noise: Noise) -> NoisyPoints:
        """The sums of the responses with noise."""
        assert responses.points is not None
        steps = np.maximum(responses.correct, 0)
        cells = share_totals(steps, responses.points)
        # Without cells there may be nothing to take a mean over: one item has no pairs, right and wrong no parts.
        for n_cells, of_learners in ((self.agreement_cells, agreement), (self.parts_cells, parts)):
            if n_cells:
                whole = _whole(of_learners(steps, responses.points))
                cells = np.concatenate([cells, np.full(n_cells, whole)])
        noisy = self.inner.add_noise(cells, noise).astype(np.float64)
        n_items, variance = responses.n_items, float(self.inner.covariance[0, 0])
        behind = n_items + self.agreement_cells
        return NoisyPoints(
            noisy[:n_items],
            float(noisy[n_items:behind].mean()) if self.agreement_cells else None,
            float(noisy[behind:].mean()) if self.parts_cells else None,
            variance,
            variance / max(self.agreement_cells, 1),
            variance / max(self.parts_cells, 1),
            responses.n_learners,
        )


def choose_points_measurement(
    method: str, points: tuple[Points, ...], *, epsilon: float, delta: float, agreement: bool
) -> PointsMeasurement:
    """The mechanism for these items; `method` is knorm (pure epsilon) or gaussian. Only public numbers decide."""
    cells = max(1, round(len(points) / _ITEMS_PER_CELL))
    agreement_cells = cells if agreement and len(points) > 1 else 0
    parts_cells = cells if any(item.steps > 1 for item in points) else 0
    size = len(points) + agreement_cells + parts_cells
    inner = cube(size, epsilon) if method == "knorm" else gaussian_right(size, epsilon, delta)
    return PointsMeasurement(inner, agreement_cells, parts_cells)


def share_totals(steps: NDArray[np.int8], points: tuple[Points, ...]) -> NDArray[np.int64]:
    """Per item the sum of the learners' shares of its points, rounded down.

    The sum of steps moves by at most the item's number of steps, and numbers that differ by at most m have quotients
    by m that differ by at most 1.
    """
    return np.asarray(steps.sum(axis=0, dtype=np.int64) // _most(points))


def agreement(steps: NDArray[np.int8], points: tuple[Points, ...]) -> Floats:
    """Per learner, in [0, 1]: the mean over pairs of items of y_i y_j, y = 2 share - 1, from its least to 1.

    That mean is ((sum y)^2 - sum y^2) / (I (I - 1)), at least -1 / (I - 1) as y^2 is at most 1.
    """
    signs = 2.0 * steps / _most(points) - 1.0
    n_items = len(points)
    alike = (signs.sum(axis=1) ** 2 - (signs**2).sum(axis=1)) / (n_items * (n_items - 1.0))
    least = -1.0 / (n_items - 1.0)
    return np.asarray(np.clip((alike - least) / (1.0 - least), 0.0, 1.0))


def parts(steps: NDArray[np.int8], points: tuple[Points, ...]) -> Floats:
    """Per learner, in [0, 1]: the mean over items with more than one step of 4 share (1 - share)."""
    most = _most(points)
    graded = most > 1
    share = steps[:, graded] / most[graded]
    return np.asarray(np.clip((4.0 * share * (1.0 - share)).mean(axis=1), 0.0, 1.0))


def _whole(numbers: Floats) -> int:
    """The sum of numbers in [0, 1], rounded down: one of them replaced moves it by at most 1."""
    return int(whole_sums(numbers))


def _most(points: tuple[Points, ...]) -> NDArray[np.int64]:
    return np.array([item.steps for item in points], dtype=np.int64)
