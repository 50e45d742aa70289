"""Times of keystrokes: numbers in one unit, or dates; and how long keys were down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files import times as cells
from understudy.core.files.source import keeping_values_inside
from understudy.core.files.times import read_each_time
from understudy.errors import DataError, UsageError

WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
# Keys are not counted in days.
UNITS = {name: cells.UNITS[name] for name in WORDS}
# Today is 1.7e9 in seconds, a thousand times as much in each finer unit: these years never meet.
FIRST, LAST = 946_684_800, 4_102_444_800  # 2000 and 2100, seconds since 1970


@dataclass(frozen=True)
class TimeColumn:
    """Where times stand, for messages: the file, what its rows are called, the column; `partial` in a part of it."""

    file: str
    place: str
    name: str
    role: str = "time"
    partial: bool = False

    def wrong(self, what: str, line: int, hint: str, settings: tuple[str, ...] = ()) -> DataError:
        """An error that names the file, the line and the column, and no value."""
        where = f"{'' if self.partial else 'first '}on {self.place} {line}"
        return DataError(
            f"{self.file}: {what} ({where}, {self.role} column).",
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


def read_times(values: pl.Series, lines: pl.Series, clock: Clock, column: TimeColumn) -> NDArray[np.int64]:
    """The times of all rows, none of which is missing, in nanoseconds; `lines` are their places in the file."""
    with keeping_values_inside(
        f"{column.file}: the times cannot be read ({column.role} column).",
        hint="write them as 2024-05-31T14:05:09.123.",
    ):
        times = (
            _from_dates(values, lines, column)
            if clock.unit is None
            else _from_numbers(values, lines, clock.unit, column)
        )
    if not clock.since_start:
        outside = (times < FIRST * 10**9) | (times > LAST * 10**9)
        if outside.any():
            raise column.wrong(
                "times are outside the years 2000 to 2100",
                lines[int(outside.argmax())],
                "correct or remove these rows, or choose another column or unit.",
                ("time", "unit"),
            )
    return times


def _from_dates(values: pl.Series, lines: pl.Series, column: TimeColumn) -> NDArray[np.int64]:
    times = read_each_time(values)
    if times.null_count():
        raise column.wrong(
            "the times are in no notation that the reader knows",
            lines[int(times.is_null().arg_max() or 0)],
            "write times as 2024-05-31T14:05:09.123, or choose another column.",
            ("time",),
        )
    return times.cast(pl.Int64).to_numpy() * 1000


def _from_numbers(values: pl.Series, lines: pl.Series, unit: str, column: TimeColumn) -> NDArray[np.int64]:
    number, whole = numbers_in(values)
    wrong = ~number.is_finite().fill_null(False)
    if wrong.any():
        raise column.wrong(
            "times are not all finite numbers", lines[int(wrong.arg_max() or 0)], "correct these rows."
        )
    large = number.abs() * UNITS[unit] >= 2**63 / 1.01
    if large.any():
        raise column.wrong(
            "times are too large",
            lines[int(large.arg_max() or 0)],
            "check the column and the unit.",
            ("time", "unit"),
        )
    # A double of today's seconds is exact to a quarter of a microsecond: finer digits are noise. Whole numbers stay
    # exact, each by itself.
    step = 1 if unit == "ns" else 1000
    rounded = (number * (UNITS[unit] / step)).round().cast(pl.Int64, strict=False) * step
    return pl.select(pl.coalesce(whole * UNITS[unit], rounded)).to_series().to_numpy()


def numbers_in(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The number in each cell, and the same where it is whole; null where there is none."""
    text = values.cast(pl.String).str.strip_chars()
    return text.cast(pl.Float64, strict=False), text.cast(pl.Int64, strict=False)


def hold_numbers(values: pl.Series) -> NDArray[np.float64]:
    """How long keys were down, as the file states it; nan where it does not."""
    numbers = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    return np.where(np.isfinite(numbers) & (numbers >= 0), numbers, np.nan)


def read_holds(values: pl.Series, unit: str) -> NDArray[np.int64]:
    """How long keys were down in nanoseconds, -1 where the file does not state it."""
    numbers = hold_numbers(values)
    held = np.full(len(numbers), -1, dtype=np.int64)
    fits = numbers * UNITS[unit] < 2**63 / 1.01
    held[fits] = np.round(numbers[fits] * UNITS[unit]).astype(np.int64)
    return held


def is_stated(values: pl.Series) -> pl.Series:
    """Whether a cell holds a time."""
    return values.is_not_null() & (values.cast(pl.String).str.strip_chars() != "")


def read_releases(
    values: pl.Series, lines: pl.Series, pressed: NDArray[np.int64], clock: Clock, column: TimeColumn
) -> NDArray[np.int64]:
    """How long keys were down, from the time of their release on the clock of the presses; -1 where missing."""
    known = is_stated(values)
    held = np.full(len(values), -1, dtype=np.int64)
    if known.any():
        times = read_times(values.filter(known), lines.filter(known), clock, column)
        held[known.to_numpy()] = times - pressed[known.to_numpy()]
    return np.maximum(held, -1)
