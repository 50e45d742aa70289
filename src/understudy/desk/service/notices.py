"""Notices of what waits for a person: on their page, in their feed, by mail. They say nothing about the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from understudy.desk.domain.people import Person, Role
from understudy.desk.domain.states import state_text
from understudy.desk.service import Desk
from understudy.desk.store.tables import NoticeRow, PersonRow, RequestRow, now

# What could not be mailed for a week is on the page and in the feed; a mail would only puzzle by then.
OLDEST_MAILED = timedelta(days=7)


@dataclass(frozen=True)
class Notice:
    """An event that a user should know about; `request` is the name of the request that it is about."""

    at: datetime
    words: str
    request: str | None


@dataclass(frozen=True)
class UnmailedNotices:
    """A person with the notices that they have to be mailed about."""

    name: str
    email: str
    notices: tuple[int, ...]


def notify(session: Session, who: Person, row: RequestRow) -> None:
    """Notify everyone for whom a request waits in the state to which this person moved it."""
    if words := state_text(row.state, owner=True).notice:
        session.add(NoticeRow(person_id=row.owner_id, request_id=row.id, words=words))
    if words := state_text(row.state, owner=False).notice:
        reviewers = session.scalars(
            select(PersonRow.id).where(
                PersonRow.active,
                PersonRow.role.in_([Role.REVIEWER, Role.CUSTODIAN]),
                PersonRow.id.not_in([row.owner_id, who.id]),
            )
        )
        for person_id in reviewers.all():
            session.add(NoticeRow(person_id=person_id, request_id=row.id, words=words))


def notices(desk: Desk, who: Person, limit: int = 50) -> list[Notice]:
    """What waits or happened for a person, newest first."""
    with desk.database.reading() as session:
        rows = session.scalars(
            select(NoticeRow).where(NoticeRow.person_id == who.id).order_by(NoticeRow.id.desc()).limit(limit)
        )
        return [Notice(row.at, row.words, None if row.request is None else row.request.name) for row in rows]


def claim_unmailed(desk: Desk) -> list[UnmailedNotices]:
    """Users with unmailed notices, which are marked as mailed: two workers do not mail the same."""
    people: dict[int, PersonRow] = {}
    claimed: dict[int, list[int]] = {}
    with desk.database.writing() as session:
        rows = session.scalars(
            select(NoticeRow)
            .join(PersonRow)
            .where(
                PersonRow.active,
                NoticeRow.mailed_at.is_(None),
                NoticeRow.read_at.is_(None),
                NoticeRow.at > now() - OLDEST_MAILED,
            )
            .order_by(NoticeRow.id)
        ).all()
        for row in rows:
            row.mailed_at = now()
            people[row.person_id] = row.person
            claimed.setdefault(row.person_id, []).append(row.id)
        return [
            UnmailedNotices(people[person_id].name, people[person_id].email, tuple(ids))
            for person_id, ids in claimed.items()
        ]


def give_back_unmailed(desk: Desk, claimed: Sequence[UnmailedNotices]) -> None:
    """Let the next call claim what could not be mailed."""
    ids = [notice for person in claimed for notice in person.notices]
    if ids:
        with desk.database.writing() as session:
            session.execute(update(NoticeRow).where(NoticeRow.id.in_(ids)).values(mailed_at=None))
