"""The choice of a setting in the two published ways (Steiner, Nyrnberg and Hansen 2019, section 3).

Privately, by equation 7 with its sensitivity corrected: `choose_spread` for the spread of abilities, epsilon-DP, and
`choose_penalty` for lambda itself, which is as private as the published method that fits its candidates. From public
data, at no cost: `penalty_on_public`.

The private choice is weak. Rounded chances hardly depend on either setting, so that even with 4,000 learners the choice
of a spread is not much better than a random one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.mechanisms import exponential
from understudy.core.privacy.noise import Noise
from understudy.errors import DataError
from understudy.exams.estimators.joint import estimate_ability
from understudy.exams.estimators.noisy_totals import estimate_difficulties
from understudy.exams.mechanisms.totals import Missing, cube, hexagon
from understudy.exams.responses import Responses

Floats = NDArray[np.float64]
# The difficulties of some learners with a candidate; the generator is for methods that draw from one.
Fit = Callable[[Responses, float, np.random.Generator], Floats]
# How badly difficulties and a penalty predict answers; the generator is for one that divides them.
Loss = Callable[[NDArray[np.int8], Floats, float, np.random.Generator], float]

# The settings to choose from: spreads of abilities, and penalties. Public, and the same for every exam.
SPREADS = (0.5, 1.0, 1.5, 2.0)
PENALTIES = (0.02, 0.2, 1.0, 5.0)

# Learners in every part of the class that is divided for a choice, at least.
_LEAST_PART = 10
# How often a public class is drawn, and its learners at most: beyond, noise is next to nothing.
_PUBLIC_ROUNDS = 40
_MOST_LEARNERS = 2000


def check_choice(n_learners: int, setting: str, candidates: Sequence[float]) -> None:
    """Refuse to divide too few learners into parts."""
    least = _LEAST_PART * (len(candidates) + 1)
    if n_learners < least:
        raise DataError(
            f"choosing among {len(candidates)} candidates takes at least {least} learners; "
            f"there are {n_learners}.",
            hint="give it as a number.",
            code="few-learners",
            settings=(setting,),
        )


def check_public(public: Responses) -> None:
    """Refuse to choose on too few public learners."""
    if public.n_learners < 2 * _LEAST_PART:
        raise DataError(
            f"a penalty is chosen on at least {2 * _LEAST_PART} public learners; there are {public.n_learners}.",
            hint="give a larger public file, or the penalty as a number.",
            code="few-learners",
            settings=("penalty_from", "penalty"),
        )


def choose(
    candidates: Sequence[float],
    fit: Fit,
    penalty_of: Callable[[float], float],
    responses: Responses,
    epsilon: float,
    noise: Noise,
    rng: np.random.Generator,
) -> float:
    """One of the candidates by the paper's equation 7, corrected: epsilon-DP if `fit` is.

    The learners are divided at random into a part for each candidate and one that judges. Each
    candidate's difficulties are fitted on its own part; the judges estimate their abilities from them
    and count the answers that the rounded chances get wrong. The exponential mechanism chooses among
    minus these errors divided by I.

    Proof. Parts depend on chance and the public number of learners, so a replaced learner stays in
    their part. In a candidate's part they change difficulties that are epsilon-DP, and all
    else is post-processing. Among the judges they change up to I errors of each candidate,
    that is each score by at most 1: epsilon-DP. No learner is in two parts. (The paper
    assumes that a student changes one error, not I.)
    """
    parts = np.array_split(rng.permutation(responses.n_learners), len(candidates) + 1)
    judges = responses.select(parts[-1]).correct
    n_items = responses.n_items
    scores = []
    for candidate, part in zip(candidates, parts, strict=False):
        difficulty = fit(responses.select(part), candidate, rng)
        scores.append(-count_errors(judges, difficulty, penalty_of(candidate)) / n_items)
    return candidates[exponential(np.array(scores), sensitivity=1.0, epsilon=epsilon, noise=noise)]


def count_errors(correct: NDArray[np.int8], difficulty: Floats, penalty: float) -> int:
    """How many answers the rounded chances get wrong, with abilities that are estimated from the same answers."""
    ability = estimate_ability(correct, difficulty, penalty=penalty)
    expected = ability[:, None] > difficulty
    return int(((correct >= 0) & (expected != (correct == 1))).sum())


def choose_spread(
    responses: Responses,
    missing: Missing,
    epsilon: float,
    noise: Noise,
    rng: np.random.Generator,
    candidates: Sequence[float] = SPREADS,
) -> float:
    """One of some standard deviations of abilities, with candidates fitted by the K-norm mechanism: epsilon-DP."""
    check_choice(responses.n_learners, "ability_sd", candidates)
    if missing == "wrong":
        responses = responses.missing_as_wrong()
    n_items = responses.n_items
    measurement = cube(n_items, epsilon) if missing == "wrong" else hexagon(n_items, epsilon)

    def fit(part: Responses, spread: float, _: np.random.Generator) -> Floats:
        return estimate_difficulties(measurement.measure(part.totals(), noise), spread).difficulty

    # The mode under abilities N(0, spread^2) is the fit with this penalty.
    return choose(candidates, fit, lambda spread: spread**-2, responses, epsilon, noise, rng)


def choose_penalty(
    fit: Fit,
    responses: Responses,
    epsilon: float,
    noise: Noise,
    rng: np.random.Generator,
    candidates: Sequence[float] = PENALTIES,
) -> float:
    """One of some penalties, with candidates fitted by a published method at this epsilon; missing answers are wrong.

    The judges' part is epsilon-DP. The candidates' parts have what the method has, which is no guarantee.
    """
    check_choice(responses.n_learners, "penalty", candidates)
    return choose(candidates, fit, lambda penalty: penalty, responses.missing_as_wrong(), epsilon, noise, rng)


def held_out_loss(
    correct: NDArray[np.int8], difficulty: Floats, penalty: float, rng: np.random.Generator
) -> float:
    """Minus the log-likelihood of each half of the answers, with abilities that are estimated from the other half."""
    first = rng.random(correct.shape) < 0.5
    loss = 0.0
    for half in (first, ~first):
        ability = estimate_ability(np.where(half, correct, -1).astype(np.int8), difficulty, penalty=penalty)
        logit = ability[:, None] - difficulty
        losses = np.logaddexp(0.0, np.where(correct == 1, -logit, logit))
        loss += float(losses[~half & (correct >= 0)].sum())
    return loss


def penalty_on_public(
    fit: Fit,
    public: Responses,
    n_learners: int,
    rng: np.random.Generator,
    candidates: Sequence[float] = PENALTIES,
    loss: Loss = held_out_loss,
) -> float:
    """The penalty that predicts public learners best, for a class of `n_learners`: nothing is spent.

    Half of the public learners, drawn anew each time, are a class of that size (with replacement), with the method's
    own noise; the other half judges it, by answers that their abilities were not estimated from. All candidates see the
    same classes and the same noise. (Errors of answers that abilities were estimated from, as in equation 7, favour
    small penalties; public data need no bounded score, so that the likelihood can be used.)
    """
    check_public(public)
    losses = np.zeros(len(candidates))
    for _ in range(_PUBLIC_ROUNDS):
        order = rng.permutation(public.n_learners)
        half = public.n_learners // 2
        drawn = public.select(rng.choice(order[:half], min(n_learners, _MOST_LEARNERS)))
        judges = public.select(order[half:]).correct
        seed = int(rng.integers(2**63))
        for place, candidate in enumerate(candidates):
            difficulty = fit(drawn, candidate, np.random.default_rng(seed))
            losses[place] += loss(judges, difficulty, candidate, np.random.default_rng(seed))
    return candidates[int(np.argmin(losses))]
