"""A table whose columns are read one by one: what csv, tsv, Parquet and Excel files have in common."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.parquet import check_parquet, intact
from understudy.core.files.source import Guess, Source, keeping_values_inside
from understudy.errors import DataError

# About what a content check looks at: enough for a share, little enough to be quick with hundreds of columns.
SAMPLE_ROWS = 2000
# 2^32 over the golden ratio.
GOLDEN = 2654435769


class Sheet(Protocol):
    """Columns that are read only when asked for, and the place in the file where each row stands."""

    @property
    def file(self) -> str:
        """The file's name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the order of the file."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be assumed to read the file."""

    @property
    def guesses(self) -> tuple[Guess, ...]:
        """What was decided about the file by looking at its rows."""

    @property
    def place(self) -> str:
        """What a row's number counts: "line" or "row"."""

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """The columns at these positions, under the given names, and `line`."""


class Table(Sheet, Protocol):
    """A sheet whose content can be looked at before it is read."""

    def sample(self) -> pl.DataFrame:
        """Some rows of every column as text, columns named by their position."""


@dataclass(frozen=True, repr=False)
class FrameTable:
    """A table that a library has typed already: Parquet and Excel."""

    file: str
    names: tuple[str, ...]
    frame: pl.DataFrame
    rows: pl.Series
    notes: tuple[str, ...] = ()
    guesses: tuple[Guess, ...] = ()
    place: str = "row"

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        columns = {role: as_text(self.frame.to_series(at), self.file) for role, at in positions.items()}
        return pl.DataFrame({**columns, "line": self.rows})

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`."""
        some = self.frame[sampled_rows(self.frame.height)]
        texts = {}
        for position, name in enumerate(some.columns):
            if not some[name].dtype.is_nested() and some[name].dtype != pl.Binary:
                texts[str(position)] = as_text(some[name], self.file)
        return pl.DataFrame(texts).cast(pl.String)


class WrappedTable:
    """A table around another one, whose cells it reads in a way of its own; everything else is the same."""

    table: Table

    @property
    def file(self) -> str:
        """See `Table.file`."""
        return self.table.file

    @property
    def names(self) -> tuple[str, ...]:
        """See `Table.names`."""
        return self.table.names

    @property
    def notes(self) -> tuple[str, ...]:
        """See `Table.notes`."""
        return self.table.notes

    @property
    def guesses(self) -> tuple[Guess, ...]:
        """See `Table.guesses`."""
        return self.table.guesses

    @property
    def place(self) -> str:
        """See `Table.place`."""
        return self.table.place


@dataclass(frozen=True, repr=False)
class WithoutMarks(WrappedTable):
    """A table of a platform that writes marks where a cell is empty, without them."""

    table: Table
    marks: tuple[str, ...]

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        return self._unmarked(self.table.read(positions))

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`."""
        return self._unmarked(self.table.sample())

    def _unmarked(self, cells: pl.DataFrame) -> pl.DataFrame:
        marked = pl.col(pl.String).str.strip_chars().is_in(self.marks)
        return cells.with_columns(pl.when(~marked).then(pl.col(pl.String)))


def is_sampled(numbers: NDArray[np.integer[Any]], share: float) -> NDArray[np.bool_]:
    """Whether rows of these numbers are in a sample of a share of all rows.

    A row is taken if the fraction of its number times the golden ratio is small. Such rows are as evenly spread as
    every k-th one, but follow no period: where every second row is of another kind, those might show one kind alone.
    """
    fraction = numbers.astype(np.uint64) * np.uint64(GOLDEN) % np.uint64(1 << 32)
    return fraction < share * (1 << 32)


def sampled_rows(n_rows: int) -> NDArray[np.integer[Any]]:
    """The numbers of about `SAMPLE_ROWS` rows from all over a table; of all rows, if there are not as many."""
    return np.flatnonzero(is_sampled(np.arange(n_rows), SAMPLE_ROWS / max(n_rows, 1)))


def rows_from(first: int, frame: pl.DataFrame) -> pl.Series:
    """The numbers of a frame's rows, of which the first one stands on row `first` of the file."""
    return pl.int_range(first, first + frame.height, eager=True)


def as_text(values: pl.Series, file: str) -> pl.Series:
    """Numbers and names as text; times keep their type. A whole number is written without a point.

    pandas turns whole numbers into 1.0 when a cell of the column is empty. Each cell is written by itself: a 1.5
    in another learner's row must not make a 1 into a 1.0.
    """
    with keeping_values_inside(
        f"{file}: a column of type {values.dtype.base_type()} cannot be read as text.",
        hint="keep one plain value per cell.",
    ):
        if values.dtype.is_temporal():
            return values
        if values.dtype.is_float():
            whole = values.cast(pl.Int64, strict=False)
            is_whole = whole.cast(values.dtype) == values
            return pl.select(
                pl.when(is_whole).then(whole.cast(pl.String)).otherwise(values.cast(pl.String))
            ).to_series()
        return values.cast(pl.String)


MAGIC = b"PAR1"
_NUMBER = "number of a row"


@dataclass(frozen=True, repr=False)
class ParquetTable:
    """A Parquet file whose footer has been read."""

    file: str
    names: tuple[str, ...]
    _data: bytes
    notes: tuple[str, ...] = field(default=(), init=False)
    guesses: tuple[Guess, ...] = field(default=(), init=False)
    place: str = field(default="row", init=False)

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        chosen = sorted(set(positions.values()))
        frame = self._load([self.names[at] for at in chosen])
        if frame.height == 0:
            raise DataError(f"{self.file}: the log is empty: there is no row.", hint="check the export.")
        within = {role: chosen.index(at) for role, at in positions.items()}
        return FrameTable(self.file, tuple(frame.columns), frame, rows_from(1, frame)).read(within)

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`."""
        with intact(self.file, self._data):
            rows = pl.scan_parquet(io.BytesIO(self._data)).select(self.names)
            n_rows = rows.select(pl.len()).collect().item()
            numbered = rows.with_row_index(_NUMBER).filter(pl.col(_NUMBER).is_in(sampled_rows(n_rows)))
            frame = numbered.drop(_NUMBER).collect(engine="streaming")
        return FrameTable(self.file, self.names, frame, rows_from(1, frame)).sample()

    def flat(self) -> FrameTable:
        """The table with a column for every field of a nested one, named as "value.id"."""
        frame = self._load(list(self.names))
        fields = [
            pl.col(name).struct.field(inner.name).alias(f"{name}.{inner.name}")
            if inner is not None
            else pl.col(name)
            for name, kind in frame.schema.items()
            for inner in (kind.fields if isinstance(kind, pl.Struct) else [None])
        ]
        flat = frame.select(fields)
        return FrameTable(self.file, tuple(flat.columns), flat, rows_from(1, flat))

    def _load(self, names: list[str]) -> pl.DataFrame:
        with intact(self.file, self._data):
            return pl.read_parquet(io.BytesIO(self._data), columns=names)


def read_parquet(source: Source) -> ParquetTable:
    """The table in a Parquet file."""
    check_parquet(source.name, source.data)
    with intact(source.name, source.data):
        names = tuple(pl.read_parquet_schema(io.BytesIO(source.data)))
    return ParquetTable(source.name, names, source.data)
