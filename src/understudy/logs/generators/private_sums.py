"""The bounded statistics of learners' walks: lengths, starts, rows, runs and jumps.

A run is an unbroken stretch of attempts at one action; a jump leads from one run to the next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

from understudy.logs.interactions import IntArray, Interactions, counted_pairs, pair_codes, totals
from understudy.logs.large.parts import in_parts, list_over, sum_over
from understudy.logs.log_in_database import LogInDatabase
from understudy.logs.models.cells import N_PRACTICE, new_jumps, practice_cells
from understudy.logs.models.curriculum import displacement_class, n_displacements
from understudy.logs.models.rasch import PairCounts, Unexplained, unexplained
from understudy.logs.models.runs import N_CELLS, RunStates

# Lattice steps within a clipping norm: what rounding towards zero loses is far below the noise.
RESOLUTION = 2**18
# Sequences of up to so many rows are usual.
USUAL_LONGEST = 1000
# A billionth less: rounding errors of floats cannot carry a vector past its norm, and where a number would lie on the
# lattice itself, rounding towards zero does not depend on the last bit of a logarithm.
LESS = 1 - 1e-9


@dataclass(frozen=True)
class Total:
    """A sum over learners on the lattice.

    `sensitivity` is the L2 distance, in lattice steps, by which replacing one learner can move
    it; `step` is what one lattice step is worth (a number, or one per entry). `parts` is what the sum is of: learner,
    column and lattice steps. No mechanism looks at them; the audit does that knows the noisy sums.
    """

    values: NDArray[np.int64]
    sensitivity: float
    step: float | Floats
    parts: Entries | None = None

    def __add__(self, other: Total) -> Total:
        return Total(self.values + other.values, self.sensitivity, self.step)


def one_of(code: IntArray, n_codes: int, learner: IntArray | None = None) -> Total:
    """How many learners have each code. A learner has one: (1, 0, ...) becomes (0, 1, ...).

    `learner` are the learners who have one; all of them by default.
    """
    learners = np.bincount(code, minlength=n_codes).astype(np.int64)
    parts = (
        np.arange(len(code)) if learner is None else learner,
        code,
        np.full(len(code), float(RESOLUTION)),
    )
    # On the fine lattice like all others, where discrete noise is next to continuous.
    return Total(learners * RESOLUTION, sqrt(2.0) * RESOLUTION, 1.0 / RESOLUTION, parts)


def clipped_counts(
    learner: IntArray,
    column: IntArray,
    count: Floats,
    shape: tuple[int, int],
    norm: float,
    weight: Floats | None = None,
) -> Total:
    """Sum of learners' vectors of non-negative entries, each weighted by column and scaled down to L2 norm `norm`."""
    even = np.ones(shape[1])
    values, parts = _clipped_sum(learner, column, count, even if weight is None else weight, shape, norm)
    step = norm / RESOLUTION if weight is None else norm / RESOLUTION / weight
    return Total(values, sqrt(2.0) * RESOLUTION, step, parts)


def clipped_slopes(
    learner: IntArray,
    column: IntArray,
    slope: Floats,
    weight: Floats,
    shape: tuple[int, int],
    norm: float,
) -> Total:
    """Sum of learners' vectors of any sign, column j weighted by `weight[j]`, scaled to norm `norm`.

    Columns with a large weight get little noise in their own units: `step` is norm / weight.
    """
    values, parts = _clipped_sum(learner, column, slope, weight, shape, norm)
    return Total(values, 2.0 * RESOLUTION, norm / RESOLUTION / weight, parts)


def bounded_sum(value: Floats, most: float) -> Total:
    """Sum of one non-negative number per learner, each cut at `most`: it moves by `most` at the most."""
    lattice = np.trunc(np.clip(value, 0.0, most) * (RESOLUTION / most))
    total = np.array([lattice.sum()]).astype(np.int64)
    return Total(total, float(RESOLUTION), most / RESOLUTION, _columns(lattice[:, None]))


def signed_sum(value: Floats, most: float) -> Total:
    """Sum of one number per learner, each cut to [-most, most]: replacing a learner moves it by 2 `most`."""
    lattice = np.trunc(np.clip(value, -most, most) * (RESOLUTION / most))
    total = np.array([lattice.sum()]).astype(np.int64)
    return Total(total, 2.0 * RESOLUTION, most / RESOLUTION, _columns(lattice[:, None]))


def moments_of(value: Floats, most: float) -> Total:
    """Sums of one number per learner, cut to [-most, most], and of its square.

    In units of most and most^2 a learner's pair is (v, v^2) with v in [-1, 1]. Two of them are apart
    by d^2 (1 + s^2), squared, d = v - w and s = v + w; |d| <= 2 - |s|, and (2 - s)^2 (1 + s^2) falls
    from 4 at s = 0. So replacing a learner moves the pair by 2, and rounding by less than 1 in each.
    """
    cut = np.clip(value, -most, most) / most
    lattice = np.trunc(np.stack([cut, cut**2]) * RESOLUTION)
    sensitivity = 2.0 * RESOLUTION + sqrt(2.0)
    step = np.array([most, most**2]) / RESOLUTION
    return Total(lattice.sum(axis=1).astype(np.int64), sensitivity, step, _columns(lattice.T))


def log_norms(entries: Entries, n_learners: int, largest: float) -> Total:
    """Sum of the logarithms of the norms of learners' counts, from 0 to 1 (`largest`)."""
    learner, _, count = entries
    norm = np.sqrt(totals(learner, count**2, n_learners))
    return bounded_sum(np.log(np.maximum(norm, 1.0)) / np.log(largest) * LESS, 1.0)


def clip_factors(learner: IntArray, entry: Floats, n_learners: int, norm: float) -> Floats:
    """By how much each learner's vector is scaled down to reach `norm`; 1 where it need not be."""
    length = np.sqrt(totals(learner, entry**2, n_learners))
    factor: Floats = np.minimum(1.0, norm / np.maximum(length, 1e-12))
    return factor


def _clipped_sum(
    learner: IntArray,
    column: IntArray,
    entry: Floats,
    weight: Floats,
    shape: tuple[int, int],
    norm: float,
) -> tuple[NDArray[np.int64], Entries]:
    """Entries are (learner, column) pairs that occur once each; the sum, and its parts."""
    n_learners, n_columns = shape
    weighted = entry * weight[column]
    factor = clip_factors(learner, weighted, n_learners, norm)
    # Rounding towards zero only shortens a vector.
    lattice = np.trunc(weighted * factor[learner] * (RESOLUTION / norm) * LESS)
    # Sums of integers below 2^53 are exact in floats.
    return totals(column, lattice, n_columns).astype(np.int64), (learner, column, lattice)


def _columns(lattice: Floats) -> Entries:
    """The entries of a table of learners x columns."""
    learner, column = np.divmod(np.arange(lattice.size), lattice.shape[1])
    return learner, column, lattice.ravel()


Floats = NDArray[np.float64]
Entries = tuple[IntArray, IntArray, Floats]


Method = TypeVar("Method", bound=Callable[..., Any])


def _by_parts(method: Method) -> Method:
    """A sum over learners: of a large log it is taken part by part, without what the audit would look at."""

    @functools.wraps(method)
    def whole(self: WalkStatistics, *given: Any) -> Total:
        if not in_parts(self.log):
            return cast(Total, method(self, *given))
        return sum_over(self.log, functools.partial(_of_part, method.__name__, given))

    return cast(Method, whole)


def _of_part(name: str, given: tuple[Any, ...], part: Interactions) -> Total:
    total: Total = getattr(WalkStatistics(part), name)(*given)
    return replace(total, parts=None)


def _listed(method: Method) -> Method:
    """Numbers per learner: of a large log, those of its parts one after the other."""

    @functools.wraps(method)
    def whole(self: WalkStatistics) -> Any:
        if not in_parts(self.log):
            return method(self)
        parts = list_over(self.log, functools.partial(_listed_of_part, method.__name__))
        return np.concatenate(parts, axis=-1)

    return cast(Method, whole)


def _listed_of_part(name: str, part: Interactions) -> Floats:
    return np.asarray(getattr(WalkStatistics(part), name)())


class WalkStatistics:
    """Sums over the learners of a log; each function bounds a learner's part by that learner's rows."""

    def __init__(self, log: Interactions) -> None:
        self.log = log
        self._asked: Floats | None = None

    @_by_parts
    def lengths(self, edges: IntArray) -> Total:
        """Learners by length; bin b holds edges[b] to edges[b + 1] - 1."""
        return one_of(_bins(self.log.lengths, edges), len(edges) - 1)

    @_by_parts
    def length_moments(self, longest: int) -> Total:
        """Sums of learners' logarithm of length, from 0 (one row) to 1 (`longest`), and of its square.

        Both entries of a learner lie in [0, 1], so replacing one moves the pair by sqrt(2) at most.
        """
        share = np.log(np.clip(self.log.lengths, 1, longest)) / np.log(longest)
        lattice = np.trunc(np.stack([share, share**2]) * RESOLUTION)
        total = lattice.sum(axis=1).astype(np.int64)
        return Total(total, np.sqrt(2.0) * RESOLUTION, 1.0 / RESOLUTION, _columns(lattice.T))

    @_by_parts
    def starts(self) -> Total:
        """Learners by first action."""
        some = np.flatnonzero(self.log.lengths)
        return one_of(self.log.action[self.log.offsets[some]], self.log.n_actions, some)

    @_by_parts
    def row_norms(self, longest: int) -> Total:
        """Sum of the logarithms of the norms of learners' attempts per action, from 0 to 1 (`longest`)."""
        return log_norms(self._rows, self.log.n_learners, longest)

    @_by_parts
    def run_norms(self, longest: int) -> Total:
        """The same of their runs per action."""
        return log_norms(self._runs, self.log.n_learners, longest)

    @_by_parts
    def totals(self, longest: float) -> Total:
        """(runs, successes, failures) of all learners, those with more than `longest` rows scaled down.

        In units of `longest`, runs lie in [0, 1], and successes and failures are not negative and add
        up to 1 at most: replacing a learner moves the first by 1 and the other two by sqrt(2).
        """
        log = self.log
        learner, _, runs = self._runs
        per_learner = np.stack(
            [
                totals(learner, runs, log.n_learners),
                totals(log.learner, log.success, log.n_learners),
                totals(log.learner, 1 - log.success, log.n_learners),
            ],
            axis=1,
        )
        factor = np.minimum(1.0, longest / np.maximum(log.lengths, 1)) / longest
        lattice = np.trunc(per_learner * factor[:, None] * RESOLUTION * LESS)
        total = lattice.sum(axis=0).astype(np.int64)
        return Total(total, sqrt(3.0) * RESOLUTION, longest / RESOLUTION, _columns(lattice))

    @_by_parts
    def rows(self, norm: float, weight: Floats | None = None) -> Total:
        """Attempts per action, those of each action weighted."""
        return clipped_counts(*self._rows, self._shape, norm, weight)

    @_by_parts
    def runs(self, norm: float) -> Total:
        """Runs per action."""
        return clipped_counts(*self._runs, self._shape, norm)

    @_listed
    def repeats(self) -> Floats:
        """Per learner: rows that are not the first of a run. Not a sum: it is given out by no mechanism."""
        learner, _, runs = self._runs
        return self.log.lengths - totals(learner, runs, self.log.n_learners)

    @_listed
    def successes(self) -> Floats:
        """Per learner: successes."""
        return totals(self.log.learner, self.log.success, self.log.n_learners)

    @_listed
    def new_jumps(self) -> tuple[Floats, Floats]:
        """Per learner: jumps to actions that they had not tried before, and all jumps. Not sums, either."""
        learner = self.log.learner[self._jump_rows]
        n_learners = self.log.n_learners
        return totals(learner, new_jumps(self.log), n_learners), totals(
            learner, np.ones(len(learner)), n_learners
        )

    @_by_parts
    def jumps(self, norm: float, actions: IntArray) -> Total:
        """Jumps from each to each of the given actions, as one long row."""
        log, n = self.log, len(actions)
        place = np.full(log.n_actions, -1, dtype=np.int64)
        place[actions] = np.arange(n)
        learner, action = log.learner[self._new_run], log.action[self._new_run]
        same = learner[1:] == learner[:-1]
        source, target = place[action[:-1][same]], place[action[1:][same]]
        known = (source >= 0) & (target >= 0)
        jump = pair_codes(source[known], target[known], n)
        counted = counted_pairs(learner[1:][same][known], jump, n * n)
        return clipped_counts(*counted, (log.n_learners, n * n), norm)

    @_by_parts
    def staying(self, expected: Floats, norm: float) -> Total:
        """Per cell of a run: how many more learners stayed than is expected of their action; last rows left out."""
        states = self.run_states
        asked = states.stays >= 0
        beyond = states.stays[asked] - expected[self.log.action[asked]]
        return self._beyond(self.log.learner[asked], states.cell[asked], beyond, N_CELLS, norm)

    @_by_parts
    def slopes(self, easiness: Floats, weight: Floats, norm: float) -> Total:
        """Slopes of the likelihood in the easiness of each action, each learner's ability taken out."""
        state = self.unexplained(easiness)
        return clipped_slopes(state.learner, state.action, state.residual, weight, self._shape, norm)

    @_by_parts
    def curvature(self, easiness: Floats, weight: Floats, norm: float, most: float) -> Total:
        """Sum of learners' curvature there, scaled down like their slopes."""
        state, n_learners = self.unexplained(easiness), self.log.n_learners
        factor = clip_factors(state.learner, state.residual * weight[state.action], n_learners, norm)
        return bounded_sum(totals(state.learner, state.curvature, n_learners) * factor, most)

    @_by_parts
    def abilities(self, easiness: Floats, most: float) -> Total:
        """Sums of learners' abilities at this easiness, and of their squares."""
        return moments_of(self.unexplained(easiness).ability, most)

    def unexplained(self, easiness: Floats) -> Unexplained:
        """What this easiness leaves unexplained; several statistics ask for the same."""
        if self._asked is not easiness:
            self._asked, self._unexplained = easiness, unexplained(self._pairs, easiness)
        return self._unexplained

    @cached_property
    def _pairs(self) -> PairCounts:
        return PairCounts.of(self.log)

    @_by_parts
    def practice(self, easiness: Floats, norm: float) -> Total:
        """Per cell of earlier attempts: how many more succeeded than is expected of them and of their action."""
        log, ability = self.log, self.unexplained(easiness).ability
        beyond = log.success - expit(easiness[log.action] + ability[log.learner])
        return self._beyond(log.learner, self.practice_cells, beyond, N_PRACTICE, norm)

    def _beyond(self, learner: IntArray, cell: IntArray, beyond: Floats, n_cells: int, norm: float) -> Total:
        shape = (self.log.n_learners, n_cells)
        who, where, total = _sums_by_cell(learner, cell, beyond, n_cells)
        return clipped_slopes(who, where, total, np.ones(n_cells), shape, norm)

    @property
    def _jump_rows(self) -> NDArray[np.bool_]:
        """Rows that begin a run, but for the learner's first."""
        jumps = self._new_run.copy()
        jumps[self.log.offsets[:-1][self.log.lengths > 0]] = False
        return jumps

    @_by_parts
    def displacements(self, norm: float) -> Total:
        """Jumps by how far they lead in the declared order of actions."""
        log, jumps = self.log, np.flatnonzero(self._jump_rows)
        moved = log.action[jumps].astype(np.int64) - log.action[jumps - 1]
        n_classes = n_displacements(log.n_actions)
        counted = counted_pairs(log.learner[jumps], displacement_class(moved, log.n_actions), n_classes)
        return clipped_counts(*counted, (log.n_learners, n_classes), norm)

    @_by_parts
    def shared_actions(self, most: int) -> Total:
        """Per action: learners who attempted it, each spreading a norm of 1 over their first `most` actions."""
        return shared_codes(self.log.learner, self.log.action, self._shape, most)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.log.n_learners, self.log.n_actions

    @cached_property
    def run_states(self) -> RunStates:
        """Each row as a part of its run."""
        return RunStates.of(self.log)

    @cached_property
    def practice_cells(self) -> NDArray[np.int64]:
        """The cell of each row by earlier attempts."""
        return practice_cells(self.log)

    @cached_property
    def _new_run(self) -> NDArray[np.bool_]:
        log = self.log
        new = np.ones(log.n_rows, dtype=bool)
        new[1:] = (log.action[1:] != log.action[:-1]) | (log.learner[1:] != log.learner[:-1])
        return new

    @cached_property
    def _rows(self) -> Entries:
        return counted_pairs(self.log.learner, self.log.action, self.log.n_actions)

    @cached_property
    def _runs(self) -> Entries:
        return counted_pairs(
            self.log.learner[self._new_run], self.log.action[self._new_run], self.log.n_actions
        )


def shared_codes(learner: IntArray, code: IntArray, shape: tuple[int, int], most: int) -> Total:
    """Per code: learners who have it, each spreading a norm of 1 over their first `most` codes; rows are in order."""
    n_learners, n_codes = shape
    first = np.sort(np.unique(pair_codes(learner, code, n_codes), return_index=True)[1])
    learner, code = learner[first], code[first]
    begin = np.searchsorted(learner, np.arange(n_learners))
    early = np.arange(len(first)) - begin[learner] < most
    ones = np.ones(int(early.sum()))
    # Scaled down from `most` ones, so that every learner has the norm 1 exactly.
    count = ones / np.sqrt(np.bincount(learner[early], minlength=n_learners)[learner[early]])
    return clipped_counts(learner[early], code[early], count, shape, 1.0)


def first_rows(log: Interactions, longest: int) -> Interactions:
    """The log with the first `longest` rows of each learner."""
    if isinstance(log, LogInDatabase):
        return log.first_rows(longest)
    if log.lengths.max(initial=0) <= longest:
        return log
    return log.keep_rows(_among_first(log.offsets, longest), all_learners=True)


@njit(cache=True, nogil=True)
def _among_first(offsets, longest):  # type: ignore[no-untyped-def]
    keep = np.zeros(offsets[-1], dtype=np.bool_)
    for i in range(len(offsets) - 1):
        keep[offsets[i] : min(offsets[i] + longest, offsets[i + 1])] = True
    return keep


def bin_edges(longest: int, n_bins: int = 24) -> IntArray:
    """Edges of bins from 1 to `longest`, growing by a constant factor: `n_bins` of them up to 1,000 rows.

    Beyond there are four to a power of ten: few learners have such sequences, and each bin has the same noise.
    """
    usual = min(longest, USUAL_LONGEST)
    edges = np.geomspace(1, usual + 1, n_bins + 1)
    if longest > usual:
        n_more = int(np.ceil(4.0 * np.log10((longest + 1) / (usual + 1))))
        edges = np.append(edges, np.geomspace(usual + 1, longest + 1, n_more + 1)[1:])
    whole: IntArray = np.unique(np.round(edges).astype(np.int64))
    return whole


def _bins(values: NDArray[np.generic], edges: IntArray) -> IntArray:
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


@njit(cache=True, nogil=True)
def _sums_by_cell(learner, cell, value, n_cells):  # type: ignore[no-untyped-def]
    """Sums of each learner in each of their cells, as entries; the rows of a learner follow each other."""
    n_rows, n = len(learner), 0
    who, where, total = np.empty_like(learner), np.empty(n_rows, dtype=np.int64), np.empty(n_rows)
    sums, seen = np.zeros(n_cells), np.zeros(n_cells, dtype=np.bool_)
    for row in range(n_rows):
        sums[cell[row]] += value[row]
        seen[cell[row]] = True
        if row + 1 == n_rows or learner[row + 1] != learner[row]:
            for k in range(n_cells):
                if seen[k]:
                    who[n], where[n], total[n] = learner[row], k, sums[k]
                    sums[k], seen[k] = 0.0, False
                    n += 1
    return who[:n], where[:n], total[:n]
