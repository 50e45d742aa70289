"""Work on all cores of this machine.

Threads, not processes: the kernels release the interpreter's lock, and the log is shared
instead of copied, so no learner's rows travel through pipes or temporary files.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

# scikit-learn exchanges the process's warning filters while trees grow; threads must not do so side by side.
ONE_FOREST = threading.Lock()


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(tasks: Sequence[Callable[[], Result]], tick: Callable[[], None] | None = None) -> list[Result]:
    """The results of all tasks, in order; `tick` is called after each. The first error ends it."""
    results: list[Result] = []
    with ThreadPoolExecutor(max_workers=n_cores()) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            for future in futures:
                results.append(future.result())
                if tick is not None:
                    tick()
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return results
