"""The chances of an item's numbers of steps, as functions of ability: see `partial_credit.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from understudy.exams.estimators.partial_credit import Credit

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def log_chances(beyond: ArrayLike, credits: ArrayLike, slope: float = 1.0) -> Floats:
    """Of each number of steps, where the ability is so far beyond the difficulty; the steps are the last axis."""
    credit = np.asarray(credits, dtype=np.float64)
    logs = slope * np.asarray(beyond, dtype=np.float64)[..., None] * np.arange(len(credit)) + credit
    return np.asarray(logs - logsumexp(logs, axis=-1, keepdims=True))


def expected_share(beyond: ArrayLike, credits: ArrayLike, slope: float = 1.0) -> Floats:
    """Of the points, where the ability is so far beyond the difficulty."""
    chance = np.exp(log_chances(beyond, credits, slope))
    n_steps = chance.shape[-1] - 1
    return np.asarray(chance @ np.arange(n_steps + 1) / n_steps)


def share_of_random_learner(
    difficulty: float, credits: Sequence[float], mean: float, sd: float, slope: float = 1.0
) -> float:
    """The share of the points that a learner with an ability of N(mean, sd^2) expects."""
    return float(_WEIGHTS @ expected_share(mean + sd * _NODES - difficulty, credits, slope))


def filled_credits(credit: Credit, sd: float, n_answers: int) -> Floats:
    """Credits relative to the difficulty, with a number of steps that no learner had as rare as half a learner.

    A student of another class may have it all the same, and what had no chance would say too much about the ability.
    """
    steps = np.arange(len(credit.costs), dtype=np.float64)
    credits = credit.slope * steps * credit.difficulty - credit.costs
    seen = np.isfinite(credits)
    if seen.all():
        return np.asarray(credits - credits[0])
    logs = credit.slope * (sd * _NODES - credit.difficulty)[:, None] * steps
    log_total = logsumexp(logs[:, seen] + credits[seen], axis=1)
    for step in np.flatnonzero(~seen):
        # The chance of a step of weight w is w E[exp(...) / total] as long as it is small.
        per_weight = float(logsumexp(logs[:, step] - log_total, b=_WEIGHTS))
        credits[step] = np.log(0.5 / max(n_answers, 1)) - per_weight
    return np.asarray(credits - credits[0])
