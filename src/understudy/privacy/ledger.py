"""The ledger: every release about a population, what it cost, and what may still be spent.

An SQLite file kept with the data, keyed by the population that the custodian declares and not
by a file's hash: a re-export is the same people, and everything about the same learners adds
up. Rows are only ever appended (triggers refuse changes; they guard against accidents, not
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
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from understudy.errors import DataError, MissingError, RefusedError, UsageError
from understudy.privacy.guarantee import Guarantee

FILE_NAME = "understudy.ledger"
DEFAULT_POPULATION = "learners of this folder"
_FILE_POPULATION = "learners of the file "
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
CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS entries_append BEFORE INSERT ON entries
    WHEN EXISTS (SELECT 1 FROM entries WHERE id = NEW.id)
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
    return _FILE_POPULATION + data.name


def new_card_id() -> str:
    """A random name for a release: it says nothing about the data, the ledger resolves it."""
    return secrets.token_hex(8)


class Ledger:
    """An open ledger file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self, population: str | None = None) -> list[Entry]:
        """All entries, oldest first; of one population if given."""
        if not self.path.exists():
            return []
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT at, who, population, card, kind, method, epsilon, delta, mu, statement, risk "
                "FROM entries WHERE ?1 IS NULL OR population = ?1 ORDER BY id",
                (None if population is None else same_population(population),),
            ).fetchall()
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
            balance = _balance(connection, same_population(population))
            _refuse_overspending(balance, guarantee)
            return balance

    def record(
        self,
        *,
        population: str,
        card: str,
        kind: str,
        method: str,
        guarantee: Guarantee,
        risk: dict[str, Any] | None = None,
    ) -> None:
        """Append an entry, or refuse it when it would pass the limit.

        Call it before anything is released: what is computed from a charge that failed must not
        exist.
        """
        population = same_population(population)
        with self._connection() as connection, _writing(connection):
            _refuse_overspending(_balance(connection, population), guarantee)
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
    if balance.delta + guarantee.delta > DELTA_LIMIT:
        raise RefusedError(
            f"delta {guarantee.delta:.2e} was asked for '{balance.population}'; "
            f"{balance.delta:.2e} of {DELTA_LIMIT:.0e} is spent.",
            hint="ask for a smaller delta, far below one over the number of learners.",
        )


def _balance(connection: sqlite3.Connection, population: str) -> Balance:
    """Epsilons and deltas add up (basic composition, which holds for any mechanisms).

    What was released about everybody of the folder is about the learners of each of its files
    as well. Files hold different learners unless the custodian declares one population for them,
    so the learners of the folder bear at most what the file with the largest sum bears.
    """
    spent = [_spent(connection, population)]
    limit = _limit(connection, population)
    if population.startswith(_FILE_POPULATION):
        spent.append(_spent(connection, DEFAULT_POPULATION))
        limit = limit if limit is not None else _limit(connection, DEFAULT_POPULATION)
    elif population == DEFAULT_POPULATION:
        rows = connection.execute("SELECT DISTINCT population FROM entries").fetchall()
        files = [_spent(connection, name) for (name,) in rows if name.startswith(_FILE_POPULATION)]
        if files:
            spent.append(
                Balance(
                    population,
                    limit=0.0,
                    epsilon=max(one.epsilon for one in files),
                    delta=max(one.delta for one in files),
                    n_entries=sum(one.n_entries for one in files),
                    n_without_guarantee=sum(one.n_without_guarantee for one in files),
                )
            )
    return Balance(
        population=population,
        limit=DEFAULT_LIMIT if limit is None else limit,
        epsilon=math.fsum(one.epsilon for one in spent),
        delta=math.fsum(one.delta for one in spent),
        n_entries=sum(one.n_entries for one in spent),
        n_without_guarantee=sum(one.n_without_guarantee for one in spent),
    )


def _spent(connection: sqlite3.Connection, population: str) -> Balance:
    """What the entries of one name add up to."""
    costs = connection.execute(
        "SELECT epsilon, delta FROM entries WHERE population = ? AND kind != ?", (population, REFUSED)
    ).fetchall()
    return Balance(
        population=population,
        limit=0.0,
        epsilon=math.fsum(epsilon for epsilon, _ in costs if epsilon is not None),
        delta=math.fsum(delta for _, delta in costs if delta is not None),
        n_entries=len(costs),
        n_without_guarantee=sum(epsilon is None for epsilon, _ in costs),
    )


def _limit(connection: sqlite3.Connection, population: str) -> float | None:
    row = connection.execute(
        "SELECT epsilon FROM limits WHERE population = ? ORDER BY id DESC LIMIT 1", (population,)
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
