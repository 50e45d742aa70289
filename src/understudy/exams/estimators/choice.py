"""The published private choice of a setting (Steiner, Nyrnberg and Hansen 2019, equation 7), corrected.

`choose_spread` is the paper's private choice of the spread of abilities, with its sensitivity corrected: it is
epsilon-DP, and weak. Rounded chances hardly depend on the spread, so that even with 4,000 learners its choice is not
much better than a random one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.core.privacy.mechanisms import exponential
from understudy.core.privacy.noise import Noise
from understudy.errors import DataError
from understudy.exams.estimators.joint import estimate_ability
from understudy.exams.estimators.noisy_totals import estimate_difficulties
from understudy.exams.responses import Responses
from understudy.exams.totals_mechanism import Missing, cube, hexagon

# The spreads of abilities to choose from.
CANDIDATES = (0.5, 1.0, 1.5, 2.0)


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
