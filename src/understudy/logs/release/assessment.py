"""What a release is worth and what it risks, measured inside on halves of the learners.

The method is refitted on random halves, since an attack can only be judged with learners who
were not used. These refits are never released and never charged; their figures are functions
of the real data, covered by no guarantee, and stay with the custodian unless published.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from understudy.core.attacks.estimate import (
    ChanceLevel,
    Risk,
    RiskEstimate,
    mean_chance,
    mean_estimate,
    mean_risk,
)
from understudy.core.attacks.subsequences import MatchingWork
from understudy.core.attacks.transcript import EXPOSED
from understudy.core.engine import progress
from understudy.core.engine.tasks import run_tasks
from understudy.logs.attacks.attribute import AttributeEstimate
from understudy.logs.attacks.shadow import N_SHADOWS
from understudy.logs.generators.generator import Generator
from understudy.logs.interactions import Interactions
from understudy.logs.trial import (
    GroupFigures,
    Split,
    Trial,
    attacker_knowledge,
    averaged,
    check_size,
    shadow_attack_on,
    with_names_found,
)

N_HALVES = 3
# Of more learners than this, or learners with more rows, a random sample is attacked: matching takes the square of
# their number, and refits take dozens of times as long as a fit to their rows.
MOST_ATTACKED = 40_000
MOST_ATTACKED_ROWS = 2_000_000
LEAST_ATTACKED = 1000


@dataclass(frozen=True)
class Assessment(Risk):
    """Means over the trials on halves. `low` and `high` bound the strongest attack's AUC."""

    chance: ChanceLevel
    white_box: RiskEstimate | None
    exposed_share: float | None
    attribute: AttributeEstimate | None
    utility: dict[str, float]
    groups: list[GroupFigures]
    n_learners: int
    n_constant: int
    n_halves: int
    n_attacked: int
    """Of `n_learners`: all of them, or a random sample of a log of very many."""
    matching: MatchingWork

    def to_json(self) -> dict[str, Any]:
        """Everything measured, for a machine."""
        return {
            **super().to_json(),
            "chance": dict(vars(self.chance)),
            "white_box": None if self.white_box is None else self.white_box.to_json(),
            "exposed": None
            if self.exposed_share is None
            else {"share": self.exposed_share, "above_auc": EXPOSED},
            "attribute": None if self.attribute is None else self.attribute.to_json(),
            "utility": self.utility,
            "groups": [figures.to_json() for figures in self.groups],
            "actions_set_aside": self.n_constant,
            "halves": self.n_halves,
            "learners": self.n_learners,
            "learners_attacked": self.n_attacked,
            "matching": self.matching.to_json(),
        }


def assess(
    log: Interactions,
    generator: Generator,
    *,
    n_learners: int | None = None,
    n_halves: int = N_HALVES,
    n_shadows: int = N_SHADOWS,
) -> Assessment:
    """Try the generator on random halves of the log, as if `n_learners` synthetic ones were released.

    Of a log of very many learners or rows a random sample of learners is tried as if it were all. In a smaller log each
    learner counts for more, so as a rule attacks find no less than in the whole one; intervals are those of the sample.
    """
    check_size(log)
    if not log.declared:
        log = with_names_found(log)
    n_population, log = log.n_learners, sampled_learners(log)
    knowledge = attacker_knowledge(log)
    # A larger synthetic log says more about its learners: try the size that will be released, for so many.
    size = None if n_learners is None else max(1, round(n_learners * knowledge.n_training / n_population))
    with progress.task("Measuring the risk", n_shadows + n_halves) as step:
        shadow = shadow_attack_on(generator, knowledge, n_shadows, step.advance, n_learners=size)
        splits = [Split(log, seed, knowledge=knowledge) for seed in range(n_halves)]
        trials = run_tasks(
            [partial(split.try_generator, generator, shadow, n_learners=size) for split in splits],
            step.advance,
        )
    return _mean(trials, log, n_population)


def sampled_learners(log: Interactions) -> Interactions:
    """The log of learners drawn at random, as many as are attacked; always the same ones."""
    if log.n_learners <= MOST_ATTACKED and log.n_rows <= MOST_ATTACKED_ROWS:
        return log
    drawn = np.random.default_rng(0).permutation(log.n_learners)[:MOST_ATTACKED]
    within = np.cumsum(log.lengths[drawn]) <= MOST_ATTACKED_ROWS
    # Few learners with very many rows each are all that there are: an audit needs some.
    within[:LEAST_ATTACKED] = True
    return log.select(np.sort(drawn[within]))


def _mean(trials: list[Trial], log: Interactions, n_population: int) -> Assessment:
    def mean(values: Any) -> float:
        return statistics.fmean(values)

    risk = mean_risk([trial.risk for trial in trials])
    matching = MatchingWork()
    for trial in trials:
        matching.add(trial.matching)
    attributes = [trial.attribute for trial in trials if trial.attribute is not None]
    return Assessment(
        estimates=risk.estimates,
        white_box=mean_estimate(white) if (white := [t.white_box for t in trials if t.white_box]) else None,
        exposed_share=mean(t.exposed_share for t in trials) if white else None,
        low=risk.low,
        high=risk.high,
        found_low=risk.found_low,
        found_high=risk.found_high,
        chance=mean_chance([trial.chance for trial in trials]),
        attribute=AttributeEstimate(
            auc=mean(a.auc for a in attributes),
            baseline=mean(a.baseline for a in attributes),
            advantage=mean(a.advantage for a in attributes),
            low=mean(a.low for a in attributes),
            high=mean(a.high for a in attributes),
            n_targets=min(a.n_targets for a in attributes),
        )
        if attributes
        else None,
        utility={name: mean(trial.utility[name] for trial in trials) for name in trials[0].utility},
        groups=averaged(trial.groups for trial in trials),
        n_learners=n_population,
        n_attacked=log.n_learners,
        matching=matching,
        n_set_aside=risk.n_set_aside,
        n_constant=0 if log.outcome is None else int(log.constant_actions().sum()),
        n_halves=len(trials),
    )
