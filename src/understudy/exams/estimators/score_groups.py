"""Groups of learners with the same score on the same items: all that a Rasch likelihood needs of the learners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ScoreGroups:
    """Groups of learners who answered the same items and got equally many of them right.

    Given the items answered, a learner's score is sufficient for the ability (Steiner,
    Nyrnberg and Hansen 2019, section 3), so that a likelihood has as many different terms as there are groups: at most
    I + 1 when nothing is missing, however many the learners. Groups are in the order of their patterns of answered
    items; pattern p has the items `items[item_starts[p] : item_starts[p + 1]]` and the groups
    `group_starts[p] : group_starts[p + 1]`, so that what few learners answered takes little.
    """

    items: Ints
    item_starts: Ints
    group_starts: Ints
    score: Ints
    size: Ints
    right_by_item: Ints
    answered_by_item: Ints

    @classmethod
    def of(cls, correct: NDArray[np.int8]) -> ScoreGroups:
        """The groups of a matrix of learners by items: 1 right, 0 wrong, below 0 not answered."""
        n_learners, n_items = correct.shape
        correct = np.ascontiguousarray(correct)
        score, right, answered = _count(correct)
        if (answered == n_learners).all():
            items, n_answered = np.arange(n_items, dtype=np.int64), np.array([n_items])
            pattern = np.zeros(n_learners, dtype=np.int64)
        else:
            packed = np.packbits(correct >= 0, axis=1)
            rows = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
            _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
            patterns, pattern = correct[first] >= 0, inverse.astype(np.int64)
            items, n_answered = np.nonzero(patterns)[1].astype(np.int64), np.count_nonzero(patterns, axis=1)
        key, size = np.unique(pattern * (n_items + 1) + score, return_counts=True)
        return cls(
            items=items,
            item_starts=_starts(n_answered),
            group_starts=_starts(np.bincount(key // (n_items + 1), minlength=len(n_answered))),
            score=key % (n_items + 1),
            size=size.astype(np.int64),
            right_by_item=right,
            answered_by_item=answered,
        )

    @property
    def most_answers(self) -> int:
        """The number of items that a learner answered at most."""
        return int(np.diff(self.item_starts).max(initial=0))


def _starts(sizes: NDArray[np.intp]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@njit(cache=True, nogil=True)
def _count(correct):  # type: ignore[no-untyped-def]
    """Right answers by learner and by item, and answers by item, in one pass over the matrix."""
    n_learners, n_items = correct.shape
    score = np.zeros(n_learners, dtype=np.int64)
    right = np.zeros(n_items, dtype=np.int64)
    answered = np.zeros(n_items, dtype=np.int64)
    for n in range(n_learners):
        total = 0
        for i in range(n_items):
            is_right = correct[n, i] > 0
            total += is_right
            right[i] += is_right
            answered[i] += correct[n, i] >= 0
        score[n] = total
    return score, right, answered
