"""Who was in? The likelihood ratio of an answer with and without a learner, from shadows.

Scores are cross-fitted: the shadows that are judged are not those that the Gaussians were fitted to.
Fitting and judging on the same shadows finds leaks where there are none (findings, section 5).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from understudy.desk.risk.shadows import ShadowBank

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Smallest variance in units of the overall one: an answer that is constant without a learner and moves with
# them is told for certain, and its likelihood ratio stays finite.
FLOOR = 1e-6
# Of a covariance matrix, towards its diagonal; as if so many more shadows had shown independent answers.
PRIOR_SHADOWS = 20


def standardised(outputs: Floats) -> Floats:
    """Every column with mean 0 and variance 1 over the shadows; what never moves is left out.

    A value that some shadows do not give (the code failed, a group was empty) becomes 0, and its absence a
    column of its own, since that also tells who is in.
    """
    missing = ~np.isfinite(outputs)
    filled = np.where(missing, 0.0, outputs)
    present = np.maximum((~missing).sum(axis=0), 1)
    mean = filled.sum(axis=0) / present
    filled = np.where(missing, mean, outputs)
    columns = np.hstack([filled, missing[:, missing.any(axis=0)].astype(float)])
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    # What rounding of floats leaves of a constant is no signal.
    moves = spread > 1e-12 * np.maximum(1.0, np.abs(np.hstack([mean, np.ones(columns.shape[1] - len(mean))])))
    return np.asarray(columns[:, moves] / spread[moves])


def independent(outputs: Floats, once: Flags, absent: Flags, judged: Floats) -> Floats:
    """Equation 16 of the seed: a Gaussian for every number of the answer, as if they were independent.

    `outputs` are the standardised answers that it is fitted to, `once` and `absent` say which of them hold a
    learner; gives a score for every judged answer (row) and learner (column).
    """
    total = np.zeros((len(judged), once.shape[1]))
    for flags, sign in ((once, 1.0), (absent, -1.0)):
        n = np.maximum(flags.sum(axis=0), 1)[:, None]
        mean = flags.T @ outputs / n
        variance = np.maximum(flags.T @ outputs**2 / n - mean**2, FLOOR)
        quadratic = judged**2 @ (1 / variance).T - 2 * judged @ (mean / variance).T
        quadratic += np.sum(mean**2 / variance + np.log(variance), axis=1)
        total -= sign * 0.5 * quadratic
    return total


def correlated(outputs: Floats, once: Flags, absent: Flags, judged: Floats) -> Floats:
    """One Gaussian for the whole answer, with and without the learner; covariances are shrunk.

    The numbers of an answer are first turned so that they do not correlate over all shadows: two means that
    differ by one learner become one number that moves with nobody else.
    """
    turned, judged = _uncorrelated(outputs, judged)
    scores = np.zeros((len(judged), once.shape[1]))
    for learner in range(once.shape[1]):
        for flags, sign in ((once[:, learner], 1.0), (absent[:, learner], -1.0)):
            scores[:, learner] += sign * _log_density(turned[flags], judged)
    return scores


def _uncorrelated(outputs: Floats, judged: Floats) -> tuple[Floats, Floats]:
    centre = outputs.mean(axis=0)
    covariance = np.atleast_2d(np.cov(outputs, rowvar=False))
    values, vectors = np.linalg.eigh(covariance)
    # Directions below this are rounding of floats: answers are rounded more coarsely than that.
    kept = values > 1e-12 * values.max(initial=0.0)
    turn = vectors[:, kept] / np.sqrt(values[kept])
    return (outputs - centre) @ turn, (judged - centre) @ turn


def _log_density(sample: Floats, judged: Floats) -> Floats:
    n, d = sample.shape
    if n < 2 or d == 0:
        return np.zeros(len(judged))
    mean = sample.mean(axis=0)
    covariance = np.atleast_2d(np.cov(sample, rowvar=False, bias=True))
    diagonal = np.maximum(np.diag(covariance), FLOOR)
    weight = n / (n + PRIOR_SHADOWS)
    covariance = weight * covariance + (1 - weight) * np.diag(diagonal)
    covariance[np.diag_indices(d)] = np.maximum(np.diag(covariance), FLOOR)
    factor = np.linalg.cholesky(covariance + FLOOR * np.eye(d))
    away = np.linalg.solve(factor, (judged - mean).T)
    return np.asarray(-0.5 * np.sum(away**2, axis=0) - np.sum(np.log(np.diag(factor))))


Attacker = Callable[[Floats, Flags, Flags, Floats], Floats]
ATTACKERS: dict[str, Attacker] = {"independent": independent, "correlated": correlated}


def cross_fitted(outputs: Floats, bank: ShadowBank, attacker: Attacker, n_folds: int = 2) -> Floats:
    """The score of every shadow (row) for every learner (column), fitted to the other folds."""
    columns = standardised(outputs)
    scores = np.empty((bank.n_shadows, bank.n_learners))
    fold = np.arange(bank.n_shadows) % n_folds
    for one in range(n_folds):
        fitted, judged = fold != one, fold == one
        scores[judged] = attacker(columns[fitted], bank.once[fitted], bank.absent[fitted], columns[judged])
    return scores
