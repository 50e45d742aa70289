"""A scheduler and workers in processes of their own, on loopback; and a generator that kills one of them."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import distributed

from understudy.logs.generators.generator import Generator
from understudy.logs.large.parts import sum_over

ROOT = Path(__file__).parents[3]


@contextmanager
def processes(folder: Path, n_workers: int = 2):
    """The scheduler's address, its process and the workers'."""
    known = folder / "scheduler.json"
    # Workers find the tests' functions as this process does.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    started = []

    def start(module, *arguments):
        log = (folder / f"{len(started)}.log").open("wb")
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder))
        return started[-1]

    try:
        scheduler = start(
            *("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *("--scheduler-file", str(known)),
        )
        _wait(known.exists, scheduler)
        workers = [
            start(
                *("dask_worker", "--scheduler-file", str(known), "--host", "127.0.0.1", "--nworkers", "1"),
                *("--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(folder)),
            )
            for _ in range(n_workers)
        ]
        address = json.loads(known.read_text())["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(n_workers, timeout=60)
        yield address, scheduler, workers
    finally:
        for process in started:
            process.kill()
            process.wait()


def _wait(ready, process, seconds=60):
    end = time.monotonic() + seconds
    while not ready():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)


class KillsAProcess(Generator):
    """Counts rows in parts; the first part that is counted kills the process whose id is in KILLED."""

    name = "kills-a-process"
    needs_outcomes = False

    def _fit(self, log, rng, noise):
        self.n_rows_ = sum_over(log, partial(_rows_after_a_death, int(os.environ["KILLED"])))
        assert self.n_rows_ == log.n_rows
        self.log_ = log

    def _sample(self, n_learners, rng):
        return self.log_


def _rows_after_a_death(process, part):
    # A process that is gone is not killed again.
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    time.sleep(0.5)
    return part.n_rows
