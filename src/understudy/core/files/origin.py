"""Origin: the file a record was read from, and what people should know about how it was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from understudy.core.files.people.identifiers import Identifier
from understudy.core.files.people.learner_ids import Digests
from understudy.core.files.people.mentions import identifiers_in_actions
from understudy.core.files.source import Guess
from understudy.errors import DataError

# How the roles of columns begin that are read because they were declared, and have no role of their own.
DECLARED = "column "


@dataclass(frozen=True, repr=False)
class Origin:
    """Where a record came from.

    `path` is None for a frame in memory and for a database on a server; `database` is what messages call a log in a
    database. `beside` are further files about the same learners. `columns` maps a
    role to the column that plays it; `notes` are sentences with counts, on what was dropped, merged or assumed;
    `identifiers` are columns that identify people. `n_withdrawn` learners were left out because a list says so;
    `n_absent` names of that list are not in the file. `digests` are those of the learners' ids, for the ledger alone;
    None where no ids are known. `yearless` says that the years of times are assumed. `guesses` is what reading decided
    by looking at learners' rows: none of it may be there for a guarantee, whose neighbours differ in one learner's rows
    and have to be read alike.
    """

    path: Path | None = None
    format: str = "frame"
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    identifiers: tuple[Identifier, ...] = ()
    n_withdrawn: int = 0
    n_absent: int = 0
    digests: Digests | None = field(default=None, compare=False)
    yearless: bool = False
    guesses: tuple[Guess, ...] = ()
    beside: tuple[Path, ...] = ()
    database: str = ""

    @property
    def name(self) -> str:
        """What messages call the file or the database; nothing for a frame."""
        return self.database or ("" if self.path is None else self.path.name)

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that was read."""
        return (*(() if self.path is None else (self.path,)), *self.beside)

    def refuse_people(self, result: str, names: Sequence[str], setting: str = "action") -> None:
        """Names of actions and items reach every result; names of people must not.

        `result` says what they would reach, `setting` which choice of a column helps. A reader compared the
        file's names with what the file says about people. The `names` of the record itself are looked at as well:
        it may have been made from arrays, or given others since.
        """
        series = pl.Series([str(name) for name in names], dtype=pl.String)
        by_form = identifiers_in_actions("", series, series.clear())
        for identifier in (*self.identifiers, *by_form):
            if identifier.role.startswith(DECLARED):
                raise DataError(
                    f"column '{identifier.column}' is declared, and identifies people: {identifier.kind} "
                    f"({identifier.evidence}).",
                    hint="leave it out of the declared columns.",
                    code="names-of-people",
                    column=identifier.column,
                )
            if identifier.role == "action":
                place = f"column '{identifier.column}'" if identifier.column else f"a name of the {setting}s"
                raise DataError(
                    f"{place} would reach {result} and points at people: "
                    f"{identifier.kind} ({identifier.evidence}).",
                    hint="choose another column, or replace these names in the file first.",
                    code="names-of-people",
                    settings=(setting,),
                    column=identifier.column,
                )
