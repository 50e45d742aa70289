"""How far a release is off for each use, in words for a board; it follows from the forecast that the card holds.

No figure here is a precision that comes from the number of synthetic rows: a large file is not an exact one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from understudy.core.files.words import counted
from understudy.core.pages.card import protection_verdict, with_caveats
from understudy.core.privacy.guarantee import Guarantee
from understudy.logs.generators.forecast import success_points


@dataclass(frozen=True)
class UseAccuracy:
    """What the data may be used for, and how far it is off there: one total error in percentage points.

    Without an `error` nothing is predicted, and `words` say what is known.
    """

    name: str
    error: float | None
    words: str
    grade: str


CLOSE, FAIR, ROUGH, NOISE, UNKNOWN = "close", "fair", "rough", "mostly noise", "not predicted"
# The largest error of a close and of a fair likeness; a factor or a limit beyond the last is noise.
_CLOSE, _FAIR, _NOISY = 0.05, 0.15, 0.4
# A factor beyond this is no interval that tells anything.
_LARGEST_FACTOR = 5.0


def uses_of(expected: dict[str, Any] | None, n_rows: int, n_learners: int) -> list[UseAccuracy]:
    """The forecast of `expected_errors` by use, total errors all of them; empty where there is none."""
    if expected is None:
        return []
    mean, factor = n_rows / max(n_learners, 1), expected["rows_factor"]
    rates, steps = expected["difficulties"], expected["steps"]
    if rates is not None:
        points = {name: success_points(rates[name]) for name in ("expected", "low", "high")}
        rates = {**rates, **points}
    words = (
        f"{mean:.1f} here, {mean / factor:.1f} to {mean * factor:.1f} in the original as a rule"
        if factor <= _LARGEST_FACTOR
        else f"{mean:.1f} here; the original may have far fewer or far more"
    )
    return [
        _use("how often each action is attempted", expected["shares"], ""),
        _use("success rates of single actions", rates, "not predicted: too many actions are pooled"),
        _limit("the success rate of all attempts", expected["success_rate"]),
        _use("steps from one action to the next", steps, "in the order of the course, which was declared"),
        UseAccuracy("attempts of a learner, on average", None, words, _graded(factor - 1.0, factor > 2.0)),
    ]


def _use(name: str, error: dict[str, Any] | None, otherwise: str) -> UseAccuracy:
    if error is None:
        return UseAccuracy(name, None, otherwise, UNKNOWN)
    expected, low, high = (max(1, round(100 * min(error[key], 1.0))) for key in ("expected", "low", "high"))
    words = f"about {counted(expected, 'percentage point')}, as a rule {low} to {high}"
    return UseAccuracy(name, error["expected"], words, _graded(error["expected"], error["mostly_noise"]))


def _limit(name: str, most: float) -> UseAccuracy:
    if most > _NOISY:
        return UseAccuracy(name, most, "no limit worth stating", NOISE)
    points = max(1, math.ceil(100 * most - 1e-9))
    return UseAccuracy(name, most, f"up to {counted(points, 'percentage point')}", _graded(most, noise=False))


def _graded(error: float, noise: bool) -> str:
    limits = ((_CLOSE, CLOSE), (_FAIR, FAIR))
    return NOISE if noise else next((grade for limit, grade in limits if error <= limit), ROUGH)


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
        good_for = ", and apart from its size and its format it is mostly noise"
    elif noisy:
        good_for = f", and it holds little but noise about {' and '.join(noisy)}"
    else:
        likeness = "a rough" if ROUGH in grades else "a close" if grades == {CLOSE} else "a fair"
        good_for = f", and it is {likeness} likeness of the original log"
    joint = ";" if guarantee.formal else ", and"
    return with_caveats(f"{who}{joint} {protection_verdict(guarantee)}{good_for}", guarantee)
