"""Opens the database and hands out transactions: one writer at a time, so that the log's chain has no forks."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DataError as NotStorableError
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError
from sqlalchemy.orm import Session, sessionmaker

from understudy.errors import MissingError, UsageError

# Names the lock that writers take in PostgreSQL; any number that only the desk uses.
_WRITERS = 7_041_776
# Of PostgreSQL.
_DISK_FULL = "53100"


class Database:
    """A database of the desk by its URL: `sqlite:///file` or `postgresql+psycopg://...`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = _engine(url)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file."""
        return self.engine.dialect.name == "sqlite"

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that changes nothing."""
        with _explained(), self._sessions() as session:
            yield session
            session.rollback()

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that is whole or not at all, one at a time: what it read stays true until it ends."""
        with _explained(), self._sessions() as session:
            lock_out_writers(session.connection(execution_options={"understudy_writes": True}))
            yield session
            session.commit()

    def ping(self) -> None:
        """Raise unless the database answers."""
        with self.reading() as session:
            session.execute(text("SELECT 1"))

    def upgrade(self, revision: str = "head") -> None:
        """Bring the tables up to date, or to an earlier revision; make them if there are none."""
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        config.attributes["engine"] = self.engine
        command.upgrade(config, revision)

    def settle(self) -> None:
        """Empty SQLite's journal, in which what was deleted would stay for a while. PostgreSQL does so by itself."""
        if self.is_sqlite:
            with _explained(), self.engine.connect() as connection:
                connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


def lock_out_writers(connection: Connection) -> None:
    """Until the transaction ends. In SQLite it began with the lock."""
    if connection.dialect.name != "sqlite":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _WRITERS})


def _engine(url: str) -> Engine:
    if not url.startswith("sqlite"):
        return create_engine(url, pool_pre_ping=True, hide_parameters=True)
    engine = create_engine(
        url, connect_args={"timeout": 30, "check_same_thread": False}, hide_parameters=True
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        # Python's driver would begin transactions late, as readers: we say BEGIN ourselves.
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Any) -> None:
        writes = connection.get_execution_options().get("understudy_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Errors of the database as sentences, without the statement and its values."""
    try:
        yield
    except NotStorableError:
        # Such as a zero byte, which PostgreSQL takes in no text.
        raise UsageError(
            "this request cannot be read.", hint="send plain text.", code="not-storable"
        ) from None
    except NoConnectionError:
        raise MissingError(
            "the desk is very busy at the moment.", hint="wait a moment, and try again.", code="busy"
        ) from None
    except DBAPIError as error:
        if _disk_is_full(error):
            raise MissingError(
                "the disk of the desk is full; nothing was changed.",
                hint="make room on it, then try again.",
                code="disk-full",
            ) from None
        if isinstance(error, OperationalError):
            raise MissingError(
                "the desk's database cannot be used at the moment; nothing was changed.",
                hint="try again; if it happens again, check that the database runs and that its disk can be written.",
                code="database",
            ) from None
        raise


def _disk_is_full(error: DBAPIError) -> bool:
    by_sqlite = getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return by_sqlite or getattr(error.orig, "sqlstate", None) == _DISK_FULL
