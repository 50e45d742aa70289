"""Typing profiles: average latencies per digraph, as the thesis builds them (sections 4.1, 4.2 and 4.4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DataError
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import Totals

N_FEATURES = 25
LEAST_OCCURRENCES = 5  # of a feature, for its average to count
LEAST_CHARACTERS = 2000  # in the first week, for a learner to take part

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Profiles:
    """One row per owner: average milliseconds per feature, and last the average speed.

    `missing` marks averages that rest on too few occurrences and were replaced by the speed.
    """

    features: tuple[str, ...]
    values: Floats
    missing: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.values.shape != self.missing.shape or self.values.shape[1] != len(self.features) + 1:
            raise DataError("profiles need a value per feature and the speed.")

    @property
    def n_owners(self) -> int:
        """How many profiles there are."""
        return len(self.values)


def most_common(parts: list[Totals], n_features: int = N_FEATURES) -> NDArray[np.int64]:
    """The features that learners typed most: by the median count over learners, least over the parts.

    The thesis sorts by the median "in both the training and the test set"; a feature must be common in
    each of them, so the smaller of the medians decides. Ties go to the one listed first.
    """
    median = np.min([np.median(part.count, axis=0) for part in parts], axis=0)
    order = np.argsort(-median, kind="stable")[:n_features]
    return np.asarray(order[median[order] > 0], dtype=np.int64)


def build_profiles(totals: Totals, least: int = LEAST_OCCURRENCES) -> Profiles:
    """Average latencies; where an owner typed a feature fewer than `least` times, their average speed."""
    missing = totals.count < least
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(missing, totals.speed[:, None], totals.total / totals.count)
    speed = totals.speed[:, None]
    return Profiles(
        totals.features, np.hstack([values, speed]), np.hstack([missing, np.zeros_like(speed, dtype=bool)])
    )


@dataclass(frozen=True)
class Split:
    """Two stretches of every learner's typing: one the attacker knows, one to be named.

    `known` and `unknown` hold, row for row, the learner or -1.
    """

    known: NDArray[np.int32]
    unknown: NDArray[np.int32]


def by_weeks(keystrokes: Keystrokes, n_weeks: int | None = None) -> Split:
    """The last week is to be named from the weeks before it (the last `n_weeks` of these, if given)."""
    weeks = np.unique(keystrokes.week[keystrokes.week >= 0])
    if len(weeks) < 2:
        raise DataError(
            f"identifying the last week from earlier ones needs two weeks; found {len(weeks)}.",
            hint="split by sessions instead: --split sessions.",
        )
    last = weeks[-1]
    first = weeks[0] if n_weeks is None else weeks[max(0, len(weeks) - 1 - n_weeks)]
    learner = keystrokes.learner
    known = (keystrokes.week >= first) & (keystrokes.week < last)
    return Split(np.where(known, learner, -1), np.where(keystrokes.week == last, learner, -1))


def by_sessions(keystrokes: Keystrokes, share: float = 0.5) -> Split:
    """Each learner's later sessions are to be named from their earlier ones."""
    learner = keystrokes.learner
    n_sessions = np.zeros(keystrokes.n_learners, dtype=np.int64)
    np.maximum.at(n_sessions, learner, keystrokes.session + 1)
    if not (n_sessions >= 2).any():
        raise DataError(
            "identifying later sessions from earlier ones needs two sessions of a learner; found one each.",
            hint="give --session, or a file that holds more than one sitting.",
        )
    early = keystrokes.session < np.ceil(n_sessions * share)[learner]
    return Split(np.where(early, learner, -1), np.where(early, -1, learner))


def enough_typed(
    keystrokes: Keystrokes, least: int = LEAST_CHARACTERS, first_week_only: bool = True
) -> NDArray[np.int64]:
    """Positions of the learners who typed enough: in the first week when there are weeks, else in all."""
    counted: Any = np.ones(keystrokes.n_rows, dtype=bool)
    if first_week_only and (keystrokes.week >= 0).any():
        counted = keystrokes.week == keystrokes.week[keystrokes.week >= 0].min()
    characters = np.bincount(keystrokes.learner[counted], minlength=keystrokes.n_learners)
    return np.flatnonzero(characters >= least)
