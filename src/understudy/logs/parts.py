"""A log in parts: learners one after the other, so many that a part's rows fit into memory several times.

Sums over learners are taken part by part, on the engine that runs (`core/engine`). Where a part begins and ends depends
on the log alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.core.engine.engine import current_engine, scratch_parent
from understudy.core.files.scratch import Scratch
from understudy.logs.interactions import IntArray, Interactions

Result = TypeVar("Result")

# Rows of a part, unless a single learner has more.
PART_ROWS = 1 << 20


@dataclass(frozen=True)
class StoredWalks:
    """Actions and outcomes of a log in files, which every process of a cluster sees; names of actions come along."""

    folder: str
    actions: tuple[str, ...]
    has_outcomes: bool
    chapters: tuple[int, ...] | None

    @classmethod
    def write(cls, log: Interactions, folder: Path) -> StoredWalks:
        """Write a log's walks to a folder."""
        for name in ("action", "outcome", "offsets"):
            column = getattr(log, name)
            if column is not None:
                np.save(folder / f"{name}.npy", column)
        chapters = None if log.chapters is None else tuple(log.chapters.tolist())
        return cls(str(folder), log.actions, log.outcome is not None, chapters)

    def column(self, name: str) -> NDArray[np.generic]:
        """A column, of which only what is used is read."""
        found: NDArray[np.generic] = np.load(Path(self.folder) / f"{name}.npy", mmap_mode="r")
        return found

    def open(self) -> Interactions:
        """The log."""
        return Interactions(
            self.column("action"),  # type: ignore[arg-type]
            self.column("outcome") if self.has_outcomes else None,  # type: ignore[arg-type]
            self.column("offsets"),  # type: ignore[arg-type]
            self.actions,
            chapters=None if self.chapters is None else np.array(self.chapters),
        )


@dataclass(frozen=True, repr=False)
class LogPart:
    """The walks of learners `first` to before `last` of a log of this process, or of one in files."""

    whole: Interactions | StoredWalks
    first: int
    last: int

    def log(self) -> Interactions:
        """The part as a log: actions and outcomes, without times and columns."""
        whole = self.whole
        if isinstance(whole, StoredWalks):
            action, offsets = whole.column("action"), whole.column("offsets")
            outcome = whole.column("outcome") if whole.has_outcomes else None
            chapters = None if whole.chapters is None else np.array(whole.chapters)
        else:
            action, outcome, offsets, chapters = whole.action, whole.outcome, whole.offsets, whole.chapters
        begin, end = int(offsets[self.first]), int(offsets[self.last])
        return Interactions(
            np.asarray(action[begin:end]),
            None if outcome is None else np.asarray(outcome[begin:end]),
            np.asarray(offsets[self.first : self.last + 1]) - begin,
            whole.actions,
            chapters=chapters,
        )


def ranges_of(offsets: IntArray, most_rows: int | None = None) -> list[tuple[int, int]]:
    """First learners and ends of parts of at most so many rows, or of one learner."""
    most_rows = most_rows or PART_ROWS
    n_learners = len(offsets) - 1
    cuts = [0]
    while cuts[-1] < n_learners:
        first = cuts[-1]
        last = int(np.searchsorted(offsets, offsets[first] + most_rows, side="right")) - 1
        cuts.append(min(max(last, first + 1), n_learners))
    return list(pairwise(cuts))


def in_parts(log: Interactions) -> bool:
    """Whether a log is so large that it has several parts."""
    return log.n_rows > PART_ROWS and log.n_learners > 1


def parts_of(log: Interactions) -> list[LogPart]:
    """The parts of a log, as the engine that runs can take them."""
    whole: Interactions | StoredWalks = log
    if not current_engine().shares_memory:
        whole = _stored(log)
    return [LogPart(whole, first, last) for first, last in ranges_of(log.offsets)]


def sum_over(log: Interactions, function: Callable[[Interactions], Result]) -> Result:
    """The sum of a statistic over the parts of a log; a small log is one part."""
    if not in_parts(log):
        return function(log)
    return current_engine().total(_on_part(function), parts_of(log))


def list_over(log: Interactions, function: Callable[[Interactions], Result]) -> Sequence[Result]:
    """What a function gives for each part, in order."""
    if not in_parts(log):
        return [function(log)]
    return list(current_engine().each(_on_part(function), parts_of(log)))


def _on_part(function: Callable[[Interactions], Result]) -> Callable[[LogPart], Result]:
    return functools.partial(_of_part, function)


def _of_part(function: Callable[[Interactions], Result], part: LogPart) -> Result:
    return function(part.log())


def _stored(log: Interactions) -> StoredWalks:
    """The log in files; written once, for as long as the log is there."""
    kept = log.kept
    if "walks" not in kept:
        scratch = Scratch(scratch_parent())
        with scratch.filling():
            kept["scratch"], kept["walks"] = scratch, StoredWalks.write(log, scratch.path)
    stored = kept["walks"]
    assert isinstance(stored, StoredWalks)
    return stored
