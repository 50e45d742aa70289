"""One Newton round for difficulties: what each learner says about them, given their own ability.

Given the easiness of the actions (public by now), a learner's ability is estimated from their
own rows, with a standard normal prior; what is left unexplained at each action is the learner's
part of the gradient of the penalised likelihood that `models.rasch` maximises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.models.rasch import PairCounts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Unexplained:
    """Per (learner, action) pair: successes beyond expectation, and the curvature left to the action.

    The curvature of an action is reduced by what the learner's own ability absorbs. `ability`
    has one entry per learner.
    """

    residual: Floats
    curvature: Floats
    ability: Floats


def unexplained(pairs: PairCounts, easiness: Floats) -> Unexplained:
    """The residuals of every learner at a common easiness."""
    return Unexplained(*_unexplained(pairs.offsets, pairs.action, pairs.attempts, pairs.successes, easiness))


@njit(cache=True, nogil=True)
def _unexplained(offsets, action, attempts, successes, easiness):  # type: ignore[no-untyped-def]
    residual = np.empty(len(action))
    curvature = np.empty(len(action))
    ability = np.zeros(len(offsets) - 1)
    for i in range(len(offsets) - 1):
        for _ in range(12):
            slope = -ability[i]
            bend = 1.0
            for k in range(offsets[i], offsets[i + 1]):
                chance = 1.0 / (1.0 + np.exp(-(easiness[action[k]] + ability[i])))
                slope += successes[k] - attempts[k] * chance
                bend += attempts[k] * chance * (1.0 - chance)
            step = slope / bend
            ability[i] += min(max(step, -2.0), 2.0)
            if abs(step) < 1e-9:
                break
        for k in range(offsets[i], offsets[i + 1]):
            chance = 1.0 / (1.0 + np.exp(-(easiness[action[k]] + ability[i])))
            own = attempts[k] * chance * (1.0 - chance)
            residual[k] = successes[k] - attempts[k] * chance
            curvature[k] = own * (1.0 - own / bend)
    return residual, curvature, ability
