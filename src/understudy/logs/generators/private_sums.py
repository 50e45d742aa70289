"""The bounded statistics of learners' walks: lengths, starts, rows, runs and jumps.

A run is an unbroken stretch of attempts at one action; a jump leads from one run to the next.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.logs.generators.contributions import RESOLUTION, Total, clipped_counts, one_of
from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.totals import totals

Floats = NDArray[np.float64]
Entries = tuple[IntArray, IntArray, Floats]


class WalkStatistics:
    """Sums over the learners of a log; each function bounds a learner's part by that learner's rows."""

    def __init__(self, log: Interactions) -> None:
        self.log = log

    def lengths(self, edges: IntArray) -> Total:
        """Learners by length; bin b holds edges[b] to edges[b + 1] - 1."""
        return one_of(_bins(self.log.lengths, edges), len(edges) - 1)

    def length_moments(self, longest: int) -> Total:
        """Sums of learners' logarithm of length, from 0 (one row) to 1 (`longest`), and of its square.

        Both entries of a learner lie in [0, 1], so replacing one moves the pair by sqrt(2) at most.
        """
        share = np.log(np.clip(self.log.lengths, 1, longest)) / np.log(longest)
        lattice = np.trunc(np.stack([share, share**2]) * RESOLUTION).sum(axis=1)
        return Total(lattice.astype(np.int64), np.sqrt(2.0) * RESOLUTION, 1.0 / RESOLUTION)

    def starts(self) -> Total:
        """Learners by first action."""
        return one_of(self.log.action[self.log.offsets[:-1]], self.log.n_actions)

    def row_norms(self, edges: IntArray) -> Total:
        """Learners by the norm of their attempts per action."""
        return one_of(_bins(self._norm(self._rows), edges), len(edges) - 1)

    def run_norms(self, edges: IntArray) -> Total:
        """Learners by the norm of their runs per action."""
        return one_of(_bins(self._norm(self._runs), edges), len(edges) - 1)

    def totals(self, longest: float) -> Total:
        """(runs, successes, failures) of all learners, those with more than `longest` rows scaled down.

        Successes and failures of a learner add up to their rows and there are no more runs than
        rows, so the norm of the three is at most sqrt(2) longest; nothing is negative.
        """
        log = self.log
        learner, _, runs = self._runs
        per_learner = np.stack(
            [
                totals(learner, runs, log.n_learners),
                totals(log.learner, log.outcome, log.n_learners),
                totals(log.learner, 1 - log.outcome, log.n_learners),
            ],
            axis=1,
        )
        factor = np.minimum(1.0, longest / np.maximum(log.lengths, 1)) / longest
        lattice = np.trunc(per_learner * factor[:, None] * RESOLUTION * (1 - 1e-9))
        return Total(lattice.sum(axis=0).astype(np.int64), 2.0 * RESOLUTION, longest / RESOLUTION)

    def rows(self, norm: float) -> Total:
        """Attempts per action."""
        return clipped_counts(*self._rows, self._shape, norm)

    def runs(self, norm: float) -> Total:
        """Runs per action."""
        return clipped_counts(*self._runs, self._shape, norm)

    def jumps(self, norm: float, actions: IntArray) -> Total:
        """Jumps from each to each of the given actions, as one long row."""
        log, n = self.log, len(actions)
        place = np.full(log.n_actions, -1, dtype=np.int64)
        place[actions] = np.arange(n)
        learner, action = log.learner[self._new_run].astype(np.int64), log.action[self._new_run]
        same = learner[1:] == learner[:-1]
        source, target = place[action[:-1][same]], place[action[1:][same]]
        known = (source >= 0) & (target >= 0)
        key = learner[1:][same][known] * (n * n) + source[known] * n + target[known]
        pair, count = np.unique(key, return_counts=True)
        shape = (log.n_learners, n * n)
        return clipped_counts(pair // (n * n), pair % (n * n), count.astype(np.float64), shape, norm)

    def shared_actions(self, most: int) -> Total:
        """Per action: learners who attempted it, each spreading a norm of 1 over their first `most` actions."""
        log = self.log
        key = log.learner.astype(np.int64) * log.n_actions + log.action
        first = np.sort(np.unique(key, return_index=True)[1])
        learner, action = log.learner[first], log.action[first]
        begin = np.searchsorted(learner, np.arange(log.n_learners))
        early = np.arange(len(first)) - begin[learner] < most
        ones = np.ones(int(early.sum()))
        # Scaled down from `most` ones, so that every learner has the norm 1 exactly.
        count = ones / np.sqrt(np.bincount(learner[early], minlength=log.n_learners)[learner[early]])
        return clipped_counts(learner[early], action[early], count, self._shape, 1.0)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.log.n_learners, self.log.n_actions

    @cached_property
    def _new_run(self) -> NDArray[np.bool_]:
        log = self.log
        new = np.ones(log.n_rows, dtype=bool)
        new[1:] = (log.action[1:] != log.action[:-1]) | (log.learner[1:] != log.learner[:-1])
        return new

    @cached_property
    def _rows(self) -> Entries:
        return _counted(self.log.learner, self.log.action, self.log.n_actions)

    @cached_property
    def _runs(self) -> Entries:
        return _counted(self.log.learner[self._new_run], self.log.action[self._new_run], self.log.n_actions)

    def _norm(self, entries: Entries) -> Floats:
        learner, _, count = entries
        return np.sqrt(totals(learner, count**2, self.log.n_learners))


def first_rows(log: Interactions, longest: int) -> Interactions:
    """The log with the first `longest` rows of each learner."""
    position = np.arange(log.n_rows) - log.offsets[:-1][log.learner]
    return log if not (position >= longest).any() else log.keep_rows(position < longest)


def bin_edges(longest: int, n_bins: int = 24) -> IntArray:
    """Edges of bins from 1 to `longest`, growing by a constant factor."""
    edges: IntArray = np.unique(np.round(np.geomspace(1, longest + 1, n_bins + 1)).astype(np.int64))
    return edges


def bin_centres(edges: IntArray) -> Floats:
    """A typical value of each bin."""
    return np.sqrt(edges[:-1] * np.maximum(edges[1:] - 1, edges[:-1]).astype(np.float64))


def _bins(values: NDArray[np.generic], edges: IntArray) -> IntArray:
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def _counted(learner: IntArray, action: IntArray, n_actions: int) -> Entries:
    pair, count = np.unique(learner.astype(np.int64) * n_actions + action, return_counts=True)
    return pair // n_actions, pair % n_actions, count.astype(np.float64)
