"""A log whose rows stay in a database: what is computed from them is computed there, as SQL.

What leaves the database: the names of its columns, some 2,000 cells of each from all of its rows (to see which identify
people) and the people whom these name (to look for them in the names of actions), the names of actions where they are
declared public, the learners' ids (once, for that and for the ledger's digests), how many learners have how many rows,
and sums over learners. Everything else is in temporary tables of one session, which end with it:

    understudy_walks      learner, place (from 0 on), action, outcome: numbers for learners and actions
    understudy_lengths    learner, n: every learner once, those without a row too
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from understudy.core.engine.engine import scratch_parent
from understudy.core.events.people_in_text import without_people
from understudy.core.files.columns import REQUIRED, Columns, choose_columns, reject_duplicates
from understudy.core.files.databases.addresses import DatabaseAddress, database_address
from understudy.core.files.databases.connections import ColumnKind, Database, open_database, quoted, selected
from understudy.core.files.databases.streams import DatabaseStream
from understudy.core.files.origin import Origin
from understudy.core.files.outcomes import FALSE_WORDS, TRUE_WORDS
from understudy.core.files.people.identifiers import People, identifiers_in, without_titles
from understudy.core.files.people.learner_ids import digests_of_names
from understudy.core.files.people.mentions import identifiers_in_actions
from understudy.core.files.simulated import is_simulated
from understudy.core.files.tables import GOLDEN, SAMPLE_ROWS, FrameTable
from understudy.core.files.words import counted
from understudy.core.names import natural_order
from understudy.core.options import settled
from understudy.errors import DataError, UsageError
from understudy.logs.declared.course import read_course
from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.reading import LogOptions, planned

# Settings of a log that a database can follow; others need the rows here.
_FOLLOWED = (
    *("learner", "action", "outcome", "time", "time_for_order", "no_outcomes", "skip_incomplete"),
    *("public_actions", "actions_file", "single_rows", "plan"),
)
# Unicode's White_Space, which is what is stripped from the cells of a file.
_BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)


class DatabaseWalks:
    """The walks in a session's temporary tables, or of each learner only the first `longest` rows."""

    def __init__(self, database: Database, longest: int | None = None) -> None:
        self.database, self.longest = database, longest
        self._made: set[str] = set()

    @property
    def rows(self) -> str:
        """The rows, for a FROM."""
        return f"(SELECT * FROM understudy_walks{self._among_first('place')}) AS walks"

    def _among_first(self, place: str) -> str:
        # Here a learner's rows are cut: at most `longest` of them are in any sum.
        return "" if self.longest is None else f" WHERE {place} < {self.longest}"

    @property
    def n(self) -> str:
        """How many rows a learner of `understudy_lengths` has."""
        return "n" if self.longest is None else f"least(n, {self.longest})"

    @cached_property
    def lengths(self) -> IntArray:
        """How many rows learners have, the fewest first: how many learners have so many is all that is asked for."""
        found = self.database.rows(
            f"SELECT {self.n} AS n_rows, count(*) FROM understudy_lengths GROUP BY 1 ORDER BY 1"
        )
        return np.repeat(*np.array(found, dtype=np.int64).reshape(-1, 2).T)

    def numbers(self, name: str, columns: str, rows: Sequence[Sequence[Any]]) -> str:
        """A temporary table with these numbers or texts, in the place of one of this name."""
        self.database.run(f"DROP TABLE IF EXISTS {name}")
        self.database.run(f"CREATE TEMPORARY TABLE {name} ({columns})")
        self.database.insert(name, rows)
        return name

    def once(self, name: str, query: str) -> str:
        """A temporary table of these walks, which is made when it is first asked for."""
        own = f"{name}_{'all' if self.longest is None else self.longest}"
        if own not in self._made:
            self.make(own, query)
            self._made.add(own)
        return own

    def make(self, name: str, query: str) -> None:
        """A temporary table with the rows of a query, in the place of one of this name."""
        self.database.run(f"DROP TABLE IF EXISTS {name}")
        self.database.run(f"CREATE TEMPORARY TABLE {name} AS {query}")
        self.database.run(f"ANALYZE {name}")


def literal(value: float | str) -> str:
    """A value of our own as SQL writes it, never one of a log; a number is cast, else it would be a decimal one."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"CAST('{float(value)!r}' AS float8)"


@dataclass(frozen=True, eq=False, repr=False)
class LogInDatabase(Interactions):
    """A log without rows here: it has its learners, names and lengths, and the walks in the database."""

    walks: DatabaseWalks | None = None

    def __repr__(self) -> str:
        return f"<Interactions in a database: {self.n_learners} learners, {self.n_actions} actions>"

    @property
    def elsewhere(self) -> bool:
        """See `Interactions.elsewhere`."""
        return True

    @property
    def lengths(self) -> IntArray:
        """Number of rows of each learner, the fewest first."""
        assert self.walks is not None
        return self.walks.lengths

    def first_rows(self, longest: int) -> LogInDatabase:
        """The log with the first `longest` rows of each learner."""
        assert self.walks is not None
        cut = longest if self.walks.longest is None else min(longest, self.walks.longest)
        return replace(self, walks=DatabaseWalks(self.walks.database, cut))


def open_log_in_database(
    address: DatabaseAddress | str,
    options: LogOptions = LogOptions(),  # noqa: B008 (frozen)
    **settings: Any,
) -> LogInDatabase:
    """The log at an address, its rows put in order in temporary tables of the database.

    The names of actions are public: declared as those that occur, or listed in a file. Times put the rows in order and
    are left out; rows of a learner at one time are in the order of their actions, then of their outcomes, since a table
    has no other.
    """
    found = database_address(address)
    if found is None:
        raise UsageError(
            "asked to work inside a database, and the log is a file.",
            hint="leave `in_database` out.",
            code="not-a-database",
            settings=("in_database",),
        )
    options, declared = planned(settled(options, settings))
    _refuse_unfollowed(options, bool(declared))
    database = open_database(found, temporary_tables=True, scratch=scratch_parent())
    query = selected(database, found)
    stream = DatabaseStream(found.name, database.columns(query), found, database, query)
    reject_duplicates(stream.names, stream.file)
    required = [role for role in REQUIRED if role != "outcome" or not options.no_outcomes]
    chosen = choose_columns(
        stream.names,
        Columns(learner=options.learner, action=options.action, outcome=options.outcome, time=options.time),
        stream.file,
        required=required,
    )
    roles = (*required, "time")
    positions = {role: place for role, place in chosen.items() if role in roles}
    stream.require_order(has_times="time" in positions)
    if "time" not in positions:
        raise UsageError(
            f"{stream.file}: inside a database rows are put in order by a column of times or numbers, and none is "
            "known.",
            hint="name it; a query can number its rows: row_number() OVER (ORDER BY ...) AS time.",
            code="no-order",
            settings=("time",),
        )
    columns = {role: stream.names[place] for role, place in positions.items()}
    kinds = database.kinds(query)
    cells = _cells(stream.file, columns, {role: kinds[place] for role, place in positions.items()})
    read = f"SELECT {', '.join(f'{cell} AS {role}' for role, cell in cells.items())} FROM ({query}) AS log"
    notes = [
        f"Computed inside the database: {found.database}.",
        *_check_cells(database, read, columns, options),
    ]
    learners, names = _names(database, read)
    actions, codes, chapters = _vocabulary(options, names)
    walks = DatabaseWalks(database)
    _make_tables(walks, read, codes)
    cells_of_all = _Columns(database, query, stream.names, stream.names[positions["learner"]])
    sample = FrameTable(stream.file, stream.names, cells_of_all.sample(), pl.Series([], dtype=pl.Int64))
    identifiers, people = identifiers_in(sample, columns, cells_of_all.people)
    # With a list of names, only those of the list leave.
    leaving = pl.Series(actions if options.actions_file else sorted(names), dtype=pl.String)
    mentioned = identifiers_in_actions(columns["action"], leaving, learners, people)
    origin = Origin(
        found.file,
        "database",
        MappingProxyType(columns),
        tuple(notes),
        (*without_titles(identifiers, people), *mentioned),
        digests=digests_of_names(learners),
        database=found.name,
    )
    return LogInDatabase(
        np.empty(0, dtype=np.int32),
        None if options.no_outcomes else np.empty(0, dtype=np.int8),
        np.zeros(len(learners) + 1, dtype=np.int64),
        tuple(actions),
        simulated=found.file is not None and is_simulated(found.file),
        declared=True,
        chapters=None if chapters is None else np.array(chapters, dtype=np.int32),
        origin=origin,
        walks=walks,
    )


def _refuse_unfollowed(options: LogOptions, declares_columns: bool) -> None:
    usual = LogOptions()
    given = [
        field.name
        for field in fields(options)
        if field.name not in _FOLLOWED and getattr(options, field.name) != getattr(usual, field.name)
    ]
    if declares_columns or given:
        what = "the plan's columns" if declares_columns else f"`{given[0]}`"
        raise UsageError(
            f"{what} cannot be followed inside a database.",
            hint="leave it out, write it into the query, or leave `in_database` out: then the rows are read.",
            code="not-in-database",
            settings=("in_database", *given[:1]),
        )
    if options.time is not None and not options.time_for_order:
        raise UsageError(
            "a column was named for the times, which are left out inside a database.",
            hint="state that they only put the rows in order, or leave `in_database` out.",
            code="not-in-database",
            settings=("time_for_order", "in_database"),
        )
    if not options.public_actions and options.actions_file is None:
        raise UsageError(
            "inside a database the names of the actions have to be public.",
            hint="declare them, or give a list of them; or leave `in_database` out: then they are found privately.",
            code="not-in-database",
            settings=("public_actions", "actions_file", "in_database"),
        )


def _cells(file: str, columns: dict[str, str], kinds: dict[str, ColumnKind]) -> dict[str, str]:
    """Each role's cell as an expression: null where it is empty, or cannot be read."""
    cells = {role: _stripped(_characters(columns[role])) for role in ("learner", "action")}
    if "outcome" in columns:
        name = quoted(columns["outcome"])
        if kinds["outcome"] == "boolean":
            true, false = name, f"NOT {name}"
        elif kinds["outcome"] == "number":
            true, false = f"{name} = 1", f"{name} = 0"
        else:
            true, false = (
                f"lower({_stripped(f'CAST({name} AS text)')}) IN ({', '.join(map(literal, words))})"
                for words in (TRUE_WORDS, FALSE_WORDS)
            )
        cells["outcome"] = f"CASE WHEN {true} THEN 1 WHEN {false} THEN 0 END"
    if kinds["time"] not in ("time", "number"):
        raise DataError(
            f"{file}: column '{columns['time']}' holds texts, which a database cannot put in order as times.",
            hint="convert it in the query, or leave `in_database` out: then the texts are read as times.",
            code="not-a-time",
            settings=("time", "in_database"),
        )
    return {**cells, "time": quoted(columns["time"])}


def _characters(name: str) -> str:
    """A column's text, equal where its characters are, whatever its collation says of capitals and accents."""
    return f'CAST({quoted(name)} AS text) COLLATE "C"'


def _stripped(text: str) -> str:
    return f"nullif(trim({text}, {literal(_BLANKS)}), '')"


def _check_cells(database: Database, read: str, columns: dict[str, str], options: LogOptions) -> list[str]:
    """Refuse cells that are empty or cannot be read, unless their rows are skipped; a note with their number."""
    counts = ", ".join(f"count(*) - count({role})" for role in columns)
    n_rows, *empty = database.rows(f"SELECT count(*), {counts} FROM ({read}) AS log")[0]
    if not n_rows:
        raise DataError("the log is empty: there is no row.", hint="check the query.")
    lacking = [(role, int(number)) for role, number in zip(columns, empty, strict=True) if number]
    if lacking and not options.skip_incomplete:
        role, number = lacking[0]
        raise DataError(
            f"column '{columns[role]}' has no {'outcome (0 or 1)' if role == 'outcome' else 'value'} in "
            f"{counted(number, 'row')}.",
            hint="skip these rows, repair them, or choose another column.",
            code="empty-cells",
            settings=("skip_incomplete", role),
        )
    return [
        f"Skipped as incomplete: {counted(number, 'row')} of {n_rows:,} without a value in column '{columns[role]}'."
        for role, number in lacking
    ]


def _names(database: Database, read: str) -> tuple[pl.Series, list[str]]:
    """The learners' ids, and the names of actions that occur."""
    learners = _distinct(database, "learner", read)
    names = database.rows(f"SELECT DISTINCT action FROM ({read}) AS log WHERE action IS NOT NULL")
    return learners, [name for (name,) in names]


@dataclass(frozen=True, repr=False)
class _Columns:
    """All columns of a query, looked at inside the database to see which identify people."""

    database: Database
    query: str
    names: Sequence[str]
    learner: str

    def sample(self) -> pl.DataFrame:
        """About `SAMPLE_ROWS` cells of each column that are not empty, from all over it; all if there are fewer.

        Columns are named by their positions, and the cells of a row are those of different rows.
        """
        places = range(len(self.names))
        cells = ", ".join(f"{_stripped(_characters(name))} AS c{at}" for at, name in enumerate(self.names))
        read = f"SELECT {cells} FROM ({self.query}) AS log"
        counts = ", ".join(f"count(c{at})" for at in places)
        n_cells = self.database.rows(f"SELECT {counts} FROM ({read}) AS cells")[0]
        # See `is_sampled`.
        taken = ", ".join(
            f"c{at} IS NOT NULL AND (count(c{at}) OVER upwards - 1) * {GOLDEN} % {1 << 32} < "
            f"{(1 << 32) * SAMPLE_ROWS // max(number, 1)} AS t{at}"
            for at, number in enumerate(n_cells)
        )
        numbered = (
            f"SELECT *, {taken} FROM ({read}) AS cells WINDOW upwards AS (ROWS BETWEEN UNBOUNDED PRECEDING "
            "AND CURRENT ROW)"
        )
        chosen = ", ".join(f"CASE WHEN t{at} THEN c{at} END AS c{at}" for at in places)
        asked = (
            f"SELECT {chosen} FROM ({numbered}) AS numbered WHERE {' OR '.join(f't{at}' for at in places)}"
        )
        blocks = [block.cast(pl.String) for block in self.database.blocks(asked, 1 << 19)]
        found = pl.concat(blocks) if blocks else pl.DataFrame(schema={str(at): pl.String for at in places})
        filled = [found[str(at)].drop_nulls() for at in places]
        height = max(map(len, filled))
        return pl.DataFrame([cells.extend_constant(None, height - len(cells)) for cells in filled])

    def people(self, position: int, count: bool) -> People:
        """Whom a column names in all rows: an action may name one who is not in the sample."""
        learner, person = _stripped(_characters(self.learner)), _characters(self.names[position])
        read = f"SELECT {learner} AS learner, {person} AS person FROM ({self.query}) AS log"
        values = _distinct(self.database, "person", read)
        if not count:
            return People(values)
        pairs = f"SELECT DISTINCT learner, person FROM ({read}) AS log WHERE learner IS NOT NULL AND person IS NOT NULL"
        counted_pairs = f"SELECT count(*), count(DISTINCT learner) FROM ({pairs}) AS pairs"
        return People(values, *self.database.rows(counted_pairs)[0])


def _distinct(database: Database, column: str, query: str) -> pl.Series:
    """The texts of a query's column, each once."""
    asked = f"SELECT DISTINCT {column} FROM ({query}) AS log WHERE {column} IS NOT NULL"
    blocks = list(database.blocks(asked, 1 << 19))
    return pl.concat(blocks)["0"].cast(pl.String) if blocks else pl.Series([], dtype=pl.String)


def _vocabulary(
    options: LogOptions, names: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, int], list[int] | None]:
    """The names of actions, the number of each name that occurs, and the chapters of a course."""
    without = dict(zip(names, without_people(pl.Series(names, dtype=pl.String)).to_list(), strict=True))
    told = tuple(natural_order(set(without.values())))
    log = Interactions(np.arange(len(told), dtype=np.int32), None, np.array([0, len(told)]), told)
    if options.actions_file is not None:
        log = log.with_course(read_course(options.actions_file))
    code = dict(zip(told, log.action.tolist(), strict=True))
    chapters = None if log.chapters is None else log.chapters.tolist()
    return log.actions, {name: code[without[name]] for name in names}, chapters


def _make_tables(walks: DatabaseWalks, read: str, codes: dict[str, int]) -> None:
    walks.numbers("understudy_actions", 'name text COLLATE "C", code bigint', list(codes.items()))
    walks.make(
        "understudy_learners",
        "SELECT learner AS name, row_number() OVER (ORDER BY learner) - 1 AS code "
        f"FROM (SELECT DISTINCT learner FROM ({read}) AS log WHERE learner IS NOT NULL) AS learners",
    )
    judged = " AS outcome" in read
    complete = "log.time IS NOT NULL" + (" AND log.outcome IS NOT NULL" if judged else "")
    outcome = "log.outcome" if judged else "0"
    place = f"row_number() OVER (PARTITION BY learners.code ORDER BY log.time, log.action, {outcome}) - 1"
    walks.make(
        "understudy_walks",
        f"SELECT learners.code AS learner, actions.code AS action, {outcome} AS outcome, {place} AS place "
        f"FROM ({read}) AS log JOIN understudy_learners AS learners ON learners.name = log.learner "
        f"JOIN understudy_actions AS actions ON actions.name = log.action WHERE {complete}",
    )
    walks.make(
        "understudy_lengths",
        "SELECT learners.code AS learner, count(walks.place) AS n FROM understudy_learners AS learners "
        "LEFT JOIN understudy_walks AS walks ON walks.learner = learners.code GROUP BY learners.code",
    )
    walks.database.run("DROP TABLE understudy_learners")
