"""Microaggregation: groups of at least k similar profiles, and the group's mean in place of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DataError, UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Microaggregation:
    """Groups of at least `k` learners with similar profiles (`mdav`); each gets the group's mean profile.

    It is for profiles only: a group's mean says nothing about the time of one key press. k-anonymity hides
    a learner among k - 1 others of this release. It is not a formal guarantee: groups and means depend on all
    learners, and two releases about the same learners can be compared with each other.
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 2:
            raise UsageError(f"asked for groups of {self.k}.", hint="give 2 or more: microaggregate:5.")

    def __str__(self) -> str:
        return f"microaggregate:{self.k}"

    def averages(self, values: Floats, rng: np.random.Generator | None = None) -> Floats:
        """The mean profile of each learner's group."""
        group = mdav(_scaled(values), self.k)
        sizes = np.bincount(group)
        # Columns one after the other: np.add.at is slow, and a profile has few columns.
        means = np.column_stack([np.bincount(group, column) / sizes for column in values.T])
        return means[group]


def mdav(points: Floats, k: int) -> NDArray[np.int64]:
    """A group number per row, by Maximum Distance to Average Vector; groups have k to 2k - 1 members.

    While 3k points or more are left: the point farthest from their mean and its k - 1 nearest become a
    group, then the point farthest from that one and its k - 1 nearest. Of 2k to 3k - 1 points, the farthest
    from the mean forms a group once more, and the rest is the last one. Ties go to the row listed first.

    Source: Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity through
    microaggregation" (2005), algorithm MDAV-generic.
    """
    n = len(points)
    if n < k:
        raise DataError(
            f"groups of {k} learners were asked for; there are {n}.",
            hint="choose smaller groups, or more learners.",
        )
    if not np.isfinite(points).all():
        raise DataError(
            "a profile has no value for a feature, so its distance to others is unknown.",
            hint="leave out learners who typed too little.",
            settings=("min_characters",),
        )
    group = np.full(n, -1, dtype=np.int64)
    left = np.arange(n)
    n_groups = 0

    def take(centre: int) -> None:
        nonlocal left, n_groups
        near = np.argsort(_squares(points[left], points[centre]), kind="stable")[:k]
        # Among points equal to it the centre itself goes first, or it could stay behind.
        if centre not in left[near]:
            near[-1] = int(np.flatnonzero(left == centre)[0])
        group[left[near]] = n_groups
        n_groups += 1
        left = np.delete(left, near)

    while len(left) >= 2 * k:
        once = len(left) < 3 * k
        first = int(left[np.argmax(_squares(points[left], points[left].mean(axis=0)))])
        take(first)
        if once:
            break
        take(int(left[np.argmax(_squares(points[left], points[first]))]))
    group[left] = n_groups
    return group


def _squares(points: Floats, centre: Floats) -> Floats:
    return np.asarray(((points - centre) ** 2).sum(axis=1))


def _scaled(values: Floats) -> Floats:
    """Every feature onto 0 to 1, so that slow digraphs do not decide alone (equation 1)."""
    # The initial values are for no learners at all, which `mdav` explains.
    low = values.min(axis=0, initial=np.inf)
    width = values.max(axis=0, initial=-np.inf) - low
    return np.asarray((values - low) / np.where(width > 0, width, 1.0))
