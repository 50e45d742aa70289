"""The Open University's data set (OULAD): a folder of tables; clicks by day and the list of sites are read.

A learner is a student, whatever courses they took. Days count from the start of a presentation, whose code says when
that was: 2013B began in February and 2013J in October 2013 (Kuzilek, Hlosta and Zdrahal 2017). So that the days of a
student's courses are in order, a day is one of the calendar as if the presentation had begun on the first of the month.
"""

from __future__ import annotations

import polars as pl

from understudy.core.events.event_table import EventTable, ReadOptions
from understudy.core.events.folders import Folder, columns_of
from understudy.core.events.log_columns import read_log_columns
from understudy.core.files.columns import Columns, plain
from understudy.core.files.tables import FrameTable

_CLICKS, _SITES = "studentVle.csv", "vle.csv"
_DEFAULTS = Columns(learner="id_student", action="activity_type", time="day", item="id_site")
# Columns of the clicks; none of them holds outcomes.
_COLUMNS = ("code_module", "code_presentation", "id_student", "id_site", "date", "sum_click")
_MONTHS = {"B": 2, "J": 10}


def looks_like_oulad(folder: Folder) -> bool:
    """Whether a folder has the clicks of students and the list of sites."""
    return bool(folder.named(_CLICKS) and folder.named(_SITES))


def read_oulad(folder: Folder, options: ReadOptions) -> EventTable:
    """One row per student, day and site; the action is the kind of site."""
    clicks = folder.table(folder.named(_CLICKS), "students' clicks")
    sites = folder.columns(folder.named(_SITES), "the sites of the courses", "id_site", "activity_type")
    frame = columns_of(clicks, _COLUMNS, ("id_student", "id_site"))
    frame = frame.join(sites, on="id_site", how="left", maintain_order="left")
    if {"date", "code_presentation"} <= set(frame.columns):
        frame = frame.with_columns(_day().alias("day"))
    lines = frame.drop_in_place("line")
    names = tuple(frame.columns)
    table = FrameTable(clicks.file, names, frame, lines, clicks.notes, clicks.guesses, clicks.place)
    events = read_log_columns(table, options, _DEFAULTS, [plain(name) for name in names])
    if events.columns.get("time") == "day":
        events.notes.append(
            "Days count from the first of February (B) or October (J), as the code of the presentation says: the day "
            "of the week is not known."
        )
    return events


def _day() -> pl.Expr:
    """The day of a row, by its own cells; null where they hold none."""
    code = pl.col("code_presentation").str.extract_groups(r"^(?<year>\d{4})(?<half>[BJ])$")
    month = code.struct.field("half").replace_strict(_MONTHS, default=None, return_dtype=pl.Int64)
    written = pl.format("{}-{}-1", code.struct.field("year"), month)
    start = written.str.to_date("%Y-%m-%d", strict=False)
    days = pl.col("date").cast(pl.Float64, strict=False)
    days = pl.when(days.abs() < 10_000).then(days).cast(pl.Int64)
    return (start + pl.duration(days=days)).cast(pl.Datetime("us"))
