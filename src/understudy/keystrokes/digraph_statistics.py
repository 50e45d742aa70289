"""Private digraph statistics: noisy counts and sums by group, with a guarantee for every learner.

Digraphs, bounds and groups are declared beforehand: taken from the data they would reveal something about learners.
Everything that depends on the data passes through one discrete Gaussian mechanism; means are computed
from its results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.words import counted
from understudy.core.privacy.composition import analytic_rho, from_gaussians
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.mechanisms import gaussian
from understudy.core.privacy.noise import Noise
from understudy.errors import DataError, UsageError
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import LONGEST, SHORTEST, count_latencies
from understudy.keystrokes.profiles import MIN_OCCURRENCES

Ints = NDArray[np.int64]

KIND = "understudy keystroke statistics"
MECHANISM = "discrete Gaussian mechanism on counts and sums over learners"

# A whole learner in steps of the lattice: fine enough that rounding is far below any noise.
ONE = 2**20
# What the accounting rests on; both are checked.
MAX_CELLS = 20_000
MIN_SIGMA = 2.0**12
# A mean divides by a noisy count; below this many standard deviations of its noise it would say nothing.
MIN_SIGNAL = 3.0


@dataclass(frozen=True)
class Declaration:
    """What is public before the data is looked at: digraphs, groups, bounds, and from how many occurrences on.

    Per digraph a learner adds (1, t) to the count and the sum of their group if they typed it `least` times
    within the bounds, and (0, 0) otherwise; t in [-1, 1] is their average latency, 0 in the middle of the bounds.
    """

    digraphs: tuple[str, ...]
    groups: tuple[str, ...]
    shortest: float = SHORTEST
    longest: float = LONGEST
    least: int = MIN_OCCURRENCES

    def __post_init__(self) -> None:
        for name, values in (("digraph", self.digraphs), ("group", self.groups)):
            if not values:
                raise UsageError(
                    f"no {name}s were declared.",
                    hint=f"name each {name}: what the data holds must not decide it.",
                )
            if len(set(values)) < len(values):
                raise UsageError(f"a {name} is declared twice.", hint="name each of them once.")
        if not 0 <= self.shortest < self.longest < math.inf:
            raise UsageError(
                f"latencies were bounded by {self.shortest:g} and {self.longest:g} ms.",
                hint="give the smaller first, such as 10 and 750.",
                settings=("shortest", "longest"),
            )
        if self.least < 1:
            raise UsageError(
                f"at least {self.least} occurrences were asked for.",
                hint="give 1 or more.",
                settings=("least",),
            )
        if self.n_cells > MAX_CELLS:
            raise UsageError(
                f"{counted(len(self.digraphs), 'digraph')} in {counted(len(self.groups), 'group')} are too many.",
                hint=f"digraphs times groups may be {MAX_CELLS // 2:,} at most.",
            )

    @property
    def n_cells(self) -> int:
        """How many noisy numbers there will be."""
        return 2 * len(self.digraphs) * len(self.groups)

    @property
    def middle(self) -> float:
        """The latency that counts as 0 in a sum."""
        return (self.shortest + self.longest) / 2

    @property
    def half(self) -> float:
        """The milliseconds that count as 1 in a sum."""
        return (self.longest - self.shortest) / 2

    @property
    def sensitivity(self) -> float:
        """How far counts and sums of all groups move together (L2) when one learner is replaced: 2 sqrt(d).

        Proof. Let d be the number of digraphs. A learner adds to the block of one group (or to none) a vector
        of d pairs, each (0, 0) or (1, t) with |t| <= 1; a pair has a squared norm of at most 2.
        If the new learner is in another group, two blocks move, each by a vector of squared norm at
        most 2 d: together 4 d. If they are in the same group, a pair moves by (0, t - t'), which is at
        most 4, or by +-(1, t), at most 2: together at most 4 d as well. Both bounds are reached. The sums are
        signed, so sqrt(2) times the largest norm, 2 sqrt(d), is not a matter of course (findings, section 6):
        it holds since the count takes half of the norm. Rounding t towards 0 keeps it in [-1, 1].
        """
        return 2.0 * math.sqrt(len(self.digraphs))


@dataclass(frozen=True)
class Release:
    """What a declaration costs, and how exact its result will be; known before anything is spent."""

    declaration: Declaration
    n_learners: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)) or not 0 < self.delta < 1:
            raise UsageError(
                f"statistics need epsilon above 0 and delta between 0 and 1; got {self.epsilon:g} and "
                f"{self.delta:.3g}.",
                hint="for example epsilon 2 and delta 1e-6.",
                settings=("epsilon", "delta"),
            )
        if self.delta * self.n_learners >= 1:
            raise UsageError(
                f"delta {self.delta:.1e} is not below one over the number of learners ({self.n_learners}).",
                hint="choose a smaller delta.",
                settings=("delta",),
            )
        if self.noise_sd * ONE < MIN_SIGMA:
            raise UsageError(
                "the accounting of Gaussian noise does not cover so large an epsilon.",
                hint="choose an epsilon below 100.",
                settings=("epsilon",),
            )

    @cached_property
    def rho(self) -> float:
        """What all counts and sums spend together."""
        return analytic_rho(self.epsilon, self.delta, n_cells=self.declaration.n_cells, sigma=MIN_SIGMA)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise, in learners; that of a sum is `half` times as many milliseconds."""
        return self.declaration.sensitivity / math.sqrt(2.0 * self.rho)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved: see `Declaration.sensitivity`, `gaussian` and `analytic_delta`."""
        return from_gaussians(
            self.rho,
            self.epsilon,
            self.delta,
            (MECHANISM,),
            n_cells=self.declaration.n_cells,
            sigma=MIN_SIGMA,
        )

    def expected_error(self, n_typed: float) -> float:
        """The noise of a mean (milliseconds) when so many learners of a group typed the digraph."""
        # At the middle of the bounds; at their ends it is sqrt(2) times as much.
        return self.declaration.half * self.noise_sd / max(n_typed, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class DigraphStatistics:
    """Noisy counts and sums, in learners, a row per group and a column per digraph; and what is proved."""

    release: Release
    guarantee: Guarantee
    count: NDArray[np.float64]
    total: NDArray[np.float64]

    @property
    def means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean latency of a group's learners who typed a digraph, and the noise of it (one standard deviation).

        nan where the count does not stand out from its noise. With T / C the ratio and s the noise of either, the
        noise of the ratio is about s sqrt(1 + (T / C)^2) / C. It is noise only: the variation between learners is
        added to it. Post-processing: costs nothing.
        """
        declared, noise = self.release.declaration, self.release.noise_sd
        credible = self.count >= MIN_SIGNAL * noise
        count = np.where(credible, self.count, np.nan)
        ratio = np.clip(self.total / count, -1.0, 1.0)
        return declared.middle + declared.half * ratio, declared.half * noise * np.sqrt(1 + ratio**2) / count

    def to_json(self) -> dict[str, Any]:
        """The release as it is written: every number has the standard deviation of its noise beside it."""
        declared, noise = self.release.declaration, self.release.noise_sd
        mean, error = self.means
        return {
            "kind": KIND,
            "guarantee": self.guarantee.to_json(),
            "n_learners": self.release.n_learners,
            "groups": list(declared.groups),
            "bounds_ms": [declared.shortest, declared.longest],
            "least_occurrences": declared.least,
            "middle_ms": declared.middle,
            "explanation": (
                "count: learners of the group who typed the digraph often enough. sum_from_middle_ms: the sum "
                "of their average latencies, each minus middle_ms. mean_ms: the mean of these averages, null "
                "where the count does not stand out from its noise. Each with the standard deviation of the "
                "noise that the guarantee needs."
            ),
            "digraphs": [
                {
                    "digraph": digraph,
                    "groups": {
                        group: {
                            "count": round(float(self.count[g, j]), 3),
                            "count_noise_sd": round(noise, 3),
                            "sum_from_middle_ms": round(float(self.total[g, j]) * declared.half, 1),
                            "sum_noise_sd": round(noise * declared.half, 1),
                            "mean_ms": _number(mean[g, j]),
                            "mean_noise_sd": _number(error[g, j]),
                        }
                        for g, group in enumerate(declared.groups)
                    },
                }
                for j, digraph in enumerate(declared.digraphs)
            ],
        }


def release_statistics(
    keystrokes: Keystrokes, group: NDArray[np.integer[Any]], release: Release, noise: Noise
) -> DigraphStatistics:
    """Noisy counts and sums; `group` is each learner's position in the declared groups, or -1 for none of them.

    Learners who typed nothing may be missing among the keystrokes: they add nothing, and count as learners.
    Adjacency: one learner with all their keystrokes and their group is replaced. With seeded noise nothing is
    guaranteed.
    """
    if len(group) != keystrokes.n_learners or release.n_learners < keystrokes.n_learners:
        raise DataError("statistics need a group, or none, for every learner of the file.")
    exact = lattice_sums(
        contributions(keystrokes, release.declaration), group, len(release.declaration.groups)
    )
    noisy = gaussian(exact, sensitivity=release.declaration.sensitivity * ONE, rho=release.rho, noise=noise)
    guarantee = release.guarantee if noise.secret else Guarantee.seeded(release.guarantee)
    return DigraphStatistics(release, guarantee, noisy[:, 0] / ONE, noisy[:, 1] / ONE)


def contributions(keystrokes: Keystrokes, declared: Declaration) -> Ints:
    """What each learner adds, of shape (learners, 2, digraphs), in steps of the lattice: (0, 0) or (ONE, ONE t).

    A learner's row is a function of their own keystrokes alone. Digraphs that no learner typed are zeros: an error
    about them would reveal that.
    """
    totals = count_latencies(
        keystrokes,
        keystrokes.learner,
        keystrokes.n_learners,
        shortest=declared.shortest,
        longest=declared.longest,
    )
    place = {name: j for j, name in enumerate(declared.digraphs)}
    # Two spellings of a key, such as Enter and a line's end, are one name.
    count = np.zeros((keystrokes.n_learners, len(place)), dtype=np.int64)
    total = np.zeros(count.shape)
    for code, name in enumerate(totals.features):
        if name in place:
            count[:, place[name]] += totals.count[:, code]
            total[:, place[name]] += totals.total[:, code]
    typed = count >= declared.least
    average = np.clip(total / np.maximum(count, 1), declared.shortest, declared.longest)
    scaled = np.clip((average - declared.middle) / declared.half, -1.0, 1.0)
    return np.stack(
        [typed * np.int64(ONE), np.where(typed, np.trunc(scaled * ONE).astype(np.int64), 0)], axis=1
    )


def lattice_sums(added: Ints, group: NDArray[np.integer[Any]], n_groups: int) -> Ints:
    """What the learners of each group add up to, of shape (groups, 2, digraphs); -1 is in no group."""
    return np.stack([added[np.asarray(group) == g].sum(axis=0) for g in range(n_groups)]).astype(np.int64)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 2)
