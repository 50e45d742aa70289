"""How few points single a learner out.

The attacker's story: over a neighbour's shoulder the attacker saw Ada do k things. If nobody
else in the log did all of them, her whole record is found, whatever her name was replaced by
(de Montjoye et al. 2013, unique in the crowd).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.intervals import wilson_interval
from understudy.logs.interactions import IntArray, Interactions

MOST_POINTS = 8
MOST_TARGETS = 2000
BLOCK_BYTES = 64_000_000


@dataclass(frozen=True)
class Uniqueness:
    """Share of learners singled out by `k` random points, with its 95 % (Wilson) interval."""

    points: str
    k: int
    share: float
    low: float
    high: float
    n_targets: int

    def to_json(self) -> dict[str, Any]:
        """The share for a machine."""
        return dict(vars(self))


def uniqueness(log: Interactions, rng: np.random.Generator) -> list[Uniqueness]:
    """Shares for k = 1 to 8 points, by action alone and by action with outcome.

    Points are drawn from the learner's rows without replacement; a learner with fewer rows
    gives all of them. A large log is judged on a random sample of its learners.
    """
    targets = np.arange(log.n_learners)
    if log.n_learners > MOST_TARGETS:
        targets = np.sort(rng.choice(targets, MOST_TARGETS, replace=False))
    rows = drawn_rows(log, targets, rng)
    kinds = {"action": log.action, **({} if log.outcome is None else {"action and outcome": log.code})}
    results = []
    for points, code in kinds.items():
        alone = singled_out(log, code, targets, rows)
        for k in range(1, MOST_POINTS + 1):
            found = int(alone[:, k - 1].sum())
            low, high = wilson_interval(found, len(targets))
            results.append(Uniqueness(points, k, found / max(len(targets), 1), low, high, len(targets)))
    return results


def drawn_rows(log: Interactions, targets: IntArray, rng: np.random.Generator) -> IntArray:
    """Up to eight random rows of each target; a shorter record repeats its last row."""
    some = log.select(targets)
    order = rng.permutation(some.n_rows)
    order = order[np.argsort(some.learner[order], kind="stable")]
    place = np.minimum(np.arange(MOST_POINTS)[None, :], some.lengths[:, None] - 1)
    local = order[some.offsets[:-1, None] + place]
    return local - some.offsets[:-1, None] + log.offsets[targets][:, None]


def singled_out(log: Interactions, code: IntArray, targets: IntArray, rows: IntArray) -> NDArray[np.bool_]:
    """Whether each target is the only learner with the first k of its points, for each k."""
    needed, index = np.unique(code[rows], return_inverse=True)
    index = index.reshape(rows.shape)
    # One row of bits per needed point: which learners have it.
    column = np.searchsorted(needed, code)
    column = np.where(needed[np.minimum(column, len(needed) - 1)] == code, column, -1)
    present = np.zeros((len(needed), log.n_learners), dtype=bool)
    present[column[column >= 0], log.learner[column >= 0]] = True
    bits = np.packbits(present, axis=1)
    alone = np.empty(rows.shape, dtype=bool)
    block = max(1, BLOCK_BYTES // max(bits.shape[1], 1))
    for begin in range(0, len(targets), block):
        part = slice(begin, begin + block)
        matching = bits[index[part, 0]]
        for k in range(rows.shape[1]):
            if k:
                matching &= bits[index[part, k]]
            alone[part, k] = np.bitwise_count(matching).sum(axis=1) == 1
    return alone
