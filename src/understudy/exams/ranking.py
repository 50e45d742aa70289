"""The order of items and their difficulty in words, as far as the precision supports them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Two difficulties are distinguished when their difference exceeds this many of its standard errors.
MIN_STANDARD_ERRORS = 1.96


@dataclass(frozen=True)
class Order:
    """The places that each item may have, from the easiest on, and groups whose order is not known."""

    rank_from: NDArray[np.int64]
    rank_to: NDArray[np.int64]
    steps: tuple[tuple[int, ...], ...]


def rank_items(difficulty: Floats, standard_error: Floats) -> Order:
    """The order of the items as far as it is known; infinite difficulties are at the ends.

    An item's place is at least one more than the number of items that are distinguished as easier.
    Steps are filled from the easiest item on, and a new one begins with an item that is distinguished
    from any in the last: neighbours on both sides of that border may still be ties.
    """
    distinct = distinguished(difficulty, standard_error)
    easier = difficulty[None, :] < difficulty[:, None]
    rank_from = 1 + (distinct & easier).sum(axis=1)
    rank_to = len(difficulty) - (distinct & ~easier).sum(axis=1)
    steps: list[list[int]] = []
    for item in np.argsort(difficulty, kind="stable"):
        if steps and not distinct[item, steps[-1]].any():
            steps[-1].append(int(item))
        else:
            steps.append([int(item)])
    return Order(rank_from, rank_to, tuple(tuple(step) for step in steps))


def distinguished(difficulty: Floats, standard_error: Floats) -> NDArray[np.bool_]:
    """Which pairs of items differ by more than chance and noise explain."""
    with np.errstate(invalid="ignore"):
        difference = np.abs(difficulty[:, None] - difficulty[None, :])
        doubt = MIN_STANDARD_ERRORS * np.hypot(standard_error[:, None], standard_error[None, :])
        # The difference of two infinite difficulties of one sign is not a number, so they are ties.
        return np.asarray(difference > doubt)


def in_words(chance: float) -> str:
    """What an item's chance means for a class, in tenths, as on the student's page: "solved by 7 of 10 students"."""
    tenths = math.floor(10.0 * chance + 0.5)
    if tenths == 10:
        return "solved by nearly all students"
    return f"solved by {tenths} of 10 students" if tenths else "solved by hardly any student"


def points_in_words(share: float, maximum: float) -> str:
    """What an item's expected share of the points means: "2.1 of 3 points on average"."""
    digits = 1 if maximum < 20 else 0
    return f"{share * maximum:.{digits}f} of {maximum:g} points on average"
