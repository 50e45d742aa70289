"""Junyi Academy's logs of problems: the one of 2015 with times in microseconds, and the one of 2018 to 2019.

The later one has its times on the clock of Taiwan, to a quarter of an hour, although it writes "UTC" behind them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.tables import Table

_EARLIER = Columns("user_id", "exercise", "correct", "time_done", "problem_type")
_LATER = Columns("uuid", "ucid", "is_correct", "timestamp_TW", "upid")


def looks_like_junyi(names: Sequence[str]) -> bool:
    """Whether a header is that of a log of problems."""
    return _columns(names) is not None


def _columns(names: Sequence[str]) -> Columns | None:
    plains = {plain(name) for name in names}
    if {"uuid", "ucid", "upid", "iscorrect", "timestamptw"} <= plains:
        return _LATER
    if {"exercise", "problemtype", "timedone", "correct"} <= plains and {"userid", "uuid"} & plains:
        return _EARLIER
    return None


def read_junyi(table: Table, options: ReadOptions) -> EventTable:
    """One row per problem; the action is the exercise."""
    reject_duplicates(table.names, table.file)
    defaults = _columns(table.names) or _LATER
    positions = choose_columns(table.names, options.columns, table.file, defaults=defaults)
    events = EventTable.from_table(table, positions, options)
    if defaults is _LATER and events.frame["time"].dtype == pl.String:
        clock = pl.col("time").str.replace(r"\s*UTC\s*$", "")
        events.frame = events.frame.with_columns(clock.alias("time"))
    events.time_unit = "us"
    return events
