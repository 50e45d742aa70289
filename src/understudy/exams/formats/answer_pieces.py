"""The answers of some learners of a file, and how those of all learners are put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.events.event_table import EventTable, no_row_left
from understudy.core.events.pieces import EventPieces
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.words import counted
from understudy.core.names import natural_order
from understudy.errors import DataError
from understudy.exams.responses import NOT_ANSWERED

# The matrix has a byte per learner and item, answered or not.
_MOST_CELLS = 4_000_000_000


@dataclass(frozen=True, repr=False)
class Answers:
    """A matrix of learners by items, who and what these are, and where in the file each learner has their place."""

    correct: NDArray[np.int8]
    learners: pl.Series
    items: tuple[str, ...]
    lines: NDArray[np.int64]
    """Learners stand in this order."""
    n_rows: int
    """So many rows of the file are answers that could be read."""

    def in_file(self, path: Path) -> Answers:
        """The same, with the matrix in a file."""
        np.save(path, self.correct)
        return replace(self, correct=np.load(path, mmap_mode="r"))

    def write_to(self, matrix: NDArray[np.int8], rows: NDArray[np.int64], items: Sequence[str]) -> None:
        """Put the answers into rows of a matrix of more learners and `items`."""
        place = {name: column for column, name in enumerate(items)}
        columns = np.array([place[name] for name in self.items], dtype=np.int64)
        matrix[np.ix_(rows, columns)] = self.correct


def collect_answers(
    pieces: EventPieces, read: Callable[[EventTable, ReadOptions], Answers], folder: Callable[[], Path]
) -> tuple[EventTable, Answers]:
    """The answers that `read` finds in the events of each piece, put together as if the file had been read whole.

    `folder()` is a new folder, for one piece.
    """
    whole, parts = pieces.collect(
        lambda events, options: read(events, options).in_file(folder() / "correct.npy")
    )
    if not sum(part.n_rows for part in parts):
        raise no_row_left(whole.file)
    return whole, _put_together(parts, whole.file)


def _put_together(parts: Sequence[Answers], file: str) -> Answers:
    lines = np.concatenate([part.lines for part in parts])
    items = natural_order({name for part in parts for name in part.items})
    check_size(len(lines), len(items), file)
    order = np.argsort(lines, kind="stable")
    rows = np.empty(len(order), dtype=np.int64)
    rows[order] = np.arange(len(order))
    matrix = np.full((len(lines), len(items)), NOT_ANSWERED, dtype=np.int8)
    ends = np.cumsum([len(part.lines) for part in parts])
    for part, own in zip(parts, np.split(rows, ends[:-1]), strict=True):
        part.write_to(matrix, own, items)
    learners = pl.concat([part.learners for part in parts])[order]
    return Answers(matrix, learners, items, lines[order], sum(part.n_rows for part in parts))


def check_size(n_learners: int, n_items: int, file: str) -> None:
    """Refuse more cells than a matrix can hold."""
    if n_learners * n_items > _MOST_CELLS:
        raise DataError(
            f"{file}: {counted(n_learners, 'learner')} and {counted(n_items, 'item')} are more "
            "than a matrix of responses can hold.",
            hint="check which column names the item, or give the exam's part of the file only.",
            settings=("item",),
        )
