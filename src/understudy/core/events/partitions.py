"""The rows of a large table, partitioned by learner on disk: all rows of a learner are in one partition, in order.

How a row is read never depends on other learners' rows, so each partition can be read as if it were the whole table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.engine.progress import task
from understudy.core.events.stored_blocks import StoredBlocks
from understudy.core.files.people.learner_ids import folded_names
from understudy.core.files.source import Guess
from understudy.core.files.streams import Stream
from understudy.core.files.tables import SAMPLE_ROWS, as_text, is_sampled
from understudy.core.files.times import zones_in
from understudy.errors import DataError

# Rows of a partition, as planned; and how many partitions are written at once.
PARTITION_ROWS = 1 << 20
MOST_PARTITIONS = 256


@dataclass(frozen=True, repr=False)
class PartitionTable:
    """Some learners' rows, of the columns that were stored."""

    file: str
    names: tuple[str, ...]
    place: str
    frame: pl.DataFrame
    _sample: pl.DataFrame
    guesses: tuple[Guess, ...] = ()
    notes: tuple[str, ...] = ()

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        columns = {role: as_text(self.frame[str(at)], self.file) for role, at in positions.items()}
        return pl.DataFrame({**columns, "line": self.frame["line"]})

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`: one of the whole table, so that every partition comes to the same verdicts."""
        return self._sample


@dataclass(frozen=True, repr=False)
class Partitions:
    """The partitions of a table, in files of a folder."""

    stream: Stream
    learners: pl.Series
    """The names of all learners, each once, if they were asked for."""
    zones: frozenset[str | None]
    """Time zones that the texts of the time column state."""
    distinct: Mapping[int, pl.Series]
    """The texts in some columns, by their positions, each once."""
    _sample: pl.DataFrame
    _files: Sequence[StoredBlocks]

    def __len__(self) -> int:
        return len(self._files)

    def table(self, number: int) -> PartitionTable:
        """One of them."""
        return PartitionTable(
            self.stream.file,
            self.stream.names,
            self.stream.place,
            self._files[number].read(),
            self._sample,
            self.stream.guesses,
        )


def spread_sample(stream: Stream) -> pl.DataFrame:
    """Cells from all over a table, like `Table.sample`: a column may hold further down what its first rows lack.

    Of each column it has up to `SAMPLE_ROWS` cells that are not empty, and about half as many at least if there are. So
    the cells of a row are those of different rows of the table, and columns of which few cells are filled are known as
    well as others.
    """
    columns = {int(name): _FilledCells() for name in stream.head().sample().columns}
    with task("Looking at all columns", stream.n_rows) as step:
        for block in stream.blocks(list(columns)):
            for at, cells in columns.items():
                cells.look(block[str(at)])
            step.advance(block.height)
    texts = {str(at): as_text(cells.found, stream.file).cast(pl.String) for at, cells in columns.items()}
    height = max(map(len, texts.values()), default=0)
    return pl.DataFrame(
        {name: found.extend_constant(None, height - len(found)) for name, found in texts.items()}
    )


@dataclass(repr=False)
class _FilledCells:
    """A share of a column's cells that are not empty."""

    found: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.Null))
    _numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _share: float = 1.0
    _n_cells: int = 0

    def look(self, cells: pl.Series) -> None:
        """Go on with the next cells."""
        filled = cells.drop_nulls()
        if filled.dtype == pl.String:
            filled = filled.filter(filled.str.contains(r"\S"))
        numbers = np.arange(self._n_cells, self._n_cells + len(filled))
        self._n_cells += len(filled)
        chosen = is_sampled(numbers, self._share)
        # Until there is one, a column may have any type.
        self.found = (
            pl.concat([self.found, filled.filter(chosen)]) if len(self.found) else filled.filter(chosen)
        )
        self._numbers = np.concatenate([self._numbers, numbers[chosen]])
        while len(self.found) > SAMPLE_ROWS:
            self._share /= 2
            kept = is_sampled(self._numbers, self._share)
            self.found, self._numbers = self.found.filter(kept), self._numbers[kept]


def partition(
    stream: Stream,
    sample: pl.DataFrame,
    positions: Sequence[int],
    roles: Mapping[str, int],
    folder: Path,
    *,
    everyone: bool,
    distinct: Sequence[int] = (),
) -> Partitions:
    """Write the columns at these positions to a folder; `roles` are the positions of the learner and of the time.

    With `everyone` the names of all learners are kept, and so are all texts in the columns at `distinct` positions.
    Names that may mean the same learner, but for capitals and leading zeros, come into one partition.
    """
    n_parts = min(MOST_PARTITIONS, 1 + stream.n_rows // PARTITION_ROWS)
    files = [StoredBlocks(folder / f"{number}.arrows") for number in range(n_parts)]
    learners = pl.Series([], dtype=pl.String)
    zones: frozenset[str | None] = frozenset()
    texts = {at: pl.Series([], dtype=pl.String) for at in distinct}
    with task("Reading", stream.n_rows) as step:
        for block in stream.blocks(positions):
            names = as_text(block[str(roles["learner"])], stream.file).cast(pl.String).str.strip_chars()
            if everyone:
                learners = pl.concat([learners, names.unique()]).unique()
            if "time" in roles:
                zones |= zones_in(block[str(roles["time"])])
            for at in distinct:
                found = as_text(block[str(at)], stream.file).cast(pl.String)
                texts[at] = pl.concat([texts[at], found.unique()]).unique()
            number = (folded_names(names).hash() % n_parts).alias("part")
            parts = block.with_columns(number).partition_by("part", as_dict=True, include_key=False)
            for (part,), rows in parts.items():
                files[part].append(rows)
            step.advance(block.height)
    files = [file for file in files if file.sizes]
    if not files:
        raise DataError(f"{stream.file}: the log is empty: there is no row.", hint="check the export.")
    return Partitions(stream, learners, zones, texts, sample, files)
