"""Check for a number that was released before, when the data held other learners.

If a learner withdraws, the same statistic before and after differs by them alone: 15 who passed and then 14 shows
that they passed. The earlier request is measured again on the learners who are in now. If its influences lie on one
line with those of a new number, both are the same statistic, however the code is written.

The check cannot see combinations of several numbers of which none is the same statistic. A reviewer looks at those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from understudy.desk.disclosure.differencing import (
    MAX_MISS_ON_LINE,
    MIN_CORRELATION,
    MIN_SHARE_ON_LINE,
    correlations,
    robust_line,
    robust_spread,
    unit_columns,
)
from understudy.desk.disclosure.influences import EXACT, Flags, Influences
from understudy.desk.domain.results import Check, Floats, Results

# From this on two orders of learners are the same one: a p value and its statistic, an odds ratio and its logarithm.
MIN_RANK_CORRELATION = 0.99


@dataclass(frozen=True)
class EarlierAnswer:
    """An answer that was released about other learners, and the influences of the learners who are in now."""

    request: str
    released: Results
    now: Influences
    n_learners: int | None
    """How many there were then, if that is known."""


def repeated(new: Influences, earlier: Sequence[EarlierAnswer], least: int) -> Check | None:
    """A failed check if some number is the same statistic as one released on other learners."""
    found = [
        (new.shown[j], f"{before.now.names[k]} (released in {before.request})")
        for before in earlier
        for j, k in _pairs(new, before, least)
        if not _counts_all_learners(new, j, before, k)
    ]
    if not found:
        return None
    return Check.about("differencing").fails(
        f"'{found[0][0]}' is the same statistic as '{found[0][1]}', and the data held other learners then (some "
        "withdrew or came): the difference between both gives them away.",
        [name for pair in found for name in pair],
    )


def _pairs(new: Influences, before: EarlierAnswer, least: int) -> list[tuple[int, int]]:
    """Numbers of the new answer with the same statistic of the earlier one."""
    old = before.now
    if not len(new.names) or not len(old.names):
        return []
    both = new.sized, old.sized
    in_order = correlations(*(_ranks(steps) for steps in both))
    clipped = correlations(*(np.clip(steps, *np.quantile(steps, [0.05, 0.95], axis=0)) for steps in both))
    counts = np.array([new.counts_learners(j) for j in range(len(new.names))])[:, None] & np.array(
        [old.counts_learners(k) for k in range(len(old.names))]
    )
    wanted = (np.maximum(in_order, clipped) >= MIN_CORRELATION) | counts | _proportional(*both)
    moved = np.outer(new.moved.any(axis=0), old.moved.any(axis=0))
    pairs = [
        (int(j), int(k))
        for j, k in np.argwhere(wanted & moved)
        if _same(new, int(j), old, int(k), least, float(in_order[j, k]))
    ]
    return pairs + _unmoved(new, before)


def _same(new: Influences, j: int, old: Influences, k: int, least: int, in_order: float) -> bool:
    u, v = new.sized[:, j], old.sized[:, k]
    if bool(_proportional(u[:, None], v[:, None])[0, 0]):
        return True
    in_new, in_old = new.moved[:, j], old.moved[:, k]
    if new.counts_learners(j) and old.counts_learners(k):
        return bool((in_new != in_old).sum() < min(least, int((in_new & in_old).sum())))
    if new.in_steps(j) or old.in_steps(k):
        return False
    union = in_new | in_old
    u, v = u[union], v[union]
    if len(u) < 4:
        return False
    spread = robust_spread(v)
    off = np.abs(v - robust_line(u, v)) > MAX_MISS_ON_LINE * spread
    if spread > 0 and off.sum() < least and float(np.mean(~off)) >= MIN_SHARE_ON_LINE and np.ptp(u) > 0:
        return True
    return in_order >= MIN_RANK_CORRELATION


def _unmoved(new: Influences, before: EarlierAnswer) -> list[tuple[int, int]]:
    """Numbers that no learner who is in now moves, but one who left did: "all passed", and then not all had."""
    still = np.asarray(~new.moved.any(axis=0))
    found = []
    for k, name in enumerate(before.now.names):
        j = new.names.index(name) if name in new.names else None
        if j is None or not still[j] or before.now.moved[:, k].any():
            continue
        now, then = before.now.probes.full[k], before.released.numbers.get(name, np.nan)
        as_now = np.isclose(new.probes.full[j], now, rtol=EXACT, atol=0.0, equal_nan=True)
        # What left was rounded to three digits at least, where no learner moved it then either.
        if as_now and not np.isclose(now, then, rtol=0.005, atol=0.0, equal_nan=True):
            found.append((j, k))
    return found


def _counts_all_learners(new: Influences, j: int, before: EarlierAnswer, k: int) -> bool:
    """Whether it is the number of all learners, then and now: those who left counted in it as all do."""
    if before.n_learners is None or not (new.counts_learners(j) and before.now.counts_learners(k)):
        return False
    if not (new.moved[:, j].all() and before.now.moved[:, k].all() and new.probes.one_by_one):
        return False
    step = float(before.now.steps[0, k])
    then = before.released.numbers.get(before.now.names[k], np.nan)
    expected = float(before.now.probes.full[k]) + step * (before.n_learners - before.now.n_learners)
    return bool(np.isclose(then, expected, rtol=EXACT))


def _ranks(values: Floats) -> Floats:
    return np.asarray(rankdata(values, axis=0), dtype=float)


def _proportional(values: Floats, others: Floats) -> Flags:
    return np.asarray(np.abs(unit_columns(values).T @ unit_columns(others)) >= 1 - EXACT**2)
