"""Learners with the same score on the same items are the same to a Rasch model: they are counted once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_BLOCK = 8192


@dataclass(frozen=True)
class ScoreGroups:
    """Groups of learners who answered the same items and got equally many of them right.

    Given the items answered, a learner's score is sufficient for the ability (seed dp-rasch,
    section 3), so that a likelihood has as many different terms as there are groups: at most
    I + 1 when nothing is missing, however many the learners.
    """

    answered: NDArray[np.bool_]
    """Which items a pattern has answered: patterns by items."""
    pattern: Ints
    """The pattern of each group."""
    score: Ints
    size: Ints
    right_by_item: Ints
    answered_by_item: Ints

    @classmethod
    def of(cls, correct: NDArray[np.int8]) -> ScoreGroups:
        """The groups of a matrix of learners by items: 1 right, 0 wrong, below 0 not answered."""
        n_learners, n_items = correct.shape
        score = np.empty(n_learners, dtype=np.int64)
        right = np.zeros(n_items, dtype=np.int64)
        answered = np.zeros(n_items, dtype=np.int64)
        packed = np.empty((n_learners, (n_items + 7) // 8), dtype=np.uint8)
        for start in range(0, n_learners, _BLOCK):
            block = slice(start, start + _BLOCK)
            is_right, is_answered = correct[block] > 0, correct[block] >= 0
            score[block] = np.count_nonzero(is_right, axis=1)
            right += np.count_nonzero(is_right, axis=0)
            answered += np.count_nonzero(is_answered, axis=0)
            packed[block] = np.packbits(is_answered, axis=1)
        if (answered == n_learners).all():
            patterns, pattern = packed[:1], np.zeros(n_learners, dtype=np.int64)
        else:
            rows = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
            _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
            patterns, pattern = packed[first], inverse.astype(np.int64)
        key, size = np.unique(pattern * (n_items + 1) + score, return_counts=True)
        return cls(
            answered=np.unpackbits(patterns, axis=1, count=n_items).astype(np.bool_),
            pattern=key // (n_items + 1),
            score=key % (n_items + 1),
            size=size.astype(np.int64),
            right_by_item=right,
            answered_by_item=answered,
        )
