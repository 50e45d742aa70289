"""A log put together from pieces, each of which holds some of its learners: its rows are in files, mapped into memory.

The learners are in the order of their first rows in the file, as if it had been read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.gathering import Array, gather
from understudy.core.names import natural_order
from understudy.logs.declared.columns import Column, Declared
from understudy.logs.interactions import IntArray, Interactions, offsets_of


@dataclass(frozen=True, repr=False)
class StoredPiece:
    """The log of some learners: what belongs to rows is in files, the rest in memory."""

    log: Interactions
    """Names, groups and columns of learners, without rows."""
    lengths: IntArray
    first_line: IntArray
    """Where the first row of each learner stands that was read; of those who have none left, any row."""
    folder: Path
    row_columns: tuple[Declared, ...]
    arrays: tuple[str, ...]

    @classmethod
    def write(cls, log: Interactions, events: EventTable, first: pl.DataFrame, folder: Path) -> StoredPiece:
        """Write the rows to a folder; `first` has a line of every learner, those without rows included."""
        arrays = {name: getattr(log, name) for name in ("action", "outcome", "item", "time")}
        arrays |= {str(place): column.cells for place, column in enumerate(log.row_columns)}
        arrays = {name: rows for name, rows in arrays.items() if rows is not None}
        for name, rows in arrays.items():
            np.save(folder / f"{name}.npy", rows)
        left = events.frame.group_by("learner").agg(pl.col("line").min())
        lines = pl.concat([left, first.join(left, on="learner", how="anti")])
        in_order = events.everyone.to_frame("learner").join(lines, "learner", "left", maintain_order="left")
        row_columns = tuple(column.declared for column in log.row_columns)
        empty = log.keep_rows(np.zeros(log.n_rows, dtype=bool), all_learners=True)
        return cls(empty, log.lengths, in_order["line"].to_numpy(), folder, row_columns, tuple(arrays))

    def rows(self, name: str) -> Array:
        """An array with an entry per row."""
        rows: Array = np.load(self.folder / f"{name}.npy")
        return rows


def assemble(pieces: Sequence[StoredPiece], folder: Path) -> Interactions:
    """The log of all learners of the pieces; its rows are written to a folder, which may be removed at once."""
    logs = [piece.log for piece in pieces]
    lengths = np.concatenate([piece.lengths for piece in pieces])
    order = np.lexsort((np.concatenate([piece.first_line for piece in pieces]), lengths == 0))
    offsets = offsets_of(lengths[order])
    # Where the rows of each learner of the pieces begin.
    begins = np.empty(len(order), dtype=np.int64)
    begins[order] = offsets[:-1]
    actions, items, groups = (
        natural_order({name for log in logs for name in getattr(log, kind)})
        for kind in ("actions", "items", "groups")
    )
    declared = [
        _common([piece.row_columns[at] for piece in pieces]) for at in range(len(pieces[0].row_columns))
    ]

    def rows_of(piece: StoredPiece, name: str) -> Array:
        """The rows of a piece, with codes that are those of the whole log."""
        rows = piece.rows(name)
        if name == "action":
            return _codes(piece.log.actions, actions)[rows]
        if name == "item":
            return _codes(piece.log.items, items)[rows]
        if name.isdigit():
            return Column(piece.row_columns[int(name)], rows).recoded(declared[int(name)]).cells
        return rows

    arrays: dict[str, Array] = {}
    for name in pieces[0].arrays:
        # Rows of one kind at a time, and of one piece: no more is in memory.
        parts = ((rows_of(piece, name), offsets_of(piece.lengths)) for piece in pieces)
        arrays[name] = gather(parts, begins, int(offsets[-1]), folder / f"{name}.npy")
    group = None
    if logs[0].group is not None:
        group = np.concatenate([_codes(log.groups, groups)[log.group] for log in logs])[order]
    of_rows = (Column(each, arrays[str(at)]) for at, each in enumerate(declared))
    of_learners = _learner_columns(logs, order)
    return Interactions(
        arrays["action"],
        arrays.get("outcome"),
        offsets,
        actions,
        item=arrays.get("item"),
        items=items,
        time=arrays.get("time"),
        group=group,
        groups=groups if group is not None else (),
        columns=tuple(
            next(of_rows if column.declared.of == "row" else of_learners) for column in logs[0].columns
        ),
        term=logs[0].term,
    )


def _learner_columns(logs: Sequence[Interactions], order: IntArray) -> Iterator[Column]:
    for of_pieces in zip(*(log.learner_columns for log in logs), strict=True):
        declared = _common([column.declared for column in of_pieces])
        cells = [column.recoded(declared).cells for column in of_pieces]
        yield Column(declared, np.concatenate(cells)[order])


def _common(declared: Sequence[Declared]) -> Declared:
    """The declaration of a column whose pieces may have different categories, where these are to be found."""
    names = {name for each in declared for name in each.values}
    if len(names) == len(declared[0].values):
        return declared[0]
    return replace(declared[0], values=natural_order(names))


def _codes(names: Sequence[str], known: Sequence[str]) -> IntArray:
    """The code of each name among those that are known."""
    position = {name: code for code, name in enumerate(known)}
    return np.array([position[name] for name in names], dtype=np.int32)
