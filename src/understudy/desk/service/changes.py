"""How a request moves: the table of changes, who may, the line in the log and the notices, in one place."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from understudy.desk.domain import permissions
from understudy.desk.domain.people import Person, Role
from understudy.desk.domain.states import BEING_ANSWERED, SEEN_AS_ONE, Actor, State, change
from understudy.desk.store import audit_log
from understudy.desk.store.tables import NoticeRow, PersonRow, RequestRow, now
from understudy.errors import RefusedError, UsageError

# Nothing is released twice.
_DECIDED = (State.RELEASING, State.RELEASED, State.FEEDBACK)


def find(session: Session, who: Person, name: str) -> RequestRow:
    """The request of this name, if the person may know that there is one."""
    row = session.scalar(select(RequestRow).where(RequestRow.name == name))
    if row is None or not permissions.may_see(who, row.owner_id, State(row.state)):
        raise UsageError("there is no such request.", hint="look at the list of your requests.")
    return row


def move(
    session: Session, who: Person, row: RequestRow, action: str, detail: dict[str, Any] | None = None
) -> None:
    """Take a request through one change of the table; raises if it is not allowed now, or not to this person."""
    start = State(row.state)
    wanted = change(action, start)
    if (
        wanted is None
        and action == "release"
        and start in _DECIDED
        and who.reviews
        and who.id != row.owner_id
    ):
        raise RefusedError(
            "this was released already; nothing was done twice.",
            hint="nothing to do: its page is up to date.",
        )
    if wanted is None:
        raise RefusedError(
            f"a request that is {_shown(start, who, row)} cannot go through '{action}'.",
            hint="load its page again: somebody may have been faster.",
        )
    permissions.require_actor(who, wanted.actor, row.owner_id)
    row.state, row.moved_at = wanted.end.value, now()
    audit_log.append(
        session,
        who,
        action,
        request=row.name,
        detail={"from": start.value, "to": wanted.end.value, **(detail or {})},
    )
    _notify(session, who, row, start, wanted.end)


def _shown(state: State, who: Person, row: RequestRow) -> str:
    # A reviewer is a researcher like any other when the request is their own.
    inside = who.reviews and who.id != row.owner_id
    return BEING_ANSWERED if state in SEEN_AS_ONE and not inside else state.value


# Words for who should know. They say nothing that depends on the data.
_TO_REVIEWERS = {
    State.IN_REVIEW: "A request waits for review.",
    State.HELD: "An output is held and waits for a decision.",
}
_TO_OWNER = {
    State.RETURNED: "Your request was returned to you.",
    State.REFUSED: "Your request was refused.",
    State.RELEASED: "Your result was released.",
    State.WITHHELD: "Your request was closed without a result.",
}


def _notify(session: Session, who: Person, row: RequestRow, start: State, end: State) -> None:
    if start == end:
        return
    if words := _TO_OWNER.get(end):
        session.add(NoticeRow(person_id=row.owner_id, request_id=row.id, words=words))
    if words := _TO_REVIEWERS.get(end):
        reviewers = session.scalars(
            select(PersonRow.id).where(
                PersonRow.active,
                PersonRow.role.in_([Role.REVIEWER, Role.CUSTODIAN]),
                PersonRow.id.not_in([row.owner_id, who.id]),
            )
        )
        for person_id in reviewers.all():
            session.add(NoticeRow(person_id=person_id, request_id=row.id, words=words))


def may(who: Person, row: RequestRow, action: str) -> bool:
    """Whether a person could do this now."""
    wanted = change(action, State(row.state))
    if wanted is None or wanted.actor is Actor.WORKER:
        return False
    try:
        permissions.require_actor(who, wanted.actor, row.owner_id)
    except permissions.NotAllowedError:
        return False
    return True
