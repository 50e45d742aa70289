"""A trial: one method fitted on one half of the learners, its utility and its risk.

The seed's protocol (synthetic-logs, section 4): half of the learners train; utility compares
the synthetic log with theirs; attacks try to tell them from the other half. Nothing that a
trial computes is covered by a guarantee: its results are internal.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.estimate import Risk, auc_with_interval
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.attacks.attribute import AttributeEstimate, attribute_attack
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.shadow import ShadowAttack
from understudy.logs.audit import attack, judged_risk, membership_scores, rehearse
from understudy.logs.generators.generator import make_method
from understudy.logs.interactions import Interactions
from understudy.logs.models.next_outcome import fit_next_outcome
from understudy.logs.utility import Real, measure, prediction_auc_on

# Figures of fewer learners than this, on either side, would be about individuals.
SMALLEST_GROUP = 20
POOLED = "small groups, pooled"


@dataclass(frozen=True)
class GroupFigures:
    """The strongest attack and the next-outcome model on the learners of one group."""

    group: str
    n_learners: int
    auc: float
    low: float
    high: float
    prediction_auc: float
    prediction_loss: float

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
    from_real, from_synthetic = fit_next_outcome(real.training), fit_next_outcome(synthetic)
    outsiders = np.flatnonzero(~member)
    figures = []
    for name, inside in pooled_groups(log, member, judged):
        mine = inside & judged
        area, low, high = auc_with_interval(scores[mine], member[mine])
        held_out = real.held_out.select(inside[outsiders])
        reached = prediction_auc_on(from_synthetic, held_out)
        figures.append(
            GroupFigures(
                group=name,
                n_learners=int(inside.sum()),
                auc=area,
                low=low,
                high=high,
                prediction_auc=reached,
                prediction_loss=prediction_auc_on(from_real, held_out) - reached,
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
    return [*large, (POOLED, rest)] if _enough(rest, member, judged) else large


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
        means = {
            key: statistics.fmean(getattr(f, key) for f in mine)
            for key in ("auc", "low", "high", "prediction_auc", "prediction_loss")
        }
        result.append(GroupFigures(name, mine[0].n_learners, **means))
    return result


Tick = Callable[[], None]


@dataclass(frozen=True)
class Trial:
    """What one trial found. `control` is the risk when the members called so did not train."""

    method: str
    seed: int
    n_rows: int
    n_learners: int
    utility: dict[str, float]
    risk: Risk
    control: Risk | None
    attribute: AttributeEstimate
    groups: list[GroupFigures]
    guarantee: Guarantee
    fit_seconds: float
    sample_seconds: float

    def row(self) -> dict[str, Any]:
        """The trial as a row of `results.csv`."""
        return {
            "method": self.method,
            "seed": self.seed,
            "n_rows": self.n_rows,
            "n_learners": self.n_learners,
            **self.utility,
            **_risk_columns(self.risk),
            "auc_attribute": self.attribute.auc,
            "attribute_advantage": self.attribute.advantage,
            "attribute_advantage_low": self.attribute.low,
            "attribute_advantage_high": self.attribute.high,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "fit_seconds": self.fit_seconds,
            "sample_seconds": self.sample_seconds,
        }

    def control_row(self) -> dict[str, Any] | None:
        """The control as a row: no utility, no guarantee, only what the attacks claim to find."""
        if self.control is None:
            return None
        return {
            "method": f"control:{self.method}",
            "seed": self.seed,
            "n_rows": self.n_rows,
            "n_learners": self.n_learners,
            **_risk_columns(self.control),
            "epsilon": float("nan"),
            "delta": float("nan"),
        }


class Stage:
    """One split of the learners on which every method is tried.

    The shadow attack on a method knows all learners but no split, so `rehearsals` may be
    shared between the stages of a study.
    """

    def __init__(self, log: Interactions, seed: int, *, knowledge: Knowledge | None = None) -> None:
        self.seed = seed
        self.log = log
        self.knowledge = knowledge or everybody(log)
        self.member: NDArray[np.bool_] = np.zeros(log.n_learners, dtype=bool)
        order = _rng(seed, "split").permutation(log.n_learners)
        self.member[order[: self.knowledge.n_training]] = True
        self.real = Real(log.select(self.member), log.select(~self.member))

    def try_method(
        self,
        method: str,
        shadow: ShadowAttack,
        *,
        n_shadows: int,
        control: bool,
        n_learners: int | None = None,
        workers: int = 1,
    ) -> Trial:
        """Fit, sample `n_learners`, measure, attack."""
        rng = _rng(self.seed, method)
        synthesizer = make_method(method)
        began = time.perf_counter()
        synthesizer.fit(self.real.training, rng, seeded_noise(rng))
        fitted = time.perf_counter()
        synthetic = synthesizer.sample(n_learners, rng).recode(self.log.actions)
        sampled = time.perf_counter()
        scores = membership_scores(self.knowledge, synthetic, shadow, workers)
        risk = judged_risk(self.knowledge, self.member, scores, rng)
        return Trial(
            method=method,
            seed=self.seed,
            n_rows=synthetic.n_rows,
            n_learners=synthetic.n_learners,
            utility=measure(self.real, synthetic),
            risk=risk,
            control=self._control(method, synthetic, n_shadows, rng, workers) if control else None,
            attribute=attribute_attack(self.real.training, self.real.held_out, synthetic, rng),
            groups=group_figures(
                self.log,
                self.member,
                self.knowledge.judged,
                scores[risk.worst.attack],
                self.real,
                synthetic,
            ),
            guarantee=synthesizer.guarantee(self.real.training.n_learners),
            fit_seconds=fitted - began,
            sample_seconds=sampled - fitted,
        )

    def _control(
        self, method: str, synthetic: Interactions, n_shadows: int, rng: np.random.Generator, workers: int
    ) -> Risk:
        """The same attacks when the members called so are learners whom the generator never saw."""
        strangers = everybody(self.real.held_out)
        called = np.zeros(strangers.population.n_learners, dtype=bool)
        called[rng.permutation(len(called))[: strangers.n_training]] = True
        shadow = rehearse(
            strangers, generator_of(method), _sequence(self.seed, f"control {method}"), n_shadows
        )
        return attack(strangers, called, synthetic, shadow, rng, workers)


def everybody(log: Interactions) -> Knowledge:
    """The attacker's knowledge of a log of which half will train."""
    return Knowledge(log, log.n_learners // 2)


def generator_of(
    method: str, n_learners: int | None = None
) -> Callable[[Interactions, np.random.Generator], Interactions]:
    """Fit and sample in one call, as the shadows need it."""

    def generate(log: Interactions, rng: np.random.Generator) -> Interactions:
        return (
            make_method(method).fit(log, rng, seeded_noise(rng)).sample(n_learners, rng).recode(log.actions)
        )

    return generate


def rehearsal(
    knowledge: Knowledge,
    method: str,
    n_shadows: int,
    tick: Tick | None = None,
    *,
    n_learners: int | None = None,
) -> ShadowAttack:
    """The shadow attack on a method; the same for every seed of a study."""
    generate = generator_of(method, n_learners)
    return rehearse(knowledge, generate, _sequence(0, f"shadows {method}"), n_shadows, tick)


def _risk_columns(risk: Risk) -> dict[str, Any]:
    return {
        **{f"auc_{e.attack.replace('-', '_')}": e.auc for e in risk.estimates},
        "auc_worst": risk.worst.auc,
        "auc_worst_low": risk.low,
        "auc_worst_high": risk.high,
        "worst_attack": risk.worst.attack,
        "tpr_at_1pct": risk.worst.tpr_at_1pct,
    }


def _sequence(seed: int, purpose: str) -> np.random.SeedSequence:
    """Randomness that depends on the seed and on what it is for, not on the order of the work."""
    return np.random.SeedSequence([seed, *purpose.encode()])


def _rng(seed: int, purpose: str) -> np.random.Generator:
    return np.random.default_rng(_sequence(seed, purpose))
