"""A trial: one generator fitted on one half of the learners, its utility and its risk.

The protocol of Vie, Rigaux and Minn 2022, section 4: half of the learners train; utility compares the
synthetic log with theirs; attacks try to distinguish them from the other half. Nothing that a trial
computes is covered by a guarantee: its results are internal.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.estimate import ChanceLevel, Risk, RiskEstimate, auc_with_interval
from understudy.core.attacks.subsequences import MatchingWork
from understudy.core.attacks.transcript import WhiteBox
from understudy.core.files.words import counted
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError
from understudy.logs.attacks.attribute import AttributeEstimate, attribute_attack
from understudy.logs.attacks.column_attribute import column_attribute_attacks, strongest_attribute
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.shadow import ShadowAttack
from understudy.logs.attacks.transcript import white_box
from understudy.logs.audit import judged_chance, judged_risk, membership_scores, train_shadow_attack
from understudy.logs.generators.generator import Generator
from understudy.logs.histograms import Histograms, histograms
from understudy.logs.interactions import POOLED, Interactions
from understudy.logs.models.next_outcome import fit_next_outcome
from understudy.logs.utility import METRICS, Real, measure, prediction_auc_on

# A log with fewer learners cannot be split.
SMALLEST = 8
# Figures of fewer learners than this, on either side, would be about individuals.
SMALLEST_GROUP = 20
POOLED_GROUPS = "small groups, pooled"


@dataclass(frozen=True)
class GroupFigures:
    """The strongest attack and the next-outcome model on the learners of one group."""

    group: str
    n_learners: int
    auc: float
    low: float
    high: float
    prediction_auc: float | None
    prediction_loss: float | None
    """None where the log has no outcomes."""

    def to_json(self) -> dict[str, Any]:
        """The figures for a machine."""
        return dict(vars(self))


def group_figures(
    log: Interactions,
    member: NDArray[np.bool_],
    judged: NDArray[np.bool_],
    scores: NDArray[np.float64],
    real: Real,
    synthetic: Interactions,
) -> list[GroupFigures]:
    """Figures of each group; groups too small on either side are pooled."""
    if log.group is None:
        return []
    judged_rows = log.outcome is not None
    models = (fit_next_outcome(real.training), fit_next_outcome(synthetic)) if judged_rows else ()
    outsiders = np.flatnonzero(~member)
    figures = []
    for name, inside in pooled_groups(log, member, judged):
        mine = inside & judged
        area, low, high = auc_with_interval(scores[mine], member[mine])
        held_out = real.held_out.select(inside[outsiders])
        predicted = [prediction_auc_on(model, held_out) for model in models]
        figures.append(
            GroupFigures(
                group=name,
                n_learners=int(inside.sum()),
                auc=area,
                low=low,
                high=high,
                prediction_auc=predicted[1] if predicted else None,
                prediction_loss=predicted[0] - predicted[1] if predicted else None,
            )
        )
    return figures


def pooled_groups(
    log: Interactions, member: NDArray[np.bool_], judged: NDArray[np.bool_]
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Groups and who is in them; a pool that is itself too small is left out."""
    assert log.group is not None
    large, rest = [], np.zeros(log.n_learners, dtype=bool)
    for code, name in enumerate(log.groups):
        inside = log.group == code
        if _enough(inside, member, judged):
            large.append((name, inside))
        else:
            rest |= inside
    return [*large, (POOLED_GROUPS, rest)] if _enough(rest, member, judged) else large


def _enough(inside: NDArray[np.bool_], member: NDArray[np.bool_], judged: NDArray[np.bool_]) -> bool:
    mine = inside & judged
    return min(int((mine & member).sum()), int((mine & ~member).sum())) >= SMALLEST_GROUP


def averaged(trials: Iterable[list[GroupFigures]]) -> list[GroupFigures]:
    """Means over trials, for groups that were large enough in each."""
    lists = list(trials)
    common = [f.group for f in lists[0] if all(any(f.group == g.group for g in other) for other in lists)]
    result = []
    for name in common:
        mine = [f for figures in lists for f in figures if f.group == name]
        keys = ("auc", "low", "high", "prediction_auc", "prediction_loss")
        means: dict[str, Any] = {
            key: None if getattr(mine[0], key) is None else statistics.fmean(getattr(f, key) for f in mine)
            for key in keys
        }
        result.append(GroupFigures(name, mine[0].n_learners, **means))
    return result


@dataclass(frozen=True)
class Trial:
    """What one trial found.

    `chance` is what the strongest attack would reach by luck alone, `white_box` what the best one on the noisy sums
    of the fit reaches: no attack on the synthetic log, but a ceiling for them. `exposed_share` is the share of learners
    whom these sums could give away (see `WhiteBox`). `attribute` is about outcomes, `column_attribute` about the
    declared column whose cells the synthetic log tells most about. `names_kept` is the share of real rows whose action
    the synthetic log has at all: of the others no difficulty is known.
    """

    generator: str
    seed: int
    n_rows: int
    n_learners: int
    names_kept: float
    utility: dict[str, float]
    risk: Risk
    chance: ChanceLevel
    white_box: RiskEstimate | None
    exposed_share: float | None
    attribute: AttributeEstimate | None
    column_attribute: AttributeEstimate | None
    groups: list[GroupFigures]
    guarantee: Guarantee
    fit_seconds: float
    sample_seconds: float
    histograms: Histograms
    matching: MatchingWork

    def row(self) -> dict[str, Any]:
        """The trial as a row of `results.csv`, and the histograms that its report draws."""
        return {
            "method": self.generator,
            "seed": self.seed,
            "n_rows": self.n_rows,
            "n_learners": self.n_learners,
            "names_kept": self.names_kept,
            **{metric.name: self.utility.get(metric.name) for metric in METRICS},
            **{f"auc_{e.attack.replace('-', '_')}": e.auc for e in self.risk.estimates},
            "auc_worst": self.risk.worst.auc,
            "auc_worst_low": self.risk.low,
            "auc_worst_high": self.risk.high,
            "auc_chance": self.chance.auc,
            "auc_chance_low": self.chance.low,
            "auc_chance_high": self.chance.high,
            "auc_transcript": None if self.white_box is None else self.white_box.auc,
            "worst_attack": self.risk.worst.attack,
            "tpr_attack": self.risk.most_found.attack,
            "tpr_at_1pct": self.risk.most_found.tpr_at_1pct,
            "tpr_at_1pct_low": self.risk.found_low,
            "tpr_at_1pct_high": self.risk.found_high,
            "tpr_chance": self.chance.found,
            "tpr_chance_high": self.chance.found_high,
            **({} if self.attribute is None else self.attribute.columns()),
            **({} if self.column_attribute is None else self.column_attribute.columns("attribute_column")),
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "fit_seconds": self.fit_seconds,
            "sample_seconds": self.sample_seconds,
            "histograms": self.histograms,
        }


class Split:
    """One split of the learners into halves, on which every generator is tried.

    The shadow attack on a generator knows all learners but no split, so it may be shared between splits.
    """

    def __init__(self, log: Interactions, seed: int, *, knowledge: Knowledge | None = None) -> None:
        self.seed = seed
        self.log = log
        self.knowledge = knowledge or attacker_knowledge(log)
        self.member: NDArray[np.bool_] = np.zeros(log.n_learners, dtype=bool)
        order = _rng(seed, "split").permutation(log.n_learners)
        self.member[order[: self.knowledge.n_training]] = True
        self.real = Real(log.select(self.member), log.select(~self.member))

    def try_generator(
        self,
        generator: Generator,
        shadow: ShadowAttack,
        *,
        n_learners: int | None = None,
        workers: int = 1,
    ) -> Trial:
        """Fit, sample `n_learners`, measure, attack."""
        rng = _rng(self.seed, generator.label)
        fitted = generator.fresh()
        began = time.perf_counter()
        fitted.fit(self.real.training, rng, seeded_noise(rng))
        learned = time.perf_counter()
        synthetic = fitted.sample(n_learners, rng).recode(self.log.actions)
        sampled = time.perf_counter()
        matching = MatchingWork()
        scores = membership_scores(self.knowledge, synthetic, shadow, workers, matching)
        risk = judged_risk(self.knowledge, self.member, scores, rng)
        seen = white_box(self.knowledge, fitted)
        return Trial(
            generator=generator.label,
            seed=self.seed,
            n_rows=synthetic.n_rows,
            n_learners=synthetic.n_learners,
            names_kept=_names_kept(self.real.training, synthetic),
            utility=measure(self.real, synthetic),
            risk=risk,
            chance=judged_chance(self.knowledge, self.member, scores, rng),
            white_box=None if seen is None else self._judged(seen, rng),
            exposed_share=None if seen is None else seen.exposed_share,
            attribute=None
            if self.log.outcome is None
            else attribute_attack(self.real.training, self.real.held_out, synthetic, rng),
            column_attribute=strongest_attribute(
                column_attribute_attacks(self.real.training, self.real.held_out, synthetic, rng)
            ),
            groups=group_figures(
                self.log,
                self.member,
                self.knowledge.judged,
                scores[risk.worst.attack],
                self.real,
                synthetic,
            ),
            guarantee=generator.guarantee(self.real.training.n_learners),
            fit_seconds=learned - began,
            sample_seconds=sampled - learned,
            histograms=histograms(self.real.training, synthetic),
            matching=matching,
        )

    def _judged(self, seen: WhiteBox, rng: np.random.Generator) -> RiskEstimate:
        return judged_risk(self.knowledge, self.member, {"transcript": seen.scores}, rng).worst


def _names_kept(real: Interactions, synthetic: Interactions) -> float:
    there = np.bincount(synthetic.action, minlength=real.n_actions) > 0
    return float(there[real.action].mean()) if real.n_rows else 0.0


def check_size(log: Interactions) -> None:
    """Refuse logs on which half against half means nothing."""
    if log.n_learners < SMALLEST or log.n_actions < 2:
        found = f"{counted(log.n_learners, 'learner')} and {counted(log.n_actions, 'action')}"
        few = (
            "One learner cannot be protected: there is no other to be taken for. "
            if log.n_learners == 1
            else "So few learners can hardly be protected. "
            if log.n_learners < SMALLEST
            else ""
        )
        raise DataError(
            f"the log has {found}. {few}The risk is measured on halves of the learners, which needs {SMALLEST} "
            "learners and 2 actions at least.",
            hint="use a log of more learners, several classes together for one; inspect it to see what is in this one.",
            code="too-few-learners",
            n_learners=log.n_learners,
        )


def with_names_found(log: Interactions) -> Interactions:
    """The log as one whose names are not public: there is room for the pool of those that a generator may not tell."""
    return replace(log.recode(tuple(dict.fromkeys((*log.actions, POOLED)))), declared=False)


def attacker_knowledge(log: Interactions) -> Knowledge:
    """The attacker's knowledge of a log of which half will train."""
    return Knowledge(log, log.n_learners // 2)


def shadow_attack_on(
    generator: Generator,
    knowledge: Knowledge,
    n_shadows: int,
    tick: Callable[[], None] | None = None,
    *,
    n_learners: int | None = None,
) -> ShadowAttack:
    """The shadow attack on a generator; the same for every split of a study."""

    def generate(log: Interactions, rng: np.random.Generator) -> Interactions:
        return generator.fresh().fit(log, rng, seeded_noise(rng)).sample(n_learners, rng).recode(log.actions)

    seed = _sequence(0, f"shadows {generator.label}")
    return train_shadow_attack(knowledge, generate, seed, n_shadows, tick)


def _sequence(seed: int, purpose: str) -> np.random.SeedSequence:
    """Randomness that depends on a seed and on what it is for, not on the order of the work."""
    return np.random.SeedSequence([seed, *purpose.encode()])


def _rng(seed: int, purpose: str) -> np.random.Generator:
    return np.random.default_rng(_sequence(seed, purpose))
