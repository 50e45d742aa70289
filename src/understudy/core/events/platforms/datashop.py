"""DataShop exports: tab-separated transactions with knowledge components (KC) in columns of their own."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import COMPOSED, Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.tables import Table

JOINT = "~~"


def looks_like_datashop(names: Sequence[str]) -> bool:
    """Whether a header is that of a transaction export."""
    plains = {plain(name) for name in names}
    return "anonstudentid" in plains and bool({"outcome", "firstattempt", "correctfirstattempt"} & plains)


def read_datashop(table: Table, options: ReadOptions) -> EventTable:
    """One row per transaction; with skills="keep" one per transaction and knowledge component."""
    components = _components(table.names)
    plains = [plain(name) for name in table.names]
    problem = [plains.index(name) for name in ("problemname", "stepname") if name in plains]
    named = options.columns.without_composed([table.names[position] for position in problem])
    if named.action is not None:
        components, problem = [], []
    defaults = Columns(
        learner="Anon Student Id",
        action=table.names[(components or problem or [0])[0]] if components or problem else None,
        outcome="Outcome",
        time="Time",
    )
    positions = choose_columns(table.names, named, table.file, defaults=defaults)
    if problem and not components and options.columns.item is None:
        positions.pop("item", None)  # problem and step are the action already
    # DataShop repeats a column's name when there are several values; any other repetition is an error.
    reject_duplicates([name for name in table.names if not name.startswith(("KC", "CF"))], table.file)
    parts = components or problem
    extra = {f"part {number}": position for number, position in enumerate(parts)}
    events = EventTable.from_table(table, positions, options, extra)

    _drop_hints(events)
    if not parts:
        return events
    texts = [pl.col(name).str.strip_chars().replace("", None) for name in extra]
    if components:
        kcs = pl.concat_list(pl.concat_str(texts, separator=JOINT, ignore_nulls=True).str.split(JOINT))
        kcs = (
            kcs.list.eval(pl.element().str.strip_chars().filter(pl.element() != "")).list.unique().list.sort()
        )
        events.frame = events.frame.with_columns(kcs.alias("action"))
        events.drop(pl.col("action").list.len() == 0, "without a knowledge component")
        if options.skills == "keep":
            events.frame = events.frame.explode("action")
        else:
            events.frame = events.frame.with_columns(pl.col("action").list.join(JOINT))
    else:
        events.columns["action"] = COMPOSED.join(table.names[position] for position in problem)
        events.frame = events.frame.with_columns(
            pl.concat_str(texts, separator=" / ", ignore_nulls=True).replace("", None).alias("action")
        )
        events.notes.append("There is no column with knowledge components: the action is the problem's step.")
    events.frame = events.frame.drop(list(extra))
    return events


def _components(names: tuple[str, ...]) -> list[int]:
    """The positions of the first KC model's columns."""
    first = next((name for name in names if plain(name).startswith("kc(")), None)
    return [position for position, name in enumerate(names) if name == first]


def _drop_hints(events: EventTable) -> None:
    outcome = pl.col("outcome").cast(pl.String).str.strip_chars().str.to_lowercase()
    events.drop(outcome.str.contains("hint", literal=True), "that ask for a hint")
    events.drop(outcome.is_null() | (outcome == ""), "without an outcome")
