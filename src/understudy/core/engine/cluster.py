"""The engine on a Dask cluster: its workers read and write shared storage, so rows never pass through the scheduler."""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from understudy.core.engine.engine import Item, Result, add_as_tree
from understudy.core.engine.tasks import n_cores
from understudy.core.extras import needs_extra
from understudy.errors import MissingError, UsageError

# How often a part is tried again when the worker that had it died.
MOST_DEATHS = 3
# A scheduler that does not answer within this time is not there.
CONNECT_WITHIN = "10s"


class Cluster:
    """Processes that a Dask scheduler knows."""

    shares_memory = False

    def __init__(self, client: Any) -> None:
        self._client = client

    def each(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """See `Engine.each`."""
        for future in self._futures(function, items):
            yield self._result(future)

    def total(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Result:
        """See `Engine.total`: the same tree as on one machine, added up by the workers."""
        add = functools.partial(self._client.submit, operator.add, pure=False)
        total: Result = self._result(add_as_tree(self._futures(function, items), add))
        return total

    def _futures(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Any]:
        futures: list[Any] = self._client.map(function, items, pure=False, retries=MOST_DEATHS)
        return futures

    def _result(self, future: Any) -> Any:
        from concurrent.futures import CancelledError

        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            return future.result()
        except KilledWorker:
            raise MissingError(
                f"a part of the log was lost with its worker {MOST_DEATHS} times.",
                hint="workers may lack memory: give them more, or run on one machine.",
                code="workers-died",
                settings=("engine",),
            ) from None
        except (CancelledError, CommClosedError, TimeoutError):
            raise MissingError(
                "the scheduler of the cluster is gone; nothing was written.",
                hint="start it again, or run on this machine.",
                code="scheduler-gone",
                settings=("engine",),
            ) from None


@contextmanager
def _silence() -> Iterator[None]:
    """Lost connections are reported in one sentence by us, not in pages by a library."""
    known = [
        name
        for name in logging.root.manager.loggerDict
        if name.partition(".")[0] in ("distributed", "tornado")
    ]
    before = {name: logging.getLogger(name).level for name in known}
    for name in known:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def on_cluster(where: str) -> Iterator[Cluster]:
    """A cluster: a number of workers on this machine, which end with the block, or the address of a scheduler."""
    with needs_extra("cluster", "a cluster"):
        import dask
        import distributed
    if not where.isdigit() and "://" not in where:
        raise UsageError(
            f"'{where}' is not an engine.",
            hint="give a number of workers, or a scheduler's address such as tcp://scheduler:8786.",
            code="no-such-engine",
            settings=("engine",),
        )
    if where == "0":
        where = str(n_cores())
    library: Any = distributed
    with _silence(), dask.config.set({"distributed.comm.timeouts.connect": CONNECT_WITHIN}):
        if where.isdigit():
            workers = library.LocalCluster(
                n_workers=int(where),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
            with workers, library.Client(workers) as client:
                yield Cluster(client)
            return
        try:
            client = library.Client(where, timeout=CONNECT_WITHIN)
        except (OSError, TimeoutError):
            raise MissingError(
                f"there is no scheduler at {where}.",
                hint="start one with: dask scheduler",
                code="no-scheduler",
                settings=("engine",),
            ) from None
        with client:
            yield Cluster(client)
