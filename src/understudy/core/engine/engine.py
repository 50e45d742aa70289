"""Where the parts of a large computation run: on the cores of this machine, or on a Dask cluster.

A log is divided into parts by learners; what is asked of it is a function of one part, and results are added up. Parts
and the order of additions follow from the log alone, so every engine gives the same numbers.

The engine is a context variable, like progress, so that no function takes an engine parameter:

    with running_on("tcp://scheduler:8786"):
        understudy.synthesize(log, "markov")
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from understudy.core.engine.tasks import n_cores
from understudy.core.files.storage.shared_storage import is_url

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs a function on many items."""

    shares_memory: bool
    """Whether items may hold arrays of this process; else they have to name files that every worker sees."""

    def each(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """The results in the order of the items."""

    def total(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Result:
        """The sum of the results, added up as a tree whose shape depends on the number of items alone."""


class ThisMachine:
    """Threads on all cores: kernels release the interpreter's lock, and arrays are shared instead of copied."""

    shares_memory = True

    def each(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """See `Engine.each`; no more results wait to be fetched than there are cores."""
        pool = ThreadPoolExecutor(max_workers=n_cores())
        waiting: list[Future[Result]] = []
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > n_cores():
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()

    def total(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Result:
        """See `Engine.total`."""
        return add_as_tree(self.each(function, items), operator.add)


def add_as_tree(results: Iterable[Result], add: Callable[[Result, Result], Result]) -> Result:
    """The sum of at least one result, added up as a tree whose shape depends on their number alone."""
    # Sums of 1, 2, 4 ... results, as in a binary number: only as many are kept as it has digits.
    kept: list[tuple[int, Result]] = []
    for result in results:
        size, total = 1, result
        while kept and kept[-1][0] == size:
            total = add(kept.pop()[1], total)
            size *= 2
        kept.append((size, total))
    return functools.reduce(lambda later, earlier: add(earlier, later), [total for _, total in kept[::-1]])


@dataclass(frozen=True)
class EngineOptions:
    """Where large computations run."""

    engine: Annotated[
        str | None,
        "Where parts of a large log are counted: a number of worker processes on this machine, or a Dask scheduler "
        "(tcp://scheduler:8786; needs the extra cluster). By default threads on all cores.",
    ] = None
    scratch: Annotated[
        str | None,
        "Folder for temporary files of a large log, which are removed in the end; on a cluster one that all workers "
        "see, or a URL such as s3://bucket/folder (extras s3, gcs). By default the system's.",
    ] = None


_engine: ContextVar[Engine] = ContextVar("engine", default=ThisMachine())  # noqa: B039 (stateless)
_scratch: ContextVar[str | None] = ContextVar("scratch", default=None)


def current_engine() -> Engine:
    """The engine of the running computation."""
    return _engine.get()


def scratch_parent() -> str | None:
    """Where temporary files of this machine go, if that was said: storage at a URL is for workers."""
    place = _scratch.get()
    return None if is_url(place) else place


def shared_scratch() -> str | None:
    """Where temporary files go that workers read, if that was said: a folder or a URL."""
    return _scratch.get()


@contextmanager
def running_on(engine: str | int | Engine | None = None, scratch: str | None = None) -> Iterator[Engine]:
    """Run everything in the block on this engine: a number of workers, the address of a scheduler, or an engine."""
    with ExitStack() as stack:
        found: Any = engine
        if engine is None:
            found = ThisMachine()
        elif isinstance(engine, str | int):
            from understudy.core.engine.cluster import on_cluster

            found = stack.enter_context(on_cluster(str(engine)))
        tokens = _engine.set(found), _scratch.set(scratch)
        try:
            yield found
        finally:
            _engine.reset(tokens[0])
            _scratch.reset(tokens[1])
