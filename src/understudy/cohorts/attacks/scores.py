"""Scores of learners one by one: does a synthetic cohort lie next to this learner, or lean towards them?

The attacker's stories:

- `dcr-l1`, `dcr-l2`, `dcr-max`: a synthetic learner lies next to Ada, so she was in (distance to the
  closest record, standardised log-minutes of all weeks and the label, three norms).
- `dcr-relative`: it lies closer to Ada than other real learners do. A learner with ordinary weeks is
  close to every other one and would be accused by the distance alone.
- `tracing`, `tracing-habits`: the means of the synthetic cohort lean towards Ada (Dwork et al. 2015),
  for all weeks, or for the activity and minutes of learners with her label. This finds what a
  generator that only knows summaries gives away.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from understudy.cohorts.attacks.joint import MeasuredStatistics
from understudy.cohorts.cohort import Cohort
from understudy.errors import DataError

Floats = NDArray[np.float64]


class CohortKnowledge:
    """The weeks and labels of all learners, prepared once for many synthetic cohorts.

    `n_training` is the number of learners behind a synthetic cohort, which is public.
    """

    def __init__(self, population: Cohort, n_training: int) -> None:
        self.population = population
        self.n_training = n_training

    @cached_property
    def _weeks_scale(self) -> tuple[Floats, Floats]:
        return _scale(_weeks(self.population))

    @cached_property
    def _habits_scale(self) -> tuple[Floats, Floats]:
        return _scale(_habits(self.population))

    def weeks(self, cohort: Cohort) -> Floats:
        """Log-minutes of all weeks and the label, standardised by the population."""
        middle, spread = self._weeks_scale
        standardised: Floats = (_weeks(cohort) - middle) / spread
        return standardised

    def habits(self, cohort: Cohort) -> Floats:
        """Activity and log-minutes of active weeks in each window, standardised by the population."""
        middle, spread = self._habits_scale
        standardised: Floats = (_habits(cohort) - middle) / spread
        return standardised

    @cached_property
    def own_weeks(self) -> Floats:
        """`weeks` of the population."""
        return self.weeks(self.population)

    @cached_property
    def own_habits(self) -> Floats:
        """`habits` of the population."""
        return self.habits(self.population)

    @cached_property
    def nearest_other(self) -> Floats:
        """Distance of each learner of the population to the nearest other one."""
        distance = cdist(self.own_weeks, self.own_weeks)
        np.fill_diagonal(distance, np.inf)
        nearest: Floats = distance.min(axis=1)
        return nearest

    @cached_property
    def statistics(self) -> MeasuredStatistics:
        """What the attack on all learners together looks at."""
        return MeasuredStatistics(self.population, self.n_training)


def single_scores(knowledge: CohortKnowledge, synthetic: Cohort) -> dict[str, Floats]:
    """The scores of all learners of the population, each by itself; they do not depend on membership."""
    if not synthetic.n_learners:
        raise DataError("the synthetic cohort has no learners.", hint="attack one that has some.")
    weeks, others = knowledge.own_weeks, knowledge.weeks(synthetic)
    euclidean = cdist(weeks, others).min(axis=1)
    tiny = 1e-6
    return {
        "dcr-l1": -cdist(weeks, others, "cityblock").min(axis=1),
        "dcr-l2": -euclidean,
        "dcr-max": -cdist(weeks, others, "chebyshev").min(axis=1),
        "dcr-relative": -np.log((euclidean + tiny) / (knowledge.nearest_other + tiny)),
        "tracing": weeks @ others.mean(axis=0),
        "tracing-habits": _tracing_by_label(knowledge, synthetic),
    }


def _tracing_by_label(knowledge: CohortKnowledge, synthetic: Cohort) -> Floats:
    """Each learner's habits times how the synthetic learners of their label differ from the real ones."""
    own, others = knowledge.own_habits, knowledge.habits(synthetic)
    score = np.zeros(len(own))
    for label in range(knowledge.population.schema.n_labels):
        here, there = knowledge.population.label == label, synthetic.label == label
        if here.any() and there.any():
            middle = own[here].mean(axis=0)
            score[here] = (own[here] - middle) @ (others[there].mean(axis=0) - middle)
    return score


def _weeks(cohort: Cohort) -> Floats:
    flat = np.log1p(cohort.values).reshape(cohort.n_learners, -1)
    return np.column_stack([flat, cohort.label.astype(np.float64)])


def _habits(cohort: Cohort) -> Floats:
    active = cohort.values > 0
    minutes = np.log1p(cohort.values).sum(axis=2) / np.maximum(active.sum(axis=2), 1)
    return np.concatenate([active.mean(axis=2), minutes], axis=1)


def _scale(columns: Floats) -> tuple[Floats, Floats]:
    spread = columns.std(axis=0)
    # A constant column distinguishes no learners; a synthetic cohort may still differ in it.
    return columns.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)
