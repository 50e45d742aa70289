"""Finds the walks that show what noisy sums say.

Parameters of a `RunModel` are moved until the walks that it draws have the noisy sums, as far as noise lets these be
known. Only noisy sums enter, never a learner: this is post-processing, and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from understudy.logs.generators.budget import Noisy
from understudy.logs.generators.private_sums import Total, WalkStatistics
from understudy.logs.interactions import IntArray, Interactions, offsets_of, totals
from understudy.logs.models.cells import (
    N_PRACTICE,
    new_jumps,
    practice_places,
    practice_table,
    run_places,
)
from understudy.logs.models.lengths import spread_lengths
from understudy.logs.models.markov import AliasTables
from understudy.logs.models.runs import N_CELLS, JumpSources, RunModel

Floats = NDArray[np.float64]

# Norm of what a learner adds to the cells of runs and of practice.
CELL_NORM = 4.0
N_ROUNDS = 16
# In the last rounds as many rows are walked as the log has, between these limits.
LEAST_ROWS, MOST_ROWS = 2_000, 300_000
# In the first rounds of a large log they are fewer, but so many at least, in all and per action: these rounds only have
# to come near, and what chance did to them is forgotten. On simulated classrooms of 20,000 learners and 40 actions no
# measure of utility gets worse by more than chance explains. With 1,000 actions and 20,000 rows in the first round one
# of 13 did (repeats, from 0.020 to 0.022): there rows are those of the last round from the first one on.
FIRST_ROWS, FIRST_ROWS_OF_ACTION = 20_000, 300
# What log-odds of cells differ by before anything is seen: all together, smoothly, and each by itself; and how many
# classes away two cells are alike.
LEVEL, SMOOTH, OWN, REACH = 0.5, 0.7, 0.1, 1.5
# An action with fewer rows than this shows next to nothing.
FEW = 10.0
# Multiples of it, without their whole parts, are as even as numbers can be.
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class RunTargets:
    """What walks of `n_learners` learners have to show. Sums of cells are noisy; the rest was made of noisy sums."""

    n_learners: int
    length_law: Floats
    popularity: Floats
    start: Floats
    jump: Floats
    """Where jumps lead, a row for each source."""
    jump_source: IntArray
    """The source of each action's jumps."""
    stay: Floats
    staying: Noisy
    new_share: float
    easiness: Floats
    ability_spread: float
    success_rate: float
    practice: Noisy | None
    """None where there are no outcomes, and nothing of them is to be shown."""


def calibrated(targets: RunTargets) -> RunModel:
    """The model whose walks agree with the targets."""
    rng = np.random.default_rng(0)
    n_actions = len(targets.popularity)
    mean_rows = float(targets.length_law @ np.arange(1, len(targets.length_law) + 1))
    n_rows = float(np.clip(targets.n_learners * mean_rows, LEAST_ROWS, MOST_ROWS))
    arrivals, stay, stay_by_cell = np.ones(n_actions), logit(targets.stay), np.zeros(N_CELLS)
    easier, gain, new = np.zeros(n_actions), np.zeros(N_PRACTICE), 0.0
    names = tuple(str(code) for code in range(n_actions))
    sources = JumpSources.by_action(np.append(targets.jump_source, len(targets.jump)))
    for turn in range(N_ROUNDS):
        model = RunModel(
            jumps=AliasTables.from_matrix(targets.jump, arrivals, targets.start),
            stay=stay,
            stay_by_cell=stay_by_cell,
            easiness=targets.easiness + easier,
            gain=practice_table(gain),
            untried=new,
            sources=sources,
        )
        if turn == N_ROUNDS - 1:
            # What its walks would show comes too late.
            break
        n_learners = int(np.ceil(rows_of_round(turn, n_rows, n_actions) / mean_rows))
        scale = targets.n_learners / n_learners
        lengths = spread_lengths(targets.length_law, n_learners, rng)
        ability = spread_abilities(lengths, targets.ability_spread, rng)
        log = Interactions(*model.walk(ability, lengths, rng), offsets_of(lengths), names)
        walks = WalkStatistics(log)
        runs, cell = walks.run_states, walks.practice_cells
        # Steps get shorter, so that what chance did to one round is forgotten.
        pace = 1.0 / (1.0 + turn / 3.0)

        visits = np.bincount(log.action, minlength=n_actions)
        shown = visits / log.n_rows
        arrivals = arrivals * np.clip((targets.popularity + 1e-6) / (shown + 1e-6), 0.2, 5.0) ** (0.7 * pace)

        asked = runs.stays >= 0
        action = log.action[asked]
        stay = stay + pace * _departure(targets.stay, action, runs.stays[asked])
        bend = totals(runs.cell[asked], (targets.stay * (1.0 - targets.stay))[action], N_CELLS)
        total = walks.staying(targets.stay, CELL_NORM)
        believed = _believed(stay_by_cell, targets.staying, total, bend, scale, run_places())
        stay_by_cell = stay_by_cell + pace * (believed - stay_by_cell)

        if targets.practice is not None:
            state = walks.unexplained(targets.easiness)
            chance = expit(targets.easiness[log.action] + state.ability[log.learner])
            bend = totals(cell, chance * (1.0 - chance), N_PRACTICE)
            total = walks.practice(targets.easiness, CELL_NORM)
            believed = _believed(gain, targets.practice, total, bend, scale, practice_places())
            gain = gain + pace * (believed - gain)
            # Who fits difficulties to the walks has to find those that were fitted to the learners, practice or not.
            excess, bend = (
                totals(state.action, each, n_actions) for each in (state.residual, state.curvature)
            )
            level = float(logit(targets.success_rate) - logit(log.success.mean()))
            easier = easier + level - pace * np.clip(excess / (bend + FEW), -1.0, 1.0)

        found = new_jumps(log)
        new += pace * float(logit(targets.new_share) - logit((found.sum() + 1.0) / (len(found) + 2.0)))
        new = float(np.clip(new, -3.0, 3.0))
    return model


def rows_of_round(turn: int, most: float, n_actions: int) -> float:
    """How many rows are walked in a round: ever more of at most so many."""
    first = min(most, max(FIRST_ROWS, FIRST_ROWS_OF_ACTION * n_actions))
    return max(most * (turn + 1) / N_ROUNDS, first)


def spread_abilities(lengths: IntArray, spread: float, rng: np.random.Generator) -> Floats:
    """Normal abilities, as even among learners of like length as so many can be.

    Drawn one by one, the few learners with very long sequences would happen to be able or not, and
    move the success rate of the whole log.
    """
    place = np.empty(len(lengths))
    place[np.argsort(lengths, kind="stable")] = np.arange(len(lengths))
    even = (rng.random() + place * GOLDEN) % 1.0
    abilities: Floats = spread * ndtri(np.clip(even, 1e-9, 1.0 - 1e-9))
    return abilities


def _believed(
    present: Floats, noisy: Noisy, shown: Total, bend: Floats, scale: float, place: Floats
) -> Floats:
    """Log-odds of cells for walks to show the noisy sums, as far as noise lets that be known.

    A sum moves with its cell's log-odds by `bend`. Before anything is seen, log-odds are a Gaussian process:
    neighbouring cells are alike.
    """
    bend = np.maximum(bend * scale, 1e-6)
    wanted = present + np.clip((noisy.values - shown.values * shown.step * scale) / bend, -2.0, 2.0)
    apart = ((place[:, None] - place) ** 2).sum(axis=-1)
    alike = LEVEL**2 + SMOOTH**2 * np.exp(-0.5 * apart / REACH**2) + OWN**2 * np.eye(len(place))
    error = np.diag((noisy.sigma / bend) ** 2)
    believed: Floats = alike @ np.linalg.solve(alike + error, wanted)
    return believed


def _departure(wanted: Floats, code: IntArray, yes: NDArray[np.int8]) -> Floats:
    """Log-odds that are wanted less those that are shown; next to nothing where little is shown."""
    n = np.bincount(code, minlength=len(wanted))
    shown = (totals(code, yes, len(wanted)) + FEW * wanted) / (n + FEW)
    departure: Floats = logit(wanted) - logit(np.clip(shown, 1e-3, 1.0 - 1e-3))
    return departure
