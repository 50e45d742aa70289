"""`transitions`: do the synthetic learners walk as this one did?

The attacker's story: a generator that learned from Ada has seen her steps, so it makes them a
little more often than it would have, had it learned from everybody else. The score is the
likelihood ratio of Ada's own steps under the synthetic log's transition probabilities against
those of all other learners; Ada is taken out of that reference.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.interactions import Interactions
from understudy.logs.totals import totals

# Steps that the reference lends to a source: a source seen rarely says little.
PRIOR_STEPS = 5.0


def transition_scores(knowledge: Knowledge, synthetic: Interactions) -> NDArray[np.float64]:
    """Sum over the learner's steps of log(synthetic probability / reference probability)."""
    table = knowledge.steps
    occurs = table.counts_in(synthetic)
    leaves = totals(table.source, occurs, table.width)
    source = table.source[table.step]
    others = table.total[table.step] - table.count
    others_left = table.source_total[source] - table.left
    reference = (others + PRIOR_STEPS / table.width) / (others_left + PRIOR_STEPS)
    probability = (occurs[table.step] + PRIOR_STEPS * reference) / (leaves[source] + PRIOR_STEPS)
    return totals(
        table.learner, table.count * np.log(probability / reference), knowledge.population.n_learners
    )
