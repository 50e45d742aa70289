"""The tables of the desk. Nothing here knows who may do what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    select,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


class Moment(TypeDecorator[datetime]):
    """A time with its zone in every database; SQLite alone would forget the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Always in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Always with the zone."""
        if value is None:
            return None
        found: datetime = value
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


# Counts on its own in both databases.
_Id = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """All tables."""


class PersonRow(Base):
    """A user; without a password until the invitation is taken up."""

    __tablename__ = "people"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    email: Mapped[str] = mapped_column(String(254), unique=True)
    name: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(20))
    password: Mapped[str | None] = mapped_column(Text)
    """An argon2 hash."""
    subject: Mapped[str | None] = mapped_column(String(300), unique=True)
    """Who they are to the single sign-on, if there is one."""
    active: Mapped[bool] = mapped_column(default=True)
    session: Mapped[int] = mapped_column(default=0)
    """Raised to end all sessions of this person."""
    feed: Mapped[str | None] = mapped_column(String(64), unique=True)
    """Hash of the secret in the address of their feed."""
    made_at: Mapped[datetime] = mapped_column(Moment, default=now)


class InvitationRow(Base):
    """A link with which a user sets their password, once."""

    __tablename__ = "invitations"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    token: Mapped[str] = mapped_column(String(64), unique=True)
    """Hash of the secret in the link."""
    expires_at: Mapped[datetime] = mapped_column(Moment)
    used_at: Mapped[datetime | None] = mapped_column(Moment)
    person: Mapped[PersonRow] = relationship()


class TokenRow(Base):
    """A token for the API, shown once."""

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    name: Mapped[str] = mapped_column(String(200))
    token: Mapped[str] = mapped_column(String(64), unique=True)
    """Hash of the token."""
    made_at: Mapped[datetime] = mapped_column(Moment, default=now)
    used_at: Mapped[datetime | None] = mapped_column(Moment)
    revoked_at: Mapped[datetime | None] = mapped_column(Moment)
    person: Mapped[PersonRow] = relationship()


class AttemptRow(Base):
    """A sign-in that failed, to slow down guessing. The key is a hash of address or account."""

    __tablename__ = "attempts"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    key: Mapped[str] = mapped_column(String(64), index=True)
    at: Mapped[datetime] = mapped_column(Moment, default=now)


class EndedSessionRow(Base):
    """A session that a user signed out of before its cookie expired. The key is a hash of its id."""

    __tablename__ = "ended_sessions"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    at: Mapped[datetime] = mapped_column(Moment, default=now)


class DataSetRow(Base):
    """A registered data set: the real table, which is never shown, and its synthetic stand-in."""

    __tablename__ = "data_sets"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(16), unique=True)
    """A random name, the same as in the ledger and on certificates."""
    title: Mapped[str] = mapped_column(String(200))
    description: Mapped[str] = mapped_column(Text, default="")
    real: Mapped[str] = mapped_column(Text)
    """Path. Never shown."""
    synthetic: Mapped[str] = mapped_column(Text)
    summary: Mapped[str | None] = mapped_column(Text)
    """Path of stage one's private summary, if there is one."""
    learner: Mapped[str] = mapped_column(String(200), default="learner")
    """Column that names the learner."""
    columns: Mapped[list[str]] = mapped_column(JSON)
    schema: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """What is public about the columns, for private questions; None if nothing was declared."""
    n_learners: Mapped[int]
    policy: Mapped[dict[str, Any]] = mapped_column(JSON)
    ledger: Mapped[str] = mapped_column(Text)
    population: Mapped[str] = mapped_column(Text)
    simulated: Mapped[bool] = mapped_column(default=False)
    seed: Mapped[int] = mapped_column(BigInteger)
    """Of the order of learners and the shadows. Secret."""
    version: Mapped[int] = mapped_column(default=1)
    """Raised when a learner withdraws or the policy changes: what was priced before was priced otherwise."""
    closed: Mapped[bool] = mapped_column(default=False)
    made_at: Mapped[datetime] = mapped_column(Moment, default=now)


class WithdrawalRow(Base):
    """A learner who is left out of later runs, by a keyed hash of their name."""

    __tablename__ = "withdrawals"
    __table_args__ = (UniqueConstraint("data_set_id", "learner"),)

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    data_set_id: Mapped[int] = mapped_column(ForeignKey("data_sets.id"))
    learner: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime] = mapped_column(Moment, default=now)


class RequestRow(Base):
    """A question with its code, and where it is."""

    __tablename__ = "requests"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(16), unique=True)
    """Random; in addresses and on certificates."""
    data_set_id: Mapped[int] = mapped_column(ForeignKey("data_sets.id"))
    owner_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    question: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(60), default="")
    """Of analysis, in the researcher's words: regression, causal, ..."""
    shown: Mapped[str] = mapped_column(Text, default="")
    """What the synthetic data showed."""
    code: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(20), index=True)
    note: Mapped[str] = mapped_column(Text, default="")
    """The reviewer's last words to the researcher."""
    made_at: Mapped[datetime] = mapped_column(Moment, default=now)
    moved_at: Mapped[datetime] = mapped_column(Moment, default=now)
    data_set: Mapped[DataSetRow] = relationship()
    owner: Mapped[PersonRow] = relationship()


class RunRow(Base):
    """What a run gave: on the synthetic data (trial) or on the real data (held, for reviewers)."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    request_id: Mapped[int] = mapped_column(ForeignKey("requests.id"), index=True)
    trial: Mapped[bool]
    code_hash: Mapped[str] = mapped_column(String(64))
    data_hash: Mapped[str] = mapped_column(String(64))
    """Keyed, and never shown."""
    environment: Mapped[dict[str, str]] = mapped_column(JSON)
    """Versions of the libraries in the sandbox."""
    data_version: Mapped[int]
    results: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    """Of a trial as they are; of a real run rounded, as they would leave."""
    failure: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    reading: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    """What the static review aid saw in the code."""
    checks: Mapped[list[dict[str, Any]]] = mapped_column(JSON, default=list)
    support: Mapped[dict[str, int]] = mapped_column(JSON, default=dict)
    prices: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    basis: Mapped[list[str]] = mapped_column(JSON, default=list)
    """Names of the released requests that the price counts together with this one."""
    probes: Mapped[bytes | None] = mapped_column(LargeBinary)
    shadows: Mapped[bytes | None] = mapped_column(LargeBinary)
    kept_units: Mapped[dict[str, float] | None] = mapped_column(JSON)
    """Unit that each number of a released answer was rounded to, once its probes are deleted (0: not rounded)."""
    private: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Private questions, and with an answer what is guaranteed; None for code that ran on the data itself."""
    at: Mapped[datetime] = mapped_column(Moment, default=now)
    deleted_at: Mapped[datetime | None] = mapped_column(Moment)

    def forget(self) -> None:
        """Delete what the run gave; that there was one stays."""
        self.results = self.failure = self.prices = self.reading = None
        self.checks, self.support, self.basis = [], {}, []
        self.probes = self.shadows = self.kept_units = self.private = None
        self.deleted_at = now()


class ReleaseRow(Base):
    """A decision to release, and the release: at most one for each request."""

    __tablename__ = "releases"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    request_id: Mapped[int] = mapped_column(ForeignKey("requests.id"), unique=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    certificate: Mapped[str] = mapped_column(String(16), unique=True)
    """Random: names the release in the ledger and on the certificate."""
    decided_by: Mapped[int] = mapped_column(ForeignKey("people.id"))
    reason: Mapped[str] = mapped_column(Text)
    decided_at: Mapped[datetime] = mapped_column(Moment, default=now)
    released_at: Mapped[datetime | None] = mapped_column(Moment)
    document: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    """The certificate, once it is released."""
    request: Mapped[RequestRow] = relationship()
    run: Mapped[RunRow] = relationship()


class MeasurementRow(Base):
    """A release measured again on the learners who are in now, since its own run had other learners."""

    __tablename__ = "measurements"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    release_id: Mapped[int] = mapped_column(ForeignKey("releases.id"), unique=True)
    data_hash: Mapped[str] = mapped_column(String(64))
    probes: Mapped[bytes] = mapped_column(LargeBinary)
    shadows: Mapped[bytes] = mapped_column(LargeBinary)


class FeedbackRow(Base):
    """What the researcher reports after comparing, and what the desk computed itself."""

    __tablename__ = "feedback"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    request_id: Mapped[int] = mapped_column(ForeignKey("requests.id"), unique=True)
    precision: Mapped[float]
    own_precision: Mapped[float | None]
    words: Mapped[str] = mapped_column(Text, default="")
    at: Mapped[datetime] = mapped_column(Moment, default=now)


class EventRow(Base):
    """One line of the log: who did what, chained to the line before."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    at: Mapped[str] = mapped_column(String(40))
    who: Mapped[str] = mapped_column(String(200))
    action: Mapped[str] = mapped_column(String(60))
    request: Mapped[str | None] = mapped_column(String(16), index=True)
    detail: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    previous: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64), unique=True)


class JobRow(Base):
    """Work for the worker. A lease says who has it and until when; its token must be shown to finish."""

    __tablename__ = "jobs"
    __table_args__ = (
        # One open job of a request at a time.
        Index(
            "one_open_job",
            "request_id",
            unique=True,
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    request_id: Mapped[int] = mapped_column(ForeignKey("requests.id"))
    lease: Mapped[str | None] = mapped_column(String(32))
    leased_until: Mapped[datetime | None] = mapped_column(Moment)
    attempts: Mapped[int] = mapped_column(default=0)
    done: Mapped[int] = mapped_column(default=0)
    total: Mapped[int] = mapped_column(default=0)
    stage: Mapped[str] = mapped_column(String(60), default="")
    made_at: Mapped[datetime] = mapped_column(Moment, default=now)
    ended_at: Mapped[datetime | None] = mapped_column(Moment)
    ended: Mapped[str] = mapped_column(String(20), default="")
    """done, cancelled or given up."""
    request: Mapped[RequestRow] = relationship()


class NoticeRow(Base):
    """Something waits for a user. It says nothing that depends on the data."""

    __tablename__ = "notices"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), index=True)
    request_id: Mapped[int | None] = mapped_column(ForeignKey("requests.id"))
    words: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime] = mapped_column(Moment, default=now)
    read_at: Mapped[datetime | None] = mapped_column(Moment)
    mailed_at: Mapped[datetime | None] = mapped_column(Moment)
    person: Mapped[PersonRow] = relationship()
    request: Mapped[RequestRow | None] = relationship()


def latest_run(session: Session, request: RequestRow, *, trial: bool) -> RunRow | None:
    """The newest run of a request that was not deleted."""
    return next(iter(_kept_runs(session, request, trial)), None)


def forget_runs(session: Session, request: RequestRow, *, trial: bool) -> None:
    """Delete what trials gave, or what runs on the real data gave and was not released."""
    for run in _kept_runs(session, request, trial):
        run.forget()


def _kept_runs(session: Session, request: RequestRow, trial: bool) -> Sequence[RunRow]:
    kept = RunRow.request_id == request.id, RunRow.trial.is_(trial), RunRow.deleted_at.is_(None)
    return session.scalars(select(RunRow).where(*kept).order_by(RunRow.id.desc())).all()
