"""Parquet files that are damaged: an error that names the row groups, and nothing of what a library prints about them.

polars panics on some damaged files. A panic is no `Exception`, and its message, which may quote what is in the file,
goes to the error stream before it can be caught.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from understudy.core.files.words import counted
from understudy.errors import DataError, UnderstudyError

_AGAIN = "copy the file again, or write it again with polars or pandas"


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
        raise damaged_parquet(file, content) from None


def damaged_parquet(file: str, content: Path | bytes) -> DataError:
    """The error of a damaged file: which row groups cannot be read, as far as pyarrow is there to find out."""
    message = f"{file}: the Parquet file is damaged or cut short"
    try:
        groups, n_groups = _damaged_groups(content)
    except ImportError:
        hint = f"{_AGAIN}; with pyarrow installed, this message would say which part of it."
        return DataError(f"{message}.", hint=hint, code="damaged-parquet")
    if not groups:
        return DataError(f"{message}.", hint=f"{_AGAIN}.", code="damaged-parquet")
    number, first, last = groups[0]
    others = f", and so {'is' if len(groups) == 2 else 'are'} {counted(len(groups) - 1, 'other row group')}"
    return DataError(
        f"{message}: row group {number} of {n_groups}, counted from 0 (rows {first:,} to {last:,}), cannot be read"
        f"{others if len(groups) > 1 else ''}.",
        hint=f"{_AGAIN}; the other row groups are whole.",
        code="damaged-row-group",
        row_groups=[number for number, _, _ in groups],
    )


def _damaged_groups(content: Path | bytes) -> tuple[list[tuple[int, int, int]], int]:
    """Row groups that cannot be read, each with its first and last row, and how many there are in the file."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    # A library that reads a damaged file may raise anything.
    try:
        file = parquet.ParquetFile(content if isinstance(content, Path) else arrow.BufferReader(content))
    except Exception:
        return [], 0
    damaged, before = [], 0
    for number in range(file.num_row_groups):
        n_rows = file.metadata.row_group(number).num_rows
        try:
            file.read_row_group(number, use_threads=False)
        except Exception:
            damaged.append((number, before + 1, before + n_rows))
        before += n_rows
    return damaged, file.num_row_groups


class _Panics:
    """Keeps the error stream of this process back while something may panic, in one thread or several."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._failed = 0, False
        self._stream, self._kept = -1, None
        self._kept: IO[bytes] | None

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
