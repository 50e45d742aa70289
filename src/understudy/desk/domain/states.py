"""The life of a request: its states, the one table of changes that are allowed, and what pages say about each state."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    # Private questions: code never runs on the real data, and the answer leaves as the ledger was charged for it.
    # The worker answers them itself where the policy of the data set says so.
    Change("answer", _S.TRIAL, _S.RELEASING, _A.WORKER),
    Change("answer", _S.IN_REVIEW, _S.RELEASING, _A.REVIEWER),
    Change("decline", _S.RELEASING, _S.RETURNED, _A.WORKER),
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

# An owner sees these as one: how long a run takes, and whether it failed, depends on the data.
HIDDEN_FROM_OWNER = (State.APPROVED, State.RUNNING, State.HELD, State.RELEASING)
BEING_ANSWERED = "being answered"
# Released, or about to be: a reviewer decided, and prices of other requests count it.
DECIDED = (State.RELEASING, State.RELEASED, State.FEEDBACK)
# Nothing more is asked of the desk.
ENDED = (State.REFUSED, State.RELEASED, State.WITHHELD, State.FEEDBACK, State.WITHDRAWN)


def change(action: str, start: State) -> Change | None:
    """The change that an action makes from a state, if it is allowed."""
    return next((found for found in CHANGES if found.action == action and found.start == start), None)


def actions_from(start: State) -> tuple[Change, ...]:
    """What can happen to a request in this state."""
    return tuple(found for found in CHANGES if found.start == start)


@dataclass(frozen=True)
class StateText:
    """A state for the owner or a reviewer of a request."""

    word: str
    shape: str
    """The mark beside it: open, moving, waits, review, pass or fail."""
    next: str
    """What happens next, in a sentence."""
    todo: str = ""
    """What the reader has to do; empty where the request does not wait for them."""
    notice: str = ""
    """What the reader is notified of when the request comes to this state. It says nothing about the data."""


_ANSWERING = StateText(
    "Being answered",
    "moving",
    "The code was approved. It runs on the real data, the output is checked and priced, and a reviewer decides. "
    "How long that takes says nothing about the result.",
)
_FOR_OWNER: dict[str, StateText] = {
    _S.DRAFT: StateText(
        "Draft",
        "open",
        "Only you see it. Submit it when question and code are ready.",
        todo="finish and submit it",
    ),
    _S.SUBMITTED: StateText(
        "Submitted", "moving", "The code will run on the synthetic data first, usually within minutes."
    ),
    _S.TRIAL: StateText("Trial run", "moving", "The code runs on the synthetic data now."),
    _S.IN_REVIEW: StateText("In review", "moving", "A reviewer will read your question and your code."),
    _S.RETURNED: StateText(
        "Returned to you",
        "review",
        "Read the note, change what it asks for, and submit again.",
        todo="change it and submit again",
        notice="Your request was returned to you.",
    ),
    _S.REFUSED: StateText(
        "Refused",
        "fail",
        "The reviewer's note says why. You may ask something else.",
        notice="Your request was refused.",
    ),
    BEING_ANSWERED: _ANSWERING,
    _S.RELEASED: StateText(
        "Released",
        "pass",
        "The result is below. Report how it compares with the synthetic data.",
        todo="read the result and report",
        notice="Your result was released.",
    ),
    _S.WITHHELD: StateText(
        "Closed without a result",
        "fail",
        "Nothing left the desk. That alone says nothing about the data; you may ask another question.",
        notice="Your request was closed without a result.",
    ),
    _S.FEEDBACK: StateText("Feedback given", "pass", "Nothing more to do."),
    _S.WITHDRAWN: StateText("Withdrawn", "open", "Nothing more to do."),
}
_FOR_REVIEWER: dict[str, StateText] = {
    _S.SUBMITTED: StateText("Submitted", "moving", "The code runs on the synthetic data first."),
    _S.TRIAL: StateText("Trial run", "moving", "The code runs on the synthetic data now."),
    _S.IN_REVIEW: StateText(
        "Waiting for review",
        "waits",
        "Read the question and the code. Approving lets it run, and releases nothing.",
        todo="read the code",
        notice="A request waits for review.",
    ),
    _S.RETURNED: StateText("Returned", "open", "The researcher has your note."),
    _S.REFUSED: StateText("Refused", "fail", "Nothing more to do."),
    # A reviewer's own request.
    BEING_ANSWERED: _ANSWERING,
    _S.APPROVED: StateText("Approved", "moving", "The code will run on the real data."),
    _S.RUNNING: StateText("Running", "moving", "The code runs on the real data, is checked and priced."),
    _S.HELD: StateText(
        "Output held",
        "waits",
        "Decide whether the output leaves.",
        todo="decide whether it leaves",
        notice="An output is held and waits for a decision.",
    ),
    _S.RELEASING: StateText("Being released", "moving", "The ledger is being charged."),
    _S.RELEASED: StateText("Released", "pass", "The researcher has the result."),
    _S.WITHHELD: StateText("Withheld", "fail", "Nothing left the desk, and what was held is deleted."),
    _S.FEEDBACK: StateText(
        "Feedback given", "pass", "The researcher compared the result with the synthetic data."
    ),
    _S.WITHDRAWN: StateText("Withdrawn", "open", "The researcher withdrew it."),
}


# What happens next with private questions, where it is something else.
_PRIVATE: dict[str, str] = {
    _S.SUBMITTED: "The questions will be answered from the synthetic data first, usually within a minute.",
    _S.TRIAL: "The questions are being answered from the synthetic data.",
    BEING_ANSWERED: "The questions are being answered from the real data, with noise. The answers leave at once.",
    _S.RELEASING: "The ledger is charged, the questions are answered from the real data, and the answers leave.",
}
_PRIVATE_OWNER = {
    **_PRIVATE,
    _S.IN_REVIEW: "A reviewer will read your questions. Once they are approved, the answers are yours in seconds.",
}
_PRIVATE_REVIEWER = {
    **_PRIVATE,
    _S.IN_REVIEW: "Read the questions. Approving charges the ledger and releases the answers: there is no second "
    "decision.",
}


def state_text(state: str, owner: bool, private: bool = False) -> StateText:
    """A state in plain words, for the owner of a request or for a reviewer; `private` if it asks private questions."""
    table = _FOR_OWNER if owner else _FOR_REVIEWER
    found = table.get(state) or StateText(state.capitalize(), "open", "")
    next_ = (_PRIVATE_OWNER if owner else _PRIVATE_REVIEWER).get(state) if private else None
    return found if next_ is None else replace(found, next=next_)


_IN_ORDER: list[str] = [*State]
_IN_ORDER.insert(_IN_ORDER.index(State.APPROVED), BEING_ANSWERED)


def life_order(state: str) -> int:
    """How far along its life a state is, for lists."""
    return _IN_ORDER.index(state)


# The way of a request as its owner sees it, and the states of each step; a request may end at any of them.
STEPS: dict[str, tuple[str, ...]] = {
    "Draft": (_S.DRAFT, _S.RETURNED),
    "Trial on synthetic data": (_S.SUBMITTED, _S.TRIAL),
    "Review": (_S.IN_REVIEW,),
    "Being answered": (BEING_ANSWERED, *HIDDEN_FROM_OWNER),
    "Released": (_S.RELEASED,),
    "Feedback": (_S.FEEDBACK,),
}


def step_of(state: str) -> int | None:
    """The place of a request's step among `STEPS`; none for one that ended otherwise."""
    return next((place for place, states in enumerate(STEPS.values()) if state in states), None)
