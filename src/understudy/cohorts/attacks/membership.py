"""Membership risk of a synthetic cohort: whose weeks helped to make it?

The game is that of the logs (docs/explanation/attacks.md): some learners trained the generator, the
attacker holds the weeks and labels of these and of others, knows the method, sees the synthetic
cohort, and gives each learner a score. A score does not depend on membership; only the judge knows it.

The attacks on single learners are those of `scores.py`, those on all of them together of `joint.py`. `shadow` refits
the method on many random parts of the learners, in which Ada is exactly once or not at all
(`core/attacks/shadows.py`); the scores are those of single learners (two-stage sharing, section IV-E).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.attacks.joint import summary_white_box
from understudy.cohorts.attacks.scores import CohortKnowledge, single_scores
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.attacks.estimate import ChanceLevel, Risk, auc_with_interval, chance_level, judge
from understudy.core.attacks.shadows import Shadow, ShadowCalibration
from understudy.core.engine import progress
from understudy.core.engine.tasks import run_tasks
from understudy.errors import DataError

Floats = NDArray[np.float64]

COHORT_ATTACKS = (
    *("dcr-l1", "dcr-l2", "dcr-max", "dcr-relative", "tracing", "tracing-habits"),
    *("joint-linear", "shadow"),
)
FEWEST_SHADOWS = 8

# Fits a method to the cohort of some learners and makes a synthetic one.
Synthesize = Callable[[Cohort, np.random.Generator], Cohort]


@dataclass(frozen=True)
class CohortRisk:
    """The risk of a synthetic cohort, and what chance alone makes of the same scores."""

    risk: Risk
    chance: ChanceLevel

    def to_json(self) -> dict[str, Any]:
        """The risk for a machine."""
        return {**self.risk.to_json(), "chance": dict(vars(self.chance))}


def attack_cohort(
    members: Cohort,
    outsiders: Cohort,
    synthetic: Cohort,
    rng: np.random.Generator,
    *,
    synthesize: Synthesize | None = None,
    n_shadows: int = 64,
) -> CohortRisk:
    """The risk of a synthetic cohort for the learners that made it, by every attack.

    `members` made `synthetic`; `outsiders` did not. `synthesize` is the method that was used: it is
    refitted `n_shadows` times for the attacks that learn from refits; without it `shadow` is left out, and
    `joint-linear` assumes what it cannot learn. It is called from several threads at once, on real data, and
    nothing of the shadows is kept.
    """
    if members.n_learners < 2 or outsiders.n_learners < 2:
        raise DataError(
            "an audit needs two members and two outsiders; "
            f"found {members.n_learners} and {outsiders.n_learners}.",
            hint="keep some learners out of the training cohort.",
        )
    population = Cohort.joined([members, outsiders])
    knowledge = CohortKnowledge(population, members.n_learners)
    shadow = None
    if synthesize is not None:
        with progress.task("Fitting shadows", n_shadows) as step:
            shadow = train_shadow_attack(knowledge, synthesize, _sequence(rng), n_shadows, step.advance)
    scores = cohort_scores(knowledge, synthetic, shadow)
    member = np.arange(population.n_learners) < members.n_learners
    return CohortRisk(judge(scores, member, rng), chance_level(scores, member, rng))


def train_shadow_attack(
    knowledge: CohortKnowledge,
    synthesize: Synthesize,
    seed: np.random.SeedSequence,
    n_shadows: int = 64,
    tick: Callable[[], None] | None = None,
) -> CohortShadowAttack:
    """The attacks on a method that learn from refits of it, for any synthetic cohort of `n_training` learners."""
    if n_shadows < FEWEST_SHADOWS:
        raise DataError(
            f"{n_shadows} shadows cannot calibrate an attack.", hint=f"use at least {FEWEST_SHADOWS}."
        )
    tasks = [
        partial(_fit_shadow, knowledge, synthesize, np.random.default_rng(s)) for s in seed.spawn(n_shadows)
    ]
    return CohortShadowAttack(knowledge, run_tasks(tasks, tick))


class CohortShadowAttack:
    """The attacks that refits made ready, for any synthetic cohort made from as many learners."""

    def __init__(self, knowledge: CohortKnowledge, shadows: list[Shadow]) -> None:
        self._statistics = knowledge.statistics
        self._calibration = ShadowCalibration(shadows)
        self._posterior = self._statistics.learned(
            np.array([shadow.member for shadow in shadows]),
            np.array([shadow.statistics for shadow in shadows]),
        )

    def scores(self, synthetic: Cohort, single: dict[str, Floats]) -> dict[str, Floats]:
        """The scores of each attack; `single` are those of learners one by one."""
        return {
            "joint-linear": self._posterior.scores(self._statistics.of(synthetic)),
            "shadow": self._calibration.log_odds(_columns(single)),
        }


def cohort_scores(
    knowledge: CohortKnowledge, synthetic: Cohort, shadow: CohortShadowAttack | None = None
) -> dict[str, Floats]:
    """The scores of all learners of the population by all attacks; they do not depend on membership."""
    single = single_scores(knowledge, synthetic)
    if shadow is not None:
        return single | shadow.scores(synthetic, single)
    released = knowledge.statistics.of(synthetic)
    return single | {"joint-linear": knowledge.statistics.assumed(released).scores(released)}


def _fit_shadow(knowledge: CohortKnowledge, synthesize: Synthesize, rng: np.random.Generator) -> Shadow:
    """Fit and sample on random learners, each of them once or not at all, and score all learners."""
    member = _half(knowledge.population.n_learners, knowledge.n_training, rng)
    synthetic = synthesize(knowledge.population.select(member), rng)
    return Shadow(member, _columns(single_scores(knowledge, synthetic)), knowledge.statistics.of(synthetic))


def _columns(single: dict[str, Floats]) -> Floats:
    return np.stack(list(single.values()), axis=1)


def _sequence(rng: np.random.Generator) -> np.random.SeedSequence:
    return np.random.SeedSequence(int(rng.integers(2**63)))


# Measures the noisy sums of some learners.
Summarize = Callable[[Cohort, np.random.Generator], PrivateSummary]

# Enough to rank attacks; a publication of a risk wants 1,000 (findings, section 5).
N_SHADOWS = 24
# Halves of which a white box sees the summaries, for each seed.
N_SUMMARIES = 20


def membership_risks(
    cohort: Cohort,
    generate: Synthesize,
    n_seeds: int,
    n_shadows: int,
    rng: np.random.Generator,
    tick: Callable[[], None] = lambda: None,
    *,
    summarize: Summarize | None = None,
) -> list[dict[str, Any]]:
    """For each seed another half of members: every attack, and the strongest with interval and control.

    The shadows are fitted once for all seeds. Without shadows only the attacks that need none are tried.
    `summarize` measures the noisy sums that the method works from, if it does: `transcript` is tried on them.
    """
    n_members = cohort.n_learners // 2
    knowledge = CohortKnowledge(cohort, n_members)
    shadow = None
    if n_shadows:
        seed = np.random.SeedSequence(int(rng.integers(2**63)))
        shadow = train_shadow_attack(knowledge, generate, seed, n_shadows, tick)
    rows = []
    for _ in range(n_seeds):
        member = _half(cohort.n_learners, n_members, rng)
        scores = cohort_scores(knowledge, generate(cohort.select(member), rng), shadow)
        row = _row(judge(scores, member, rng), chance_level(scores, member, rng))
        if summarize is not None:
            row |= _white_box(cohort, n_members, summarize, rng)
        rows.append(row)
    return rows


def _white_box(
    cohort: Cohort, n_members: int, summarize: Summarize, rng: np.random.Generator
) -> dict[str, float]:
    """What an attacker finds who sees the noisy sums of the members, and how many learners are exposed.

    A summary takes little time, so many halves are averaged: a ceiling should not lie below an attack by luck.
    """
    found = []
    for one in rng.spawn(N_SUMMARIES):
        member = _half(cohort.n_learners, n_members, one)
        seen = summary_white_box(cohort, summarize(cohort.select(member), one))
        found.append((*auc_with_interval(seen.scores, member), seen.exposed_share))
    names = ("auc_transcript", "auc_transcript_low", "auc_transcript_high", "exposed_share")
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))


def _half(n_learners: int, n_members: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Members drawn at random."""
    member = np.zeros(n_learners, dtype=bool)
    member[rng.permutation(n_learners)[:n_members]] = True
    return member


def risk_of_given(
    cohort: Cohort, outsiders: Cohort | None, synthetic: Cohort, rng: np.random.Generator
) -> dict[str, Any]:
    """The strongest attack on a given cohort that was made from all learners, by the attacks that refit nothing.

    Nothing is measured without outsiders: if all learners are members, no attack can distinguish them.
    """
    if outsiders is None:
        return {}
    found = attack_cohort(cohort, outsiders, synthetic, rng)
    return _row(found.risk, found.chance)


def check_outsiders(cohort: Cohort, outsiders: Cohort) -> None:
    """Refuse outsiders who are members: they would hide the success of an attack."""
    busy = outsiders.values.any(axis=(1, 2))
    members = {row.tobytes() for row in cohort.values}
    n_both = sum(row.tobytes() in members for row in outsiders.values[busy])
    if n_both:
        raise DataError(
            f"{n_both} of the {outsiders.n_learners} outsiders have exactly the weeks of a learner of the cohort.",
            hint="outsiders did not take part in making the synthetic cohort: leave its members out.",
        )


def _row(risk: Risk, chance: ChanceLevel) -> dict[str, Any]:
    """The figures for a table."""
    return {
        **{f"auc_{estimate.attack.replace('-', '_')}": estimate.auc for estimate in risk.estimates},
        "auc_worst": risk.worst.auc,
        "auc_worst_low": risk.low,
        "auc_worst_high": risk.high,
        "worst_attack": risk.worst.attack,
        "tpr_at_1pct": risk.most_found.tpr_at_1pct,
        "control_auc_worst": chance.auc,
        "control_auc_worst_low": chance.low,
        "control_auc_worst_high": chance.high,
    }
