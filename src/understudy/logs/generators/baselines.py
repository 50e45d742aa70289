"""Baselines without a guarantee: `drop`, which people use and should not, and a plain Markov chain."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.errors import UsageError
from understudy.logs.generators.generator import DetailsBy, Generator
from understudy.logs.interactions import Interactions
from understudy.logs.large.parts import sum_over
from understudy.logs.models.markov import AliasTables, TransitionCounts, sample_walks
from understudy.logs.models.rasch_in_parts import fit_rasch_of


class Drop(Generator):
    """Each row is dropped with probability `ratio`; learners left are shuffled.

    Vie, Rigaux and Minn 2022, section 5.2.
    """

    name: ClassVar[str] = "drop"
    summary: ClassVar[str] = "drops a share of the rows and renumbers the learners (a baseline)"
    # Its parameters are the rows themselves, which is what is wrong with it.
    keeps_rows: bool = True
    needs_outcomes: bool = False
    details: ClassVar[DetailsBy] = "own"

    def __init__(self, ratio: float = 0.5) -> None:
        if not 0 <= ratio < 1:
            raise UsageError(
                f"drop needs a ratio of at least 0 and below 1, got {ratio:g}.",
                hint="drop:0.5 drops half of the rows.",
            )
        self.ratio = ratio

    def guarantee(self, n_learners: int) -> Guarantee:
        """None: what is not dropped is released as it is."""
        return Guarantee.none("real rows are released")

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        """Remember the log."""
        self.log_ = log

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """What is left of the log, learners in random order."""
        kept = self.log_.keep_rows(rng.random(self.log_.n_rows) >= self.ratio)
        order = rng.permutation(kept.n_learners)
        if n_learners is not None and n_learners > kept.n_learners:
            raise UsageError(
                f"asked for {n_learners} learners; drop:{self.ratio:g} leaves {kept.n_learners}.",
                hint="ask for fewer, or use a method that invents learners, such as markov.",
            )
        kept = kept.select(order[:n_learners])
        # Items and groups were not asked for; nor were times, unless they are included.
        return Interactions(
            kept.action,
            kept.outcome,
            kept.offsets,
            kept.actions,
            time=kept.time if kept.has_times else None,
            columns=kept.columns,
            term=kept.term if kept.has_times else None,
        )


class Markov(Generator):
    """Start, transitions and end from the log; walks no longer than its longest sequence."""

    name: ClassVar[str] = "markov"
    summary: ClassVar[str] = "random walks with the log's transition counts, Rasch outcomes (a baseline)"
    keeps_rows: bool = False

    def guarantee(self, n_learners: int) -> Guarantee:
        """None: the transition counts of the training log can be read off the output."""
        return Guarantee.none("how often one action followed another in the real log can be read off")

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        """Count the transitions; fit difficulties and the spread of abilities."""
        counts = sum_over(log, TransitionCounts.of)
        rasch = fit_rasch_of(log)
        self.actions_ = log.actions
        self.longest_ = counts.longest
        self.tables_ = AliasTables.of(counts)
        self.easiness_ = rasch.intercept - rasch.difficulty
        self.ability_mean_ = float(rasch.ability.mean()) if len(rasch.ability) else 0.0
        self.ability_spread_ = float(rasch.ability.std()) if len(rasch.ability) else 0.0

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Walks of invented learners whose abilities are drawn from a normal law."""
        n = self.n_learners_ if n_learners is None else n_learners
        ability = rng.normal(self.ability_mean_, self.ability_spread_, n)
        action, outcome, offsets = sample_walks(self.tables_, self.easiness_, ability, self.longest_, rng)
        return Interactions(action, outcome, offsets, self.actions_)
