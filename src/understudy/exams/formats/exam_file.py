"""Files with responses, opened: what is small is in memory, and large tables are streamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from understudy.core.events.reading import is_data_set
from understudy.core.files.delimited import table_in
from understudy.core.files.source import Guess, Source, keeping_values_inside, open_source
from understudy.core.files.streams import ParquetStream, Stream, begin_of_text, open_parquet, open_text
from understudy.core.files.tables import MAGIC, Sheet, Table, read_parquet
from understudy.core.files.workbooks import read_workbook


@dataclass(frozen=True, repr=False)
class ExamFile:
    """A file, or a folder of Parquet files, whose format can be recognised."""

    path: Path
    source: Source
    """The content, of a large file its beginning."""
    large: bool
    _parquet: ParquetStream | None

    @classmethod
    def open(cls, path: Path) -> ExamFile | None:
        """The file; None for a folder that is no table."""
        parquet = None if is_data_set(path) else open_parquet(path)
        if path.is_dir() and parquet is None:
            return None
        begin = begin_of_text(path) if parquet is None else Source(path.name, MAGIC)
        return cls(path, begin or open_source(path), begin is not None, parquet)

    def stream(self, format: str) -> Stream | None:
        """The table in a large file of this format; None where it is read whole."""
        if self._parquet is not None:
            return self._parquet if format == "parquet" else None
        if not self.large or format not in ("csv", "tsv"):
            return None
        return open_text(self.path, self.source, "\t" if format == "tsv" else None)

    def table(self, format: str, place: str | None) -> Table:
        """The table in the file, read whole; at a `place` of a workbook."""
        source = open_source(self.path) if self.large else self.source
        if format == "parquet":
            return read_parquet(source)
        if format == "excel":
            return read_workbook(source, place)
        return table_in(source, "\t" if format == "tsv" else None)


@dataclass(frozen=True, repr=False)
class LargeSheet:
    """A large table whose columns are read from Parquet files, some of them at a time."""

    file: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    guesses: tuple[Guess, ...]
    place: str
    _columns: ParquetStream
    _lines: pl.Series | None
    """The lines of the rows, if they are not numbered from 1 on."""

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Sheet.read`."""
        blocks = self._columns.blocks(sorted(set(positions.values())))
        with keeping_values_inside(
            f"{self.file}: a column has cells of several types.", hint="write it with one type in all files."
        ):
            frame = pl.concat(blocks, how="vertical_relaxed")
        lines = frame["line"] if self._lines is None else self._lines
        return frame.select(*(pl.col(str(at)).alias(role) for role, at in positions.items()), lines)


def large_sheet(stream: Stream, folder: Path) -> Sheet:
    """The sheet in a large table; a text is read once, and its columns are kept in the folder."""
    if isinstance(stream, ParquetStream):
        return LargeSheet(stream.file, stream.names, stream.notes, stream.guesses, stream.place, stream, None)
    paths, lines = [], []
    for number, block in enumerate(stream.blocks(range(len(stream.names)))):
        paths.append(folder / f"{number}.parquet")
        block.drop("line").write_parquet(paths[-1])
        lines.append(block["line"])
    positions = tuple(str(at) for at in range(len(stream.names)))
    columns = ParquetStream(stream.file, positions, sum(map(len, lines)), paths)
    return LargeSheet(
        stream.file,
        stream.names,
        tuple(stream.notes),
        stream.guesses,
        stream.place,
        columns,
        pl.concat(lines),
    )
