"""How few points single a learner out.

The attacker's story: over a neighbour's shoulder the attacker saw Ada do k things. If nobody
else in the log did all of them, her whole record is found, whatever her name was replaced by
(de Montjoye et al. 2013, unique in the crowd). They may also know how it went, on which day or at which hour she did
it, or how long it took her.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.core.attacks.intervals import wilson_interval
from understudy.core.engine import progress
from understudy.core.engine.engine import ThisMachine
from understudy.logs.interactions import IntArray, Interactions, pair_codes
from understudy.logs.large.parts import ranges_of
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
    targets = np.flatnonzero(log.lengths)
    if len(targets) > MOST_TARGETS:
        targets = np.sort(rng.choice(targets, MOST_TARGETS, replace=False))
    some = log.select(targets)
    rows = drawn_rows(some, rng)
    results = []
    kinds = [kind for kind in _KINDS if _has(log, kind)]
    for kind in progress.each(kinds, "Looking for points that single a learner out"):
        known = _KINDS[kind]
        alone = holders(log, known, known(some)[rows]) == 1
        for k in range(1, MOST_POINTS + 1):
            found = int(alone[:, k - 1].sum())
            low, high = wilson_interval(found, len(targets))
            results.append(Uniqueness(kind, k, found / max(len(targets), 1), low, high, len(targets)))
    return results


def _action(log: Interactions) -> IntArray:
    return log.action


def _action_and_outcome(log: Interactions) -> IntArray:
    return log.code


def _action_and_day(log: Interactions) -> IntArray:
    return pair_codes(Schedule(log).day, log.action, log.n_actions)


def _action_and_hour(log: Interactions) -> IntArray:
    return pair_codes(Schedule(log).hour, log.action, log.n_actions)


def _action_and_gap(log: Interactions) -> IntArray:
    schedule = Schedule(log)
    gap = np.full(log.n_rows, -1, dtype=np.int64)
    # Whole seconds: what a stopwatch tells, whatever the platform writes.
    gap[:-1] = np.where(schedule.first[1:], -1, schedule.gap[1:].astype(np.int64))
    return pair_codes(gap, log.action, log.n_actions)


# What may be known about each row, as one number.
_KINDS: dict[str, Callable[[Interactions], IntArray]] = {
    "action": _action,
    "action and outcome": _action_and_outcome,
    "action and day": _action_and_day,
    "action and hour": _action_and_hour,
    "action and gap": _action_and_gap,
}


def _has(log: Interactions, kind: str) -> bool:
    """Whether a log has what is to be known; of times that are all within one day or hour there is nothing to know."""
    if kind in ("action", "action and outcome"):
        return kind == "action" or log.outcome is not None
    if log.time is None or not log.n_rows:
        return False
    if kind == "action and gap":
        return bool((log.lengths > 1).any())
    unit = "D" if kind == "action and day" else "h"
    return bool(log.time.min().astype(f"datetime64[{unit}]") != log.time.max().astype(f"datetime64[{unit}]"))


def drawn_rows(log: Interactions, rng: np.random.Generator) -> IntArray:
    """Up to eight random rows of each learner; a shorter record repeats its last row."""
    order = rng.permutation(log.n_rows)
    order = order[np.argsort(log.learner[order], kind="stable")]
    place = np.minimum(np.arange(MOST_POINTS)[None, :], log.lengths[:, None] - 1)
    rows: IntArray = order[log.offsets[:-1, None] + place]
    return rows


def holders(log: Interactions, known: Callable[[Interactions], IntArray], points: IntArray) -> IntArray:
    """How many learners of a log have the first k points of each target, for each k."""
    needed, index = np.unique(points, return_inverse=True)
    index = index.reshape(points.shape)

    def in_part(learners: tuple[int, int]) -> IntArray:
        part = log.select(np.arange(*learners))
        code = known(part)
        place = np.minimum(np.searchsorted(needed, code), len(needed) - 1)
        there = needed[place] == code
        return _n_holders(place[there], part.learner[there], part.n_learners, len(needed), index)

    parts = ThisMachine().each(in_part, ranges_of(log.offsets) if len(needed) else [])
    return sum(parts, start=np.zeros(points.shape, dtype=np.int64))


def _n_holders(
    point: IntArray, learner: IntArray, n_learners: int, n_points: int, index: IntArray
) -> IntArray:
    """The same for learners who have the points of these pairs; some learners at a time, a bit for each."""
    counts = np.zeros(index.shape, dtype=np.int64)
    block = max(1, BLOCK_BYTES // n_points)
    for first in range(0, n_learners, block):
        begin, end = np.searchsorted(learner, (first, first + block))
        present = np.zeros((n_points, min(block, n_learners - first)), dtype=bool)
        present[point[begin:end], learner[begin:end] - first] = True
        bits = np.packbits(present, axis=1)
        matching = bits[index[:, 0]]
        for k in range(index.shape[1]):
            if k:
                matching &= bits[index[:, k]]
            counts[:, k] += np.bitwise_count(matching).sum(axis=1, dtype=np.int64)
    return counts
