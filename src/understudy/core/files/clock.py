"""Times of keystrokes as nanoseconds: dates, or numbers in a unit that their size gives away."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.source import keeping_values_inside
from understudy.core.files.times import UnreadableTimesError, parse_times
from understudy.errors import DataError, UsageError

UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
# Today is 1.7e9 in seconds, a thousand times as much in each finer unit: these years never meet.
FIRST, LAST = 946_684_800, 4_102_444_800  # 2000 and 2100, seconds since 1970
# The usual time from key to key, in seconds: factors of a thousand, so one unit fits.
SHORT_STEP, LONG_STEP = 0.01, 10.0
FAR = 2**63 / 1.01  # nanoseconds that fit
_NAMED_UNIT = re.compile(
    r"(?:^|[_\s.(\-])(?:(ns|nanoseconds?)|(us|µs|μs|microseconds?)|(ms|millis|milliseconds?)|(s|sec|seconds?))\)?$",
    re.IGNORECASE,
)
_ISO = tuple(f"%Y-%m-%d{mark}%H:%M:%S%.f{zone}" for mark in "T " for zone in ("Z", "", "%:z"))


@dataclass(frozen=True, repr=False)
class Clock:
    """Nanoseconds: since 1970, or (`relative`) since a moment that the file does not tell."""

    time: NDArray[np.int64]
    relative: bool
    unit: str | None  # None: dates
    note: str


@dataclass(frozen=True)
class Column:
    """Where times stand, for messages: the file, what its rows are called, their numbers, the role."""

    file: str
    place: str
    lines: pl.Series
    name: str
    role: str = "time"

    def wrong(self, what: str, row: int, hint: str) -> DataError:
        """An error that names the file, the line and the column, and no value."""
        return DataError(
            f"{self.file}: {what} (first on {self.place} {self.lines[row]}, {self.role} column).", hint=hint
        )


def check_unit(unit: str | None) -> str | None:
    """The unit by its short name; refuses what is none."""
    if unit is None:
        return None
    short = {"µs": "us", "μs": "us", **{word: name for name, word in WORDS.items()}}.get(unit, unit)
    if short not in UNITS:
        raise UsageError(f"there is no unit '{unit}'.", hint="the units are ns, us, ms and s.")
    return short


def read_clock(values: pl.Series, learner: NDArray[np.int32], unit: str | None, column: Column) -> Clock:
    """The times of all rows, none of which is missing."""
    if values.dtype.is_temporal():
        return _from_dates(values, unit, column)
    if values.dtype == pl.String:
        numbers = values.cast(pl.Int64, strict=False)
        if numbers.null_count():
            numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
    else:
        numbers = values
    missing = numbers.is_null()
    if missing.all():
        return _from_dates(values, unit, column)
    if missing.any():
        # Row by row the other kind than the first: a number among dates, or what is no number.
        other = ~missing if missing[0] else missing
        row = int(other.arg_max() or 0)
        raise column.wrong(
            "some times are numbers and some are not", row, "write all times in one notation, in one unit."
        )
    return _from_numbers(numbers, learner, unit, column)


def _from_dates(values: pl.Series, unit: str | None, column: Column) -> Clock:
    if unit is not None:
        raise UsageError(
            f"{column.file}: a unit was given, but the times are no numbers.",
            hint="leave --unit out, or choose the column with --time.",
        )
    times = None if values.dtype.is_temporal() else _iso(values)
    if times is None:
        with keeping_values_inside(
            f"{column.file}: the times cannot be read ({column.role} column).",
            hint="write them as 2024-05-31T14:05:09.123.",
        ):
            try:
                times = parse_times(values, asked=True, one_zone=False)
            except UnreadableTimesError as error:
                raise column.wrong(
                    f"the times {error.reason}",
                    error.row,
                    "write times as 2024-05-31T14:05:09.123, or choose the column with --time.",
                ) from None
    microseconds = times.cast(pl.Int64).to_numpy()
    _check_years(microseconds / 1e6, column)
    return Clock(microseconds * 1000, False, None, "Times were read as dates.")


def _iso(values: pl.Series) -> pl.Series | None:
    """The usual notations in one pass each; None where none of them fits all rows."""
    text = values.str.strip_chars()
    for notation in _ISO:
        for some in (text.head(100), text):
            times = some.str.to_datetime(notation, time_unit="us", strict=False)
            if times.null_count():
                break
        else:
            return times
    return None


def _check_years(seconds: NDArray[np.float64], column: Column) -> None:
    """Dates of learning lie in 2000 to 2100, or a field was misread."""
    outside = (seconds < FIRST) | (seconds > LAST)
    if outside.any():
        raise column.wrong(
            "times lie outside the years 2000 to 2100",
            int(outside.argmax()),
            "correct or remove these rows, or choose the column with --time.",
        )


def _from_numbers(numbers: pl.Series, learner: NDArray[np.int32], unit: str | None, column: Column) -> Clock:
    values = numbers.to_numpy()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise column.wrong(
            "times are not all finite numbers", int((~np.isfinite(values)).argmax()), "correct these rows."
        )
    how = "as was asked" if unit else "from their size"
    if unit is None and (named := _NAMED_UNIT.search(column.name)):
        unit, how = _unit_in(named), "as the column's name says"
    dated = {one: (values >= FIRST * (10**9 // UNITS[one])) for one in UNITS}
    for one in UNITS:
        dated[one] &= values <= LAST * (10**9 // UNITS[one])
    found = [one for one in UNITS if dated[one].any() and unit in (None, one)]
    if len(found) > 1:
        # The line to look at is the first in another unit than the first time that has one.
        first = min(int(dated[one].argmax()) for one in found)
        other = np.logical_or.reduce([dated[one] for one in found if not dated[one][first]])
        raise column.wrong(
            "the times are in mixed units: some look like "
            + " and some like ".join(WORDS[one] for one in found)
            + " since 1970",
            int(other.argmax()),
            "write all times in one unit; --unit cannot tell which rows are meant.",
        )
    if found:
        chosen = found[0]
        if not dated[chosen].all():
            raise column.wrong(
                f"most times are {WORDS[chosen]} since 1970 and some are not: mixed units, or rows without a time"
                if dated[chosen].mean() > 0.5
                else f"some times look like {WORDS[chosen]} since 1970 and most do not: mixed units",
                int((~dated[chosen]).argmax()),
                "write all times in one unit and count them from one moment; if they are counted from a start of "
                "their own, say in which unit with --unit.",
            )
        note = f"Times were read as {WORDS[chosen]} since 1970 ({how})."
        return Clock(_nanoseconds(values, chosen, column), False, chosen, note)
    if unit is None:
        unit, how = _unit_of_steps(values, learner, column)
    _check_one_unit(values, learner, column)
    note = f"Times were read as {WORDS[unit]} from a start of their own ({how})."
    return Clock(_nanoseconds(values, unit, column), True, unit, note)


def _nanoseconds(values: NDArray[np.generic], unit: str, column: Column) -> NDArray[np.int64]:
    factor = UNITS[unit]
    large = np.abs(values.astype(np.float64)) * factor >= FAR
    if large.any():
        raise column.wrong(
            "times are too large", int(large.argmax()), "check the column, and the unit (--unit)."
        )
    if values.dtype.kind in "iu":
        return values.astype(np.int64) * factor
    # A double of today's seconds is exact to a quarter of a microsecond: finer digits are noise.
    grain = min(factor, 1000)
    return np.round(values.astype(np.float64) * (factor // grain)).astype(np.int64) * grain


def steps(
    values: NDArray[np.generic], learner: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Steps forward from a learner's row to their next one, and whose they are."""
    order = np.argsort(learner, kind="stable")
    who, when = learner[order], values[order].astype(np.float64)
    step = np.diff(when)
    forward = (who[1:] == who[:-1]) & (step > 0)
    return step[forward], who[1:][forward]


def _unit_of_steps(
    values: NDArray[np.generic], learner: NDArray[np.int32], column: Column
) -> tuple[str, str]:
    step, _ = steps(values, learner)
    usual = float(np.median(step)) if len(step) else np.nan
    for unit, factor in UNITS.items():
        if SHORT_STEP <= usual * factor / 1e9 < LONG_STEP:
            return unit, "from the usual step"
    raise DataError(
        f"{column.file}: the unit of the times cannot be told: they are no dates, and their steps are not "
        f"those of typing ({column.role} column).",
        hint="say it: --unit ms (or ns, us, s).",
    )


def _check_one_unit(values: NDArray[np.generic], learner: NDArray[np.int32], column: Column) -> None:
    """Refuse learners whose usual step is a hundred times another's: files in two units were joined."""
    step, who = steps(values, learner)
    n_steps = np.bincount(who) if len(who) else np.zeros(0, dtype=np.int64)
    ends = np.cumsum(n_steps)
    enough = np.flatnonzero(n_steps >= 50)
    usual = np.array([np.median(step[ends[one] - n_steps[one] : ends[one]]) for one in enough])
    if len(usual) > 1 and usual.max() > 100 * usual.min():
        middle = np.median(usual)
        odd = enough[int(np.abs(np.log(usual / middle)).argmax())]
        raise column.wrong(
            "the usual step of one learner is over a hundred times another's: the times are in mixed units",
            int((learner == odd).argmax()),
            "write all times in one unit.",
        )


def read_holds(values: pl.Series, name: str) -> NDArray[np.int64]:
    """How long keys were down in nanoseconds, -1 where that is not told.

    The unit is the one in the column's name, or the one in which keys are usually down for 5 ms to 5 s.
    """
    numbers = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    known = np.isfinite(numbers) & (numbers >= 0)
    held = np.full(len(numbers), -1, dtype=np.int64)
    if not known.any():
        return held
    if named := _NAMED_UNIT.search(name):
        unit = _unit_in(named)
    else:
        usual = float(np.median(numbers[known]))
        unit = next((one for one, factor in UNITS.items() if 0.005 <= usual * factor / 1e9 < 5), "ms")
    fits = known & (numbers * UNITS[unit] < FAR)
    held[fits] = np.round(numbers[fits] * UNITS[unit]).astype(np.int64)
    return held


def read_releases(values: pl.Series, clock: Clock, column: Column) -> NDArray[np.int64]:
    """How long keys were down, from the time of their release on the same clock; -1 where it is not told."""
    known = (values.is_not_null() & (values.cast(pl.String).str.strip_chars() != "")).to_numpy()
    released = np.full(len(values), -1, dtype=np.int64)
    if known.any():
        some = Column(column.file, column.place, column.lines.filter(known), column.name, "release")
        nobody = np.zeros(int(known.sum()), dtype=np.int32)
        released[known] = read_clock(values.filter(known), nobody, clock.unit, some).time - clock.time[known]
    return np.maximum(released, -1)


def _unit_in(named: re.Match[str]) -> str:
    return ("ns", "us", "ms", "s")[next(at for at, one in enumerate(named.groups()) if one)]
