"""`joint-linear` and `transcript`: which learners together moved the statistics that a summary measures?

The attacker's story: a synthetic cohort is made of a summary, and which sums a summary may hold is public. Bob computes
the same statistics of the synthetic cohort, knows what each learner adds to them, and weighs all memberships together
(`core/attacks/linear.py`): how much of a sum arrives in the cohort, and how noisy it is, he learns for each statistic
by refitting the method. Marginal-based attacks on synthetic tables know the method in the same way (Golob et al. 2024).

`transcript` is Bob with the summary itself: the best that can be found from it (`core/attacks/transcript.py`), and
so a ceiling for attacks on cohorts that are made of it. Whoever is given the summary is that attacker.

The number of learners is public, so what all of them add in the same way says nothing: contributions are taken less
their mean, which is the posterior for a known number of members.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.summary.learner_cells import added_by_learners, released_cells
from understudy.cohorts.summary.statistics import MEASURES, Measure, habits_of
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.attacks.linear import LinearPosterior
from understudy.core.attacks.transcript import LearnerSums, WhiteBox, white_box

Floats = NDArray[np.float64]


class MeasuredStatistics:
    """Every statistic that a summary may hold, as means over learners, and what each learner adds to them.

    `n_training` is the number of learners behind a synthetic cohort. `habits` is centred by the population, which
    the attacker knows, instead of by noisy levels.
    """

    def __init__(self, population: Cohort, n_training: int) -> None:
        self._measures: list[Measure] = [
            habits_of(population) if name == "habits" else make(population.schema, {})
            for name, make in MEASURES.items()
        ]
        cells = [measure.learner_cells(population) for measure in self._measures]
        added = np.hstack(cells)
        self.real: Floats = added.mean(axis=0)
        self.contributions: Floats = (added - self.real) / n_training
        self.kind = np.repeat(np.arange(len(cells)), [part.shape[1] for part in cells])
        self.share = n_training / population.n_learners

    def of(self, cohort: Cohort) -> Floats:
        """The statistics of a synthetic cohort."""
        return np.concatenate([measure.learner_cells(cohort).mean(axis=0) for measure in self._measures])

    def learned(self, member: NDArray[np.bool_], statistics: Floats) -> LinearPosterior:
        """The posterior learned from refits: shadows x learners, and shadows x statistics."""
        return LinearPosterior.from_shadows(self.contributions, self.kind, self.share, member, statistics)

    def assumed(self, released: Floats) -> LinearPosterior:
        """The posterior for a cohort of unknown making."""
        spread = self.share * (1.0 - self.share) * (self.contributions**2).sum(axis=0)
        return LinearPosterior.from_release(
            self.contributions, spread, self.kind, self.share, self.real, released
        )


def summary_white_box(population: Cohort, summary: PrivateSummary) -> WhiteBox:
    """What a summary that was measured on some of the learners says about each of them.

    `reach` compares a learner with an average one in their place.
    """
    added = added_by_learners(summary, population)
    middle = added.mean(axis=0)
    sums = LearnerSums(added - middle, released_cells(summary) - summary.n_learners * middle)
    return white_box(sums, summary.n_learners / population.n_learners)
