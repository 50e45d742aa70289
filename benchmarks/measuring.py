"""Processor time of functions and of commands: what else runs adds little to it, and the best of a few runs least."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Work = Callable[[], object]


@dataclass(frozen=True)
class Spent:
    """What a command took: processor seconds of all its threads, and its peak of memory."""

    seconds: float
    gigabytes: float


def seconds_of(work: Work) -> float:
    """Processor seconds of one run."""
    began = time.process_time()
    work()
    return time.process_time() - began


def best_seconds(work: Work, repeats: int = 3) -> float:
    """Processor seconds of the fastest of a few runs."""
    return min(seconds_of(work) for _ in range(repeats))


def in_turns(*measures: Callable[[], float], rounds: int) -> list[list[float]]:
    """Seconds by each measure in each round, after a run of each that is not counted.

    Measures take turns, so that what changes on the machine in the meantime changes for all of them.
    """
    for measure in measures:
        measure()
    spent = [[measure() for measure in measures] for _ in range(rounds)]
    return [list(seconds) for seconds in zip(*spent, strict=True)]


def unit_seconds() -> float:
    """The unit of all figures."""
    numbers = np.random.default_rng(1).random(5_000_000)
    return best_seconds(lambda: np.sort(numbers, kind="stable"), 5)


def run_command(*arguments: object, new: Sequence[Path] = (), repeats: int = 3) -> Spent:
    """The best of a few runs of a command of ours, the first of which may compile; `new` are files that it makes."""
    best = Spent(float("inf"), float("inf"))
    for _ in range(repeats):
        for path in new:
            path.unlink(missing_ok=True)
        command = [sys.executable, "-m", "understudy", *map(str, arguments)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stderr is not None
        message = process.stderr.read().decode()
        process.stderr.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{message}")
        best = Spent(
            min(best.seconds, used.ru_utime + used.ru_stime), min(best.gigabytes, used.ru_maxrss / 1e6)
        )
    return best
