"""ASSISTments skill builder data as published: a row per skill of a problem, ordered by order_id."""

from __future__ import annotations

import polars as pl

from understudy.core.events.event_table import Draft, Request, used_columns
from understudy.core.files.columns import Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.tables import Table
from understudy.errors import DataError

_DEFAULTS = Columns(learner="user_id", action="skill_name", outcome="correct", item="problem_id")
_NO_SKILL = ("NA", "NaN", "nan", "NULL", "null")


def looks_like_assistments(names: tuple[str, ...]) -> bool:
    """Whether a header is that of the published files."""
    plains = {plain(name) for name in names}
    return {"orderid", "userid", "correct"} <= plains and bool({"skillname", "skillid"} & plains)


def draft_assistments(table: Table, request: Request) -> Draft:
    """One row per attempt (skills joined by "+") or, with skills="keep", one per attempt and skill."""
    reject_duplicates(table.names, table.file)
    plains = [plain(name) for name in table.names]
    if "orderid" not in plains:
        raise DataError(
            f"{table.file}: found no column 'order_id', by which ASSISTments data is ordered.",
            hint="read the file with --format csv if its rows are in order.",
        )
    positions = choose_columns(table.names, request.columns, table.file, defaults=_DEFAULTS)
    positions.pop("time", None)  # order_id is the order
    columns = used_columns(table.names, positions)
    extra = {"order": plains.index("orderid")}
    by_name = plain(columns["action"]) == "skillname" and request.columns.action is None
    if by_name and "skillid" in plains:
        extra["skill_id"] = plains.index("skillid")
    draft = Draft(table.file, table.read({**positions, **extra}), columns, list(table.notes), table.place)
    draft.find_people(table)
    draft.tidy(request)

    action = pl.col("action").replace(list(_NO_SKILL), None)
    if "skill_id" in extra:
        skill_id = pl.col("skill_id").cast(pl.String).str.strip_chars().replace(["", *_NO_SKILL], None)
        action = pl.coalesce(action, skill_id)
    draft.frame = draft.frame.with_columns(action.alias("action"))
    draft.drop(pl.col("action").is_null(), "without a skill")
    draft.require_rows()
    _sort_by_order(draft, table.names[extra["order"]])
    if request.skills == "merge":
        _merge_skills(draft)
    return draft


def _sort_by_order(draft: Draft, name: str) -> None:
    order = draft.frame["order"].cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    missing = order.is_null()
    if missing.any():
        raise DataError(
            f"{draft.file}: column '{name}' holds something other than a number {draft.at(missing)}.",
            hint="repair these rows, or read the file with --format csv.",
        )
    draft.frame = draft.frame.with_columns(order.alias("order")).sort("order", maintain_order=True)


def _merge_skills(draft: Draft) -> None:
    n_rows = draft.frame.height
    attempt = ["order", "learner"]
    others = [name for name in draft.frame.columns if name not in (*attempt, "action")]
    merged = draft.frame.group_by(attempt, maintain_order=True).agg(
        pl.col("action").unique().sort().str.join("+"),
        pl.col(others).first(),
        pl.col("outcome").n_unique().alias("n_outcomes"),
    )
    if contradictory := int((merged["n_outcomes"] > 1).sum()):
        draft.notes.append(
            f"{contradictory} attempts have outcomes that differ between their skills; the first was kept."
        )
    if n_rows > merged.height:
        draft.notes.append(
            f"{n_rows - merged.height} rows were merged: the skills of one attempt are one action, by '+'."
        )
    draft.frame = merged
