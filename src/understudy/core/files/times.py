"""Times in files: read by a declared notation. How a column is written can be guessed, in a step of its own.

`parse_times` reads each row by the declared notation and decides nothing by the data. `guess_notation` looks at the
rows: its answer depends on learners, so a release with a formal guarantee has to declare the notation instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from enum import Enum

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ticks = NDArray[np.int64]

# Nanoseconds of each unit.
UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
# Smaller numbers, before 1973 as seconds, are as likely to be durations.
FIRST_EPOCH_SECOND = 1e8
_CLOCK = r"(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2}))?"
_TWELVE_HOURS = r",? " + _CLOCK + r"(?: ?(?<half>[AaPp])\.?[Mm]\.?)?"
_YEAR = r"(?<year>\d{4}|\d{2})"
_ISO = (
    r"^(?<year>\d{4})[-/](?<month>\d{1,2})[-/](?<day>\d{1,2})"
    rf"(?:[T ]+{_CLOCK}(?:[.,](?<fraction>\d{{1,9}}))? ?(?<zone>Z|UTC|GMT|[+-]\d{{2}}(?::?\d{{2}})?)?)?$"
)
# "11/05/24, 09:44", "3.4.2024", "03.10., 09:44"; whether the day comes first has to be known.
_NUMERIC = rf"^(?<first>\d{{1,2}})(?<mark>[./-])(?<other>\d{{1,2}})(?:[./-]{_YEAR}|\.)?(?:{_TWELVE_HOURS})?$"
# "11 May, 09:44", "Friday, 11. Mai 2018, 09:44"; "May 11, 2018, 9:44 AM".
_WORDS = (
    r"^(?:\p{L}+\.?,? )?(?<day>\d{1,2})\.? (?:de )?(?<month>\p{L}{3,})\.?(?: de)?"
    rf"(?:,? {_YEAR})?{_TWELVE_HOURS}$",
    rf"^(?:\p{{L}}+\.?, )?(?<month>\p{{L}}{{3,}})\.? (?<day>\d{{1,2}})(?:,? {_YEAR})?{_TWELVE_HOURS}$",
)
# ISO notations that are read in one pass each, without and with a zone.
_FAST = {
    zones: tuple(f"%Y-%m-%d{mark}%H:%M:%S%.f{zone}" for mark in "T " for zone in written)
    for zones, written in ((False, ("",)), (True, ("Z", "%:z")))
}
# English, German, French and Spanish; as many letters as distinguish the months.
_MONTHS = (
    *("jan ene", "feb fév fev", "mar mär mae", "apr avr abr", "may mai", "jun juin"),
    *("jul juil", "aug aoû aou ago", "sep", "oct okt", "nov", "dec dez déc dic"),
)
_MONTH_NUMBERS = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}
_NAMED_ZONE = r"\d (?:[AaPp][Mm] )?([A-Z]{3,5})$"
_ZONE_AT_END = r"(\d(?: [AaPp][Mm])?) [A-Z]{3,5}$"
_NAMED_UNIT = re.compile(
    r"(?:^|[_\s.(\-])(?:(ns|nanoseconds?)|(us|µs|μs|microseconds?)|(ms|millis|milliseconds?)|(s|sec|seconds?))\)?$",
    re.IGNORECASE,
)


class UnreadableTimesError(ValueError):
    """Times could not be read: why, in words and by a code, and in which row first. Holds no value.

    Codes: unknown-notation, not-a-time, ambiguous-order, mixed, mixed-zones, durations, too-large.
    """

    def __init__(self, reason: str, row: int = 0, *, code: str = "unknown-notation") -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        self.code = code


class DateOrder(Enum):
    """What comes first in a date such as 3/4/2024."""

    day_first = "day-first"
    month_first = "month-first"


class Form(Enum):
    """How times are written."""

    typed = "typed"  # as dates of the file's format: Parquet, Excel
    iso = "iso"  # 2024-05-31 14:05:09
    numeric = "numeric"  # 31/5/2024 14:05
    words = "words"  # 31 May 2024, 14:05
    numbers = "numbers"  # counted in a unit


class TimeKind(Enum):
    """What times count from."""

    instant = "instant"  # 1970 in UTC
    local = "local"  # 1970 on the clock of the place where they were written down, which is not stated
    since_start = "since start"  # a moment that the file does not state


@dataclass(frozen=True)
class TimeNotation:
    """How the times of a column are written; whoever declares it decides nothing by the data.

    `unit` and `since_start` are about numbers: s, ms, us or ns, from 1970 or from a start of their own. `zones`
    says that every ISO time states its offset from UTC, `zone_name` what follows every time otherwise
    (CET). `order` is that of numeric dates. A date without a year is the first such day from `first_day` on.
    `why` is a sentence on how a guessed notation was found.
    """

    form: Form
    unit: str = "s"
    since_start: bool = False
    zones: bool = False
    zone_name: str = ""
    order: DateOrder = DateOrder.day_first
    first_day: date | None = None
    why: str = field(default="", compare=False)


@dataclass(frozen=True, repr=False)
class ParsedTimes:
    """Times as whole numbers, `per_second` to the second; `notes` are sentences with counts."""

    ticks: Ticks
    per_second: int
    kind: TimeKind
    notes: tuple[str, ...] = ()

    @property
    def datetimes(self) -> pl.Series:
        """The times as dates in microseconds."""
        return pl.Series(self.ticks // (self.per_second // 1_000_000)).cast(pl.Datetime("us"))

    @property
    def nanoseconds(self) -> Ticks:
        """The times in nanoseconds, which hold three centuries around 1970."""
        factor = 1_000_000_000 // self.per_second
        large = np.abs(self.ticks) >= 2**63 // factor
        if large.any():
            raise UnreadableTimesError("are too large", int(large.argmax()), code="too-large")
        return self.ticks * factor


def unit_in_name(name: str) -> str | None:
    """The unit that a column's name states, as in time_ms."""
    found = _NAMED_UNIT.search(name)
    return (
        None
        if found is None
        else ("ns", "us", "ms", "s")[[bool(part) for part in found.groups()].index(True)]
    )


# Reading by a declared notation


def parse_times(values: pl.Series, notation: TimeNotation, *, one_zone: bool = False) -> ParsedTimes:
    """The times of a column; raises `UnreadableTimesError` unless every one can be read.

    With `one_zone`, rows that state different zones are refused: in a table that is more often a mistake
    of an export than meant.
    """
    if notation.form is Form.numbers:
        return _from_numbers(values, notation)
    if notation.form is Form.typed:
        return _from_typed(values)
    if notation.form is Form.iso and not notation.zone_name and not (notation.zones and one_zone):
        times = _fast_iso(values, notation)
        if times is not None:
            return _parsed(times, notation)
    text = _clean(values)
    if notation.zone_name:
        # One zone throughout: its offset moves every time alike (but for the change to summer time).
        bare = text.str.strip_suffix(f" {notation.zone_name}")
        _refuse(bare == text, "mix time zones", "mixed-zones")
        text = bare
    if notation.form is Form.iso:
        fields = text.str.extract_groups(_ISO).struct.unnest()
        _refuse(fields["day"].is_null(), _NOT_A_TIME, "not-a-time")
        offset = _offsets(fields["zone"], notation, one_zone=one_zone)
        return _from_fields(fields, notation, offset)
    if notation.form is Form.words:
        fields = _word_fields(text)
        _refuse(fields["day"].is_null(), _NOT_A_TIME, "not-a-time")
        return _from_fields(fields, notation)
    return _from_fields(_day_and_month(_numeric_fields(text), notation.order), notation)


_NOT_A_TIME = "hold something that is not a time, or is not written like the others"


def _refuse(wrong: pl.Series, reason: str, code: str) -> None:
    """Raise an error for the first row that is wrong or missing."""
    wrong = wrong.fill_null(True)
    if wrong.any():
        raise UnreadableTimesError(reason, int(wrong.arg_max() or 0), code=code)


def _parsed(times: pl.Series, notation: TimeNotation, notes: tuple[str, ...] = ()) -> ParsedTimes:
    kind = TimeKind.instant if notation.zones else TimeKind.local
    said = tuple(note for note in (notation.why, *notes) if note)
    return ParsedTimes(times.cast(pl.Int64).to_numpy(), 1_000_000, kind, said)


def _from_typed(values: pl.Series) -> ParsedTimes:
    if not isinstance(values.dtype, pl.Datetime | pl.Date):
        raise UnreadableTimesError("are times of day or durations")
    _refuse(values.is_null(), _NOT_A_TIME, "not-a-time")
    zones = isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None
    return _parsed(values.cast(pl.Datetime("us")), TimeNotation(Form.typed, zones=zones))


def as_numbers(values: pl.Series) -> pl.Series:
    """The values as numbers, whole ones where all are; null where a text is not a number."""
    if values.dtype.is_numeric():
        return values
    text = values.cast(pl.String).str.strip_chars()
    numbers = text.cast(pl.Int64, strict=False)
    return text.cast(pl.Float64, strict=False) if numbers.null_count() else numbers


def _from_numbers(values: pl.Series, notation: TimeNotation) -> ParsedTimes:
    numbers = as_numbers(values)
    _refuse(~numbers.is_finite(), "are not all finite numbers", "not-a-time")
    # A double of today's seconds is exact to a quarter of a microsecond: finer digits are noise.
    per_second = 1_000_000_000 if notation.unit == "ns" else 1_000_000
    factor = UNITS[notation.unit] * per_second // 1_000_000_000
    raw = numbers.to_numpy()
    large = np.abs(raw.astype(np.float64)) * factor >= 2**63 / 1.01
    _refuse(pl.Series(large), "are too large", "too-large")
    ticks = (
        raw.astype(np.int64) * factor if raw.dtype.kind in "iu" else np.round(raw * factor).astype(np.int64)
    )
    kind = TimeKind.since_start if notation.since_start else TimeKind.instant
    return ParsedTimes(ticks, per_second, kind, (notation.why,) if notation.why else ())


def _fast_iso(values: pl.Series, notation: TimeNotation) -> pl.Series | None:
    """The usual notations in one pass each; None where none of them fits all rows."""
    text = values.cast(pl.String).str.strip_chars()
    for written in _FAST[notation.zones]:
        for rows in (text.head(100), text):
            times = rows.str.to_datetime(written, time_unit="us", strict=False)
            if times.null_count():
                break
        else:
            return times
    return None


def _clean(values: pl.Series) -> pl.Series:
    return values.cast(pl.String).str.replace_all(r"[\s\u00a0\u202f]+", " ").str.strip_chars()


def _offsets(zone: pl.Series, notation: TimeNotation, *, one_zone: bool) -> pl.Series | None:
    """What each time is ahead of UTC, where the notation says that times state it."""
    _refuse(zone.is_null() == notation.zones, "state a time zone on some rows only", "mixed-zones")
    if not notation.zones:
        return None
    if one_zone:
        _refuse(zone != zone[0], "mix time zones", "mixed-zones")
    return _ahead_of_utc(zone)


def _ahead_of_utc(zone: pl.Series) -> pl.Series:
    hours = zone.str.extract(r"^[+-](\d{2})").cast(pl.Int64).fill_null(0)
    minutes = zone.str.extract(r"^[+-]\d{2}:?(\d{2})$").cast(pl.Int64).fill_null(0)
    sign = zone.str.starts_with("-").cast(pl.Int64) * -2 + 1
    return ((hours * 60 + minutes) * 60_000_000 * sign).cast(pl.Duration("us"))


def _word_fields(text: pl.Series) -> pl.DataFrame:
    day_first, month_first = (text.str.extract_groups(pattern).struct.unnest() for pattern in _WORDS)
    fields = pl.select(
        pl.coalesce(day_first[name], month_first[name]).alias(name) for name in day_first.columns
    )
    word = pl.col("month").str.to_lowercase()
    # "juin" and "juillet" differ in their fourth letter.
    letters = pl.when(word.str.starts_with("jui")).then(4).otherwise(3)
    return fields.with_columns(
        word.str.slice(0, letters).replace_strict(_MONTH_NUMBERS, default=None, return_dtype=pl.Int64)
    )


def _numeric_fields(text: pl.Series) -> pl.DataFrame:
    fields = text.str.extract_groups(_NUMERIC).struct.unnest()
    # "3/4" alone is a fraction as likely as a day.
    incomplete = fields["year"].is_null() & fields["hour"].is_null()
    _refuse(fields["first"].is_null() | incomplete, _NOT_A_TIME, "not-a-time")
    return fields.with_columns(pl.col("first", "other").cast(pl.Int64))


_WRITTEN = {DateOrder.day_first: "day/month", DateOrder.month_first: "month/day"}


def _day_and_month(fields: pl.DataFrame, order: DateOrder) -> pl.DataFrame:
    names = ("day", "month") if order is DateOrder.day_first else ("month", "day")
    fields = fields.rename(dict(zip(("first", "other"), names, strict=True)))
    reason = f"cannot be {_WRITTEN[order]}, as was asked: a month above 12 does not exist"
    _refuse(fields["month"] > 12, reason, "ambiguous-order")
    return fields


def _from_fields(
    fields: pl.DataFrame, notation: TimeNotation, offset: pl.Series | None = None
) -> ParsedTimes:
    """Times from their parts; a year that is not written follows `first_day`."""
    yearless = fields["year"].is_null()
    if notation.first_day is None:
        _refuse(yearless, "state no year", "not-a-time")
    times = _datetimes(fields, notation.first_day)
    _refuse(times.is_null(), "name a day, month or hour that does not exist", "not-a-time")
    note = f"{yearless.sum()} times have no year: each was put on the first such day from {notation.first_day} on."
    return _parsed(times if offset is None else times - offset, notation, (note,) if yearless.any() else ())


def _datetimes(fields: pl.DataFrame, first_day: date | None = None) -> pl.Series:
    """Times from their parts; null for those that do not exist, a part of the clock that is not written is 0."""
    for name in ("half", "fraction"):
        if name not in fields.columns:
            fields = fields.with_columns(pl.lit(None, pl.String).alias(name))
    numbers = fields.with_columns(
        pl.col("day", "month", "hour", "minute", "second", "year").cast(pl.Int64, strict=False)
    )
    month, day, hour, year = (pl.col(name) for name in ("month", "day", "hour", "year"))
    full_year = pl.when(year < 100).then(2000 + year).otherwise(year)
    if first_day is not None:
        before = (month < first_day.month) | ((month == first_day.month) & (day < first_day.day))
        full_year = full_year.fill_null(first_day.year + before.cast(pl.Int64))
    late = pl.col("half").str.to_lowercase() == "p"
    full_hour = (
        pl.when(pl.col("half").is_null())
        .then(hour.fill_null(0))
        .when(hour.is_between(1, 12))
        .then(hour % 12 + 12 * late.cast(pl.Int64))
    )
    # As text: a day that the calendar lacks becomes null, where building a date would fail.
    written = numbers.select(
        pl.format(
            "{}-{}-{} {}:{}:{}.{}",
            full_year,
            month,
            day,
            full_hour,
            pl.col("minute").fill_null(0),
            pl.col("second").fill_null(0),
            pl.col("fraction").fill_null("0"),
        )
    ).to_series()
    return written.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)


# Reading each cell by itself

# Seconds from 1970 to 2100: a number outside is no time of an event.
_LAST_EPOCH_SECOND = 4_102_444_800


def read_each_time(
    values: pl.Series,
    *,
    unit: str = "s",
    order: DateOrder | None = None,
    since_start: bool = False,
    first_day: date | None = None,
) -> pl.Series:
    """The time in each cell, by that cell alone: null where it holds none.

    The rule is fixed, so that no row decides how another one is read: a number counts `unit` from 1970, and
    lies between 1973 and 2100 unless times may count from another start (`since_start`); a text is ISO 8601,
    with or without an offset from UTC; a date with the month in words; a date in numbers, by points as
    day.month.year, by other marks in the declared `order`. A date without a year is the first such day from
    `first_day` on, if that is given.
    """
    if isinstance(values.dtype, pl.Datetime | pl.Date):
        return values.cast(pl.Datetime("us"))
    # The name of a zone moves all times alike (but for the change to summer time): their order stays.
    text = _clean(values).str.replace(_ZONE_AT_END, "$1")
    number = text.cast(pl.Float64, strict=False)
    whole = text.cast(pl.Int64, strict=False)
    seconds = number * (UNITS[unit] / 1e9)
    counted = number.is_finite() & (seconds.abs() < 2**43)
    if not since_start:
        counted &= seconds.is_between(FIRST_EPOCH_SECOND, _LAST_EPOCH_SECOND)
    # Whole numbers stay exact; fractions are exact to the microsecond.
    exact = whole * UNITS[unit] // 1000 if UNITS[unit] >= 1000 else whole // 1000
    ticks = pl.select(
        pl.when(counted).then(pl.coalesce(exact, (seconds * 1e6).round().cast(pl.Int64, strict=False)))
    ).to_series()
    times = ticks.cast(pl.Datetime("us"))
    for fill in (_each_iso, _each_in_words, _each_in_numbers):
        left = (times.is_null() & number.is_null() & text.is_not_null()).arg_true()
        if not len(left):
            break
        times = times.scatter(left, fill(text.gather(left), order, first_day))
    return times


def states_instant(values: pl.Series) -> pl.Series:
    """Whether the time in each cell is an instant: a number from 1970, or a text that states its offset from UTC."""
    if isinstance(values.dtype, pl.Datetime | pl.Date):
        aware = isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None
        return pl.repeat(aware, len(values), dtype=pl.Boolean, eager=True)
    text = _clean(values)
    number = text.cast(pl.Float64, strict=False)
    zone = text.str.extract(r":\d{2}(?:[.,]\d+)? ?(?:[AaPp]\.?[Mm]\.? )?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)$")
    return number.is_not_null() | zone.is_not_null()


def has_mixed_zones(values: pl.Series) -> bool:
    """Whether some texts state another time zone than others, or none: more often a mistake than meant."""
    if values.dtype != pl.String:
        return False
    zone = _clean(values).str.extract(r"\d ?(Z|[+-]\d{2}:?\d{2}|(?:[AaPp][Mm] )?[A-Z]{3,5})$")
    return zone.n_unique() > 1 and zone.replace(["Z", "GMT", "UTC", "+0000"], "+00:00").n_unique() > 1


def _each_iso(text: pl.Series, order: DateOrder | None, first_day: date | None) -> pl.Series:
    quick = pl.select(
        pl.coalesce(
            text.str.to_datetime(written, time_unit="us", time_zone="UTC", strict=False)
            for zones in (False, True)
            for written in _FAST[zones]
        ).dt.replace_time_zone(None)
    ).to_series()
    rest = quick.is_null().arg_true()
    if not len(rest):
        return quick
    fields = text.gather(rest).str.extract_groups(_ISO).struct.unnest()
    offset = _ahead_of_utc(fields["zone"].fill_null("Z"))
    return quick.scatter(rest, _datetimes(fields) - offset)


def _each_in_words(text: pl.Series, order: DateOrder | None, first_day: date | None) -> pl.Series:
    return _datetimes(_word_fields(text), first_day)


def _each_in_numbers(text: pl.Series, order: DateOrder | None, first_day: date | None) -> pl.Series:
    fields = text.str.extract_groups(_NUMERIC).struct.unnest()
    # "3/4" alone is a fraction as likely as a day.
    whole = pl.col("year").is_not_null() | pl.col("hour").is_not_null()
    points = fields["mark"] == "."
    day_first = whole & (pl.lit(True) if order is DateOrder.day_first else pl.lit(points))
    month_first = whole & pl.lit(order is DateOrder.month_first)
    fields = fields.with_columns(
        pl.when(month_first).then("other").when(day_first).then("first").alias("day"),
        pl.when(month_first).then("first").when(day_first).then("other").alias("month"),
    )
    return _datetimes(fields, first_day)


# Guessing a notation from the data


def guess_notation(
    values: pl.Series,
    *,
    order: DateOrder | None = None,
    first_day: date | None = None,
    refuse_durations: bool = False,
) -> TimeNotation:
    """How a column seems to be written, from all of its rows; raises `UnreadableTimesError` where that is unclear.

    Numbers count from 1970, in the unit that their size suggests. With `refuse_durations`, a column of
    small numbers is not taken for times: it may well state how long an attempt took.
    """
    if values.dtype.is_temporal():
        return TimeNotation(Form.typed)
    numbers = as_numbers(values)
    if values.dtype.is_numeric() or numbers.head(1).null_count() == 0:
        return TimeNotation(Form.numbers, guess_unit(numbers, refuse_durations=refuse_durations))
    text = _clean(values)
    first = text.head(1)
    zone_name = first.str.extract(_NAMED_ZONE)[0] or ""
    zone_name = "" if zone_name in ("UTC", "GMT") else zone_name
    first = first.str.strip_suffix(f" {zone_name}")
    if first.str.contains(_ISO).all():
        zone = first.str.extract_groups(_ISO).struct.field("zone")
        return TimeNotation(Form.iso, zones=zone[0] is not None, zone_name=zone_name)
    if first.str.contains(_NUMERIC).all():
        fields = _numeric_fields(text.str.strip_suffix(f" {zone_name}"))
        order, why = (order, "") if order is not None else _guess_order(fields)
        return TimeNotation(Form.numeric, zone_name=zone_name, order=order, first_day=first_day, why=why)
    if any(first.str.contains(pattern).all() for pattern in _WORDS):
        return TimeNotation(Form.words, zone_name=zone_name, first_day=first_day)
    raise UnreadableTimesError("are in no notation that the reader knows")


def guess_unit(numbers: pl.Series, *, refuse_durations: bool = False) -> str:
    """The unit that the largest number suggests: today is 1.7e9 in seconds, a thousand times as much in each finer."""
    _refuse(~numbers.is_finite(), "are not all finite numbers", "not-a-time")
    size = np.abs(numbers.to_numpy().astype(np.float64))
    if refuse_durations and numbers.to_numpy().min() < FIRST_EPOCH_SECOND:
        raise UnreadableTimesError("may be durations", code="durations")
    largest = size.max()
    return "s" if largest < 1e11 else "ms" if largest < 1e14 else "us" if largest < 1e17 else "ns"


def _guess_order(fields: pl.DataFrame) -> tuple[DateOrder, str]:
    """Whether the day or the month comes first, and a sentence on how that was known."""
    first, other = fields["first"], fields["other"]
    day_first, month_first = bool((first > 12).any()), bool((other > 12).any())
    if day_first and month_first:
        raise UnreadableTimesError(
            "mix day/month and month/day", int(((first > 12) != (first[0] > 12)).arg_max() or 0), code="mixed"
        )
    points = bool((fields["mark"] == ".").all())
    same = bool((first == other).all())
    if not (day_first or month_first or points or same):
        raise UnreadableTimesError("could be day/month or month/day", code="ambiguous-order")
    order = DateOrder.month_first if month_first else DateOrder.day_first
    if day_first or month_first:
        return order, f"Dates were read as {_WRITTEN[order]}: the other way, not all of them exist."
    if points and not same:
        return order, "Dates with points were read as day.month, which is how they are written."
    return order, ""
