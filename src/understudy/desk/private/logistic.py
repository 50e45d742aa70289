"""Logistic regression by a few noisy Newton steps.

Each round releases gradient and curvature of the likelihood at the coefficients that the rounds before it found. Early
rounds only have to come near, so the last one has most of the budget, and intervals follow from it alone: at
coefficients b near the true ones the gradient is H (true - b) plus the chance of sampling, which has the covariance H,
plus noise that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.desk.private.answers import Answer
from understudy.desk.private.from_moments import (
    Fit,
    coefficient_estimates,
    left_out_note,
    noise_of_product,
    steady_inverse,
)
from understudy.desk.private.measurements import LatticeSum, Slopes
from understudy.desk.private.questions import Logistic
from understudy.desk.private.schema import Floats, Records, Schema

# Shares of the budget: of the rounds, and within a round of the gradient.
ROUNDS = (0.1, 0.3, 0.6)
GRADIENT = 0.6
# Early rounds look for coefficients of this size, which bounds of -1 and 1 make large.
_USUAL_COEFFICIENT = 2.0
# A last step beyond this (in log-odds, as a root mean square over learners) may not have arrived.
_LONGEST_LAST_STEP = 1.0
# No column is expected to move log-odds by more than this in either direction, from one of its bounds to the other.
_MOST_LOG_ODDS = 4.0
# What is assumed before anything is known: p (1 - p), and coefficients, of which the largest residual follows.
_ASSUMED_CURVATURE, _ASSUMED_COEFFICIENT = 0.2, 1.0

Draw = Callable[[LatticeSum, float], tuple[Floats, float]]


@dataclass(frozen=True, eq=False)
class Round:
    """What one round released, in units of the likelihood, and the noise of it."""

    at: Floats
    gradient: Floats
    gradient_sd: float
    curvature: Floats
    curvature_sd: Floats

    @classmethod
    def of(cls, at: Floats, gradient: tuple[Floats, float], curvature: tuple[Floats, float]) -> Round:
        """Both halves of the curvature have the same meaning and noise of their own: their mean is taken."""
        values, sd = curvature
        half = np.full(values.shape, sd / np.sqrt(2.0))
        np.fill_diagonal(half, sd)
        return cls(at, gradient[0], gradient[1], (values + values.T) / 2.0, half)


def measure_slopes(slopes: Slopes, records: Records, rho: float, draw: Draw) -> Round:
    """All rounds; `draw` adds the noise that a share of rho buys, and says how much that is."""
    coefficients = np.zeros(1 + len(slopes.features.names(records.schema)))
    for share in ROUNDS:
        gradient = draw(slopes.gradient(records, coefficients), rho * share * GRADIENT)
        curvature = draw(slopes.curvature(records, coefficients), rho * share * (1.0 - GRADIENT))
        last = Round.of(coefficients, gradient, curvature)
        coefficients = _next(last)
    return last


def assumed_round(slopes: Slopes, schema: Schema, n_learners: int, rho: float, spread: float) -> Round:
    """The last round as it may be: chances of some 0.3 or 0.7, and learners whose outcome is nearly certain."""
    curvature = slopes.features.assumed(schema, spread) * n_learners * _ASSUMED_CURVATURE
    start = np.zeros(len(curvature))
    spent = rho * ROUNDS[-1]
    usual = np.concatenate([[0.0], np.full(len(start) - 1, _ASSUMED_COEFFICIENT)])
    gradient_sd = slopes.gradient_diameter(usual) / np.sqrt(2.0 * spent * GRADIENT)
    curvature_sd = np.sqrt(2.0) * slopes.norm / 4.0 / np.sqrt(2.0 * spent * (1.0 - GRADIENT))
    return Round.of(start, (start, float(gradient_sd)), (curvature, float(curvature_sd)))


def _next(found: Round) -> Floats:
    """Where to go on: the most likely coefficients by this round, none of them expected to be very large."""
    eigenvalues, vectors = np.linalg.eigh(found.curvature)
    floor = float(found.curvature_sd.max())
    curvature = (vectors * np.maximum(eigenvalues, floor)) @ vectors.T
    weight = curvature @ np.linalg.inv(curvature + found.gradient_sd**2 * np.eye(len(curvature)))
    prior = np.eye(len(curvature)) / _USUAL_COEFFICIENT**2
    step = np.linalg.solve(weight @ curvature + prior, weight @ found.gradient - prior @ found.at)
    return np.asarray(found.at + step)


def logistic_fit(found: Round, n_learners: int, impossible: NDArray[np.bool_]) -> Fit | None:
    """The last step, without any expectation; None where the noise may have turned the curvature round."""
    matrix = np.where(impossible, 0.0, found.curvature)
    variances = np.where(impossible, 0.0, found.curvature_sd**2)
    inverse = steady_inverse(matrix, variances)
    if inverse is None:
        return None
    step = inverse @ found.gradient
    if step @ matrix @ step > matrix[0, 0] * _LONGEST_LAST_STEP**2:
        return None
    noise = found.gradient_sd**2 * np.eye(len(matrix)) + noise_of_product(variances, step)
    covariance = inverse @ noise @ inverse
    return Fit(found.at + step, inverse + covariance, covariance, float(n_learners))


def logistic_answer(
    question: Logistic, slopes: Slopes, found: Round, schema: Schema, n_learners: int
) -> Answer:
    """Coefficients in log-odds per unit of their columns."""
    impossible = slopes.features.impossible(schema)
    fit = logistic_fit(found, n_learners, impossible)
    names = [("", ""), *slopes.features.names(schema)]
    estimates = coefficient_estimates(fit, names, schema, scale=1.0, shift=0.0, reach=_MOST_LOG_ODDS)
    return Answer(question, estimates, notes=left_out_note((question.outcome, *question.on), None, schema))
