"""Times in files: each cell is read by itself, so that no row decides how another one is read."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Literal, cast
from zoneinfo import ZoneInfo

import polars as pl

from understudy.errors import UsageError

# Nanoseconds of each unit.
UNITS = {"d": 86_400_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
# What people call them.
_UNIT_WORDS = {
    "d": ("day", "days"),
    "s": ("sec", "second", "seconds"),
    "ms": ("milli", "millis", "millisecond", "milliseconds"),
    "us": ("µs", "μs", "micros", "microsecond", "microseconds"),
    "ns": ("nanos", "nanosecond", "nanoseconds"),
}
# Smaller numbers, before 1973 as seconds, are as likely to be durations.
FIRST_EPOCH_SECOND = 1e8
# 2100: a later number is no time of an event.
_LAST_EPOCH_SECOND = 4_102_444_800
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
# English, German, French, Spanish, Italian, Portuguese, Dutch, Polish and Finnish; as many letters as distinguish the
# months.
_MONTHS = (
    *("jan ene gen sty tam", "feb fév fev lut hel", "mar mär mae maa mrt", "apr avr abr kwi huh"),
    *("may mai mag mei maj tou", "jun juin giu cze kes", "jul juil lug lip hei", "aug aoû aou ago sie elo"),
    *("sep set wrz syy", "oct okt ott out paź lok", "nov lis marr", "dec dez déc dic gru jou"),
)
_MONTH_NUMBERS = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}
_ZONE_AT_END = r"(\d(?: [AaPp][Mm])?) [A-Z]{3,5}$"
_NAMED_UNIT = re.compile(
    r"(?:^|[_\s.(\-])(?:(ns|nanoseconds?)|(us|µs|μs|microseconds?)|(ms|millis|milliseconds?)|(s|sec|seconds?)|(days))\)?$",
    re.IGNORECASE,
)


class DateOrder(Enum):
    """What comes first in a date such as 3/4/2024."""

    day_first = "day-first"
    month_first = "month-first"


def unit_of(text: str) -> str:
    """The unit that a user means: s, ms, us, ns or d, or the word for it."""
    wanted = text.strip().lower()
    found = next((unit for unit, words in _UNIT_WORDS.items() if wanted in (unit, *words)), None)
    if found is None:
        words = ", ".join(f"{unit} ({_UNIT_WORDS[unit][-1]})" for unit in UNITS)
        raise UsageError(
            f"'{text}' is not a unit of times.",
            hint=f"the units are {words}.",
            code="bad-time-unit",
            settings=("time_unit",),
        )
    return found


def unit_in_name(name: str) -> str | None:
    """The unit that a column's name states, as in time_ms."""
    found = _NAMED_UNIT.search(name)
    return (
        None
        if found is None
        else ("ns", "us", "ms", "s", "d")[[bool(part) for part in found.groups()].index(True)]
    )


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
    lies between 1973 and 2100, or before if times may count from another start (`since_start`); a text is
    ISO 8601, with or without an offset from UTC; a date with the month in words; a date in numbers, by points
    as day.month.year unless another `order` is declared, by other marks only if one is. A date without a year is
    the first such day from `first_day` on, if that is given.
    """
    if isinstance(values.dtype, pl.Datetime | pl.Date):
        return values.cast(pl.Datetime("us"))
    # The name of a zone moves all times alike (but for the change to summer time): their order stays.
    text = _clean(values).str.replace(_ZONE_AT_END, "$1")
    number = text.cast(pl.Float64, strict=False)
    whole = text.cast(pl.Int64, strict=False)
    seconds = number * (UNITS[unit] / 1e9)
    # Beyond 2100 the unit is another one, whatever the start.
    counted = number.is_finite() & (seconds.abs() <= _LAST_EPOCH_SECOND)
    if not since_start:
        counted &= seconds >= FIRST_EPOCH_SECOND
    # Whole numbers stay exact; fractions are exact to the microsecond.
    exact = whole * (UNITS[unit] // 1000) if UNITS[unit] >= 1000 else whole // 1000
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


def counts_from_a_start(times: pl.Series) -> bool:
    """Whether times count from a start of their own, not from 1970: none is as late as a number from 1970 would be.

    For messages and displays alone: what is computed from times uses their order and differences.
    """
    latest = times.cast(pl.Datetime("us")).dt.epoch("s").max()
    return latest is not None and cast(float, latest) < FIRST_EPOCH_SECOND


def states_instant(values: pl.Series) -> pl.Series:
    """Whether the time in each cell is an instant: a number from 1970, or a text that states its offset from UTC."""
    if isinstance(values.dtype, pl.Datetime | pl.Date):
        aware = isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None
        return pl.repeat(aware, len(values), dtype=pl.Boolean, eager=True)
    text = _clean(values)
    number = text.cast(pl.Float64, strict=False)
    zone = text.str.extract(r":\d{2}(?:[.,]\d+)? ?(?:[AaPp]\.?[Mm]\.? )?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)$")
    return number.is_not_null() | zone.is_not_null()


def check_zone(zone: str) -> None:
    """Refuse the name of a time zone that does not exist."""
    try:
        pl.Series([datetime(2000, 1, 1)]).dt.replace_time_zone(zone)
    except pl.exceptions.PolarsError:
        raise UsageError(
            f"there is no time zone '{zone}'.", hint="for example Europe/Berlin.", settings=("time_zone",)
        ) from None


def clock_of(instants: pl.Series, zone: str) -> pl.Series:
    """What the clock of a zone shows at instants."""
    local = instants.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return local.dt.replace_time_zone(None)


def instants_of(local: pl.Series, zone: str) -> tuple[pl.Series, int]:
    """Times on the clock of a zone as instants, and how many of them were unclear.

    An hour that comes twice is taken for the first one; one that is skipped is read as if the clock had not been
    changed yet.
    """

    def utc(moments: pl.Series, which: Literal["earliest", "latest"]) -> pl.Series:
        placed = moments.dt.replace_time_zone(zone, ambiguous=which, non_existent="null")
        return placed.dt.convert_time_zone("UTC").dt.replace_time_zone(None)

    early, late = utc(local, "earliest"), utc(local, "latest")
    day_before = utc(local - timedelta(days=1), "earliest")
    unclear = int((early.is_null() | (early != late)).sum())
    return early.fill_null(day_before + timedelta(days=1)), unclear


def names_another_zone(values: pl.Series, zone: str) -> pl.Series:
    """Whether each text names a zone that is neither UTC nor this one, such as PST for a clock in Berlin."""
    if values.dtype != pl.String:
        return pl.repeat(False, len(values), dtype=pl.Boolean, eager=True)
    year = range(1970, 2051, 10)
    own = {datetime(y, month, 1, tzinfo=ZoneInfo(zone)).tzname() for y in year for month in (1, 7)}
    named = _clean(values).str.extract(r"\d(?: [AaPp][Mm])? ([A-Z]{3,5})$")
    return (named.is_not_null() & ~named.is_in(["UTC", "GMT", *sorted(filter(None, own))])).fill_null(False)


def zones_in(values: pl.Series) -> frozenset[str | None]:
    """The time zones that texts state, None for those that state none; of other cells nothing."""
    if values.dtype != pl.String:
        return frozenset()
    zone = _clean(values).str.extract(r"\d ?(Z|[+-]\d{2}:?\d{2}|(?:[AaPp][Mm] )?[A-Z]{3,5})$").unique()
    return frozenset(zone.replace(["Z", "GMT", "UTC", "+0000"], "+00:00"))


def has_mixed_zones(values: pl.Series) -> bool:
    """Whether some texts state another time zone than others, or none: more often a mistake than meant."""
    return len(zones_in(values)) > 1


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


def _clean(values: pl.Series) -> pl.Series:
    return values.cast(pl.String).str.replace_all(r"[\s\u00a0\u202f]+", " ").str.strip_chars()


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
    # "juin" and "juillet", "mars" and "marraskuuta" differ in their fourth letter.
    letters = pl.when(word.str.contains("^(?:jui|marr)")).then(4).otherwise(3)
    return fields.with_columns(
        word.str.slice(0, letters).replace_strict(_MONTH_NUMBERS, default=None, return_dtype=pl.Int64)
    )


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
