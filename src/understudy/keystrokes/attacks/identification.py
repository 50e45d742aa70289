"""How often an attack on typing names the right person: rates with fair ties, intervals and chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.core.attacks.intervals import exact_interval
from understudy.core.attacks.matching import regrets
from understudy.errors import UsageError

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

# Distances that differ by less are equal: what is left of a difference after rounding of floats.
TIE = 1e-9


@dataclass(frozen=True)
class Identification:
    """How often an attack names the right person within k guesses; `chance` is k over the people known.

    `low` and `high` bound the rate over people with 95 % confidence (Clopper and Pearson's bounds,
    read at the fractional number of hits that fair ties leave). For hits that are 0 or 1 their coverage
    is a theorem. A hit that is a probability varies less than the coin it represents, and the bounds only become wider
    than needed: no proof, but `tests/keystrokes/attacks/test_identification_intervals.py` computes the coverage exactly
    for thousands of distributions of such hits and finds none below 95 %.

    The people are taken as drawn independently. That they are compared with each other is not accounted for, except
    where all are matched `together`: two who are taken for each other are two errors at once. On simulated people the
    variance of a rate r is then up to 1 + 1.7 r times that of independent hits (2.5 times where nearly all are
    named), and n / (1 + 2 r) people count; the same test simulates the coverage.
    """

    attack: str
    k: int
    rate: float
    low: float
    high: float
    chance: float
    n_learners: int
    together: bool = False

    def interval(self, n_compared: int = 1) -> tuple[float, float]:
        """The bounds of the rate; the lower one for so many attacks at once (Bonferroni)."""
        n_counted = self.n_learners / (1.0 + 2.0 * self.rate) if self.together else self.n_learners
        return exact_interval(self.rate, n_counted, n_compared=n_compared)

    @property
    def at_chance(self) -> bool:
        """Whether the data exclude that the attack does more than twice as well as guessing."""
        return self.high <= 2 * self.chance

    def to_json(self) -> dict[str, Any]:
        """The estimate for a machine."""
        return {**vars(self), "at_chance": self.at_chance}


def identification(
    attack: str, distances: Floats, k: int, own: Codes | None = None, *, together: bool = False
) -> Identification:
    """Judge an attack by its distances: row i is an unnamed learner, column j a known one.

    `own[i]` is the column of the right person; without it i is i. `together` says that all were matched at once.
    """
    hits = hit_chances(distances, k, own)
    n = len(hits)
    if n == 0:
        raise UsageError("asked how many are identified, with no learner to identify.")
    rate = float(hits.mean())
    found = Identification(attack, k, rate, rate, rate, min(1.0, k / distances.shape[1]), n, together)
    low, high = found.interval()
    return replace(found, low=low, high=high)


def matched(distances: Floats) -> Floats:
    """An attacker who names everybody at once, each person once: distances become regrets of the best matching.

    It is for distances that add up over people, such as log-likelihoods.
    """
    return regrets(_finite(distances))


def hit_chances(distances: Floats, k: int, own: Codes | None = None) -> Floats:
    """The chance of each unnamed learner to be named within k guesses.

    People at the same distance share their places: with `closer` nearer than the right one and
    `equal` as near as it (itself included), k guesses in random order hit it with chance
    (k - closer) / equal, within 0 and 1 (findings, section 3). Where an attack has nothing to go by (a
    distance that is not a number), it guesses last, in random order.
    """
    if own is None:
        own = np.arange(len(distances))
    distances = _finite(distances)
    right = np.take_along_axis(distances, np.asarray(own)[:, None], axis=1)
    closer = np.sum(distances < right - TIE, axis=1)
    equal = np.sum(np.abs(distances - right) <= TIE, axis=1)
    return np.asarray(np.clip((k - closer) / equal, 0.0, 1.0))


def _finite(distances: Floats) -> Floats:
    """Distances with the largest of all where an attack has nothing to go by."""
    usable = np.isfinite(distances)
    last = float(np.max(distances, where=usable, initial=0.0))
    return np.where(usable, distances, 2 * abs(last) + 1.0)


def strongest(estimates: Sequence[Identification]) -> Identification:
    """The attack that names most, with an interval for the largest true rate of all these attacks.

    The attack is picked after the fact, and the best of many looks better than it is. So the lower bound is
    the largest of lower bounds that each fail with 2.5 % over the number of attacks (Bonferroni): it
    exceeds the largest true rate only if one of them exceeds its own. The upper bound needs no such care:
    the largest upper bound is at least that of the attack that is truly strongest, which fails with
    2.5 %. The rate itself is the observed maximum, so it leans upwards; and a stronger
    attack that is not on the list is not covered by any of this.
    """
    if not estimates:
        raise UsageError("asked for the strongest of no attacks.")
    if len({(one.k, one.chance, one.n_learners) for one in estimates}) > 1:
        raise UsageError(
            "asked for the strongest of attacks with different people or numbers of guesses.",
            hint="compare attacks on the same learners with the same k.",
        )
    bounds = [one.interval(len(estimates)) for one in estimates]
    best = max(estimates, key=lambda one: one.rate)
    return replace(best, low=max(low for low, _ in bounds), high=max(high for _, high in bounds))


class Groups(NamedTuple):
    """People whose profiles are equal: size of the smallest group, and the share who are alone in theirs."""

    smallest: int
    share_unique: float


def smallest_group(values: Floats) -> Groups:
    """The size of the smallest group of equal profiles, and the share of profiles that no other learner has.

    A group of m hides a person among m for those who look at these profiles only: what is known
    as k-anonymity, no bound on what an attacker with other typing of the same people learns.
    """
    if len(values) == 0:
        raise UsageError("asked for groups of equal profiles among none.")
    _, sizes = np.unique(np.round(values, 9), axis=0, return_counts=True)
    return Groups(int(sizes.min()), float(np.sum(sizes == 1) / len(values)))
