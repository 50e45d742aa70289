"""ASSISTments data as published, by year: ordered by a number or by the time, and with partial credit in some years."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.outcomes import number_in, words_of
from understudy.core.files.tables import Table
from understudy.core.files.words import counted
from understudy.errors import DataError


@dataclass(frozen=True)
class _Year:
    """The columns of a year's file: those that show which year it is, and those that are read."""

    shown_by: frozenset[str]
    defaults: Columns
    order: str | None = None
    """The column with a number that orders the rows, where no time does."""


_SKILL_BUILDER = _Year(
    frozenset({"orderid", "userid", "correct"}),
    Columns(learner="user_id", action="skill_name", outcome="correct", item="problem_id"),
    "order_id",
)
_YEARS = {
    "2009-2010": _SKILL_BUILDER,
    "2012-2013": _Year(
        frozenset({"problemlogid", "userid", "skill", "problemid", "starttime", "endtime", "correct"}),
        Columns("user_id", "skill", "correct", "start_time", "problem_id"),
    ),
    "2015": _Year(
        frozenset({"userid", "logid", "sequenceid", "correct"}),
        Columns(learner="user_id", action="sequence_id", outcome="correct"),
        "log_id",
    ),
    "2017": _Year(
        frozenset({"skill", "problemid", "starttime", "endtime", "correct", "actionid"}),
        Columns("studentId", "skill", "correct", "startTime", "problemId"),
    ),
}
_NO_SKILL = ("NA", "NaN", "nan", "NULL", "null", "noskill")


def looks_like_assistments(names: Sequence[str]) -> bool:
    """Whether a header is that of the published files."""
    return _year(names) is not None


def _year(names: Sequence[str]) -> _Year | None:
    plains = {plain(name) for name in names}
    for year in _YEARS.values():
        if year.shown_by <= plains and (
            year is not _SKILL_BUILDER or bool({"skillname", "skillid"} & plains)
        ):
            return year
    return None


def read_assistments(table: Table, options: ReadOptions) -> EventTable:
    """One row per attempt (skills joined by "+") or, with skills="keep", one per attempt and skill.

    Credit in part is no success, unless a pass mark is declared.
    """
    reject_duplicates(table.names, table.file)
    plains = [plain(name) for name in table.names]
    year = _year(table.names) or _SKILL_BUILDER
    if year.order is not None and plain(year.order) not in plains:
        raise DataError(
            f"{table.file}: found no column 'order_id', by which ASSISTments data is ordered.",
            hint="read the file as csv if its rows are in order.",
            settings=("format",),
        )
    # The same learner's column in an earlier release of the file of 2017.
    learner = "ITEST_id" if "studentid" not in plains and "itestid" in plains else year.defaults.learner
    positions = choose_columns(
        table.names, options.columns, table.file, defaults=replace(year.defaults, learner=learner)
    )
    extra = {}
    if year.order is not None:
        positions.pop("time", None)  # the number is the order
        extra["order"] = plains.index(plain(year.order))
    by_name = plains[positions["action"]] in ("skillname", "skill") and options.columns.action is None
    if by_name and "skillid" in plains:
        extra["skill_id"] = plains.index("skillid")
    events = EventTable.from_table(table, positions, options, extra)

    action = pl.col("action").replace(list(_NO_SKILL), None)
    if "skill_id" in extra:
        skill_id = pl.col("skill_id").cast(pl.String).str.strip_chars().replace(["", *_NO_SKILL], None)
        action = pl.coalesce(action, skill_id)
    events.frame = events.frame.with_columns(action.alias("action"))
    events.drop(pl.col("action").is_null(), "without a skill")
    events.require_rows()
    if options.mark.points is None:
        _without_partial_credit(events)
    if year.order is not None:
        _sort_by_order(events, table.names[extra["order"]])
        if options.skills == "merge" and year is _SKILL_BUILDER:
            _merge_skills(events)
    return events


def _without_partial_credit(events: EventTable) -> None:
    """Credit in part is no success: so the platform counts an attempt in which help was needed."""
    word = words_of(events.frame["outcome"]).alias("word").to_frame()
    number = word.select(number_in(pl.col("word"))).to_series()
    partial = ((number > 0) & (number < 1)).fill_null(False)
    if n_partial := int(partial.sum()):
        outcome = pl.when(partial).then(pl.lit("0")).otherwise(pl.col("outcome").cast(pl.String))
        events.frame = events.frame.with_columns(outcome.alias("outcome"))
        events.notes.append(
            f"{counted(n_partial, 'row')} with credit in part: no success unless `pass_from` declares from where on."
        )


def _sort_by_order(events: EventTable, name: str) -> None:
    order = events.frame["order"].cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    missing = order.is_null()
    if missing.any():
        raise DataError(
            f"{events.file}: column '{name}' holds something other than a number {events.at(missing)}.",
            hint="repair these rows, or read the file as csv.",
            settings=("format",),
        )
    events.frame = events.frame.with_columns(order.alias("order")).sort("order", maintain_order=True)


def _merge_skills(events: EventTable) -> None:
    n_rows = events.frame.height
    attempt = ["order", "learner"]
    others = [name for name in events.frame.columns if name not in (*attempt, "action")]
    merged = events.frame.group_by(attempt, maintain_order=True).agg(
        pl.col("action").unique().sort().str.join("+"),
        pl.col(others).first(),
        pl.col("outcome").n_unique().alias("n_outcomes"),
    )
    if contradictory := int((merged["n_outcomes"] > 1).sum()):
        events.notes.append(
            f"{contradictory} attempts have outcomes that differ between their skills; the first was kept."
        )
    if n_rows > merged.height:
        events.notes.append(
            f"{n_rows - merged.height} rows were merged: the skills of one attempt are one action, by '+'."
        )
    events.frame = merged
