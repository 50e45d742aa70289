"""DuckDB and PostgreSQL: opened so that nothing of the user's is changed, with errors that quote no learner's value."""

from __future__ import annotations

import io
import re
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import polars as pl

from understudy.core.extras import needs_extra, require_extra
from understudy.core.files.databases.addresses import DatabaseAddress
from understudy.core.files.storage.scratch import Scratch
from understudy.errors import DataError, MissingError, UnderstudyError, UsageError

# What DuckDB may take of the memory; what needs more goes to a scratch folder.
DUCKDB_MEMORY = "1GB"
_CONNECT_SECONDS = 10
# How many tables a message lists.
_MOST_LISTED = 20


ColumnKind = Literal["time", "number", "text", "boolean", "other"]
_KINDS: dict[str, ColumnKind] = {
    **dict.fromkeys(("timestamp", "timestamptz", "date"), "time"),
    **dict.fromkeys(
        ("int", "integer", "uinteger", "bigint", "hugeint", "smallint", "tinyint", "float", "double", "real"),
        "number",
    ),
    **dict.fromkeys(("numeric", "decimal", "uint", "ubigint", "uhugeint", "usmallint", "utinyint"), "number"),
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "uuid", "enum"), "text"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
}


class Database(Protocol):
    """An open database. Names of a query's columns are those that it gives; blocks name them by position."""

    name: str

    def tables(self) -> list[tuple[str, str]]:
        """Schemas and names of the tables and views."""

    def columns(self, query: str) -> tuple[str, ...]:
        """The names of a query's columns."""

    def kinds(self, query: str) -> tuple[ColumnKind, ...]:
        """What its columns hold."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of a small result."""

    def run(self, statement: str) -> None:
        """Run a statement that has no result."""

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows into a temporary table, as values and never as a part of a statement."""

    def blocks(self, query: str, n_rows: int) -> Iterator[pl.DataFrame]:
        """The rows of a query in its order, about so many at a time; no more of them are in memory."""


def open_database(
    address: DatabaseAddress, *, temporary_tables: bool = False, scratch: str | None = None
) -> Database:
    """Open the database of an address for reading; with `temporary_tables` it may also make some of its own."""
    if address.kind == "duckdb":
        return _DuckDB(address, scratch)
    return _PostgreSQL(address, read_only=not temporary_tables)


def quoted(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def selected(database: Database, address: DatabaseAddress) -> str:
    """The query of an address; that of a table has all of its columns."""
    if address.query:
        return address.query.rstrip().rstrip(";")
    tables = database.tables()
    fitting = [each for each in tables if address.table in (each[1], ".".join(each))]
    if len(fitting) == 1:
        return f"SELECT * FROM {quoted(fitting[0][0])}.{quoted(fitting[0][1])}"
    listed = [".".join(each) for each in fitting or tables]
    rest = len(listed) - _MOST_LISTED
    there = ", ".join(listed[:_MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")
    raise UsageError(
        f"{address.database} has {len(fitting) or 'no'} tables called '{address.table}'"
        + (", in different schemas." if fitting else "."),
        hint=f"{'name the schema, too' if fitting else 'there are'}: {there}."
        if listed
        else "there are no tables that this user may read.",
        code="no-such-table",
    )


class _DuckDB:
    """A file that is opened read-only. What does not fit into memory is kept in a folder that is removed."""

    def __init__(self, address: DatabaseAddress, scratch: str | None) -> None:
        with needs_extra("databases", "a DuckDB database"):
            import duckdb
        require_extra("databases", "a DuckDB database", "pyarrow")  # rows come as its batches
        self.name = address.database
        file = address.file
        assert file is not None
        if not file.is_file():
            raise UsageError(f"there is no file '{file}'.", hint="check the path.", code="no-such-file")
        self._duckdb: Any = duckdb
        self._scratch = Scratch(scratch)
        with self._our_errors(opening=True):
            self._connection: Any = duckdb.connect(str(file), read_only=True)
            for setting in (
                f"temp_directory = '{str(self._scratch.path).replace(chr(39), chr(39) * 2)}'",
                f"memory_limit = '{DUCKDB_MEMORY}'",
                "TimeZone = 'UTC'",
                # Nothing is fetched from anywhere.
                "autoinstall_known_extensions = false",
                "autoload_known_extensions = false",
            ):
                self._connection.execute(f"SET {setting}")
        weakref.finalize(self, self._connection.close)

    def tables(self) -> list[tuple[str, str]]:
        found = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = current_database() ORDER BY 1, 2"
        )
        return [(schema, name) for schema, name in found]

    def columns(self, query: str) -> tuple[str, ...]:
        return tuple(row[0] for row in self.rows(f"DESCRIBE {query}"))

    def kinds(self, query: str) -> tuple[ColumnKind, ...]:
        return tuple(_kind(str(row[1])) for row in self.rows(f"DESCRIBE {query}"))

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self._our_errors():
            found: list[tuple[Any, ...]] = self._connection.execute(statement).fetchall()
            return found

    def run(self, statement: str) -> None:
        with self._our_errors():
            self._connection.execute(statement)

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        if not rows:
            return
        with self._our_errors():
            self._connection.register("understudy_rows", pl.DataFrame(rows, orient="row").to_arrow())
            self._connection.execute(f"INSERT INTO {table} SELECT * FROM understudy_rows")
            self._connection.unregister("understudy_rows")

    def blocks(self, query: str, n_rows: int) -> Iterator[pl.DataFrame]:
        with self._our_errors():
            for batch in self._connection.sql(query).to_arrow_reader(n_rows):
                places = [str(at) for at in range(batch.num_columns)]
                yield pl.DataFrame(pl.from_arrow(batch.rename_columns(places)))

    @contextmanager
    def _our_errors(self, *, opening: bool = False) -> Iterator[None]:
        library = self._duckdb
        try:
            yield
        except (library.ParserException, library.CatalogException, library.BinderException) as error:
            # These are about the statement; others may quote what is in a cell.
            raise _bad_query(self.name, str(error).split("\n")[0].partition(": ")[2]) from None
        except (library.IOException, library.ConnectionException) as error:
            # The second: it is open in this program, in another way.
            if opening and ("lock" in str(error) or isinstance(error, library.ConnectionException)):
                raise MissingError(
                    f"{self.name} is open elsewhere, where it may be written to.",
                    hint="close it there, or give a copy of the file.",
                    code="database-locked",
                ) from None
            if opening:
                raise DataError(
                    f"{self.name}: this is not a DuckDB database, or one of another version.",
                    hint="open it with the version of DuckDB that wrote it, and export the table as Parquet.",
                ) from None
            raise _no_room(self.name) from None
        except library.OutOfMemoryException:
            raise _no_room(self.name) from None
        except library.Error:
            raise _bad_values(self.name) from None


class _PostgreSQL:
    """One transaction at REPEATABLE READ, so that everything is read of one state, whoever writes meanwhile."""

    def __init__(self, address: DatabaseAddress, *, read_only: bool) -> None:
        with needs_extra("databases", "a PostgreSQL database"):
            import psycopg
        self.name = address.database
        self._psycopg: Any = psycopg
        with self._our_errors(opening=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._connection: Any = psycopg.connect(
                address.place, connect_timeout=_CONNECT_SECONDS, application_name="understudy"
            )
        weakref.finalize(self, self._connection.close)
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._connection.read_only = read_only
        for setting in (
            "TimeZone = 'UTC'",
            "DateStyle = 'ISO'",
            "client_encoding = 'UTF8'",
            # Off, a backslash in our texts would be more than a character.
            "standard_conforming_strings = on",
        ):
            self.run(f"SET {setting}")
        if not read_only and self.rows("SHOW server_encoding") != [("UTF8",)]:
            raise UsageError(
                f"{self.name}: asked to compute inside a database, and its encoding is not UTF8.",
                hint="leave `in_database` out: then the rows are read.",
                code="not-in-database",
                settings=("in_database",),
            )

    def tables(self) -> list[tuple[str, str]]:
        found = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        )
        return [(schema, name) for schema, name in found]

    def columns(self, query: str) -> tuple[str, ...]:
        return tuple(column.name for column in self._described(query))

    def kinds(self, query: str) -> tuple[ColumnKind, ...]:
        known = self._psycopg.adapters.types
        types = [known.get(column.type_code) for column in self._described(query)]
        return tuple("other" if found is None else _kind(found.name) for found in types)

    def _described(self, query: str) -> Any:
        with self._our_errors(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}) AS log LIMIT 0")
            return cursor.description

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self._our_errors(), self._connection.cursor() as cursor:
            cursor.execute(statement)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def run(self, statement: str) -> None:
        with self._our_errors(), self._connection.cursor() as cursor:
            cursor.execute(statement)

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        with (
            self._our_errors(),
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def blocks(self, query: str, n_rows: int) -> Iterator[pl.DataFrame]:
        """See `Database.blocks`: texts as PostgreSQL writes them, which sends them row by row."""
        n_columns = len(self.columns(query))
        copied = f"COPY ({query}) TO STDOUT (FORMAT csv, NULL '\\N')"
        with self._our_errors(), self._connection.cursor() as cursor, cursor.copy(copied) as copy:
            lines, n_lines = io.BytesIO(), 0
            for line in copy:
                lines.write(line)
                n_lines += 1
                if n_lines == n_rows:
                    yield _texts(lines.getvalue(), n_columns)
                    lines, n_lines = io.BytesIO(), 0
            if n_lines:
                yield _texts(lines.getvalue(), n_columns)

    @contextmanager
    def _our_errors(self, *, opening: bool = False) -> Iterator[None]:
        library = self._psycopg
        try:
            yield
        except library.errors.InsufficientPrivilege:
            raise UsageError(
                f"{self.name}: this user may not read the table, or may not make temporary tables.",
                hint="ask the administrator for the right to read it (GRANT SELECT); only to compute inside the "
                "database, for that of temporary tables, too (GRANT TEMPORARY).",
                code="not-allowed",
            ) from None
        except library.OperationalError as error:
            raise (_not_opened(self.name, str(error)) if opening else _gone(self.name)) from None
        except library.Error as error:
            # Errors of class 42 are about the statement; others may quote what is in a cell.
            if (error.sqlstate or "").startswith("42"):
                raise _bad_query(self.name, error.diag.message_primary or "it is not SQL") from None
            if error.sqlstate == library.errors.ReadOnlySqlTransaction.sqlstate:
                raise _bad_query(self.name, "it would change the database") from None
            if opening:
                raise _not_opened(self.name, "") from None
            raise _bad_values(self.name) from None


def _kind(type_name: str) -> ColumnKind:
    """What a type holds, by its name: TIMESTAMP_NS and int8 by what they begin with, DECIMAL(5,2) too."""
    word = re.match(r"[a-z]*", type_name.lower())
    assert word is not None
    if "with time zone" in type_name.lower():
        return "time"
    return "other" if type_name.endswith("]") else _KINDS.get(word[0], "other")


def _texts(lines: bytes, n_columns: int) -> pl.DataFrame:
    return pl.read_csv(
        lines,
        has_header=False,
        new_columns=[str(at) for at in range(n_columns)],
        infer_schema=False,
        null_values=["\\N"],
    )


def _bad_query(name: str, why: str) -> UnderstudyError:
    return UsageError(
        f"{name}: the query cannot be run: {why.rstrip('.')}.",
        hint="try it in the database's own client first.",
        code="bad-query",
    )


def _bad_values(name: str) -> UnderstudyError:
    return DataError(
        f"{name}: the database could not compute the query on the values that it holds.",
        hint="run the query in the database's own client, which says which value it is.",
        code="bad-values",
    )


def _no_room(name: str) -> UnderstudyError:
    return MissingError(
        f"{name}: there is not enough memory or room for temporary files.",
        hint="make room in the scratch folder, or name another one.",
        code="no-room",
        settings=("scratch",),
    )


def _gone(name: str) -> UnderstudyError:
    return MissingError(
        f"{name}: the connection to the database was lost.", hint="try again.", code="database-gone"
    )


def _not_opened(name: str, said: str) -> UnderstudyError:
    # What the client says may hold the address, so it is looked at and not shown.
    if "password" in said or "authentication" in said:
        return UsageError(
            f"{name}: the database refused this user or password.",
            hint="check them; a password is best kept in ~/.pgpass, or in the environment variable PGPASSWORD.",
            code="not-allowed",
        )
    if "does not exist" in said:
        return UsageError(
            f"{name}: there is no such database or user.", hint="check the address.", code="no-such-database"
        )
    return MissingError(
        f"{name}: there is no database server that answers.",
        hint="check host and port, and whether the server is running.",
        code="no-database",
    )
