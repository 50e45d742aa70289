"""Secrets that stand for a user where no password is typed: tokens of the API, and the address of a feed.

Each is shown once and kept as a keyed hash.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import func, select

from understudy.desk.domain.people import NotFoundError, Person, Role
from understudy.desk.service import Desk
from understudy.desk.store import audit_log
from understudy.desk.store.tables import PersonRow, TokenRow, now
from understudy.errors import RefusedError, UsageError

MOST_TOKENS = 10
PREFIX = "desk_"
"""So that programs that look for leaked secrets find one."""


@dataclass(frozen=True)
class Token:
    """A token without its secret."""

    id: int
    name: str
    made: date
    used: date | None


def make_token(desk: Desk, who: Person, name: str) -> str:
    """A new token of the API, which is not shown again."""
    name = " ".join(name.split())
    if not name or len(name) > 100 or not name.isprintable():
        raise UsageError("a token needs a name of up to 100 characters.", hint="say what it is for.")
    token = PREFIX + secrets.token_urlsafe(32)
    with desk.database.writing() as session:
        n_tokens = session.scalar(
            select(func.count()).where(TokenRow.person_id == who.id, TokenRow.revoked_at.is_(None))
        )
        if (n_tokens or 0) >= MOST_TOKENS:
            raise RefusedError(f"you have {MOST_TOKENS} tokens, which is the most.", hint="revoke one first.")
        row = TokenRow(person_id=who.id, name=name, token=desk.settings.keyed("token", token))
        session.add(row)
        session.flush()
        audit_log.append(session, who, "make token", detail={"token": row.id})
    return token


def revoke_token(desk: Desk, who: Person, token_id: int) -> None:
    """Revoke a token."""
    with desk.database.writing() as session:
        row = session.get(TokenRow, token_id)
        if row is None or row.person_id != who.id or row.revoked_at is not None:
            raise NotFoundError("there is no such token.", hint="look at the list of your tokens.")
        row.revoked_at = now()
        audit_log.append(session, who, "revoke token", detail={"token": row.id})


def list_tokens(desk: Desk, who: Person) -> list[Token]:
    """The tokens of a person that work."""
    with desk.database.reading() as session:
        rows = session.scalars(
            select(TokenRow)
            .where(TokenRow.person_id == who.id, TokenRow.revoked_at.is_(None))
            .order_by(TokenRow.id)
        )
        return [
            Token(row.id, row.name, row.made_at.date(), None if row.used_at is None else row.used_at.date())
            for row in rows
        ]


def by_token(desk: Desk, token: str) -> Person | None:
    """The owner of a token, with the rights of a researcher: a lost token cannot decide, whoever made it."""
    key = desk.settings.keyed("token", token)
    found = select(TokenRow).where(TokenRow.token == key, TokenRow.revoked_at.is_(None))
    with desk.database.reading() as session:
        row = session.scalar(found)
        if row is None or not row.person.active:
            return None
        person = Person(row.person.id, row.person.name, Role.RESEARCHER)
        old = row.used_at is None or row.used_at < now() - timedelta(days=1)
    if old:
        # No line in the log: it says on which day a token was used last, and changes nothing else.
        with desk.database.writing() as session:
            row = session.scalar(found)
            if row is not None:
                row.used_at = now()
    return person


def feed_address(desk: Desk, who: Person) -> str:
    """A new secret for the address of a person's feed; the one before leads nowhere from now on."""
    secret = secrets.token_urlsafe(24)
    with desk.database.writing() as session:
        row = session.get(PersonRow, who.id)
        if row is None:
            raise NotFoundError("there is no such person.", hint="sign in again.")
        row.feed = desk.settings.keyed("feed", secret)
        audit_log.append(session, who, "make feed address")
    return secret


def by_feed(desk: Desk, secret: str) -> Person | None:
    """The owner of a feed."""
    with desk.database.reading() as session:
        row = session.scalar(select(PersonRow).where(PersonRow.feed == desk.settings.keyed("feed", secret)))
        return None if row is None or not row.active else Person(row.id, row.name, Role(row.role))
