"""How much abilities differ, found privately: item totals alone cannot tell it.

Either from how much the students' scores spread (`estimate_spread`), or by the seed's
equation 7, which lets some students judge what others suggest (`choose_spread`). Both are
charged. The first needs some hundred learners to beat the usual value of 1. The second is kept
because it was published: rounded chances hardly depend on the spread, so that even with 4,000
learners its choice is not much better than a random one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from understudy.core.privacy.mechanisms import exponential, laplace
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.noise_moments import laplace_variance
from understudy.errors import DataError
from understudy.exams.estimators.joint import estimate_ability
from understudy.exams.estimators.noisy_totals import estimate_difficulties
from understudy.exams.responses import Responses
from understudy.exams.totals_mechanism import Missing, NoisyTotals, cube, hexagon

Floats = NDArray[np.float64]

# What abilities of a class can spread by: from nearly equal to a mixture of school years.
SPREADS = np.geomspace(0.3, 3.0, 21)
# What one expects before looking: about 1, within a factor of e.
_DOUBT = 0.5
CANDIDATES = (0.5, 1.0, 1.5, 2.0)


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
        mean, doubt = _expected(estimate_difficulties(totals, float(spread)).difficulty, float(spread))
        doubt = variance + responses.n_learners * doubt
        difference = noisy - responses.n_learners * mean
        log_weight[place] = -0.5 * difference**2 / doubt - 0.5 * math.log(doubt)
    log_weight -= 0.5 * (np.log(SPREADS) / _DOUBT) ** 2
    weight = np.exp(log_weight - log_weight.max())
    return float(np.exp(weight @ np.log(SPREADS) / weight.sum()))


def _expected(difficulty: Floats, spread: float) -> tuple[float, float]:
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


def check_choice(n_learners: int, candidates: Sequence[float] = CANDIDATES) -> None:
    """Refuse to divide too few learners into parts."""
    least = 10 * (len(candidates) + 1)
    if n_learners < least:
        raise DataError(
            f"choosing among {len(candidates)} spreads of ability takes at least {least} learners; "
            f"there are {n_learners}.",
            hint="give --ability-sd as a number; 1 is usual.",
        )


def choose_spread(
    responses: Responses,
    missing: Missing,
    epsilon: float,
    noise: Noise,
    rng: np.random.Generator,
    candidates: Sequence[float] = CANDIDATES,
) -> float:
    """One of some standard deviations by the seed's equation 7, mended: epsilon-DP.

    The learners are divided at random into a part for each candidate and one that judges. Each
    candidate's difficulties are fitted privately (epsilon, K-norm) on its own part; the judges
    estimate their abilities from them and count the answers that the rounded chances get
    wrong. The exponential mechanism chooses among minus these errors divided by I.

    Proof. Parts depend on chance and the public number of learners, so a replaced learner stays in
    their part. In a candidate's part they change difficulties that are epsilon-DP, and all
    else is post-processing. Among the judges they change up to I errors of each candidate,
    that is each score by at most 1: epsilon-DP. Nobody is in two parts. (As published a
    student is taken to change one error, not I: findings, section 2.)
    """
    check_choice(responses.n_learners, candidates)
    n_parts = len(candidates) + 1
    if missing == "wrong":
        responses = responses.missing_as_wrong()
    parts = np.array_split(rng.permutation(responses.n_learners), n_parts)
    judges = responses.select(parts[-1]).correct
    n_items = responses.n_items
    measurement = cube(n_items, epsilon) if missing == "wrong" else hexagon(n_items, epsilon)
    scores = []
    for candidate, part in zip(candidates, parts, strict=False):
        totals = measurement.measure(responses.select(part).totals(), noise)
        difficulty = estimate_difficulties(totals, candidate).difficulty
        # The mode under abilities N(0, candidate^2) is the fit with this penalty.
        ability = estimate_ability(judges, difficulty, penalty=candidate**-2)
        expected = ability[:, None] > difficulty
        scores.append(-float(((judges >= 0) & (expected != (judges == 1))).sum()) / n_items)
    return candidates[exponential(np.array(scores), sensitivity=1.0, epsilon=epsilon, noise=noise)]
