"""Every attack on one synthetic log: the whole audit of a release."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.estimate import Risk, judge
from understudy.core.engine.tasks import run_tasks
from understudy.errors import DataError
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.rare import rare_bag_scores, rare_scores
from understudy.logs.attacks.shadow import N_SHADOWS, Generator, ShadowAttack, cast_shadow
from understudy.logs.attacks.steps import count_scores
from understudy.logs.attacks.subsequence import outcome_scores, subsequence_scores
from understudy.logs.attacks.transitions import transition_scores
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]

MEMBERSHIP_ATTACKS = (
    "lcs",
    "lcs-expected",
    "lcs-outcomes",
    "transitions",
    "counts",
    "rare",
    "rare-bags",
    "shadow",
)


def rehearse(
    knowledge: Knowledge,
    generate: Generator,
    seed: np.random.SeedSequence,
    n_shadows: int = N_SHADOWS,
    tick: Callable[[], None] | None = None,
) -> ShadowAttack:
    """The shadow attack on a method, ready for any synthetic log made from half of the population.

    Shadows hold scores of learners, so they live in memory only and go with the process.
    """
    tasks = [
        partial(cast_shadow, knowledge, generate, np.random.default_rng(s)) for s in seed.spawn(n_shadows)
    ]
    return ShadowAttack(knowledge, run_tasks(tasks, tick))


def membership_scores(
    knowledge: Knowledge, synthetic: Interactions, shadow: ShadowAttack | None, workers: int = 1
) -> dict[str, Floats]:
    """The scores of all learners by all membership attacks; who was a member plays no part."""
    scores = subsequence_scores(knowledge, synthetic, workers)
    scores["lcs-outcomes"] = outcome_scores(knowledge, synthetic, workers)
    scores["transitions"] = transition_scores(knowledge, synthetic)
    scores["counts"] = count_scores(knowledge, synthetic)
    scores["rare"] = rare_scores(knowledge, synthetic)
    scores["rare-bags"] = rare_bag_scores(knowledge, synthetic)
    if shadow is not None:
        scores["shadow"] = shadow.scores(synthetic)
    return scores


def attack(
    knowledge: Knowledge,
    member: NDArray[np.bool_],
    synthetic: Interactions,
    shadow: ShadowAttack | None,
    rng: np.random.Generator,
    workers: int = 1,
) -> Risk:
    """The risk of a synthetic log for those of the population who are `member`."""
    return judged_risk(knowledge, member, membership_scores(knowledge, synthetic, shadow, workers), rng)


def judged_risk(
    knowledge: Knowledge, member: NDArray[np.bool_], scores: dict[str, Floats], rng: np.random.Generator
) -> Risk:
    """The risk that scores show, on learners with enough information to be recognised."""
    judged = knowledge.judged
    if judged[member].sum() < 2 or judged[~member].sum() < 2:
        raise DataError(
            "an audit needs two members and two outsiders with enough rows to be recognised; "
            f"found {int(judged[member].sum())} and {int(judged[~member].sum())}.",
            hint="use a log with more learners or longer sequences.",
        )
    return judge(
        {name: values[judged] for name, values in scores.items()},
        member[judged],
        rng,
        n_set_aside=int((~judged).sum()),
    )
