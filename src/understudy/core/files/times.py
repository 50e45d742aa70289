"""Times in a log, whatever their notation: UTC where a zone is stated, as written where none is."""

from __future__ import annotations

import polars as pl

_ISO = r"^(\d{4}[-/]\d{1,2}[-/]\d{1,2})(?:[T ]+(\d{1,2}:\d{2})(:\d{2})?(?:[.,](\d{1,9}))?)?\s*"
_ZONE = r"(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)"
_WHOLE_ISO = _ISO + _ZONE + "?$"
# Behind a clock only: a date alone ends in "-05", which is a day and not a zone.
_STATED_ZONE = r":\d{2}(?:[.,]\d+)?\s*" + _ZONE + "$"
_ABBREVIATION = r"\d (\w{3,5})$"
# Day before month with points; with slashes both orders are in use, so the data has to decide.
_LOCAL_DATES = (("%d.%m.%Y",), ("%d/%m/%Y", "%m/%d/%Y"), ("%d-%m-%Y", "%m-%d-%Y"))
_LOCAL_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
# From 1973 on; smaller numbers are as likely to be durations.
_FIRST_EPOCH_SECOND = 1e8


class UnreadableTimesError(ValueError):
    """Times could not be read: why, in words and by a code, and in which row first. Holds no value.

    `zones` tells that they could, but for their time zones.
    """

    def __init__(self, reason: str, row: int, *, zones: bool = False, code: str = "unknown-notation") -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        self.zones = zones
        self.code = code


def parse_times(values: pl.Series, *, asked: bool, one_zone: bool = True) -> pl.Series:
    """Times as microseconds; raises `UnreadableTimesError` unless every one of them can be read.

    A column that nobody asked for (`asked` is false) and that holds small numbers is not
    taken for times: the column may well say how long an attempt took. With `one_zone`, rows
    that state different zones are refused: in a table that is more often a mistake of an
    export than meant; formats that define every time as an instant pass false.
    """
    if values.dtype.is_temporal():
        if not isinstance(values.dtype, pl.Datetime | pl.Date):
            raise UnreadableTimesError("are times of day or durations", 0)
        if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone:
            values = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _complete(values.cast(pl.Datetime("us"), strict=False))
    if values.dtype.is_numeric():
        return _from_numbers(values.cast(pl.Float64), asked=asked)
    text = values.cast(pl.String).str.strip_chars()
    usual = text.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False)
    if usual.null_count() == 0:
        return usual  # the notations below take several passes
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == 0:
        return _from_numbers(numbers, asked=asked)
    if text.str.contains(_WHOLE_ISO).any():
        return _from_iso(text, one_zone)
    return _from_local(text)


def _from_iso(text: pl.Series, one_zone: bool) -> pl.Series:
    zone = text.str.extract(_STATED_ZONE)
    if 0 < zone.null_count() < len(zone):
        other = zone.is_null() if zone[0] is not None else zone.is_not_null()
        raise UnreadableTimesError(
            "state a time zone on some rows only", int(other.arg_max() or 0), zones=True
        )
    if one_zone and zone.n_unique() > 1:
        raise UnreadableTimesError(
            "mix time zones", int((zone != zone[0]).arg_max() or 0), zones=True, code="mixed"
        )
    date = text.str.extract(_ISO, 1).str.replace_all("/", "-", literal=True)
    clock = text.str.extract(_ISO, 2).fill_null("00:00")
    seconds = text.str.extract(_ISO, 3).fill_null(":00")
    fraction = text.str.extract(_ISO, 4).fill_null("0")
    local = pl.select(
        pl.concat_str(date, pl.lit(" "), clock, seconds, pl.lit("."), fraction).alias("time")
    ).to_series()
    known = text.str.contains(_WHOLE_ISO)
    parsed = local.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
    parsed = pl.select(pl.when(known).then(parsed)).to_series()
    return _complete(parsed - _offsets(zone) if zone.null_count() == 0 else parsed)


def _offsets(zone: pl.Series) -> pl.Series:
    hours = zone.str.extract(r"^[+-](\d{2})").cast(pl.Int64).fill_null(0)
    minutes = zone.str.extract(r"^[+-]\d{2}:?(\d{2})$").cast(pl.Int64).fill_null(0)
    sign = zone.str.starts_with("-").cast(pl.Int64) * -2 + 1
    return ((hours * 60 + minutes) * 60_000_000 * sign).cast(pl.Duration("us"))


def _from_local(text: pl.Series) -> pl.Series:
    abbreviation = text.str.extract(_ABBREVIATION)
    if abbreviation.null_count() == 0 and abbreviation.n_unique() == 1:
        # One zone throughout: its offset moves every time alike (but for the change to summer time).
        bare = text.str.replace(r" \w{3,5}$", "")
        if bare.str.contains(_ISO + "$").any():
            return _from_iso(bare, one_zone=True)
        text = bare
    for orders in _LOCAL_DATES:
        for clock in _LOCAL_CLOCKS:
            readings = [_read(text, order + clock) for order in orders]
            complete = [times for times in readings if times.null_count() == 0]
            if len(complete) > 1 and not complete[0].equals(complete[1]):
                raise UnreadableTimesError("could be day/month or month/day", 0, code="ambiguous-order")
            if complete:
                return complete[0]
    raise UnreadableTimesError("are in no notation that the reader knows", 0)


def _read(text: pl.Series, notation: str) -> pl.Series:
    if "%H" not in notation and "%I" not in notation:
        return text.str.to_date(notation, strict=False).cast(pl.Datetime("us"))
    return text.str.to_datetime(notation, time_unit="us", strict=False)


def _from_numbers(numbers: pl.Series, *, asked: bool) -> pl.Series:
    finite = numbers.is_finite().fill_null(False)
    if not finite.all():
        raise UnreadableTimesError("are not all numbers", int((~finite).arg_max() or 0))
    largest = numbers.abs().max()
    smallest = numbers.min()
    if not isinstance(largest, float) or not isinstance(smallest, float) or largest >= 9e18:
        raise UnreadableTimesError("are too large", 0)
    if not asked and smallest < _FIRST_EPOCH_SECOND:
        raise UnreadableTimesError("may be durations", 0)
    # Today is 1.7e9 in seconds, and a thousand times as much in each finer unit.
    scale = 1e6 if largest < 1e11 else 1e3 if largest < 1e14 else 1.0 if largest < 1e17 else 1e-3
    return (numbers * scale).cast(pl.Int64).cast(pl.Datetime("us"))


def _complete(times: pl.Series) -> pl.Series:
    if times.null_count():
        raise UnreadableTimesError("cannot all be read", int(times.is_null().arg_max() or 0))
    return times
