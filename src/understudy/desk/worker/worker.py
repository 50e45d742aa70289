"""The worker: takes jobs from the table, does them in the sandbox, and loses nothing when it is killed.

Whatever it does counts only when the job's lease is shown in the transaction that writes it down. A thread
renews the lease while the work goes on; when the lease is lost or the request was cancelled, the work ends at the
next step and is thrown away.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from time import monotonic
from typing import Self

from understudy.desk.domain.analysis import Failure, RunsJobs, limits_of
from understudy.desk.domain.results import Results
from understudy.desk.service import Desk, answers, private_answers, releases
from understudy.desk.service.answers import RequestToAnswer
from understudy.desk.store import jobs
from understudy.desk.store.jobs import LEASE, QUICK, RUNS, Kind, Lease, LostLeaseError
from understudy.desk.worker import answering
from understudy.errors import MissingError, UnderstudyError, safe_location
from understudy.sandbox.jobs import Limits
from understudy.sandbox.pool import Sandbox

log = logging.getLogger(__name__)

OpensSandbox = Callable[[Limits], AbstractContextManager[RunsJobs]]
Duty = Callable[[Desk], object]
# Beats in the time of a lease: some may fail without harm.
_BEATS = 6
PAUSE = 1.0
"""Seconds between looks at an empty table."""
DUTIES_EVERY = 60.0
# After an error of ours, the next try waits longer each time.
_WAIT = timedelta(seconds=5)
_LONGEST_WAIT = timedelta(minutes=5)


class _StoppedError(Exception):
    """The worker was asked to end."""


class _RunError(Exception):
    """A run ended its sandbox, which may be the request's doing."""


class Worker:
    """Does jobs one after the other, with one warm sandbox that is kept from job to job.

    Use it as a context manager, or close it: the sandbox is open until then. Several workers may run at once.
    """

    def __init__(
        self,
        desk: Desk,
        *,
        open_sandbox: OpensSandbox = Sandbox,
        lasting: timedelta = LEASE,
        duties: Sequence[Duty] = (releases.expire,),
        kinds: Sequence[Kind] = (*QUICK, *RUNS),
    ) -> None:
        self._desk = desk
        self._open_sandbox = open_sandbox
        self._lasting = lasting
        self._duties = duties
        self._kinds = kinds
        self._stop = threading.Event()
        self._opened: tuple[Limits, RunsJobs] | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the sandbox."""
        self._opened = None
        self._closing.close()

    def run_until(self, stop: threading.Event) -> None:
        """Do jobs as they come, and the regular duties, until `stop` is set; a job in hand is given back then."""
        self._stop = stop
        due = monotonic()
        try:
            while not stop.is_set():
                if monotonic() >= due:
                    self._do_duties()
                    due = monotonic() + DUTIES_EVERY
                if not self._try_next_job():
                    stop.wait(PAUSE)
        finally:
            self.close()

    def do_one(self) -> bool:
        """Do the next job, if there is one."""
        with self._desk.database.writing() as session:
            lease = jobs.take(session, self._lasting, self._kinds)
        if lease is None:
            return False
        try:
            with _LeaseKeeper(self._desk, lease, self._stop) as keeper:
                self._do(lease, keeper)
        except LostLeaseError:
            log.info("%s of request %s was taken from this worker", lease.kind, lease.request)
        except _StoppedError:
            self._give_back(lease)
        except _RunError as error:
            self._failed(lease, error.__cause__ or error)
        except Exception as error:
            # What the machine lacks, such as room or a sandbox, is no fault of the request.
            self._failed(lease, error, counted=not isinstance(error, MissingError))
        return True

    def _do(self, lease: Lease, keeper: _LeaseKeeper) -> None:
        work = answers.begin(self._desk, lease)
        if lease.kind == "release":
            (private_answers if work.private else releases).hand_out(self._desk, lease)
        elif lease.kind == "trial":
            self._try(lease, work)
        elif lease.last_try:
            answers.hold(self._desk, lease, answers.unanswered(self._desk, work))
        else:
            sandbox = self._sandbox(work)
            with _blamed_on_the_request():
                held = answering.answer(self._desk, work, sandbox, keeper.progress)
            keeper.check()
            answers.hold(self._desk, lease, held)

    def _try(self, lease: Lease, work: RequestToAnswer) -> None:
        if lease.last_try:
            origin = answers.trial_origin(self._desk, work)
            answers.fail_trial(self._desk, lease, origin, Failure("killed"))
            return
        sandbox = self._sandbox(work)
        if work.private:
            with _blamed_on_the_request():
                found = answering.private_trial(self._desk, work, sandbox)
            origin = answers.trial_origin(self._desk, work)
            if isinstance(found, Failure):
                answers.fail_trial(self._desk, lease, origin, found)
            else:
                private_answers.pass_trial(self._desk, lease, origin, *found)
            return
        with _blamed_on_the_request():
            origin, given, reading = answering.trial(self._desk, work, sandbox)
        if isinstance(given, Results):
            answers.pass_trial(self._desk, lease, origin, given, reading)
        else:
            answers.fail_trial(self._desk, lease, origin, given)

    def _sandbox(self, work: RequestToAnswer) -> RunsJobs:
        """The warm sandbox with the limits of the request's policy; one at a time, since each holds memory."""
        limits = limits_of(work.policy)
        if self._opened is None or self._opened[0] != limits:
            self.close()
            self._opened = (limits, self._closing.enter_context(self._open_sandbox(limits)))
        return self._opened[1]

    def _failed(self, lease: Lease, error: BaseException, *, counted: bool = True) -> None:
        log.error("%s while doing %s of request %s", safe_location(error), lease.kind, lease.request)
        self._give_back(lease, after=min(_WAIT * lease.attempts, _LONGEST_WAIT), counted=counted)

    def _give_back(self, lease: Lease, after: timedelta = timedelta(), *, counted: bool = False) -> None:
        try:
            with self._desk.database.writing() as session:
                jobs.give_back(session, lease, after=after, counted=counted)
        except UnderstudyError as error:
            # The lease ends by itself.
            log.warning("%s while giving back a job", safe_location(error))

    def _try_next_job(self) -> bool:
        try:
            return self.do_one()
        except Exception as error:
            # The database is away or its disk is full: the jobs wait.
            log.error("%s while taking a job", safe_location(error))
            return False

    def _do_duties(self) -> None:
        for duty in self._duties:
            try:
                duty(self._desk)
            except Exception as error:
                log.error("%s in a regular duty", safe_location(error))


def work(
    desk: Desk,
    *,
    duties: Sequence[Duty] = (releases.expire,),
    kinds: Sequence[Kind] = (*QUICK, *RUNS),
) -> None:
    """A worker as a process of its own, until it is asked to end (SIGTERM, or Ctrl-C)."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Worker(desk, duties=duties, kinds=kinds).run_until(stop)


@contextmanager
def _blamed_on_the_request() -> Iterator[None]:
    try:
        yield
    except MissingError as error:
        raise _RunError from error


class _LeaseKeeper:
    """Renews a lease from a thread of its own, and stops the work when it is in vain."""

    def __init__(self, desk: Desk, lease: Lease, stop: threading.Event) -> None:
        self._desk, self._lease, self._stop = desk, lease, stop
        self._ended, self._lost = threading.Event(), threading.Event()
        self._at = ("", 0, 0)
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def progress(self, stage: str, done: int, total: int) -> None:
        """How far the work is; raises when it is in vain."""
        self._at = (stage, done, total)
        self.check()

    def check(self) -> None:
        """Raise if the job is not this worker's any more, or the worker has to end."""
        if self._lost.is_set():
            raise LostLeaseError("this job is not this worker's any more.", hint="nothing to do.")
        if self._stop.is_set():
            raise _StoppedError

    def _renew(self) -> None:
        while not self._ended.wait(self._lease.lasting.total_seconds() / _BEATS):
            stage, done, total = self._at
            try:
                with self._desk.database.writing() as session:
                    jobs.renew_lease(session, self._lease, done=done, total=total, stage=stage)
            except LostLeaseError:
                self._lost.set()
                return
            except Exception as error:
                # Another beat may succeed; if none does, whoever takes the job next has the lease.
                log.warning("%s in a heartbeat", safe_location(error))
