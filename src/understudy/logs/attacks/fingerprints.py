"""Fingerprints: what single learners have that hardly any other has, looked for in a synthetic log.

A fingerprint is a number that stands for something in a learner's rows (an exact time, two gaps in a row, a row of the
table of learners). Two questions are asked of all fingerprints of a kind: are a learner's rare ones there more often
than equally rare ones of others, and are the learner's own more probable there than among all others?
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.logs.interactions import IntArray, counted_pairs, totals

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]

# Who has it, and what it is: one entry for each time that it occurs.
Occurrences = tuple[IntArray, Keys]

# What at most this many learners of the population did is rare.
RARE = 10
# Occurrences that the reference lends to a kind of fingerprint: one that is seen rarely says little.
PRIOR = 5.0

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def mixed(*parts: ArrayLike) -> Keys:
    """Numbers of each row as one number of 64 bits; different rows hardly ever share one (splitmix64)."""
    key = np.zeros(np.broadcast_shapes(*(np.shape(part) for part in parts)), dtype=np.uint64)
    for part in parts:
        whole = np.asarray(part)
        bits = whole.astype(np.float64).view(np.uint64) if whole.dtype.kind == "f" else whole.astype(np.int64)
        key = key + bits.astype(np.uint64) + _STEP
        key = (key ^ (key >> _SHIFTS[0])) * _FACTORS[0]
        key = (key ^ (key >> _SHIFTS[1])) * _FACTORS[1]
        key = key ^ (key >> _SHIFTS[2])
    return key


class Fingerprints:
    """Fingerprints of a kind in a population: who has which how often."""

    def __init__(self, occurrences: Occurrences, n_learners: int) -> None:
        learner, key = occurrences
        self.n_learners = n_learners
        self.keys, index = np.unique(key, return_inverse=True)
        self.learner, self.feature, self.count = counted_pairs(learner, index, len(self.keys))
        self.n_learners_with = np.bincount(self.feature, minlength=len(self.keys))
        self.total = totals(self.feature, self.count, len(self.keys))
        self.own = totals(self.learner, self.count, n_learners)

    def rare_learners(self, most: int) -> NDArray[np.bool_]:
        """Learners with a fingerprint that at most so many have."""
        rare = np.zeros(self.n_learners, dtype=bool)
        rare[self.learner[self.n_learners_with[self.feature] <= most]] = True
        return rare

    def matches(self, synthetic: Occurrences) -> Floats:
        """Per learner: rare fingerprints found, less those expected."""
        found = np.isin(self.keys, synthetic[1])
        return found_beyond_chance(self.learner, self.feature, self.n_learners_with, found, self.n_learners)

    def log_ratios(self, synthetic: Occurrences) -> Floats:
        """Per learner: sum over their fingerprints of log(share in the synthetic log / share among all others)."""
        place = np.searchsorted(self.keys, synthetic[1])
        place = np.minimum(place, max(len(self.keys) - 1, 0))
        known = self.keys[place] == synthetic[1] if len(self.keys) else np.zeros(len(place), dtype=bool)
        occurs = np.bincount(place[known], minlength=len(self.keys)).astype(np.float64)
        others = self.total[self.feature] - self.count
        all_others = self.total.sum() - self.own[self.learner]
        reference = (others + PRIOR / max(len(self.keys), 1)) / (all_others + PRIOR)
        share = (occurs[self.feature] + PRIOR * reference) / (len(synthetic[1]) + PRIOR)
        return totals(self.learner, self.count * np.log(share / reference), self.n_learners)


class FingerprintTables:
    """Several kinds of fingerprints of a population."""

    def __init__(self, kinds: Sequence[Occurrences], n_learners: int) -> None:
        self.tables = [Fingerprints(occurrences, n_learners) for occurrences in kinds]
        self._n_learners = n_learners

    def matches(self, synthetic: Sequence[Occurrences]) -> Floats:
        """The sum over kinds of rare fingerprints found, less those expected."""
        scores = np.zeros(self._n_learners)
        for table, occurrences in zip(self.tables, synthetic, strict=True):
            scores += table.matches(occurrences)
        return scores

    def log_ratios(self, synthetic: Sequence[Occurrences]) -> Floats:
        """The sum over kinds of the log-ratios."""
        scores = np.zeros(self._n_learners)
        for table, occurrences in zip(self.tables, synthetic, strict=True):
            scores += table.log_ratios(occurrences)
        return scores


def found_beyond_chance(
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
