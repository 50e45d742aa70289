"""Joint estimation of the Rasch model: abilities and difficulties together, penalised.

The fit minimises equation 6 of Steiner, Nyrnberg and Hansen (2019),

    sum over answered (n, i) of log(1 + exp(ability_n - difficulty_i))
        + difficulty . (right_by_item + tilt) - ability . right_by_learner
        + penalty/2 (|ability|^2 + |difficulty|^2).

The responses enter only through the numbers of right answers by learner and by item, which may
be noisy: any real numbers have a unique optimum when the penalty is positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# The paper prints a regularization parameter of 0.01 for all of its experiments (section 4). Its program minimises
# lambda |w|^2 in place of equation 6's lambda/2 |w|^2, so that its results were made with 0.02.
PRINTED_PENALTY = 0.01
PENALTY = 0.02

# Newton steps before a start from larger penalties is better, and how fast these fall.
_PATIENCE = 30
_FACTOR = 0.3


@dataclass(frozen=True)
class Joint:
    """Abilities and difficulties on the scale of log-odds."""

    ability: Floats
    difficulty: Floats
    n_iterations: int


def fit_joint(
    right_by_learner: ArrayLike,
    right_by_item: ArrayLike,
    *,
    penalty: float = PENALTY,
    tilt: ArrayLike | None = None,
    mask: NDArray[np.bool_] | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 500,
) -> Joint:
    """Minimise equation 6 by Newton's method; `mask` is which learner answered which item (None: every one).

    `tilt` is the linear term of objective perturbation. Stops when no derivative exceeds
    `tolerance` times the size of the numbers it is a sum of. Learners with the same number of
    right answers on the same items have the same ability, so each such group is fitted once.
    """
    right_by_learner = np.asarray(right_by_learner, dtype=np.float64)
    target = np.asarray(right_by_item, dtype=np.float64)
    if tilt is not None:
        target = target + np.asarray(tilt, dtype=np.float64)
    if not penalty > 0:
        raise ValueError(f"without a penalty above 0 there need not be an optimum; got {penalty}")
    if not (np.isfinite(right_by_learner).all() and np.isfinite(target).all()):
        raise ValueError("numbers of right answers have to be finite")
    n_learners, n_items = len(right_by_learner), len(target)
    if mask is None:
        score, group = np.unique(right_by_learner, return_inverse=True)
        answered = np.ones((len(score), n_items), dtype=np.bool_)
    else:
        if mask.shape != (n_learners, n_items):
            raise ValueError(f"the mask is {mask.shape}, the responses are {(n_learners, n_items)}")
        rows = np.column_stack([right_by_learner.view(np.uint8).reshape(n_learners, -1), mask])
        whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
        _, first, group = np.unique(whole, return_index=True, return_inverse=True)
        score, answered = right_by_learner[first], np.ascontiguousarray(mask[first])
    size = np.bincount(group, minlength=len(score)).astype(np.float64)
    ability, difficulty, n_iterations = _fit(
        score, size, answered, target, float(penalty), tolerance, max_iterations
    )
    return Joint(ability[group], difficulty, n_iterations)


def estimate_ability(correct: NDArray[np.int8], difficulty: ArrayLike, *, penalty: float = PENALTY) -> Floats:
    """Each learner's ability given the difficulties: what a student computes at home (section 3 of the paper).

    `correct` is one learner's row or a matrix of rows: 1 right, 0 wrong, below 0 not answered.
    Minimises sum of log(1 + exp(ability - difficulty_i)) - right * ability + penalty/2 ability^2;
    with penalty 1/sd^2 that is the most probable ability under N(0, sd^2). Items without a
    finite difficulty are left out. Without a penalty, a learner with everything
    right (wrong) has an infinite ability.
    """
    rows = np.atleast_2d(np.asarray(correct, dtype=np.int8))
    hardness: Floats = np.asarray(difficulty, dtype=np.float64)
    if not penalty >= 0:
        raise ValueError(f"a penalty is at least 0, not {penalty}")
    finite = np.isfinite(hardness)
    if not finite.all():
        rows, hardness = rows[:, finite], hardness[finite]
    if (rows >= 0).all():
        # One ability for each score from 0 to everything right.
        stairs = np.tri(len(hardness) + 1, len(hardness), -1, np.int8)
        by_score = np.asarray(_abilities(stairs, hardness, penalty))
        return np.asarray(by_score[np.count_nonzero(rows > 0, axis=1)])
    return np.asarray(_abilities(np.ascontiguousarray(rows), hardness, penalty))


@njit(cache=True, nogil=True)
def _gradient(score, size, answered, target, penalty, ability, difficulty, weight, gradient):  # type: ignore[no-untyped-def]
    """Derivatives, abilities' first (times the group's size), and the second derivatives of each term."""
    n_groups, n_items = answered.shape
    for i in range(n_items):
        gradient[n_groups + i] = target[i] + penalty * difficulty[i]
    for g in range(n_groups):
        total = penalty * ability[g] - score[g]
        for i in range(n_items):
            weight[g, i] = 0.0
            if answered[g, i]:
                eta = ability[g] - difficulty[i]
                small = np.exp(-abs(eta))
                chance = 1.0 / (1.0 + small) if eta >= 0 else small / (1.0 + small)
                weight[g, i] = small / ((1.0 + small) * (1.0 + small))
                total += chance
                gradient[n_groups + i] -= size[g] * chance
        gradient[g] = size[g] * total


@njit(cache=True, nogil=True)
def _direction(size, penalty, weight, gradient, step):  # type: ignore[no-untyped-def]
    """Newton's step: abilities are eliminated, what is left is a system of the items."""
    n_groups, n_items = weight.shape
    system = np.zeros((n_items, n_items))
    right = np.empty(n_items)
    curvature = np.empty(n_groups)
    for i in range(n_items):
        system[i, i] = penalty
        right[i] = gradient[n_groups + i]
    for g in range(n_groups):
        total = penalty
        for i in range(n_items):
            total += weight[g, i]
        curvature[g] = total
        for i in range(n_items):
            if weight[g, i] == 0.0:
                continue
            scaled = size[g] * weight[g, i] / total
            # w - w^2/total, written without the difference: abilities leave little when w is most of it
            system[i, i] += scaled * (total - weight[g, i])
            right[i] += scaled * gradient[g] / size[g]
            for j in range(i):
                system[i, j] -= scaled * weight[g, j]
    for i in range(n_items):
        for j in range(i):
            system[j, i] = system[i, j]
    items = np.linalg.solve(system, right)
    for i in range(n_items):
        step[n_groups + i] = -items[i]
    for g in range(n_groups):
        total = gradient[g] / size[g]
        for i in range(n_items):
            total += weight[g, i] * items[i]
        step[g] = -total / curvature[g]


@njit(cache=True, nogil=True)
def _fit(score, size, answered, target, penalty, tolerance, max_iterations):  # type: ignore[no-untyped-def]
    """Newton's method; from a larger penalty down where the penalty alone decides some parameters.

    Far from all difficulties a term is a straight line and only the penalty is curved, so that
    with a small penalty and numbers outside of what responses can give, the objective has
    corners at the scale of its solution, and Newton's method creeps along them. The optimum
    moves smoothly with the penalty: each optimum is a good start for a smaller penalty's.
    """
    n_groups, n_items = answered.shape
    place = np.zeros(n_groups + n_items)
    # What each derivative is a sum of: rounding errors are relative to it.
    magnitude = np.empty(n_groups + n_items)
    for g in range(n_groups):
        magnitude[g] = size[g] * (1.0 + abs(score[g]) + n_items)
    for i in range(n_items):
        magnitude[n_groups + i] = 1.0 + abs(target[i]) + size.sum()
    place, total, done = _newton(
        score, size, answered, target, penalty, place, tolerance * magnitude, _PATIENCE
    )
    if done:
        return place[:n_groups], place[n_groups:], total
    place = np.zeros(n_groups + n_items)
    current = max(penalty, 1.0)
    while True:
        last = current == penalty
        accuracy = (tolerance if last else 1e-3) * magnitude
        place, used, done = _newton(
            score, size, answered, target, current, place, accuracy, max_iterations if last else _PATIENCE
        )
        total += used
        if last:
            return place[:n_groups], place[n_groups:], total
        current = max(penalty, current * _FACTOR)


@njit(cache=True, nogil=True)
def _newton(score, size, answered, target, penalty, place, accuracy, max_iterations):  # type: ignore[no-untyped-def]
    n_groups, n_items = answered.shape
    weight = np.empty((n_groups, n_items))
    gradient = np.empty(n_groups + n_items)
    trial_gradient = np.empty(n_groups + n_items)
    step = np.empty(n_groups + n_items)
    _gradient(score, size, answered, target, penalty, place[:n_groups], place[n_groups:], weight, gradient)
    for iteration in range(max_iterations):
        if np.all(np.abs(gradient) <= accuracy):
            return place, iteration, True
        _direction(size, penalty, weight, gradient, step)
        if np.max(np.abs(step)) <= 1e-12 * (1.0 + np.max(np.abs(place))):
            return place, iteration, True  # parameters so large that rounding them is all that is left
        start = gradient @ step
        # The objective is convex, so its slope along the step rises. The line search looks at
        # slopes and not at values: these drown in rounding when the noise is large.
        low, high, scale = 0.0, np.inf, 1.0
        trial = place
        for _ in range(60):
            trial = place + scale * step
            _gradient(
                score,
                size,
                answered,
                target,
                penalty,
                trial[:n_groups],
                trial[n_groups:],
                weight,
                trial_gradient,
            )
            slope = trial_gradient @ step
            if abs(slope) <= 0.5 * abs(start):
                break
            if slope < 0:
                low = scale
                scale = 2.0 * scale if high == np.inf else 0.5 * (low + high)
            else:
                high = scale
                scale = 0.5 * (low + high)
        place = trial
        gradient[:] = trial_gradient
    return place, max_iterations, bool(np.all(np.abs(gradient) <= accuracy))


@njit(cache=True, nogil=True)
def _abilities(rows, difficulty, penalty):  # type: ignore[no-untyped-def]
    """Newton's method inside of a bracket that shrinks, for each row."""
    result = np.zeros(len(rows))
    for n in range(len(rows)):
        right, n_answered = 0, 0
        nearest, farthest = np.inf, -np.inf
        for i in range(len(difficulty)):
            if rows[n, i] >= 0:
                n_answered += 1
                right += rows[n, i]
                nearest = min(nearest, difficulty[i])
                farthest = max(farthest, difficulty[i])
        if n_answered == 0:
            continue
        if penalty == 0.0 and (right == 0 or right == n_answered):
            result[n] = np.inf if right else -np.inf
            continue
        # With all difficulties equal to d the solution without a penalty is d + logit of the
        # share: the easiest and the hardest item bracket it, and the penalty draws it to 0.
        low, high = -np.inf, np.inf
        if 0 < right < n_answered:
            logit = np.log(right / (n_answered - right))
            low, high = min(nearest + logit, 0.0), max(farthest + logit, 0.0)
        if penalty > 0.0:
            low, high = max(low, (right - n_answered) / penalty), min(high, right / penalty)
        ability = min(max(0.0, low), high)
        for _ in range(200):
            slope, curvature = penalty * ability - right, penalty
            for i in range(len(difficulty)):
                if rows[n, i] >= 0:
                    chance = 1.0 / (1.0 + np.exp(difficulty[i] - ability))
                    slope += chance
                    curvature += chance * (1.0 - chance)
            if slope > 0:
                high = ability
            else:
                low = ability
            following = ability - slope / curvature if curvature > 0.0 else low - 1.0
            if not low < following < high:
                following = 0.5 * (low + high)
            if abs(following - ability) <= 1e-13 * (1.0 + abs(ability)) or slope == 0.0:
                break
            ability = following
        result[n] = ability
    return result
