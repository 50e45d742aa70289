"""`tracing` and `tracing-outcomes`: do the synthetic shares of actions, or success rates, lean towards the learner?

The attacker's story: Ada attempted fractions more than others do. If the synthetic log leans towards fractions too,
and towards whatever else she did more than others, then she was probably in. Summed over all actions, small leanings
become visible (Homer et al. 2008; Dwork et al. 2015): the score is the product of what Ada adds to each statistic and
of how far the synthetic one lies from the population's, in units of the spread that the choice of members gives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.statistics import KINDS, N_BANDS
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]


def tracing_scores(knowledge: Knowledge, synthetic: Interactions) -> dict[str, Floats]:
    """The scores of each learner by shares of actions, and by success rates where there are outcomes."""
    statistics = knowledge.statistics
    leaning = (statistics.of(synthetic) - statistics.real) / (statistics.spread + 1e-18)
    kind = statistics.kind // N_BANDS
    return {
        name: np.asarray(statistics.contributions @ np.where(kind == KINDS.index(of), leaning, 0.0))
        for name, of in (("tracing", "rows"), ("tracing-outcomes", "successes"))
        if KINDS.index(of) in kind
    }
