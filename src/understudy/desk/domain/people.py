"""Who uses the desk: three roles, and a person as the rest of the desk sees them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from understudy.desk.domain.states import Actor, State
from understudy.errors import RefusedError, UsageError


class Role(StrEnum):
    """The role of a user. A custodian can do what a reviewer can, and manages data and people."""

    CUSTODIAN = "custodian"
    REVIEWER = "reviewer"
    RESEARCHER = "researcher"


@dataclass(frozen=True)
class Person:
    """A user, or the desk's own worker."""

    id: int
    name: str
    role: Role | None

    @property
    def reviews(self) -> bool:
        """Whether they may look inside: at code, checks and prices."""
        return self.role in (Role.REVIEWER, Role.CUSTODIAN)

    def may_review(self, owner_id: int) -> bool:
        """Whether they may look inside this owner's requests; reviewers cannot review their own."""
        return self.reviews and self.id != owner_id


# Jobs act in this name; no user can sign in as it.
WORKER = Person(0, "the desk", None)


class NotAllowedError(RefusedError):
    """This person may never do that, whatever the state of the request."""

    code = "not-allowed"


class NotFoundError(UsageError):
    """There is no such thing, or this person may not know that there is."""

    code = "not-found"


def require_role(person: Person, *roles: Role) -> None:
    """Raise unless the person has one of the roles."""
    if person.role not in roles:
        raise NotAllowedError(
            f"this is only for a {' or '.join(role.value for role in roles)}.",
            hint="ask the custodian of this desk.",
        )


def require_actor(person: Person, actor: Actor, owner_id: int) -> None:
    """Raise unless the person may make this change. Reviewers cannot review their own requests."""
    if actor is Actor.WORKER:
        if person.role is not None:
            raise NotAllowedError("only the desk itself does that.", hint="wait for its worker.")
    elif actor is Actor.OWNER:
        if person.id != owner_id or person.role is None:
            raise NotAllowedError("only the owner of a request may do that.", hint="sign in as its owner.")
    elif not person.reviews:
        raise NotAllowedError("only a reviewer may do that.", hint="wait for a reviewer.")
    elif person.id == owner_id:
        raise NotAllowedError("reviewers cannot review their own requests.", hint="ask another reviewer.")


def may_see(person: Person, owner_id: int, state: State) -> bool:
    """Whether a request is shown at all: to its owner and, once it is not a draft, to reviewers."""
    if person.role is None or person.id == owner_id:
        return True
    return person.reviews and state is not State.DRAFT
