"""Tables that are larger than memory: read in blocks of rows, from Parquet (a file or a folder) and delimited text.

A block holds the columns that are asked for, named by their positions, and `line`, the place of each row in the file.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, cast

import polars as pl

from understudy.core.files.delimited import guess_separator, read_delimited, table_in
from understudy.core.files.notes import add_up
from understudy.core.files.parquet import check_parquet, intact
from understudy.core.files.source import GZIP_MAGIC, Guess, Source, damaged_gzip, decode, first_lines
from understudy.core.files.tables import MAGIC, SAMPLE_ROWS, FrameTable, Table, rows_from
from understudy.errors import DataError

# What is larger is read in blocks: rows of a Parquet file, bytes of a text, packed or not.
LARGE_ROWS = 1 << 22
LARGE_TEXT, LARGE_PACKED = 1 << 28, 1 << 25
# Rows of a block; a text's block has about as many.
BLOCK_ROWS = 1 << 19
BLOCK_BYTES = 1 << 24
HEAD_BYTES = 1 << 18
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Stream(Protocol):
    """A table that is read in blocks."""

    @property
    def file(self) -> str:
        """The name that messages use."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the order of the file."""

    @property
    def place(self) -> str:
        """What a row's number counts: "line" or "row"."""

    @property
    def n_rows(self) -> int:
        """About how many rows there are."""

    @property
    def notes(self) -> Sequence[str]:
        """What had to be assumed to read the blocks so far."""

    @property
    def guesses(self) -> tuple[Guess, ...]:
        """What was decided about them by looking at rows."""

    def head(self) -> Table:
        """The first rows, with all columns."""

    def blocks(self, positions: Sequence[int]) -> Iterator[pl.DataFrame]:
        """All rows in order: the columns at these positions, under their positions as names, and `line`."""


@dataclass(repr=False)
class ParquetStream:
    """One or more Parquet files with the same columns, read one after the other."""

    file: str
    names: tuple[str, ...]
    n_rows: int
    _paths: Sequence[Path]
    place: str = field(default="row", init=False)
    notes: tuple[str, ...] = field(default=(), init=False)
    guesses: tuple[Guess, ...] = field(default=(), init=False)

    def head(self) -> Table:
        """See `Stream.head`."""
        with intact(self._paths[0].name, self._paths[0]):
            frame = pl.read_parquet(self._paths[0], columns=list(self.names), n_rows=SAMPLE_ROWS)
        return FrameTable(self.file, self.names, frame, rows_from(1, frame))

    def blocks(self, positions: Sequence[int]) -> Iterator[pl.DataFrame]:
        """See `Stream.blocks`."""
        first = 1
        chosen = [pl.col(self.names[at]).alias(str(at)) for at in positions]
        for path in self._paths:
            for block in _batches(path, pl.scan_parquet(path).select(chosen)):
                yield block.with_columns(rows_from(first, block).alias("line"))
                first += block.height


@dataclass(repr=False)
class TextStream:
    """Delimited text, perhaps packed, of which some lines are read at a time."""

    file: str
    names: tuple[str, ...]
    n_rows: int
    _path: Path
    _separator: str
    _head: Table
    place: str = field(default="line", init=False)
    notes: list[str] = field(default_factory=list, init=False)
    guesses: tuple[Guess, ...] = field(default=(), init=False)

    def head(self) -> Table:
        """See `Stream.head`."""
        return self._head

    def blocks(self, positions: Sequence[int]) -> Iterator[pl.DataFrame]:
        """See `Stream.blocks`; each block is read as a text of its own, below the header."""
        roles = {str(at): at for at in positions}
        with _opened(self._path) as file:
            header = decode(Source(self.file, self._read_line(file)), latin=True)
            self.notes[:] = header.notes
            above = 1
            while lines := self._lines(file):
                text = decode(Source(self.file, header.data + lines, above), latin=True)
                above += text.data.count(b"\n") - 1
                if lines.strip():
                    table = read_delimited(text, self._separator)
                    self.notes[:] = add_up([*self.notes, *table.notes])
                    self.guesses = table.guesses or self.guesses
                    yield table.read(roles)

    def _lines(self, file: IO[bytes]) -> bytes:
        """The next lines, whole ones, none of them between quotation marks; nothing at the end."""
        lines = self._read(file, BLOCK_BYTES)
        while rest := self._read_line(file):
            lines += rest
            if self._separator == "\t" or lines.count(b'"') % 2 == 0:
                break
        return lines

    def _read(self, file: IO[bytes], size: int) -> bytes:
        with _unpacking(self.file):
            return file.read(size)

    def _read_line(self, file: IO[bytes]) -> bytes:
        with _unpacking(self.file):
            return file.readline()


def open_parquet(path: Path) -> ParquetStream | None:
    """A large Parquet file, or a folder of Parquet files; None for anything else."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*.parquet") if not file.name.startswith((".", "_")))
        return _parquet(path, files) if files else None
    if _begin(path) != MAGIC:
        return None
    stream = _parquet(path, [path])
    return stream if stream.n_rows > LARGE_ROWS else None


def begin_of_text(path: Path) -> Source | None:
    """The first lines of a large file that may be a text; None for anything else."""
    begin = _begin(path)
    size = path.stat().st_size if begin else 0
    if begin.startswith((*_UTF16, MAGIC)) or size <= _large(begin):
        return None
    with _opened(path) as file, _unpacking(path.name):
        data = file.read(HEAD_BYTES)
    # Whole lines, none of them between quotation marks; without any, lines end otherwise or it is no text.
    end = data.rfind(b"\n") + 1
    while end and data.count(b'"', 0, end) % 2:
        end = data.rfind(b"\n", 0, end - 1) + 1
    return Source(path.name, data[:end]) if end else None


def open_text(path: Path, begin: Source, separator: str | None) -> TextStream:
    """The table in a large text that begins so."""
    separator = separator or guess_separator(first_lines(decode(begin, latin=True), 1)[0])
    table = table_in(begin, separator)
    # Texts of learners' actions are packed to about a fifth.
    size = path.stat().st_size * (5 if _begin(path).startswith(GZIP_MAGIC) else 1)
    n_rows = int(size / len(begin.data) * begin.data.count(b"\n"))
    return TextStream(path.name, table.names, n_rows, path, separator, table)


def _begin(path: Path) -> bytes:
    """The first bytes of a file; none if it cannot be read, which is for the reader of small files to say."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC))
    except (OSError, ValueError):
        return b""


def _large(begin: bytes) -> int:
    return LARGE_PACKED if begin.startswith(GZIP_MAGIC) else LARGE_TEXT


def _parquet(path: Path, paths: Sequence[Path]) -> ParquetStream:
    schema, n_rows = None, 0
    for each in paths:
        check_parquet(each.name, each)
        with intact(each.name, each):
            scanned = pl.scan_parquet(each)
            columns = scanned.collect_schema()
            n_rows += int(scanned.select(pl.len()).collect().item())
        schema = schema or columns
        if sorted(columns) != sorted(schema):
            raise DataError(
                f"{path.name}: the files of the folder have different columns; {each.name} is the first that differs "
                f"from {paths[0].name}.",
                hint="give a folder with the files of one table.",
                code="different-columns",
            )
        for name, kind in schema.items():
            if columns[name] != kind:
                raise DataError(
                    f"{path.name}: column '{name}' has another type in {each.name} than in {paths[0].name}.",
                    hint="write the files of the folder with the same types.",
                    code="different-columns",
                    column=name,
                )
    assert schema is not None
    return ParquetStream(path.name, tuple(schema), n_rows, paths)


def _batches(path: Path, frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows of a Parquet file, some at a time; what happens between them is not about the file."""
    with intact(path.name, path):
        batches = iter(frame.collect_batches(chunk_size=BLOCK_ROWS))
    while True:
        with intact(path.name, path):
            block = next(batches, None)
        if block is None:
            return
        yield block


def _opened(path: Path) -> IO[bytes]:
    file = path.open("rb")
    packed = file.read(2) == GZIP_MAGIC
    file.seek(0)
    return cast(IO[bytes], gzip.open(file)) if packed else file


@contextmanager
def _unpacking(name: str) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise damaged_gzip(name) from None
