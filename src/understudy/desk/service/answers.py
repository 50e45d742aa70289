"""What the worker reads and writes about a request; each verb ends its job in one transaction, or changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from understudy.desk.disclosure.influences import Influences
from understudy.desk.disclosure.probing import Probes
from understudy.desk.disclosure.rounding import units_of
from understudy.desk.domain.analysis import Failure, asks_privately, code_hash, environment
from understudy.desk.domain.people import WORKER
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, Results
from understudy.desk.domain.states import State
from understudy.desk.risk.game import Price
from understudy.desk.risk.pricing import Prices, ShadowAnswers, with_private
from understudy.desk.service import Desk, data_sets, releases
from understudy.desk.service.releases import released
from understudy.desk.service.requests import find, move
from understudy.desk.store import jobs
from understudy.desk.store.jobs import Lease
from understudy.desk.store.tables import (
    MeasurementRow,
    ReleaseRow,
    RequestRow,
    RunRow,
    forget_runs,
    latest_run,
)
from understudy.errors import DataError


@dataclass(frozen=True)
class AnswerOrigin:
    """What an answer was computed from: hashes and versions, so that it can be computed again."""

    code_hash: str
    data_hash: str
    data_version: int
    environment: dict[str, str]


@dataclass(frozen=True, repr=False)
class EarlierMeasurement:
    """An earlier release on the learners of today: for the next request, so that it need not run again."""

    request: str
    data_hash: str
    probes: bytes
    shadows: bytes
    units: Mapping[str, float]
    """What stays of its own run, which was about learners who may have left: what its numbers were rounded to."""


@dataclass(frozen=True, repr=False)
class HeldAnswer:
    """An answer on the real data with all that reviewers decide by."""

    origin: AnswerOrigin
    results: Results | None
    failure: Failure | None = None
    reading: dict[str, Any] | None = None
    checks: tuple[Check, ...] = ()
    support: dict[str, int] = field(default_factory=dict)
    prices: dict[str, Any] | None = None
    basis: tuple[str, ...] = ()
    probes: bytes | None = None
    shadows: bytes | None = None
    measured: tuple[EarlierMeasurement, ...] = ()


@dataclass(frozen=True)
class RequestToAnswer:
    """What a job needs to know about its request."""

    request: str
    data_set: str
    code: str
    policy: Policy

    @property
    def private(self) -> bool:
        """Whether it asks private questions."""
        return asks_privately(self.code)


@dataclass(frozen=True, eq=False, repr=False)
class Measurement:
    """What the probes and shadows of a release gave, and on which data."""

    data_hash: str
    probes: Probes
    shadows: ShadowAnswers


@dataclass(frozen=True, repr=False)
class EarlierRelease:
    """An earlier release of the same data set."""

    request: str
    code: str
    data_hash: str
    """Of the data that it left from."""
    n_learners: int
    results: Results
    units: Mapping[str, float]
    """What each of its numbers was rounded to."""
    measured: tuple[Measurement, ...]
    """By its own run, or on other learners since, if one left."""
    together: Price
    """What everything released by then cost, with the private answers of today."""


@dataclass(frozen=True, repr=False)
class Question:
    """What an answer is judged by: read once, at the beginning."""

    policy: Policy
    trial: Results
    reading: dict[str, Any] | None
    summary: Path | None
    earlier: tuple[EarlierRelease, ...]
    private_mu: float
    """Of all private answers released so far."""


def begin(desk: Desk, lease: Lease) -> RequestToAnswer:
    """Move the request on to what is being done; a job that is taken up again has been moved already."""
    with desk.database.writing() as session:
        jobs.renew_lease(session, lease)
        row = find(session, WORKER, lease.request)
        if lease.kind == "trial" and row.state == State.SUBMITTED:
            move(session, WORKER, row, "try")
        elif lease.kind == "run" and row.state == State.APPROVED:
            move(session, WORKER, row, "run")
        return RequestToAnswer(row.name, row.data_set.name, row.code, data_sets.policy_of(row.data_set))


def trial_origin(desk: Desk, work: RequestToAnswer) -> AnswerOrigin:
    """What a trial is computed from."""
    with desk.database.reading() as session:
        row = data_sets.find(session, work.data_set)
        path, version = Path(row.synthetic), row.version
    content = path.read_bytes() if path.is_file() else b""
    data_hash = desk.settings.keyed("synthetic data", content)
    return AnswerOrigin(code_hash(work.code), data_hash, version, environment())


def unanswered(desk: Desk, work: RequestToAnswer) -> HeldAnswer:
    """A request whose runs seem to end their workers: held without results, for a reviewer to close.

    The real data is not read: it may be what cannot be read.
    """
    with desk.database.reading() as session:
        version = data_sets.find(session, work.data_set).version
    return HeldAnswer(AnswerOrigin(code_hash(work.code), "", version, environment()), None, Failure("killed"))


def question_of(desk: Desk, work: RequestToAnswer) -> Question:
    """What the answer to a request is judged by, as of now."""
    with desk.database.reading() as session:
        row = find(session, WORKER, work.request)
        tried = latest_run(session, row, trial=True)
        others = [one for one in released(session, row.data_set) if one.request_id != row.id]
        private_mu = releases.private_mu(others)
        return Question(
            data_sets.policy_of(row.data_set),
            _results(tried),
            None if tried is None else tried.reading,
            None if row.data_set.summary is None else Path(row.data_set.summary),
            tuple(_earlier(session, one, private_mu) for one in others if one.run.private is None),
            private_mu,
        )


def pass_trial(
    desk: Desk, lease: Lease, origin: AnswerOrigin, results: Results, reading: dict[str, Any] | None
) -> None:
    """The code ran on the synthetic data: people can look at the request now."""
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        jobs.finish(session, lease)
        forget_runs(session, row, trial=True)
        session.add(_run(row, True, HeldAnswer(origin, results, reading=reading)))
        move(session, WORKER, row, "pass trial")


def fail_trial(desk: Desk, lease: Lease, origin: AnswerOrigin, failure: Failure) -> None:
    """The code did not run on the synthetic data: back to its author, with the error. No real data was touched."""
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        jobs.finish(session, lease)
        forget_runs(session, row, trial=True)
        session.add(_run(row, True, HeldAnswer(origin, None, failure)))
        row.note = f"The trial on the synthetic data did not give a result: {failure}."
        move(session, WORKER, row, "fail trial")


def hold(desk: Desk, lease: Lease, held: HeldAnswer) -> None:
    """Hold an answer until a reviewer decides."""
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        jobs.finish(session, lease)
        forget_runs(session, row, trial=False)
        session.add(_run(row, False, held))
        for one in held.measured:
            _keep(session, one)
        move(session, WORKER, row, "hold")


def _earlier(session: Session, release: ReleaseRow, private_mu: float) -> EarlierRelease:
    run = release.run
    if run.results is None or run.prices is None:
        raise _gone()
    since = session.scalars(select(MeasurementRow).where(MeasurementRow.release_id == release.id))
    kept = [(row.data_hash, row.probes, row.shadows) for row in since]
    units = run.kept_units
    if run.probes is not None and run.shadows is not None:
        kept.insert(0, (run.data_hash, run.probes, run.shadows))
        trial = _results(latest_run(session, release.request, trial=True))
        units = units_of(Influences(Probes.from_bytes(run.probes)), trial)
    if units is None:
        raise _gone()
    prices = with_private(Prices.from_json(run.prices), private_mu)
    return EarlierRelease(
        release.request.name,
        release.request.code,
        run.data_hash,
        prices.own.n_learners,
        Results.from_json(run.results),
        units,
        tuple(
            Measurement(data_hash, Probes.from_bytes(probes), ShadowAnswers.from_bytes(shadows))
            for data_hash, probes, shadows in kept
        ),
        prices.together,
    )


def _gone() -> DataError:
    return DataError(
        "what was measured for an earlier release is gone.",
        hint="restore the desk's database from a backup.",
    )


def _results(run: RunRow | None) -> Results:
    return Results() if run is None or run.results is None else Results.from_json(run.results)


def _keep(session: Session, measured: EarlierMeasurement) -> None:
    release = session.scalar(select(ReleaseRow).join(RequestRow).where(RequestRow.name == measured.request))
    if release is None:
        return  # taken back in between
    row = session.scalar(select(MeasurementRow).where(MeasurementRow.release_id == release.id))
    if row is None:
        row = MeasurementRow(release_id=release.id)
        session.add(row)
    row.data_hash, row.probes, row.shadows = measured.data_hash, measured.probes, measured.shadows
    release.run.probes = release.run.shadows = None
    release.run.kept_units = dict(measured.units)


def _run(row: RequestRow, trial: bool, held: HeldAnswer) -> RunRow:
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
