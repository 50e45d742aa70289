"""Declared columns: what a log has beside actions, outcomes and times, of its rows or of its learners.

What a column may hold (categories, bounds) is public: the custodian declares it, or has it found privately. It is never
read off the data, where one learner's unusual value would decide what everybody else's synthetic rows may hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import DataError

# The names of whatever a category holds that was not declared, and of a cell without a value.
OTHER, MISSING = "other", "missing"


class Kind(StrEnum):
    """What the cells of a column are."""

    category = "category"
    number = "number"
    flag = "yes/no"
    time = "time"


@dataclass(frozen=True)
class Declared:
    """What is public about a column.

    `values` are the categories, to which `OTHER` is added; a number lies between `low` and `high`, in multiples of
    `step` if that is given; a time likewise, in seconds since 1970. `found` says that categories or bounds are to be
    found privately, for a part of the budget. `at` are the actions at which a column of rows has values, where that is
    public: at others its cells are empty.
    """

    name: str
    kind: Kind
    of: Literal["row", "learner"]
    values: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    step: float | None = None
    unit: str = ""
    found: bool = False
    at: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))
        if self.kind is Kind.category and not self.values and not self.found:
            raise self._bad("no categories", "list them under values, or have them found privately.")
        if not self.coded and self.bounds is None and not self.found:
            raise self._bad("no bounds", "give low and high, or have them found privately.")
        if self.at is not None and self.of != "row":
            raise self._bad("actions", "only a column of rows has values at some actions.")
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise self._bad("bounds that hold nothing", "low lies below high.")

    def _bad(self, what: str, hint: str) -> DataError:
        return DataError(f"column '{self.name}' is declared with {what}.", hint=hint, code="bad-declaration")

    @property
    def coded(self) -> bool:
        """Whether cells are codes: of categories, or of no (0) and yes (1)."""
        return self.kind in (Kind.category, Kind.flag)

    @property
    def names(self) -> tuple[str, ...]:
        """What the codes stand for; none for numbers."""
        if self.kind is Kind.flag:
            return ("no", "yes")
        return (*self.values, OTHER) if self.kind is Kind.category else ()

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Both bounds; None where one is to be found, or there is none."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def is_outcome(self) -> bool:
        """Whether it is the outcome of a log whose rows may lack one: no other column can have its name."""
        return self.name == OUTCOME.name

    def has_values(self, actions: Sequence[str]) -> NDArray[np.bool_]:
        """At which of these actions a column of rows may have values, by what is public."""
        return np.ones(len(actions), dtype=bool) if self.at is None else np.isin(actions, self.at)

    @property
    def missing_cell(self) -> float:
        """What stands for a cell without a value."""
        return -1 if self.coded else np.nan


# The outcome where rows may lack one: a column of rows, of a name that no other column can have.
OUTCOME = Declared("outcome", Kind.flag, "row")


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """The cells of a declared column, one per row or one per learner.

    A coded column has codes of `declared.names`, others have numbers; a missing cell is -1 or nan.
    """

    declared: Declared
    cells: NDArray[Any]

    def __post_init__(self) -> None:
        kind = np.int32 if self.declared.coded else np.float64
        cells = np.asarray(self.cells, dtype=kind).view()
        cells.setflags(write=False)
        object.__setattr__(self, "cells", cells)

    def __repr__(self) -> str:
        return f"<Column {self.declared.name}: {self.declared.kind} of {len(self.cells)} {self.declared.of}s>"

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells have no value."""
        missing: NDArray[np.bool_] = self.cells < 0 if self.declared.coded else np.isnan(self.cells)
        return missing

    def recoded(self, declared: Declared) -> Column:
        """The same cells as another declaration has them; names that it lacks become `OTHER`."""
        if not declared.coded or declared.names == self.declared.names:
            return Column(declared, self.cells)
        code = {name: code for code, name in enumerate(declared.names)}
        # The last entry is that of a missing cell.
        codes = np.array([code.get(name, code.get(OTHER, -1)) for name in self.declared.names] + [-1])
        return Column(declared, codes[self.cells])

    def take(self, places: ArrayLike) -> Column:
        """The same column of other rows or learners: places or a mask."""
        return replace(self, cells=self.cells[np.asarray(places)])

    def with_missing(self, n_more: int) -> Column:
        """The same column with empty cells at its end."""
        return replace(self, cells=np.append(self.cells, np.full(n_more, self.declared.missing_cell)))
