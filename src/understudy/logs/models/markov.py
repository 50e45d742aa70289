"""The Markov chain of actions: which action comes first, which follows, where a learner stops.

Counts are additive over learners, so a log can be counted in parts. Sampling draws from
alias tables (Walker 1977; Vose 1991), one per action that was followed by anything, so that
a row costs the same whatever the number of actions.

A step of a walk waits for the one before it, and the processor waits with it. So several walks
are drawn in turns, which is three times as fast as one after the other. Each learner has a
stream of random numbers of their own, so their walk does not depend on how walks take turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray, Interactions, offsets_of, pair_codes

Floats = NDArray[np.float64]

# Up to this many cells, counting in a dense table beats sorting.
DENSE_CELLS = 4_000_000

# Walks that take turns: from four on there is hardly anything left to wait for.
LANES = 8
# Rows that each of them has room for before what was drawn is put aside.
LANE_ROWS = 1 << 20

# The step of a stream of random numbers, and a number from 0 to 1 from the upper 53 bits of each.
STEP = np.uint64(0x9E3779B97F4A7C15)
UNIT = 2.0**-53


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
) -> tuple[NDArray[np.int32], NDArray[np.int8], IntArray]:
    """Walks and their outcomes, one for each ability: (action, outcome, offsets).

    A walk ends where the chain ends it, or at `longest` rows (one number, or one per walk).
    Success has the log-odds `ability + easiness[action]`.
    """
    limits = np.broadcast_to(np.asarray(longest, dtype=np.int64), (len(ability),))
    walks_key, outcomes_key = rng.integers(2**64, size=2, dtype=np.uint64)
    action, offsets = draw_walks(tables, limits, walks_key)
    return action, draw_outcomes(easiness, ability, action, offsets, outcomes_key), offsets


def draw_walks(tables: AliasTables, limits: IntArray, key: np.uint64) -> tuple[NDArray[np.int32], IntArray]:
    """A walk for each limit, the most rows it may have: (action, offsets)."""
    n_learners, longest = len(limits), int(limits.max(initial=0))
    targets = np.stack([tables.likely, tables.other], axis=1)
    lengths = np.zeros(n_learners, dtype=np.int64)
    per_lane = max(min(LANE_ROWS // max(longest, 1), -(-n_learners // LANES)), 1)
    # One row more: where a walk ends is found out in the place of the next row.
    drawn = np.empty((LANES, per_lane * longest + 1), dtype=np.int32)
    walks = [np.empty(0, dtype=np.int32)]
    for begin in range(0, n_learners, LANES * per_lane):
        end = min(begin + LANES * per_lane, n_learners)
        lanes = begin + np.arange(LANES + 1) * (end - begin) // LANES
        n_rows = _walk_in_turns(key, lanes, limits, tables.begin, targets, tables.threshold, drawn, lengths)
        walks += [lane[:n].copy() for lane, n in zip(drawn, n_rows, strict=True)]
    return np.concatenate(walks), offsets_of(lengths)


def draw_outcomes(
    easiness: Floats,
    ability: Floats,
    action: NDArray[np.int32],
    offsets: IntArray,
    key: np.uint64,
) -> NDArray[np.int8]:
    """Whether each row of the walks is a success."""
    outcome = np.empty(len(action), dtype=np.int8)
    # u * (1 + exp(-ability) * exp(-easiness)) < 1 is a success: no exponential per row.
    _draw_outcomes(key, offsets, np.exp(-easiness), np.exp(-ability), action, outcome)
    return outcome


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
def _mixed(state):  # type: ignore[no-untyped-def]
    """64 random bits from a place in a stream: SplitMix64 (Steele, Lea and Flood 2014)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@njit(cache=True, nogil=True)
def _stream(key, learner):  # type: ignore[no-untyped-def]
    """Where the stream of a learner begins; the following places are a `STEP` apart."""
    return _mixed(key + np.uint64(learner) * STEP)


@njit(cache=True, nogil=True)
def _number(state):  # type: ignore[no-untyped-def]
    """The number from 0 to 1 at a place in a stream."""
    return np.int64(_mixed(state) >> np.uint64(11)) * UNIT


@njit(cache=True, nogil=True)
def _walk_in_turns(key, lanes, limits, begin, targets, threshold, drawn, lengths):  # type: ignore[no-untyped-def]
    """Walk for the learners from `lanes[0]` to `lanes[-1]`, in each lane for one after the other.

    Fills `lengths`, and each lane of `drawn` from its beginning; returns the rows of each.
    """
    outside = len(begin) - 2
    n_lanes = len(drawn)
    learner = lanes[:-1].copy()
    state = np.full(n_lanes, outside)
    place = np.zeros(n_lanes, dtype=np.uint64)
    row, last = np.zeros(n_lanes, dtype=np.int64), np.zeros(n_lanes, dtype=np.int64)
    for lane in range(n_lanes):
        if learner[lane] < lanes[lane + 1]:
            place[lane] = _stream(key, learner[lane])
            last[lane] = limits[learner[lane]]
    n_left = lanes[-1] - lanes[0]
    while n_left > 0:
        for lane in range(n_lanes):
            low = begin[state[lane]]
            size = begin[state[lane] + 1] - low
            target = outside
            if size > 0:
                x = _number(place[lane]) * size
                k = low + int(x)
                # Looked up by the comparison and not decided by it: no processor predicts a random number.
                target = targets[k, np.int64(x - int(x) >= threshold[k])]
            here = row[lane]
            drawn[lane, here] = target
            if target != outside and here < last[lane]:
                state[lane] = target
                row[lane] = here + 1
                place[lane] += STEP
            elif learner[lane] < lanes[lane + 1]:
                lengths[learner[lane]] = here - last[lane] + limits[learner[lane]]
                n_left -= 1
                learner[lane] += 1
                state[lane] = outside
                if learner[lane] < lanes[lane + 1]:
                    place[lane] = _stream(key, learner[lane])
                    last[lane] = here + limits[learner[lane]]
                else:
                    # Nobody is left: it stays where it is until the other lanes are done.
                    last[lane] = here
    return row


@njit(cache=True, nogil=True)
def _draw_outcomes(key, offsets, against_action, against_learner, action, outcome):  # type: ignore[no-untyped-def]
    for i in range(len(against_learner)):
        place = _stream(key, i)
        for row in range(offsets[i], offsets[i + 1]):
            u = _number(place + np.uint64(row - offsets[i]) * STEP)
            outcome[row] = u * (1.0 + against_learner[i] * against_action[action[row]]) < 1.0
