"""The Rasch model of a log in parts: the same optimum as `rasch`, by passes over the log that keep nothing of it.

Given what all learners have in common, easiness and intercept, each learner's own ability follows from their rows
alone. So the penalised likelihood, with each ability at its best, is a function of few numbers; a pass over the parts
gives its value and its slopes, and L-BFGS does the rest. Sums are of whole numbers (2^-30 is one), so that they are
the same however the log is divided.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import minimize

from understudy.logs.interactions import Interactions
from understudy.logs.large.parts import in_parts, list_over, sum_over
from understudy.logs.models.rasch import INTERCEPT_PENALTY, PairCounts, Rasch, fit_rasch

Floats = NDArray[np.float64]

STEP = 2.0**-30
# No parameter is farther from the optimum than about this.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class _Sums:
    """Value, slopes and curvatures in units of `STEP`."""

    value: int
    slope: NDArray[np.int64]
    bend: NDArray[np.int64]

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.value + other.value, self.slope + other.slope, self.bend + other.bend)


def fit_rasch_of(log: Interactions) -> Rasch:
    """The Rasch model of a log of any size."""
    if not in_parts(log):
        return fit_rasch(log)
    # Parameters in units of their standard errors, more or less: then all directions are about as steep.
    start = np.zeros(log.n_actions + 1)
    bend = sum_over(log, functools.partial(_sums, start)).bend * STEP
    scale = 1.0 / np.sqrt(np.append(bend, bend.sum()) + 1.0)

    def objective(x: Floats) -> tuple[float, Floats]:
        common = x * scale
        sums = sum_over(log, functools.partial(_sums, common))
        penalty = np.append(common[:-1], INTERCEPT_PENALTY * common[-1])
        slope = np.append(sums.slope, sums.slope.sum()) * STEP + penalty
        return sums.value * STEP + 0.5 * float(common @ penalty), slope * scale

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "maxcor": 30, "ftol": 0.0, "gtol": TOLERANCE / float(scale.max())},
    )
    common = found.x * scale
    ability = np.concatenate(list_over(log, functools.partial(_abilities, common)))
    return Rasch(-common[:-1], ability, float(common[-1]), int(found.nit))


def _sums(common: Floats, part: Interactions) -> _Sums:
    pairs = PairCounts.of(part)
    value, slope, bend, _ = _profile(
        pairs.offsets, pairs.action, pairs.attempts, pairs.successes, common[:-1] + common[-1]
    )
    return _Sums(int(value), slope, bend)


def _abilities(common: Floats, part: Interactions) -> Floats:
    pairs = PairCounts.of(part)
    easiness = common[:-1] + common[-1]
    ability: Floats = _profile(pairs.offsets, pairs.action, pairs.attempts, pairs.successes, easiness)[3]
    return ability


@njit(cache=True, nogil=True)
def _profile(offsets, action, attempts, successes, easiness):  # type: ignore[no-untyped-def]
    """With every learner's ability at its best: the value, and slope and curvature of each action; and abilities."""
    total = np.int64(0)
    slope = np.zeros(len(easiness), dtype=np.int64)
    bend = np.zeros(len(easiness), dtype=np.int64)
    abilities = np.empty(len(offsets) - 1)
    for i in range(len(offsets) - 1):
        ability = 0.0
        curvature = 1.0
        for _ in range(30):
            gradient, curvature = ability, 1.0
            for k in range(offsets[i], offsets[i + 1]):
                chance = 1.0 / (1.0 + np.exp(-(easiness[action[k]] + ability)))
                gradient += attempts[k] * chance - successes[k]
                curvature += attempts[k] * chance * (1.0 - chance)
            step = gradient / curvature
            ability -= min(max(step, -2.0), 2.0)
            if abs(step) < 1e-10:
                break
        abilities[i] = ability
        value = 0.5 * ability * ability
        for k in range(offsets[i], offsets[i + 1]):
            j = action[k]
            eta = easiness[j] + ability
            less = np.exp(-abs(eta))
            chance = 1.0 / (1.0 + less) if eta > 0 else less / (1.0 + less)
            value += attempts[k] * (max(eta, 0.0) + np.log1p(less)) - successes[k] * eta
            own = attempts[k] * chance * (1.0 - chance)
            slope[j] += np.int64(np.rint((attempts[k] * chance - successes[k]) / STEP))
            bend[j] += np.int64(np.rint(own * (1.0 - own / curvature) / STEP))
        total += np.int64(np.rint(value / STEP))
    return total, slope, bend, abilities
