"""How far a release is off for each use, in words for a board; it follows from the forecast that the card holds.

No figure here is a precision that comes from the number of synthetic rows: a large file is not an exact one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import expit

from understudy.core.files.words import counted
from understudy.core.pages.card import protection_verdict, with_caveats
from understudy.core.privacy.guarantee import Guarantee
from understudy.logs.generators.budget import MOSTLY_NOISE


@dataclass(frozen=True)
class Use:
    """What the data may be used for, and how far it is off there: one total error in percentage points.

    Without an `error` nothing is predicted, and `words` say what is known.
    """

    name: str
    error: float | None
    words: str
    grade: str


CLOSE, FAIR, ROUGH, NOISE, UNKNOWN = "close", "fair", "rough", "mostly noise", "not predicted"
# The largest error of a close and of a fair likeness, and of what is more than noise: for shares of actions, for the
# success rate of an action (as a rule, actions do not differ by more), and for a limit of what it is for all attempts.
_CLOSE, _FAIR = 0.05, 0.15
# A factor beyond this is no interval that tells anything.
_LARGEST_FACTOR = 5.0
_NOISY_SHARES, _NOISY_RATES, _NOISY_LIMIT = MOSTLY_NOISE, 0.2, 0.4


# What is known about steps, by where they come from.
_STEPS = {
    "learned": ("learned from the learners; how far they are off is not predicted", UNKNOWN),
    "in order": ("in the order of the course, which was declared", UNKNOWN),
    "by popularity": ("hidden by noise: steps lead wherever attempts are frequent", NOISE),
}


def uses_of(expected: dict[str, Any] | None, n_rows: int, n_learners: int) -> list[Use]:
    """The forecast of `expected_errors` by use, total errors all of them; empty where nothing is predicted."""
    if expected is None:
        return []
    mean, factor, rate = n_rows / max(n_learners, 1), expected["rows_factor"], expected["success_rate"]
    difficulty = expected["difficulty"]
    uses = [
        _use("how often each action is attempted", expected["action_shares"], _NOISY_SHARES),
        # Of pooled actions nothing is known, so there is no figure for the whole file.
        Use("success rates of single actions", None, "not predicted: too many actions are pooled", UNKNOWN)
        if difficulty is None
        else _use("success rates of single actions", success_points(difficulty), _NOISY_RATES),
    ]
    if rate is not None:
        uses.append(_use("the success rate of all attempts", rate, _NOISY_LIMIT, most=True))
    uses.append(Use("steps from one action to the next", None, *_STEPS[expected["steps"]]))
    if factor is not None:
        words = (
            f"{mean:.1f} here, {mean / factor:.1f} to {mean * factor:.1f} in the original as a rule"
            if factor <= _LARGEST_FACTOR
            else f"{mean:.1f} here; the original may have far fewer or far more"
        )
        uses.append(Use("attempts of a learner, on average", None, words, _graded(factor - 1.0, 1.0)))
    return uses


def success_points(difficulty: float) -> float:
    """An error of difficulty (log-odds) as one of the success rate, where it is largest: at one half."""
    return float(expit(difficulty)) - 0.5


def _use(name: str, error: float, noise: float, *, most: bool = False) -> Use:
    grade = _graded(error, noise)
    if most and error > noise:
        return Use(name, error, "no limit worth stating", NOISE)
    points = max(1, math.ceil(100 * error - 1e-9) if most else round(100 * error))
    return Use(name, error, f"{'up to' if most else 'about'} {counted(points, 'percentage point')}", grade)


def _graded(error: float, noise: float) -> str:
    limits = ((_CLOSE, CLOSE), (_FAIR, FAIR), (noise, ROUGH))
    return next((grade for limit, grade in limits if error <= limit), NOISE)


def verdict_of(guarantee: Guarantee, uses: list[Use], *, keeps_rows: bool) -> str:
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
