"""Utility of declared columns: each alone, and each with another, with the action and with the outcome."""

from __future__ import annotations

import numpy as np

from understudy.logs.column_codes import (
    N_LENGTHS,
    N_RATES,
    ColumnCodes,
    length_classes,
    shared_columns,
    success_classes,
)
from understudy.logs.declared.columns import Column
from understudy.logs.interactions import IntArray, Interactions, pair_codes
from understudy.logs.utility.comparison import Comparison, Metric, kolmogorov_smirnov, total_variation

# The codes of a column in the real log and in the synthetic one, and how many there are.
_Coded = tuple[IntArray, IntArray, int]


def column_distances(real: Interactions, synthetic: Interactions) -> dict[str, float]:
    """How far off each shared column is: total variation of classes, of numbers the Kolmogorov-Smirnov distance.

    Missing cells are a class of their own; of numbers the share of missing cells counts, if that is further off.
    """
    return {
        wanted.declared.name: _distance(wanted, found) for wanted, found in shared_columns(real, synthetic)
    }


def pair_distances(real: Interactions, synthetic: Interactions) -> dict[tuple[str, str], float]:
    """Total variation of each pair of columns of rows or of learners, numbers in ten classes.

    A row's action and outcome, and a learner's rows and successes in classes, are columns here as well.
    """
    distances = {}
    for of in ("learner", "row"):
        coded = _coded(real, synthetic, of)
        names = list(coded)
        own = {column.declared.name for column in real.columns if column.declared.of == of}
        for place, first in enumerate(names):
            for second in names[place + 1 :]:
                if {first, second} & own:
                    distances[first, second] = _pair_distance(coded[first], coded[second])
    return distances


def column_tv(comparison: Comparison) -> float:
    """The distance of the column that is furthest off."""
    return max(column_distances(comparison.real.training, comparison.synthetic).values())


def column_pair_tv(comparison: Comparison) -> float:
    """The distance of the pair that is furthest off."""
    return max(pair_distances(comparison.real.training, comparison.synthetic).values(), default=0.0)


def _distance(wanted: Column, found: Column) -> float:
    if wanted.declared.coded:
        codes = ColumnCodes(wanted)
        return _law_distance(codes.of(wanted), codes.of(found), codes.n_codes)
    if not len(found.cells):
        return 1.0
    missing = [column.missing for column in (wanted, found)]
    share = abs(float(missing[0].mean()) - float(missing[1].mean()))
    present = [column.cells[~none] for column, none in zip((wanted, found), missing, strict=True)]
    return max(kolmogorov_smirnov(*present), share) if len(present[0]) else share


def _coded(real: Interactions, synthetic: Interactions, of: str) -> dict[str, _Coded]:
    """Columns of rows or of learners that both logs have, and what rows and learners have without any declaration."""
    coded: dict[str, _Coded] = {}
    for wanted, found in shared_columns(real, synthetic):
        if wanted.declared.of == of:
            codes = ColumnCodes(wanted)
            coded[wanted.declared.name] = codes.of(wanted), codes.of(found), codes.n_codes
    judged = real.outcome is not None and synthetic.outcome is not None
    if of == "row":
        coded["(action)"] = real.action, synthetic.action, real.n_actions
        if judged:
            coded["(outcome)"] = real.success, synthetic.success, 2
    else:
        rows = [length_classes(log) for log in (real, synthetic)]
        coded["(rows)"] = rows[0], rows[1], N_LENGTHS
        if judged:
            successes = [success_classes(log) for log in (real, synthetic)]
            coded["(successes)"] = successes[0], successes[1], N_RATES
    return coded


def _pair_distance(first: _Coded, second: _Coded) -> float:
    real, synthetic, n_first = first
    real_second, synthetic_second, n_second = second
    return _law_distance(
        pair_codes(real, real_second, n_second),
        pair_codes(synthetic, synthetic_second, n_second),
        n_first * n_second,
    )


def _law_distance(wanted: IntArray, found: IntArray, n_codes: int) -> float:
    shares = [np.bincount(codes, minlength=n_codes) / max(len(codes), 1) for codes in (wanted, found)]
    return total_variation(shares[0] - shares[1])


COLUMN_METRICS: tuple[Metric, ...] = (
    Metric(
        "column_tv",
        "share of cells with another value than they should have, of the column that is furthest off",
        0.0,
        "lower",
        column_tv,
        about="columns",
    ),
    Metric(
        "column_pair_tv",
        "the same of the pair that is furthest off, of two columns or of one with action, outcome or length",
        0.0,
        "lower",
        column_pair_tv,
        about="columns",
    ),
)
