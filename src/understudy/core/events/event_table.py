"""EventTable: what a platform's file says happened, one event per row, before a wing makes its own record of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import polars as pl

from understudy.core.files.columns import Columns
from understudy.core.files.identifiers import Identifier, NamedPeople, identifiers_in
from understudy.core.files.mentions import identifiers_in_actions
from understudy.core.files.origin import Origin
from understudy.core.files.tables import Table
from understudy.core.files.times import UnreadableTimesError, guess_notation, parse_times
from understudy.core.files.withdrawals import Withdrawn
from understudy.core.files.words import FALSE_WORDS, TRUE_WORDS, counted
from understudy.errors import DataError, UsageError


@dataclass(frozen=True, repr=False)
class ReadOptions:
    """What the user wants from a file."""

    columns: Columns = field(default_factory=Columns)
    withdrawn: Withdrawn | None = None
    skills: Literal["merge", "keep"] = "merge"
    single_rows: bool = False

    def refuse_columns(self, format: str) -> None:
        """For formats whose columns have no names to choose from."""
        if given := self.columns.given():
            raise UsageError(
                f"the format {format} has no columns to choose from, but one was given for the {next(iter(given))}.",
                hint="leave it out, or name the format.",
                code="no-columns",
                settings=(next(iter(given)), "format"),
            )


@dataclass(repr=False)
class EventTable:
    """Events as a format's reader gives them: learner, action, outcome, line, and perhaps time, item, group.

    `settle` checks them, with errors that name the line. `columns` says which column of the file
    plays which role; `place` what `line` counts;
    `instants` that the format defines every time as an instant, whatever zone it is written in.
    Dropping rows adds a note, so that nothing is lost in silence. `learners` and `people`
    hold whom the file and the list of withdrawals name, to be searched for in the actions.
    """

    file: str
    frame: pl.DataFrame
    columns: dict[str, str]
    notes: list[str]
    place: str = "line"
    identifiers: list[Identifier] = field(default_factory=list)
    instants: bool = False
    learners: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.String))
    people: list[NamedPeople] = field(default_factory=list)
    n_withdrawn: int = 0
    n_absent: int = 0

    def find_people(self, table: Table) -> None:
        """Note which columns of the table identify people, and whom they name."""
        identifiers, people = identifiers_in(table, self.columns)
        self.identifiers += identifiers
        self.people += people

    def tidy(self, options: ReadOptions) -> None:
        """Strip names, make empty ones null, and leave out those who withdrew."""
        names = [
            name for name in ("learner", "alias", "action", "item", "group") if name in self.frame.columns
        ]
        self.frame = self.frame.with_columns(
            pl.col(names).cast(pl.String).str.strip_chars().replace("", None),
        )
        # Before anybody is left out: an action may name them all the same.
        known = [self.frame[name] for name in ("learner", "alias") if name in self.frame.columns]
        if options.withdrawn is not None:
            left = options.withdrawn.leave_out(self.frame, self.columns["learner"])
            known.append(left.names)
            self.frame, self.n_withdrawn, self.n_absent = left.frame, left.n_learners, left.n_absent
            self.notes.append(left.note)
        self.learners = pl.concat([names.drop_nulls().unique() for names in known])

    def drop(self, unwanted: pl.Expr, reason: str) -> None:
        """Drop rows for a reason that reads on from "n rows"."""
        dropped = self.frame.select(unwanted.fill_null(False)).to_series()
        if n_dropped := int(dropped.sum()):
            self.frame = self.frame.filter(~dropped)
            self.notes.append(f"{n_dropped} rows {reason} were dropped.")

    def at(self, bad: pl.Series) -> str:
        """Where the first of some rows stands, and how many there are."""
        line = self.frame["line"][int(bad.arg_max() or 0)]
        return f"on {self.place} {line} ({counted(int(bad.sum()), 'such row')})"

    def require_rows(self) -> None:
        """Refuse a log from which nothing is left."""
        if self.frame.height == 0:
            raise DataError(
                f"{self.file}: no row is left to read.",
                hint="see what the format needs, or check the export.",
            )

    def settle(self, options: ReadOptions) -> None:
        """Check every row: names where they must be, outcomes as 0 and 1, times that can be read."""
        self.require_rows()
        for role in ("learner", "action"):
            missing = self.frame[role].is_null()
            if missing.any():
                raise DataError(
                    f"{self.file}: column '{self.columns[role]}' has no value {self.at(missing)}.",
                    hint="remove or repair these rows, or choose another column.",
                    code="empty-cells",
                    settings=(role,),
                )
        self.frame = self.frame.with_columns(_outcomes(self))
        _settle_time(self, options)
        _refuse_single_rows(self, options)

    def origin(self, path: Path, format: str, names: tuple[str, ...]) -> Origin:
        """Where the events came from; `names` are the actions or items, in which people are searched for."""
        mentioned = identifiers_in_actions(
            self.columns["action"], pl.Series(names, dtype=pl.String), self.learners, self.people
        )
        known = {(found.column, found.kind, found.role) for found in mentioned}
        by_column = [
            found for found in self.identifiers if (found.column, found.kind, found.role) not in known
        ]
        return Origin(
            path,
            format,
            MappingProxyType(dict(self.columns)),
            tuple(self.notes),
            (*by_column, *mentioned),
            n_withdrawn=self.n_withdrawn,
            n_absent=self.n_absent,
        )


def _refuse_single_rows(events: EventTable, options: ReadOptions) -> None:
    n_rows = events.frame.height
    if not options.single_rows and n_rows > 1 and events.frame["learner"].n_unique() == n_rows:
        raise DataError(
            f"{events.file}: column '{events.columns['learner']}' has a different value on each of the "
            f"{n_rows} rows, so it cannot say who did what.",
            hint="choose the column that names the learner.",
            code="learner-on-each-row",
            settings=("learner",),
        )


def _outcomes(events: EventTable) -> pl.Series:
    values = events.frame["outcome"]
    if values.dtype == pl.Int8:
        return values
    words = values.cast(pl.String).str.strip_chars().str.to_lowercase()
    outcomes = pl.select(
        pl.when(words.is_in(TRUE_WORDS))
        .then(pl.lit(1, pl.Int8))
        .when(words.is_in(FALSE_WORDS))
        .then(pl.lit(0, pl.Int8))
        .alias("outcome")
    ).to_series()
    unknown = outcomes.is_null()
    if unknown.any():
        raise DataError(
            f"{events.file}: column '{events.columns['outcome']}' holds something other than 0 and 1 "
            f"{events.at(unknown)}.",
            hint="outcomes are 0 or 1 (also true/false, correct/incorrect, yes/no); choose another column.",
            code="not-an-outcome",
            settings=("outcome",),
        )
    return outcomes


def _settle_time(events: EventTable, options: ReadOptions) -> None:
    """Use the time column if it can be read; if the user named it, it has to be."""
    if "time" not in events.columns:
        return
    name, asked = events.columns["time"], options.columns.time is not None
    try:
        notation = guess_notation(events.frame["time"], refuse_durations=not asked)
        times = parse_times(events.frame["time"], notation, one_zone=not events.instants)
    except UnreadableTimesError as error:
        place = f"{events.place} {events.frame['line'][error.row]}"
        # Rows in several zones have an order, but not the one in which they stand.
        if asked or error.code == "mixed-zones":
            raise DataError(
                f"{events.file}: the times in column '{name}' {error.reason} (first on {place}).",
                hint="write times as 2024-05-31 14:05:09 or as seconds since 1970, in one zone.",
            ) from None
        del events.columns["time"]
        events.frame = events.frame.drop("time")
        events.notes.append(
            f"Column '{name}' was not used to order the rows: its values {error.reason} (first on {place}). "
            "The order of the file was kept."
        )
        return
    events.frame = events.frame.with_columns(times.datetimes.alias("time"))
    events.notes.append(f"The rows of each learner are in the order of column '{name}'.")


def used_columns(names: tuple[str, ...], positions: Mapping[str, int]) -> dict[str, str]:
    """Role to column name, for a reader that chose columns by position."""
    return {role: names[position] for role, position in positions.items()}
