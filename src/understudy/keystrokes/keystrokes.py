"""Keystrokes: who pressed which key when.

Learners are positions, not names, as in `Interactions`. Keys are characters (`a`, `{`) or the
names of keys that make none (`Backspace`, `Shift`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DataError

IntArray = NDArray[np.integer[Any]]

NANOSECONDS = 1_000_000  # in a millisecond, the unit in which people speak about typing
ROWS_OF_A_PART = 1 << 22
UNKNOWN = -1  # a hold time, a week or a label that the file does not have


@dataclass(frozen=True, eq=False, repr=False)
class Keystrokes:
    """Key presses, one learner after the other, each learner's in order of time.

    Row r is the press of `keys[key[r]]` at `time[r]` nanoseconds; the rows of learner i are
    `offsets[i]:offsets[i + 1]`. `follows[r]` says that row r - 1 is the same learner's key just
    before it: not so at the start of a session, after a paste, or where rows were left out.
    `session` numbers a learner's sittings from 0, `week` the weeks of the course from 0 (or -1),
    `hold` is how long the key was down in nanoseconds (or -1).
    """

    key: IntArray
    time: NDArray[np.int64]
    follows: NDArray[np.bool_]
    offsets: IntArray
    keys: tuple[str, ...]
    session: IntArray
    week: IntArray
    hold: NDArray[np.int64] | None = None
    simulated: bool = False

    def __post_init__(self) -> None:
        n_rows = len(self.key)
        for name in ("time", "follows", "session", "week", "hold"):
            column = getattr(self, name)
            if column is not None and len(column) != n_rows:
                raise DataError(f"keystrokes need {n_rows} entries of '{name}'; got {len(column)}.")
        if self.offsets[0] != 0 or self.offsets[-1] != n_rows or (self.lengths < 0).any():
            raise DataError("the offsets of keystrokes do not divide their rows among learners.")
        if n_rows and not (self.key.min() >= 0 and self.key.max() < len(self.keys)):
            raise DataError("a key code is outside the list of keys.")
        first = self.offsets[:-1][self.lengths > 0]
        if self.follows[first].any():
            raise DataError("a learner's first key follows another learner's.")
        if (self.follows[1:] & (self.time[1:] < self.time[:-1])).any():
            raise DataError("a key follows one that was pressed later.")
        for name in ("key", "time", "follows", "offsets", "session", "week", "hold"):
            column = getattr(self, name)
            if column is not None:
                frozen = column.view()
                frozen.setflags(write=False)
                object.__setattr__(self, name, frozen)

    def __repr__(self) -> str:
        kind = "simulated " if self.simulated else ""
        return f"<{kind}Keystrokes: {self.n_rows} keys, {self.n_learners} learners>"

    @property
    def n_rows(self) -> int:
        """Number of key presses."""
        return len(self.key)

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Number of key presses of each learner."""
        return np.diff(self.offsets)

    @property
    def learner(self) -> IntArray:
        """Position of the learner of each row."""
        return np.repeat(np.arange(self.n_learners, dtype=np.int32), self.lengths)

    @property
    def latencies(self) -> NDArray[np.int64]:
        """Nanoseconds since the row before; a latency of typing only where `follows` says so."""
        return np.diff(self.time, prepend=self.time[:1])

    def parts(self) -> Iterator[Keystrokes]:
        """Some learners after the other, so that what is computed row by row fits into memory."""
        cuts = np.searchsorted(self.offsets, np.arange(0, self.n_rows, ROWS_OF_A_PART)).tolist()
        cuts = [0, *sorted({*cuts} - {0, self.n_learners}), self.n_learners]
        for begin, end in itertools.pairwise(cuts):
            first, last = self.offsets[begin], self.offsets[end]
            yield replace(
                self,
                key=self.key[first:last],
                time=self.time[first:last],
                follows=self.follows[first:last],
                offsets=self.offsets[begin : end + 1] - first,
                session=self.session[first:last],
                week=self.week[first:last],
                hold=None if self.hold is None else self.hold[first:last],
            )

    def rows(self, chosen: NDArray[np.bool_]) -> Keystrokes:
        """The chosen rows of all learners; a key whose predecessor was not chosen follows none."""
        before = np.concatenate([[False], chosen[:-1]]) if len(chosen) else chosen
        counts = np.bincount(self.learner[chosen], minlength=self.n_learners)
        return replace(
            self,
            key=self.key[chosen],
            time=self.time[chosen],
            follows=(self.follows & before)[chosen],
            offsets=np.concatenate([[0], np.cumsum(counts)]),
            session=self.session[chosen],
            week=self.week[chosen],
            hold=None if self.hold is None else self.hold[chosen],
        )

    def learners(self, chosen: IntArray) -> Keystrokes:
        """The learners at the chosen positions, in that order."""
        lengths = self.lengths[chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.offsets[:-1][chosen] - starts[:-1], lengths) + np.arange(starts[-1])
        return replace(
            self,
            key=self.key[rows],
            time=self.time[rows],
            follows=self.follows[rows],
            offsets=starts,
            session=self.session[rows],
            week=self.week[rows],
            hold=None if self.hold is None else self.hold[rows],
        )
