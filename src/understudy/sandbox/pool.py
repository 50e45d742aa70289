"""The sandbox as callers use it: a few warm processes, any number of jobs."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Self

from understudy.errors import MissingError, UsageError
from understudy.sandbox import battery, expectations
from understudy.sandbox.availability import require_sandbox
from understudy.sandbox.jobs import Job, Limits, Outcome
from understudy.sandbox.process import GoneError, Worker

_CUT_SHORT = ("time", "memory", "output", "killed")


class Sandbox:
    """Runs code that others wrote; every run begins from the same clean state.

    Use it as a context manager. Starting takes some seconds (the libraries are imported once per worker);
    after that a run costs a fork. `run` may be called from several threads. It does not open on a machine where
    the battery found a way out; where the battery was not run, it tries the most important attempts first.
    """

    def __init__(self, limits: Limits | None = None, *, workers: int | None = None) -> None:
        self._limits = limits or Limits()
        self.n_workers = workers or min(2, os.cpu_count() or 1)
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._workers: list[Worker] = []
        self._lock = threading.Lock()
        self._found: list[str] | None = None

    def __enter__(self) -> Self:
        require_sandbox()
        self._refuse_if_it_does_not_hold()
        try:
            for _ in range(self.n_workers):
                self._workers.append(Worker(self._limits))
            for worker in self._workers:
                worker.wait_until_warm()
        except BaseException:
            self.close()
            raise
        for worker in self._workers:
            self._idle.put(worker)
        try:
            self._try_the_core()
        except BaseException:
            self.close()
            raise
        return self

    def _refuse_if_it_does_not_hold(self) -> None:
        self._found = battery.got_through()
        battery.refuse(self._found or [])

    def _try_the_core(self) -> None:
        if self._found is not None:
            return
        attempts = expectations.core()
        outcomes = self.run_many(
            [Job(expectations.CODE, attempt.entry, attempt.arguments) for attempt in attempts]
        )
        tried = [
            expectations.Probe(attempt.name, attempt.expected, expectations.found(outcome))
            for attempt, outcome in zip(attempts, outcomes, strict=True)
        ]
        if 0 in self.outside_users():
            tried.append(expectations.Probe("be root on the machine", expectations.DENIED, "runs as root"))
        through = [probe for probe in tried if not probe.holds]
        # A way out is kept. An attempt that took too long, or was ended, is none, and counts this once.
        if kept := [probe for probe in through if probe.found not in _CUT_SHORT]:
            with suppress(OSError):
                battery.remember(kept)
        battery.refuse([probe.name for probe in through])

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all warm processes."""
        with self._lock:
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.stop()

    def run(self, job: Job) -> Outcome:
        """Run one job and wait for its outcome."""
        if not self._workers:
            raise UsageError("the sandbox is not open.", hint="use it in a with statement.")
        worker = self._idle.get()
        try:
            if worker.stopped:
                worker = self._replaced(worker)
            try:
                return worker.run(job)
            except GoneError:
                worker = self._replaced(worker)
                return worker.run(job)
        except GoneError as error:
            raise MissingError(
                "the sandbox ended by itself, twice.",
                hint="the machine may be out of memory; 'understudy sandbox check' tries it again.",
            ) from error
        except BaseException:
            # Interrupted in the middle: what this worker is doing is not known any more.
            worker.stop()
            raise
        finally:
            self._idle.put(worker)

    def run_many(
        self, jobs: Sequence[Job], progress: Callable[[int, int], None] | None = None
    ) -> list[Outcome]:
        """Run jobs side by side; outcomes in the jobs' order. `progress` hears how many of how many are done."""
        done = 0

        def one(job: Job) -> Outcome:
            nonlocal done
            outcome = self.run(job)
            with self._lock:
                done += 1
                if progress is not None:
                    progress(done, len(jobs))
            return outcome

        with ThreadPoolExecutor(self.n_workers) as pool:
            futures = [pool.submit(one, job) for job in jobs]
            try:
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    def outside_users(self) -> list[int]:
        """Who the warm processes are on this machine, outside of their namespaces."""
        return [user for worker in self._workers for user in worker.outside_users()]

    def _replaced(self, worker: Worker) -> Worker:
        worker.stop()
        fresh = Worker(self._limits)
        with self._lock:
            closed = worker not in self._workers
            self._workers = [fresh if other is worker else other for other in self._workers]
        if closed:
            fresh.stop()
            raise UsageError("the sandbox was closed during a run.", hint="close it after the last run.")
        fresh.wait_until_warm()
        return fresh
