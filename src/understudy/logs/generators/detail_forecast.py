"""How far times and declared columns of a private release will be off, before anything is spent.

From public numbers alone: the number of learners in units of the noise for one of them, n sqrt(rho), and how many codes
a column has. Errors fall with it in the same way whatever the log is like, so what is foreseen is a curve per measure,
fitted to releases of simulated logs; `python -m reproductions.detail_forecasts` measures on other logs how often it
comes true, and docs/explanation/forecasts.md shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

from understudy.logs.declared.columns import Declared
from understudy.logs.generators.expected_error import HIGH, LOW, MOSTLY, ExpectedError
from understudy.logs.generators.private_columns import statistic_of
from understudy.logs.generators.private_times import SHARES, TERM_SHARES

TimeUse = Literal["hours", "gaps", "sessions", "dropout"]
TIME_USES: tuple[TimeUse, ...] = get_args(TimeUse)
TIME_WORDS: dict[TimeUse, str] = {
    "hours": "the hours of the week at which learners work",
    "gaps": "the times from one attempt to the next",
    "sessions": "the number of sessions of a learner",
    "dropout": "the weeks in which learners leave",
}
# How far off a column is without any release, times three: half of all columns are off by less than a third of their
# limit, so what their limit is called goes by this.
UNKNOWN_COLUMN = 3 * 0.4
# A number counts as one of so many codes: its bins follow their neighbours.
CODES_OF_NUMBER = 9


@dataclass(frozen=True)
class _Curve:
    """An error that noise brings from `unknowing` down to a half of it at `half`, as the power `falls`.

    Chance adds `chance` over the root of the number of learners; nine of ten releases lie within `spread`.
    """

    unknowing: float
    half: float
    falls: float
    chance: float
    spread: tuple[float, float]

    def at(self, in_noise: float, n_learners: int, few: float) -> ExpectedError:
        noise = self.unknowing / (1.0 + (in_noise / self.half) ** self.falls)
        chance = few * self.chance / sqrt(max(n_learners, 1))
        return ExpectedError(noise, chance, self.unknowing, spread=self.spread)


_WIDE = (0.4, 2.4)
_CURVES: dict[TimeUse, _Curve] = {
    "hours": _Curve(0.6, 165.0, 0.82, 3.1, (LOW, HIGH)),
    "gaps": _Curve(0.4, 38.0, 1.05, 0.85, _WIDE),
    "sessions": _Curve(0.38, 36.0, 0.9, 1.07, _WIDE),
    "dropout": _Curve(0.38, 137.0, 1.35, 0.5, _WIDE),
}
# Where the days of the term are found, a month is added on either side.
_FOUND_TERM = _Curve(0.8, 58.0, 1.1, 0.5, _WIDE)


@dataclass(frozen=True)
class _Limit:
    """Nineteen of twenty columns are off by less: noise over codes, which saturates, and chance."""

    noise: float
    grows: float
    chance: float

    def at(self, n_codes: int, in_noise: float, n_learners: int, few: float) -> float:
        noise: float = self.noise * n_codes**self.grows / max(in_noise, 1e-9)
        return min(1.0, noise / (1.0 + noise) + few * self.chance * sqrt(n_codes / max(n_learners, 1)))


_LIMITS = {"row": _Limit(0.75, 1.0, 0.8), "learner": _Limit(0.22, 1.65, 0.38)}


def time_errors(
    n_learners: int, rho: float, shares: Mapping[str, float], few: float = 1.0
) -> dict[TimeUse, ExpectedError]:
    """Errors of times by use, where actions and outcomes have `rho`; none where there are no times.

    `few` is what fewer synthetic learners than real ones multiply chance by.
    """
    if "times hours" not in shares:
        return {}
    curves = _CURVES if not TERM_SHARES.keys() & shares.keys() else {**_CURVES, "dropout": _FOUND_TERM}
    # The curves are those of the usual share.
    in_noise = n_learners * sqrt(rho * shares["times hours"] / SHARES["times hours"])
    return {use: curve.at(in_noise, n_learners, few) for use, curve in curves.items()}


def column_limits(
    n_learners: int, rho: float, shares: Mapping[str, float], columns: Sequence[Declared], few: float = 1.0
) -> dict[str, float]:
    """By how much the shares of each column's codes are off at the most, in nineteen of twenty releases."""
    limits = {}
    for declared in columns:
        in_noise = n_learners * sqrt(rho * shares[statistic_of(declared, "shares")])
        n_codes = len(declared.names) + 1 if declared.coded else CODES_OF_NUMBER
        limits[declared.name] = _LIMITS[declared.of].at(n_codes, in_noise, n_learners, few)
    return limits


def hidden(limit: float) -> bool:
    """Whether a column whose limit this is would be noise for the most part."""
    return limit > MOSTLY * UNKNOWN_COLUMN
