"""The events of a large table, some learners at a time: each piece is read and checked like a table of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import polars as pl

from understudy.core.engine.engine import ThisMachine
from understudy.core.engine.progress import each
from understudy.core.events.event_table import EventTable
from understudy.core.events.fetched_rows import FetchedRows
from understudy.core.events.partitions import Partitions, partition, spread_sample
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.databases.streams import DatabaseStream
from understudy.core.files.streams import Stream
from understudy.core.files.tables import Table, WrappedTable

Reader = Callable[[Table, ReadOptions], EventTable]
Result = TypeVar("Result")


@dataclass(repr=False)
class _Watched(WrappedTable):
    """The first rows of a table, a sample of its rows, and which columns a reader asks for."""

    table: Table
    rows: pl.DataFrame
    roles: dict[str, int] = field(default_factory=dict)
    positions: set[int] = field(default_factory=set)

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        self.positions |= set(positions.values())
        self.roles = {**positions, **self.roles}
        return self.table.read(positions)

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`."""
        return self.rows


@dataclass(frozen=True, repr=False)
class EventPieces:
    """A table of events on disk, partitioned by learner."""

    format: str
    notes: tuple[str, ...]
    """About the file as a whole; pieces have their own."""
    _reader: Reader
    _options: ReadOptions
    _partitions: Partitions

    def __len__(self) -> int:
        return len(self._partitions)

    def collect(self, read: Callable[[EventTable, ReadOptions], Result]) -> tuple[EventTable, list[Result]]:
        """What is known of all events, but for their rows, and what `read` makes of each piece; `read` settles it."""

        def read_piece(number: int) -> tuple[EventTable, Result]:
            events = self._reader(self._partitions.table(number), self._options)
            events.partial, events.zones = True, self._partitions.zones
            result = read(events, self._options)
            events.forget_rows()
            return events, result

        results: list[Result] = []
        whole: EventTable | None = None
        # On this machine whatever the engine is: the rows are in files here.
        read_pieces = ThisMachine().each(read_piece, range(len(self)))
        for events, result in each(read_pieces, "Sorting by learner", len(self)):
            results.append(result)
            if whole is None:
                whole = events
            else:
                whole.add_piece(events)
        assert whole is not None
        whole.notes = [*self.notes, *whole.notes]
        return whole, results


def read_pieces(
    stream: Stream, format: str, notes: Sequence[str], reader: Reader, options: ReadOptions, folder: Path
) -> EventPieces:
    """Partition a table by learner in a folder.

    Which columns are needed is seen when its first rows are read: those of the roles, and those that a sample of all
    rows shows to identify people.
    """
    head = stream.head()
    watched = _Watched(head, head.sample())
    probe = replace(options, withdrawn=None)
    events = reader(watched, probe)
    if isinstance(stream, DatabaseStream):
        stream.require_order(has_times="time" in watched.roles)
        places = {*watched.positions, *map(int, watched.rows.columns)}
        stream = FetchedRows.fetch(stream, head, sorted(places), folder / "fetched")
    # Only now: what is wrong with the header is said before all rows are looked at.
    watched.rows = spread_sample(stream)
    reader(watched, probe)
    partitions = partition(
        stream,
        watched.rows,
        sorted(watched.positions),
        watched.roles,
        folder,
        everyone=options.withdrawn is not None,
    )
    if isinstance(stream, FetchedRows):
        stream.remove()
    if options.withdrawn is not None:
        settled = options.withdrawn.settled(partitions.learners, events.columns["learner"])
        options = replace(options, withdrawn=settled)
    return EventPieces(format, (*notes, *stream.notes), reader, options, partitions)


def lines_of_learners(events: EventTable) -> pl.DataFrame:
    """The learners in the order in which they are first met, each with their first line."""
    named = events.frame.select("learner", "line").drop_nulls("learner")
    return named.group_by("learner", maintain_order=True).agg(pl.col("line").min())
