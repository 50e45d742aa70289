"""`runs`: learners stay at an action until they have mastered it or give up, then go on (a baseline)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.errors import UsageError
from understudy.logs.generators.generator import Generator
from understudy.logs.interactions import Interactions, offsets_of, pair_codes, totals
from understudy.logs.models.practice import FEATURES, fit_practice, seconds_of
from understudy.logs.models.rasch import PairCounts, fit_rasch
from understudy.logs.models.runs import N_CELLS, JumpCounts, RunModel, RunStates

Floats = NDArray[np.float64]

# Actions, and pairs of them, that were left so many times have jumps of their own.
ENOUGH = 5
# Penalty on what an action and a cell add to staying beyond the sum of both: a standard deviation of a half.
INTERACTION_PENALTY = 4.0
# Seconds between rows are kept as so many quantiles.
N_QUANTILES = 65
# Rounds of calibration, and the share of what is off that a round takes back. In each so many rows are walked, by as
# many learners as the log has, or several times as many.
N_CALIBRATIONS, PACE = 6, 0.5
CALIBRATION_ROWS, MOST_COPIES = 300_000, 10


class Runs(Generator):
    """Runs whose ends depend on their length and on the last outcomes; outcomes that grow with practice."""

    name: ClassVar[str] = "runs"
    summary: ClassVar[str] = (
        "stays at an action by the outcomes so far, success grows with practice (a baseline)"
    )
    keeps_rows: bool = False

    def __init__(self, outcomes: str = "pfa") -> None:
        if outcomes not in FEATURES:
            raise UsageError(
                f"runs cannot have outcomes={outcomes}.", hint=f"outcomes are {', '.join(FEATURES)}."
            )
        self.outcomes = outcomes

    def guarantee(self, n_learners: int) -> Guarantee:
        """None: how often one action followed another can be read off the output, as with `markov`."""
        return Guarantee.none("how often one action followed another in the real log can be read off")

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        """Count lengths, jumps, and who stays; fit success."""
        features = FEATURES[self.outcomes]
        if features.timed and log.time is None:
            raise UsageError(
                f"outcomes={self.outcomes} forget with time, and the log has no times.",
                hint="name the column of times, or use outcomes=pfa.",
                code="no-times",
                settings=("time",),
            )
        self.actions_ = log.actions
        # Learners without rows are not invented.
        n_of_length = np.bincount(log.lengths)[1:].astype(np.float64)
        self.length_law_ = n_of_length / n_of_length.sum()
        states = RunStates.of(log)
        jumps = JumpCounts.of(log, ENOUGH)
        stay, stay_by_cell = _staying(log, states)
        self.practice_ = fit_practice(log, features)
        model = RunModel(
            jumps=jumps.tables(np.ones(log.n_actions)),
            sources=jumps.sources,
            stay=stay,
            stay_by_cell=stay_by_cell,
            easiness=self.practice_.easiness,
            features=features,
            weights=self.practice_.weights,
            gaps=_gap_quantiles(log, states) if features.timed else np.zeros((2, 2)),
        )
        self.model_ = self._calibrated(model, jumps, log)

    def _calibrated(self, model: RunModel, jumps: JumpCounts, log: Interactions) -> RunModel:
        """The model whose walks visit actions as often as learners did, and find them as difficult.

        In a log, where learners stop depends on where they are, and what they try on how able they are. Walks know
        nothing of either, and would be off by it.
        """
        rng = np.random.default_rng(0)
        share = np.bincount(log.action, minlength=log.n_actions) / log.n_rows
        difficulty, arrival = fit_rasch(log).difficulty, np.ones(log.n_actions)
        n_learners = log.n_learners * int(np.clip(CALIBRATION_ROWS // log.n_rows, 1, MOST_COPIES))
        for _ in range(N_CALIBRATIONS):
            walked = self._walks(model, n_learners, rng)
            visited = np.bincount(walked.action, minlength=log.n_actions) / walked.n_rows
            arrival *= np.clip((share + 1e-6) / (visited + 1e-6), 0.2, 5.0) ** PACE
            easier = PACE * (fit_rasch(walked).difficulty - difficulty) * (visited > 0)
            model = replace(
                model, jumps=jumps.tables(arrival), easiness=model.easiness + easier - easier @ share
            )
        return model

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Walks of invented learners."""
        return self._walks(self.model_, self.n_learners_ if n_learners is None else n_learners, rng)

    def _walks(self, model: RunModel, n_learners: int, rng: np.random.Generator) -> Interactions:
        lengths = 1 + rng.choice(len(self.length_law_), n_learners, p=self.length_law_)
        ability = self.practice_.draw_abilities(lengths, rng)
        action, outcome = model.walk(ability, lengths, rng)
        return Interactions(action, outcome, offsets_of(lengths), self.actions_)


def _gap_quantiles(log: Interactions, states: RunStates) -> Floats:
    """Quantiles of the logarithm of one plus the seconds to the next row, within a run and between runs."""
    gap = np.log1p(np.diff(seconds_of(log), append=0.0).clip(min=0.0))
    level = np.linspace(0.0, 1.0, N_QUANTILES)
    quantiles = np.zeros((2, N_QUANTILES))
    for kind, stays in enumerate((1, 0)):
        if (states.stays == stays).any():
            quantiles[kind] = np.quantile(gap[states.stays == stays], level)
    return quantiles


def _staying(log: Interactions, states: RunStates) -> tuple[Floats, Floats]:
    """Log-odds of staying: of each action, and what each cell adds at it.

    First a sum of both, which is a Rasch model with cells for items; then what each action departs by from it, as far
    as its counts in a cell tell.
    """
    asked = states.stays >= 0
    shape = (log.n_actions, N_CELLS)
    pair = pair_codes(log.action[asked], states.cell[asked], N_CELLS)
    n = np.bincount(pair, minlength=log.n_actions * N_CELLS).astype(np.float64)
    stays = totals(pair, states.stays[asked], log.n_actions * N_CELLS)
    present = np.flatnonzero(n)
    offsets = np.searchsorted(present, np.arange(log.n_actions + 1) * N_CELLS)
    cells = (present % N_CELLS).astype(np.int32)
    fitted = fit_rasch(PairCounts(offsets, cells, n[present], stays[present], N_CELLS))
    stay = fitted.ability + fitted.intercept
    added = (stay[:, None] - fitted.difficulty).ravel()
    own = np.zeros(len(n))
    for _ in range(30):
        chance = expit(added + own)
        own += (stays - n * chance - INTERACTION_PENALTY * own) / (
            n * chance * (1 - chance) + INTERACTION_PENALTY
        )
    return stay, own.reshape(shape) - fitted.difficulty
