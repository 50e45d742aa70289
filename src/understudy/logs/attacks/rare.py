"""`rare`, `rare-bags`: does the synthetic log hold what hardly anybody else did?

The attacker's story: only Ada and two others ever went from fractions to circles and on to
primes. If the synthetic log has that step, one of the three was in the training data. Each
rare step that is found counts for the learner, each one that is missing counts against,
compared with how often equally rare ones are found. `rare-bags` does the same with the bags of
actions met in three successive practice runs, which survive where rows were left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.attacks.knowledge import RARE, Knowledge
from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.totals import totals


def rare_scores(knowledge: Knowledge, synthetic: Interactions) -> NDArray[np.float64]:
    """Rare steps found, less those expected."""
    table = knowledge.steps
    found = table.counts_in(synthetic) > 0
    return _surprise(table.learner, table.step, table.n_learners_with, found, knowledge.population.n_learners)


def rare_bag_scores(knowledge: Knowledge, synthetic: Interactions) -> NDArray[np.float64]:
    """Rare bags of actions found, less those expected."""
    table = knowledge.bags
    found = table.found_in(synthetic)
    return _surprise(table.learner, table.bag, table.n_learners_with, found, knowledge.population.n_learners)


def _surprise(
    learner: IntArray,
    feature: IntArray,
    n_learners_with: IntArray,
    found: NDArray[np.bool_],
    n_learners: int,
) -> NDArray[np.float64]:
    """Per learner: sum over their rare features of (found - share found among equally rare ones)."""
    rarity = np.minimum(n_learners_with, RARE + 1)
    n_equal = np.bincount(rarity, minlength=RARE + 2)
    share = totals(rarity, found, RARE + 2) / np.maximum(n_equal, 1)
    surprise = np.where(rarity <= RARE, found - share[rarity], 0.0)
    return totals(learner, surprise[feature], n_learners)
