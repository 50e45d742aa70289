"""Runs of a request as they are stored: the newest, and deleting what they gave."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from understudy.desk.store.tables import RequestRow, RunRow, now


def latest_run(session: Session, row: RequestRow, *, trial: bool) -> RunRow | None:
    """The newest run of a request that was not deleted."""
    return session.scalar(
        select(RunRow)
        .where(RunRow.request_id == row.id, RunRow.trial.is_(trial), RunRow.deleted_at.is_(None))
        .order_by(RunRow.id.desc())
        .limit(1)
    )


def forget_run(run: RunRow) -> None:
    """Delete what a run gave; that there was one stays."""
    run.results = run.failure = run.prices = run.reading = None
    run.checks, run.support, run.basis = [], {}, []
    run.probes = run.shadows = None
    run.deleted_at = now()


def forget_runs(session: Session, row: RequestRow, *, trial: bool) -> None:
    """Delete what trials gave, or what runs on the real data gave and nobody released."""
    older = session.scalars(
        select(RunRow).where(
            RunRow.request_id == row.id, RunRow.trial.is_(trial), RunRow.deleted_at.is_(None)
        )
    )
    for run in older.all():
        forget_run(run)
