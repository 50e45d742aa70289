"""How much abilities differ, found privately from how much the scores spread.

Item totals alone do not show it. It costs part of the budget, and takes some hundred learners to beat the usual value
of 1. `estimators/published.py` has the published way.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from understudy.core.privacy.mechanisms import laplace
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.noise_moments import laplace_variance
from understudy.exams.estimators.noisy_totals import estimate_difficulties
from understudy.exams.responses import Responses
from understudy.exams.totals_mechanism import NoisyTotals

Floats = NDArray[np.float64]

# What abilities of a class can spread by: from nearly equal to a mixture of school years.
SPREADS = np.geomspace(0.3, 3.0, 21)
# What one expects before looking: about 1, within a factor of e.
_DOUBT = 0.5


def estimate_spread(responses: Responses, totals: NoisyTotals, epsilon: float, noise: Noise) -> float:
    """The standard deviation of abilities from the noisy spread of scores: epsilon-DP.

    The statistic is the sum over learners of (2 r - I)^2, r being the number of right answers
    of I, a missing one counting as wrong. It lies in [0, I^2] for a learner, so replacing one
    moves the sum by at most I^2, and Laplace noise of scale I^2 / epsilon makes it private.
    What it should be at each standard deviation follows from the noisy totals; the posterior
    mean (of the logarithm) under a weak prior around 1 is the estimate.
    """
    n_items = responses.n_items
    score = responses.missing_as_wrong().correct.sum(axis=1, dtype=np.int64)
    exact = np.array([((2 * score - n_items) ** 2).sum()])
    sensitivity = float(n_items) ** 2
    noisy = float(laplace(exact, sensitivity=sensitivity, epsilon=epsilon, noise=noise)[0])
    variance = laplace_variance(sensitivity, epsilon)
    log_weight = np.empty(len(SPREADS))
    for place, spread in enumerate(SPREADS):
        mean, doubt = score_spread_moments(
            estimate_difficulties(totals, float(spread)).difficulty, float(spread)
        )
        doubt = variance + responses.n_learners * doubt
        difference = noisy - responses.n_learners * mean
        log_weight[place] = -0.5 * difference**2 / doubt - 0.5 * math.log(doubt)
    log_weight -= 0.5 * (np.log(SPREADS) / _DOUBT) ** 2
    weight = np.exp(log_weight - log_weight.max())
    return float(np.exp(weight @ np.log(SPREADS) / weight.sum()))


def score_spread_moments(difficulty: Floats, spread: float) -> tuple[float, float]:
    """Mean and variance of (2 r - I)^2 for a learner drawn at random.

    Given the ability, 2 r - I has mean M and variance V; the fourth moment is taken as a
    normal variable's, M^4 + 6 M^2 V + 3 V^2.
    """
    nodes, weight = np.polynomial.hermite_e.hermegauss(61)
    weight = weight / weight.sum()
    chance = expit(spread * nodes[:, None] - difficulty)
    middle = 2.0 * chance.sum(axis=1) - len(difficulty)
    variance = 4.0 * (chance * (1.0 - chance)).sum(axis=1)
    mean = float(weight @ (middle**2 + variance))
    fourth = float(weight @ (middle**4 + 6.0 * middle**2 * variance + 3.0 * variance**2))
    return mean, fourth - mean**2
