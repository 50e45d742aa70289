"""How far a private release will be off, before anything is spent: one forecast for explanations, gates and cards.

From four numbers: learners, actions, rows per learner, epsilon. It follows the budget of `runs-dp` (noise of each sum,
norms, shrinking) and states an interval in which nine of ten releases lie, over simulated logs of very different
shapes: `python -m reproductions.forecasts` measures that, and docs/explanation/forecasts.md shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf, log, log2, sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from understudy.core.privacy.risk import StatedRisk
from understudy.logs.declared.columns import Declared
from understudy.logs.generators.budget import (
    VOCABULARY_SHARE,
    choose_most_rows,
    choose_norm,
    slope_norm,
)
from understudy.logs.generators.detail_forecast import TIME_WORDS, TimeUse, column_limits, hidden, time_errors
from understudy.logs.generators.expected_error import ExpectedError, Likeness, likeness
from understudy.logs.generators.markov_dp import ROW_NORM_GROWS, RUN_NORM_GROWS
from understudy.logs.generators.private_sums import USUAL_LONGEST, bin_edges
from understudy.logs.generators.runs_dp import JUMP_NORM, RunsDP, shares_for
from understudy.logs.models.lengths import USUAL_SPREAD, Lengths

Floats = NDArray[np.float64]

Use = Literal["shares", "difficulties", "steps"]
USES: tuple[Use, ...] = get_args(Use)
WORDS: dict[Use, str] = {
    "shares": "how often each action is attempted",
    "difficulties": "how difficult actions are",
    "steps": "which action follows which",
}
# Two of three rows stay at their action, and a learner's rows have this times the usual growth as their norm.
USUAL_STAYS, USUAL_NORM = 2 / 3, 1.3
# How far off one is without any release: actions all alike, difficulties all alike, steps by popularity.
UNKNOWN_SHARES, UNKNOWN_DIFFICULTIES, UNKNOWN_STEPS = 0.43, 0.8, 0.4
# Of all attempts' success rate two standard deviations of what is usual, and of the mean number of rows doublings.
UNKNOWN_SUCCESS_RATE, UNKNOWN_DOUBLINGS = 0.4, 1.5


def rows_likeness(factor: float) -> Likeness:
    """What a factor of the mean number of rows is called."""
    return likeness(log2(factor), UNKNOWN_DOUBLINGS)


@dataclass(frozen=True)
class Forecast:
    """Errors to expect of a release, by what it may be used for."""

    risk: StatedRisk
    shares: ExpectedError
    difficulties: ExpectedError
    steps: ExpectedError
    rows_factor: float
    """The mean number of rows is within this factor of the real one, as a rule."""
    in_order: bool = False
    """Whether steps follow an order that was declared: how far off that is, is not foreseen."""
    jumps_asked: bool = True
    """Whether `runs-dp` asks which action follows which: not where the answer would be noise."""
    outcomes: bool = True
    """Whether there are outcomes, and so difficulties."""
    times: dict[TimeUse, ExpectedError] = field(default_factory=dict)
    """Errors of times, where there are any."""
    columns: dict[str, float] = field(default_factory=dict)
    """By how much the shares of each declared column are off at the most, as a rule."""

    def of(self, use: Use) -> ExpectedError:
        """The error for a use."""
        error: ExpectedError = getattr(self, use)
        return error

    @property
    def mostly_noise_for(self) -> list[Use]:
        """The uses for which the release would be noise for the most part."""
        return [use for use in self.foreseen if self.of(use).mostly_noise]

    @property
    def noisy_details(self) -> list[str]:
        """Times and columns about which the release would be noise for the most part, in words."""
        times = [TIME_WORDS[use] for use, error in self.times.items() if error.mostly_noise]
        return times + [f"column '{name}'" for name, most in self.columns.items() if hidden(most)]

    @property
    def foreseen(self) -> list[Use]:
        """The uses with a forecast."""
        without = {"steps"} if self.in_order else set()
        return [use for use in USES if use not in (without if self.outcomes else {*without, "difficulties"})]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        errors: dict[str, Any] = {
            use: self.of(use).to_json() if use in self.foreseen else None for use in USES
        }
        return {
            **vars(self.risk),
            **errors,
            "rows_factor": self.rows_factor,
            "jumps_asked": self.jumps_asked,
            "times": {use: error.to_json() for use, error in self.times.items()},
            "columns": self.columns,
        }


def forecast(
    n_learners: int,
    n_actions: int,
    rows_per_learner: float,
    epsilon: float,
    *,
    pooled: float | None = None,
    drawn: int | None = None,
    delta: float = 0.0,
    lengths: Floats | None = None,
    in_order: bool = False,
    outcomes: bool = True,
    details: Mapping[str, float] | None = None,
    columns: Sequence[Declared] = (),
) -> Forecast:
    """What to expect of `runs-dp`, and of `markov-dp`, which is off by a little more.

    Where names are found, `pooled` is the share of rows whose names are not released, and what is pooled is one of the
    actions. `drawn` is the number of synthetic learners where that is not the number of learners. `lengths` is the
    law of learners' rows where it is known; the factor of rows follows from it. `details` is what each statistic of
    times and `columns` takes of the budget, relative to all else.
    """
    claim = RunsDP(epsilon, delta).claim(n_learners, names_found=pooled is not None)
    assert claim.rho is not None
    rho = claim.rho * (1.0 if pooled is None else 1.0 - VOCABULARY_SHARE)
    details = details or {}
    left = rho / (1.0 + sum(details.values()))
    shares = shares_for(n_learners, n_actions if pooled is None else None, claim.rho, outcomes=outcomes)
    rho_of = {name: left * share / sum(shares.values()) for name, share in shares.items()}
    n_rows = n_learners * max(rows_per_learner, 1.0)
    law = _usual_lengths(max(rows_per_learner, 1.0))
    rows = np.arange(1.0, USUAL_LONGEST + 1)

    # Noise of shares, each cell by half its mean absolute value, drawn to the same share as far as it is noise.
    size = USUAL_NORM * rows**ROW_NORM_GROWS
    norm = choose_norm(size, n_learners * law, n_rows, n_actions, rho_of["rows"])
    kept = 1.0 - float(law @ np.maximum(size - norm, 0.0) / (law @ size))
    noise = 0.4 * n_actions * norm / sqrt(rho_of["rows"]) / n_rows / kept
    of_shares = ExpectedError(
        _below(sqrt(_drawn(0.7 * noise, UNKNOWN_SHARES) ** 2 + 0.018**2)),
        _below(1.1 * sqrt(n_actions / n_rows)),
        UNKNOWN_SHARES,
    )

    # Noise of slopes over curvature, which is 0.15 for a row; what a finite log tells about them is shrunk as well.
    slopes = sum(value for name, value in rho_of.items() if name.startswith("slopes")) or rho
    noise = 2.0 * n_actions * 2.0 * slope_norm(n_learners, rho) / sqrt(2.0 * slopes) / (0.15 * n_rows)
    of_difficulties = ExpectedError(
        sqrt(_drawn(noise, UNKNOWN_DIFFICULTIES) ** 2 + 0.02**2),
        _drawn(0.7 * sqrt(n_actions / (0.2 * n_rows)), UNKNOWN_DIFFICULTIES),
        UNKNOWN_DIFFICULTIES,
        most=inf,
    )

    # Noise of a jump beside the jumps from an action; steps also go wrong as shares do.
    runs = np.maximum(rows * (1.0 - USUAL_STAYS), 1.0)
    norm = choose_norm(
        runs**RUN_NORM_GROWS, n_learners * law, n_rows * (1.0 - USUAL_STAYS), n_actions, rho_of["runs"]
    )
    hidden = UNKNOWN_STEPS
    if "jumps" in rho_of:
        noise = (
            max(JUMP_NORM * norm, 1.0) / sqrt(rho_of["jumps"]) / (n_rows * (1.0 - USUAL_STAYS) / n_actions)
        )
        hidden *= 25.0 * noise / (1.0 + 25.0 * noise)
    of_steps = ExpectedError(
        _below(sqrt(of_shares.noise**2 + hidden**2)), _below(2.3 * sqrt(n_actions / n_rows)), UNKNOWN_STEPS
    )

    if pooled:
        # A pooled attempt is at no action that it should be at, and of its action nothing is known.
        unknown = (1.0 - pooled) * of_difficulties.noise**2 + pooled * UNKNOWN_DIFFICULTIES**2
        of_difficulties = replace(of_difficulties, noise=sqrt(unknown), named_noise=of_difficulties.noise)
        of_shares, of_steps = (
            replace(each, noise=min(1.0, pooled + (1.0 - pooled) * each.noise), named_noise=each.noise)
            for each in (of_shares, of_steps)
        )
    # More synthetic learners than there were real ones know no more than these.
    few = 1.0 if drawn is None else sqrt(max(1.0, n_learners / max(drawn, 1)))
    of_shares, of_difficulties, of_steps = (
        replace(each, chance=few * each.chance) for each in (of_shares, of_difficulties, of_steps)
    )
    return Forecast(
        StatedRisk.of(claim),
        of_shares,
        of_difficulties,
        of_steps,
        _rows_factor(n_learners, law if lengths is None else lengths, rho_of),
        in_order,
        "jumps" in rho_of,
        outcomes,
        time_errors(n_learners, left, details, few),
        column_limits(n_learners, left, details, columns, few),
    )


def success_points(difficulty: float) -> float:
    """An error of difficulty (log-odds) as one of the success rate, where it is largest: at one half."""
    return float(expit(difficulty)) - 0.5


def needed_epsilon(use: Use, within: float, expect: Callable[[float], Forecast], most: float) -> float:
    """The smallest epsilon at which the expected error of a use is within a number; infinite beyond `most`."""
    return _smallest(lambda epsilon: expect(epsilon).of(use).expected <= within, 0.01, most, 0.01)


def needed_learners(use: Use, within: float, expect: Callable[[int], Forecast]) -> float:
    """About how many learners it takes; infinite beyond ten million."""
    return _smallest(lambda n: expect(int(n)).of(use).expected <= within, 2.0, 1e7, 0.02)


def _smallest(enough: Callable[[float], bool], low: float, high: float, close: float) -> float:
    """Where `enough` begins to hold, to a share of `close`."""
    if not enough(high):
        return inf
    while high / low > 1.0 + close:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _drawn(noise: float, spread: float) -> float:
    """The error that is left of noise when it is drawn to the middle of what has this spread."""
    return noise * spread / sqrt(noise**2 + spread**2)


def _below(error: float) -> float:
    """A share that is elsewhere, never more than all."""
    return error / sqrt(sqrt(1.0 + error**4))


@lru_cache
def _usual_lengths(mean: float) -> Floats:
    """Lengths with the usual spread and this mean."""
    rows = np.arange(1.0, USUAL_LONGEST + 1)
    middle = log(mean) - USUAL_SPREAD**2 / 2.0
    law: Floats = np.exp(-0.5 * ((np.log(rows) - middle) / USUAL_SPREAD) ** 2) / rows
    law /= law.sum()
    return law


def _rows_factor(n_learners: int, law: Floats, rho_of: dict[str, float]) -> float:
    """The factor that a fit would state, if lengths had this law and all noise happened to be zero."""
    lengths = Lengths(n_learners, bin_edges(len(law)))
    logarithm = np.log(lengths.rows)
    position = logarithm / logarithm[-1]
    # Replacing a learner moves the first two by sqrt(2), and rows up to `most` by sqrt(3) `most`, with two noises.
    moments = n_learners * np.array([law @ position, law @ position**2])
    lengths.observe_moments(moments, 1.0 / sqrt(rho_of["length moments"]))
    lengths.observe_bins(n_learners * lengths.bins(law), 1.0 / sqrt(rho_of["lengths"]))
    most, _ = choose_most_rows(lengths.law()[0], n_learners, rho_of["totals"])
    counted = np.minimum(lengths.rows, most)
    lengths.observe(counted, n_learners * float(law @ counted), most * sqrt(3.0 / rho_of["totals"]))
    return lengths.law()[1]
