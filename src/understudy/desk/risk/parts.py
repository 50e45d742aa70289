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
    without each of so many blocks of neighbours; NaN where there is none. With fewer shadows than two for each block
    neighbouring blocks are taken together: what one learner adds is in the sum.
    """
    there, kept = np.isfinite(answers), np.isfinite(without_one)
    n_groups = min(len(without_one), int(there.sum()) // 2)
    if n_groups < 3 or kept.sum() < 3 or not np.isfinite(full):
        return False
    group = np.repeat(np.arange(n_groups), _sizes(len(without_one), n_groups))
    group_of_learner = np.repeat(group, _sizes(bank.n_learners, len(without_one)))
    sizes = np.bincount(group_of_learner, minlength=n_groups)
    steps = np.bincount(group, np.where(kept, full - without_one, 0.0), n_groups)
    known = np.bincount(group, ~kept, n_groups) == 0
    # Also without one learner fewer are left, which moves a total: alike for all, and not on shadows.
    steps = steps - sizes * (steps[known].sum() / max(int(sizes[known].sum()), 1))
    away = answers[there] - answers[there].mean()
    counts = _summed(bank.counts[there].astype(np.float64) - 1.0, sizes)
    # What a group adds for each time that one of them is in, as if all of them were alike.
    effects = np.linalg.solve(counts.T @ counts + np.diag(sizes.astype(np.float64)), counts.T @ away)
    parts = effects * sizes
    error = (away - counts @ effects).std() * np.sqrt(sizes / (there.sum() - n_groups))
    enough = SHARE * np.maximum(np.abs(steps), np.abs(parts)) + SURE * error
    return bool((known & (np.abs(steps - parts) > np.maximum(enough, LEAST * away.std()))).any())


def _sizes(n: int, n_parts: int) -> NDArray[np.int64]:
    """How many of n are in each part, as `np.array_split` does it."""
    return np.array([len(part) for part in np.array_split(np.arange(n), n_parts)])


def _summed(counts: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Columns of neighbours added up."""
    return np.asarray(np.add.reduceat(counts, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=1))
