"""Who typed this? Naming the author of keystrokes by how they type.

The attacker holds typing of known people (the first weeks of a course, say) and a release of later
typing without names. For each unnamed person they rank the known ones, and win with `k` guesses
when the right one is among the first k. k/n is what guessing gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import beta

Floats = NDArray[np.float64]

# Distances that differ by less are equal: what is left of a difference after rounding of floats.
TIE = 1e-9
LEVEL = 0.95


@dataclass(frozen=True)
class Identification:
    """How often an attack names the right person within k guesses; `chance` is k/n.

    `low` and `high` bound the rate over people with 95 % confidence (Clopper and Pearson's bounds,
    read at the fractional number of hits that fair ties leave).
    """

    attack: str
    k: int
    rate: float
    low: float
    high: float
    chance: float
    n_learners: int

    @property
    def at_chance(self) -> bool:
        """Whether the data exclude that the attack does more than twice as well as guessing."""
        return self.high <= 2 * self.chance

    def to_json(self) -> dict[str, Any]:
        """The estimate for a machine."""
        return {**vars(self), "at_chance": self.at_chance}


def identification(attack: str, distances: Floats, k: int) -> Identification:
    """Judge an attack by its distances: row i is an unnamed learner, column j a known one, i is i.

    People at the same distance share their places: with `closer` nearer than the right one and
    `equal` as near as it (itself included), k guesses in random order hit it with chance
    (k - closer) / equal, within 0 and 1 (findings, section 3).
    """
    n = len(distances)
    own = np.diagonal(distances)[:, None]
    closer = np.sum(distances < own - TIE, axis=1)
    equal = np.sum(np.abs(distances - own) <= TIE, axis=1)
    rate = float(np.clip((k - closer) / equal, 0.0, 1.0).mean())
    low, high = _bounds(rate, n)
    return Identification(attack, k, rate, low, high, min(1.0, k / n), n)


def _bounds(rate: float, n: int) -> tuple[float, float]:
    hits, tail = rate * n, (1 - LEVEL) / 2
    low = 0.0 if hits <= 0 else float(beta.ppf(tail, hits, n - hits + 1))
    high = 1.0 if hits >= n else float(beta.ppf(1 - tail, hits + 1, n - hits))
    return low, high


def normalised(*parts: Floats) -> list[Floats]:
    """Every column onto 0 to 1 by its smallest and largest value in all the parts together (equation 1)."""
    low = np.min([part.min(axis=0) for part in parts], axis=0)
    width = np.max([part.max(axis=0) for part in parts], axis=0) - low
    # A column in which all are equal tells nothing, and stays so.
    return [(part - low) / np.where(width > 0, width, 1.0) for part in parts]


def euclidean(known: Floats, unknown: Floats) -> Floats:
    """The thesis's distance (equations 1 and 2): every feature onto 0 to 1, then Euclid."""
    known, unknown = normalised(known, unknown)
    return np.asarray(cdist(unknown, known))


def manhattan(known: Floats, unknown: Floats) -> Floats:
    """Sum of differences of the normalised features: one odd digraph weighs less than with squares."""
    known, unknown = normalised(known, unknown)
    return np.asarray(cdist(unknown, known, "cityblock"))


def scaled_manhattan(known: Floats, unknown: Floats) -> Floats:
    """Differences in units of each feature's mean absolute deviation among the known people."""
    deviation = np.mean(np.abs(known - known.mean(axis=0)), axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    return np.asarray(cdist(unknown / scale, known / scale, "cityblock"))


PROFILE_ATTACKS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "euclidean": euclidean,
    "manhattan": manhattan,
    "scaled-manhattan": scaled_manhattan,
}
