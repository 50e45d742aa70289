"""Every attack on one synthetic log: the whole audit of a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.attacks.estimate import ChanceLevel, Risk, RiskEstimate, chance_level, judge
from understudy.core.attacks.subsequences import MatchingWork
from understudy.core.engine import progress
from understudy.core.engine.tasks import n_cores, run_tasks
from understudy.core.pages.charts import Look, Point, dots
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure
from understudy.core.pages.notebook import notebook_table
from understudy.core.pages.words import GUESSING
from understudy.errors import DataError
from understudy.logs.attacks.attribute import AttributeEstimate, attribute_attack
from understudy.logs.attacks.column_attribute import column_attribute_attacks
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.scores import scores_without_refits
from understudy.logs.attacks.shadow import (
    N_SHADOWS,
    REFITTING_ATTACKS,
    Generate,
    ShadowAttack,
    fit_shadow,
    joint_linear_scores,
    n_stacked,
)
from understudy.logs.column_codes import shared_columns
from understudy.logs.interactions import Interactions, as_log, common_vocabulary, joined
from understudy.logs.same_learners import check_different
from understudy.logs.utility import Real, measure

Floats = NDArray[np.float64]

MEMBERSHIP_ATTACKS = (
    "lcs",
    "lcs-published",
    "lcs-expected",
    "lcs-outcomes",
    "transitions",
    "transitions-outcomes",
    "counts",
    "rare",
    "rare-bags",
    "tracing",
    "tracing-outcomes",
    "timing",
    "timing-likelihood",
    "columns",
    "columns-likelihood",
    "joint",
    *REFITTING_ATTACKS,
)


def train_shadow_attack(
    knowledge: Knowledge,
    generate: Generate,
    seed: np.random.SeedSequence,
    n_shadows: int = N_SHADOWS,
    tick: Callable[[], None] | None = None,
) -> ShadowAttack:
    """The shadow attack on a generator, ready for any synthetic log made from half of the population.

    Shadows hold scores of learners, so they live in memory only and go with the process.
    """
    tasks = [
        partial(
            fit_shadow, knowledge, generate, np.random.default_rng(s), stacked=number < n_stacked(n_shadows)
        )
        for number, s in enumerate(seed.spawn(n_shadows))
    ]
    return ShadowAttack(knowledge, run_tasks(tasks, tick))


def membership_scores(
    knowledge: Knowledge,
    synthetic: Interactions,
    shadow: ShadowAttack | None,
    workers: int = 1,
    work: MatchingWork | None = None,
) -> dict[str, Floats]:
    """The scores of all learners by all membership attacks; who was a member plays no part."""
    scores = scores_without_refits(knowledge, synthetic, workers, work)
    if shadow is None:
        scores["joint-linear"] = joint_linear_scores(knowledge, synthetic)
    else:
        scores.update(shadow.scores(synthetic, scores))
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


def judged_chance(
    knowledge: Knowledge, member: NDArray[np.bool_], scores: dict[str, Floats], rng: np.random.Generator
) -> ChanceLevel:
    """What luck alone gives with these scores, on the same learners."""
    judged = knowledge.judged
    return chance_level({name: values[judged] for name, values in scores.items()}, member[judged], rng)


# Share of synthetic rows with unknown actions beyond which an audit would see nothing.
MOST_STRANGE = 0.2


@dataclass(frozen=True)
class Audit:
    """What an audit of three logs found: internal, since it is computed from real learners."""

    risk: Risk
    chance: ChanceLevel
    attribute: AttributeEstimate | None
    """None where one of the logs has no outcomes."""
    column_attributes: tuple[AttributeEstimate, ...]
    """One for each declared column that all of the logs have."""
    utility: dict[str, float]
    strange_share: float
    matching: MatchingWork
    notes: tuple[str, ...] = ()
    """What to look at before the figures are believed."""

    @property
    def worst(self) -> RiskEstimate:
        """The strongest attack."""
        return self.risk.worst

    def to_json(self) -> dict[str, Any]:
        """The audit for a machine."""
        return {
            "internal": True,
            "risk": self.risk.to_json(),
            "chance": dict(vars(self.chance)),
            "attribute": None if self.attribute is None else self.attribute.to_json(),
            "column_attributes": [estimate.to_json() for estimate in self.column_attributes],
            "utility": self.utility,
            "rows_with_unknown_actions": self.strange_share,
            "matching": self.matching.to_json(),
            "notes": list(self.notes),
            "left_out": "pairwise, shadow and stacked (they refit the generator, which files cannot do)",
        }

    def to_frame(self) -> pl.DataFrame:
        """A row per attack."""
        return pl.DataFrame([estimate.to_json() for estimate in self.risk.estimates])

    def plot(self) -> Any:
        """Every attack's AUC with its interval, as an altair chart."""
        return risk_figure(self.risk.estimates, self.chance).chart

    def _repr_html_(self) -> str:
        return notebook_table(
            f"Strongest attack: {self.worst.attack}, AUC {self.worst.auc:.3f} "
            f"({self.risk.low:.3f} to {self.risk.high:.3f}; 0.5 is guessing). Internal: computed from real learners.",
            self.to_frame(),
        )


def audit(
    members: Interactions,
    outsiders: Interactions,
    synthetic: Interactions,
    *,
    rng: np.random.Generator | None = None,
) -> Audit:
    """Every attack and metric that needs no generator.

    `members` are the learners whom the generator learned from, `outsiders` learners of the same kind whom
    it never saw. Attacks that refit the generator are left out.
    """
    rng = rng or np.random.default_rng(0)
    members, outsiders, synthetic = map(as_log, (members, outsiders, synthetic))
    known = {*members.actions, *outsiders.actions}
    strange = np.array([name not in known for name in synthetic.actions])
    strange_share = float(strange[synthetic.action].mean())
    if strange_share > MOST_STRANGE:
        raise DataError(
            f"{100 * strange_share:.0f} % of the synthetic rows have actions that no real log has, "
            "so hardly anything could be compared.",
            hint="the three logs need the same names of actions, spelled alike.",
            code="other-actions",
        )
    members, outsiders, synthetic = common_vocabulary(members, outsiders, synthetic)
    judged = all(log.outcome is not None for log in (members, outsiders, synthetic))
    if not judged:
        members, outsiders, synthetic = (log.without_outcomes() for log in (members, outsiders, synthetic))
    notes = check_different(members, outsiders, synthetic)
    population = _told_by(synthetic, joined(members, outsiders))
    member = np.arange(population.n_learners) < members.n_learners
    knowledge = Knowledge(population, members.n_learners)
    matching = MatchingWork()
    with progress.task("Attacking and measuring", 5) as step:
        scores = membership_scores(knowledge, synthetic, None, n_cores(), matching)
        step.advance()
        risk = judged_risk(knowledge, member, scores, rng)
        step.advance()
        chance = judged_chance(knowledge, member, scores, rng)
        step.advance()
        attribute = attribute_attack(members, outsiders, synthetic, rng) if judged else None
        columns = tuple(column_attribute_attacks(members, outsiders, synthetic, rng))
        step.advance()
        utility = measure(Real(members, outsiders), synthetic)
        step.advance()
    return Audit(risk, chance, attribute, columns, utility, strange_share, matching, tuple(notes))


def _told_by(synthetic: Interactions, population: Interactions) -> Interactions:
    """The population with the times and columns that the synthetic log tells: of the others it says nothing."""
    columns = tuple(column for column, _ in shared_columns(population, synthetic))
    if not synthetic.has_times:
        population = replace(population, time=None, term=None)
    return replace(population, columns=columns)


def strongest_first(estimates: Sequence[RiskEstimate]) -> list[RiskEstimate]:
    """The attacks by their AUC."""
    return sorted(estimates, key=lambda estimate: -estimate.auc)


def risk_figure(estimates: Sequence[RiskEstimate], chance: ChanceLevel | None = None) -> Figure:
    """Every attack with its interval, the strongest first; guessing is at 0.5, and what luck alone gives is last."""
    ordered = strongest_first(estimates)
    points = [
        Point(estimate.attack, estimate.auc, estimate.low, estimate.high, "attack" if place else "strongest")
        for place, estimate in enumerate(ordered)
    ]
    if chance is not None:
        points.append(Point("luck alone", chance.auc, chance.low, chance.high, "luck"))
    drawing = dots(
        points,
        ["members distinguished (AUC)", "0.5 is guessing, 1 is every time"],
        looks={"strongest": Look(WARNING), "attack": Look(ACCENT), "luck": Look(MUTED)},
        domain=[0.4, 1.0],
        axis=".1f",
        reference=GUESSING,
        legend=None,
    )
    return drawing.figure("AUC of each attack with its interval", "Guessing is 0.5.")
