"""The ledger: every release about a population, what it cost, and what may still be spent.

An SQLite file kept with the data, keyed by the population that the custodian declares and not
by a file's hash: a re-export is the same people, and everything about the same learners adds
up. "Learners of this folder" are everybody the ledger knows: what is released about them counts
for every population, and the other way round. A release about one file is charged to the file's
learners, or to a declared population, which the file is linked to from then on. A table may carry
the random name of its data set: whatever the file is called, a copy is then linked to the same learners.

Rows are only ever appended (triggers refuse changes; they guard against accidents, not
against the owner of the file), and spending happens inside one write transaction, so that two
processes cannot spend the same budget. A copy of the data elsewhere has a ledger of its own:
declare one place with --ledger.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import math
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, MissingError, RefusedError, UsageError

FILE_NAME = "understudy.ledger"
DEFAULT_POPULATION = "learners of this folder"
_FILE_POPULATION = "learners of the file "
_DATA_SET_POPULATION = "learners of the data set "
SIMULATED_POPULATION = "simulated learners"
DEFAULT_LIMIT = 10.0
# Deltas add up too; beyond this the small chance that is not covered is no longer small.
DELTA_LIMIT = 1e-4

REFUSED = "refused"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    population TEXT NOT NULL,
    card TEXT NOT NULL,
    kind TEXT NOT NULL,
    method TEXT NOT NULL,
    epsilon REAL,
    delta REAL,
    mu REAL,
    statement TEXT NOT NULL,
    risk TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS limits (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    population TEXT NOT NULL,
    epsilon REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS delta_limits (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    population TEXT NOT NULL,
    delta REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS links (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    population TEXT NOT NULL,
    file TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS entries_append BEFORE INSERT ON entries
    WHEN EXISTS (SELECT 1 FROM entries WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS delta_limits_stay BEFORE UPDATE ON delta_limits
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS delta_limits_remain BEFORE DELETE ON delta_limits
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS links_stay BEFORE UPDATE ON links
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS links_remain BEFORE DELETE ON links
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS limits_append BEFORE INSERT ON limits
    WHEN EXISTS (SELECT 1 FROM limits WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS limits_stay BEFORE UPDATE ON limits
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS limits_remain BEFORE DELETE ON limits
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""


@dataclass(frozen=True)
class Entry:
    """One release. `epsilon` is None where nothing is proved; `risk` is what was measured."""

    at: str
    who: str
    population: str
    card: str
    kind: str
    method: str
    epsilon: float | None
    delta: float | None
    mu: float | None
    statement: str
    risk: dict[str, Any]


@dataclass(frozen=True)
class Balance:
    """What has been spent on a population; entries without a guarantee are counted apart."""

    population: str
    limit: float
    epsilon: float
    delta: float
    n_entries: int
    n_without_guarantee: int
    delta_limit: float = DELTA_LIMIT

    @property
    def remaining(self) -> float:
        """Epsilon that may still be spent."""
        return max(0.0, self.limit - self.epsilon)


def ledger_path(data: Path, given: Path | None = None, *, simulated_output: Path | None = None) -> Path:
    """Where the ledger of a file is: where the user says, or beside the data.

    Simulated data is nobody's: its ledger stays with the output.
    """
    if given is not None:
        return given
    if simulated_output is not None:
        return simulated_output / FILE_NAME
    return data.resolve().parent / FILE_NAME


def file_population(data: Path) -> str:
    """The learners of one file, such as a class's exam; they count as learners of its folder too."""
    return _FILE_POPULATION + data.resolve().name


def data_set_population(data_set: str) -> str:
    """The learners of a data set by its random name, whatever files they are in."""
    return _DATA_SET_POPULATION + data_set


def new_data_set() -> str:
    """A random name for the learners of a table: nothing about them can be worked out from it."""
    return secrets.token_hex(8)


def new_card_id() -> str:
    """A random name for a release: it says nothing about the data, the ledger resolves it."""
    return secrets.token_hex(8)


class Ledger:
    """An open ledger file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self, population: str | None = None) -> list[Entry]:
        """All entries, oldest first; if a population is given, those that count for its learners."""
        if not self.path.exists():
            return []
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT at, who, population, card, kind, method, epsilon, delta, mu, statement, risk "
                "FROM entries ORDER BY id"
            ).fetchall()
            if population is not None:
                names = _counted(connection, same_population(population))
                rows = [row for row in rows if row["population"] in names]
        return [Entry(**{**dict(row), "risk": json.loads(row["risk"])}) for row in rows]

    def populations(self) -> list[str]:
        """The populations that the ledger knows."""
        return list(dict.fromkeys(entry.population for entry in self.entries()))

    def balance(self, population: str = DEFAULT_POPULATION) -> Balance:
        """What has been spent on a population so far."""
        population = same_population(population)
        if not self.path.exists():
            return Balance(population, DEFAULT_LIMIT, 0.0, 0.0, 0, 0)
        with self._connection() as connection:
            return _balance(connection, population)

    def set_delta_limit(self, population: str, delta: float) -> None:
        """Declare what the deltas of a population may add up to; the newest declaration holds."""
        if not 0 <= delta < 1:
            raise UsageError(f"a limit of delta lies in [0, 1), not {delta}.", hint="for example 1e-4.")
        with self._connection() as connection, _writing(connection):
            connection.execute(
                "INSERT INTO delta_limits (at, who, population, delta) VALUES (?, ?, ?, ?)",
                (_now(), _user(), same_population(population), delta),
            )

    def set_limit(self, population: str, epsilon: float) -> None:
        """Declare how much may be spent on a population; the newest declaration holds."""
        if not math.isfinite(epsilon) or epsilon < 0:
            raise UsageError(f"a limit is a number of at least 0, not {epsilon}.", hint="for example 10.")
        with self._connection() as connection, _writing(connection):
            connection.execute(
                "INSERT INTO limits (at, who, population, epsilon) VALUES (?, ?, ?, ?)",
                (_now(), _user(), same_population(population), epsilon),
            )

    def check(self, population: str, guarantee: Guarantee) -> Balance:
        """Refuse what could not be charged, before anything is computed; also when the file cannot be written."""
        with self._connection() as connection, _writing(connection):
            return _checked(connection, same_population(population), guarantee)

    def record(
        self,
        *,
        population: str,
        card: str,
        kind: str,
        method: str,
        guarantee: Guarantee,
        risk: dict[str, Any] | None = None,
        file: Path | Sequence[Path] | None = None,
        data_sets: Sequence[str] = (),
        at_most: Mapping[str, float] | None = None,
        once: bool = False,
    ) -> None:
        """Append an entry, or refuse it when it would pass the limit.

        `at_most` limits figures of `risk`, such as the measured mu of everything released together. With
        `once`, a card that is in the ledger already is not charged again: who was interrupted may call it again.

        A `file` (or several) holds the data of this population, and so do `data_sets`, by their names:
        whatever was or will be charged to the learners of those is charged to it as well.

        Call it before anything is released: what is computed from a charge that failed must not
        exist.
        """
        population = same_population(population)
        with self._connection() as connection, _writing(connection):
            if once and _known_card(connection, card):
                return
            _link_all(connection, population, (file,) if isinstance(file, Path) else file or (), data_sets)
            _checked(connection, population, guarantee)
            _refuse_measured(risk or {}, at_most or {})
            connection.execute(
                "INSERT INTO entries (at, who, population, card, kind, method, epsilon, delta, mu, "
                "statement, risk) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    _now(),
                    _user(),
                    population,
                    card,
                    kind,
                    method,
                    guarantee.epsilon if guarantee.formal else None,
                    guarantee.delta if guarantee.formal else None,
                    guarantee.mu,
                    str(guarantee),
                    json.dumps(risk or {}),
                ),
            )

    def link(self, population: str, files: Sequence[Path], data_sets: Sequence[str] = ()) -> None:
        """Note that files or data sets hold the data of a population; nothing is spent, and all add up from now on."""
        with self._connection() as connection, _writing(connection):
            _link_all(connection, same_population(population), files, data_sets)

    def others(self, population: str, file: Path) -> list[str]:
        """Populations with releases that this one and its file share no learners with, as far as is known."""
        if not self.path.exists():
            return []
        with self._connection() as connection:
            names = _counted(connection, same_population(population)) | _counted(
                connection, same_population(file_population(file))
            )
        return [one for one in self.populations() if one not in {*names, SIMULATED_POPULATION}]

    def same_learners(
        self, population: str, file: Path, cards: Sequence[str], data_sets: Sequence[str] = ()
    ) -> str | None:
        """The population of a release with one of these cards, if it shares learners with this one, its file or data.

        None also when the ledger does not know the cards: `knows` tells.
        """
        if not self.path.exists():
            return None
        with self._connection() as connection:
            names = _counted(connection, same_population(population)) | _counted(
                connection, same_population(file_population(file))
            )
            for one in data_sets:
                names |= _counted(connection, same_population(data_set_population(one)))
        return next((one.population for one in self._released(cards) if one.population in names), None)

    def knows(self, cards: Sequence[str]) -> bool:
        """Whether all these releases were charged here."""
        return set(cards) <= {one.card for one in self._released(cards)}

    def _released(self, cards: Sequence[str]) -> list[Entry]:
        return [one for one in self.entries() if one.card in cards and one.kind != REFUSED]

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            connection.row_factory = sqlite3.Row
            # Who released what, and what was measured, is for the custodian.
            self.path.chmod(0o600)
            try:
                connection.executescript(_SCHEMA)
            except BaseException:
                connection.close()
                raise
        except sqlite3.DatabaseError as error:
            raise _explained(self.path, error) from None
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            raise _explained(self.path, error) from None
        finally:
            connection.close()


@contextlib.contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One write transaction: the balance read inside it cannot change until it ends."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def same_population(name: str) -> str:
    """The name as the ledger keeps it: spaces and capitals do not make other people of the same ones."""
    return " ".join(name.split()).casefold()


def _refuse_overspending(balance: Balance, guarantee: Guarantee) -> None:
    if not guarantee.formal:
        return
    if balance.epsilon + guarantee.epsilon > balance.limit * (1 + 1e-9):
        raise RefusedError(
            f"epsilon {guarantee.epsilon:g} was asked for '{balance.population}'; "
            f"{balance.epsilon:g} of {balance.limit:g} is spent, {balance.remaining:g} remains, "
            f"{guarantee.epsilon - balance.remaining:g} is missing.",
            hint="ask for a smaller epsilon; `understudy ledger FILE` shows what was spent.",
        )
    if balance.delta + guarantee.delta > balance.delta_limit * (1 + 1e-9):
        raise RefusedError(
            f"delta {guarantee.delta:.2e} was asked for '{balance.population}'; "
            f"{balance.delta:.2e} of {balance.delta_limit:.0e} is spent.",
            hint="ask for a smaller delta, far below one over the number of learners; "
            "`understudy ledger FILE --delta-limit` declares another limit.",
        )


def _known_card(connection: sqlite3.Connection, card: str) -> bool:
    return connection.execute("SELECT 1 FROM entries WHERE card = ?", (card,)).fetchone() is not None


def _refuse_measured(risk: Mapping[str, Any], at_most: Mapping[str, float]) -> None:
    for name, limit in at_most.items():
        if not risk[name] <= limit:  # NaN is refused as well
            raise RefusedError(
                f"{name.replace('_', ' ')} would be {risk[name]:.2f}, and the limit is {limit:.2f}.",
                hint="nothing was released; a smaller or more robust analysis may cost less.",
            )


def _checked(connection: sqlite3.Connection, population: str, guarantee: Guarantee) -> Balance:
    """The balance, if nobody whom the release is about would pass a limit."""
    balance = _balance(connection, population)
    if population == SIMULATED_POPULATION:
        return balance  # nobody's privacy is spent
    _refuse_overspending(balance, guarantee)
    if population == DEFAULT_POPULATION:
        for names in _groups(connection):
            for name in names:
                _refuse_overspending(_balance(connection, name), guarantee)
    return balance


def _balance(connection: sqlite3.Connection, population: str) -> Balance:
    """Epsilons and deltas add up (basic composition, which holds for any mechanisms).

    What was released about everybody is about each population as well. Populations hold different
    learners unless a file links them, so everybody bears at most what the group of linked
    populations with the largest sum bears.
    """
    everybody = _spent(connection, {DEFAULT_POPULATION})
    if population == DEFAULT_POPULATION:
        groups = [_spent(connection, names) for names in _groups(connection)]
    elif population == SIMULATED_POPULATION:
        everybody = _spent(connection, set())
        groups = [_spent(connection, {population})]
    else:
        groups = [_spent(connection, _group(connection, population))]
    # Of linked populations the strictest declaration holds for all: they share learners.
    linked = _group(connection, population)
    limit = _strictest(_limit(connection, name) for name in linked)
    delta_limit = _strictest(_limit(connection, name, "delta_limits", "delta") for name in linked)
    if population != SIMULATED_POPULATION:
        limit = _limit(connection, DEFAULT_POPULATION) if limit is None else limit
        if delta_limit is None:
            delta_limit = _limit(connection, DEFAULT_POPULATION, "delta_limits", "delta")
    return Balance(
        population=population,
        limit=DEFAULT_LIMIT if limit is None else limit,
        epsilon=everybody.epsilon + max((one.epsilon for one in groups), default=0.0),
        delta=everybody.delta + max((one.delta for one in groups), default=0.0),
        n_entries=everybody.n_entries + sum(one.n_entries for one in groups),
        n_without_guarantee=everybody.n_without_guarantee + sum(one.n_without_guarantee for one in groups),
        delta_limit=DELTA_LIMIT if delta_limit is None else delta_limit,
    )


def _link_all(
    connection: sqlite3.Connection, population: str, files: Sequence[Path], data_sets: Sequence[str]
) -> None:
    for name in (*map(file_population, files), *map(data_set_population, data_sets)):
        _link(connection, population, same_population(name))


def _link(connection: sqlite3.Connection, population: str, file: str) -> None:
    if population in (file, DEFAULT_POPULATION):
        return  # everybody's releases count for every file already
    known = connection.execute(
        "SELECT 1 FROM links WHERE population = ? AND file = ?", (population, file)
    ).fetchone()
    if known is None:
        connection.execute(
            "INSERT INTO links (at, who, population, file) VALUES (?, ?, ?, ?)",
            (_now(), _user(), population, file),
        )


def _groups(connection: sqlite3.Connection) -> list[set[str]]:
    """The populations of the ledger, those together that share learners through a file."""
    rows = connection.execute(
        "SELECT DISTINCT population FROM entries UNION SELECT population FROM links UNION SELECT file FROM links "
        "UNION SELECT population FROM limits UNION SELECT population FROM delta_limits"
    )
    groups = [{name} for (name,) in rows if name not in (DEFAULT_POPULATION, SIMULATED_POPULATION)]
    for population, file in connection.execute("SELECT population, file FROM links").fetchall():
        linked = [group for group in groups if population in group or file in group]
        groups = [group for group in groups if group not in linked] + [set().union(*linked)]
    return groups


def _group(connection: sqlite3.Connection, population: str) -> set[str]:
    return next((names for names in _groups(connection) if population in names), {population})


def _counted(connection: sqlite3.Connection, population: str) -> set[str]:
    """The names whose entries count for a population."""
    if population == SIMULATED_POPULATION:
        return {population}
    if population == DEFAULT_POPULATION:
        return {population}.union(*_groups(connection))
    return {DEFAULT_POPULATION} | _group(connection, population)


def _spent(connection: sqlite3.Connection, names: set[str]) -> Balance:
    """What the entries of some names add up to."""
    rows = connection.execute("SELECT population, epsilon, delta FROM entries WHERE kind != ?", (REFUSED,))
    costs = [(epsilon, delta) for name, epsilon, delta in rows if name in names]
    return Balance(
        population="",
        limit=0.0,
        epsilon=math.fsum(epsilon for epsilon, _ in costs if epsilon is not None),
        delta=math.fsum(delta for _, delta in costs if delta is not None),
        n_entries=len(costs),
        n_without_guarantee=sum(epsilon is None for epsilon, _ in costs),
    )


def _strictest(limits: Iterable[float | None]) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(
    connection: sqlite3.Connection, population: str, table: str = "limits", column: str = "epsilon"
) -> float | None:
    """The newest declared limit; table and column are names of the schema, never a user's."""
    row = connection.execute(
        f"SELECT {column} FROM {table} WHERE population = ? ORDER BY id DESC LIMIT 1", (population,)
    ).fetchone()
    return None if row is None else float(row[0])


def _explained(path: Path, error: sqlite3.DatabaseError) -> Exception:
    if isinstance(error, sqlite3.OperationalError):
        return MissingError(
            f"the ledger {path} cannot be opened or written ({error}).",
            hint="keep it elsewhere with --ledger PATH, always the same for the same learners.",
        )
    return DataError(
        f"the ledger {path} is damaged or not a ledger ({error}).",
        hint="restore it from a backup: without it nobody knows what was spent.",
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
