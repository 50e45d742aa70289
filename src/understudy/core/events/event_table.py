"""From rows as a format gives them to Interactions: checked by line, cleaned, counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from understudy.core.files.columns import Columns
from understudy.core.files.identifiers import Identifier, NamedPeople, identifiers_in
from understudy.core.files.tables import Table
from understudy.core.files.times import UnreadableTimesError, parse_times
from understudy.core.files.withdrawals import Withdrawn
from understudy.errors import DataError, UsageError
from understudy.logs.frames import FALSE_WORDS, TRUE_WORDS
from understudy.logs.interactions import Interactions


@dataclass(frozen=True, repr=False)
class Request:
    """What the user wants from a file."""

    columns: Columns = field(default_factory=Columns)
    withdrawn: Withdrawn | None = None
    skills: Literal["merge", "keep"] = "merge"
    single_rows: bool = False

    def refuse_columns(self, format: str) -> None:
        """For formats whose columns have no names to choose from."""
        if given := self.columns.given():
            raise UsageError(
                f"the format {format} has no columns to choose from, but --{next(iter(given))} was given.",
                hint="leave the option out, or give the format with --format.",
            )


@dataclass(repr=False)
class Draft:
    """Rows under way: the columns learner, action, outcome, line, and perhaps time, item, group.

    `columns` says which column of the file plays which role; `place` what `line` counts;
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

    def tidy(self, request: Request) -> None:
        """Strip names, make empty ones null, and leave out those who withdrew."""
        names = [
            name for name in ("learner", "alias", "action", "item", "group") if name in self.frame.columns
        ]
        self.frame = self.frame.with_columns(
            pl.col(names).cast(pl.String).str.strip_chars().replace("", None),
        )
        # Before anybody is left out: an action may name them all the same.
        known = [self.frame[name] for name in ("learner", "alias") if name in self.frame.columns]
        if request.withdrawn is not None:
            left = request.withdrawn.leave_out(self.frame, self.columns["learner"])
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
        n_bad = int(bad.sum())
        return f"on {self.place} {line} ({n_bad} such row{'s' if n_bad > 1 else ''})"

    def require_rows(self) -> None:
        """Refuse a log from which nothing is left."""
        if self.frame.height == 0:
            raise DataError(
                f"{self.file}: no row is left to read.",
                hint="see what the format needs, or check the export.",
            )


def interactions_of(draft: Draft, request: Request) -> Interactions:
    """The draft's rows as validated Interactions; errors name the line."""
    draft.require_rows()
    for role in ("learner", "action"):
        missing = draft.frame[role].is_null()
        if missing.any():
            raise DataError(
                f"{draft.file}: column '{draft.columns[role]}' has no value {draft.at(missing)}.",
                hint="remove or repair these rows, or choose another column.",
            )
    draft.frame = draft.frame.with_columns(_outcomes(draft))
    _settle_time(draft, request)
    _refuse_single_rows(draft, request)
    time, item, group = (role if role in draft.columns else None for role in ("time", "item", "group"))
    try:
        return Interactions.from_frame(draft.frame, time=time, item=item, group=group, single_rows=True)
    except DataError as error:
        raise DataError(f"{draft.file}: {error.message}", hint=error.hint) from None


def _refuse_single_rows(draft: Draft, request: Request) -> None:
    n_rows = draft.frame.height
    if not request.single_rows and n_rows > 1 and draft.frame["learner"].n_unique() == n_rows:
        raise DataError(
            f"{draft.file}: column '{draft.columns['learner']}' has a different value on each of the "
            f"{n_rows} rows, so it cannot say who did what.",
            hint="choose the column that names the learner with --learner.",
        )


def _outcomes(draft: Draft) -> pl.Series:
    values = draft.frame["outcome"]
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
            f"{draft.file}: column '{draft.columns['outcome']}' holds something other than 0 and 1 "
            f"{draft.at(unknown)}.",
            hint="outcomes are 0 or 1 (also true/false, correct/incorrect, yes/no); "
            "choose another column with --outcome.",
        )
    return outcomes


def _settle_time(draft: Draft, request: Request) -> None:
    """Use the time column if it can be read; if the user named it, it has to be."""
    if "time" not in draft.columns:
        return
    name, asked = draft.columns["time"], request.columns.time is not None
    try:
        times = parse_times(draft.frame["time"], asked=asked, one_zone=not draft.instants)
    except UnreadableTimesError as error:
        place = f"{draft.place} {draft.frame['line'][error.row]}"
        # Rows in several zones have an order, but not the one in which they stand.
        if asked or error.zones:
            raise DataError(
                f"{draft.file}: the times in column '{name}' {error.reason} (first on {place}).",
                hint="write times as 2024-05-31 14:05:09 or as seconds since 1970, in one zone.",
            ) from None
        del draft.columns["time"]
        draft.frame = draft.frame.drop("time")
        draft.notes.append(
            f"Column '{name}' was not used to order the rows: its values {error.reason} (first on {place}). "
            "The order of the file was kept."
        )
        return
    draft.frame = draft.frame.with_columns(times.alias("time"))
    draft.notes.append(f"The rows of each learner are in the order of column '{name}'.")


def used_columns(names: tuple[str, ...], positions: Mapping[str, int]) -> dict[str, str]:
    """Role to column name, for a reader that chose columns by position."""
    return {role: names[position] for role, position in positions.items()}
