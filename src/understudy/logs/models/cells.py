"""Classes of rows: by the run so far, by earlier attempts at the action; and which jumps lead to something new."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.interactions import Interactions
from understudy.logs.models.practice import earlier_outcomes
from understudy.logs.models.runs import N_CELLS, N_FAILURES, N_LENGTHS

Floats = NDArray[np.float64]

# Cells of practice, by earlier attempts at an action: none, then 1 to 4 and more, each with few successes or with many.
MOST_ATTEMPTS = 5
N_PRACTICE = 1 + 2 * MOST_ATTEMPTS


def practice_cell(successes: NDArray[np.int64], failures: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cell of so many earlier successes and failures; two successes for each failure are many."""
    attempts = np.minimum(successes + failures, MOST_ATTEMPTS)
    return np.where(attempts == 0, 0, 2 * attempts - 1 + (successes >= 2 * failures))


def practice_cells(log: Interactions) -> NDArray[np.int64]:
    """The cell of each row."""
    return practice_cell(*earlier_outcomes(log))


def practice_places() -> Floats:
    """Where each cell of practice lies: neighbours are alike."""
    cell = np.arange(N_PRACTICE)
    return np.stack([(cell + 1) // 2, np.where(cell == 0, 0.0, cell % 2 - 0.5)], axis=1)


def practice_table(gain: Floats) -> Floats:
    """What each cell adds, as the table that a walk reads."""
    counts = np.arange(MOST_ATTEMPTS + 1)
    return gain[practice_cell(counts[:, None], counts)]


def run_places() -> Floats:
    """Where each cell of a run lies: neighbours are alike; failures and successes at the end of a run lie apart."""
    ending, length = np.divmod(np.arange(N_CELLS), N_LENGTHS)
    return np.stack([ending + 2.0 * (ending >= N_FAILURES), length], axis=1)


def new_jumps(log: Interactions) -> NDArray[np.int64]:
    """Per jump, in order: 1 if the learner had not tried the action before."""
    return _untried(log.offsets, log.action, log.n_actions)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _untried(offsets, action, n_actions):  # type: ignore[no-untyped-def]
    last = np.full(n_actions, -1, dtype=np.int64)
    found = np.empty(len(action), dtype=np.int64)
    n = 0
    for i in range(len(offsets) - 1):
        for row in range(offsets[i], offsets[i + 1]):
            here = action[row]
            if row > offsets[i] and action[row - 1] != here:
                found[n] = last[here] != i
                n += 1
            last[here] = i
    return found[:n]
