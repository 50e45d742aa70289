"""When events happened, in the notations of event logs: also without a year, with months in words.

A year that is not written is the first one in which the day is not before the term. Whether the
day or the month comes first is found from the data, or given; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum

import polars as pl

from understudy.core.files.times import UnreadableTimesError, parse_times


class DateOrder(Enum):
    """What comes first in a date such as 3/4/2024."""

    day_first = "day-first"
    month_first = "month-first"


@dataclass(frozen=True, repr=False)
class Moments:
    """Times in microseconds: UTC if `instants`, else as clocks on the wall showed them."""

    times: pl.Series
    instants: bool
    notes: tuple[str, ...] = ()


_STATED_ZONE = r":\d{2}(?:[.,]\d+)?\s*(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)$"
_SORTABLE = r"^(?:\d{4}[-/]|[\d.]+(?:[eE][+]?\d+)?$)"
_CLOCK = r",?\s+(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2}))?(?:\s*(?<half>[AaPp])\.?[Mm]\.?)?$"
_YEAR = r"(?:,?\s+(?<year>\d{4}|\d{2}))?"
# "11 May, 09:44", "Friday, 11. Mai 2018, 09:44"; "May 11, 2018, 9:44 AM"; "11/05/24, 09:44".
_NOTATIONS = (
    r"^(?:\p{L}+\.?,?\s+)?(?<day>\d{1,2})\.?\s+(?:de\s+)?(?<month>\p{L}{3,})\.?(?:\s+de)?" + _YEAR + _CLOCK,
    r"^(?:\p{L}+\.?,\s+)?(?<month>\p{L}{3,})\.?\s+(?<day>\d{1,2})" + _YEAR + _CLOCK,
    r"^(?<day>\d{1,2})(?<mark>[./-])(?<month>\d{1,2})(?:[./-](?<year>\d{4}|\d{2})|\.)?" + _CLOCK,
)
# English, German, French and Spanish; as many letters as tell the months apart.
_MONTHS = (
    *("jan ene", "feb fév fev", "mar mär mae", "apr avr abr", "may mai", "jun juin"),
    *("jul juil", "aug aoû aou ago", "sep", "oct okt", "nov", "dec dez déc dic"),
)
_MONTH_NUMBERS = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}


def read_moments(values: pl.Series, term_start: date, order: DateOrder | None = None) -> Moments:
    """The times of a column; raises `UnreadableTimesError`, which holds a row and no value."""
    if values.dtype.is_temporal():
        zone = isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None
        return Moments(parse_times(values, asked=True), zone)
    text = values.cast(pl.String).str.replace_all(r"[\s\u00a0\u202f]+", " ").str.strip_chars()
    if text.head(1).str.contains(_SORTABLE).fill_null(False).all():
        other = ~text.str.contains(_SORTABLE).fill_null(False)
        if other.any():
            # Before zones are looked at: what is no time states none.
            raise UnreadableTimesError(
                "hold something that is no time, or is not written like the first one",
                int(other.arg_max() or 0),
                code="not-a-time",
            )
        times = parse_times(text, asked=True, one_zone=False)
        numbers = text.head(1).cast(pl.Float64, strict=False).null_count() == 0
        return Moments(times, numbers or bool(text.head(1).str.contains(_STATED_ZONE).all()))
    return _written(text, term_start, order)


def _written(text: pl.Series, term_start: date, order: DateOrder | None) -> Moments:
    best = UnreadableTimesError("are in no notation that the reader knows", 0)
    for notation in _NOTATIONS:
        fields = text.str.extract_groups(notation).struct.unnest()
        unknown = fields["hour"].is_null()
        if not unknown.any():
            return _from_fields(fields, term_start, order)
        if not unknown.all():
            best = UnreadableTimesError("cannot all be read", int(unknown.arg_max() or 0))
    raise best


def _from_fields(fields: pl.DataFrame, term_start: date, order: DateOrder | None) -> Moments:
    fields = fields.with_columns(pl.col("day", "hour", "minute").cast(pl.Int64))
    said = ""
    if "mark" in fields.columns:
        fields, said = _ordered(fields.with_columns(pl.col("month").cast(pl.Int64)), order)
    else:
        word = pl.col("month").str.to_lowercase()
        # "juin" and "juillet" differ in their fourth letter.
        prefix = (
            pl.when(word.str.starts_with("jui")).then(word.str.slice(0, 4)).otherwise(word.str.slice(0, 3))
        )
        fields = fields.with_columns(
            prefix.replace_strict(_MONTH_NUMBERS, default=None, return_dtype=pl.Int64).alias("month")
        )
    late = pl.col("half").str.to_lowercase() == "p"
    hour = (
        pl.when(pl.col("half").is_null())
        .then("hour")
        .when(pl.col("hour").is_between(1, 12))
        .then(pl.col("hour") % 12 + 12 * late.cast(pl.Int64))
    )
    before = (pl.col("month") < term_start.month) | (
        (pl.col("month") == term_start.month) & (pl.col("day") < term_start.day)
    )
    year = pl.col("year").cast(pl.Int64)
    full_year = (
        pl.when(year.is_null())
        .then(term_start.year + before.cast(pl.Int64))
        .otherwise(pl.when(pl.col("year").str.len_chars() == 2).then(2000 + year).otherwise(year))
    )
    # As text: a day that the calendar lacks becomes null, where building a date would fail.
    written = fields.select(
        pl.format(
            "{}-{}-{} {}:{}:{}",
            full_year,
            pl.col("month"),
            pl.col("day"),
            hour,
            pl.col("minute"),
            pl.col("second").fill_null("0"),
        ).alias("time")
    ).to_series()
    times = written.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False)
    if times.null_count():
        raise UnreadableTimesError(
            "name a day, month or hour that does not exist", int(times.is_null().arg_max() or 0)
        )
    yearless = int(fields["year"].null_count())
    note = (
        f"{yearless} times have no year: each was put on the first such day from {term_start} on."
        if yearless
        else ""
    )
    return Moments(times, False, tuple(sentence for sentence in (said, note) if sentence))


def _ordered(fields: pl.DataFrame, order: DateOrder | None) -> tuple[pl.DataFrame, str]:
    """Day and month in their columns, whichever came first, and a sentence on how that was known."""
    first, second = fields["day"], fields["month"]
    said = ""
    if order is None:
        day_first, month_first = bool((first > 12).any()), bool((second > 12).any())
        if day_first and month_first:
            row = int(((first > 12) != (first[0] > 12)).arg_max() or 0)
            raise UnreadableTimesError("mix day/month and month/day", row, code="mixed")
        points = bool((fields["mark"] == ".").all())
        if not (day_first or month_first or points or (first == second).all()):
            raise UnreadableTimesError("could be day/month or month/day", 0, code="ambiguous-order")
        order = DateOrder.month_first if month_first else DateOrder.day_first
        if day_first or month_first:
            said = f"Dates were read as {_WRITTEN[order]}: the other way, not all of them exist."
        elif points and not (first == second).all():
            said = (
                "Dates with points were read as day.month, which is how they are written; --dates month-first reads "
                "them the other way."
            )
    month = second if order is DateOrder.day_first else first
    if (month > 12).any():
        raise UnreadableTimesError(
            f"cannot be {_WRITTEN[order]}, as was asked: a month above 12 does not exist",
            int((month > 12).arg_max() or 0),
            code="ambiguous-order",
        )
    if order is DateOrder.day_first:
        return fields, said
    return fields.rename({"day": "month", "month": "day"}), said


_WRITTEN = {DateOrder.day_first: "day/month", DateOrder.month_first: "month/day"}
