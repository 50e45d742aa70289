"""Stage one in the game: the private summary of a cohort as a mechanism, with fresh noise on every shadow.

The attacker has the summary besides the answers. It reveals something about the learner in question, and about
the others, whose part in an answer it helps to take off: why the two stages' prices do not simply add up
(findings, section 5).

What is approximated: `habits` is centred by the noisy levels that were released with it; on shadows it stays centred
by the same ones. Since its products hold the constant, other centres are nearly a linear map of the same numbers.
The cuts between the labels stay as they are, also when they were estimated privately. Discrete noise is taken for
continuous, which it is to within a lattice step. Rounding the sums to six digits is left out. Of a summary that was
combined with an earlier year's, its own measurement is played, from which the rest follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.summary.learner_cells import added_by_learners, measures_of
from understudy.cohorts.summary.previous_year import own_noise
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.desk.domain.learners import LearnerTable
from understudy.desk.risk.likelihoods import NoisySums
from understudy.desk.risk.shadows import ShadowBank
from understudy.errors import DataError, UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class StageOne:
    """Sums over learners with Gaussian noise: what each learner (row) adds to each cell, in units of its noise.

    `mu` is what the mechanism claims for replacing one learner, sqrt(sum of (sensitivity / noise)^2). The game
    replaces the learner by one drawn from the others, among others who are unknown, so it measures less.
    """

    contributions: Floats
    mu: float

    @classmethod
    def of(cls, summary: PrivateSummary | Path, learners: LearnerTable | Cohort) -> StageOne:
        """The mechanism that made a summary, on the learners of a table with one row each.

        Learners who withdrew since are not in the table; the game is about those who are.
        """
        if isinstance(summary, Path):
            summary = PrivateSummary.read(summary)
        cohort = learners if isinstance(learners, Cohort) else _cohort(learners, summary)
        spent = [
            (measure.sensitivity / own_noise(summary.statistics[measure.name])) ** 2
            for measure in measures_of(summary)
        ]
        return cls(added_by_learners(summary, cohort), math.sqrt(sum(spent)))

    def on(self, bank: ShadowBank, rng: np.random.Generator) -> NoisySums:
        """What the mechanism gives on every shadow, with noise from `rng`.

        Only the directions in which learners differ are drawn, turned to be orthogonal: noise of the same
        size in all directions stays so when it is turned, and what is left holds noise alone.
        """
        if len(self.contributions) != bank.n_learners:
            raise UsageError(
                f"stage one is about {len(self.contributions)} learners, the shadows about {bank.n_learners}.",
                hint="make both from the same table.",
            )
        centred = self.contributions - self.contributions.mean(axis=0)
        left, strength, _ = np.linalg.svd(centred, full_matrices=False)
        kept = strength > 1e-9 * max(1.0, float(strength.max(initial=0.0)))
        loadings = left[:, kept] * strength[kept]
        noise = rng.normal(size=(bank.n_shadows, loadings.shape[1]))
        return NoisySums((bank.counts - 1.0) @ loadings + noise, loadings)


def _cohort(table: LearnerTable, summary: PrivateSummary) -> Cohort:
    if (np.diff(table.starts) != 1).any():
        raise DataError(
            "the table has several rows for a learner, so it is not the cohort that the summary is about.",
            hint="give the table that `understudy cohort build` wrote, or register the data without the summary.",
        )
    return Cohort.from_frame(table.rows, summary.schema)
