"""The record of a file, put together from the key presses of some learners at a time.

Learners are in the order of their first rows in the file, and so are keys. Weeks and the clock's resolution are about
the whole file; no mechanism takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.events.gathering import gather
from understudy.core.files.words import counted
from understudy.keystrokes.formats.chain import ENOUGH_STEPS, MINUTE, Presses
from understudy.keystrokes.keystrokes import NANOSECONDS, UNKNOWN, Keystrokes

WEEK = 7 * 24 * 60 * MINUTE
_LAST_WEEK = np.iinfo(np.int32).max

Array = NDArray[Any]
Ints = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class _Files(Mapping[str, Array]):
    """Arrays in files of a folder, in memory only while they are used."""

    folder: Path
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise KeyError(name)
        rows: Array = np.load(self.folder / f"{name}.npy")
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, repr=False)
class Piece:
    """The key presses of some learners; the names of learners and keys, and the lines on which these first stand."""

    rows: Mapping[str, Array]
    """Entries per press: key, time, follows, session, and if the file has them week and hold."""
    lengths: Ints
    learners: pl.Series
    learner_lines: Ints
    keys: tuple[str, ...]
    key_lines: Ints
    apart: bool
    clock_step: tuple[int, int]

    @classmethod
    def of(
        cls,
        presses: Presses,
        learners: pl.Series,
        learner_lines: Ints,
        keys: tuple[str, ...],
        key_lines: Ints,
    ) -> Piece:
        """Of linked presses; learners and keys are those of their codes."""
        events = presses.events
        rows: dict[str, Array | None] = {
            "key": events.key,
            "time": events.time,
            "follows": presses.follows,
            "session": presses.session,
            "week": events.week,
            "hold": None if events.hold is None or (events.hold < 0).all() else events.hold,
        }
        return cls(
            {name: column for name, column in rows.items() if column is not None},
            presses.lengths,
            learners.gather(presses.learners),
            learner_lines[presses.learners],
            keys,
            key_lines,
            presses.apart,
            presses.clock_step(),
        )

    def in_files(self, folder: Path) -> Piece:
        """The same, with its rows in files of a folder."""
        for name, rows in self.rows.items():
            np.save(folder / f"{name}.npy", rows)
        return replace(self, rows=_Files(folder, tuple(self.rows)))


def put_together(
    pieces: Sequence[Piece], notes: list[str], folder: Path | None = None
) -> tuple[Keystrokes, pl.Series, float]:
    """The record, the names of its learners, and the finest step of its clock in milliseconds.

    The rows of several pieces are put into files of the folder, which may be removed at once.
    """
    lengths = np.concatenate([piece.lengths for piece in pieces])
    order = np.argsort(np.concatenate([piece.learner_lines for piece in pieces]), kind="stable")
    offsets = np.concatenate([[0], np.cumsum(lengths[order])])
    keys = _in_order(pieces)
    place = {key: code for code, key in enumerate(keys)}
    weeks = _Weeks.of(pieces, notes)

    def rows_of(piece: Piece, name: str) -> Array:
        """The rows of a piece as they are in the record."""
        if name == "key":
            return np.array([place[key] for key in piece.keys], dtype=np.int32)[piece.rows["key"]]
        if name == "week":
            return weeks.in_piece(piece)
        if name == "hold" and name not in piece.rows:
            return np.full(len(piece.rows["time"]), UNKNOWN, dtype=np.int64)
        return piece.rows[name]

    names = ["key", "time", "follows", "session", "week"]
    if any("hold" in piece.rows for piece in pieces):
        names.append("hold")
    if folder is None:
        (piece,) = pieces
        arrays = {name: rows_of(piece, name) for name in names}
    else:
        begins = np.empty(len(order), dtype=np.int64)
        begins[order] = offsets[:-1]
        arrays = {}
        for name in names:
            # Rows of one kind at a time, and of one piece: no more is in memory.
            parts = (
                (rows_of(piece, name), np.concatenate([[0], np.cumsum(piece.lengths)])) for piece in pieces
            )
            arrays[name] = gather(parts, begins, int(offsets[-1]), folder / f"{name}.npy")
    record = Keystrokes(
        arrays["key"],
        arrays["time"],
        arrays["follows"],
        offsets,
        keys,
        arrays["session"],
        arrays["week"],
        arrays.get("hold"),
    )
    learners = pl.concat([piece.learners for piece in pieces]).gather(order)
    return record, learners, _resolution(pieces, record)


def _in_order(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """All keys, in the order of the file."""
    first: dict[str, int] = {}
    for piece in pieces:
        for key, line in zip(piece.keys, piece.key_lines.tolist(), strict=True):
            first[key] = min(line, first.get(key, line))
    return tuple(sorted(first, key=lambda key: first[key]))


@dataclass(frozen=True)
class _Weeks:
    """How weeks are numbered: from the earliest time or the least number of the file, or not at all."""

    earliest: int | None = None
    least: int | None = None

    @classmethod
    def of(cls, pieces: Sequence[Piece], notes: list[str]) -> _Weeks:
        """Find it out from all pieces, with a note."""
        if "week" in pieces[0].rows:
            n_without, least = 0, _LAST_WEEK
            for piece in pieces:
                week = piece.rows["week"]
                n_without += int((week < 0).sum())
                least = min(least, int(week.min(where=week >= 0, initial=_LAST_WEEK)))
            if n_without:
                notes.append(f"{counted(n_without, 'key')} without a week.")
            return cls(least=least)
        if any(piece.apart for piece in pieces):
            notes.append("The file has no weeks.")
            return cls()
        notes.append("Weeks are periods of seven days from the earliest key of the whole file.")
        return cls(earliest=min(int(piece.rows["time"].min()) for piece in pieces))

    def in_piece(self, piece: Piece) -> NDArray[np.int32]:
        """The week of each press, from 0 on."""
        if self.least is not None:
            week = piece.rows["week"]
            return np.where(week >= 0, week - self.least, UNKNOWN).astype(np.int32)
        if self.earliest is None:
            return np.full(len(piece.rows["time"]), UNKNOWN, dtype=np.int32)
        return ((piece.rows["time"] - self.earliest) // WEEK).astype(np.int32)


def _resolution(pieces: Sequence[Piece], record: Keystrokes) -> float:
    found = int(np.gcd.reduce([piece.clock_step[0] for piece in pieces]))
    n_latencies = sum(piece.clock_step[1] for piece in pieces)
    if not n_latencies:
        found = abs(int(record.time[0]))
    if n_latencies < ENOUGH_STEPS:
        found = next(step for step in (10**9, 10**6, 10**3, 1) if found % step == 0)
    return found / NANOSECONDS
