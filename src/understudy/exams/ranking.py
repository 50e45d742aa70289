"""Difficulties in words and in order: what can be said at this precision, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Two difficulties are told apart when their difference exceeds this many of its standard errors.
TELLING = 1.96

_PARTS = ((2, 3), (3, 4), (3, 5), (4, 5), (9, 10))


@dataclass(frozen=True)
class Order:
    """Places that each item may have, from the easiest on, and groups whose order cannot be told."""

    rank_from: NDArray[np.int64]
    rank_to: NDArray[np.int64]
    steps: tuple[tuple[int, ...], ...]


def order_of(difficulty: Floats, standard_error: Floats) -> Order:
    """The order as far as it can be told; infinite difficulties are at the ends.

    An item's place is at least one more than the number of items that are told to be easier.
    Steps are filled from the easiest item on, and a new one begins with an item that can be told
    from any in the last: neighbours on both sides of that border may still be ties.
    """
    apart = told_apart(difficulty, standard_error)
    easier = difficulty[None, :] < difficulty[:, None]
    rank_from = 1 + (apart & easier).sum(axis=1)
    rank_to = len(difficulty) - (apart & ~easier).sum(axis=1)
    steps: list[list[int]] = []
    for item in np.argsort(difficulty, kind="stable"):
        if steps and not apart[item, steps[-1]].any():
            steps[-1].append(int(item))
        else:
            steps.append([int(item)])
    return Order(rank_from, rank_to, tuple(tuple(step) for step in steps))


def told_apart(difficulty: Floats, standard_error: Floats) -> NDArray[np.bool_]:
    """Which pairs of items differ by more than chance and noise explain."""
    with np.errstate(invalid="ignore"):
        difference = np.abs(difficulty[:, None] - difficulty[None, :])
        doubt = TELLING * np.hypot(standard_error[:, None], standard_error[None, :])
        # Two infinite difficulties of one sign: not a number, so not told apart.
        return np.asarray(difference > doubt)


def readings(chance: Sequence[float] | Floats) -> list[str]:
    """What each item's chance means for a class: "hard for 4 of 5 students"."""
    return [reading(float(one)) for one in chance]


def reading(chance: float) -> str:
    """The share of students who solve an item, or fail, whichever is more, in small numbers."""
    if chance >= 0.95:
        return "solved by nearly all students"
    if chance <= 0.05:
        return "hard for nearly all students"
    if 0.45 < chance < 0.55:
        return "solved by half of the students"
    verb, share = ("solved by", chance) if chance > 0.5 else ("hard for", 1.0 - chance)
    part, whole = min(_PARTS, key=lambda fraction: abs(fraction[0] / fraction[1] - share))
    return f"{verb} {part} of {whole} students"
