"""Whether an answer repeats a number that was released when the data held other learners.

If a learner withdraws, the same statistic before and after differs by them alone: 15 who passed and then 14 says
that they passed. The earlier request is measured again on the learners who are in now. If its influences lie on one
line with those of a new number, both are the same statistic, however the code is written.

Cannot see: combinations of several numbers of which none is the same statistic. Those are for a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from understudy.desk.disclosure.differencing import ALIKE, MOST, MOST_NAMED, ON_LINE, _line
from understudy.desk.disclosure.influences import EXACT, Flags, Influences
from understudy.desk.domain.results import Check, Floats, Results

# From here on two orders of learners are the same one: a p value and its statistic, an odds ratio and its logarithm.
SAME_ORDER = 0.99


@dataclass(frozen=True)
class Before:
    """An answer that was released on other learners, and the same request on those who are in now."""

    request: str
    released: Results
    now: Influences
    n_learners: int | None
    """How many there were then, if that is known."""


def repeated(new: Influences, earlier: Sequence[Before], least: int) -> Check | None:
    """A failed check if some number is the same statistic as one released on other learners."""
    found = [
        (new.shown[j], f"{before.now.names[k]} (released in {before.request})")
        for before in earlier
        for j, k in _pairs(new, before, least)
        if not _everybody_alike(new, j, before, k)
    ]
    if not found:
        return None
    return Check(
        "differencing",
        "fail",
        f"'{found[0][0]}' is the same statistic as '{found[0][1]}', and the data held other learners then "
        "(somebody withdrew or came): the difference between both tells about them.",
        tuple(dict.fromkeys(name for pair in found for name in pair))[:MOST_NAMED],
    )


def _pairs(new: Influences, before: Before, least: int) -> list[tuple[int, int]]:
    """Numbers of the new answer with the same statistic of the earlier one."""
    old = before.now
    if not len(new.names) or not len(old.names):
        return []
    steps = new.sized, old.sized
    in_order = _correlations(*(_ranks(one) for one in steps))
    clipped = _correlations(*(np.clip(one, *np.quantile(one, [0.05, 0.95], axis=0)) for one in steps))
    counts = np.array([_counts(new, j) for j in range(len(new.names))])[:, None] & np.array(
        [_counts(old, k) for k in range(len(old.names))]
    )
    wanted = (np.maximum(in_order, clipped) >= ALIKE) | counts | _proportional(*steps)
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
    one, other = new.moved[:, j], old.moved[:, k]
    if _counts(new, j) and _counts(old, k):
        return bool((one != other).sum() < min(least, int((one & other).sum())))
    if new.in_steps(j) or old.in_steps(k):
        return False
    union = one | other
    u, v = u[union], v[union]
    if len(u) < 4:
        return False
    spread = float(np.median(np.abs(v - np.median(v)))) or float(np.abs(v - np.median(v)).mean())
    off = np.abs(v - _line(u, v)) > ON_LINE * spread
    if spread > 0 and off.sum() < least and float(np.mean(~off)) >= MOST and np.ptp(u) > 0:
        return True
    return in_order >= SAME_ORDER


def _unmoved(new: Influences, before: Before) -> list[tuple[int, int]]:
    """Numbers that nobody who is in now moves, but somebody who left did: "all passed", and then not all had."""
    still = np.asarray(~new.moved.any(axis=0))
    found = []
    for k, name in enumerate(before.now.names):
        j = new.names.index(name) if name in new.names else None
        if j is None or not still[j] or before.now.moved[:, k].any():
            continue
        now, then = before.now.probes.full[k], before.released.numbers.get(name, np.nan)
        as_now = np.isclose(new.probes.full[j], now, rtol=EXACT, atol=0.0, equal_nan=True)
        # What left was rounded to three digits at least, where nobody moved it then either.
        if as_now and not np.isclose(now, then, rtol=0.005, atol=0.0, equal_nan=True):
            found.append((j, k))
    return found


def _everybody_alike(new: Influences, j: int, before: Before, k: int) -> bool:
    """Whether it is the number of all learners, then and now: who left counted in it as everybody does."""
    if before.n_learners is None or not (_counts(new, j) and _counts(before.now, k)):
        return False
    if not (new.moved[:, j].all() and before.now.moved[:, k].all() and new.probes.one_by_one):
        return False
    step = float(before.now.steps[0, k])
    then = before.released.numbers.get(before.now.names[k], np.nan)
    expected = float(before.now.probes.full[k]) + step * (before.n_learners - before.now.n_learners)
    return bool(np.isclose(then, expected, rtol=EXACT))


def _counts(influences: Influences, j: int) -> bool:
    """Whether each learner who moves it counts as one."""
    parts = influences.contributions(j) if influences.kinds[j] == "total" else None
    return parts is not None and bool((np.abs(parts - parts[0]) < EXACT * np.abs(parts[0])).all())


def _ranks(values: Floats) -> Floats:
    return np.asarray(rankdata(values, axis=0), dtype=float)


def _correlations(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.abs(_units(one - one.mean(axis=0)).T @ _units(other - other.mean(axis=0))))


def _proportional(one: Floats, other: Floats) -> Flags:
    return np.asarray(np.abs(_units(one).T @ _units(other)) >= 1 - EXACT**2)


def _units(values: Floats) -> Floats:
    length = np.linalg.norm(values, axis=0)
    return np.asarray(values / np.where(length > 0, length, 1.0))
