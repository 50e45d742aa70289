"""`shadow` and `joint-linear`: the attacks that learn from refits of the generator.

`shadow` is calibrated for each learner; the attacker's story is that of `core/attacks/shadows.py`, and the scores are
those of the other attacks that are cheap. `joint-linear` judges all learners together by the statistics that refits
release; its story is that of `core/attacks/linear.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.linear import LinearPosterior
from understudy.core.attacks.shadows import Shadow, ShadowCalibration
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.steps import count_scores, rare_bag_scores, rare_scores, transition_scores
from understudy.logs.attacks.tracing import tracing_scores
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]

N_SHADOWS = 64

# The scores of the other attacks that are cheap to recompute; those of tracing come on top.
CHEAP = (transition_scores, count_scores, rare_scores, rare_bag_scores)

# Makes a synthetic log from the log of some learners.
Generate = Callable[[Interactions, np.random.Generator], Interactions]


def fit_shadow(knowledge: Knowledge, generate: Generate, rng: np.random.Generator) -> Shadow:
    """Fit and sample on a random half; note every learner's cheap scores and the statistics of the sample."""
    log = knowledge.population
    member = np.zeros(log.n_learners, dtype=bool)
    member[rng.permutation(log.n_learners)[: knowledge.n_training]] = True
    synthetic = generate(log.select(member), rng)
    return Shadow(member, cheap_scores(knowledge, synthetic), knowledge.statistics.of(synthetic))


def cheap_scores(knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """One column per cheap attack."""
    tracing = tracing_scores(knowledge, synthetic)
    return np.column_stack([*(score(knowledge, synthetic) for score in CHEAP), *tracing.values()])


class ShadowAttack:
    """The attacks that refits made ready, for any synthetic log made from as many learners."""

    def __init__(self, knowledge: Knowledge, shadows: list[Shadow]) -> None:
        self._knowledge = knowledge
        self._calibration = ShadowCalibration(shadows, knowledge.judged)
        statistics = knowledge.statistics
        self._posterior = LinearPosterior.from_shadows(
            statistics.contributions,
            statistics.kind,
            knowledge.training_share,
            np.array([shadow.member for shadow in shadows]),
            np.array([shadow.statistics for shadow in shadows]),
        )

    def scores(self, synthetic: Interactions) -> dict[str, Floats]:
        """The scores of each attack: the higher, the likelier a member."""
        return {
            "joint-linear": self._posterior.scores(self._knowledge.statistics.of(synthetic)),
            "shadow": self._calibration.log_odds(cheap_scores(self._knowledge, synthetic)),
        }


def joint_linear_scores(knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """`joint-linear` on a log of unknown making, which cannot be refitted."""
    statistics = knowledge.statistics
    released = statistics.of(synthetic)
    posterior = LinearPosterior.from_release(
        statistics.contributions,
        statistics.spread,
        statistics.kind,
        knowledge.training_share,
        statistics.real,
        released,
    )
    return posterior.scores(released)
