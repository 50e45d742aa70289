"""The times of events: each cell is read by itself, put on the learners' clock if that is declared, and in order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from understudy.core.files.notes import Count, CountingNote
from understudy.core.files.times import (
    FIRST_EPOCH_SECOND,
    DateOrder,
    clock_of,
    counts_from_a_start,
    instants_of,
    names_another_zone,
    read_each_time,
    states_instant,
    unit_in_name,
    zones_in,
)
from understudy.errors import DataError

if TYPE_CHECKING:
    from understudy.core.events.event_table import EventTable
    from understudy.core.events.read_options import ReadOptions

# Rows that are earlier than the one before, as a share, from which on numbers are hardly times.
MAX_SHARE_BACKWARDS = 0.25
_DURATION = re.compile(
    r"spent|duration|elapsed|taken|latency|dauer|durée|duree|duración|(?:on|per)[_ ]?(?:task|item|page)",
    re.IGNORECASE,
)
_IN_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_EITHER_ORDER = " or ".join(order.value for order in DateOrder)
_ONE_ORDER = "in one order all of them are dates: declare it if it is right."
_TWO_ORDERS = f"declare what comes first: {_EITHER_ORDER}."


def settle_times(events: EventTable, options: ReadOptions) -> None:
    """Read the time of each row by itself; it puts the rows of a learner in order."""
    name, asked = events.columns["time"], options.columns.time is not None
    if options.rows.in_order and not asked:
        events.frame = events.frame.drop("time")
        del events.columns["time"]
        events.notes.append(f"Column '{name}' is not used: the rows are in order, as declared.")
        return
    zone = options.rows.time_zone
    zones = zones_in(events.frame["time"]) if events.zones is None else events.zones
    if zone is None and not events.instants and len(zones) > 1:
        raise DataError(
            f"{events.file}: the times in column '{name}' mix time zones.",
            hint="name the time zone of the learners, in which all are then shown; or write them in one zone, or state "
            "that the rows are in order.",
            code="mixed-zones",
            settings=("time_zone", "time", "in_order"),
        )
    events.skip_empty("time", options)
    unit = options.rows.time_unit or events.time_unit or unit_in_name(name) or "s"
    cells = events.frame["time"]
    given = options.rows.first_day
    first_day = events.year_begins if given is None else date.fromisoformat(given)
    times = read_each_time(
        cells, unit=unit, order=options.rows.date_order, since_start=asked, first_day=first_day
    )
    foreign = pl.repeat(False, len(cells), eager=True) if zone is None else names_another_zone(cells, zone)
    times = times.set(foreign, None)
    if not asked and times.null_count() and not options.rows.set_aside:
        _refuse_times_from_a_start(events, read_each_time(cells, unit=unit, since_start=True))
    ordered = options.rows.date_order is not None or foreign.any()
    orders = [] if ordered else _orders_that_read(cells, unit, asked)
    events.frame = events.frame.with_columns(times.alias("time"))
    if zone is not None:
        instant = states_instant(cells) | events.instants
        events.frame = events.frame.with_columns(instant.alias("instant"))
    fault = _Fault.of(cells, times, orders, None if options.rows.time_unit else unit)
    events.settle_cells(
        "time",
        times.is_null(),
        f"orders the rows, but {fault.what}",
        options,
        hint=fault.hint,
        code="not-a-time",
        settings=fault.settings,
        declare=fault.declare,
    )
    _put_in_order(events, name)
    if zone is not None:
        _put_on_clock(events, zone)
    if given is None and first_day is not None:
        with_year = read_each_time(cells, unit=unit, order=options.rows.date_order, since_start=asked)
        if n_yearless := with_year.null_count() - times.null_count():
            events.yearless = True
            events.notes.append(
                CountingNote(
                    Count(n_yearless, "time"),
                    f" without a year: each lies in a year that begins on {first_day.day} {first_day:%B}. Check this: "
                    "if the course runs over that day, its rows are in the wrong order unless its own first day is "
                    "declared.",
                )
            )
    if counts_from_a_start(events.frame["time"]):
        events.notes.append(
            f"Times in column '{name}' count from a start of their own: they have no date, and only their order "
            "and differences are used."
        )


@dataclass(frozen=True)
class _Fault:
    """What is wrong with times that cannot be read, and what would help: a question to the user, never an answer."""

    what: str
    hint: str
    settings: tuple[str, ...]
    declare: dict[str, str] | None = None

    @classmethod
    def of(cls, cells: pl.Series, times: pl.Series, orders: list[str], unit: str | None) -> _Fault:
        """`orders` are those of day and month that would read all cells; `unit` the one taken, not declared."""
        if orders:
            return cls(
                "has the day and the month by numbers, as in 3/4/2024,",
                _ONE_ORDER if len(orders) == 1 else _TWO_ORDERS,
                ("date_order",),
                {"date_order": orders[0] if len(orders) == 1 else "ORDER"},
            )
        none_is_read = times.null_count() == len(times)
        if unit is not None and none_is_read and (finer := _unit_that_reads(cells)) is not None:
            return cls(
                f"holds numbers beyond the year 2100 if they count {_IN_WORDS.get(unit, unit)},",
                f"as {_IN_WORDS[finer]} since 1970 all of them are times: declare that unit if it is right.",
                ("time_unit",),
                {"time_unit": finer},
            )
        if none_is_read:
            return cls(
                "none of its cells can be read as a time: the first is",
                "name the column with the times; they are like 2024-05-31 14:05:09, or numbers that count from 1970 "
                "or from a start. Or state that the rows are in order.",
                ("in_order",),
            )
        return cls(
            "holds something that cannot be read as a time",
            "times are like 2024-05-31 14:05:09, or numbers from 1970 on in seconds unless their unit is declared; "
            "3/4/2024 needs the order of day and month. Declare that, state that the rows are in order, or set these "
            "rows aside.",
            ("time_unit", "date_order", "in_order", "skip_incomplete"),
        )


def _unit_that_reads(cells: pl.Series) -> str | None:
    """The unit finer than seconds in which all numbers are times between 1973 and 2100."""
    numbers = cells.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    if numbers.null_count():
        return None
    return next((unit for unit in _IN_WORDS if not read_each_time(cells, unit=unit).null_count()), None)


def _note_durations(events: EventTable, name: str, n_back: int) -> None:
    """Say that a column which was named for the time seems to hold how long something took."""
    n_steps = events.frame.height - events.frame["learner"].n_unique()
    if n_back > MAX_SHARE_BACKWARDS * n_steps or _DURATION.search(name):
        events.notes.append(
            f"Column '{name}' was named for the time, and seems to hold how long something took. If so, name another "
            "column or none, and declare this one in a plan (`plan`), as numbers of rows."
        )


def _put_in_order(events: EventTable, name: str) -> None:
    """Say that times put the rows in order, and how many were not; rows of one time stay as they are in the file.

    Platforms export the newest rows first, and write times in minutes. So the rows of a learner whose times run
    backwards more often than forwards are turned round: a learner's own rows decide about them.
    """
    before = pl.col("time").shift(1).over("learner")
    back, forth = pl.col("time") < before, pl.col("time") > before
    turned = back.sum().over("learner") > forth.sum().over("learner")
    # Events of one line of the file, such as the skills of an attempt, stay together as they are.
    newest_last = pl.col("place").sort_by("line", descending=True, maintain_order=True).over("learner")
    facts = events.frame.select("learner", "time", "line").with_row_index("place")
    facts = facts.select(
        back.fill_null(False).alias("back"),
        turned.alias("turned"),
        pl.when(turned).then(newest_last).otherwise("place").alias("place"),
    )
    events.notes.append(f"The rows of each learner are in the order of column '{name}'.")
    if counts_from_a_start(events.frame["time"]):
        _note_durations(events, name, int(facts["back"].sum()))
    if n_back := int(facts["back"].sum()):
        events.notes.append(
            CountingNote(
                "Out of order in the file: ",
                Count(n_back, "row"),
                ", earlier than the row before of the same learner.",
            )
        )
    if facts["turned"].any():
        events.frame = events.frame[facts["place"]]


def _refuse_times_from_a_start(events: EventTable, times: pl.Series) -> None:
    """Numbers too small to count from 1970: that they count from a start is for the user to say."""
    if times.null_count() or not counts_from_a_start(times):
        return
    name = events.columns["time"]
    raise DataError(
        f"{events.file}: column '{name}' holds numbers that seem to count from the start of a session or a course, "
        "not from 1970.",
        hint="name the column for the time to say so; only the order and the differences of such times are used. "
        "Or state that the rows are in order.",
        code="times-from-a-start",
        settings=("time", "in_order"),
        declare={"time": name},
    )


def _orders_that_read(cells: pl.Series, unit: str, since_start: bool) -> list[str]:
    """The orders of day and month by which every time can be read: a question to the user, never an answer."""
    return [
        order.value
        for order in DateOrder
        if not read_each_time(cells, unit=unit, order=order, since_start=since_start).null_count()
    ]


def _put_on_clock(events: EventTable, zone: str) -> None:
    """Times as the clock of a zone showed them, in the order in which they were.

    Instants are converted, row by row; other times are those of this clock already. Where the clock is set back it
    shows an hour twice: rows of the second one are shown at the latest time before them, so that a learner's times
    never run backwards.
    """
    times, instant = events.frame["time"], events.frame["instant"]
    # Numbers that count from a start of their own have no date.
    instant &= times.dt.epoch("s") >= FIRST_EPOCH_SECOND
    utc, n_unclear = instants_of(times.filter(~instant), zone)
    moments = times.clone().scatter((~instant).arg_true(), utc)
    shown = times.clone().scatter(instant.arg_true(), clock_of(times.filter(instant), zone))
    frame = events.frame.drop("instant").with_columns(shown.alias("time"))
    places = pl.DataFrame({"learner": frame["learner"], "moment": moments}).with_row_index("place")
    in_order = pl.col("place").sort_by("moment", maintain_order=True).over("learner")
    frame = frame[places.select(in_order).to_series()]
    latest = pl.col("time").cum_max().over("learner")
    n_repeated = int(frame.select((latest > pl.col("time")).sum()).item())
    events.frame = frame.with_columns(latest.alias("time"))
    converted = Count(int(instant.sum()), "time")
    events.notes.append(CountingNote(f"Times are on the clock of {zone}: ", converted, " converted."))
    if n_unclear:
        words = " in an hour that the change of the clock skips or repeats: as written."
        events.notes.append(CountingNote(Count(n_unclear, "time"), words))
    if n_repeated:
        words = " in an hour that the clock shows again: shown at the latest time before."
        events.notes.append(CountingNote(Count(n_repeated, "time"), words))
