"""The life of a request: its states, and the one table of changes that are allowed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a request is."""

    DRAFT = "draft"
    SUBMITTED = "submitted"
    TRIAL = "trial run"
    IN_REVIEW = "in review"
    RETURNED = "returned"
    REFUSED = "refused"
    APPROVED = "approved"
    RUNNING = "running"
    HELD = "output held"
    RELEASING = "being released"
    RELEASED = "released"
    WITHHELD = "withheld"
    FEEDBACK = "feedback given"
    WITHDRAWN = "withdrawn"


class Actor(StrEnum):
    """Who makes a change."""

    OWNER = "owner"
    REVIEWER = "reviewer"
    WORKER = "worker"


@dataclass(frozen=True)
class Change:
    """An action that takes a request from one state to another."""

    action: str
    start: State
    end: State
    actor: Actor


_S, _A = State, Actor
CHANGES = (
    Change("edit", _S.DRAFT, _S.DRAFT, _A.OWNER),
    Change("edit", _S.RETURNED, _S.DRAFT, _A.OWNER),
    Change("submit", _S.DRAFT, _S.SUBMITTED, _A.OWNER),
    Change("withdraw", _S.DRAFT, _S.WITHDRAWN, _A.OWNER),
    Change("withdraw", _S.SUBMITTED, _S.WITHDRAWN, _A.OWNER),
    Change("withdraw", _S.IN_REVIEW, _S.WITHDRAWN, _A.OWNER),
    Change("withdraw", _S.RETURNED, _S.WITHDRAWN, _A.OWNER),
    Change("try", _S.SUBMITTED, _S.TRIAL, _A.WORKER),
    Change("pass trial", _S.TRIAL, _S.IN_REVIEW, _A.WORKER),
    Change("fail trial", _S.TRIAL, _S.RETURNED, _A.WORKER),
    Change("return", _S.IN_REVIEW, _S.RETURNED, _A.REVIEWER),
    Change("refuse", _S.IN_REVIEW, _S.REFUSED, _A.REVIEWER),
    Change("approve", _S.IN_REVIEW, _S.APPROVED, _A.REVIEWER),
    Change("run", _S.APPROVED, _S.RUNNING, _A.WORKER),
    Change("cancel", _S.APPROVED, _S.IN_REVIEW, _A.REVIEWER),
    Change("cancel", _S.RUNNING, _S.IN_REVIEW, _A.REVIEWER),
    Change("hold", _S.RUNNING, _S.HELD, _A.WORKER),
    # A release in between, or a learner who left, makes a price old: the same code is run and priced again.
    Change("run again", _S.HELD, _S.APPROVED, _A.REVIEWER),
    Change("return", _S.HELD, _S.RETURNED, _A.REVIEWER),
    Change("withhold", _S.HELD, _S.WITHHELD, _A.REVIEWER),
    Change("expire", _S.HELD, _S.WITHHELD, _A.WORKER),
    Change("release", _S.HELD, _S.RELEASING, _A.REVIEWER),
    Change("hand out", _S.RELEASING, _S.RELEASED, _A.WORKER),
    Change("take back", _S.RELEASING, _S.HELD, _A.WORKER),
    Change("report", _S.RELEASED, _S.FEEDBACK, _A.OWNER),
)

# What a researcher sees of these: how long a run takes, and whether it failed, depends on the data.
SEEN_AS_ONE = (State.APPROVED, State.RUNNING, State.HELD, State.RELEASING)
BEING_ANSWERED = "being answered"


def change(action: str, start: State) -> Change | None:
    """The change that an action makes from a state, if it is allowed."""
    return next((one for one in CHANGES if one.action == action and one.start == start), None)


def actions_from(start: State) -> tuple[Change, ...]:
    """What can happen to a request in this state."""
    return tuple(one for one in CHANGES if one.start == start)


def diagram() -> str:
    """The table as a picture in Mermaid's language, for the docs."""

    def short(state: State) -> str:
        return state.value.replace(" ", "_")

    lines = ["stateDiagram-v2", f"    [*] --> {short(State.DRAFT)}"]
    lines += [
        f"    {short(one.start)} --> {short(one.end)}: {one.action} ({one.actor.value})" for one in CHANGES
    ]
    ended = [state for state in State if not actions_from(state)]
    return "\n".join(lines + [f"    {short(state)} --> [*]" for state in ended])
