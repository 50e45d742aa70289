"""Times of keystrokes: numbers in one unit, or dates; and how long keys were down.

Every time of a file has to be written in one way, or the file is refused. So nothing is guessed about numbers that
count from 1970 (which unit they are in shows on each of them), dates, or a unit that is declared or in the column's
name. What else is guessed from typing is said (`Clock.guessed`): with a guarantee it has to be declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files import times as cells
from understudy.core.files.source import keeping_values_inside
from understudy.core.files.times import has_mixed_zones, read_each_time, states_instant
from understudy.errors import DataError, UsageError

WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
# Keys are not counted in days.
UNITS = {name: cells.UNITS[name] for name in WORDS}
# Today is 1.7e9 in seconds, a thousand times as much in each finer unit: these years never meet.
FIRST, LAST = 946_684_800, 4_102_444_800  # 2000 and 2100, seconds since 1970
# The usual time from key to key, in seconds: factors of a thousand, so one unit fits.
SHORTEST_USUAL_STEP, LONGEST_USUAL_STEP = 0.01, 10.0
# The usual time for which a key is down, in seconds.
SHORTEST_USUAL_HOLD, LONGEST_USUAL_HOLD = 0.005, 5.0
# A learner needs so many steps for their usual one to be compared with others'.
MIN_STEPS = 50


@dataclass(frozen=True)
class TimeColumn:
    """Where times stand, for messages: the file, what its rows are called, their numbers, the role."""

    file: str
    place: str
    lines: pl.Series
    name: str
    role: str = "time"

    def wrong(self, what: str, row: int, hint: str, settings: tuple[str, ...] = ()) -> DataError:
        """An error that names the file, the line and the column, and no value."""
        return DataError(
            f"{self.file}: {what} (first on {self.place} {self.lines[row]}, {self.role} column).",
            hint=hint,
            code="unreadable-times",
            settings=settings,
        )


def unit_in_name(name: str) -> str | None:
    """The unit of keys that a column's name states, as in time_ms."""
    unit = cells.unit_in_name(name)
    return unit if unit in UNITS else None


def check_unit(unit: str | None) -> str | None:
    """The unit by its short name; refuses a word that is none."""
    if unit is None:
        return None
    short = {"µs": "us", "μs": "us", **{word: name for name, word in WORDS.items()}}.get(unit, unit)
    if short not in UNITS:
        raise UsageError(
            f"there is no unit '{unit}'.",
            hint="the units are ns, us, ms and s.",
            code="no-such-unit",
            settings=("unit",),
        )
    return short


@dataclass(frozen=True)
class Clock:
    """How the times of a file are written: numbers that count `unit`, from 1970 or a start of their own; else dates.

    `note` is a sentence on it, and `guessed` says that the unit was found from how fast people type.
    """

    note: str
    unit: str | None = None
    since_start: bool = False
    guessed: bool = False


def read_times(values: pl.Series, clock: Clock, column: TimeColumn) -> NDArray[np.int64]:
    """The times of all rows, none of which is missing, in nanoseconds."""
    with keeping_values_inside(
        f"{column.file}: the times cannot be read ({column.role} column).",
        hint="write them as 2024-05-31T14:05:09.123.",
    ):
        times = (
            _from_dates(values, column) if clock.unit is None else _from_numbers(values, clock.unit, column)
        )
    if not clock.since_start:
        outside = (times < FIRST * 10**9) | (times > LAST * 10**9)
        if outside.any():
            raise column.wrong(
                "times are outside the years 2000 to 2100",
                int(outside.argmax()),
                "correct or remove these rows, or choose another column or unit.",
                ("time", "unit"),
            )
    return times


def _from_dates(values: pl.Series, column: TimeColumn) -> NDArray[np.int64]:
    times, instant = read_each_time(values), states_instant(values)
    if times.null_count():
        raise column.wrong(
            "the times are in no notation that the reader knows",
            int(times.is_null().arg_max() or 0),
            "write times as 2024-05-31T14:05:09.123, or choose another column.",
            ("time",),
        )
    if instant.any() and not instant.all():
        other = instant != instant[0]
        raise column.wrong(
            "the times state a time zone on some rows only",
            int(other.arg_max() or 0),
            "write all times in one way.",
        )
    if has_mixed_zones(values.filter(~instant)):
        raise column.wrong("the times mix time zones", 0, "write all times in one zone.")
    return times.cast(pl.Int64).to_numpy() * 1000


def _from_numbers(values: pl.Series, unit: str, column: TimeColumn) -> NDArray[np.int64]:
    number, whole = _numbers(values)
    wrong = ~number.is_finite().fill_null(False)
    if wrong.any():
        raise column.wrong(
            "times are not all finite numbers", int(wrong.arg_max() or 0), "correct these rows."
        )
    large = number.abs() * UNITS[unit] >= 2**63 / 1.01
    if large.any():
        raise column.wrong(
            "times are too large",
            int(large.arg_max() or 0),
            "check the column and the unit.",
            ("time", "unit"),
        )
    # A double of today's seconds is exact to a quarter of a microsecond: finer digits are noise. Whole numbers stay
    # exact, each by itself.
    step = 1 if unit == "ns" else 1000
    rounded = (number * (UNITS[unit] / step)).round().cast(pl.Int64, strict=False) * step
    return pl.select(pl.coalesce(whole * UNITS[unit], rounded)).to_series().to_numpy()


def _numbers(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The number in each cell, and the same where it is whole; null where there is none."""
    text = values.cast(pl.String).str.strip_chars()
    return text.cast(pl.Float64, strict=False), text.cast(pl.Int64, strict=False)


def find_clock(values: pl.Series, learner: NDArray[np.int32], unit: str | None, column: TimeColumn) -> Clock:
    """How the times are written. `unit` is declared by the user; else the column's name may state it."""
    number = values.clear(len(values)) if values.dtype.is_temporal() else _numbers(values)[0]
    missing = number.is_null()
    if missing.all():
        if unit is not None:
            raise UsageError(
                f"{column.file}: a unit was given, but the times are not numbers.",
                hint="leave the unit out, or choose another column.",
                settings=("unit", "time"),
            )
        return Clock("Times were read as dates.")
    if missing.any():
        # The first row of the other kind than row 0: a number among dates, or what is not a number.
        other = ~missing if missing[0] else missing
        raise column.wrong(
            "some times are numbers and some are not",
            int(other.arg_max() or 0),
            "write all times in one notation, in one unit.",
        )
    raw = number.to_numpy()
    if not np.isfinite(raw).all():
        raise column.wrong(
            "times are not all finite numbers", int((~np.isfinite(raw)).argmax()), "correct these rows."
        )
    how = "as was asked" if unit else "from their size"
    if unit is None and (named := unit_in_name(column.name)):
        unit, how = named, "as the column's name says"
    since_1970 = _unit_since_1970(raw, unit, column)
    if since_1970 is not None:
        return Clock(f"Times were read as {WORDS[since_1970]} since 1970 ({how}).", since_1970)
    guessed = unit is None
    if unit is None:
        unit, how = _usual_unit(raw, learner, column), "from the usual step"
    _refuse_two_units(raw, learner, column)
    note = f"Times were read as {WORDS[unit]} from a start of their own ({how})."
    return Clock(note, unit, since_start=True, guessed=guessed)


def _unit_since_1970(raw: NDArray[Any], unit: str | None, column: TimeColumn) -> str | None:
    """The unit in which the numbers are dates of 2000 to 2100; None if none of them is one."""
    dated = {}
    for name, factor in UNITS.items():
        per_second = 10**9 // factor
        dated[name] = (raw >= FIRST * per_second) & (raw <= LAST * per_second)
    found = [name for name in UNITS if dated[name].any() and unit in (None, name)]
    if len(found) > 1:
        # The line to look at is the first in another unit than the first time that has one.
        first = min(int(dated[name].argmax()) for name in found)
        other = np.logical_or.reduce([dated[name] for name in found if not dated[name][first]])
        raise column.wrong(
            "the times are in mixed units: some look like "
            + " and some like ".join(WORDS[name] for name in found)
            + " since 1970",
            int(other.argmax()),
            "write all times in one unit.",
        )
    if not found:
        return None
    since_1970 = dated[found[0]]
    if not since_1970.all():
        raise column.wrong(
            f"most times are {WORDS[found[0]]} since 1970 and some are not: mixed units, or rows without a time"
            if since_1970.mean() > 0.5
            else f"some times look like {WORDS[found[0]]} since 1970 and most do not: mixed units",
            int((~since_1970).argmax()),
            "write all times in one unit and count them from one moment; if they are counted from a start of "
            "their own, name the unit.",
            ("unit",),
        )
    return found[0]


def _steps(values: NDArray[Any], learner: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Steps forward from a learner's row to their next one, and whose they are."""
    order = np.argsort(learner, kind="stable")
    who, when = learner[order], values[order].astype(np.float64)
    step = np.diff(when)
    forward = (who[1:] == who[:-1]) & (step > 0)
    return step[forward], who[1:][forward]


def _usual_unit(values: NDArray[Any], learner: NDArray[np.int32], column: TimeColumn) -> str:
    step, _ = _steps(values, learner)
    usual = float(np.median(step)) if len(step) else np.nan
    for unit, factor in UNITS.items():
        if SHORTEST_USUAL_STEP <= usual * factor / 1e9 < LONGEST_USUAL_STEP:
            return unit
    raise DataError(
        f"{column.file}: the unit of the times cannot be inferred: they are not dates, and their steps are not "
        f"those of typing ({column.role} column).",
        hint="name the unit: ms, ns, us or s.",
        code="unknown-unit",
        settings=("unit",),
    )


def _refuse_two_units(values: NDArray[Any], learner: NDArray[np.int32], column: TimeColumn) -> None:
    """Refuse learners whose usual step is a hundred times another's: files in two units were joined."""
    step, who = _steps(values, learner)
    n_steps = np.bincount(who) if len(who) else np.zeros(0, dtype=np.int64)
    ends = np.cumsum(n_steps)
    enough = np.flatnonzero(n_steps >= MIN_STEPS)
    usual = np.array([np.median(step[ends[at] - n_steps[at] : ends[at]]) for at in enough])
    if len(usual) > 1 and usual.max() > 100 * usual.min():
        middle = np.median(usual)
        odd = enough[int(np.abs(np.log(usual / middle)).argmax())]
        raise column.wrong(
            "the usual step of one learner is over a hundred times another's: the times are in mixed units",
            int((learner == odd).argmax()),
            "write all times in one unit.",
        )


def read_holds(values: pl.Series, name: str) -> NDArray[np.int64]:
    """How long keys were down in nanoseconds, -1 where the file does not state it.

    The unit is the one in the column's name, or else guessed: the one in which keys are usually down for
    5 ms to 5 s.
    """
    numbers = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    known = np.isfinite(numbers) & (numbers >= 0)
    held = np.full(len(numbers), -1, dtype=np.int64)
    if known.any():
        unit = unit_in_name(name) or _usual_hold_unit(numbers[known])
        fits = known & (numbers * UNITS[unit] < 2**63 / 1.01)
        held[fits] = np.round(numbers[fits] * UNITS[unit]).astype(np.int64)
    return held


def _usual_hold_unit(held: NDArray[np.float64]) -> str:
    usual = float(np.median(held))
    fitting = [
        unit
        for unit, factor in UNITS.items()
        if SHORTEST_USUAL_HOLD <= usual * factor / 1e9 < LONGEST_USUAL_HOLD
    ]
    return fitting[0] if fitting else "ms"


def read_releases(
    values: pl.Series, pressed: NDArray[np.int64], clock: Clock, column: TimeColumn
) -> NDArray[np.int64]:
    """How long keys were down, from the time of their release on the clock of the presses; -1 where missing."""
    known = (values.is_not_null() & (values.cast(pl.String).str.strip_chars() != "")).to_numpy()
    held = np.full(len(values), -1, dtype=np.int64)
    if known.any():
        there = TimeColumn(column.file, column.place, column.lines.filter(known), column.name, "release")
        held[known] = read_times(values.filter(known), clock, there) - pressed[known]
    return np.maximum(held, -1)
