"""The scores of every attack that needs no refits of the generator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.subsequences import MatchingWork
from understudy.logs.attacks.joint import joint_scores
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.plugins import plugged_attacks, scores_of
from understudy.logs.attacks.steps import (
    count_scores,
    rare_bag_scores,
    rare_scores,
    transition_outcome_scores,
    transition_scores,
)
from understudy.logs.attacks.subsequence import outcome_scores, subsequence_scores
from understudy.logs.attacks.tracing import tracing_scores
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]


def detail_scores(knowledge: Knowledge, synthetic: Interactions) -> dict[str, Floats]:
    """The scores of the attacks on times and on declared columns: those that both logs have."""
    scores: dict[str, Floats] = {}
    for table in (knowledge.timing, knowledge.quasi_identifiers):
        if table is not None:
            scores.update(table.scores(synthetic))
    return scores


def scores_without_refits(
    knowledge: Knowledge, synthetic: Interactions, workers: int = 1, work: MatchingWork | None = None
) -> dict[str, Floats]:
    """The scores of all learners by attack, those of others included; what was matched is added to `work`."""
    scores = subsequence_scores(knowledge, synthetic, workers, work)
    scores["transitions"] = transition_scores(knowledge, synthetic)
    if knowledge.population.outcome is not None:
        scores["lcs-outcomes"] = outcome_scores(knowledge, synthetic, workers, work)
        scores["transitions-outcomes"] = transition_outcome_scores(knowledge, synthetic)
    scores["counts"] = count_scores(knowledge, synthetic)
    scores["rare"] = rare_scores(knowledge, synthetic)
    scores["rare-bags"] = rare_bag_scores(knowledge, synthetic)
    scores.update(tracing_scores(knowledge, synthetic))
    scores.update(detail_scores(knowledge, synthetic))
    scores["joint"] = joint_scores(knowledge, synthetic)
    for name, plugged in plugged_attacks().items():
        scores[name] = scores_of(name, plugged, knowledge, synthetic)
    return scores
