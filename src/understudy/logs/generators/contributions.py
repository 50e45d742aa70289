"""What each learner contributes to a private fit: bounded by a stated norm, on an integer lattice.

Every function here bounds the contribution of a learner by looking at that learner's rows only,
and sums over learners, so totals of parts of a log add up to the total of the log. Noise is
added to these integers and to nothing else.

Under replace-one adjacency one learner's vector v is taken out and another one's, w, put in: the
total moves by w - v. With both of L2 norm at most C this is at most 2 C, and at most sqrt(2) C when
no entry is negative, since then |w - v|^2 = |w|^2 + |v|^2 - 2 <w, v> <= 2 C^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray
from understudy.logs.totals import totals

Floats = NDArray[np.float64]

# Lattice steps within a clipping norm: what rounding towards zero loses is far below the noise.
RESOLUTION = 2**18


@dataclass(frozen=True)
class Total:
    """A sum over learners on the lattice.

    `sensitivity` is the L2 distance, in lattice steps, by which replacing one learner can move
    it; `step` is what one lattice step is worth (a number, or one per entry).
    """

    values: NDArray[np.int64]
    sensitivity: float
    step: float | Floats

    def __add__(self, other: Total) -> Total:
        return Total(self.values + other.values, self.sensitivity, self.step)


def one_of(code: IntArray, n_codes: int) -> Total:
    """How many learners have each code. A learner has one: (1, 0, ...) becomes (0, 1, ...)."""
    learners = np.bincount(code, minlength=n_codes).astype(np.int64)
    # On the fine lattice like all others, where discrete noise is next to continuous.
    return Total(learners * RESOLUTION, sqrt(2.0) * RESOLUTION, 1.0 / RESOLUTION)


def clipped_counts(
    learner: IntArray, column: IntArray, count: Floats, shape: tuple[int, int], norm: float
) -> Total:
    """Sum of learners' vectors of non-negative entries, each scaled down to L2 norm `norm`."""
    values = _clipped_sum(learner, column, count, np.ones(shape[1]), shape, norm)
    return Total(values, sqrt(2.0) * RESOLUTION, norm / RESOLUTION)


def clipped_slopes(
    learner: IntArray,
    column: IntArray,
    slope: Floats,
    weight: Floats,
    shape: tuple[int, int],
    norm: float,
) -> Total:
    """Sum of learners' vectors of any sign, column j weighted by `weight[j]`, scaled to norm `norm`.

    Columns with a large weight get little noise in their own units: `step` is norm / weight.
    """
    values = _clipped_sum(learner, column, slope, weight, shape, norm)
    return Total(values, 2.0 * RESOLUTION, norm / RESOLUTION / weight)


def bounded_sum(value: Floats, most: float) -> Total:
    """Sum of one non-negative number per learner, each cut at `most`: it moves by `most` at the most."""
    lattice = np.trunc(np.clip(value, 0.0, most) * (RESOLUTION / most))
    return Total(np.array([lattice.sum()]).astype(np.int64), float(RESOLUTION), most / RESOLUTION)


def moments_of(value: Floats, most: float) -> Total:
    """Sums of one number per learner, cut to [-most, most], and of its square.

    In units of most and most^2 a learner's pair lies in [-1, 1] x [0, 1]: it moves by sqrt(2^2 + 1^2).
    """
    cut = np.clip(value, -most, most) / most
    lattice = np.trunc(np.stack([cut, cut**2]) * RESOLUTION).sum(axis=1)
    return Total(lattice.astype(np.int64), sqrt(5.0) * RESOLUTION, np.array([most, most**2]) / RESOLUTION)


def clip_factors(learner: IntArray, entry: Floats, n_learners: int, norm: float) -> Floats:
    """By how much each learner's vector is scaled down to reach `norm`; 1 where it need not be."""
    length = np.sqrt(totals(learner, entry**2, n_learners))
    factor: Floats = np.minimum(1.0, norm / np.maximum(length, 1e-12))
    return factor


def _clipped_sum(
    learner: IntArray,
    column: IntArray,
    entry: Floats,
    weight: Floats,
    shape: tuple[int, int],
    norm: float,
) -> NDArray[np.int64]:
    """Entries are (learner, column) pairs that occur once each."""
    n_learners, n_columns = shape
    weighted = entry * weight[column]
    factor = clip_factors(learner, weighted, n_learners, norm)
    # A billionth less, so that rounding errors of the floats cannot carry a vector past the norm;
    # rounding towards zero only shortens it.
    lattice = np.trunc(weighted * factor[learner] * (RESOLUTION / norm) * (1 - 1e-9))
    # Sums of integers below 2^53 are exact in floats.
    return totals(column, lattice, n_columns).astype(np.int64)
