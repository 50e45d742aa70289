"""`joint`: which learners together explain the synthetic log best?

The attacker's story: a chain was fitted to some of the learners, and the synthetic log shows how often it made
each step. If Ada was in, others with the same steps need not have been, so the attacker does not ask about
one learner at a time: they weigh whole groups of learners, and ask in which share of the likely groups Ada is.

With memberships m in {0, 1}^N, learner i's number of steps v_i(s, t) from s to t, and synthetic counts c(s, t), the
steps out of s follow a multinomial law whose chances are in proportion to the training counts:

    log P(c | m) = sum over (s, t) of c(s, t) log T(s, t) - sum over s of c(s) log T(s),   T = sum of m_i v_i

up to a constant: exact for a Markov chain's output, an approximation for other generators. Gibbs sampling draws each
membership in turn given all others; a sweep is linear in the number of different steps of the learners. A learner's
score is the posterior log-odds, from the mean of their conditional chances over the sweeps. How much more that finds
than scores of single learners is in docs/explanation/attacks.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.attacks.knowledge import Knowledge, StepTable
from understudy.logs.interactions import IntArray, Interactions, totals

Floats = NDArray[np.float64]

N_BURN_IN = 100
N_KEPT = 300
# All sweeps of a large log together look at so many entries (a learner's counts in a cell), but no fewer are made than
# this share of the usual number. On simulated classrooms of 5,000 and 30,000 learners (`markov`, `drop:0.5`, `runs-dp`)
# AUCs of a quarter of the sweeps differ from those of all by 0.0011 at most, in both directions, where their standard
# errors are 0.003 to 0.008; docs/explanation/scale.md has the figures.
MOST_ENTRIES, LEAST_SHARE = 50_000_000, 0.25
# A step that no member made still has this many counts: walks that are cut, generators that are not quite a chain.
STRAY_STEPS = 0.02


@dataclass(frozen=True)
class CellCounts:
    """What each learner adds to the cells of a table of training counts, and what the cells are worth.

    Entry k says that `learner[k]` adds `count[k]` to `cell[k]`. The log-likelihood of a membership vector is the
    sum over cells of `weight` times the logarithm of (`floor` plus the members' counts).
    """

    learner: IntArray
    cell: IntArray
    count: Floats
    weight: Floats
    floor: Floats


def joint_scores(knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """Posterior log-odds of each learner's membership under the likelihood of a Markov chain."""
    cells = chain_cells(knowledge.steps, synthetic)
    return posterior_log_odds(cells, knowledge.population.n_learners, knowledge.training_share)


def chain_cells(table: StepTable, synthetic: Interactions) -> CellCounts:
    """The steps of learners and the states that they left."""
    occurs = table.counts_in(synthetic)
    leaves = totals(table.source, occurs, table.width)
    left, index = np.unique(table.learner * table.width + table.source[table.step], return_inverse=True)
    n_steps = len(table.keys)
    return CellCounts(
        learner=np.concatenate([table.learner, left // table.width]),
        cell=np.concatenate([table.step, n_steps + left % table.width]),
        count=np.concatenate([table.count, np.bincount(index, weights=table.count)]),
        weight=np.concatenate([occurs, -leaves]),
        floor=np.repeat([STRAY_STEPS, STRAY_STEPS * table.width], [n_steps, table.width]),
    )


def posterior_log_odds(cells: CellCounts, n_learners: int, share: float) -> Floats:
    """Log-odds of each membership given the cells, by Gibbs sampling; `share` is the prior of each.

    Learners take their turns in an order that follows from their counts and not from their place in the file,
    and learners with equal counts share a score: members come first in an audit's files, which must not help.
    """
    share = float(np.clip(share, 1e-6, 1.0 - 1e-6))
    rng = np.random.default_rng(0)
    signature = totals(cells.learner, cells.count * rng.random(len(cells.weight))[cells.cell], n_learners)
    _, kind, size = np.unique(signature, return_inverse=True, return_counts=True)
    turn = np.empty(n_learners, dtype=np.int64)
    turn[np.argsort(kind, kind="stable")] = np.arange(n_learners)
    # Cells that the synthetic log lacks say nothing.
    told = np.flatnonzero(cells.weight[cells.cell])
    told = told[np.argsort(turn[cells.learner[told]], kind="stable")]
    inside, outside = _gibbs(
        rng,
        np.searchsorted(turn[cells.learner[told]], np.arange(n_learners + 1)),
        cells.cell[told],
        cells.count[told],
        cells.weight,
        cells.floor,
        np.log(share / (1.0 - share)),
        *n_sweeps(len(told)),
    )
    odds = np.log(inside) - np.log(outside)
    shared: Floats = (totals(kind, odds[turn], len(size)) / size)[kind]
    return shared


def n_sweeps(n_entries: int) -> tuple[int, int]:
    """How many sweeps are made before any is kept, and how many are kept, of so many entries each."""
    all_entries = (N_BURN_IN + N_KEPT) * max(n_entries, 1)
    share = min(max(MOST_ENTRIES / all_entries, LEAST_SHARE), 1.0)
    return round(share * N_BURN_IN), round(share * N_KEPT)


@njit(cache=True, nogil=True)
def _gibbs(rng, begin, cell, count, weight, floor, prior, n_burn_in, n_kept):  # type: ignore[no-untyped-def]
    """Mean conditional chances to be a member and not to be one."""
    n = len(begin) - 1
    member = np.empty(n, dtype=np.bool_)
    total = floor.copy()
    for i in range(n):
        member[i] = rng.random() * (1.0 + np.exp(-prior)) < 1.0
        if member[i]:
            for k in range(begin[i], begin[i + 1]):
                total[cell[k]] += count[k]
    inside = np.full(n, 1e-300)
    outside = np.full(n, 1e-300)
    for sweep in range(n_burn_in + n_kept):
        for i in range(n):
            odds = prior
            for k in range(begin[i], begin[i + 1]):
                j = cell[k]
                with_all = total[j]
                if member[i]:
                    odds += weight[j] * np.log(with_all / (with_all - count[k]))
                else:
                    odds += weight[j] * np.log((with_all + count[k]) / with_all)
            chance = 1.0 / (1.0 + np.exp(-odds)) if odds > -700.0 else 0.0
            if sweep >= n_burn_in:
                inside[i] += chance
                outside[i] += 1.0 / (1.0 + np.exp(odds)) if odds < 700.0 else 0.0
            joins = rng.random() < chance
            if joins != member[i]:
                sign = 1.0 if joins else -1.0
                for k in range(begin[i], begin[i + 1]):
                    total[cell[k]] += sign * count[k]
                member[i] = joins
    return inside / n_kept, outside / n_kept
