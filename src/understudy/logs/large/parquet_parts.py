"""A log as a folder of Parquet files, one per part of its learners: on a cluster each worker writes its own.

Rows go through storage that all of them see, never through the scheduler. Parts follow from the log alone, so the files
are the same whatever engine writes them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from understudy.core.engine import progress
from understudy.core.engine.engine import ThisMachine, current_engine
from understudy.core.files.writing import new_folder, write_table
from understudy.errors import MissingError, UnderstudyError
from understudy.logs.frames import rows_of_part
from understudy.logs.interactions import Interactions
from understudy.logs.large.parts import LogPart, parts_of, ranges_of


@dataclass(frozen=True)
class _Folder:
    """Where the files go, and what is the same in all of them."""

    path: Path
    prefix: str
    n_learners: int
    kind: str

    def write(self, log: Interactions, first: int, number: int) -> None:
        """Write a part, whose learners begin with `first`: whole or not at all, since it may be tried again."""
        rows = rows_of_part(log, self.prefix, first, self.n_learners)
        write_table(rows, self.path / _name(number), kind=self.kind)


def write_parts(
    log: Interactions, out: Path, prefix: str, *, kind: str, beside: dict[Path, pl.DataFrame]
) -> None:
    """Write a new folder whole or not at all, and the tables that belong to it."""
    ranges = ranges_of(log.offsets)
    with new_folder(out) as path:
        folder = _Folder(path.absolute(), prefix, log.n_learners, kind)
        engine = current_engine()
        if engine.shares_memory or log.has_times or log.row_columns:
            # Workers are given walks alone: times and columns are in the memory of this process.
            def write(number: int) -> None:
                first, last = ranges[number]
                folder.write(log.select(np.arange(first, last)), first, number)

            written = ThisMachine().each(write, range(len(ranges)))
        else:
            written = engine.each(functools.partial(_write_there, folder), list(enumerate(parts_of(log))))
        for _ in progress.each(written, "Writing", len(ranges)):
            pass
        wanted = {_name(number) for number in range(len(ranges))}
        for file in path.iterdir():
            if file.name not in wanted:  # begun by a worker that died
                file.unlink()
        _require_all(path, wanted)
        for place, table in beside.items():
            write_table(table, place, kind=kind)


def _name(number: int) -> str:
    return f"part-{number:04}.parquet"


def _write_there(folder: _Folder, numbered: tuple[int, LogPart]) -> None:
    number, part = numbered
    try:
        folder.write(part.log(), part.first, number)
    except UnderstudyError:
        if folder.path.is_dir():
            raise
        raise _not_shared() from None


def _require_all(path: Path, wanted: set[str]) -> None:
    """Refuse a folder that lacks parts: a worker wrote them to another one of the same name."""
    if {file.name for file in path.iterdir()} != wanted:
        raise _not_shared()


def _not_shared() -> MissingError:
    return MissingError(
        "the folder of the result cannot be seen from all workers.",
        hint="write to a folder that this machine and all workers see, or to one file: then this machine writes it.",
        code="no-shared-storage",
        settings=("out",),
    )
