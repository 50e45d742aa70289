"""Codes of declared columns: cells as small whole numbers that mean the same in two logs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from understudy.logs.declared.columns import MISSING, Column
from understudy.logs.interactions import IntArray, Interactions

# Numbers and times are put in so many classes of equal width.
N_CLASSES = 10
# Classes of a learner's number of rows, by powers of two, and of their success rate.
N_LENGTHS, N_RATES = 14, 5


class ColumnCodes:
    """The classes of a column: its categories, or classes of numbers between its bounds; a missing cell is the last.

    Where bounds are to be found, those of the given columns are what their custodian and an attacker know.
    """

    def __init__(self, *columns: Column) -> None:
        self.declared = declared = columns[0].declared
        if declared.coded:
            self.labels = (*declared.names, MISSING)
        else:
            present = np.concatenate([column.cells[~column.missing] for column in columns])
            low = declared.low if declared.low is not None else float(present.min(initial=np.inf))
            high = declared.high if declared.high is not None else float(present.max(initial=-np.inf))
            if not low < high:
                low = low if np.isfinite(low) else 0.0
                high = low + 1.0
            self._edges = np.linspace(low, high, N_CLASSES + 1)
            self.labels = (*(f"{begin:.3g}–{end:.3g}" for begin, end in pairwise(self._edges)), MISSING)
        self.n_codes = len(self.labels)

    def of(self, column: Column) -> IntArray:
        """The codes of a column of the same name."""
        if self.declared.coded:
            code = column.recoded(self.declared).cells.astype(np.int64)
        else:
            code = np.searchsorted(self._edges[1:-1], column.cells, side="right")
        return np.where(column.missing, self.n_codes - 1, code)


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


def length_classes(log: Interactions) -> IntArray:
    """The number of rows of each learner as a class: none, 1, 2 to 3, 4 to 7 and so on."""
    return np.minimum(np.frexp(log.lengths.astype(np.float64))[1], N_LENGTHS - 1)


def success_classes(log: Interactions) -> IntArray:
    """The success rate of each learner in fifths; 0 without rows."""
    successes = np.bincount(log.learner, weights=log.success, minlength=log.n_learners)
    rate = successes / np.maximum(log.lengths, 1)
    return np.minimum((N_RATES * rate).astype(np.int64), N_RATES - 1)
