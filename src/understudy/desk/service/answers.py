"""What the worker does with a request. Each verb ends its job in the same transaction, or changes nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from understudy.desk.domain.analysis import Failure
from understudy.desk.domain.people import WORKER
from understudy.desk.domain.results import Check, Results
from understudy.desk.domain.states import State
from understudy.desk.service.desk import Desk
from understudy.desk.service.requests import find, move
from understudy.desk.store import jobs
from understudy.desk.store.jobs import Lease
from understudy.desk.store.runs import forget_runs
from understudy.desk.store.tables import MeasurementRow, ReleaseRow, RequestRow, RunRow


@dataclass(frozen=True)
class Origin:
    """What an answer was computed from: hashes and versions, so that it can be computed again."""

    code_hash: str
    data_hash: str
    data_version: int
    environment: dict[str, str]


@dataclass(frozen=True, repr=False)
class Measured:
    """An earlier release on the learners of today: for the next request, so that it need not run again."""

    request: str
    data_hash: str
    probes: bytes
    shadows: bytes
    remains: bytes
    """What stays of its own run, which was about learners who may have left."""


@dataclass(frozen=True, repr=False)
class Held:
    """An answer on the real data with all that reviewers decide by."""

    origin: Origin
    results: Results | None
    failure: Failure | None = None
    reading: dict[str, Any] | None = None
    checks: tuple[Check, ...] = ()
    support: dict[str, int] = field(default_factory=dict)
    prices: dict[str, Any] | None = None
    basis: tuple[str, ...] = ()
    probes: bytes | None = None
    shadows: bytes | None = None
    measured: tuple[Measured, ...] = ()


@dataclass(frozen=True)
class Work:
    """What a job needs to know about its request."""

    request: str
    data_set: str
    code: str


def begin(desk: Desk, lease: Lease) -> Work:
    """Move the request on to what is being done; a job that is taken up again has been moved already."""
    with desk.database.writing() as session:
        jobs.beat(session, lease)
        row = find(session, WORKER, lease.request)
        if lease.kind == "trial" and row.state == State.SUBMITTED:
            move(session, WORKER, row, "try")
        elif lease.kind == "run" and row.state == State.APPROVED:
            move(session, WORKER, row, "run")
        return Work(row.name, row.data_set.name, row.code)


def pass_trial(
    desk: Desk, lease: Lease, origin: Origin, results: Results, reading: dict[str, Any] | None
) -> None:
    """The code ran on the synthetic data: people can look at the request now."""
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        jobs.finish(session, lease)
        forget_runs(session, row, trial=True)
        session.add(_run(row, True, Held(origin, results, reading=reading)))
        move(session, WORKER, row, "pass trial")


def fail_trial(desk: Desk, lease: Lease, origin: Origin, failure: Failure) -> None:
    """The code did not run on the synthetic data: back to its author, with the error. No real data was touched."""
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        jobs.finish(session, lease)
        forget_runs(session, row, trial=True)
        session.add(_run(row, True, Held(origin, None, failure)))
        row.note = f"The trial on the synthetic data did not give a result: {failure}."
        move(session, WORKER, row, "fail trial")


def hold(desk: Desk, lease: Lease, held: Held) -> None:
    """Keep an answer inside until somebody decides."""
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        jobs.finish(session, lease)
        forget_runs(session, row, trial=False)
        session.add(_run(row, False, held))
        for one in held.measured:
            _keep(session, one)
        move(session, WORKER, row, "hold")


def code_hash(code: str) -> str:
    """Of submitted code; public, unlike hashes of data."""
    return hashlib.sha256(code.encode()).hexdigest()


def _keep(session: Session, measured: Measured) -> None:
    release = session.scalar(select(ReleaseRow).join(RequestRow).where(RequestRow.name == measured.request))
    if release is None:
        return  # taken back in between
    row = session.scalar(select(MeasurementRow).where(MeasurementRow.release_id == release.id))
    if row is None:
        row = MeasurementRow(release_id=release.id)
        session.add(row)
    row.data_hash, row.probes, row.shadows = measured.data_hash, measured.probes, measured.shadows
    release.run.probes, release.run.shadows = measured.remains, None


def _run(row: RequestRow, trial: bool, held: Held) -> RunRow:
    return RunRow(
        request_id=row.id,
        trial=trial,
        code_hash=held.origin.code_hash,
        data_hash=held.origin.data_hash,
        data_version=held.origin.data_version,
        environment=held.origin.environment,
        results=None if held.results is None else held.results.to_json(),
        failure=None if held.failure is None else vars(held.failure),
        reading=held.reading,
        checks=[check.to_json() for check in held.checks],
        support=held.support,
        prices=held.prices,
        basis=sorted(held.basis),
        probes=held.probes,
        shadows=held.shadows,
    )
