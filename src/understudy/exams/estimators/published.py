"""The published private Rasch methods, for comparison (Steiner, Nyrnberg and Hansen 2019, section 3).

`objective` and `statistics` fit difficulties as the authors' program does: with a penalty of 0.02 in equation 6, and
with noisy totals clamped to what they can be. The paper prints a penalty of 0.01 and no clamping; both can be asked
for. Neither method carries a guarantee, and `OBJECTIVE_REASON` and `STATISTICS_REASON` say why. Responses are complete,
as in the paper; a missing one counts as wrong, as an exam counts it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.guarantee import Guarantee
from understudy.exams.estimators.joint import PENALTY, fit_joint
from understudy.exams.responses import Responses

Floats = NDArray[np.float64]

OBJECTIVE_REASON = (
    "for comparison only: the published proof does not hold. It treats the students' abilities as fixed, but "
    "they are fitted again with every data set, and so the difficulties can reveal more about one "
    "student than the stated epsilon allows"
)
STATISTICS_REASON = (
    "for comparison only: the noise on the students' scores and the noise on the items' totals each "
    "spend the stated epsilon, so that together they spend twice as much"
)
REASONS = {"objective": OBJECTIVE_REASON, "statistics": STATISTICS_REASON}
CHOICE_REASON = (
    "; the penalty was chosen on parts of the learners by difficulties that this method fitted, so its "
    "choice carries no guarantee either"
)


@dataclass(frozen=True)
class PublishedFit:
    """Difficulties, the abilities fitted along with them (never for release), and what is promised."""

    difficulty: Floats
    ability: Floats
    guarantee: Guarantee


def objective(
    responses: Responses, epsilon: float, rng: np.random.Generator, *, penalty: float = PENALTY
) -> PublishedFit:
    """Objective perturbation (Algorithm 1 of the paper): a random linear term is added to equation 6."""
    correct = responses.missing_as_wrong().correct
    tilt = tilt_noise(responses.n_items, epsilon, rng)
    fit = fit_joint(correct.sum(axis=1), correct.sum(axis=0), penalty=penalty, tilt=tilt)
    return PublishedFit(fit.difficulty, fit.ability, Guarantee.none(OBJECTIVE_REASON))


def statistics(
    responses: Responses,
    epsilon: float,
    rng: np.random.Generator,
    *,
    penalty: float = PENALTY,
    clamp: bool = True,
) -> PublishedFit:
    """Perturbed sufficient statistics: Laplace noise of scale I / epsilon on scores and on item totals.

    With `clamp`, noisy scores are brought back to [0, I] and noisy totals to [0, N], which is post-processing.
    """
    _positive(epsilon)
    correct = responses.missing_as_wrong().correct
    scale = responses.n_items / epsilon
    by_learner = correct.sum(axis=1) + rng.laplace(0.0, scale, responses.n_learners)
    by_item = correct.sum(axis=0) + rng.laplace(0.0, scale, responses.n_items)
    if clamp:
        by_learner = np.clip(by_learner, 0.0, responses.n_items)
        by_item = np.clip(by_item, 0.0, responses.n_learners)
    fit = fit_joint(by_learner, by_item, penalty=penalty)
    return PublishedFit(fit.difficulty, fit.ability, Guarantee.none(STATISTICS_REASON))


def tilt_noise(n_items: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """The vector b of Algorithm 1: density proportional to exp(-epsilon |b| / sqrt(I)).

    A direction uniform on the sphere, and a norm from the gamma distribution with shape I and
    scale sqrt(I) / epsilon.
    """
    _positive(epsilon)
    direction = rng.normal(size=n_items)
    norm = rng.gamma(n_items, np.sqrt(n_items) / epsilon)
    return np.asarray(norm * direction / np.linalg.norm(direction))


def _positive(epsilon: float) -> None:
    if not (epsilon > 0 and np.isfinite(epsilon)):
        raise ValueError(f"epsilon has to be a finite number above 0, not {epsilon}")
