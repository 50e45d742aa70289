"""LinearPosterior: all memberships at once, from statistics of a release that are linear in who was in.

The attacker's story: a release shows many numbers, and each moves a little with every learner who was in. The
attacker knows by how much (the contributions), and learns from shadows how much of that arrives in a release and
how noisy it is. Then all memberships are estimated together, so that what one member explains is not charged to
another learner as well.

The model: statistic k of a release is

    y_k = e_k + b_k sum over i of (m_i - p) v_ik + noise of variance s_k^2

with memberships m_i of mean p and variance p (1 - p), learner i's contribution v_ik, and a slope b_k that all
statistics of a kind share. Under a normal prior of the same mean and variance the posterior mean of m - p solves

    (I / (p (1 - p)) + A A') u = A r,   A = v b / s,   r = (y - e) / s

which conjugate gradients do in a few passes over the contributions: linear in the size of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Kinds = NDArray[np.int64]

# Shadows that the typical noise of a kind counts for, when the noise of one statistic is estimated.
PRIOR_SHADOWS = 3
TINY = 1e-18


class LinearPosterior:
    """Expected statistics, slopes and noise, ready to judge any release made from a share `share` of the learners."""

    def __init__(
        self, contributions: Any, share: float, expected: Floats, slope: Floats, variance: Floats
    ) -> None:
        self._expected = expected
        self._spread = np.sqrt(variance)
        self._weights = slope / self._spread
        self._contributions = aslinearoperator(contributions)
        self._prior = max(share * (1.0 - share), 1e-6)

    @classmethod
    def from_shadows(
        cls, contributions: Any, kind: Kinds, share: float, member: Flags, statistics: Floats
    ) -> LinearPosterior:
        """Learned from shadows: `member` is shadows x learners, `statistics` shadows x statistics."""
        moved = _moved(contributions, member, share)
        middle, centred = moved.mean(axis=0), moved - moved.mean(axis=0)
        found = statistics - statistics.mean(axis=0)
        slope = np.zeros(found.shape[1])
        variance = found.var(axis=0, ddof=1) + TINY
        # The first round weighs statistics by their whole spread, the second by their noise.
        for _ in range(2):
            for one in np.unique(kind):
                mine = kind == one
                moves, finds = centred[:, mine], found[:, mine]
                signal = float(np.sum(moves * finds / variance[mine]))
                slope[mine] = max(0.0, signal / (float(np.sum(moves**2 / variance[mine])) + TINY))
            noise = ((found - slope * centred) ** 2).sum(axis=0) / max(len(found) - 2, 1)
            for one in np.unique(kind):
                mine = kind == one
                typical = PRIOR_SHADOWS * np.median(noise[mine])
                variance[mine] = (len(found) * noise[mine] + typical) / (len(found) + PRIOR_SHADOWS) + TINY
        expected = statistics.mean(axis=0) - slope * middle
        return cls(contributions, share, expected, slope, variance)

    @classmethod
    def from_release(
        cls, contributions: Any, spread: Floats, kind: Kinds, share: float, real: Floats, released: Floats
    ) -> LinearPosterior:
        """For a release of unknown making: `real` are the statistics of all learners.

        `spread` is the variance that the choice of members gives each statistic, p (1 - p) sum of v_ik^2.
        The slope is taken to be 1, as of a faithful generator. What the statistics of a kind stray from the real
        ones, beyond what the choice of members explains, is its noise; never less than half as much again.
        """
        spread = spread + TINY
        strayed = (released - real) ** 2 / spread
        variance = np.empty(len(real))
        for one in np.unique(kind):
            mine = kind == one
            variance[mine] = spread[mine] * max(float(strayed[mine].mean()) - 1.0, 0.5)
        return cls(contributions, share, real, np.ones(len(real)), variance)

    def scores(self, statistics: Floats) -> Floats:
        """The posterior mean of each membership less its prior mean."""
        evidence = self._contributions @ (self._weights * (statistics - self._expected) / self._spread)
        n_learners = len(evidence)

        def product(u: Floats) -> Floats:
            seen = self._weights**2 * self._contributions.rmatvec(u)
            applied: Floats = u / self._prior + self._contributions @ seen
            return applied

        system = LinearOperator((n_learners, n_learners), matvec=product, dtype=np.float64)
        mean: Floats = cg(system, evidence, rtol=1e-6, maxiter=500)[0]
        return mean


def _moved(contributions: Any, member: Flags, share: float) -> Floats:
    """How far each set of members moves the statistics: sets x statistics."""
    moved: Floats = aslinearoperator(contributions).rmatmat((member - share).T).T
    return moved
