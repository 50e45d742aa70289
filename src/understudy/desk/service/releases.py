"""Releasing a held output, once: a person decides, the ledger is charged, then the researcher sees it.

The decision and its job are one transaction. The job charges the ledger under the release's random name, which
the ledger takes only once, and then hands out in one transaction: killed anywhere, it can be done again.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from understudy.cohorts.summary.previous_year import cards
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.privacy.balance import REFUSED
from understudy.core.privacy.composition import mu_of
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.spending import Account, Charge
from understudy.desk.domain import certificate
from understudy.desk.domain.analysis import code_hash
from understudy.desk.domain.certificate import ReleaseFacts
from understudy.desk.domain.people import WORKER, Person
from understudy.desk.domain.policy import NO_RESULT, Policy, Verdict
from understudy.desk.domain.results import Check
from understudy.desk.domain.states import DECIDED, State
from understudy.desk.private.public_schema import CAVEATS
from understudy.desk.risk.pricing import Prices, with_private
from understudy.desk.service import Desk, data_sets
from understudy.desk.service.requests import close, find, move, require
from understudy.desk.store import jobs
from understudy.desk.store.jobs import Lease
from understudy.desk.store.tables import (
    DataSetRow,
    MeasurementRow,
    ReleaseRow,
    RequestRow,
    RunRow,
    forget_runs,
    latest_run,
    now,
)
from understudy.errors import RefusedError, UsageError

KIND = "validated answer"
PRIVATE_KIND = "private answer"
_NO_GUARANTEE = "an answer on the real data; its price was measured, not proved"


def decide(desk: Desk, who: Person, name: str, reason: str = "") -> None:
    """A reviewer's decision to release what is held; the policy and the limits may refuse it."""
    with desk.database.writing() as session:
        row = find(session, who, name)
        require(who, row, "release")
        run = latest_run(session, row, trial=False)
        if run is None:
            NO_RESULT.enforce(reason)
            return
        judge(session, row, run).verdict.enforce(reason)
        move(session, who, row, "release", {"reason": reason.strip()})
        session.add(
            ReleaseRow(
                request_id=row.id,
                run_id=run.id,
                certificate=secrets.token_hex(8),
                decided_by=who.id,
                reason=reason.strip(),
            )
        )
        jobs.add(session, "release", row)


def hand_out(desk: Desk, lease: Lease) -> None:
    """Charge the ledger and show the result to its researcher; if it may not leave any more, it stays held."""
    with desk.database.reading() as session:
        row = find(session, WORKER, lease.request)
        release = release_of(session, row)
        account = data_sets.account_of(row.data_set)
        card, data_set, reason = release.certificate, row.data_set.name, release.reason
        priced_on = release.run.data_hash
        judged = judge(session, row, release.run)
        charge = _charge(account, release, judged.prices, data_sets.policy_of(row.data_set))
    with ExitStack() as charged:
        try:
            # What was charged is handed out, even if a worker was killed in between and much has changed since.
            if not account.has_charged(card):
                judged.verdict.enforce(reason)
                # Versions show which learners withdrew; only the file itself shows whether it was changed.
                if data_sets.real_table(desk, data_set).hash != priced_on:
                    raise RefusedError(
                        "the real data has changed since this answer was priced.", hint="run it again."
                    )
            charged.enter_context(charge)
        except RefusedError as error:
            _take_back(desk, lease, error.message)
            return
        with desk.database.writing() as session:
            row = find(session, WORKER, lease.request)
            release = release_of(session, row)
            jobs.finish(session, lease)
            release.released_at = now()
            release.run.prices = judged.prices
            facts = facts_of(desk, release, other_releases=bool(judged.others))
            release.document = certificate.document(facts, desk.settings.secret)
            move(session, WORKER, row, "hand out", {"certificate": release.certificate})


def _charge(
    account: Account, release: ReleaseRow, prices: dict[str, Any] | None, policy: Policy
) -> AbstractContextManager[Charge]:
    """The charge of a release: made once, however often a worker tries."""
    together = (prices or {})["together"]
    measures = policy.limits
    return account.charge(
        KIND,
        f"desk request {release.request.name}",
        Guarantee.none(_NO_GUARANTEE),
        card=release.certificate,
        risk={
            # Upper ends: limits hold for what may be, not for the middle.
            **{f"measured_{name}_of_everything": together[name]["high"] for name in measures},
            **{name: together[name]["value"] for name in measures},
        },
        at_most={f"measured_{name}_of_everything": limit for name, limit in measures.items()},
        once=True,
    )


def withhold(desk: Desk, who: Person, name: str, note: str = "") -> None:
    """Close a request without a result, and delete what was held."""
    with desk.database.writing() as session:
        close(session, who, find(session, who, name), "withhold", note)


def run_again(desk: Desk, who: Person, name: str) -> None:
    """Run and price the same code again."""
    with desk.database.writing() as session:
        row = find(session, who, name)
        move(session, who, row, "run again")
        forget_runs(session, row, trial=False)
        jobs.add(session, "run", row)


def expire(desk: Desk) -> int:
    """Delete what was held longer than the policy allows; gives how many requests were closed."""
    closed = 0
    with desk.database.writing() as session:
        held = session.scalars(select(RequestRow).where(RequestRow.state == State.HELD.value)).all()
        for row in held:
            # By days: the minute would show its owner when the run ended.
            days = (now().date() - row.moved_at.date()).days
            if days > data_sets.policy_of(row.data_set).retention_days:
                move(session, WORKER, row, "expire")
                forget_runs(session, row, trial=False)
                closed += 1
    desk.database.settle()
    return closed


def released(session: Session, data: DataSetRow) -> list[ReleaseRow]:
    """What has been released on a data set, or is about to be, oldest first."""
    return list(
        session.scalars(
            select(ReleaseRow)
            .join(RequestRow)
            .where(RequestRow.data_set_id == data.id, RequestRow.state.in_(DECIDED))
            .order_by(ReleaseRow.id)
        )
    )


def outside_the_price(session: Session, data: DataSetRow) -> list[str]:
    """Releases about the same learners that no price of this data set covers, such as a synthetic log.

    Stage one's summary and the answers of this desk on this data set are in the joint game.
    """
    priced = {one.certificate for one in released(session, data)}
    if data.summary is not None:
        content = json.loads(Path(data.summary).read_text(encoding="utf-8"))
        priced |= set(cards(PrivateSummary.from_json(content)))
    return [
        f"{entry.kind}, {entry.at[:10]}: {entry.statement}"
        for entry in Ledger(Path(data.ledger)).entries(data.population)
        if entry.card not in priced and entry.kind != REFUSED
    ]


def private_mu(releases: Iterable[ReleaseRow]) -> float:
    """What the private answers among some releases guarantee together, as Gaussian DP."""
    stated = [one.run.private["guarantee"] for one in releases if one.run.private is not None]
    return math.hypot(*(mu_of(Guarantee.from_json(one, caveats=CAVEATS)) for one in stated))


def stale(session: Session, row: RequestRow, run: RunRow) -> bool:
    """Whether the price of a run is no longer the price of releasing it now."""
    # Private answers compose with a price as they are, without a new measurement.
    others = (one for one in released(session, row.data_set) if one.run.private is None)
    out = {one.request.name for one in others} - {row.name}
    return (
        out != set(run.basis)
        or run.data_version != row.data_set.version
        or run.code_hash != code_hash(row.code)
    )


@dataclass(frozen=True)
class Judged:
    """What a run gave, judged by what the desk knows now."""

    checks: tuple[Check, ...]
    others: tuple[str, ...]
    """Releases about the same learners that its price leaves out."""
    verdict: Verdict
    prices: dict[str, Any] | None
    """With the private answers that were released since."""


def judge(session: Session, row: RequestRow, run: RunRow) -> Judged:
    """The checks of a run with one for releases that its price leaves out, and whether it may leave."""
    others = outside_the_price(session, row.data_set)
    checks = [Check.from_json(check) for check in run.checks]
    if others:
        there, all_ = (
            ("is one release", "both") if len(others) == 1 else (f"are {len(others)} releases", "all")
        )
        checks.append(
            Check.about("others").asks(
                f"There {there} about the same learners that this price leaves out: what {all_} reveal together was "
                "not measured.",
            )
        )
    policy = data_sets.policy_of(row.data_set)
    prices = run.prices
    if prices is not None:
        now_private = private_mu(released(session, row.data_set))
        prices = with_private(Prices.from_json(prices), now_private).to_json()
    verdict = (
        NO_RESULT
        if run.results is None
        else policy.verdict(checks, prices, out_of_date=stale(session, row, run))
    )
    return Judged(tuple(checks), tuple(others), verdict, prices)


def facts_of(desk: Desk, release: ReleaseRow, *, other_releases: bool = False) -> ReleaseFacts:
    """What the certificate of a release states."""
    row, run = release.request, release.run
    return ReleaseFacts(
        certificate=release.certificate,
        desk=desk.settings.title,
        question=row.question,
        kind=row.kind,
        code=row.code,
        code_hash=run.code_hash,
        environment=run.environment,
        data_set=row.data_set.name,
        data_set_title=row.data_set.title,
        simulated=row.data_set.simulated,
        result=run.results,
        checks=run.checks,
        prices=run.prices,
        other_releases=other_releases,
        released_on=None if release.released_at is None else release.released_at.date(),
        private=run.private,
    )


def release_of(session: Session, row: RequestRow) -> ReleaseRow:
    """The release of a request that was decided."""
    found = session.scalar(select(ReleaseRow).where(ReleaseRow.request_id == row.id))
    if found is None:
        raise UsageError("no reviewer decided to release this.", hint="nothing to do.")
    return found


def _take_back(desk: Desk, lease: Lease, why: str) -> None:
    with desk.database.writing() as session:
        row = find(session, WORKER, lease.request)
        jobs.finish(session, lease, "refused")
        release = release_of(session, row)
        session.execute(delete(MeasurementRow).where(MeasurementRow.release_id == release.id))
        session.delete(release)
        move(session, WORKER, row, "take back", {"why": why})
