"""EventTable: what a platform's file says happened, one event per row, before a wing makes its own record of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from understudy.core.events.further_columns import further, further_positions
from understudy.core.events.people_in_text import PERSON, without_people
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.notes import Count, CountingNote, add_up
from understudy.core.files.origin import Origin
from understudy.core.files.outcomes import (
    NEEDS_LOW_MARK,
    NEEDS_MARK,
    PassMark,
    is_missing,
    read_outcomes,
    seem_low_grades,
)
from understudy.core.files.people.identifiers import Identifier, NamedPeople, identifiers_in, without_titles
from understudy.core.files.people.learner_ids import digests_of_names
from understudy.core.files.people.mentions import identifiers_in_actions
from understudy.core.files.source import Guess
from understudy.core.files.tables import Table
from understudy.core.files.words import counted
from understudy.errors import DataError


@dataclass(repr=False)
class EventTable:
    """Events as a format's reader gives them: learner, action, outcome, line, and perhaps time, item, group.

    `settle` checks them, with errors that name the line. `columns` says which column of the file
    plays which role; `place` what `line` counts;
    `instants` that the format defines every time as an instant, whatever zone it is written in.
    Dropping rows adds a note, so that nothing is lost in silence. `learners` and `people`
    hold whom the file and the list of withdrawals name, to be searched for in the actions.

    How a row is read never depends on other rows: formats, columns and notations are declared or follow
    from the header, and a cell that cannot be read concerns its own row, or stops the command. So a learner
    keeps a place in the table (`without_rows`) when all of their rows are dropped: the number of learners is
    that of the learner column.
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
    withdrawn: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.String))
    guesses: tuple[Guess, ...] = ()
    year_begins: date | None = None
    """Where a format writes days without a year: the day from which they count if none is declared."""
    yearless: bool = False
    time_unit: str | None = None
    """What numbers in the time column count, where the format says so."""
    names: tuple[str, ...] = ()
    """All columns of the file, where it is a table with names."""
    n_left_out: int = 0
    """Columns of the file that are not read."""
    partial: bool = False
    """Whether these are some learners of a file that is read in pieces: the others may have what these lack."""
    zones: frozenset[str | None] | None = None
    """Time zones that the whole file states, where this is a part of it."""
    _everyone: pl.DataFrame = field(default_factory=pl.DataFrame)

    @classmethod
    def from_table(
        cls,
        table: Table,
        positions: Mapping[str, int],
        options: ReadOptions,
        extra: Mapping[str, int] = MappingProxyType({}),
    ) -> EventTable:
        """The tidied events of a table, with all that its reader noted and guessed; `extra` columns have no role."""
        columns = {role: table.names[position] for role, position in positions.items()}
        declared = further_positions(table.names, options.further, table.file)
        if positions.get("learner") in declared.values():
            raise DataError(
                f"{table.file}: the column that names the learner is declared as one to be synthesized.",
                hint="take it out of the plan: learners in synthetic data have numbers of their own.",
                code="learner-declared",
                settings=("plan",),
            )
        frame = table.read({**positions, **extra, **declared})
        events = cls(table.file, frame, columns, list(table.notes), table.place, guesses=table.guesses)
        read = {*positions.values(), *extra.values(), *declared.values()}
        events.names = tuple(table.names)
        events.n_left_out = len(table.names) - len(read)
        events.find_people(table, {role: table.names[position] for role, position in declared.items()})
        events.tidy(options)
        return events

    def find_people(self, table: Table, declared: Mapping[str, str] = MappingProxyType({})) -> None:
        """Note which columns of the table identify people, and whom they name; `declared` ones have no role."""
        identifiers, people = identifiers_in(table, {**self.columns, **declared})
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
            self.withdrawn = left.gone
            self.notes.append(left.note)
            self.guesses += left.guesses
        self.learners = pl.concat([names.drop_nulls().unique() for names in known])
        roles = [role for role in ("learner", "group") if role in self.frame.columns]
        self._everyone = (
            self.frame.select(roles)
            .drop_nulls("learner")
            .unique("learner", keep="first", maintain_order=True)
        )

    def add_learners(self, others: EventTable) -> None:
        """Take in the learners of another table: they have a place without rows, and their names are looked for."""
        missing = [role for role in self._everyone.columns if role not in others._everyone.columns]
        more = others._everyone.with_columns(pl.lit(None, pl.String).alias(role) for role in missing)
        self._everyone = pl.concat([self._everyone, more.select(self._everyone.columns)]).unique(
            "learner", keep="first", maintain_order=True
        )
        self.learners = pl.concat([self.learners, others.learners]).unique()
        self.people += others.people
        self.identifiers += [found for found in others.identifiers if found not in self.identifiers]
        self.guesses += others.guesses
        self.withdrawn = pl.concat([self.withdrawn, others.withdrawn]).unique()
        self.n_withdrawn, self.n_absent = len(self.withdrawn), min(self.n_absent, others.n_absent)

    def place_learners(self, names: pl.Series) -> None:
        """Give everybody a place who is known without a row, as by the name of an empty file."""
        more = pl.DataFrame({"learner": names.filter(~names.is_in(self.withdrawn.implode()))})
        self._everyone = pl.concat([self._everyone, more], how="diagonal").unique(
            "learner", keep="first", maintain_order=True
        )
        self.learners = pl.concat([self.learners, names]).unique()

    def keep_learners(self, names: pl.Series) -> None:
        """Leave out everybody else."""
        wanted = pl.col("learner").is_in(names.implode())
        self.frame, self._everyone = self.frame.filter(wanted), self._everyone.filter(wanted)

    @property
    def everyone(self) -> pl.Series:
        """The learners in the order of a log that is made of the table: those with rows first."""
        return pl.concat([self.frame["learner"].unique(maintain_order=True), self.without_rows["learner"]])

    @property
    def without_rows(self) -> pl.DataFrame:
        """Learners of whom no row is left, with their groups."""
        return self._everyone.join(self.frame.select("learner").unique(), on="learner", how="anti")

    def drop(self, unwanted: pl.Expr, reason: str) -> None:
        """Drop rows for a reason that reads on from "n rows"."""
        dropped = self.frame.select(unwanted.fill_null(False)).to_series()
        if n_dropped := int(dropped.sum()):
            self.frame = self.frame.filter(~dropped)
            self.notes.append(CountingNote(Count(n_dropped), f" rows {reason} were dropped."))

    def keep_graded(self, options: ReadOptions, events: str) -> None:
        """Keep the rows with an outcome, in formats in which only some `events` (their name) have one.

        Where none has one, it is a log without outcomes; that is then read off its rows, and a guess.
        """
        if options.outcomes == "left out" or options.empty_outcomes:
            return
        ungraded = self.frame["outcome"].is_null()
        if options.outcomes == "wanted" and ungraded.all():
            self.frame = self.frame.drop("outcome")
            del self.columns["outcome"]
            what = f"from the {events} that the log has no outcomes"
            self.guesses += (Guess(what, ("no_outcomes",), declare={"no_outcomes": True}),)
            return
        self.drop(pl.col("outcome").is_null(), f"({events}) without an outcome")
        if ungraded.any() and options.outcomes == "wanted":
            self.notes.append(f"With `no_outcomes` or `empty_outcomes` all {events} are read.")

    def leave_people_out(self, role: str, replaced: Callable[[pl.Series], pl.Series]) -> None:
        """Put a constant where the text of a role names a person by its place; each text by itself."""
        # Names of actions are few, rows are many.
        texts = self.frame[role].drop_nulls().unique()
        without = replaced(texts)
        if (changed := texts != without).any():
            named = texts.filter(changed)
            n_rows = int(self.frame[role].is_in(named.implode()).sum())
            self.frame = self.frame.with_columns(pl.col(role).replace(named, without.filter(changed)))
            self.notes.append(
                CountingNote(
                    Count(n_rows, "row"),
                    f" of which the {role} points at a person, in an address or by an id in a sentence: '{PERSON}' is "
                    "written in that place.",
                )
            )

    def at(self, bad: pl.Series) -> str:
        """Where the first of some rows stands, and how many there are."""
        line = self.frame["line"][int(bad.arg_max() or 0)]
        here = " in this part of the file" if self.partial else ""
        return f"on {self.place} {line} ({counted(int(bad.sum()), 'such row')}{here})"

    def require_rows(self) -> None:
        """Refuse a log from which nothing is left."""
        if self.frame.height == 0 and not self.partial:
            raise no_row_left(self.file)

    def settle(self, options: ReadOptions) -> None:
        """Check every row: names where they must be, outcomes as 0 and 1, times that can be read.

        Before that, people are taken out of the names of actions and items where their place in the text shows them.
        """
        self.require_rows()
        for role in ("action", "item"):
            if role in self.frame.columns:
                self.leave_people_out(role, without_people)
        if options.outcomes == "left out" and "outcome" in self.columns:
            self.frame = self.frame.drop("outcome")
            del self.columns["outcome"]
        for role in ("learner", "action", "outcome"):
            if role in self.columns and not (role == "outcome" and options.empty_outcomes):
                self._settle_empty(role, options)
        if "outcome" in self.columns:
            self._settle_outcomes(options)
            if options.empty_outcomes:
                self._keep_empty_outcomes()
        else:
            self.notes.append("The log is read without outcomes.")
        if "time" in self.columns:
            self._settle_time(options)
        self.require_rows()
        if not (options.single_rows or self.partial):
            refuse_single_rows(self, self.frame.height, self.frame["learner"].n_unique())

    def settle_learners(self, options: ReadOptions) -> None:
        """Check that every row has a learner: for tables that have no actions."""
        self.require_rows()
        self._settle_empty("learner", options)
        self.require_rows()

    def _settle_empty(self, role: str, options: ReadOptions) -> None:
        """Stop at empty cells, or skip their rows."""
        self.skip_empty(role, options)
        may_be_empty = role == "outcome" and options.outcomes == "wanted"
        self.settle_cells(
            role,
            self._empty(role),
            "has no value",
            options,
            hint="skip these rows, repair them, or choose another column."
            if not may_be_empty
            else "skip these rows, state that outcomes may be empty, repair them, or choose another column.",
            code="empty-cells",
            settings=("skip_incomplete", "empty_outcomes") if may_be_empty else ("skip_incomplete",),
            declare={"skip_incomplete": True},
        )

    def _empty(self, role: str) -> pl.Series:
        return is_missing(self.frame[role]) if role in ("outcome", "time") else self.frame[role].is_null()

    def skip_empty(self, role: str, options: ReadOptions) -> None:
        """Skip the rows of which a role's cell is empty, if that is declared."""
        if options.rows.skip_incomplete and (empty := self._empty(role)).any():
            self.notes.append(
                CountingNote(
                    "Skipped as incomplete: ",
                    Count(int(empty.sum()), "row"),
                    " of ",
                    Count(self.frame.height),
                    f" with an empty cell in column '{self.columns[role]}'.",
                )
            )
            self.frame = self.frame.filter(~empty)

    def _keep_empty_outcomes(self) -> None:
        """Make a further column of the outcome, since it is not one of every row."""
        name = self.columns.pop("outcome")
        self.frame = self.frame.rename({"outcome": further("outcome")}).cast({further("outcome"): pl.String})
        empty = self.frame[further("outcome")].is_null()
        self.notes.append(
            CountingNote(
                f"Column '{name}' is a column of rows, 'outcome', which may be empty (",
                Count(int(empty.sum()), "row"),
                "): difficulties are not estimated.",
            )
        )

    def _settle_outcomes(self, options: ReadOptions) -> None:
        cells = self.frame["outcome"]
        self.frame = self.frame.with_columns(read_outcomes(cells, options.mark).alias("outcome"))
        unreadable = self.frame["outcome"].is_null() & ~is_missing(cells)
        # Points, grades or percentages: a number from which on they are a success is all that is missing.
        numbers = read_outcomes(cells, PassMark(0, 0)).is_not_null()
        lacks_mark = options.mark.points is None
        needs_mark = lacks_mark and bool((unreadable & numbers).sum() == unreadable.sum())
        low = needs_mark and seem_low_grades(cells, self.columns["outcome"])
        self.settle_cells(
            "outcome",
            unreadable,
            "holds something other than 0 and 1",
            options,
            hint=f"{NEEDS_LOW_MARK if low else NEEDS_MARK}; or choose another column."
            if needs_mark
            else "outcomes are 0 or 1 (also true/false, yes/no, richtig/falsch, vrai/faux), or numbers with a "
            "declared pass mark; choose another column, or set the rows aside.",
            code="not-an-outcome",
            settings=(options.mark.setting,) if lacks_mark else (),
            declare={options.mark.setting: options.mark.to_fill_in(low)} if needs_mark else None,
        )
        if not lacks_mark:
            self.notes.append(
                f"An outcome in column '{self.columns['outcome']}' is a success {options.mark.in_words()}, as declared."
            )

    def settle_cells(
        self,
        role: str,
        unreadable: pl.Series,
        what: str,
        options: ReadOptions,
        *,
        hint: str,
        code: str,
        settings: tuple[str, ...] = (),
        declare: Mapping[str, Any] | None = None,
    ) -> None:
        """Stop at cells that cannot be read, or set their rows aside."""
        if not unreadable.any():
            return
        if options.rows.set_aside:
            reason = f" whose cell in column '{self.columns[role]}' cannot be read."
            self.notes.append(CountingNote("Set aside: ", Count(int(unreadable.sum()), "row"), reason))
            self.frame = self.frame.filter(~unreadable)
            return
        raise DataError(
            f"{self.file}: column '{self.columns[role]}' {what} {self.at(unreadable)}.",
            hint=hint,
            code=code,
            settings=(role, *settings, "set_aside"),
            role=role,
            column=self.columns[role],
            n_rows=int(unreadable.sum()),
            **({"declare": declare} if declare else {}),
        )

    def _settle_time(self, options: ReadOptions) -> None:
        """Read the time of each row by itself; it puts the rows of a learner in order."""
        # Imported here: that module is about this class.
        from understudy.core.events.event_times import settle_times

        settle_times(self, options)

    def forget_rows(self) -> None:
        """Keep what is known about the learners, and let go of their rows."""
        self.frame = self.frame.clear()
        self.learners, self.withdrawn = _copied(self.learners), _copied(self.withdrawn)
        self._everyone = self._everyone.with_columns(map(_copied, self._everyone.iter_columns()))
        self.people = [replace(people, values=_copied(people.values.unique())) for people in self.people]

    def add_piece(self, other: EventTable) -> None:
        """Take in what is known about other learners of the same file, but for their rows."""
        self.notes = add_up([*self.notes, *other.notes])
        self.learners = pl.concat([self.learners, other.learners]).unique()
        named: dict[tuple[str, str], NamedPeople] = {}
        for people in (*self.people, *other.people):
            column = people.column, people.kind
            named[column] = named[column] + people if column in named else people
        self.people = list(named.values())
        self.identifiers += [found for found in other.identifiers if found not in self.identifiers]
        self._everyone = pl.concat([self._everyone, other._everyone])
        self.guesses += tuple(guess for guess in other.guesses if guess not in self.guesses)
        self.n_withdrawn += other.n_withdrawn
        self.yearless |= other.yearless

    def origin(self, path: Path | None, format: str, names: tuple[str, ...]) -> Origin:
        """Where the events came from; `names` are the actions or items, in which people are searched for."""
        mentioned = identifiers_in_actions(
            self.columns["action"], pl.Series(names, dtype=pl.String), self.learners, self.people
        )
        known = {(found.column, found.kind, found.role) for found in mentioned}
        by_column = [
            found
            for found in without_titles(self.identifiers, self.people)
            if (found.column, found.kind, found.role) not in known
        ]
        return Origin(
            path,
            format,
            MappingProxyType(dict(self.columns)),
            tuple(self.notes),
            (*by_column, *mentioned),
            n_withdrawn=self.n_withdrawn,
            n_absent=self.n_absent,
            # Numbers that the reader gave would be the same ones in every file.
            digests=digests_of_names(self._everyone["learner"]) if len(self.learners) else None,
            yearless=self.yearless,
            guesses=self.guesses,
        )


def _copied(names: pl.Series) -> pl.Series:
    """The same names; few of many rows hold the memory of all of them."""
    return pl.Series(names.name, names.to_list(), names.dtype)


def no_row_left(file: str) -> DataError:
    """The error of a log from which nothing is left."""
    return DataError(
        f"{file}: no row is left to read.",
        hint="see what the format needs, or check the export.",
    )


def refuse_single_rows(events: EventTable, n_rows: int, n_learners: int) -> None:
    """Refuse a log in which no learner has two rows."""
    if n_learners == n_rows > 1:
        raise DataError(
            f"{events.file}: column '{events.columns['learner']}' has a different value on each of the "
            f"{n_rows} rows, so it cannot say who did what.",
            hint="choose the column that names the learner.",
            code="learner-on-each-row",
            settings=("learner",),
        )
