"""A learner's part in a number, on shadows and in the data: code that hides somebody from the price shows here.

A shadow can be told from the data, as learners are in it twice. Code could answer honestly on shadows and, where
nobody is twice, add something when one learner is in: the price would not see it, and the number would still go with
what is foretold. But what a learner adds, by regression on the shadows, is for honest statistics what is lost when
they are left out of the data (infinitesimal and usual jackknife). Statistics that jump differ too, so what is found
is for a reviewer to look at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.desk.risk.shadows import ShadowBank

Floats = NDArray[np.float64]

# The two differ: by this share of the larger, by so many standard errors, and by this share of the number's spread over
# shadows. What moves a number by less than that is not seen: about as much in mu.
SHARE = 0.5
SURE = 5.0
LEAST = 0.3


def parts_differ(answers: Floats, bank: ShadowBank, full: float, without_one: Floats) -> bool:
    """Whether somebody's part in one number is another one on shadows than in the data.

    `answers` are those on shadows, `full` is the answer on the data and `without_one` those without each learner, or
    without each of so many blocks of neighbours; NaN where there is none.
    """
    there, kept = np.isfinite(answers), np.isfinite(without_one)
    if there.sum() < 2 * bank.n_learners or kept.sum() < 3 or not np.isfinite(full):
        return False
    steps = np.where(kept, full - without_one, 0.0)
    # Also without one learner fewer are left, which moves a total: alike for all, and not on shadows.
    steps = np.where(kept, steps - steps[kept].mean(), 0.0)
    away = answers[there] - answers[there].mean()
    counts = bank.counts[there] - 1.0
    effects = np.linalg.solve(counts.T @ counts + np.eye(bank.n_learners), counts.T @ away)
    blocks = np.array_split(np.arange(bank.n_learners), len(without_one))
    parts = np.array([effects[block].sum() for block in blocks])
    error = (away - counts @ effects).std() * np.sqrt([len(block) / there.sum() for block in blocks])
    enough = SHARE * np.maximum(np.abs(steps), np.abs(parts)) + SURE * error
    return bool((kept & (np.abs(steps - parts) > np.maximum(enough, LEAST * away.std()))).any())
