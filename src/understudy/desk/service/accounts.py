"""Accounts by invitation, and how users prove who they are."""

from __future__ import annotations

import re
import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from pwdlib import PasswordHash
from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from understudy.desk.domain.people import WORKER, NotAllowedError, NotFoundError, Person, Role, require_role
from understudy.desk.service import Desk
from understudy.desk.store import audit_log
from understudy.desk.store.tables import AttemptRow, EndedSessionRow, InvitationRow, PersonRow, now
from understudy.errors import RefusedError, UsageError

SHORTEST = 12
LONGEST = 1000

# Of lists of leaked passwords, those with at least twelve characters, and what people write
# when they are asked for more.
# Digits and signs at the end are taken off before comparing, so that each stands for many.
_LISTED = (
    "passwordpassword password1234 passwort passwortpasswort passphrase password qwertyuiop "
    "qwertyuiopasdf qwertyuiopasdfghjkl qwertyuiopasdfghjklzxcvbnm qwertyqwerty qwertzuiop asdfghjkl "
    "asdfghjklasdfghjkl zxcvbnm 1qaz2wsx3edc 1q2w3e4r5t6y 1q2w3e4r5t 1qazxsw2 q1w2e3r4t5y6 "
    "qazwsxedcrfv abcdefghijkl abcdefghijklmnop abcdefghijklmnopqrstuvwxyz iloveyou iloveyouforever "
    "iloveyousomuch letmein letmeinletmein letmeinplease welcome welcomewelcome administrator "
    "adminadmin adminadminadmin changeme changemechangeme changemeplease correcthorsebatterystaple "
    "trustno trustnotrustno sunshine sunshinesunshine princess princessprincess football "
    "footballfootball baseball basketball superman superstar monkeymonkey dragondragon mynameis "
    "unknownunknown internetinternet computercomputer teacherteacher schoolschool studentstudent "
    "understudy understudydesk validationdesk thisismypassword mypassword mypasswordis secretsecret "
    "topsecretpassword pleaseletmein whateverwhatever nothingnothing starwars harrypotter "
    "michaeljackson manchesterunited liverpoolfc "
)
_COMMON = frozenset(_LISTED.split())


def check_password(password: str, email: str, name: str) -> None:
    """Raise if a password is too easy to guess."""
    if len(password) < SHORTEST:
        raise UsageError(
            f"the password has {len(password)} characters, and needs at least {SHORTEST}.",
            hint="a few words that do not belong together are easy to remember.",
        )
    if len(password) > LONGEST:
        raise UsageError("the password is too long.", hint=f"at most {LONGEST} characters.")
    plain = _letters(password)
    own = {_letters(part) for part in (email, email.partition("@")[0], name, *name.split())}
    repeated = {part * times for part in own if part for times in (1, 2, 3)}
    if plain in repeated or plain in _COMMON or len(set(password.lower())) < 4 or _in_a_row(password):
        raise UsageError(
            "this password is among the first that an attacker would try.",
            hint="use neither your name nor your address, nor a common word.",
        )


def _letters(text: str) -> str:
    """Without spaces and signs, and without digits at the end: how people vary one password."""
    return "".join(one for one in text.lower() if one.isalnum()).rstrip("0123456789")


def _in_a_row(password: str) -> bool:
    """Such as 123456789012 or abcdefghijkl."""
    steps = {(ord(b) - ord(a)) % 10 for a, b in pairwise(password)}
    return len(steps) == 1


LINK_LASTS = timedelta(days=7)
WINDOW = timedelta(minutes=15)
MOST_OF_ACCOUNT = 10
"""Failed sign-ins for one account in the window."""
MOST_OF_ADDRESS = 50
"""Failed sign-ins from one address in the window: a whole school may share one."""
SESSION_LASTS = timedelta(hours=12)
"""However busy it is."""

_HASHES = PasswordHash.recommended()
# What an unknown account is compared with, so that it takes as long as a known one.
_NOBODYS = _HASHES.hash(secrets.token_urlsafe(16))
# Each comparison takes 64 MB: a crowd at the door may not take all memory.
_AT_ONCE = threading.BoundedSemaphore(4)


class SlowDownError(RefusedError):
    """Too many attempts; to be tried again later."""

    code = "slow-down"


@dataclass(frozen=True)
class SignedIn:
    """A user who signed in, and the number that their sessions carry until all of them are ended."""

    person: Person
    session: int


@dataclass(frozen=True)
class Account:
    """An account as a custodian sees it."""

    id: int
    name: str
    email: str
    role: Role
    active: bool
    invited: bool
    """Invited, and has not signed in yet."""
    made_at: datetime


def first_custodian(desk: Desk, email: str, name: str) -> str:
    """The first account of a desk; gives the secret of its invitation. Only until a user has signed in."""
    email, name = checked_email(email), _name(name)
    with desk.database.writing() as session:
        rows = session.scalars(select(PersonRow)).all()
        if any(row.password or row.subject for row in rows) or any(row.email != email for row in rows):
            raise RefusedError(
                "this desk has users already.", hint="a custodian invites others, on the page of people."
            )
        row = rows[0] if rows else _new(session, email, name, Role.CUSTODIAN)
        audit_log.append(session, WORKER, "invite", detail={"person": row.id, "role": Role.CUSTODIAN.value})
        return _link(desk, session, row)


def invite(desk: Desk, who: Person, email: str, name: str, role: Role) -> str:
    """A new account; gives the secret of the link by which its owner sets a password."""
    _manages(who)
    email, name = checked_email(email), _name(name)
    with desk.database.writing() as session:
        if session.scalar(select(PersonRow.id).where(PersonRow.email == email)) is not None:
            raise RefusedError(
                "there is an account with this e-mail address.",
                hint="make a new link for it on the page of people, or open it again.",
            )
        row = _new(session, email, name, role)
        audit_log.append(session, who, "invite", detail={"person": row.id, "role": role.value})
        return _link(desk, session, row)


def reset(desk: Desk, who: Person, person_id: int) -> str:
    """A new link to set a password; links made before end. The old password works until the link is used."""
    _manages(who)
    with desk.database.writing() as session:
        row = _found(session, person_id)
        if not row.active:
            raise RefusedError("this account is closed.", hint="open it again first.")
        audit_log.append(session, who, "make link", detail={"person": row.id})
        return _link(desk, session, row)


def invited(desk: Desk, secret: str) -> tuple[Person, str]:
    """Whose invitation this is, with their e-mail address; raises if it does not lead anywhere."""
    with desk.database.reading() as session:
        row = _invitation(desk, session, secret).person
        return _person(row), row.email


def accept(desk: Desk, secret: str, password: str) -> Person:
    """Set the password by a link, once. All sessions that were open end."""
    with desk.database.reading() as session:
        row = _invitation(desk, session, secret).person
        check_password(password, row.email, row.name)
    with _AT_ONCE:
        hashed = _HASHES.hash(password)
    with desk.database.writing() as session:
        row = _invitation(desk, session, secret).person
        row.password = hashed
        row.session += 1
        _end_links(session, row)
        audit_log.append(session, _person(row), "accept invitation")
        return _person(row)


def sign_in(desk: Desk, email: str, password: str, address: str) -> SignedIn:
    """Come in by password; raises with the same words whether or not there is such an account."""
    email = email.strip().lower()
    keys = (desk.settings.keyed("account", email), desk.settings.keyed("address", address))
    # An attempt counts from when it begins: many at once are not more than many after one another.
    with desk.database.writing() as session:
        _count_attempt(session, keys)
        row = session.scalar(select(PersonRow).where(PersonRow.email == email))
        stored = row.password if row is not None and row.active else None
    with _AT_ONCE:
        right, renewed = _HASHES.verify_and_update(password[:1000], stored or _NOBODYS)
    if stored is None or not right:
        raise NotAllowedError(
            "this e-mail address and this password do not belong together.",
            hint="try again, or ask a custodian for a new link.",
        )
    with desk.database.writing() as session:
        row = session.scalar(select(PersonRow).where(PersonRow.email == email))
        if row is None or not row.active or row.password != stored:
            raise NotAllowedError("this account has just changed.", hint="sign in again.")
        row.password = renewed or row.password
        _forget_attempts(session, keys)
        audit_log.append(session, _person(row), "sign in")
        return SignedIn(_person(row), row.session)


def enter_by_subject(desk: Desk, subject: str, verified_email: str | None) -> SignedIn:
    """Sign in by single sign-on, if invited. The e-mail address identifies the user once, then the subject."""
    key = desk.settings.keyed("subject", subject)
    with desk.database.writing() as session:
        row = session.scalar(select(PersonRow).where(PersonRow.subject == key))
        if row is None and verified_email:
            row = session.scalar(
                select(PersonRow).where(
                    PersonRow.email == verified_email.strip().lower(), PersonRow.subject.is_(None)
                )
            )
        if row is None or not row.active:
            raise NotAllowedError(
                "you have not been invited to this desk under this name.",
                hint="ask a custodian for an invitation to the e-mail address that you sign on with.",
            )
        bound = row.subject is None
        row.subject = key
        if bound:
            _end_links(session, row)
        audit_log.append(session, _person(row), "sign in", detail={"by": "single sign-on", "first": bound})
        return SignedIn(_person(row), row.session)


def current(desk: Desk, person_id: int, session: int, session_id: str | None = None) -> Person | None:
    """Who has this session, if it was not ended since."""
    with desk.database.reading() as store:
        row = store.get(PersonRow, person_id)
        if row is None or not row.active or row.session != session:
            return None
        if session_id is not None:
            key = desk.settings.keyed("session", session_id)
            if store.scalar(select(EndedSessionRow.id).where(EndedSessionRow.key == key)) is not None:
                return None
        return _person(row)


def sign_out(desk: Desk, who: Person, session_id: str) -> None:
    """End one session: its cookie is worth nothing from now on, wherever it is."""
    with desk.database.writing() as session:
        session.execute(delete(EndedSessionRow).where(EndedSessionRow.at < now() - SESSION_LASTS))
        key = desk.settings.keyed("session", session_id)
        if session.scalar(select(EndedSessionRow.id).where(EndedSessionRow.key == key)) is None:
            session.add(EndedSessionRow(key=key))
            audit_log.append(session, who, "sign out")


def sign_out_everywhere(desk: Desk, who: Person) -> None:
    """End all sessions of a person."""
    with desk.database.writing() as session:
        _found(session, who.id).session += 1
        audit_log.append(session, who, "sign out everywhere")


def change_password(desk: Desk, who: Person, old: str, new: str, address: str) -> int:
    """A new password; all other sessions end. Gives the number that the session of the caller has to carry now."""
    keys = (desk.settings.keyed("password of", str(who.id)), desk.settings.keyed("address", address))
    with desk.database.writing() as session:
        _count_attempt(session, keys)
        row = _found(session, who.id)
        stored, email, name = row.password, row.email, row.name
    if stored is None:
        raise RefusedError(
            "this account has no password: you sign in by single sign-on.",
            hint="ask a custodian for a link if you want one.",
        )
    with _AT_ONCE:
        right = _HASHES.verify(old[:1000], stored)
    if not right:
        raise UsageError("this is not your current password.", hint="try again.")
    check_password(new, email, name)
    with _AT_ONCE:
        hashed = _HASHES.hash(new)
    with desk.database.writing() as session:
        row = _found(session, who.id)
        if row.password != stored:
            raise RefusedError("the password has just been changed.", hint="sign in again.")
        row.password = hashed
        row.session += 1
        _forget_attempts(session, keys)
        audit_log.append(session, who, "change password")
        return row.session


def set_role(desk: Desk, who: Person, person_id: int, role: Role) -> None:
    """Give a user another role."""
    _manages(who)
    with desk.database.writing() as session:
        row = _found(session, person_id)
        if row.role == role.value:
            return
        if role is not Role.CUSTODIAN:
            _not_the_last(session, row)
        before, row.role = row.role, role.value
        audit_log.append(
            session, who, "set role", detail={"person": row.id, "from": before, "to": role.value}
        )


def deactivate(desk: Desk, who: Person, person_id: int) -> None:
    """Close an account: its sessions, links, tokens and feed are worth nothing while it is closed."""
    _manages(who)
    with desk.database.writing() as session:
        row = _found(session, person_id)
        if not row.active:
            return
        _not_the_last(session, row)
        row.active = False
        row.session += 1
        _end_links(session, row)
        audit_log.append(session, who, "close account", detail={"person": row.id})


def reactivate(desk: Desk, who: Person, person_id: int) -> None:
    """Open a closed account again."""
    _manages(who)
    with desk.database.writing() as session:
        row = _found(session, person_id)
        if not row.active:
            row.active = True
            audit_log.append(session, who, "open account", detail={"person": row.id})


def people(desk: Desk, who: Person) -> list[Account]:
    """All accounts."""
    _manages(who)
    with desk.database.reading() as session:
        return [_account(row) for row in session.scalars(select(PersonRow).order_by(PersonRow.name))]


def own_account(desk: Desk, who: Person) -> Account:
    """The account of the caller."""
    with desk.database.reading() as session:
        return _account(_found(session, who.id))


def by_email(desk: Desk, email: str) -> Person | None:
    """Who has this address: for commands of whoever holds the desk's folder. No route leads here."""
    with desk.database.reading() as session:
        row = session.scalar(select(PersonRow).where(PersonRow.email == email.strip().lower()))
        return None if row is None else _person(row)


def _manages(who: Person) -> None:
    # The desk itself: commands of whoever holds its folder, for the day on which all custodians are locked out.
    if who != WORKER:
        require_role(who, Role.CUSTODIAN)


def _person(row: PersonRow) -> Person:
    return Person(row.id, row.name, Role(row.role))


def _account(row: PersonRow) -> Account:
    never = row.password is None and row.subject is None
    return Account(row.id, row.name, row.email, Role(row.role), row.active, never, row.made_at)


def _found(session: Session, person_id: int) -> PersonRow:
    row = session.get(PersonRow, person_id)
    if row is None:
        raise NotFoundError("there is no such person.", hint="look at the list of people.")
    return row


def _new(session: Session, email: str, name: str, role: Role) -> PersonRow:
    row = PersonRow(email=email, name=name, role=role.value)
    session.add(row)
    session.flush()
    return row


def _not_the_last(session: Session, row: PersonRow) -> None:
    if row.role != Role.CUSTODIAN.value or not row.active:
        return
    # A person who was invited and never signed in cannot look after a desk.
    others = session.scalar(
        select(func.count()).where(
            PersonRow.role == Role.CUSTODIAN.value,
            PersonRow.active,
            PersonRow.id != row.id,
            or_(PersonRow.password.is_not(None), PersonRow.subject.is_not(None)),
        )
    )
    if not others:
        raise RefusedError(
            "this is the last custodian, and a desk needs one.",
            hint="make another person custodian first; they must have signed in once.",
        )


def _link(desk: Desk, session: Session, row: PersonRow) -> str:
    _end_links(session, row)
    secret = secrets.token_urlsafe(32)
    session.add(
        InvitationRow(
            person_id=row.id,
            token=desk.settings.keyed("invitation", secret),
            expires_at=now() + LINK_LASTS,
        )
    )
    return secret


def _end_links(session: Session, row: PersonRow) -> None:
    moment = now()
    for one in session.scalars(
        select(InvitationRow).where(InvitationRow.person_id == row.id, InvitationRow.used_at.is_(None))
    ):
        one.used_at = moment


def _invitation(desk: Desk, session: Session, secret: str) -> InvitationRow:
    found = session.scalar(
        select(InvitationRow).where(InvitationRow.token == desk.settings.keyed("invitation", secret))
    )
    if found is None or found.used_at is not None or found.expires_at < now() or not found.person.active:
        raise NotFoundError(
            "there is no such invitation, or it was used, or it is older than a week.",
            hint="if you have set your password, sign in; otherwise ask a custodian for a new link.",
        )
    return found


def _count_attempt(session: Session, keys: tuple[str, str]) -> None:
    session.execute(delete(AttemptRow).where(AttemptRow.at < now() - WINDOW))
    for key, most in zip(keys, (MOST_OF_ACCOUNT, MOST_OF_ADDRESS), strict=True):
        if (session.scalar(select(func.count()).where(AttemptRow.key == key)) or 0) >= most:
            raise SlowDownError(
                "there were too many attempts to sign in.",
                hint=f"wait {WINDOW.seconds // 60} minutes, then try again.",
            )
    session.add_all(AttemptRow(key=key) for key in keys)


def _forget_attempts(session: Session, keys: tuple[str, str]) -> None:
    """A success clears the account, and takes back the one attempt of its address."""
    account, address = keys
    session.execute(delete(AttemptRow).where(AttemptRow.key == account))
    newest = session.scalar(
        select(AttemptRow).where(AttemptRow.key == address).order_by(AttemptRow.id.desc()).limit(1)
    )
    if newest is not None:
        session.delete(newest)


def checked_email(text: str) -> str:
    """An e-mail address as accounts have it; raises if it is none."""
    text = text.strip().lower()
    if len(text) > 254 or not re.fullmatch(r"[^@\s\x00-\x1f<>\"',;]+@[^@\s\x00-\x1f<>\"',;]+", text):
        raise UsageError("this is not an e-mail address.", hint="write it as name@school.example.")
    return text


def _name(text: str) -> str:
    text = " ".join(text.split())
    if not text or len(text) > 100 or not text.isprintable():
        raise UsageError(
            "an account needs a name of up to 100 characters.", hint="write it as people know it."
        )
    return text
