"""Membership risk of a synthetic cohort: whose weeks helped to make it?

The game is that of the logs (docs/explanation/attacks.md): some learners trained the generator, the
attacker holds the weeks and labels of these and of others, knows the method, sees the synthetic
cohort, and gives each learner a score. A score does not depend on membership; only the judge knows it.

The attacker's stories:

- `dcr-l1`, `dcr-l2`, `dcr-max`: a synthetic learner lies next to Ada, so she was in (distance to the
  closest record, standardised log-minutes of all weeks and the label, three norms).
- `dcr-relative`: it lies closer to Ada than other real learners do. A learner with ordinary weeks is
  close to every other one and would be accused by the distance alone.
- `tracing`, `tracing-habits`: the means of the synthetic cohort lean towards Ada (Dwork et al. 2015),
  for all weeks, or for the activity and minutes of learners with her label. This finds what a
  generator that only knows summaries gives away.
- `shadow`: the method is refitted on many random parts of the learners, in which Ada is exactly once or
  not at all (`core/attacks/shadows.py`); the scores are those above (two-stage sharing, section IV-E).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from understudy.cohorts.cohort import Cohort
from understudy.core.attacks.estimate import ChanceLevel, Risk, chance_level, judge
from understudy.core.attacks.shadows import Shadow, ShadowCalibration
from understudy.core.engine import progress
from understudy.core.engine.tasks import run_tasks
from understudy.errors import DataError

Floats = NDArray[np.float64]

COHORT_ATTACKS = ("dcr-l1", "dcr-l2", "dcr-max", "dcr-relative", "tracing", "tracing-habits", "shadow")
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


class CohortKnowledge:
    """The weeks and labels of all learners, prepared once for many synthetic cohorts.

    `n_training` is the number of learners behind a synthetic cohort, which is public.
    """

    def __init__(self, population: Cohort, n_training: int) -> None:
        self.population = population
        self.n_training = n_training

    @cached_property
    def _weeks_scale(self) -> tuple[Floats, Floats]:
        return _scale(_weeks(self.population))

    @cached_property
    def _habits_scale(self) -> tuple[Floats, Floats]:
        return _scale(_habits(self.population))

    def weeks(self, cohort: Cohort) -> Floats:
        """Log-minutes of all weeks and the label, standardised by the population."""
        middle, spread = self._weeks_scale
        standardised: Floats = (_weeks(cohort) - middle) / spread
        return standardised

    def habits(self, cohort: Cohort) -> Floats:
        """Activity and log-minutes of active weeks in each window, standardised by the population."""
        middle, spread = self._habits_scale
        standardised: Floats = (_habits(cohort) - middle) / spread
        return standardised

    @cached_property
    def own_weeks(self) -> Floats:
        """`weeks` of the population."""
        return self.weeks(self.population)

    @cached_property
    def own_habits(self) -> Floats:
        """`habits` of the population."""
        return self.habits(self.population)

    @cached_property
    def nearest_other(self) -> Floats:
        """Distance of each learner of the population to the nearest other one."""
        distance = cdist(self.own_weeks, self.own_weeks)
        np.fill_diagonal(distance, np.inf)
        nearest: Floats = distance.min(axis=1)
        return nearest


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
    refitted `n_shadows` times for the shadow attack, which is left out without it. It is called from
    several threads at once, on real data, and nothing of the shadows is kept.
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
    """The shadow attack on a method, ready for any synthetic cohort made from `n_training` learners."""
    if n_shadows < FEWEST_SHADOWS:
        raise DataError(
            f"{n_shadows} shadows cannot calibrate an attack.", hint=f"use at least {FEWEST_SHADOWS}."
        )
    tasks = [
        partial(_fit_shadow, knowledge, synthesize, np.random.default_rng(s)) for s in seed.spawn(n_shadows)
    ]
    return CohortShadowAttack(knowledge, run_tasks(tasks, tick))


def cohort_scores(
    knowledge: CohortKnowledge, synthetic: Cohort, shadow: CohortShadowAttack | None = None
) -> dict[str, Floats]:
    """The scores of all learners of the population by all attacks; they do not depend on membership."""
    if not synthetic.n_learners:
        raise DataError("the synthetic cohort has no learners.", hint="attack one that has some.")
    weeks, others = knowledge.own_weeks, knowledge.weeks(synthetic)
    euclidean = cdist(weeks, others).min(axis=1)
    tiny = 1e-6
    scores = {
        "dcr-l1": -cdist(weeks, others, "cityblock").min(axis=1),
        "dcr-l2": -euclidean,
        "dcr-max": -cdist(weeks, others, "chebyshev").min(axis=1),
        "dcr-relative": -np.log((euclidean + tiny) / (knowledge.nearest_other + tiny)),
        "tracing": weeks @ others.mean(axis=0),
        "tracing-habits": _tracing_by_label(knowledge, synthetic),
    }
    if shadow is not None:
        scores["shadow"] = shadow.scores(synthetic)
    return scores


class CohortShadowAttack:
    """The shadow attack on a method, ready for any synthetic cohort made from as many learners."""

    def __init__(self, knowledge: CohortKnowledge, shadows: list[Shadow]) -> None:
        self._knowledge = knowledge
        self._calibration = ShadowCalibration(shadows)

    def scores(self, synthetic: Cohort) -> Floats:
        """Log-odds of membership up to a constant, per learner."""
        return self._calibration.log_odds(_columns(self._knowledge, synthetic))


def _fit_shadow(knowledge: CohortKnowledge, synthesize: Synthesize, rng: np.random.Generator) -> Shadow:
    """Fit and sample on random learners, each of them once or not at all, and score all learners."""
    n = knowledge.population.n_learners
    member = np.zeros(n, dtype=bool)
    member[rng.permutation(n)[: knowledge.n_training]] = True
    synthetic = synthesize(knowledge.population.select(member), rng)
    return Shadow(member, _columns(knowledge, synthetic))


def _columns(knowledge: CohortKnowledge, synthetic: Cohort) -> Floats:
    return np.stack(list(cohort_scores(knowledge, synthetic).values()), axis=1)


def _tracing_by_label(knowledge: CohortKnowledge, synthetic: Cohort) -> Floats:
    """Each learner's habits times how the synthetic learners of their label differ from the real ones."""
    own, others = knowledge.own_habits, knowledge.habits(synthetic)
    score = np.zeros(len(own))
    for label in range(knowledge.population.schema.n_labels):
        here, there = knowledge.population.label == label, synthetic.label == label
        if here.any() and there.any():
            middle = own[here].mean(axis=0)
            score[here] = (own[here] - middle) @ (others[there].mean(axis=0) - middle)
    return score


def _weeks(cohort: Cohort) -> Floats:
    flat = np.log1p(cohort.values).reshape(cohort.n_learners, -1)
    return np.column_stack([flat, cohort.label.astype(np.float64)])


def _habits(cohort: Cohort) -> Floats:
    active = cohort.values > 0
    minutes = np.log1p(cohort.values).sum(axis=2) / np.maximum(active.sum(axis=2), 1)
    return np.concatenate([active.mean(axis=2), minutes], axis=1)


def _scale(columns: Floats) -> tuple[Floats, Floats]:
    spread = columns.std(axis=0)
    # A constant column distinguishes no learners; a synthetic cohort may still differ in it.
    return columns.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)


def _sequence(rng: np.random.Generator) -> np.random.SeedSequence:
    return np.random.SeedSequence(int(rng.integers(2**63)))


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

    The shadows are fitted once for all seeds. Without shadows only the attacks that need none are tried.
    """
    n_members = cohort.n_learners // 2
    knowledge = CohortKnowledge(cohort, n_members)
    shadow = None
    if n_shadows:
        seed = np.random.SeedSequence(int(rng.integers(2**63)))
        shadow = train_shadow_attack(knowledge, generate, seed, n_shadows, tick)
    rows = []
    for _ in range(n_seeds):
        member = np.zeros(cohort.n_learners, dtype=bool)
        member[rng.permutation(cohort.n_learners)[:n_members]] = True
        scores = cohort_scores(knowledge, generate(cohort.select(member), rng), shadow)
        rows.append(_row(judge(scores, member, rng), chance_level(scores, member, rng)))
    return rows


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
        "auc_worst": risk.worst.auc,
        "auc_worst_low": risk.low,
        "auc_worst_high": risk.high,
        "worst_attack": risk.worst.attack,
        "tpr_at_1pct": risk.worst.tpr_at_1pct,
        "control_auc_worst": chance.auc,
        "control_auc_worst_low": chance.low,
        "control_auc_worst_high": chance.high,
    }
