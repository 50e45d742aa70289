"""Work on all cores of this machine.

Threads, not processes: the kernels release the interpreter's lock, and the log is shared
instead of copied, so no learner's rows travel through pipes or temporary files.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Result = TypeVar("Result")

_ONE_FOREST = threading.Lock()


@contextmanager
def growing_trees() -> Iterator[None]:
    """Around scikit-learn's forests: one at a time, and without its remarks about few samples of a class.

    It exchanges the process's warning filters while trees grow, which threads must not do side by side.
    """
    with _ONE_FOREST, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(tasks: Sequence[Callable[[], Result]], tick: Callable[[], None] | None = None) -> list[Result]:
    """The results of all tasks, in order; `tick` is called after each. The first error ends it.

    An error or an interruption is raised at once: tasks under way are left to end by themselves, unseen.
    """
    results: list[Result] = []
    # Tasks keep all cores busy: threads of linear algebra would only wait for each other, at full speed. And with one
    # of them a product is the same, to the last bit, whatever the number of cores.
    with threadpool_limits(1, "blas"):
        pool = ThreadPoolExecutor(max_workers=n_cores())
        try:
            for future in [pool.submit(task) for task in tasks]:
                results.append(future.result())
                if tick is not None:
                    tick()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
    return results
