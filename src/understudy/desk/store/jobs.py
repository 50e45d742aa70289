"""The table of work: leases and heartbeats, so that a worker killed at any point loses nothing.

A job is taken by writing a lease with a random token and an end. Who finishes it shows the token in the same
transaction as the result: a worker that was thought dead and comes back finds its token gone and changes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from understudy.desk.store.tables import JobRow, RequestRow, now
from understudy.errors import UnderstudyError

Kind = Literal["trial", "run", "release"]
# A trial or a release must never wait behind a run on the real data: how long that takes depends on the data, and
# whoever submitted the trial would see it.
QUICK: tuple[Kind, ...] = ("trial", "release")
RUNS: tuple[Kind, ...] = ("run",)
LEASE = timedelta(seconds=30)
MOST_ATTEMPTS = 5


class LostLeaseError(UnderstudyError):
    """Another worker has the job by now, or it was cancelled: whatever was done for it is thrown away."""


@dataclass(frozen=True)
class Lease:
    """A job that this worker has."""

    job_id: int
    token: str
    kind: Kind
    request: str
    attempts: int
    lasting: timedelta = LEASE
    """From one heartbeat on."""

    @property
    def last_try(self) -> bool:
        """Whether it has been tried too often: it seems to end its workers."""
        return self.attempts > MOST_ATTEMPTS


def add(session: Session, kind: Kind, request: RequestRow) -> None:
    """Put a job on the table, in the transaction that makes it necessary."""
    session.add(JobRow(kind=kind, request_id=request.id))


def take(
    session: Session, lasting: timedelta = LEASE, kinds: Sequence[Kind] = (*QUICK, *RUNS)
) -> Lease | None:
    """The oldest job of these kinds that no worker has, or whose worker went silent."""
    moment = now()
    row = session.scalar(
        select(JobRow)
        .where(
            JobRow.ended_at.is_(None),
            JobRow.kind.in_(kinds),
            or_(JobRow.lease.is_(None), JobRow.leased_until < moment),
        )
        .order_by(JobRow.attempts, JobRow.id)
        .limit(1)
    )
    if row is None:
        return None
    row.lease, row.leased_until = secrets.token_hex(16), moment + lasting
    row.attempts += 1
    row.done = row.total = 0
    session.flush()
    return Lease(row.id, row.lease, row.kind, row.request.name, row.attempts, lasting)  # type: ignore[arg-type]


def renew_lease(
    session: Session,
    lease: Lease,
    *,
    done: int = 0,
    total: int = 0,
    stage: str = "",
) -> None:
    """Renew the lease, and note how far the work is; raises if the job is not this worker's any more."""
    changed = session.execute(
        update(JobRow)
        .where(JobRow.id == lease.job_id, JobRow.lease == lease.token, JobRow.ended_at.is_(None))
        .values(leased_until=now() + lease.lasting, done=done, total=total, stage=stage)
        .execution_options(synchronize_session=False)
    )
    if changed.rowcount != 1:  # type: ignore[attr-defined]
        raise LostLeaseError("this job is not this worker's any more.", hint="nothing to do.")


def finish(session: Session, lease: Lease, how: str = "done") -> None:
    """End the job, in the transaction that writes its result; raises if it is not this worker's any more."""
    row = session.get(JobRow, lease.job_id)
    if row is None or row.lease != lease.token or row.ended_at is not None:
        raise LostLeaseError("this job is not this worker's any more.", hint="nothing to do.")
    row.ended_at, row.ended, row.lease = now(), how, None


def give_back(
    session: Session, lease: Lease, *, after: timedelta = timedelta(), counted: bool = False
) -> None:
    """Let another worker take it `after` a while; `counted` if this was a try."""
    session.execute(
        update(JobRow)
        .where(JobRow.id == lease.job_id, JobRow.lease == lease.token, JobRow.ended_at.is_(None))
        .values(
            # No worker has this token: the job waits like that of a worker who went silent.
            lease=secrets.token_hex(16) if after else None,
            leased_until=now() + after if after else None,
            attempts=JobRow.attempts - (0 if counted else 1),
        )
        .execution_options(synchronize_session=False)
    )


def cancel(session: Session, request: RequestRow) -> None:
    """End the open job of a request; its worker notices at the next heartbeat."""
    row = open_job(session, request)
    if row is not None:
        row.ended_at, row.ended, row.lease = now(), "cancelled", None


def open_job(session: Session, request: RequestRow) -> JobRow | None:
    """The job of a request that has not ended."""
    return session.scalar(select(JobRow).where(JobRow.request_id == request.id, JobRow.ended_at.is_(None)))
