"""Runs: unbroken stretches of attempts at one action. When does one end, and where does the next one begin?

Learners stay until they succeed, or give up: whether they stay depends on the action, on how long the run has
lasted, and on the outcomes that they saw last. Where they go depends on where they are and, where that
is known well enough, on where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.models.markov import AliasTables

Floats = NDArray[np.float64]

# Successes in a row, or failures in a row, at the end of a run: failures 3 or more, 2, 1; successes 1, 2, 3, 4, 5 or
# more.
N_FAILURES, N_SUCCESSES = 3, 5
# The length of a run so far: 1, 2, 3, 4, 5 to 6, 7 to 9, 10 or more.
_LENGTH_CLASS = np.array([0, 0, 1, 2, 3, 4, 4, 5, 5, 5, 6])
N_LENGTHS = 7
N_CELLS = (N_FAILURES + N_SUCCESSES) * N_LENGTHS


@dataclass(frozen=True)
class RunStates:
    """Each row of a log as a part of its run.

    `cell` is the class of the run after the row, by its length and by the outcomes at its end; `stays` is 1 if the
    next row is at the same action, 0 if it is at another, and -1 where there is none.
    """

    cell: NDArray[np.int32]
    stays: NDArray[np.int8]

    @classmethod
    def of(cls, log: Interactions) -> RunStates:
        """The states of all rows."""
        return cls(*_states(log.offsets, log.action, log.outcome))


@dataclass(frozen=True)
class RunModel:
    """How learners walk: the chance to stay is by action and by cell, success by ability, action and earlier attempts at it.

    `jumps` leads from one run to the next, its last source is the start. The rest are log-odds; `gain` is by earlier
    successes and failures at the action.
    """

    jumps: AliasTables
    stay: Floats
    stay_by_cell: Floats
    easiness: Floats
    gain: Floats

    def walk(
        self, ability: Floats, lengths: IntArray, rng: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Walks of learners with these abilities and lengths: actions and outcomes, one learner after the other."""
        n_rows = int(lengths.sum())
        action, outcome = np.empty(n_rows, dtype=np.int32), np.empty(n_rows, dtype=np.int8)
        _walk(
            rng,
            ability,
            lengths.astype(np.int64),
            self.jumps.begin,
            self.jumps.likely,
            self.jumps.other,
            self.jumps.threshold,
            self.stay,
            self.stay_by_cell,
            self.easiness,
            self.gain,
            action,
            outcome,
        )
        return action, outcome


@njit(cache=True, nogil=True)
def _cell(length, streak):  # type: ignore[no-untyped-def]
    """`streak` is positive for successes in a row, negative for failures."""
    ending = min(streak, N_SUCCESSES) + N_FAILURES - 1 if streak > 0 else N_FAILURES + max(streak, -N_FAILURES)
    return ending * N_LENGTHS + _LENGTH_CLASS[min(length, len(_LENGTH_CLASS) - 1)]


@njit(cache=True, nogil=True)
def _states(offsets, action, outcome):  # type: ignore[no-untyped-def]
    n_rows = len(action)
    cell = np.empty(n_rows, dtype=np.int32)
    stays = np.empty(n_rows, dtype=np.int8)
    for i in range(len(offsets) - 1):
        length, streak = 0, 0
        for row in range(offsets[i], offsets[i + 1]):
            here = action[row]
            if row == offsets[i] or action[row - 1] != here:
                length, streak = 0, 0
            length += 1
            if outcome[row]:
                streak = streak + 1 if streak > 0 else 1
            else:
                streak = streak - 1 if streak < 0 else -1
            cell[row] = _cell(length, streak)
            last = row + 1 == offsets[i + 1]
            stays[row] = -1 if last else action[row + 1] == here
    return cell, stays


@njit(cache=True, nogil=True)
def _chance(log_odds):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + np.exp(-log_odds))


@njit(cache=True, nogil=True)
def _drawn(rng, source, begin, likely, other, threshold):  # type: ignore[no-untyped-def]
    low = begin[source]
    x = rng.random() * (begin[source + 1] - low)
    cell = int(x)
    k = low + cell
    return likely[k] if x - cell < threshold[k] else other[k]


@njit(cache=True, nogil=True)
def _walk(  # type: ignore[no-untyped-def]
    rng,
    ability,
    lengths,
    begin,
    likely,
    other,
    threshold,
    stay,
    stay_by_cell,
    easiness,
    gain,
    action,
    outcome,
):
    n_actions = len(stay)
    good, bad = np.zeros(n_actions, dtype=np.int64), np.zeros(n_actions, dtype=np.int64)
    most = len(gain) - 1
    row = 0
    for i in range(len(lengths)):
        first, last = row, row + lengths[i]
        here, length, streak = -1, 0, 0
        while row < last:
            if length == 0 or rng.random() >= _chance(stay[here] + stay_by_cell[_cell(length, streak)]):
                source = n_actions if here < 0 else here
                if begin[source + 1] > begin[source]:  # who can go nowhere stays
                    here = _drawn(rng, source, begin, likely, other, threshold)
                length, streak = 0, 0
            length += 1
            skill = easiness[here] + gain[min(good[here], most), min(bad[here], most)]
            success = rng.random() < _chance(ability[i] + skill)
            if success:
                streak = streak + 1 if streak > 0 else 1
            else:
                streak = streak - 1 if streak < 0 else -1
            action[row], outcome[row] = here, success
            good[here] += success
            bad[here] += not success
            row += 1
        for k in range(first, last):
            good[action[k]], bad[action[k]] = 0, 0
