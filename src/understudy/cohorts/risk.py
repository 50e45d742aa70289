"""Membership risk of a method on one cohort: half of the learners make a synthetic cohort, all are guessed.

The attacker knows the method and rehearses it on random halves (`attacks.cohorts`). The control
calls random learners members, so that what picking the strongest of several attacks does by luck is seen
beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.cohorts.attacks import (
    CohortKnowledge,
    Luck,
    attack_cohort,
    by_luck,
    cohort_scores,
    rehearse_cohort,
)
from understudy.cohorts.cohort import Cohort
from understudy.core.attacks.estimate import Risk, judge
from understudy.errors import DataError

Generate = Callable[[Cohort, np.random.Generator], Cohort]

# Enough to rank attacks; a publication of a risk wants 1,000 (findings, section 5).
N_SHADOWS = 24


def membership_risks(
    cohort: Cohort,
    generate: Generate,
    n_seeds: int,
    n_shadows: int,
    rng: np.random.Generator,
    tick: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """For each seed another half of members: the strongest attack, with interval and control.

    The shadows are cast once for all seeds. Without shadows only the attacks that need none are tried.
    """
    n_members = cohort.n_learners // 2
    knowledge = CohortKnowledge(cohort, n_members)
    shadow = None
    if n_shadows:
        seed = np.random.SeedSequence(int(rng.integers(2**63)))
        shadow = rehearse_cohort(knowledge, generate, seed, n_shadows, tick)
    rows = []
    for _ in range(n_seeds):
        member = np.zeros(cohort.n_learners, dtype=bool)
        member[rng.permutation(cohort.n_learners)[:n_members]] = True
        scores = cohort_scores(knowledge, generate(cohort.select(member), rng), shadow)
        rows.append(_row(judge(scores, member, rng), by_luck(scores, member, rng)))
    return rows


def risk_of_given(
    cohort: Cohort, outsiders: Cohort | None, synthetic: Cohort, rng: np.random.Generator
) -> dict[str, Any]:
    """The strongest attack on a cohort that somebody made from all learners, by the attacks that refit nothing.

    Nothing without outsiders: where everybody was a member, nobody can be told from others.
    """
    if outsiders is None:
        return {}
    found = attack_cohort(cohort, outsiders, synthetic, rng)
    return _row(found.risk, found.luck)


def check_outsiders(cohort: Cohort, outsiders: Cohort) -> None:
    """Refuse outsiders who are members: with them no attack could be told to work."""
    busy = outsiders.values.any(axis=(1, 2))
    members = {row.tobytes() for row in cohort.values}
    n_both = sum(row.tobytes() in members for row in outsiders.values[busy])
    if n_both:
        raise DataError(
            f"{n_both} of the {outsiders.n_learners} outsiders have exactly the weeks of a learner of the cohort.",
            hint="outsiders are learners who did not make the synthetic cohort: leave those who did out.",
        )


def _row(risk: Risk, luck: Luck) -> dict[str, Any]:
    """The figures for a table."""
    return {
        "auc_worst": risk.worst.auc,
        "auc_worst_low": risk.low,
        "auc_worst_high": risk.high,
        "worst_attack": risk.worst.attack,
        "tpr_at_1pct": risk.worst.tpr_at_1pct,
        "control_auc_worst": luck.auc,
        "control_auc_worst_low": luck.low,
        "control_auc_worst_high": luck.high,
    }
