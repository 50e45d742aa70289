"""How few points single a learner out.

The attacker's story: over a neighbour's shoulder the attacker saw Ada do k things. If nobody
else in the log did all of them, her whole record is found, whatever her name was replaced by
(de Montjoye et al. 2013, unique in the crowd). They may also know how it went, on which day or at which hour she did
it, or how long it took her.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.intervals import wilson_interval
from understudy.logs.interactions import IntArray, Interactions, counted_pairs, pair_codes
from understudy.logs.schedule import Schedule

MOST_POINTS = 8
MOST_TARGETS = 2000
BLOCK_BYTES = 64_000_000


@dataclass(frozen=True)
class Uniqueness:
    """Share of learners singled out by `k` random points, with its 95 % (Wilson) interval."""

    points: str
    k: int
    share: float
    low: float
    high: float
    n_targets: int

    def to_json(self) -> dict[str, Any]:
        """The share for a machine."""
        return dict(vars(self))


def uniqueness(log: Interactions, rng: np.random.Generator) -> list[Uniqueness]:
    """Shares for k = 1 to 8 points: actions, alone and with outcome, day, hour or gap to the next row, if it has them.

    Times are looked at wherever a log has them: whoever knows a learner's times does not care what is declared.
    Points are drawn from the learner's rows without replacement; a learner with fewer rows
    gives all of them. A large log is judged on a random sample of its learners.
    """
    targets = np.arange(log.n_learners)
    if log.n_learners > MOST_TARGETS:
        targets = np.sort(rng.choice(targets, MOST_TARGETS, replace=False))
    rows = drawn_rows(log, targets, rng)
    results = []
    for points, code in _kinds(log).items():
        alone = singled_out(log, code, targets, rows)
        for k in range(1, MOST_POINTS + 1):
            found = int(alone[:, k - 1].sum())
            low, high = wilson_interval(found, len(targets))
            results.append(Uniqueness(points, k, found / max(len(targets), 1), low, high, len(targets)))
    return results


def _kinds(log: Interactions) -> dict[str, IntArray]:
    """What may be known about each row, as one number."""
    kinds = {"action": log.action, **({} if log.outcome is None else {"action and outcome": log.code})}
    if log.time is not None:
        schedule = Schedule(log)
        gap = np.full(log.n_rows, -1, dtype=np.int64)
        # Whole seconds: what a stopwatch tells, whatever the platform writes.
        gap[:-1] = np.where(schedule.first[1:], -1, schedule.gap[1:].astype(np.int64))
        for points, known in (("day", schedule.day), ("hour", schedule.hour), ("gap", gap)):
            values, place = np.unique(known, return_inverse=True)
            if len(values) < 2:
                # All on one day, or within one hour of a start: nothing to be known.
                continue
            kinds[f"action and {points}"] = pair_codes(place, log.action, log.n_actions)
    return kinds


def drawn_rows(log: Interactions, targets: IntArray, rng: np.random.Generator) -> IntArray:
    """Up to eight random rows of each target; a shorter record repeats its last row."""
    some = log.select(targets)
    order = rng.permutation(some.n_rows)
    order = order[np.argsort(some.learner[order], kind="stable")]
    place = np.minimum(np.arange(MOST_POINTS)[None, :], some.lengths[:, None] - 1)
    local = order[some.offsets[:-1, None] + place]
    return local - some.offsets[:-1, None] + log.offsets[targets][:, None]


def singled_out(log: Interactions, code: IntArray, targets: IntArray, rows: IntArray) -> NDArray[np.bool_]:
    """Whether each target is the only learner with the first k of its points, for each k."""
    needed, index = np.unique(code[rows], return_inverse=True)
    index = index.reshape(rows.shape)
    # Which learners have each needed point: pairs in the order of the points.
    column = np.minimum(np.searchsorted(needed, code), max(len(needed) - 1, 0))
    there = needed[column] == code if len(needed) else np.zeros(log.n_rows, dtype=bool)
    point, learner, _ = counted_pairs(column[there], log.learner[there], log.n_learners)
    begin = np.searchsorted(point, np.arange(len(needed) + 1))
    alone = np.empty(rows.shape, dtype=bool)
    # A block of targets needs a row of flags for each of its points; times make nearly every point another one.
    block = max(1, BLOCK_BYTES // max(rows.shape[1] * log.n_learners, 1))
    for first in range(0, len(targets), block):
        part = slice(first, first + block)
        own, place = np.unique(index[part], return_inverse=True)
        place = place.reshape(index[part].shape)
        counts = begin[own + 1] - begin[own]
        present = np.zeros((len(own), log.n_learners), dtype=bool)
        entry = np.repeat(begin[own] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        present[np.repeat(np.arange(len(own)), counts), learner[entry]] = True
        bits = np.packbits(present, axis=1)
        matching = bits[place[:, 0]]
        for k in range(rows.shape[1]):
            if k:
                matching &= bits[place[:, k]]
            alone[part, k] = np.bitwise_count(matching).sum(axis=1) == 1
    return alone
