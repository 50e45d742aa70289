"""Categories and bounds of columns that the custodian did not declare: found privately, and paid for.

Categories are released as the names of actions are: those that enough learners share, above a threshold that a learner
who has one alone passes with no more than a stated delta. Bounds are the ends of public bins that stand out from noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from understudy.core.names import natural_order
from understudy.logs.declared.columns import OTHER, Column, Declared, Kind
from understudy.logs.generators.budget import Noisy, Spending, vocabulary_threshold
from understudy.logs.generators.private_columns import statistic_of
from understudy.logs.generators.private_sums import Total, shared_codes
from understudy.logs.interactions import IntArray, Interactions

Floats = NDArray[np.float64]

# What finding takes of the budget for each column, where all but columns takes 1 together: its categories, or its
# bounds. Categories that are not found are lost altogether, and have to stand out from far more noise.
VALUES_SHARE, BOUNDS_SHARE = 0.05, 0.02
FOUND = "found"
# At most so many different categories or bins of a learner count, where a column is of rows.
MOST_OWN = 16
# Bounds of numbers are looked for among powers of two, those of times among months of thirty days from 1970 to 2134.
_POWERS = np.exp2(np.arange(-10.0, 41.0))
_NUMBER_EDGES = np.concatenate([-_POWERS[::-1], [0.0], _POWERS])
_TIME_EDGES = np.arange(2001.0) * 30.0 * 86400.0
# The chance that noise alone makes any of the bins stand out.
FALSE_BIN = 1e-3


@dataclass(frozen=True)
class Unknown:
    """Columns of which something is to be found."""

    values: tuple[Declared, ...] = ()
    bounds: tuple[Declared, ...] = ()

    @classmethod
    def of(cls, log: Interactions) -> Unknown:
        """By what is declared alone."""
        asked = [column.declared for column in log.columns if _asked(column.declared)]
        return cls(
            tuple(declared for declared in asked if declared.coded),
            tuple(declared for declared in asked if not declared.coded),
        )

    def shares(self) -> dict[str, float]:
        """What finding them takes of the budget."""
        return {
            **{statistic_of(declared, FOUND): VALUES_SHARE for declared in self.values},
            **{statistic_of(declared, FOUND): BOUNDS_SHARE for declared in self.bounds},
        }


def _asked(declared: Declared) -> bool:
    return declared.found and (declared.kind is Kind.category or not (declared.coded or declared.bounds))


def most_own(declared: Declared) -> int:
    """How many different categories or bins a learner can have in a column: of learners there is one cell each."""
    return 1 if declared.of == "learner" else MOST_OWN


def with_found_columns(log: Interactions, spending: Spending, delta: float | None) -> Interactions:
    """The log with categories and bounds that were found; categories that were not released become `OTHER`.

    `delta` is the chance, for each column of categories, that one is released which a single learner has; without one,
    for baselines, all of them are.
    """
    found = []
    for column in log.columns:
        if not _asked(column.declared):
            found.append(column)
        elif column.declared.coded:
            found.append(_with_values(log, column, spending, delta))
        else:
            found.append(_with_bounds(log, column, spending))
    return replace(log, columns=tuple(found))


def as_found(log: Interactions, declared: tuple[Declared, ...]) -> Interactions:
    """Another log with the categories and bounds that were found before."""
    by_name = {each.name: each for each in declared}
    return replace(
        log, columns=tuple(column.recoded(by_name[column.declared.name]) for column in log.columns)
    )


def shared_values(log: Interactions, column: Column) -> Total:
    """Learners who have each category, as they count where categories are found."""
    n_values = len(column.declared.values)
    known = (column.cells >= 0) & (column.cells < n_values)
    learner, code = _codes_of_learners(log, column, column.cells, known)
    return shared_codes(learner, code, (log.n_learners, n_values), most_own(column.declared))


def bound_edges(declared: Declared) -> Floats:
    """The public bins among which bounds are looked for."""
    return _TIME_EDGES if declared.kind is Kind.time else _NUMBER_EDGES


def values_threshold(declared: Declared, sigma: float, delta: float) -> float:
    """How many learners a category needs to be released: by the noise and by what is declared."""
    return vocabulary_threshold(sigma, delta, most_own(declared))


def bin_threshold(sigma: float, n_bins: int) -> float:
    """How many learners a bin needs to stand out from the noise of all."""
    return -sigma * float(ndtri(FALSE_BIN / n_bins))


def _with_values(log: Interactions, column: Column, spending: Spending, delta: float | None) -> Column:
    declared, name = column.declared, statistic_of(column.declared, FOUND)
    total = shared_values(log, column)
    # As with names of actions: only what occurs is a candidate, and how many candidates there were is kept by nobody.
    candidate = np.flatnonzero(total.values > 0)
    (shared,) = spending.spend(name, replace(total, values=total.values[candidate]))
    least = 0.0 if delta is None else values_threshold(declared, shared.largest_sigma, delta)
    counts = {declared.values[each]: count for each, count in zip(candidate, shared.values, strict=True)}
    released = natural_order([value for value, count in counts.items() if count > least and value != OTHER])
    spending.released[f"{name} 0"] = Noisy(np.array([counts[value] for value in released]), shared.sigma)
    return column.recoded(replace(declared, values=tuple(released)))


def _with_bounds(log: Interactions, column: Column, spending: Spending) -> Column:
    declared = column.declared
    edges = bound_edges(declared)
    there = ~column.missing
    place = np.searchsorted(edges, np.where(there, column.cells, 0.0), side="right") - 1
    learner, code = _codes_of_learners(log, column, np.clip(place, 0, len(edges) - 2), there)
    total = shared_codes(learner, code, (log.n_learners, len(edges) - 1), most_own(declared))
    (noisy,) = spending.spend(statistic_of(declared, FOUND), total)
    low, high = _bounds(noisy, edges)
    found = replace(declared, low=low, high=high)
    return Column(found, np.clip(column.cells, low, high))


def _bounds(noisy: Noisy, edges: Floats) -> tuple[float, float]:
    """The ends of the first and the last bin that stand out; of the largest, where none does."""
    least = bin_threshold(noisy.largest_sigma, len(noisy.values))
    seen = np.flatnonzero(noisy.values > least)
    if not len(seen):
        seen = np.array([int(np.argmax(noisy.values))])
    return float(edges[seen[0]]), float(edges[seen[-1] + 1])


def _codes_of_learners(
    log: Interactions, column: Column, code: IntArray, there: NDArray[np.bool_]
) -> tuple[IntArray, IntArray]:
    """Learners and codes of the cells that are not missing."""
    learner = log.learner if column.declared.of == "row" else np.arange(log.n_learners)
    return learner[there], code[there].astype(np.int64)
