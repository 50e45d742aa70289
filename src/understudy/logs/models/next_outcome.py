"""Will the next attempt succeed? A logistic model of the learner's history.

Log-odds = easiness of the action + weights x (log of one plus earlier successes on this action,
the same for failures, and the smoothed success rate on everything so far): performance factors
(Pavlik, Cen and Koedinger 2009) with a running ability. Ridge penalty 1/2 on all but the base
rate. Fitted by Newton's method; the Hessian is diagonal in the actions, so that the few
weights are solved for after eliminating them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.interactions import Interactions, totals

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NextOutcome:
    """A fitted model: easiness of each action, weights of the history, base rate."""

    easiness: Floats
    weights: Floats
    base: float

    def log_odds(self, log: Interactions) -> Floats:
        """Predicted log-odds of success of each row, given the rows before it."""
        prediction: Floats = self.base + self.easiness[log.action] + history_of(log) @ self.weights
        return prediction


def history_of(log: Interactions) -> Floats:
    """Per row: log1p(successes), log1p(failures) on the action, and centred success rate before it."""
    return _history(log.offsets, log.action, log.outcome, log.n_actions)  # type: ignore[no-any-return]


def fit_next_outcome(log: Interactions, *, max_iterations: int = 30, tolerance: float = 1e-6) -> NextOutcome:
    """Fit to a log; an empty log gives the model that knows nothing."""
    # The base rate is a fourth column, almost free of penalty.
    design = np.column_stack([history_of(log), np.ones(log.n_rows)])
    penalty = np.array([1.0, 1.0, 1.0, 1e-6])
    easiness, weights = np.zeros(log.n_actions), np.zeros(4)
    outcome = log.success.astype(np.float64)
    for _ in range(max_iterations):
        chance = 1.0 / (1.0 + np.exp(-(easiness[log.action] + design @ weights)))
        residual = chance - outcome
        curvature = chance * (1.0 - chance)
        slope_easiness = easiness + _by_action(log, residual)
        slope_weights = penalty * weights + design.T @ residual
        if max(np.abs(slope_easiness).max(initial=0.0), np.abs(slope_weights).max()) <= tolerance:
            break
        diagonal = 1.0 + _by_action(log, curvature)
        cross = np.column_stack([_by_action(log, curvature * column) for column in design.T])
        corner = np.diag(penalty) + (design * curvature[:, None]).T @ design
        schur = corner - cross.T @ (cross / diagonal[:, None])
        step_weights = np.linalg.solve(schur, slope_weights - cross.T @ (slope_easiness / diagonal))
        step_easiness = (slope_easiness - cross @ step_weights) / diagonal
        # A step longer than this leaves the region in which the quadratic model can be trusted.
        largest = max(np.abs(step_easiness).max(initial=0.0), np.abs(step_weights).max())
        scale = min(1.0, 5.0 / max(largest, 1e-12))
        easiness = easiness - scale * step_easiness
        weights = weights - scale * step_weights
    return NextOutcome(easiness, weights[:3], float(weights[3]))


def _by_action(log: Interactions, values: Floats) -> Floats:
    return totals(log.action, values, log.n_actions)


@njit(cache=True, nogil=True)
def _history(offsets, action, outcome, n_actions):  # type: ignore[no-untyped-def]
    history = np.zeros((len(action), 3))
    good = np.zeros(n_actions)
    bad = np.zeros(n_actions)
    for i in range(len(offsets) - 1):
        successes = 0.0
        for r in range(offsets[i], offsets[i + 1]):
            j = action[r]
            history[r, 0] = np.log1p(good[j])
            history[r, 1] = np.log1p(bad[j])
            history[r, 2] = (successes + 1.0) / (r - offsets[i] + 2.0) - 0.5
            good[j] += outcome[r]
            bad[j] += 1 - outcome[r]
            successes += outcome[r]
        for r in range(offsets[i], offsets[i + 1]):
            good[action[r]] = 0.0
            bad[action[r]] = 0.0
    return history
