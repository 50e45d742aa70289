"""Parquet files that are damaged: an error that names the row groups, and nothing of what a library prints about them.

polars panics on some damaged files. A panic is no `Exception`, and its message, which may quote what is in the file,
goes to the error stream before it can be caught. Where a file would end the whole process, it is refused beforehand
(`parquet_layout.py`).
"""

from __future__ import annotations

import io
import mmap
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import polars as pl

from understudy.core.files.parquet_layout import Content, LayoutError, RowGroup, row_groups
from understudy.core.files.words import counted
from understudy.errors import DataError, UnderstudyError

_AGAIN = "copy the file again, or write it again with polars or pandas"


def check_parquet(file: str, content: Path | bytes) -> None:
    """Refuse a file whose footer or headers cannot be true, before it is read; `file` is its name in messages."""
    with _opened(content) as data:
        try:
            groups = row_groups(data)
        except LayoutError:
            raise _damaged(file) from None
        wrong = [group for group in groups if not _has_true_headers(group, data)]
    if wrong:
        raise _damaged(file, wrong, len(groups))


def read_whole_parquet(path: Path, name: str | None = None) -> pl.DataFrame:
    """The table in a Parquet file; errors call it `name`."""
    name = name or path.name
    check_parquet(name, path)
    with intact(name, path):
        return pl.read_parquet(path)


@contextmanager
def intact(file: str, content: Path | bytes) -> Iterator[None]:
    """Turn whatever a library raises about a Parquet file into our error; `file` is its name in messages."""
    try:
        with _panics.silenced():
            yield
    except (UnderstudyError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise  # not about what is in it
    except BaseException:
        raise _diagnosed(file, content) from None


def _diagnosed(file: str, content: Path | bytes) -> DataError:
    """The error of a file that a library cannot read, with the row groups that are to blame."""
    try:
        with _opened(content) as data:
            groups = row_groups(data)
            wrong = [
                group for group in groups if not (_has_true_headers(group, data) and _is_read(group, content))
            ]
    except LayoutError:
        return _damaged(file)
    return _damaged(file, wrong, len(groups))


def _damaged(file: str, wrong: list[RowGroup] | None = None, n_groups: int = 0) -> DataError:
    message = f"{file}: the Parquet file is damaged or cut short"
    if not wrong:
        return DataError(f"{message}.", hint=f"{_AGAIN}.", code="damaged-parquet")
    first = wrong[0]
    rows = f"rows {first.first:,} to {first.first + first.n_rows - 1:,}"
    others = f", and so {'is' if len(wrong) == 2 else 'are'} {counted(len(wrong) - 1, 'other')}"
    return DataError(
        f"{message}: row group {first.number} of {n_groups}, counted from 0 ({rows}), cannot be read"
        f"{others if len(wrong) > 1 else ''}.",
        hint=f"{_AGAIN}{'; the other row groups are whole' if len(wrong) < n_groups else ''}.",
        code="damaged-row-group",
        row_groups=[group.number for group in wrong],
    )


def _has_true_headers(group: RowGroup, data: Content) -> bool:
    try:
        group.check(data)
    except LayoutError:
        return False
    return True


def _is_read(group: RowGroup, content: Path | bytes) -> bool:
    """Whether a row group can be read; polars reads no other for a slice of its rows."""
    source = content if isinstance(content, Path) else io.BytesIO(content)
    try:
        with _panics.silenced():
            pl.scan_parquet(source).slice(group.first - 1, group.n_rows).collect()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:
        return False
    return True


@contextmanager
def _opened(content: Path | bytes) -> Iterator[Content]:
    """The bytes of a file without reading it whole."""
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        # Nothing can be mapped of an empty file.
        if not content.stat().st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


class _Panics:
    """Keeps the error stream of this process back while something may panic, in one thread or several."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._failed, self._stream = 0, False, -1
        self._kept: IO[bytes] | None = None

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """What is written in the block is lost if it fails, and written afterwards if it does not."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._begin()
        try:
            yield
        except BaseException:
            self._failed = True
            raise
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0:
                    self._end()

    def _begin(self) -> None:
        self._failed = False
        try:
            self._stream = os.dup(2)
        except OSError:
            return  # there is no error stream
        # In memory where that can be: disks may be full.
        if hasattr(os, "memfd_create"):
            self._kept = os.fdopen(os.memfd_create("stderr"), "w+b")
        else:
            self._kept = tempfile.TemporaryFile()  # noqa: SIM115 (closed at the end of the block)
        _flush()
        os.dup2(self._kept.fileno(), 2)

    def _end(self) -> None:
        if self._kept is None:
            return
        _flush()
        os.dup2(self._stream, 2)
        os.close(self._stream)
        with self._kept as kept:
            kept.seek(0)
            if not self._failed and (text := kept.read()):
                os.write(2, text)
        self._kept = None


def _flush() -> None:
    stream: Any = sys.stderr
    if stream is not None and not stream.closed:
        stream.flush()


_panics = _Panics()
