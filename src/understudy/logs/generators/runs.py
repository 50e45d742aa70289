"""`runs`: learners stay at an action until they have mastered it or give up, then go on (a baseline)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.errors import UsageError
from understudy.logs.generators.generator import Generator
from understudy.logs.interactions import Interactions, offsets_of
from understudy.logs.models.markov import AliasTables, TransitionCounts
from understudy.logs.models.practice import by_attempts, fit_practice, performance_factors
from understudy.logs.models.rasch import PairCounts, fit_rasch
from understudy.logs.models.runs import N_CELLS, RunModel, RunStates

OUTCOMES = {"attempts": by_attempts, "pfa": performance_factors}


class Runs(Generator):
    """Runs whose ends depend on their length and on the last outcomes; outcomes that grow with practice."""

    name: ClassVar[str] = "runs"
    summary: ClassVar[str] = "stays at an action by the outcomes so far, success grows with practice (a baseline)"
    keeps_rows: bool = False

    def __init__(self, outcomes: str = "pfa") -> None:
        if outcomes not in OUTCOMES:
            raise UsageError(
                f"runs cannot have outcomes={outcomes}.", hint=f"outcomes are {' or '.join(OUTCOMES)}."
            )
        self.outcomes = outcomes

    def guarantee(self, n_learners: int) -> Guarantee:
        """None: how often one action followed another can be read off the output, as with `markov`."""
        return Guarantee.none("how often one action followed another in the real log can be read off")

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        """Count lengths, jumps, and who stays; fit success."""
        self.actions_ = log.actions
        self.length_law_ = np.bincount(log.lengths) / log.n_learners
        states, practice = RunStates.of(log), fit_practice(log, OUTCOMES[self.outcomes])
        staying = _staying(log, states)
        self.ability_mean_, self.ability_spread_ = float(practice.ability.mean()), float(practice.ability.std())
        self.model_ = RunModel(
            jumps=AliasTables.of(_jumps(log)),
            stay=staying.ability + staying.intercept,
            stay_by_cell=-staying.difficulty,
            easiness=practice.easiness,
            gain=practice.gain,
        )

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Walks of invented learners whose abilities are drawn from a normal law."""
        n = self.n_learners_ if n_learners is None else n_learners
        ability = rng.normal(self.ability_mean_, self.ability_spread_, n)
        lengths = rng.choice(len(self.length_law_), n, p=self.length_law_)
        action, outcome = self.model_.walk(ability, lengths, rng)
        return Interactions(action, outcome, offsets_of(lengths), self.actions_)


def _jumps(log: Interactions) -> TransitionCounts:
    """Steps from one run to the next, and the starts; a walk's end is by its length."""
    whole = TransitionCounts.of(log)
    n = log.n_actions
    among = (whole.source != whole.target) & (whole.target < n)
    return TransitionCounts(
        whole.source[among], whole.target[among], whole.count[among], n, whole.longest, whole.n_learners
    )


def _staying(log: Interactions, states: RunStates):
    """Log-odds of staying by action and by cell: additive, so a Rasch model with cells for items."""
    asked = states.stays >= 0
    pair = log.action[asked].astype(np.int64) * N_CELLS + states.cell[asked]
    n = np.bincount(pair, minlength=log.n_actions * N_CELLS)
    stays = np.bincount(pair, weights=states.stays[asked], minlength=log.n_actions * N_CELLS)
    present = np.flatnonzero(n)
    offsets = np.searchsorted(present, np.arange(log.n_actions + 1) * N_CELLS)
    return fit_rasch(
        PairCounts(
            offsets,
            (present % N_CELLS).astype(np.int32),
            n[present].astype(np.float64),
            stays[present],
            N_CELLS,
        )
    )
