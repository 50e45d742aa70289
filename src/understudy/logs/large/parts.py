"""A log in parts: learners one after the other, so many that a part's rows fit into memory several times.

Sums over learners are taken part by part, on the engine that runs (`core/engine`). Where a part begins and ends depends
on the log alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np

from understudy.core.engine import progress
from understudy.core.engine.engine import Engine, current_engine, shared_scratch
from understudy.core.files.storage.shared_storage import read_array, scratch_at, write_array
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
    def write(cls, log: Interactions, folder: str) -> StoredWalks:
        """Write a log's walks to a folder, or below a URL."""
        for name in ("action", "outcome", "offsets"):
            column = getattr(log, name)
            if column is not None:
                write_array(folder, name, column)
        chapters = None if log.chapters is None else tuple(log.chapters.tolist())
        return cls(folder, log.actions, log.outcome is not None, chapters)

    def read(self, name: str, begin: int, end: int) -> IntArray:
        """A part of a column; no more of it is read."""
        return cast(IntArray, read_array(self.folder, name, begin, end))


@dataclass(frozen=True, repr=False)
class LogPart:
    """The walks of learners `first` to before `last` of a log of this process, or of one in files."""

    whole: Interactions | StoredWalks
    first: int
    last: int

    def log(self) -> Interactions:
        """The part as a log: actions and outcomes, without times and columns."""
        whole = self.whole
        read: Callable[[str, int, int], IntArray]
        if isinstance(whole, StoredWalks):
            read, has_outcomes = whole.read, whole.has_outcomes
            chapters = None if whole.chapters is None else np.array(whole.chapters)
        else:
            read, has_outcomes, chapters = _reading(whole), whole.outcome is not None, whole.chapters
        offsets = read("offsets", self.first, self.last + 1)
        begin, end = int(offsets[0]), int(offsets[-1])
        return Interactions(
            read("action", begin, end),
            read("outcome", begin, end) if has_outcomes else None,
            offsets - begin,
            whole.actions,
            chapters=chapters,
        )


def _reading(log: Interactions) -> Callable[[str, int, int], IntArray]:
    return lambda name, begin, end: np.asarray(getattr(log, name)[begin:end])


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
    engine, parts = current_engine(), parts_of(log)
    with _on_part(function, engine, len(parts)) as of_part:
        return engine.total(of_part, parts)


def list_over(log: Interactions, function: Callable[[Interactions], Result]) -> Sequence[Result]:
    """What a function gives for each part, in order."""
    if not in_parts(log):
        return [function(log)]
    engine, parts = current_engine(), parts_of(log)
    with _on_part(function, engine, len(parts)) as of_part:
        return list(engine.each(of_part, parts))


@contextmanager
def _on_part(
    function: Callable[[Interactions], Result], engine: Engine, n_parts: int
) -> Iterator[Callable[[LogPart], Result]]:
    """The function for a part of a log, with progress; workers elsewhere do not report what they have done."""
    shared = engine.shares_memory
    with progress.task("Going through the log", n_parts if shared else None) as step:
        yield functools.partial(_of_part, function, step if shared else None)


def _of_part(function: Callable[[Interactions], Result], step: progress.Task | None, part: LogPart) -> Result:
    result = function(part.log())
    if step is not None:
        step.advance()
    return result


def _stored(log: Interactions) -> StoredWalks:
    """The log in files; written once, for as long as the log is there."""
    kept = log.kept
    if "walks" not in kept:
        scratch = scratch_at(shared_scratch())
        with scratch.filling():
            kept["scratch"], kept["walks"] = scratch, StoredWalks.write(log, str(scratch.path))
    stored = kept["walks"]
    assert isinstance(stored, StoredWalks)
    return stored
