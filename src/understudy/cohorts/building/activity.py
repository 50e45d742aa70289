"""Activity: which learner did something when. Nothing else of a log of events is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.cohorts.building.sessions import Term
from understudy.core.events.platforms.caliper import read_caliper
from understudy.core.events.platforms.edx import read_edx
from understudy.core.events.platforms.moodle import moodle_records
from understudy.core.events.platforms.xapi import Voiding, learner_of
from understudy.core.events.read_options import CellOptions, ReadOptions
from understudy.core.events.reading import sniff
from understudy.core.files.columns import FULL_NAMES, KNOWN_NAMES, ColumnChooser, plain
from understudy.core.files.delimited import guess_separator, header_names, read_delimited
from understudy.core.files.json_records import begins_like_json, load_records
from understudy.core.files.source import (
    Source,
    decode,
    first_lines,
    keeping_values_inside,
    open_source,
    refuse_guesses,
)
from understudy.core.files.tables import Table, read_parquet
from understudy.core.files.times import has_mixed_zones, read_each_time, states_instant, unit_in_name
from understudy.core.files.words import counted
from understudy.core.files.workbooks import read_workbook
from understudy.errors import DataError, UsageError

FORMATS = ("caliper", "csv", "edx", "excel", "moodle", "parquet", "tsv", "xapi")
# In these formats a time is an instant by definition, whatever zone it is written in.
_INSTANTS = {"caliper": "Caliper", "edx": "edX", "xapi": "xAPI"}
_EVENTS = {"caliper": read_caliper, "edx": read_edx}
# Any platform may write "full name".
_MOODLE_LEARNER = tuple(name for name in FULL_NAMES if name != "fullname")
_KNOWN = {
    "learner": (*FULL_NAMES, *KNOWN_NAMES["learner"]),
    "time": KNOWN_NAMES["time"],
}
_NO_VALUE = ("", "-", "–")


@dataclass(frozen=True, repr=False)
class Activity:
    """Events by learner and time, in microseconds: UTC, or the clock's time where no zone is known.

    `names` are the names behind the codes in `learner`, `aliases` other names of the same people;
    they live until scores are joined, and no message holds one.
    """

    learner: NDArray[np.int64]
    time: NDArray[np.int64]
    names: pl.Series
    aliases: pl.Series
    format: str
    notes: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Activity: {self.format}, {self.n_events} events, {self.n_learners} learners>"

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.learner)

    @property
    def n_learners(self) -> int:
        """Number of learners with an event."""
        return len(self.names)


def read_activity(
    path: Path | str,
    term: Term,
    cells: CellOptions = CellOptions(),  # noqa: B008 (frozen)
    *,
    format: str | None = None,
    learner: str | None = None,
    time: str | None = None,
    platform_voids: bool = False,
) -> Activity:
    """The events of a log.

    The format is found from the content unless it is named; `learner` and `time` name columns. Each time is read by
    itself (`read_each_time`). Times that state a zone, or are numbers, need the `term` to have one: on the learners'
    clock, or windows of the day mean nothing. `platform_voids` declares that no learner can void a statement of xAPI.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(
            f"there is no format '{format}'.", hint="the formats are " + ", ".join(FORMATS) + "."
        )
    source = open_source(path)
    notes: list[str] = []
    if format is None:
        format, why = _sniff(source)
        notes.append(f"Read as {format}: {why}.")
    if format in _INSTANTS:
        _refuse_columns(learner, time, format)
    if format == "xapi":
        frame, place = _statements(source, notes, platform_voids=platform_voids)
        columns = {"learner": "actor", "time": "timestamp"}
    elif format in _EVENTS:
        events = _EVENTS[format](decode(source, latin=False), ReadOptions(outcomes="left out"))
        notes += events.notes
        alias = "alias" if "alias" in events.frame.columns else "learner"
        frame, place = (
            events.frame.select("learner", pl.col(alias).alias("alias"), "time", "line"),
            events.place,
        )
        columns = {role: events.columns[role] for role in ("learner", "time")}
    else:
        table = _table(source, format)
        notes += table.notes
        frame, columns = _rows(table, learner, time, notes)
        place = table.place
    nameless = frame["learner"].is_null() | frame["learner"].is_in(_NO_VALUE)
    missing = ~nameless & frame["time"].is_null()
    for dropped, what in ((nameless, "no learner"), (missing, "no time")):
        if n_dropped := int(dropped.sum()):
            notes.append(f"{counted(n_dropped, 'event')} with {what} dropped.")
    frame = frame.filter(~(nameless | missing))
    if frame.height:
        frame = _read_times(source.name, frame, place, columns["time"], term, cells, notes)
    if not frame.height:
        raise DataError(
            f"{source.name}: no event is left to read.", hint="check the export, and the columns chosen."
        )
    instants = _instants(source.name, frame, format, term, notes)
    people = frame.select("learner", "alias").unique("learner", keep="first", maintain_order=True)
    with keeping_values_inside(
        f"{source.name}: a learner's name is not valid text.", hint="save the file as UTF-8."
    ):
        codes = frame["learner"].cast(pl.Enum(people["learner"])).to_physical()
    return Activity(
        codes.cast(pl.Int64).to_numpy(),
        instants.cast(pl.Int64).to_numpy(),
        people["learner"],
        people["alias"],
        format,
        tuple(notes),
        columns,
    )


def _read_times(
    file: str, frame: pl.DataFrame, place: str, name: str, term: Term, cells: CellOptions, notes: list[str]
) -> pl.DataFrame:
    """The rows with the time in each cell and whether it is an instant; stops at a cell that holds none."""
    unit = cells.time_unit or unit_in_name(name) or "s"

    def read(values: pl.Series, first_day: date | None) -> pl.Series:
        return read_each_time(values, unit=unit, order=cells.date_order, first_day=first_day)

    written = frame["time"]
    frame = frame.with_columns(
        read(written, term.start).alias("time"),
        states_instant(written).alias("instant"),
        written.cast(pl.String).alias("written"),
    )
    unreadable = frame["time"].is_null()
    if unreadable.any():
        if not cells.set_aside:
            line = frame["line"][int(unreadable.arg_max() or 0)]
            raise DataError(
                f"{file}: a time cannot be read (first on {place} {line}; "
                f"{counted(int(unreadable.sum()), 'such row')}).",
                hint="times are like 2024-05-31 14:05:09, or numbers from 1970 on in seconds unless their unit is "
                "declared; 3/4/2024 needs the order of day and month. Declare that, choose another column, or set "
                "these rows aside.",
                code="unreadable-times",
                settings=("time_unit", "date_order", "time", "set_aside"),
            )
        notes.append(f"Set aside: {counted(int(unreadable.sum()), 'event')} whose time cannot be read.")
        frame = frame.filter(~unreadable)
    yearless = frame["written"].filter(~frame["written"].str.contains(r"\d{4}"))
    if n_yearless := read(yearless, None).null_count():
        notes.append(
            f"{n_yearless} times have no year: each was put on the first such day from {term.start} on."
        )
    return frame


def _instants(file: str, frame: pl.DataFrame, format: str, term: Term, notes: list[str]) -> pl.Series:
    """The times as instants, by the zone of the term where they are those of a clock."""
    times, instant = frame["time"], frame["instant"]
    if format in _INSTANTS:
        if n_without := int((~instant).sum()):
            notes.append(
                f"{counted(n_without, 'time')} without a zone read as UTC, as {_INSTANTS[format]} does."
            )
    elif has_mixed_zones(frame["written"].filter(~instant)) or (instant.any() and not instant.all()):
        raise DataError(
            f"{file}: the times state a time zone on some rows only, or different ones by name.",
            hint="export the log again, with all times written in one way.",
            code="mixed-zones",
        )
    if format in _INSTANTS or instant.all():
        if term.time_zone is None:
            raise UsageError(
                f"{file}: the times are instants, and it is not known what time it was where the learners are.",
                hint="name the time zone, such as Europe/Berlin.",
                settings=("time_zone",),
            )
        return times
    if term.time_zone is None:
        notes.append("No time zone was given: times are as written, and changes of the clock are not seen.")
        return times
    times, n_unclear = term.instants(times)
    if n_unclear:
        notes.append(
            f"{n_unclear} events lie in an hour that the change of the clock skips or repeats: "
            "a repeated one was taken for the first."
        )
    return times


def _sniff(source: Source) -> tuple[str, str]:
    format, why = sniff(source)
    if format in ("parquet", "excel", *_INSTANTS):
        return format, why
    if format in ("slam", "three-line"):
        raise DataError(
            f"{source.name}: this is a log of attempts in the format {format}, without the time of day.",
            hint="give a log of events with a learner and a time in each row.",
        )
    line = first_lines(decode(source, latin=True), 1)[0]
    if begins_like_json(line):
        if format not in FORMATS:
            raise DataError(
                f"{source.name}: records of format {format} are not read as activity of a cohort.",
                hint="give the same table as csv, and name the columns of the learner and the time.",
                settings=("learner", "time"),
            )
        return format, why
    names = {plain(name) for name in header_names(line, guess_separator(line))}
    if names.intersection(_MOODLE_LEARNER) or {"eventcontext", "component"} <= names:
        return "moodle", "its header has the columns of a Moodle log"
    return ("tsv" if guess_separator(line) == "\t" else "csv"), "its first line has several columns"


def _table(source: Source, format: str) -> Table:
    if format == "parquet":
        return read_parquet(source)
    if format == "excel":
        return read_workbook(source, look=False)
    text = decode(source, latin=True)
    if format == "moodle" and begins_like_json(first_lines(text, 1)[0]):
        return moodle_records(text)
    separator = "\t" if format == "tsv" else guess_separator(first_lines(text, 1)[0])
    table = read_delimited(text, separator)
    # A cohort is made for a summary with a guarantee, and does not know its log any more.
    refuse_guesses(table.guesses)
    return table


def _rows(
    table: Table, learner: str | None, time: str | None, notes: list[str]
) -> tuple[pl.DataFrame, dict[str, str]]:
    """The rows of a table, and the names of the columns."""
    chooser = ColumnChooser(table.names, table.file, {"learner": learner, "time": time}, _KNOWN)
    chooser.require("learner", "time")
    notes += chooser.notes
    frame = table.read(chooser.positions)
    name = pl.col("learner").cast(pl.String).str.strip_chars()
    if frame["time"].dtype == pl.String:
        frame = frame.with_columns(pl.col("time").replace(dict.fromkeys(_NO_VALUE)))
    return frame.with_columns(name, name.alias("alias")), chooser.columns


def _refuse_columns(learner: str | None, time: str | None, format: str) -> None:
    if learner is not None or time is not None:
        raise UsageError(
            f"events of {_INSTANTS[format]} have no columns to choose from, but a column was named.",
            hint="leave it out, or name the format.",
            settings=("learner", "time", "format"),
        )


def _statements(source: Source, notes: list[str], *, platform_voids: bool) -> tuple[pl.DataFrame, str]:
    statements, place = load_records(decode(source, latin=False))
    rows = []
    voiding = Voiding(by_anyone=platform_voids)
    for number, statement in statements:
        if not voiding.keeps(statement, number):
            continue
        _, key, alias = learner_of(statement.get("actor"))
        when = statement.get("timestamp") or statement.get("stored")
        rows.append((key, alias, when if isinstance(when, str) and when.strip() else None, number))
    schema = {"learner": pl.String, "alias": pl.String, "time": pl.String, "line": pl.Int64}
    with keeping_values_inside(
        f"{source.name}: a name or an id is not valid text.", hint="export the statements again, as UTF-8."
    ):
        frame = pl.DataFrame(rows, schema=schema, orient="row")
    notes += voiding.notes()
    return frame.filter(~pl.col("line").is_in(voiding.voided())), place
