"""Noisy totals of every declared group: the one place where a comparison of groups touches the learners.

A learner of group g adds 1 to the size of g and to the total of g of each item that they have right, and nothing to
other groups; a learner of no declared group adds nothing at all. What is missing is wrong. So a learner is a row of
{0, 1}^(G (I + 1)). Which noise is added follows from public numbers only.

How far answers of the learners in the groups agree (`agreement.py`) is measured along with that: a learner moves it by
at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.exams.agreement import Agreement
from understudy.exams.mechanisms.totals import IntArray, Measurement, cube, gaussian_cells
from understudy.exams.responses import Responses

Floats = NDArray[np.float64]

# Of so many items one cell is measured for agreement.
_ITEMS_PER_AGREEMENT_CELL = 20


@dataclass(frozen=True, eq=False)
class NoisyGroups:
    """Per group (rows): how many had each item right, and its size, each with noise of the same variance.

    `agreement` is the mean of the cells that measured it, None where the spread of abilities is declared.
    """

    right: Floats
    sizes: Floats
    variance: float
    n_learners: int
    agreement: float | None = None
    agreement_variance: float = 0.0


@dataclass(frozen=True, eq=False)
class GroupMeasurement:
    """A mechanism that releases the totals of all groups once."""

    inner: Measurement
    n_groups: int
    n_items: int
    agreement_cells: int

    @property
    def name(self) -> str:
        """What stands in the guarantee."""
        return self.inner.name.replace("item totals", "item totals and sizes of groups")

    @property
    def guarantee(self) -> Guarantee:
        """What is proved."""
        return replace(self.inner.guarantee, mechanisms=(self.name,))

    @property
    def variance(self) -> float:
        """That of the noise of every cell."""
        return float(self.inner.covariance[0, 0])

    def release(self, responses: Responses, noise: Noise) -> NoisyGroups:
        """The totals of all groups with noise."""
        assert responses.group_of is not None
        right = np.maximum(responses.correct, 0)
        cells = group_cells(right, responses.group_of, self.n_groups).ravel()
        if self.agreement_cells:
            agreement = Agreement.of(right[responses.group_of > 0], complete=True)
            cells = np.append(cells, np.full(self.agreement_cells, agreement.whole))
        noisy = self.inner.add_noise(cells, noise).astype(np.float64)
        table = noisy[: self.n_groups * (self.n_items + 1)].reshape(self.n_groups, -1)
        more = noisy[table.size :]
        return NoisyGroups(
            table[:, :-1],
            table[:, -1],
            self.variance,
            responses.n_learners,
            float(more.mean()) if len(more) else None,
            self.variance / max(len(more), 1),
        )


def group_cells(right: NDArray[np.int8], group_of: NDArray[np.int8], n_groups: int) -> IntArray:
    """Per group the totals of right answers and, last, how many learners it has; those of group 0 are in none."""
    cells = np.zeros((n_groups, right.shape[1] + 1), dtype=np.int64)
    for group in range(n_groups):
        members = group_of == group + 1
        cells[group, :-1] = right[members].sum(axis=0, dtype=np.int64)
        cells[group, -1] = np.count_nonzero(members)
    return cells


def cube_groups(n_groups: int, n_items: int, agreement_cells: int, epsilon: float) -> GroupMeasurement:
    """K-norm noise over the cube: epsilon-DP.

    One learner replaced, also by one of another group, moves every cell by at most 1: see `knorm_cube`.
    """
    size = n_groups * (n_items + 1) + agreement_cells
    return GroupMeasurement(cube(size, epsilon), n_groups, n_items, agreement_cells)


def gaussian_groups(
    n_groups: int, n_items: int, agreement_cells: int, epsilon: float, delta: float
) -> GroupMeasurement:
    """Gaussian noise: (epsilon, delta)-DP.

    A learner has at most I + 1 ones. One replaced by a learner of another group: at most I + 1 ones go and I + 1 come,
    and each cell of agreement moves by at most 1. So the L2 norm moves by at most sqrt(2 (I + 1) + k).
    """
    moved = 2 * (n_items + 1) + agreement_cells
    inner = gaussian_cells(
        "discrete Gaussian mechanism on item totals",
        "right",
        math.sqrt(moved),
        n_groups * (n_items + 1) + agreement_cells,
        np.diag([1.0, 0.0]),
        epsilon,
        delta,
    )
    return GroupMeasurement(inner, n_groups, n_items, agreement_cells)


def choose_group_measurement(
    method: str | None, n_groups: int, n_items: int, *, epsilon: float, delta: float, agreement: bool
) -> GroupMeasurement:
    """The mechanism; `method` is knorm (pure epsilon) or gaussian, None takes the one with less noise."""
    more = max(1, round(n_items / _ITEMS_PER_AGREEMENT_CELL)) if agreement else 0
    if method == "knorm":
        return cube_groups(n_groups, n_items, more, epsilon)
    gaussian = gaussian_groups(n_groups, n_items, more, epsilon, delta)
    if method == "gaussian":
        return gaussian
    return min(
        cube_groups(n_groups, n_items, more, epsilon), gaussian, key=lambda measurement: measurement.variance
    )
