"""How a private fit spends its budget: what goes to which statistic, and where to clip.

Everything here is computed from public numbers and from noisy totals that were paid for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.special import ndtri

from understudy.core.attacks.transcript import LearnerSums
from understudy.core.privacy.composition import analytic_rho, from_gaussians
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.mechanisms import gaussian
from understudy.core.privacy.noise import Noise, os_noise
from understudy.core.privacy.spending import SpentError
from understudy.logs.generators.private_sums import RESOLUTION, USUAL_LONGEST, Total
from understudy.logs.interactions import IntArray

Floats = NDArray[np.float64]

# Shares of the budget (rho). Chosen on simulated classrooms, never on the data at hand.
SHARES = {
    "length moments": 0.02,
    "lengths": 0.03,
    "norms": 0.02,
    "starts": 0.03,
    "totals": 0.05,
    "runs": 0.06,
    "rows": 0.18,
    "jumps": 0.20,
    "first slopes": 0.11,
    "second slopes": 0.30,
    "first curvature": 0.01,
    "second curvature": 0.01,
    "abilities": 0.01,
}
# Of a log without outcomes nothing is asked about them: statistics with one of these words in their names.
_OF_OUTCOMES = ("slopes", "curvature", "abilities", "successes", "practice")
# What finding the vocabulary takes from all others when it is not public. On simulated classrooms (100 to 1,500
# learners, 40 and 200 actions, epsilon 8) 0.3 brought everything closer than 0.2 and 0.1: what has no name is worth
# little.
VOCABULARY_SHARE = 0.30

# What the accounting rests on: no more noisy integers than this in all, none with less noise than
# this many lattice steps. Both are far from what a fit uses, and both are checked.
MOST_CELLS = 1_000_000
LEAST_SIGMA = 2.0**15

# Clipping moves less mass than it takes: learners who are clipped do much the same as others.
CLIPPED_MATTERS = 0.35
# An allowance: what leaving rows out moves the success rate by, for each share of rows that is left out. On ASSISTments
# 2009 and 2017 and on two simulated classrooms, at limits from 5 to 500 rows, it was 0.065 at the most.
LONG_ARE_OTHER = 0.15
# What is stated allows for more: those with the longest sequences may succeed at half as many attempts, or twice.
LONG_MAY_BE_OTHER = 0.5


# Sequences longer than the usual ones are read if so many standard deviations of the noise say that there are any.
LONG_STANDS_OUT = 3.5


@dataclass(frozen=True)
class Noisy:
    """A noisy total in its own units, with the standard deviation of its noise."""

    values: Floats
    sigma: float | Floats

    @property
    def largest_sigma(self) -> float:
        """The one that all entries share, or the largest of theirs."""
        return float(np.max(self.sigma))


@lru_cache
def budget(epsilon: float, delta: float) -> float:
    """The rho that discrete Gaussians on a fine lattice may spend in all for (epsilon, delta)."""
    return analytic_rho(epsilon, delta, n_cells=MOST_CELLS, sigma=LEAST_SIGMA)


def stated(epsilon: float, delta: float, mechanism: str) -> Guarantee:
    """The guarantee of spending that budget."""
    rho = budget(epsilon, delta)
    return from_gaussians(rho, epsilon, delta, (mechanism,), n_cells=MOST_CELLS, sigma=LEAST_SIGMA)


def of_actions(shares: dict[str, float]) -> dict[str, float]:
    """The shares of statistics that need no outcomes; those of the others are divided among them."""
    return {name: share for name, share in shares.items() if not set(name.split()) & set(_OF_OUTCOMES)}


class Spending:
    """A budget of `rho`, of which each statistic takes its share once."""

    exact: ClassVar[bool] = False
    """Whether sums are released as they are."""

    def __init__(
        self, rho: float, noise: Noise, *, vocabulary: bool, shares: dict[str, float] = SHARES
    ) -> None:
        self.rho = rho
        self.released: dict[str, Noisy] = {}
        self._noise = noise
        self._n_cells = 0
        rest = 1.0 - VOCABULARY_SHARE if vocabulary else 1.0
        total = sum(shares.values())
        self._shares = {name: rest * share / total for name, share in shares.items()}
        if vocabulary:
            self._shares["vocabulary"] = VOCABULARY_SHARE

    def rho_of(self, name: str) -> float:
        """What a statistic may spend."""
        return self.rho * self._shares[name]

    def spend(self, name: str, *totals: Total) -> list[Noisy]:
        """Add noise to totals that share a budget equally; a budget can be spent once."""
        rho = self.rho_of(name) / len(totals)
        del self._shares[name]
        released = []
        for number, total in enumerate(totals):
            self._n_cells += total.values.size
            if self._n_cells > MOST_CELLS or total.sensitivity / sqrt(2.0 * rho) < LEAST_SIGMA:
                # How many candidates there are for names that are found is known to nobody: the charge stays.
                raise SpentError(
                    "the accounting does not cover so many cells or so fine a noise.",
                    hint="declare names and categories, or use a smaller epsilon.",
                )
            noisy = gaussian(total.values, sensitivity=total.sensitivity, rho=rho, noise=self._noise)
            sigma = total.step * (total.sensitivity / sqrt(2.0 * rho))
            released.append(Noisy(noisy.astype(np.float64) * total.step, sigma))
            self.released[f"{name} {number}"] = released[-1]
        return released

    @property
    def unspent(self) -> list[str]:
        """Statistics that were not paid for yet."""
        return list(self._shares)


class Exact(Spending):
    """Spends nothing, and adds no noise: for baselines, about which nothing is proved."""

    exact = True

    def __init__(self, shares: dict[str, float]) -> None:
        super().__init__(inf, os_noise(), vocabulary=False, shares=shares)

    def spend(self, name: str, *totals: Total) -> list[Noisy]:
        """The sums as they are; what little noise is stated keeps formulas that divide by it finite."""
        del self._shares[name]
        return [Noisy(total.values.astype(np.float64) * total.step, 1e-9) for total in totals]


class Replay(Spending):
    """Spends nothing: gives out noisy sums that were released, and notes what each learner of another log adds to them.

    It is what an attacker does who saw the noisy sums.
    """

    def __init__(
        self,
        rho: float,
        released: dict[str, Noisy],
        *,
        vocabulary: bool,
        shares: dict[str, float] = SHARES,
    ) -> None:
        super().__init__(rho, os_noise(), vocabulary=vocabulary, shares=shares)
        self.released = released
        self._added: dict[str, Total] = {}

    def spend(self, name: str, *totals: Total) -> list[Noisy]:
        """The noisy sums of before."""
        names = [f"{name} {number}" for number in range(len(totals))]
        del self._shares[name]
        self._added.update(zip(names, totals, strict=True))
        return [self.released[each] for each in names]

    def skip(self, name: str) -> None:
        """Leave a statistic out: it is known otherwise."""
        del self._shares[name]

    def learner_sums(self, n_learners: int) -> LearnerSums:
        """What each learner adds, and what was released, both in units of the noise."""
        added, released = [], []
        for name, total in self._added.items():
            assert total.parts is not None
            noisy = self.released[name]
            unit = np.broadcast_to(total.step / noisy.sigma, total.values.shape)
            learner, column, lattice = total.parts
            added.append(csr_array((lattice * unit[column], (learner, column)), (n_learners, len(unit))))
            released.append(noisy.values / noisy.sigma)
        return LearnerSums(csr_array(hstack(added)), np.concatenate(released))


def choose_norm(
    sizes: Floats,
    learners: Floats,
    mass: float,
    n_columns: int,
    rho: float,
    matters: float = CLIPPED_MATTERS,
) -> float:
    """The clipping norm that balances what clipping loses with the noise it takes.

    `learners` (noisy) says how many learners have vectors of each size, `mass` what all entries sum
    to. The loss is the share of the sizes beyond the norm, times how much that matters; the noise is that of n_columns
    entries.
    """
    size = max(float((learners * sizes).sum()), 1e-9)
    # So fine that a forecast is smooth in epsilon.
    norms = np.geomspace(max(1.0, sizes[0]), sizes[-1], 240)
    lost = (learners * np.maximum(sizes - norms[:, None], 0.0)).sum(axis=1) / size
    noise = 0.4 * n_columns * norms / sqrt(rho) / max(mass, 1.0)
    return float(norms[np.argmin(matters * lost + noise)])


def slope_norm(n_learners: int, rho: float) -> float:
    """Norm of what a learner's outcomes say about difficulties: the less noise, the more it may be.

    Both numbers are public. At 4, with 3,000 learners and rho 1/2, what clipping and what noise do are in balance on
    ASSISTments 2009; 2.5 and 10 are as far as simulated classrooms were tried.
    """
    return min(max(4.0 * sqrt(n_learners * sqrt(2.0 * rho) / 3000.0), 2.5), 10.0)


def choose_longest(learners: Floats, sigma: float, edges: IntArray) -> int:
    """How many rows of a learner are read: the usual number, or more if sequences beyond it stand out from the noise.

    `learners` (noisy) has how many learners there are in each bin of lengths. Those of a bin and all above it are
    summed up, with the noise of so many bins; the last bin for which the sum stands out is the last one to be read.
    More rows than learners have would let the noise invent longer sequences.
    """
    beyond = np.cumsum(learners[::-1])[::-1]
    noise = sigma * np.sqrt(np.arange(len(learners), 0, -1))
    read = (beyond > LONG_STANDS_OUT * noise) | (edges[:-1] < USUAL_LONGEST)
    return int(edges[1 + np.flatnonzero(read)[-1]]) - 1


def choose_most_rows(length_law: Floats, n_learners: int, rho: float) -> tuple[float, float]:
    """The number of rows up to which a learner counts in the totals, and how far the success rate is then off.

    More rows need more noise; fewer leave long sequences out, whose learners succeed at other rates. The
    error that is stated is two standard deviations of the noise, and what is left out times `LONG_MAY_BE_OTHER`.
    """
    rows = np.arange(1, len(length_law) + 1)
    most = np.unique(np.geomspace(1, len(length_law), 60).astype(np.int64))
    counted = np.array([length_law @ np.minimum(rows, limit) for limit in most])
    # The rate r of s successes and f failures moves by ((1 - r) ds - r df) / (s + f), whatever r is.
    noise = most * sqrt(3.0 / (2.0 * rho)) / (n_learners * counted)
    left_out = 1.0 - counted / counted[-1]
    best = int(np.argmin(2.0 * noise + LONG_ARE_OTHER * left_out))
    return float(most[best]), float(min(2.0 * noise[best] + LONG_MAY_BE_OTHER * left_out[best], 1.0))


def vocabulary_threshold(sigma: float, delta: float, most: int) -> float:
    """The noisy count above which an action's name may be released.

    A learner with m actions adds 1 / sqrt(m) to each, m <= `most`. An action that only this learner did is released
    with probability at most p = Phi((1 / sqrt(m) - t) / sigma) at the threshold t, one lattice step aside: the
    discrete Gaussian at k or beyond has no more than the continuous one beyond k - 1, since each term
    exp(-k^2 / (2 sigma^2)) is below the integral up to k, and the normaliser is at least sigma sqrt(2 pi) (Canonne,
    Kamath and Steinke 2020). Noise is independent, so one of them or more is released with 1 - (1 - p)^m at most;
    that stays below delta.
    """
    own = np.arange(1, most + 1)
    chance = -np.expm1(np.log1p(-delta) / own)
    return float(np.max(1.0 / np.sqrt(own) - sigma * ndtri(chance))) + 1.0 / RESOLUTION
