"""Success that grows with practice: log-odds = ability + easiness of the action + what earlier attempts at it add.

What they add is a table by earlier successes and failures at the action: constant within classes of attempts,
or performance factors (Pavlik, Cen and Koedinger 2009). Unit normal penalties on abilities, easiness and
weights, as in the Rasch model, which this is when nothing is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

from understudy.logs.interactions import Interactions, totals
from understudy.logs.models.rasch import fit_rasch

Floats = NDArray[np.float64]

# Earlier successes, and failures, are counted up to here.
MOST_EARLIER = 63
# Classes of earlier attempts begin at these numbers.
CLASSES = np.array([0, 1, 2, 3, 4, 6])


def by_attempts(successes: Floats, failures: Floats) -> Floats:
    """One column per class of attempts but the first."""
    kind = np.searchsorted(CLASSES, successes + failures, side="right") - 1
    return (kind[:, None] == np.arange(1, len(CLASSES))).astype(np.float64)


def performance_factors(successes: Floats, failures: Floats) -> Floats:
    """Logarithms of one plus earlier successes, and of one plus earlier failures."""
    return np.column_stack([np.log1p(successes), np.log1p(failures)])


@dataclass(frozen=True)
class Practice:
    """A fitted model; `gain[s, f]` is what s earlier successes and f earlier failures at an action add."""

    easiness: Floats
    ability: Floats
    weights: Floats
    gain: Floats


def fit_practice(
    log: Interactions, features: Callable[[Floats, Floats], Floats], *, n_rounds: int = 60, tolerance: float = 1e-4
) -> Practice:
    """Fit by Newton steps in turn for abilities, easiness and weights, from the Rasch model on."""
    successes, failures = earlier_outcomes(log)
    design = features(successes.astype(np.float64), failures.astype(np.float64))
    rasch = fit_rasch(log)
    ability, easiness, base = rasch.ability, -rasch.difficulty, rasch.intercept
    weights = np.zeros(design.shape[1])
    outcome = log.outcome.astype(np.float64)
    for _ in range(n_rounds):
        largest = 0.0
        for who, n, block in ((log.learner, log.n_learners, ability), (log.action, log.n_actions, easiness)):
            chance = expit(base + ability[log.learner] + easiness[log.action] + design @ weights)
            slope = totals(who, outcome - chance, n) - block
            step = slope / (totals(who, chance * (1 - chance), n) + 1.0)
            block += np.clip(step, -1.0, 1.0)
            largest = max(largest, float(np.abs(step).max(initial=0.0)))
        # The base rate is a last column, almost free of penalty.
        chance = expit(base + ability[log.learner] + easiness[log.action] + design @ weights)
        columns = np.column_stack([design, np.ones(log.n_rows)])
        penalty = np.append(np.ones(len(weights)), 1e-6)
        present = np.append(weights, base)
        slope = columns.T @ (outcome - chance) - penalty * present
        bend = (columns * (chance * (1 - chance))[:, None]).T @ columns + np.diag(penalty)
        step = np.clip(np.linalg.solve(bend, slope), -1.0, 1.0)
        weights, base = weights + step[:-1], base + float(step[-1])
        if max(largest, float(np.abs(step).max())) <= tolerance:
            break
    counts = np.arange(MOST_EARLIER + 1.0)
    grid = np.repeat(counts, len(counts)), np.tile(counts, len(counts))
    gain = (features(*grid) @ weights).reshape(len(counts), len(counts))
    return Practice(easiness + base, ability, weights, gain)


def earlier_outcomes(log: Interactions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per row: earlier successes and failures of the learner at the action."""
    return _earlier(log.offsets, log.action, log.outcome, log.n_actions)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _earlier(offsets, action, outcome, n_actions):  # type: ignore[no-untyped-def]
    successes, failures = np.zeros(len(action), dtype=np.int64), np.zeros(len(action), dtype=np.int64)
    good, bad = np.zeros(n_actions, dtype=np.int64), np.zeros(n_actions, dtype=np.int64)
    for i in range(len(offsets) - 1):
        for row in range(offsets[i], offsets[i + 1]):
            here = action[row]
            successes[row], failures[row] = good[here], bad[here]
            good[here] += outcome[row]
            bad[here] += 1 - outcome[row]
        for row in range(offsets[i], offsets[i + 1]):
            good[action[row]], bad[action[row]] = 0, 0
    return successes, failures
