"""Parquet files, of which only the columns that are needed are read."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import polars as pl

from understudy.core.files.source import Source, keeping_values_inside
from understudy.core.files.tables import SAMPLE_ROWS, FrameTable, rows_from
from understudy.errors import DataError

MAGIC = b"PAR1"


@dataclass(frozen=True, repr=False)
class ParquetTable:
    """A Parquet file whose footer has been read."""

    file: str
    names: tuple[str, ...]
    _data: bytes
    notes: tuple[str, ...] = field(default=(), init=False)
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
        frame = self._load(list(self.names), n_rows=SAMPLE_ROWS)
        return FrameTable(self.file, self.names, frame, rows_from(1, frame)).sample()

    def _load(self, names: list[str], n_rows: int | None = None) -> pl.DataFrame:
        with _intact(self.file):
            return pl.read_parquet(io.BytesIO(self._data), columns=names, n_rows=n_rows)


def read_parquet(source: Source) -> ParquetTable:
    """The table in a Parquet file."""
    with _intact(source.name):
        names = tuple(pl.read_parquet_schema(io.BytesIO(source.data)))
    return ParquetTable(source.name, names, source.data)


def _intact(file: str) -> AbstractContextManager[None]:
    return keeping_values_inside(
        f"{file}: the Parquet file is damaged or cut short.",
        hint="copy the file again, or write it again with polars or pandas.",
    )
