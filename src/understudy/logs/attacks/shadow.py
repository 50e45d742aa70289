"""`shadow`: the attack that refits the generator, calibrated for each learner.

The attacker's story is that of `core/attacks/shadows.py`; the scores are those of the other attacks that are cheap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.shadows import Shadow, ShadowCalibration
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.steps import count_scores, rare_bag_scores, rare_scores, transition_scores
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]

N_SHADOWS = 64

# The statistics of the other attacks that are cheap to recompute.
CHEAP = (transition_scores, count_scores, rare_scores, rare_bag_scores)

# Makes a synthetic log from the log of some learners.
Generate = Callable[[Interactions, np.random.Generator], Interactions]


def fit_shadow(knowledge: Knowledge, generate: Generate, rng: np.random.Generator) -> Shadow:
    """Fit and sample on a random half and note every learner's cheap scores."""
    log = knowledge.population
    member = np.zeros(log.n_learners, dtype=bool)
    member[rng.permutation(log.n_learners)[: knowledge.n_training]] = True
    return Shadow(member, cheap_scores(knowledge, generate(log.select(member), rng)))


def cheap_scores(knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """One column per cheap attack."""
    return np.stack([score(knowledge, synthetic) for score in CHEAP], axis=1)


class ShadowAttack:
    """The shadow attack on a method, ready for any synthetic log made from as many learners."""

    def __init__(self, knowledge: Knowledge, shadows: list[Shadow]) -> None:
        self._knowledge = knowledge
        self._calibration = ShadowCalibration(shadows, knowledge.judged)

    def scores(self, synthetic: Interactions) -> Floats:
        """Log-odds of membership up to a constant, per learner."""
        return self._calibration.log_odds(cheap_scores(self._knowledge, synthetic))
