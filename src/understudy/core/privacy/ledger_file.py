"""The ledger's file: an SQLite database whose rows are only ever appended, and its transactions."""

from __future__ import annotations

import contextlib
import errno
import getpass
import os
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from understudy.core.files.storage.faults import disk_error
from understudy.core.privacy.rosters import SCHEMA as ROSTER_SCHEMA
from understudy.errors import DataError, MissingError

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
CREATE TABLE IF NOT EXISTS gaussian_costs (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    rho REAL NOT NULL,
    slack REAL NOT NULL,
    extra_delta REAL NOT NULL
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
CREATE TABLE IF NOT EXISTS declarations (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    population TEXT NOT NULL,
    fact TEXT NOT NULL,
    how TEXT NOT NULL
);
"""
# The last one is for INSERT OR REPLACE, which deletes a row without telling.
_APPEND_ONLY = "".join(
    f"CREATE TRIGGER IF NOT EXISTS {table}_{name} BEFORE {what} "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;\n"
    for table in (
        "entries",
        "gaussian_costs",
        "limits",
        "delta_limits",
        "links",
        "declarations",
        "rosters",
        "roster_keys",
    )
    for name, what in (
        ("stay", f"UPDATE ON {table}"),
        ("remain", f"DELETE ON {table}"),
        ("append", f"INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id)"),
    )
)


@contextlib.contextmanager
def connected(path: Path, *, memory: bool = False) -> Iterator[sqlite3.Connection]:
    """An open ledger, made if it is not there; in `memory` one that is gone afterwards."""
    try:
        if not memory and not path.exists():
            # Who released what, and what was measured, is for the custodian.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        place = ":memory:" if memory else path.absolute()
        connection = sqlite3.connect(place, timeout=30, isolation_level=None)
        connection.row_factory = sqlite3.Row
        try:
            connection.executescript(_SCHEMA + ROSTER_SCHEMA + _APPEND_ONLY)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _explained(path, error) from None
    except OSError as error:
        raise _cannot_write(path, error.strerror or "it cannot be made") from None
    try:
        yield connection
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _explained(path, error) from None
    finally:
        connection.close()


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One write transaction: the balance read inside it cannot change until it ends."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextlib.contextmanager
def dry_run(connection: sqlite3.Connection) -> Iterator[None]:
    """One write transaction of which nothing stays; it also finds out whether one could be made."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def refuse_unwritable(path: Path) -> None:
    """Refuse a place at which no ledger could be made."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise _cannot_write(path, "its folder is missing or cannot be written")


def _cannot_write(path: Path, why: str) -> MissingError:
    return MissingError(
        f"the ledger {path} cannot be opened or written ({why}).",
        hint="keep it elsewhere, always in the same place for the same learners.",
        code="ledger-unwritable",
        settings=("ledger",),
    )


def _explained(path: Path, error: sqlite3.DatabaseError | UnicodeDecodeError) -> Exception:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return disk_error(full, path, ("ledger",)) or error
    if isinstance(error, sqlite3.OperationalError):
        return _cannot_write(path, str(error))
    why = "its text is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
    return damaged(path, why)


def damaged(path: Path, why: str) -> DataError:
    """The error of a ledger that holds what was never written there."""
    return DataError(
        f"the ledger {path} is damaged or not a ledger ({why}).",
        hint="restore it from a backup: without it nobody knows what was spent.",
        code="ledger-damaged",
    )


def now() -> str:
    """The time of an entry."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def user() -> str:
    """Who writes an entry, as the operating system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
