"""ASSISTments skill builder data as published: a row per skill of a problem, ordered by order_id."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from understudy.core.events.event_table import EventTable, ReadOptions
from understudy.core.files.columns import Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.tables import Table
from understudy.errors import DataError

_DEFAULTS = Columns(learner="user_id", action="skill_name", outcome="correct", item="problem_id")
_NO_SKILL = ("NA", "NaN", "nan", "NULL", "null")


def looks_like_assistments(names: Sequence[str]) -> bool:
    """Whether a header is that of the published files."""
    plains = {plain(name) for name in names}
    return {"orderid", "userid", "correct"} <= plains and bool({"skillname", "skillid"} & plains)


def read_assistments(table: Table, options: ReadOptions) -> EventTable:
    """One row per attempt (skills joined by "+") or, with skills="keep", one per attempt and skill."""
    reject_duplicates(table.names, table.file)
    plains = [plain(name) for name in table.names]
    if "orderid" not in plains:
        raise DataError(
            f"{table.file}: found no column 'order_id', by which ASSISTments data is ordered.",
            hint="read the file as csv if its rows are in order.",
            settings=("format",),
        )
    positions = choose_columns(table.names, options.columns, table.file, defaults=_DEFAULTS)
    positions.pop("time", None)  # order_id is the order
    extra = {"order": plains.index("orderid")}
    by_name = plains[positions["action"]] == "skillname" and options.columns.action is None
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
    _sort_by_order(events, table.names[extra["order"]])
    if options.skills == "merge":
        _merge_skills(events)
    return events


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
