"""Which columns of a table a log is read from: what is missing is asked for, outcomes included."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import (
    REQUIRED,
    Columns,
    choose_columns,
    count_known,
    describe_columns,
    plain,
    reject_duplicates,
)
from understudy.core.files.source import Guess
from understudy.core.files.suggestions import with_suggestions
from understudy.core.files.tables import Table
from understudy.core.files.times import DateOrder, read_each_time
from understudy.errors import DataError

_WITHOUT_OUTCOMES = ("learner", "action")
_GUESS = Guess(
    "from what is in the columns that the log has no outcomes",
    ("no_outcomes", "outcome"),
    declare={"no_outcomes": True},
)


def read_log_columns(
    table: Table, options: ReadOptions, defaults: Columns | None = None, known: Collection[str] = ()
) -> EventTable:
    """The events of a table; an error says what columns look like that were not found.

    A log may lack outcomes. But a column that looks like them is asked about: that there are none is then for the user
    to say. `known` are columns of a format, as `plain` writes them, that hold no outcomes.
    """
    positions, guesses = _positions(table, options, defaults, known)
    events = EventTable.from_table(table, positions, options)
    events.guesses += guesses
    return events


def _positions(
    table: Table, options: ReadOptions, defaults: Columns | None, known: Collection[str]
) -> tuple[dict[str, int], tuple[Guess, ...]]:
    _refuse_data_as_header(table, options)
    reject_duplicates(table.names, table.file)
    choose = partial(choose_columns, table.names, options.columns, table.file, defaults=defaults or Columns())
    try:
        return choose(required=_WITHOUT_OUTCOMES if options.outcomes == "left out" else REQUIRED), ()
    except DataError as error:
        looked = with_suggestions(error, table, mark=options.mark)
    lacking = looked.fields.get("roles", ())
    seen = {*looked.fields.get("suggested", ()), *looked.fields.get("undecided", ())}
    if options.outcomes != "wanted" or "outcome" not in lacking or "column" in looked.fields:
        raise looked
    if list(lacking) == ["outcome"] and "outcome" not in seen:
        positions = choose(required=_WITHOUT_OUTCOMES)
        others = [name for place, name in enumerate(table.names) if place not in positions.values()]
        if any(plain(name) not in known for name in others):
            # What is in their cells decided that none of them holds outcomes.
            return positions, (_GUESS,)
        return positions, ()
    raise DataError(
        looked.message,
        hint=f"{looked.hint} Or declare that the log has no outcomes.",
        code=looked.code,
        settings=(*looked.settings, "no_outcomes"),
        **looked.fields,
    )


def _refuse_data_as_header(table: Table, options: ReadOptions) -> None:
    """Say that the first line looks like a row, where no name is known and some are numbers or times."""
    asked = options.columns.given().values()
    if options.no_header or count_known(table.names) or not all(name.isdecimal() for name in asked):
        return
    names = pl.Series(table.names, dtype=pl.String)
    numbers = names.cast(pl.Float64, strict=False).is_not_null()
    if (numbers | read_each_time(names, order=DateOrder.day_first).is_not_null()).any():
        raise DataError(
            f"{table.file}: {describe_columns(table.names)}; the first line looks like a row, not like names.",
            hint="if so, declare that there is no header, and name columns by their numbers, from 1 on; else the first "
            "line has to hold the columns' names.",
            code="no-header",
            settings=("no_header", "learner", "action"),
        )
