"""What a user may see of a request. Researchers never see what depends on the data, except what was released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from understudy.desk.domain.analysis import Failure, asks_privately
from understudy.desk.domain.people import NotFoundError, Person, Role, may_see, require_role
from understudy.desk.domain.policy import Policy, Verdict
from understudy.desk.domain.results import Check, Results
from understudy.desk.domain.states import BEING_ANSWERED, CHANGES, State, state_text
from understudy.desk.service import Desk, data_sets, releases
from understudy.desk.service.requests import find, may, shown_state
from understudy.desk.store import jobs
from understudy.desk.store.tables import (
    EventRow,
    FeedbackRow,
    JobRow,
    ReleaseRow,
    RequestRow,
    RunRow,
    latest_run,
)

_HUMAN_ACTIONS = tuple(dict.fromkeys(one.action for one in CHANGES))


@dataclass(frozen=True)
class Line:
    """A request in a list."""

    name: str
    question: str
    kind: str
    state: str
    owner: str
    mine: bool
    data_set: str
    day: date
    waits_for_me: bool


@dataclass(frozen=True)
class Trial:
    """What the code gave on the synthetic data; its author may see all of it."""

    results: Results | None
    failure: Failure | None
    reading: dict[str, Any] | None


@dataclass(frozen=True)
class HeldOutput:
    """The output that reviewers decide about."""

    results: Results | None
    failure: Failure | None
    checks: tuple[Check, ...]
    support: dict[str, int]
    prices: dict[str, Any] | None
    basis: tuple[str, ...]
    others: tuple[str, ...]
    """Releases about the same learners that the price does not cover."""
    verdict: Verdict
    """Whether it may leave."""
    at: datetime


@dataclass(frozen=True)
class Progress:
    """How far the work on a request is; for reviewers."""

    kind: str
    stage: str
    done: int
    total: int
    waiting: bool


@dataclass(frozen=True)
class Event:
    """A line of a request's history."""

    at: str
    who: str
    action: str
    detail: dict[str, Any]


@dataclass(frozen=True)
class PrivateRequest:
    """Private questions in place of an analysis, as far as they are known: after the trial, and after the release."""

    questions: tuple[str, ...] = ()
    """In words."""
    guarantee: dict[str, Any] | None = None
    """`Guarantee.to_json`."""
    tried: tuple[dict[str, Any], ...] = ()
    """`Answer.to_json` of each on the synthetic data."""
    expected: float = 0.0
    """The widest interval to be expected on the real data, as a share of what is possible."""
    answers: tuple[dict[str, Any], ...] = ()
    """As they were signed."""


@dataclass(frozen=True)
class RequestView(Line):
    """A request on its page."""

    reviewing: bool
    """Whether the reader is one of its reviewers, and not its owner."""
    code: str
    shown: str
    note: str
    policy: Policy
    data_set_title: str
    simulated: bool
    n_learners: int
    actions: frozenset[str]
    private: PrivateRequest | None
    trial: Trial | None
    held: HeldOutput | None
    progress: Progress | None
    history: tuple[Event, ...]
    certificate: str | None
    released: Results | None
    """As it was signed."""
    n_learners_then: int | None
    """How many the released result is about."""
    feedback: dict[str, Any] | None


def requests(desk: Desk, who: Person) -> list[Line]:
    """The requests that a user may see, newest first: their own, and all for reviewers."""
    with desk.database.reading() as session:
        query = select(RequestRow).order_by(RequestRow.id.desc())
        if not who.reviews:
            query = query.where(RequestRow.owner_id == who.id)
        rows = session.scalars(query).all()
        return [_line(row, who) for row in rows if may_see(who, row.owner_id, State(row.state))]


def request(desk: Desk, who: Person, name: str) -> RequestView:
    """One request as this person may see it."""
    with desk.database.reading() as session:
        row = find(session, who, name)
        inside = who.may_review(row.owner_id)
        release = session.scalar(select(ReleaseRow).where(ReleaseRow.request_id == row.id))
        out = release is not None and release.released_at is not None
        signed = release.document or {} if release is not None and out else {}
        feedback = session.scalar(select(FeedbackRow).where(FeedbackRow.request_id == row.id))
        return RequestView(
            **vars(_line(row, who)),
            reviewing=inside,
            code=row.code,
            shown=row.shown,
            note=row.note,
            policy=data_sets.policy_of(row.data_set),
            data_set_title=row.data_set.title,
            simulated=row.data_set.simulated,
            n_learners=row.data_set.n_learners,
            actions=_actions(who, row),
            private=_private(session, row, signed),
            trial=_trial(latest_run(session, row, trial=True)),
            held=_held(session, row) if inside else None,
            progress=_progress(session, row) if inside else None,
            history=_history(session, row) if inside else (),
            certificate=release.certificate if release is not None and out else None,
            released=_results(signed.get("result")),
            n_learners_then=signed.get("n_learners"),
            feedback=None
            if feedback is None
            else {
                "precision": feedback.precision,
                "own_precision": feedback.own_precision if who.reviews else None,
                "words": feedback.words,
            },
        )


def certificate(desk: Desk, number: str) -> dict[str, Any]:
    """The certificate of this number, for anyone who has it."""
    with desk.database.reading() as session:
        release = session.scalar(select(ReleaseRow).where(ReleaseRow.certificate == number))
        if release is None or release.document is None:
            raise NotFoundError("there is no such certificate.", hint="check the number, letter by letter.")
        return release.document


Interval = tuple[float, float, float]
"""A value with the ends of its 95 % interval: value, low, high."""


@dataclass(frozen=True)
class PricedRequest:
    """A request and its price: alone, and together with stage one and all requests before it.

    `published_mu` is the square root of the sum of squares of stage one's mu and those of all requests so far,
    as in Ito et al. (2026); it is shown next to the measured one and is not a bound.
    """

    label: str
    researcher: str
    kind: str
    """Of analysis, such as `trends` or `causal`."""
    n_outputs: int
    """How many numbers its answer has."""
    precision: float | None
    """0, 0.5 or 1: how much of the synthetic findings held; None when it is unknown."""
    mu: Interval
    advantage: Interval
    together_mu: Interval
    together_advantage: Interval
    published_mu: float
    simulated: bool


@dataclass(frozen=True)
class Priced:
    """What the released requests of a data set cost, for figures; without the viewer's own."""

    requests: tuple[PricedRequest, ...]
    stage_one_mu: float | None
    n_own: int
    n_releasing: int = 0
    """Decided, but not handed out yet; prices count them already."""


def priced(desk: Desk, who: Person, data_set: str) -> Priced:
    """The prices of a data set's released requests, in the order of their release, for reviewers."""
    require_role(who, Role.REVIEWER, Role.CUSTODIAN)
    with desk.database.reading() as session:
        data = data_sets.find(session, data_set)
        decided = releases.released(session, data)
        out = [one for one in decided if one.released_at is not None and one.run.prices]
        others = [(place, one) for place, one in enumerate(out, 1) if one.request.owner_id != who.id]
        stage_one = [(one.run.prices or {})["published"]["stage_one_mu"] for _, one in others]
        return Priced(
            tuple(_priced(session, one, f"request {place}") for place, one in others),
            stage_one[-1] if stage_one else None,
            len(out) - len(others),
            sum(one.released_at is None for one in decided),
        )


def n_released_numbers(desk: Desk, who: Person, data_set: str) -> int:
    """How many numbers about a data set have been released, for reviewers: with many, data may be reconstructed."""
    require_role(who, Role.REVIEWER, Role.CUSTODIAN)
    with desk.database.reading() as session:
        found = releases.released(session, data_sets.find(session, data_set))
        return sum(
            len(results.numbers)
            for one in found
            # Nothing is reconstructed from answers with noise for a guarantee.
            if one.run.private is None and (results := _results(one.run.results)) is not None
        )


@dataclass(frozen=True)
class Counts:
    """How many requests are in each state, and how many jobs wait or are being done."""

    states: dict[State, int]
    n_jobs: int


def counts(desk: Desk) -> Counts:
    """Counts for the owner of the desk's folder; the content of requests is for the pages."""
    with desk.database.reading() as session:
        found = Counter(session.scalars(select(RequestRow.state)))
        n_jobs = session.scalar(select(func.count()).where(JobRow.ended_at.is_(None))) or 0
        return Counts({state: found[state.value] for state in State}, n_jobs)


def _priced(session: Session, release: ReleaseRow, label: str) -> PricedRequest:
    row, prices = release.request, release.run.prices or {}
    reported = session.scalar(select(FeedbackRow).where(FeedbackRow.request_id == row.id))

    def ends(part: str, measure: str) -> Interval:
        found = prices[part][measure]
        return found["value"], found["low"], found["high"]

    return PricedRequest(
        label,
        row.owner.name,
        row.kind or "other",
        prices["own"]["n_outputs"],
        None if reported is None else reported.precision,
        ends("own", "mu"),
        ends("own", "advantage"),
        ends("together", "mu"),
        ends("together", "advantage"),
        prices["published"]["corollary_mu"],
        row.data_set.simulated,
    )


def _line(row: RequestRow, who: Person) -> Line:
    mine, state = row.owner_id == who.id, shown_state(who, row)
    return Line(
        name=row.name,
        question=row.question,
        kind=row.kind,
        state=state,
        owner=row.owner.name,
        mine=mine,
        data_set=row.data_set.name,
        # How long a run took depends on the data: no finer than days.
        day=(row.made_at if state == BEING_ANSWERED else row.moved_at).date(),
        waits_for_me=bool(state_text(state, mine).todo),
    )


def _trial(run: RunRow | None) -> Trial | None:
    if run is None:
        return None
    return Trial(_results(run.results), _failure(run), run.reading)


def _held(session: Session, row: RequestRow) -> HeldOutput | None:
    run = latest_run(session, row, trial=False)
    if run is None or run.private is not None:
        return None
    judged = releases.judge(session, row, run)
    return HeldOutput(
        results=_results(run.results),
        failure=_failure(run),
        checks=judged.checks,
        support=run.support,
        prices=judged.prices,
        basis=tuple(run.basis),
        others=judged.others,
        verdict=judged.verdict,
        at=run.at,
    )


def _actions(who: Person, row: RequestRow) -> frozenset[str]:
    """What a person can do now. A reviewer lets code run, or private questions be answered."""
    other = "approve" if asks_privately(row.code) else "answer"
    return frozenset(action for action in _HUMAN_ACTIONS if action != other and may(who, row, action))


def _private(session: Session, row: RequestRow, signed: dict[str, Any]) -> PrivateRequest | None:
    if not asks_privately(row.code):
        return None
    tried = latest_run(session, row, trial=True)
    known = None if tried is None else tried.private
    if known is None:
        return PrivateRequest()
    return PrivateRequest(
        tuple(known["sentences"]),
        known["guarantee"],
        tuple(known["answers"]),
        max(known["expected"]),
        tuple(signed.get("answers", ())),
    )


def _results(content: dict[str, Any] | None) -> Results | None:
    return None if content is None else Results.from_json(content)


def _failure(run: RunRow) -> Failure | None:
    return None if run.failure is None else Failure(**run.failure)


def _progress(session: Session, row: RequestRow) -> Progress | None:
    job = jobs.open_job(session, row)
    if job is None:
        return None
    return Progress(job.kind, job.stage, job.done, job.total, job.lease is None)


def _history(session: Session, row: RequestRow) -> tuple[Event, ...]:
    lines: Sequence[EventRow] = session.scalars(
        select(EventRow).where(EventRow.request == row.name).order_by(EventRow.id)
    ).all()
    # Without the number that distinguishes two people of one name.
    return tuple(Event(line.at, line.who.rpartition(" (")[0], line.action, line.detail) for line in lines)
