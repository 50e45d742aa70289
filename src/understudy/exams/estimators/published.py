"""The published private Rasch methods, for comparison (Steiner, Nyrnberg and Hansen 2019, section 3).

`objective` and `statistics` fit difficulties as published, with an explicit generator. Neither carries a guarantee, and
`OBJECTIVE_REASON` and `STATISTICS_REASON` say why. Responses are complete, as in the paper; a missing one counts as
wrong, as an exam counts it.

`choose_spread` is the paper's private choice of the spread of abilities, with its sensitivity corrected: it is
epsilon-DP, and weak. Rounded chances hardly depend on the spread, so that even with 4,000 learners its choice is not
much better than a random one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.mechanisms import exponential
from understudy.core.privacy.noise import Noise
from understudy.errors import DataError
from understudy.exams.estimators.joint import PENALTY, estimate_ability, fit_joint
from understudy.exams.estimators.noisy_totals import estimate_difficulties
from understudy.exams.responses import Responses
from understudy.exams.totals_mechanism import Missing, cube, hexagon

Floats = NDArray[np.float64]

# The spreads of abilities to choose from.
CANDIDATES = (0.5, 1.0, 1.5, 2.0)

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
    responses: Responses, epsilon: float, rng: np.random.Generator, *, penalty: float = PENALTY
) -> PublishedFit:
    """Perturbed sufficient statistics: Laplace noise of scale I / epsilon on scores and on item totals."""
    _positive(epsilon)
    correct = responses.missing_as_wrong().correct
    scale = responses.n_items / epsilon
    by_learner = correct.sum(axis=1) + rng.laplace(0.0, scale, responses.n_learners)
    by_item = correct.sum(axis=0) + rng.laplace(0.0, scale, responses.n_items)
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


def check_choice(n_learners: int, candidates: Sequence[float] = CANDIDATES) -> None:
    """Refuse to divide too few learners into parts."""
    least = 10 * (len(candidates) + 1)
    if n_learners < least:
        raise DataError(
            f"choosing among {len(candidates)} spreads of ability takes at least {least} learners; "
            f"there are {n_learners}.",
            hint="give it as a number; 1 is usual.",
            code="few-learners",
            settings=("ability_sd",),
        )


def choose_spread(
    responses: Responses,
    missing: Missing,
    epsilon: float,
    noise: Noise,
    rng: np.random.Generator,
    candidates: Sequence[float] = CANDIDATES,
) -> float:
    """One of some standard deviations by the paper's equation 7, corrected: epsilon-DP.

    The learners are divided at random into a part for each candidate and one that judges. Each
    candidate's difficulties are fitted privately (epsilon, K-norm) on its own part; the judges
    estimate their abilities from them and count the answers that the rounded chances get
    wrong. The exponential mechanism chooses among minus these errors divided by I.

    Proof. Parts depend on chance and the public number of learners, so a replaced learner stays in
    their part. In a candidate's part they change difficulties that are epsilon-DP, and all
    else is post-processing. Among the judges they change up to I errors of each candidate,
    that is each score by at most 1: epsilon-DP. Nobody is in two parts. (The paper
    assumes that a student changes one error, not I.)
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
