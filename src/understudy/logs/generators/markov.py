"""`markov`: random walks with the log's own transitions, outcomes by a Rasch model.

The seed's method (synthetic-logs, sections 3.2 and 3.3). It releases its training counts, and
with few learners or many actions those give members away: a baseline without a guarantee.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.logs.interactions import Interactions
from understudy.logs.models.markov import AliasTables, TransitionCounts, sample_walks
from understudy.logs.models.rasch import fit_rasch


class Markov:
    """Start, transitions and end from the log; walks no longer than its longest sequence."""

    name: ClassVar[str] = "markov"
    summary: ClassVar[str] = "random walks with the log's transition counts, Rasch outcomes (a baseline)"
    keeps_rows: ClassVar[bool] = False

    def guarantee(self, n_learners: int) -> Guarantee:
        """None: the transition counts of the training log can be read off the output."""
        return Guarantee.none("how often one action followed another in the real log can be read off")

    def fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> Self:
        """Count the transitions; fit difficulties and the spread of abilities."""
        counts = TransitionCounts.of(log)
        rasch = fit_rasch(log)
        self.actions_ = log.actions
        self.simulated_ = log.simulated
        self.n_learners_ = counts.n_learners
        self.longest_ = counts.longest
        self.tables_ = AliasTables.of(counts)
        self.easiness_ = rasch.intercept - rasch.difficulty
        self.ability_mean_ = float(rasch.ability.mean()) if len(rasch.ability) else 0.0
        self.ability_spread_ = float(rasch.ability.std()) if len(rasch.ability) else 0.0
        return self

    def sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Walks of invented learners whose abilities are drawn from a normal law."""
        n = self.n_learners_ if n_learners is None else n_learners
        ability = rng.normal(self.ability_mean_, self.ability_spread_, n)
        action, outcome, offsets = sample_walks(self.tables_, self.easiness_, ability, self.longest_, rng)
        return Interactions(action, outcome, offsets, self.actions_, simulated=self.simulated_)
