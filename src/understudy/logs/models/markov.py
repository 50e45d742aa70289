"""The Markov chain of actions: which action comes first, which follows, where a learner stops.

Counts are additive over learners, so a log can be counted in parts. Sampling draws from
alias tables (Walker 1977; Vose 1991), one per action that was followed by anything, so that
a row costs the same whatever the number of actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray, Interactions, pair_codes

Floats = NDArray[np.float64]

# Up to this many cells, counting in a dense table beats sorting.
DENSE_CELLS = 4_000_000


@dataclass(frozen=True)
class TransitionCounts:
    """How often each action was followed by each other one.

    `source` and `target` are sorted action codes; source `n_actions` stands for "before the
    first action", target `n_actions` for "after the last".
    """

    source: IntArray
    target: IntArray
    count: Floats
    n_actions: int
    longest: int
    n_learners: int

    @classmethod
    def of(cls, log: Interactions) -> TransitionCounts:
        """Count the steps of a log, with its starts and ends."""
        source, target = steps_of(log)
        return cls._from_steps(
            source, target, None, log.n_actions, int(log.lengths.max(initial=0)), log.n_learners
        )

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        return self._from_steps(
            np.concatenate([self.source, other.source]),
            np.concatenate([self.target, other.target]),
            np.concatenate([self.count, other.count]),
            self.n_actions,
            max(self.longest, other.longest),
            self.n_learners + other.n_learners,
        )

    @classmethod
    def _from_steps(
        cls,
        source: IntArray,
        target: IntArray,
        count: Floats | None,
        n_actions: int,
        longest: int,
        n_learners: int,
    ) -> TransitionCounts:
        width = n_actions + 1
        key = pair_codes(source, target, width)
        if width * width <= DENSE_CELLS:
            table = np.bincount(key, weights=count, minlength=width * width).astype(np.float64)
            present = np.flatnonzero(table)
            total = table[present]
        else:
            present, inverse = np.unique(key, return_inverse=True)
            total = np.bincount(inverse, weights=count).astype(np.float64)
        return cls(
            (present // width).astype(np.int32),
            (present % width).astype(np.int32),
            total,
            n_actions,
            longest,
            n_learners,
        )


def steps_of(log: Interactions) -> tuple[IntArray, IntArray]:
    """Source and target of every step: one more than rows per learner, order kept.

    The step into a learner's first action has source `n_actions`, the one out of the last
    action has target `n_actions`.
    """
    n = log.n_actions
    outside = np.int32(n)
    ends = log.offsets[1:]
    source = np.insert(log.action.astype(np.int32), log.offsets[:-1], outside)
    target = np.insert(log.action.astype(np.int32), ends, outside)
    return source, target


@dataclass(frozen=True)
class AliasTables:
    """One alias table per source, laid out one after the other.

    A draw picks a cell of the source's table and then its `likely` target with probability
    `threshold`, else its `other` one.
    """

    begin: NDArray[np.int64]
    likely: NDArray[np.int32]
    other: NDArray[np.int32]
    threshold: Floats

    @classmethod
    def of(cls, counts: TransitionCounts) -> AliasTables:
        """Tables for drawing the next action in proportion to the counts."""
        return cls.from_steps(counts.source, counts.target, counts.count, counts.n_actions + 1)

    @classmethod
    def from_steps(
        cls, source: NDArray[np.integer], target: NDArray[np.integer], weight: Floats, n_sources: int
    ) -> AliasTables:
        """Tables for drawing a target of each source in proportion to the weights; sources are sorted."""
        begin = np.searchsorted(source, np.arange(n_sources + 1)).astype(np.int64)
        likely, other, threshold = _alias_tables(begin, target, weight)
        return cls(begin, likely, other, threshold)

    @classmethod
    def from_matrix(cls, matrix: Floats, weight: Floats, start: Floats) -> AliasTables:
        """Tables for drawing a column of each row in proportion to the matrix times the columns' weights.

        The last table draws from `start`. What has less than a billionth of a row's sum is never drawn.
        """
        return cls(*_alias_tables_of_rows(matrix, weight, start))


def sample_walks(
    tables: AliasTables,
    easiness: Floats,
    ability: Floats,
    longest: int | IntArray,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.int64]]:
    """Walks and their outcomes, one for each ability: (action, outcome, offsets).

    A walk ends where the chain ends it, or at `longest` rows (one number, or one per walk).
    Success has the log-odds `ability + easiness[action]`.
    """
    n_learners = len(ability)
    limits = np.broadcast_to(np.asarray(longest, dtype=np.int64), (n_learners,))
    longest = int(limits.max(initial=0))
    n_actions = len(tables.begin) - 2
    offsets = np.zeros(n_learners + 1, dtype=np.int64)
    action = np.empty(max(1024, longest, 16 * n_learners), dtype=np.int32)
    outcome = np.empty(len(action), dtype=np.int8)
    # u * (1 + exp(-ability) * exp(-easiness)) < 1 is a success: no exponential per row.
    against_action = np.exp(-easiness)
    against_learner = np.exp(-ability)
    done = 0
    while done < n_learners:
        done = walk(
            rng,
            done,
            n_actions,
            limits,
            tables.begin,
            tables.likely,
            tables.other,
            tables.threshold,
            against_action,
            against_learner,
            action,
            outcome,
            offsets,
        )
        if done < n_learners:
            # Room for what the remaining learners need if they are like those so far.
            needed = int(offsets[done] * (n_learners / max(done, 1)) * 1.05) + 2 * longest
            size = max(needed, len(action) + longest)
            action, outcome = _grown(action, size, offsets[done]), _grown(outcome, size, offsets[done])
    return action[: offsets[-1]], outcome[: offsets[-1]], offsets


def _grown(array: NDArray[Any], size: int, used: int) -> NDArray[Any]:
    larger = np.empty(size, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


@njit(cache=True, nogil=True)
def _alias_tables(begin, target, count):  # type: ignore[no-untyped-def]
    likely = target.astype(np.int32)
    other = likely.copy()
    threshold = np.empty(len(target))
    stack = np.empty(len(target), dtype=np.int64)
    for s in range(len(begin) - 1):
        here = slice(begin[s], begin[s + 1])
        _fill_alias_table(count[here], likely[here], other[here], threshold[here], stack)
    return likely, other, threshold


@njit(cache=True, nogil=True)
def _alias_tables_of_rows(matrix, weight, start):  # type: ignore[no-untyped-def]
    """The same for rows of a matrix; one pass over it, since it may have millions of cells."""
    n_rows, n = matrix.shape
    begin = np.zeros(n_rows + 2, dtype=np.int64)
    likely = np.empty((n_rows + 1) * n, dtype=np.int32)
    other, threshold = np.empty_like(likely), np.empty(len(likely))
    row, stack = np.empty(n), np.empty(n, dtype=np.int64)
    for s in range(n_rows + 1):
        total = 0.0
        for k in range(n):
            row[k] = matrix[s, k] * weight[k] if s < n_rows else start[k]
            total += row[k]
        least, end = 1e-9 * max(total, 1e-15), begin[s]
        for k in range(n):
            if row[k] > least:
                likely[end] = other[end] = k
                row[end - begin[s]] = row[k]
                end += 1
        begin[s + 1] = end
        here = slice(begin[s], end)
        _fill_alias_table(row[: end - begin[s]], likely[here], other[here], threshold[here], stack)
    return begin, likely[:end], other[:end], threshold[:end]


@njit(cache=True, nogil=True)
def _fill_alias_table(count, likely, other, threshold, stack):  # type: ignore[no-untyped-def]
    """`other` and `threshold` of the targets `likely`, drawn in proportion to their counts; `stack` is scratch."""
    size = len(count)
    total = 0.0
    for k in range(size):
        total += count[k]
    # Small entries grow from the left of the stack, large ones from the right.
    small, large = 0, size
    for k in range(size):
        threshold[k] = count[k] * size / total
        if threshold[k] < 1.0:
            stack[small] = k
            small += 1
        else:
            large -= 1
            stack[large] = k
    while small > 0 and large < size:
        small -= 1
        poor = stack[small]
        rich = stack[large]
        other[poor] = likely[rich]
        threshold[rich] -= 1.0 - threshold[poor]
        if threshold[rich] < 1.0:
            large += 1
            stack[small] = rich
            small += 1
    # What is left differs from 1 by rounding only.
    for k in range(small):
        threshold[stack[k]] = 1.0
    for k in range(large, size):
        threshold[stack[k]] = 1.0


@njit(cache=True, nogil=True)
def walk(  # type: ignore[no-untyped-def]
    rng,
    first,
    n_actions,
    limits,
    begin,
    likely,
    other,
    threshold,
    against_action,
    against_learner,
    action,
    outcome,
    offsets,
):
    """Walk for learner `first` and the following ones; returns the first that found no room."""
    n_learners = len(against_learner)
    room = len(action)
    row = offsets[first]
    for i in range(first, n_learners):
        if room - row < limits[i]:
            return i
        state = n_actions
        last = row + limits[i]
        while row < last:
            low = begin[state]
            size = begin[state + 1] - low
            if size == 0:
                break
            x = rng.random() * size
            cell = int(x)
            k = low + cell
            state = likely[k] if x - cell < threshold[k] else other[k]
            if state == n_actions:
                break
            action[row] = state
            outcome[row] = rng.random() * (1.0 + against_learner[i] * against_action[state]) < 1.0
            row += 1
        offsets[i + 1] = row
    return n_learners
