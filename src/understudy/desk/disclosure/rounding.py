"""Rounds numbers to what the sample supports, and to what answers without single learners agree about.

The unit is the largest power of ten that is at most a quarter of the jackknife standard error. Rounding then
moves a number by at most an eighth of its standard error and adds less than 0.6 % to its variance: no
researcher loses anything, and the digits beyond, in which code could write down a learner, do not leave.
Counts follow the same rule: a count of 30 among 120 learners has a standard error near 5 and stays exact, one of
3,000 among 10,000 is rounded to tens. Small counts are held by the number of learners behind them, not blurred.

What is rounded is the number that answers without one and two learners predict, not the full answer's own: the
run on all learners is one that code can recognise. Where predictions disagree, in a statistic that bends
or one with chance in it, the unit is at least four times as large as what they disagree by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from understudy.desk.disclosure.influences import NOISE, Influences
from understudy.desk.domain.results import Floats, Results

SHARE_OF_ERROR = 0.25
# The unit in errors of prediction, and in what counts as not moved.
UNIT_IN_ERRORS = 4.0
UNIT_IN_NOISE = 10.0
# A number that no learner's absence moves has no standard error. If it is not a constant of the code, so many digits.
DIGITS_OF_UNMOVED = 3


def units_of(influences: Influences, trial: Results) -> dict[str, float]:
    """The rounding unit of each number; 0 for one that is not rounded, as it is the same on synthetic data."""
    plain = plain_units(influences, trial)
    least = UNIT_IN_ERRORS * influences.predicted.error
    return {
        name: power_of_ten_above(least[j]) if 0 < unit < least[j] * (1 - NOISE) else unit
        for j, (name, unit) in enumerate(plain.items())
    }


def plain_units(influences: Influences, trial: Results) -> dict[str, float]:
    """The units by the standard error alone."""
    full, errors = influences.probes.full, influences.standard_error
    moved = np.asarray(influences.moved.any(axis=0))
    units = {}
    for j, name in enumerate(influences.names):
        value, error = full[j], errors[j]
        noise = UNIT_IN_NOISE * NOISE * abs(value)
        # Not only unmoved: a digit below the noise may be a learner's, and the trial's by chance.
        constant = trial.numbers.get(name) == value and not np.any(influences.steps[:, j])
        if math.isnan(value) or constant:
            units[name] = 0.0
        elif moved[j] and error > noise and error > 1e-300:
            units[name] = max(power_of_ten(SHARE_OF_ERROR * error), power_of_ten(noise or 1e-300))
        elif _is_whole(value) and abs(value) < 1e6:
            units[name] = 1.0
        else:
            units[name] = power_of_ten(abs(value) * 10.0 ** (1 - DIGITS_OF_UNMOVED)) if value else 0.0
    return units


def power_of_ten(most: float) -> float:
    """The largest power of ten that is not above `most`."""
    return float(10.0 ** max(-300, math.floor(math.log10(most) + 1e-9)))


def power_of_ten_above(least: float) -> float:
    """The smallest power of ten that is not below `least`."""
    return float(10.0 ** max(-300, math.ceil(math.log10(least) - 1e-9)))


def predicted(influences: Influences, answer: Results) -> Results:
    """The answer with every number as answers without one and two learners predict it, where they do.

    Numbers that no learner moves stay as they are.
    """
    moved = np.asarray(influences.moved.any(axis=0))
    values = dict(zip(influences.names, influences.predicted.values.tolist(), strict=True))
    kept = {name for j, name in enumerate(influences.names) if not moved[j] or math.isnan(values[name])}
    return answer.changed(lambda name, value: value if name in kept else values.get(name, value))


def rounded(results: Results, units: Mapping[str, float]) -> Results:
    """The results with every number rounded to its unit; one without a unit is rounded to 3 digits."""

    def to_unit(name: str, value: float) -> float:
        return round_value(value, units[name] if name in units else power_of_ten(abs(value) / 100 or 1.0))

    return results.changed(to_unit)


def round_vector(values: Floats, units: Floats) -> Floats:
    """Values in the last dimension rounded to their units, as `rounded` does; NaN stays and unit 0 rounds nothing."""
    coarse = np.where(units >= 1, units, 1.0)
    # A power of ten below 1 is no exact float; its inverse is. So 0.1 * 3 comes out as 3 / 10.
    fine = np.where((units > 0) & (units < 1), np.rint(1 / np.where(units > 0, units, 1.0)), 1.0)
    fine = np.maximum(fine, 1.0)
    whole = np.rint(values * fine / coarse)
    # Where the unit is below what a float can distinguish there is nothing to round.
    rounded_off = (units > 0) & (np.abs(whole) < 2**52)
    return np.asarray(np.where(rounded_off, whole * coarse / fine, values) + 0.0)


def round_value(value: float, unit: float) -> float:
    """One number rounded to its unit."""
    return float(round_vector(np.array([value]), np.array([unit]))[0])


def _is_whole(value: float) -> bool:
    return float(value).is_integer()
