"""Responses: which learner got which item of an exam right.

Learners are positions, not names, as in `Interactions`: a difficulty needs no name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from understudy.core.files.origin import Origin
from understudy.core.names import natural_order
from understudy.errors import DataError

# What stands in the matrix where a learner gave no answer.
NOT_ANSWERED = -1

# More steps of an item's points are finer than any exam tells.
MOST_STEPS = 100

# Which of a learner's repeated attempts at an item counts.
Attempt = Literal["first", "last", "best"]


@dataclass(frozen=True, repr=False)
class ExamOrigin(Origin):
    """Where responses came from.

    `layout` is "wide" (a row per learner), "long" (a row per answer) or "log". `learners` holds the names
    of the rows only if they were asked for. `identifiers` in the role of the action are items whose names
    point at people. `named` says whether a column names the learners; `dropped` are columns that were left
    out because of what is in their cells, not of their header. `pass_share` is the share of an item's points from
    which on an answer is right, or the mark of grades and of points without a maximum, as '<=4'; None where answers
    have no points.
    """

    layout: str = "wide"
    learners: tuple[str, ...] = ()
    named: bool = True
    dropped: tuple[str, ...] = ()
    pass_share: float | str | None = None


@dataclass(frozen=True)
class Points:
    """How an item gives points: in so many steps of `unit` points. Right or wrong is one step."""

    steps: int = 1
    unit: float = 1.0

    def __post_init__(self) -> None:
        if not (1 <= self.steps <= MOST_STEPS and self.unit > 0):
            raise DataError(
                f"an item was given {self.steps} steps of {self.unit:g} points; it has 1 to {MOST_STEPS} steps."
            )

    @property
    def maximum(self) -> float:
        """The points that the item gives at most."""
        return self.steps * self.unit


@dataclass(frozen=True, eq=False, repr=False)
class Responses:
    """A matrix of learners by items: 1 right, 0 wrong, -1 not answered.

    `declared` says that the list of items is public: it is the exam's own, or was declared
    by the user, and does not depend on what the learners did. `origin` is the file that they
    were read from.

    With `points`, answers have points: the matrix holds how many steps of an item's points a learner has. `guesses`
    are the items' chances of a right answer without knowing it, as declared with the list of items.

    `groups` are declared names, and `group_of` says in which of them each learner is: 0 in none, else its number from 1
    on.
    """

    correct: NDArray[np.int8]
    items: tuple[str, ...]
    declared: bool = False
    simulated: bool = False
    origin: ExamOrigin = field(default_factory=ExamOrigin)
    points: tuple[Points, ...] | None = None
    guesses: tuple[float, ...] | None = None
    groups: tuple[str, ...] = ()
    group_of: NDArray[np.int8] | None = None

    def __post_init__(self) -> None:
        if self.correct.ndim != 2 or self.correct.dtype != np.int8:
            raise DataError("responses are a matrix of learners by items, of small integers.")
        if self.correct.shape[1] != len(self.items):
            raise DataError(f"responses to {self.correct.shape[1]} items have {len(self.items)} names.")
        if len(set(self.items)) < len(self.items):
            raise DataError("two items of the responses have the same name.")
        if self.guesses is not None and len(self.guesses) != len(self.items):
            raise DataError(
                f"the choices of {len(self.guesses)} items were given, but there are {len(self.items)}."
            )
        if self.points is not None:
            self._check_points(self.points)
        elif self.correct.size and not (self.correct.min() >= NOT_ANSWERED and self.correct.max() <= 1):
            raise DataError("responses are 0 or 1, or missing.")
        if self.groups and (self.group_of is None or self.group_of.shape != self.correct.shape[:1]):
            raise DataError("groups need the group of every learner.")
        frozen = self.correct.view()
        frozen.setflags(write=False)
        object.__setattr__(self, "correct", frozen)

    def _check_points(self, points: tuple[Points, ...]) -> None:
        most = np.array([item.steps for item in points])
        if len(most) != len(self.items):
            raise DataError(f"the points of {len(most)} items were given, but there are {len(self.items)}.")
        if self.correct.size and (self.correct.min() < NOT_ANSWERED or (self.correct > most).any()):
            raise DataError("points are steps from 0 to the item's maximum, or missing.")

    def __repr__(self) -> str:
        kind = "simulated " if self.simulated else ""
        return f"<{kind}Responses: {self.n_learners} learners, {self.n_items} items>"

    @property
    def n_learners(self) -> int:
        """Number of learners, whether or not they answered anything."""
        return int(self.correct.shape[0])

    @property
    def n_items(self) -> int:
        """Number of items, whether or not a learner answered them."""
        return int(self.correct.shape[1])

    @property
    def steps(self) -> NDArray[np.int64]:
        """How many steps of points each item has; one where answers are right or wrong."""
        if self.points is None:
            return np.ones(self.n_items, dtype=np.int64)
        return np.array([item.steps for item in self.points], dtype=np.int64)

    @property
    def n_missing(self) -> int:
        """How many answers are missing. A fact about the learners: for the custodian only."""
        return int(np.count_nonzero(self.correct < 0))

    @classmethod
    def from_matrix(cls, correct: ArrayLike, items: Sequence[str] | None = None) -> Responses:
        """Responses from a matrix of 0, 1 and -1 or nan (missing), items numbered unless named."""
        matrix = np.asarray(correct)
        if matrix.ndim != 2:
            raise DataError("responses are a matrix of learners by items.")
        if np.issubdtype(matrix.dtype, np.floating):
            matrix = np.where(np.isnan(matrix), NOT_ANSWERED, matrix)
        if not np.isin(matrix, (NOT_ANSWERED, 0, 1)).all():
            raise DataError("responses are 0 or 1, or missing.")
        names = items if items is not None else [f"item {i + 1}" for i in range(matrix.shape[1])]
        return cls(np.ascontiguousarray(matrix, dtype=np.int8), tuple(names), declared=True)

    @classmethod
    def from_events(cls, events: pl.DataFrame, attempt: Attempt = "first") -> Responses:
        """One response per learner and action of a table of events: the first, the last or the best attempt.

        Learners stand in the order in which they are first met; the events of a learner are in the order
        of their times, where they have them.
        """
        learners = events["learner"].unique(maintain_order=True)
        items = natural_order(events["action"].unique().to_list())
        learner = _codes(events["learner"], learners)
        item = _codes(events["action"], pl.Series(items, dtype=pl.String))
        outcome = events["outcome"].to_numpy()
        if "time" in events.columns:
            order = np.argsort(events["time"].to_numpy(), kind="stable")
            learner, item, outcome = learner[order], item[order], outcome[order]
        matrix = np.full((len(learners), len(items)), NOT_ANSWERED, dtype=np.int8)
        if attempt == "best":
            np.maximum.at(matrix, (learner, item), outcome.astype(np.int8))
        else:
            # Rows are chosen before anything is assigned: numpy walks through reversed indices
            # in the order that it likes best, so that a later assignment need not win.
            cell = learner * len(items) + item
            if attempt == "first":
                rows = np.unique(cell, return_index=True)[1]
            else:
                rows = len(cell) - 1 - np.unique(cell[::-1], return_index=True)[1]
            matrix[learner[rows], item[rows]] = outcome[rows]
        return cls(matrix, items)

    def declare(self) -> Responses:
        """The same responses, their items declared to be public."""
        return replace(self, declared=True)

    def with_items(self, names: Sequence[str]) -> Responses:
        """The responses to a declared list of items, in its order; answers to other items are left out."""
        position = {name: column for column, name in enumerate(self.items)}
        matrix = np.full((self.n_learners, len(names)), NOT_ANSWERED, dtype=np.int8)
        for column, name in enumerate(names):
            if name in position:
                matrix[:, column] = self.correct[:, position[name]]
        # The list decides now, not what is in the cells of other columns.
        origin = replace(self.origin, dropped=())
        known = None if self.points is None else dict(zip(self.items, self.points, strict=True))
        points = None if known is None else tuple(known.get(name, Points()) for name in names)
        return replace(
            self,
            correct=matrix,
            items=tuple(names),
            declared=True,
            origin=origin,
            points=points,
            guesses=None,
        )

    def select(self, learners: ArrayLike) -> Responses:
        """The responses of some learners, by position or mask; the items stay."""
        chosen = np.asarray(learners)
        chosen = chosen if chosen.dtype == bool else chosen.astype(np.int64)  # an empty list has no type
        group_of = None if self.group_of is None else self.group_of[chosen]
        return replace(self, correct=self.correct[chosen], group_of=group_of)

    def with_groups(self, labels: Sequence[object], groups: Sequence[str]) -> Responses:
        """The responses with the learners' groups: a label per learner; one that is no declared group is none."""
        number = {name: place for place, name in enumerate(groups, start=1)}
        codes = np.array([number.get(str(label).strip(), 0) for label in labels], dtype=np.int8)
        return replace(self, groups=tuple(groups), group_of=codes)

    def missing_as_wrong(self) -> Responses:
        """The responses as an exam counts them: what was not answered is wrong."""
        return replace(self, correct=np.maximum(self.correct, 0)) if self.n_missing else self

    def at_most(self, n_answers: int, rng: np.random.Generator) -> Responses:
        """At most so many answers of each learner, chosen at random where there are more."""
        if n_answers < 1:
            return replace(self, correct=np.full_like(self.correct, NOT_ANSWERED))
        answered = self.correct >= 0
        if n_answers >= self.n_items or answered.sum(axis=1).max(initial=0) <= n_answers:
            return self
        # Each answer gets a random place in its learner's row; missing ones come last.
        keys = rng.random(self.correct.shape)
        keys[~answered] = 2.0
        # By position and not by comparing keys: equal keys must not let an answer more through.
        beyond = np.argpartition(keys, n_answers, axis=1)[:, n_answers:]
        kept = self.correct.copy()
        np.put_along_axis(kept, beyond, np.int8(NOT_ANSWERED), axis=1)
        return replace(self, correct=kept)

    def totals(self) -> ItemTotals:
        """How many answered each item, and how many of them correctly."""
        return ItemTotals.of(self.correct)


@dataclass(frozen=True, eq=False)
class ItemTotals:
    """What a fit of item difficulties needs; additive over learners, so that parts may be added up."""

    correct: NDArray[np.int64]
    answered: NDArray[np.int64]
    n_learners: int

    @classmethod
    def of(cls, correct: NDArray[np.int8]) -> ItemTotals:
        """The totals of a matrix, block by block: a block's comparison fits into the cache."""
        right = np.zeros(correct.shape[1], dtype=np.int64)
        answered = np.zeros(correct.shape[1], dtype=np.int64)
        for start in range(0, correct.shape[0], _BLOCK):
            block = correct[start : start + _BLOCK]
            right += np.count_nonzero(block > 0, axis=0)
            answered += np.count_nonzero(block >= 0, axis=0)
        return cls(right, answered, correct.shape[0])

    def __add__(self, other: ItemTotals) -> ItemTotals:
        return ItemTotals(
            self.correct + other.correct, self.answered + other.answered, self.n_learners + other.n_learners
        )


_BLOCK = 8192


def _codes(values: pl.Series, names: pl.Series) -> NDArray[np.int64]:
    return values.cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()


def item_spelling(name: str) -> str:
    """A name of an item as it is compared: case and spaces do not matter."""
    return "".join(name.split()).casefold()
