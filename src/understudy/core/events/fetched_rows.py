"""The rows of a database, fetched once into a file.

They are needed twice: all are looked at to find the columns that identify people, and then partitioned by learner. A
query that is run twice might also give its rows in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from understudy.core.engine.progress import task
from understudy.core.events.stored_blocks import StoredBlocks
from understudy.core.files.databases.streams import DatabaseStream
from understudy.core.files.source import Guess
from understudy.core.files.tables import Table


@dataclass(frozen=True, repr=False)
class FetchedRows:
    """A stream of rows that are in a file."""

    stream: DatabaseStream
    _head: Table
    _rows: StoredBlocks

    @classmethod
    def fetch(cls, stream: DatabaseStream, head: Table, positions: Sequence[int], path: Path) -> FetchedRows:
        """Fetch the columns at these positions; `head` has the first rows of the stream."""
        rows = StoredBlocks(path)
        with task("Fetching", stream.n_rows) as step:
            for block in stream.blocks(positions):
                rows.append(block)
                step.advance(block.height)
        return cls(stream, head, rows)

    @property
    def file(self) -> str:
        """See `Stream.file`."""
        return self.stream.file

    @property
    def names(self) -> tuple[str, ...]:
        """See `Stream.names`."""
        return self.stream.names

    @property
    def place(self) -> str:
        """See `Stream.place`."""
        return self.stream.place

    @property
    def n_rows(self) -> int:
        """See `Stream.n_rows`."""
        return self.stream.n_rows

    @property
    def notes(self) -> tuple[str, ...]:
        """See `Stream.notes`."""
        return self.stream.notes

    @property
    def guesses(self) -> tuple[Guess, ...]:
        """See `Stream.guesses`."""
        return self.stream.guesses

    def head(self) -> Table:
        """See `Stream.head`."""
        return self._head

    def blocks(self, positions: Sequence[int]) -> Iterator[pl.DataFrame]:
        """See `Stream.blocks`."""
        return self._rows.each([*map(str, positions), "line"])

    def remove(self) -> None:
        """Remove the file: it has columns that are not needed any more, and takes room."""
        self._rows.path.unlink()
