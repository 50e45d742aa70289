"""The Open University's data set (OULAD): a folder of tables; clicks by day and the list of sites are read.

Where rows may lack an outcome, what students handed in is read as well: an assessment is a row whose outcome follows
from its score and the pass mark.

A learner is a student, whatever courses they took. Days count from the start of a presentation, whose code says when
that was: 2013B began in February and 2013J in October 2013 (Kuzilek, Hlosta and Zdrahal 2017). So that the days of a
student's courses are in order, a day is one of the calendar as if the presentation had begun on the first of the month.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.folders import Folder, columns_of
from understudy.core.events.log_columns import read_log_columns
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import Columns, plain
from understudy.core.files.tables import FrameTable

_CLICKS, _SITES = "studentVle.csv", "vle.csv"
_HANDED_IN, _ASSESSMENTS = "studentAssessment.csv", "assessments.csv"
_DEFAULTS = Columns(learner="id_student", action="activity_type", time="day", item="id_site")
# Columns of the clicks; none of them holds outcomes.
_COLUMNS = ("code_module", "code_presentation", "id_student", "id_site", "date", "sum_click")
_MONTHS = {"B": 2, "J": 10}


def looks_like_oulad(folder: Folder) -> bool:
    """Whether a folder has the clicks of students and the list of sites."""
    return bool(folder.named(_CLICKS) and folder.named(_SITES))


def read_oulad(folder: Folder, options: ReadOptions) -> EventTable:
    """One row per student, day and site; the action is the kind of site, or of assessment where these are read."""
    clicks = folder.table(folder.named(_CLICKS), "students' clicks")
    sites = folder.columns(folder.named(_SITES), "the sites of the courses", "id_site", "activity_type")
    frame = columns_of(clicks, _COLUMNS, ("id_student", "id_site"))
    frame = frame.join(sites, on="id_site", how="left", maintain_order="left")
    defaults, file = _DEFAULTS, clicks.file
    assessed = bool(folder.named(_HANDED_IN) and folder.named(_ASSESSMENTS))
    if assessed and options.empty_outcomes:
        frame = pl.concat([frame, _handed_in(folder)], how="diagonal")
        defaults, file = replace(_DEFAULTS, outcome="score"), f"{file} or {_HANDED_IN}"
    if {"date", "code_presentation"} <= set(frame.columns):
        frame = frame.with_columns(_day().alias("day"))
    lines = frame.drop_in_place("line")
    names = tuple(frame.columns)
    table = FrameTable(file, names, frame, lines, clicks.notes, clicks.guesses, clicks.place)
    events = read_log_columns(table, options, defaults, [plain(name) for name in names])
    if assessed and not options.empty_outcomes:
        events.notes.append(
            "Left out: what students handed in, and its scores; `empty_outcomes` reads them too."
        )
    if events.columns.get("time") == "day":
        events.notes.append(
            "Days count from the first of February (B) or October (J), as the code of the presentation says: the day "
            "of the week is not known."
        )
    return events


def _handed_in(folder: Folder) -> pl.DataFrame:
    """What students handed in, in the columns of clicks; scores that were carried over (banked) are among them."""
    needed = ("id_assessment", "id_student", "date_submitted", "score")
    rows = columns_of(folder.table(folder.named(_HANDED_IN), "what students handed in"), needed, needed)
    kinds = folder.columns(
        folder.named(_ASSESSMENTS),
        "the assessments of the courses",
        *("id_assessment", "code_presentation", "assessment_type"),
    )
    rows = rows.join(kinds, on="id_assessment", how="left", maintain_order="left")
    names = {"id_assessment": "id_site", "date_submitted": "date", "assessment_type": "activity_type"}
    return rows.rename(names)


def _day() -> pl.Expr:
    """The day of a row, by its own cells; null where they hold none."""
    code = pl.col("code_presentation").str.extract_groups(r"^(?<year>\d{4})(?<half>[BJ])$")
    month = code.struct.field("half").replace_strict(_MONTHS, default=None, return_dtype=pl.Int64)
    written = pl.format("{}-{}-1", code.struct.field("year"), month)
    start = written.str.to_date("%Y-%m-%d", strict=False)
    days = pl.col("date").cast(pl.Float64, strict=False)
    days = pl.when(days.abs() < 10_000).then(days).cast(pl.Int64)
    return (start + pl.duration(days=days)).cast(pl.Datetime("us"))
