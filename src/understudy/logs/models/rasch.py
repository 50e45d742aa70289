"""The Rasch model: how able each learner, how hard each action.

The chance of success is sigma(intercept + ability - difficulty). The fit minimises the
penalised likelihood that scikit-learn's `LogisticRegression(C=1)` minimises on one-hot
learners and actions (seed synthetic-logs, section 5.2),

    sum over rows of log(1 + exp(eta)) - outcome * eta,  plus (|ability|^2 + |difficulty|^2) / 2,

with a free intercept, but on counts per (learner, action) and by Newton's method, where the
abilities are eliminated and conjugate gradients solve for the rest: time and memory are
proportional to the number of distinct pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]

# Keeps the intercept finite when every outcome is the same; far below what scikit-learn's
# tolerance could notice otherwise.
INTERCEPT_PENALTY = 1e-6
# Newton's method for one learner's ability: how many steps at the most, the largest, and the one that is the last.
MOST_NEWTON_STEPS, NEWTON_STEP, SMALLEST_STEP = 12, 2.0, 1e-9


@dataclass(frozen=True)
class Rasch:
    """Parameters of a fitted Rasch model, on the scale of log-odds."""

    difficulty: Floats
    ability: Floats
    intercept: float
    n_iterations: int


@dataclass(frozen=True)
class PairCounts:
    """Attempts and successes of each learner at each action tried, as a sparse matrix by learner."""

    offsets: NDArray[np.int64]
    action: NDArray[np.int32]
    attempts: Floats
    successes: Floats
    n_actions: int

    @classmethod
    def of(cls, log: Interactions) -> PairCounts:
        """Count the pairs of a log in one pass."""
        offsets, action, attempts, successes = _count_pairs(
            log.offsets, log.action, log.outcome, log.n_actions
        )
        return cls(offsets, action, attempts, successes, log.n_actions)


def fit_rasch(log: Interactions | PairCounts, *, tolerance: float = 1e-6, max_iterations: int = 50) -> Rasch:
    """Fit by Newton's method until no derivative exceeds `tolerance`.

    The objective is strongly convex with modulus 1 in abilities and difficulties, so they lie
    within about `tolerance` times the root of their number of the optimum.
    """
    pairs = log if isinstance(log, PairCounts) else PairCounts.of(log)
    n_learners = len(pairs.offsets) - 1
    # Easiness (minus difficulty) of each action, and the intercept as the last entry.
    common = np.zeros(pairs.n_actions + 1)
    ability = np.zeros(n_learners)
    arrays = (pairs.offsets, pairs.action, pairs.attempts, pairs.successes)
    weight = np.empty(len(pairs.action))
    value, gradient_ability, gradient_common = _evaluate(*arrays, ability, common, weight)
    iteration = 0
    for iteration in range(1, max_iterations + 1):  # noqa: B007 (reported)
        largest = max(np.abs(gradient_ability).max(initial=0.0), np.abs(gradient_common).max())
        if largest <= tolerance:
            break
        # Inexact Newton: solve the system the more exactly, the closer the optimum.
        accuracy = min(0.05, largest / (1.0 + largest)) * 0.1
        step_ability, step_common = _newton_step(
            pairs.offsets, pairs.action, weight, gradient_ability, gradient_common, accuracy
        )
        scale = 1.0
        slope = gradient_ability @ step_ability + gradient_common @ step_common
        while True:
            next_ability, next_common = ability - scale * step_ability, common - scale * step_common
            trial, gradient_ability, gradient_common = _evaluate(*arrays, next_ability, next_common, weight)
            # Near the optimum the decrease drowns in rounding: accept the full step there.
            if trial <= value - 1e-4 * scale * slope + 1e-12 * abs(value) or scale < 1e-6:
                break
            scale /= 2
        ability, common, value = next_ability, next_common, trial
    return Rasch(-common[:-1], ability, float(common[-1]), iteration)


@njit(cache=True, nogil=True)
def _count_pairs(offsets, action, outcome, n_actions):  # type: ignore[no-untyped-def]
    n_learners = len(offsets) - 1
    place = np.full(n_actions, -1, dtype=np.int64)
    pair_offsets = np.zeros(n_learners + 1, dtype=np.int64)
    pair_action = np.empty(len(action), dtype=np.int32)
    attempts = np.zeros(len(action))
    successes = np.zeros(len(action))
    n_pairs = 0
    for i in range(n_learners):
        begin = n_pairs
        for r in range(offsets[i], offsets[i + 1]):
            j = action[r]
            if place[j] < begin:
                place[j] = n_pairs
                pair_action[n_pairs] = j
                n_pairs += 1
            attempts[place[j]] += 1
            successes[place[j]] += outcome[r]
        pair_offsets[i + 1] = n_pairs
    return pair_offsets, pair_action[:n_pairs].copy(), attempts[:n_pairs].copy(), successes[:n_pairs].copy()


@njit(cache=True, nogil=True)
def _evaluate(offsets, action, attempts, successes, ability, common, weight):  # type: ignore[no-untyped-def]
    """The objective and its gradient; fills `weight` with the curvature of each pair."""
    intercept = common[-1]
    # Sums that every pair adds to are variables, here and below: an array's entry is written and read again each time.
    total = 0.5 * INTERCEPT_PENALTY * intercept * intercept
    for j in range(len(common) - 1):
        total += 0.5 * common[j] * common[j]
    gradient_ability = ability.copy()
    gradient_common = common.copy()
    gradient_intercept = INTERCEPT_PENALTY * intercept
    for i in range(len(offsets) - 1):
        total += 0.5 * ability[i] * ability[i]
        slope = ability[i]
        for k in range(offsets[i], offsets[i + 1]):
            j = action[k]
            eta = intercept + ability[i] + common[j]
            against = np.exp(-eta)
            # log(1 + exp(eta)) = eta + log(1 + exp(-eta)); log1p would be slow, and what it adds is lost in the total.
            total += attempts[k] * (eta + np.log(1.0 + against)) - successes[k] * eta
            chance = 1.0 / (1.0 + against)
            residual = attempts[k] * chance - successes[k]
            weight[k] = attempts[k] * chance * (1.0 - chance)
            slope += residual
            gradient_common[j] += residual
            gradient_intercept += residual
        gradient_ability[i] = slope
    gradient_common[-1] = gradient_intercept
    return total, gradient_ability, gradient_common


@njit(cache=True, nogil=True)
def _schur_times(offsets, action, weight, curvature, x, result):  # type: ignore[no-untyped-def]
    """Multiply by the Hessian of the common parameters after the abilities are eliminated."""
    for j in range(len(x) - 1):
        result[j] = x[j]
    shift = x[-1]
    of_intercept = INTERCEPT_PENALTY * shift
    for i in range(len(offsets) - 1):
        answer = 0.0
        for k in range(offsets[i], offsets[i + 1]):
            answer += weight[k] * (x[action[k]] + shift)
        answer /= curvature[i]
        for k in range(offsets[i], offsets[i + 1]):
            change = weight[k] * (x[action[k]] + shift - answer)
            result[action[k]] += change
            of_intercept += change
    result[-1] = of_intercept


@njit(cache=True, nogil=True)
def _newton_step(offsets, action, weight, gradient_ability, gradient_common, accuracy):  # type: ignore[no-untyped-def]
    n_learners = len(offsets) - 1
    n_common = len(gradient_common)
    curvature = np.ones(n_learners)
    diagonal = np.ones(n_common)
    right = gradient_common.copy()
    of_intercept, right_of_intercept = INTERCEPT_PENALTY, gradient_common[-1]
    for i in range(n_learners):
        own = 1.0
        for k in range(offsets[i], offsets[i + 1]):
            own += weight[k]
            diagonal[action[k]] += weight[k]
            of_intercept += weight[k]
        curvature[i] = own
        ratio = gradient_ability[i] / own
        for k in range(offsets[i], offsets[i + 1]):
            right[action[k]] -= weight[k] * ratio
            right_of_intercept -= weight[k] * ratio
    diagonal[-1], right[-1] = of_intercept, right_of_intercept
    # Preconditioned conjugate gradients on the Schur complement.
    x = np.zeros(n_common)
    residual = right.copy()
    z = residual / diagonal
    direction = z.copy()
    product = np.empty(n_common)
    rho = np.sum(residual * z)
    goal = accuracy * accuracy * rho
    for _ in range(10 * n_common + 100):
        if rho <= goal or rho == 0.0:
            break
        _schur_times(offsets, action, weight, curvature, direction, product)
        alpha = rho / np.sum(direction * product)
        x += alpha * direction
        residual -= alpha * product
        z = residual / diagonal
        previous = rho
        rho = np.sum(residual * z)
        direction = z + (rho / previous) * direction
    step_ability = np.empty(n_learners)
    for i in range(n_learners):
        remaining = gradient_ability[i]
        for k in range(offsets[i], offsets[i + 1]):
            remaining -= weight[k] * (x[action[k]] + x[-1])
        step_ability[i] = remaining / curvature[i]
    return step_ability, x


@dataclass(frozen=True)
class Unexplained:
    """Per (learner, action) pair: successes beyond expectation, and the curvature left to the action.

    The curvature of an action is reduced by what the learner's own ability absorbs. `ability`
    has one entry per learner.
    """

    learner: NDArray[np.int64]
    action: NDArray[np.int32]
    residual: Floats
    curvature: Floats
    ability: Floats


def unexplained(pairs: PairCounts, easiness: Floats) -> Unexplained:
    """The residuals of every learner at a common easiness."""
    learner = np.repeat(np.arange(len(pairs.offsets) - 1), np.diff(pairs.offsets))
    found = _unexplained(pairs.offsets, pairs.action, pairs.attempts, pairs.successes, easiness)
    return Unexplained(learner, pairs.action, *found)


@njit(cache=True, nogil=True)
def _unexplained(offsets, action, attempts, successes, easiness):  # type: ignore[no-untyped-def]
    residual = np.empty(len(action))
    curvature = np.empty(len(action))
    ability = np.zeros(len(offsets) - 1)
    for i in range(len(offsets) - 1):
        for _ in range(MOST_NEWTON_STEPS):
            slope = -ability[i]
            bend = 1.0
            for k in range(offsets[i], offsets[i + 1]):
                chance = 1.0 / (1.0 + np.exp(-(easiness[action[k]] + ability[i])))
                slope += successes[k] - attempts[k] * chance
                bend += attempts[k] * chance * (1.0 - chance)
            step = slope / bend
            ability[i] += min(max(step, -NEWTON_STEP), NEWTON_STEP)
            if abs(step) < SMALLEST_STEP:
                break
        for k in range(offsets[i], offsets[i + 1]):
            chance = 1.0 / (1.0 + np.exp(-(easiness[action[k]] + ability[i])))
            own = attempts[k] * chance * (1.0 - chance)
            residual[k] = successes[k] - attempts[k] * chance
            curvature[k] = own * (1.0 - own / bend)
    return residual, curvature, ability
