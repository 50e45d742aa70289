"""Codes of declared columns: cells as small whole numbers that mean the same in two logs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.declared.columns import OTHER, Column
from understudy.logs.interactions import IntArray, Interactions

# Numbers and times are put in so many classes of equal width.
N_CLASSES = 10
# Classes of a learner's number of rows, by powers of two, and of their success rate.
N_LENGTHS, N_RATES = 14, 5


class ColumnCodes:
    """The classes of a column: its categories, or classes of numbers between its bounds; a missing cell is the last."""

    def __init__(self, column: Column) -> None:
        declared = column.declared
        self.declared = declared
        if declared.coded:
            self._position = {name: code for code, name in enumerate(declared.names)}
            self.n_codes = len(declared.names) + 1
            return
        present = column.cells[~np.isnan(column.cells)]
        # Where bounds are to be found, those of the log itself are what its custodian and an attacker know.
        low = declared.low if declared.low is not None else float(present.min(initial=np.inf))
        high = declared.high if declared.high is not None else float(present.max(initial=-np.inf))
        low, high = (low, high) if low < high else (0.0, 1.0)
        self._edges = np.linspace(low, high, N_CLASSES + 1)[1:-1]
        self.n_codes = N_CLASSES + 1

    def of(self, column: Column) -> IntArray:
        """The codes of a column of the same name."""
        if self.declared.coded:
            names = column.declared.names
            other = self._position.get(OTHER, self.n_codes - 1)
            code = np.array([self._position.get(name, other) for name in names] + [self.n_codes - 1])
            codes: IntArray = code[column.cells]
            return codes
        place = np.searchsorted(self._edges, column.cells, side="right")
        return np.where(np.isnan(column.cells), self.n_codes - 1, place)


def known_names(column: Column) -> tuple[str, str]:
    """What tells whether two columns are the same one: their name, and whose it is."""
    return column.declared.name, column.declared.of


def column_named(log: Interactions, like: Column) -> Column | None:
    """The column of a log with the same name, of the same kind; None where it has none."""
    for column in log.columns:
        if known_names(column) == known_names(like) and column.declared.kind == like.declared.kind:
            return column
    return None


def shared_columns(log: Interactions, other: Interactions) -> list[tuple[Column, Column]]:
    """The columns that two logs have, those of the first beside those of the second."""
    pairs = ((column, column_named(other, column)) for column in log.columns)
    return [(column, found) for column, found in pairs if found is not None]


def pair_codes(first: IntArray, second: IntArray, n_second: int) -> NDArray[np.int64]:
    """Two codes as one."""
    return first.astype(np.int64) * n_second + second


def length_classes(log: Interactions) -> IntArray:
    """The number of rows of each learner as a class: none, 1, 2 to 3, 4 to 7 and so on."""
    return np.minimum(np.frexp(log.lengths.astype(np.float64))[1], N_LENGTHS - 1)


def success_classes(log: Interactions) -> IntArray:
    """The success rate of each learner in fifths; 0 without rows."""
    successes = np.bincount(log.learner, weights=log.success, minlength=log.n_learners)
    rate = successes / np.maximum(log.lengths, 1)
    return np.minimum((N_RATES * rate).astype(np.int64), N_RATES - 1)
