"""Interactions from and to frames: where columns are checked and names become codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from understudy.core.events.read_options import CellOptions
from understudy.core.files.columns import describe_columns
from understudy.core.files.frames import as_polars
from understudy.core.files.origin import Origin
from understudy.core.files.outcomes import read_outcomes
from understudy.core.files.people.learner_ids import digests_of_names
from understudy.core.files.people.mentions import identifiers_in_actions
from understudy.core.files.tables import FrameTable, rows_from
from understudy.core.files.times import counts_from_a_start, has_mixed_zones, read_each_time, unit_in_name
from understudy.core.files.words import counted
from understudy.core.names import natural_order
from understudy.errors import DataError
from understudy.logs.declared.cells import ReadColumn, one_per_learner, read_column
from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.declared.term import Term
from understudy.logs.interactions import IntArray, Interactions, offsets_of
from understudy.logs.large.parts import in_parts, ranges_of


def interactions_from_frame(
    frame: Any,
    columns: Mapping[str, str | None],
    first_line: int,
    single_rows: bool,
    cells: CellOptions = CellOptions(),  # noqa: B008 (frozen)
    declared: Mapping[str, Declared] = MappingProxyType({}),
    term: Term | None = None,
    *,
    may_be_empty: bool = False,
) -> Interactions:
    """See `Interactions.from_frame`; `declared` are columns by what they are called in the frame.

    A piece of a large log may be empty.
    """
    table = as_polars(frame)
    wanted = {role: name for role, name in columns.items() if name is not None}
    missing = [name for name in (*wanted.values(), *declared) if name not in table.columns]
    if missing:
        raise DataError(
            f"asked for column {', '.join(map(repr, missing))}; {describe_columns(table.columns)}.",
            hint="name the columns.",
            code="no-such-column",
            settings=("learner", "action", "outcome", "time"),
            roles=[role for role, name in wanted.items() if name in missing],
        )
    if table.height == 0 and not may_be_empty:
        raise DataError("the log is empty: there is a header but no row.", hint="check the export.")
    whole, table = table, table.select(pl.col(name).alias(role) for role, name in wanted.items())
    for role in ("learner", "action"):
        _reject_missing(table[role], columns[role], first_line)

    learner, learner_names = _codes(table["learner"].cast(pl.String))
    n_learners = len(learner_names)
    if n_learners == table.height and table.height > 1 and not single_rows:
        raise DataError(
            f"column '{columns['learner']}' has a different value on each of the {table.height} rows, "
            "so it cannot say who did what.",
            hint="choose the column that names the learner.",
            code="learner-on-each-row",
            settings=("learner",),
        )
    outcome = parse_outcomes(table["outcome"], wanted["outcome"], first_line) if "outcome" in wanted else None
    action, action_names = _codes(table["action"].cast(pl.String), ordered=True)
    time = (
        _parse_times(table["time"], wanted["time"], first_line, cells.time_unit) if "time" in wanted else None
    )

    order = np.argsort(learner, kind="stable") if time is None else np.lexsort((time, learner))
    group, group_names = _group_of_learners(table, learner, n_learners) if "group" in wanted else (None, ())
    item, item_names = (
        _codes(table["item"].cast(pl.String).fill_null(""), ordered=True) if "item" in wanted else (None, ())
    )
    further = _read_declared(whole, declared, cells, first_line, learner, n_learners, order)
    return Interactions(
        action=action[order],
        outcome=None if outcome is None else outcome[order],
        offsets=offsets_of(np.bincount(learner, minlength=n_learners)),
        actions=action_names,
        item=None if item is None else item[order],
        items=item_names,
        time=None if time is None else time[order],
        group=group,
        groups=group_names,
        columns=tuple(read.column for read in further),
        term=None if time is None else term,
        origin=Origin(
            columns=wanted,
            notes=tuple(note for read in further for note in read.notes),
            identifiers=tuple(
                identifiers_in_actions(
                    wanted["action"],
                    pl.Series(action_names, dtype=pl.String),
                    pl.Series(learner_names, dtype=pl.String),
                )
            ),
            digests=digests_of_names(pl.Series(learner_names, dtype=pl.String)),
        ),
    )


def _read_declared(
    frame: pl.DataFrame,
    declared: Mapping[str, Declared],
    options: CellOptions,
    first_line: int,
    learner: IntArray,
    n_learners: int,
    order: IntArray,
) -> list[ReadColumn]:
    """The declared columns of a frame: those of rows in the order of the log, those of learners once for each."""
    if not declared:
        return []
    lines = frame["line"] if "line" in frame.columns else rows_from(first_line, frame)
    texts = FrameTable("the frame", tuple(frame.columns), frame, lines).read(
        {name: frame.columns.index(name) for name in declared}
    )
    read = [read_column(texts[name], each, lines, options) for name, each in declared.items()]
    return [
        one_per_learner(column, learner, n_learners)
        if column.column.declared.of == "learner"
        else replace(column, column=column.column.take(order))
        for column in read
    ]


def frame_from_interactions(log: Interactions, prefix: str) -> pl.DataFrame:
    """See `Interactions.to_frame`."""
    return _rows(log, _learner_names(log, prefix))


def rows_to_write(log: Interactions, prefix: str, group: str | None = None) -> pl.DataFrame | pl.LazyFrame:
    """The same for a file: of a large log one that has only a part of its rows in memory at a time.

    With the learners' groups under the name `group`, if that is given.
    """
    names = _learner_names(log, prefix)
    if not in_parts(log):
        return _rows(log, names, group)

    def parts(*wishes: Any) -> Iterator[pl.DataFrame]:
        for first, last in ranges_of(log.offsets):
            yield _rows(log.select(np.arange(first, last)), names[first:last], group)

    schema = _rows(log.select(np.arange(1)), names[:1], group).schema
    return register_io_source(parts, schema=schema)


def rows_of_part(part: Interactions, prefix: str, first: int, n_learners: int) -> pl.DataFrame:
    """The rows of a part, whose learners are the `first` and those that follow of so many."""
    width = len(str(n_learners))
    names = [f"{prefix}{first + i + 1:0{width}}" for i in range(part.n_learners)]
    return _rows(part, pl.Series(names, dtype=pl.String))


def _rows(log: Interactions, names: pl.Series, group: str | None = None) -> pl.DataFrame:
    columns = {
        "learner": names.gather(log.learner),
        "action": pl.Series(log.actions, dtype=pl.String).gather(log.action),
    }
    if log.outcome is not None:
        columns["outcome"] = pl.Series(log.outcome.astype(np.int8))
    if log.has_times:
        columns["time"] = _written_times(log)
    if group is not None and log.group is not None:
        columns[group] = pl.Series(log.groups, dtype=pl.String).gather(log.group[log.learner])
    return pl.DataFrame(columns | {each.declared.name: _written(each) for each in log.row_columns})


def learner_frame(log: Interactions, prefix: str) -> pl.DataFrame:
    """See `Interactions.learners_to_polars`."""
    return pl.DataFrame(
        {"learner": _learner_names(log, prefix)}
        | {each.declared.name: _written(each) for each in log.learner_columns}
    )


def _learner_names(log: Interactions, prefix: str) -> pl.Series:
    width = len(str(log.n_learners))
    return pl.Series([f"{prefix}{i + 1:0{width}}" for i in range(log.n_learners)], dtype=pl.String)


def _written_times(log: Interactions) -> pl.Series:
    """Times as they are written: those that count from a start of their own as seconds, to the declared resolution."""
    assert log.term is not None
    times = pl.Series(log.time).cast(pl.Datetime("us"))
    if counts_from_a_start(times):
        seconds = times.dt.epoch("us") / 1e6
        return seconds.cast(pl.Int64) if log.term.resolution >= 1 else seconds
    return times


def _written(column: Column) -> pl.Series:
    """The cells of a declared column as values; a missing one is null."""
    cells = pl.Series(column.cells)
    declared = column.declared
    if declared.coded:
        return pl.Series(declared.names, dtype=pl.String).gather(cells.set(cells < 0, None))
    cells = cells.fill_nan(None)
    if declared.kind is Kind.time:
        return (cells * 1e6).cast(pl.Int64).cast(pl.Datetime("us"))
    whole = declared.step is not None and declared.step == int(declared.step)
    return cells.cast(pl.Int64) if whole else cells


def parse_outcomes(values: pl.Series, name: str, first_line: int) -> IntArray:
    """Outcomes as 0 and 1, or an error that names the first line where they are not."""
    if values.dtype == pl.Boolean or values.dtype.is_numeric():
        numbers = values.cast(pl.Float64)
    else:
        numbers = read_outcomes(values).cast(pl.Float64)
    bad = ~numbers.is_in([0.0, 1.0]).fill_null(False)
    if bad.any():
        raise DataError(
            f"column '{name}' holds outcomes other than 0 and 1: {int(bad.sum())} of {len(bad)} rows, "
            f"the first on line {first_line + int(bad.arg_max() or 0)}.",
            hint="outcomes are 0 or 1 (also true/false, correct/incorrect, yes/no); choose another column.",
            code="not-an-outcome",
            settings=("outcome",),
        )
    return numbers.cast(pl.Int8).to_numpy()


def _parse_times(values: pl.Series, name: str, first_line: int, unit: str | None) -> Any:
    if has_mixed_zones(values):
        raise DataError(
            f"the times in column '{name}' mix time zones.",
            hint="write them in one zone.",
            code="mixed-zones",
        )
    times = read_each_time(values, unit=unit or unit_in_name(name) or "s", since_start=True)
    bad = times.is_null()
    if bad.any():
        raise DataError(
            f"column '{name}' holds something that cannot be read as a time: {int(bad.sum())} of {len(bad)} rows, "
            f"the first on line {first_line + int(bad.arg_max() or 0)}.",
            hint="give times as dates, as texts such as 2024-05-31 14:05:09, or as seconds; declare "
            "another unit.",
            code="not-a-time",
            settings=("time_unit",),
        )
    return times.to_numpy().astype("datetime64[us]")


def _reject_missing(values: pl.Series, name: str | None, first_line: int) -> None:
    missing = values.is_null()
    if values.dtype == pl.String:
        missing = missing | (values == "")
    if missing.fill_null(True).any():
        n_missing = int(missing.fill_null(True).sum())
        raise DataError(
            f"column '{name}' has no readable value on line "
            f"{first_line + int(missing.arg_max() or 0)} ({counted(n_missing, 'such row')}).",
            hint="remove or repair these rows, or choose another column.",
        )


def _codes(values: pl.Series, *, ordered: bool = False) -> tuple[IntArray, tuple[str, ...]]:
    """A code per value and the names behind the codes: in natural order, or in order of appearance."""
    names = values.unique(maintain_order=True).to_list()
    if ordered:
        names = list(natural_order(names))
    lookup = pl.Series(names, dtype=pl.String)
    if not names:
        return np.empty(0, dtype=np.int32), ()
    codes = values.replace_strict(lookup, pl.Series(range(len(names)), dtype=pl.Int32), return_dtype=pl.Int32)
    return codes.to_numpy().copy(), tuple(names)


def _group_of_learners(
    table: pl.DataFrame, learner: IntArray, n_learners: int
) -> tuple[IntArray, tuple[str, ...]]:
    codes, names = _codes(table["group"].cast(pl.String).fill_null("unknown"), ordered=True)
    first = np.full(n_learners, -1, dtype=np.int32)
    first[learner[::-1]] = codes[::-1]
    if (first[learner] != codes).any():
        raise DataError(
            "the group column changes within a learner, so it does not describe learners.",
            hint="give a column with one value per learner.",
        )
    return first, names
