"""How far a release is off for each use, in words for a board; it follows from the forecast that the card holds.

No figure here is a precision that comes from the number of synthetic rows: a large file is not an exact one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from understudy.core.files.words import counted, listed
from understudy.core.pages.card import protection_verdict, with_caveats
from understudy.core.privacy.guarantee import Guarantee
from understudy.logs.generators.detail_forecast import TIME_USES, TIME_WORDS, UNKNOWN_COLUMN
from understudy.logs.generators.expected_error import CLOSE, NOISE, ROUGH, likeness
from understudy.logs.generators.forecast import (
    UNKNOWN_SUCCESS_RATE,
    USES,
    WORDS,
    Use,
    rows_likeness,
    success_points,
)


@dataclass(frozen=True)
class UseAccuracy:
    """What the data may be used for, and how far it is off there: one total error in percentage points.

    Without an `error` nothing is predicted, and `words` say what is known.
    """

    name: str
    error: float | None
    words: str
    grade: str


UNKNOWN = "not predicted"
# A factor beyond this is no interval that tells anything.
_LARGEST_FACTOR = 5.0


def uses_of(expected: dict[str, Any] | None, n_rows: int, n_learners: int) -> list[UseAccuracy]:
    """The forecast of `expected_errors` by use, total errors all of them; empty where there is none."""
    if expected is None:
        return []
    mean, factor = n_rows / max(n_learners, 1), expected["rows_factor"]
    words = (
        f"{mean:.1f} here, {mean / factor:.1f} to {mean * factor:.1f} in the original as a rule"
        if factor <= _LARGEST_FACTOR
        else f"{mean:.1f} here; the original may have far fewer or far more"
    )
    shares, difficulties, steps = (_use(use, expected[use]) for use in USES)
    # A log without outcomes has no success rate, and no difficulties.
    rate = expected["success_rate"]
    of_outcomes = (
        []
        if rate is None
        else [difficulties, _limit("the success rate of all attempts", rate, UNKNOWN_SUCCESS_RATE)]
    )
    return [
        shares,
        *of_outcomes,
        steps,
        UseAccuracy("attempts of a learner, on average", None, words, rows_likeness(factor)),
        *(
            _of_times(TIME_WORDS[use], expected["times"][use])
            for use in TIME_USES
            if use in expected["times"]
        ),
        *(_of_column(name, column) for name, column in expected["columns"].items()),
    ]


def _use(use: Use, error: dict[str, Any] | None) -> UseAccuracy:
    if error is None:
        return UseAccuracy(WORDS[use], None, "in the order of the course, which was declared", UNKNOWN)
    figures = [error[key] for key in ("expected", "low", "high")]
    if use != "difficulties":
        return UseAccuracy(WORDS[use], figures[0], _about(figures), error["likeness"])
    figures = [success_points(figure) for figure in figures]
    return UseAccuracy(WORDS[use], figures[0], _about(figures, " of success"), error["likeness"])


def _of_times(name: str, error: dict[str, Any]) -> UseAccuracy:
    words = _about([error[key] for key in ("expected", "low", "high")])
    return UseAccuracy(name, error["expected"], words, error["likeness"])


def _about(figures: Sequence[float], of: str = "") -> str:
    expected, low, high = (max(1, round(100 * min(figure, 1.0))) for figure in figures)
    return f"about {counted(expected, 'percentage point')}{of}, as a rule {low} to {high}"


def _of_column(name: str, column: dict[str, Any]) -> UseAccuracy:
    limit = _limit(f"column '{name}'", column["most"], UNKNOWN_COLUMN)
    given = f"goes with {listed(column['given'])}" if column["given"] else "goes with nothing that stands out"
    return replace(limit, words=f"{limit.words}; {given}")


def _limit(name: str, most: float, unknowing: float) -> UseAccuracy:
    likeness_of = likeness(most, unknowing)
    if likeness_of == NOISE:
        return UseAccuracy(name, most, "no limit worth stating", NOISE)
    points = max(1, math.ceil(100 * most - 1e-9))
    return UseAccuracy(name, most, f"up to {counted(points, 'percentage point')}", likeness_of)


def verdict_of(guarantee: Guarantee, uses: list[UseAccuracy], *, keeps_rows: bool) -> str:
    """The card's first sentence: who is in the file, what is proved about it, what it is good for."""
    who = (
        "The rows in this file are those of learners who exist, under new numbers"
        if keeps_rows
        else "The learners in this file are invented"
    )
    grades = {use.grade for use in uses} - {UNKNOWN}
    noisy = [use.name for use in uses if use.grade == NOISE]
    if not grades:
        good_for = ""
    elif len(noisy) > len(uses) / 2:
        rest = [use.name for use in uses if use.grade not in (NOISE, UNKNOWN)]
        good_for = f", and apart from {' and '.join(rest) or 'its size and its format'} it is mostly noise"
    elif noisy:
        good_for = f", and it holds little but noise about {' and '.join(noisy)}"
    else:
        likeness = "a rough" if ROUGH in grades else "a close" if grades == {CLOSE} else "a fair"
        good_for = f", and it is {likeness} likeness of the original log"
    joint = ";" if guarantee.formal else ", and"
    return with_caveats(f"{who}{joint} {protection_verdict(guarantee)}{good_for}", guarantee)
