"""A table or a query of a database, read in blocks of rows like a large file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from understudy.core.files.databases.addresses import DatabaseAddress
from understudy.core.files.databases.connections import Database, open_database, quoted, selected
from understudy.core.files.source import Guess
from understudy.core.files.tables import SAMPLE_ROWS, FrameTable, rows_from
from understudy.errors import DataError, UsageError

BLOCK_ROWS = 1 << 19
# What a query may hold that is not its own ORDER BY: texts, names, comments, and what is between parentheses.
_TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_PARENTHESES = re.compile(r"\([^()]*\)")


@dataclass(repr=False)
class DatabaseStream:
    """The rows of an address, all of one state of the database."""

    file: str
    names: tuple[str, ...]
    address: DatabaseAddress
    _database: Database
    _query: str
    place: str = field(default="row", init=False)
    notes: tuple[str, ...] = field(default=(), init=False)
    guesses: tuple[Guess, ...] = field(default=(), init=False)

    @cached_property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self._database.rows(f"SELECT count(*) FROM ({self._query}) AS log")[0][0])

    def head(self) -> FrameTable:
        """The first rows, with all columns."""
        frame = next(
            self._database.blocks(f"SELECT * FROM ({self._query}) AS log LIMIT {SAMPLE_ROWS}", SAMPLE_ROWS),
            pl.DataFrame(),
        )
        if not frame.height:
            raise DataError(f"{self.file}: the log is empty: there is no row.", hint="check the query.")
        return FrameTable(self.file, self.names, frame, rows_from(1, frame))

    def blocks(self, positions: Sequence[int]) -> Iterator[pl.DataFrame]:
        """All rows in order: the columns at these positions, under their positions as names, and `line`."""
        first, query, places = 1, self._query, list(positions)
        if self.address.table:
            # Only what is needed is sent. A query is run as it is, since another around it may lose its order.
            chosen = ", ".join(quoted(self.names[at]) for at in positions)
            query, places = query.replace("SELECT *", f"SELECT {chosen}", 1), list(range(len(positions)))
        for block in self._database.blocks(query, BLOCK_ROWS):
            named = block.select(
                pl.col(str(place)).alias(str(at)) for place, at in zip(places, positions, strict=True)
            )
            yield named.with_columns(rows_from(first, named).alias("line"))
            first += block.height

    def require_order(self, *, has_times: bool) -> None:
        """Refuse rows in no order: what a learner did next would be the database's invention."""
        if has_times or is_ordered(self._query):
            return
        raise UsageError(
            f"{self.file}: the rows of a table have no order, and no column is known that holds times.",
            hint="name the column with the times, or give a query with ORDER BY.",
            code="no-order",
            settings=("time",),
        )


def open_database_stream(address: DatabaseAddress, scratch: str | None = None) -> DatabaseStream:
    """The stream of an address."""
    database = open_database(address, scratch=scratch)
    query = selected(database, address)
    return DatabaseStream(address.name, database.columns(query), address, database, query)


def is_ordered(query: str) -> bool:
    """Whether a query has an ORDER BY of its own, beside those within parentheses."""
    left = _TEXTS.sub(" ", query)
    while (inner := _PARENTHESES.sub(" ", left)) != left:
        left = inner
    return re.search(r"\border\s+by\b", left, re.IGNORECASE) is not None
