"""What researchers and reviewers do with a request before its output is held."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from understudy.desk.disclosure.code_review import read_code
from understudy.desk.domain.analysis import asks_privately
from understudy.desk.domain.people import NotAllowedError, NotFoundError, Person, may_see, require_actor
from understudy.desk.domain.results import Check
from understudy.desk.domain.states import (
    BEING_ANSWERED,
    DECIDED,
    ENDED,
    HIDDEN_FROM_OWNER,
    Actor,
    Change,
    State,
    change,
)
from understudy.desk.service import Desk, data_sets
from understudy.desk.service.notices import notify
from understudy.desk.store import audit_log, jobs
from understudy.desk.store.tables import DataSetRow, JobRow, RequestRow, forget_runs, latest_run, now
from understudy.errors import RefusedError, UsageError


def find(session: Session, who: Person, name: str) -> RequestRow:
    """The request of this name, if the person may know that there is one."""
    row = session.scalar(select(RequestRow).where(RequestRow.name == name))
    if row is None or not may_see(who, row.owner_id, State(row.state)):
        raise NotFoundError("there is no such request.", hint="look at the list of your requests.")
    return row


def require(who: Person, row: RequestRow, action: str) -> Change:
    """The change that an action makes; raises if it is not allowed now, or not to this person."""
    state = State(row.state)
    wanted = change(action, state)
    if wanted is None and action == "release" and state in DECIDED and who.may_review(row.owner_id):
        raise RefusedError(
            "this was released already; nothing was done twice.",
            hint="nothing to do: its page is up to date.",
            code="already-released",
        )
    if wanted is None:
        shown = shown_state(who, row)
        raise RefusedError(
            f"a request that is {shown} cannot go through '{action}'.",
            hint="load its page again: another person may have been faster.",
            code="wrong-state",
        )
    require_actor(who, wanted.actor, row.owner_id)
    return wanted


def shown_state(who: Person, row: RequestRow) -> str:
    """The state of a request as this person sees it."""
    hidden = State(row.state) in HIDDEN_FROM_OWNER and not who.may_review(row.owner_id)
    return BEING_ANSWERED if hidden else row.state


def move(
    session: Session, who: Person, row: RequestRow, action: str, detail: dict[str, Any] | None = None
) -> None:
    """Take a request through one change of the table; raises if it is not allowed now, or not to this person."""
    wanted = require(who, row, action)
    row.state, row.moved_at = wanted.end.value, now()
    audit_log.append(
        session,
        who,
        action,
        request=row.name,
        detail={"from": wanted.start.value, "to": wanted.end.value, **(detail or {})},
    )
    if wanted.start != wanted.end:
        notify(session, who, row)


def may(who: Person, row: RequestRow, action: str) -> bool:
    """Whether a person could do this now."""
    wanted = change(action, State(row.state))
    if wanted is None or wanted.actor is Actor.WORKER:
        return False
    try:
        require_actor(who, wanted.actor, row.owner_id)
    except NotAllowedError:
        return False
    return True


NOT_ANSWERED = (
    "The desk cannot release an answer to this code. Why not depends on the real data, so it is not told: it may be an "
    "error, a check or the price. `understudy desk try` shows what the checks say on the synthetic data; fewer and "
    "coarser numbers about more learners have a better chance."
)
"""What a researcher reads whenever the desk itself refuses, whatever the reason: a reason could carry a bit."""
MOST_WORDS = 8_000
# Characters of question, findings and notes.
MOST_OPEN = 20
"""Requests of one person that have not come to an end."""
MOST_WAITING = 500
"""Jobs on the table."""


def create(
    desk: Desk, who: Person, data_set: str, *, question: str, code: str, shown: str = "", kind: str = ""
) -> str:
    """Make a draft, and return its name."""
    if who.role is None:
        raise UsageError("the desk itself cannot make requests.", hint="sign in.")
    with desk.database.writing() as session:
        data = data_sets.find(session, data_set)
        if data.closed:
            raise RefusedError("this data set takes no more requests.", hint="ask its custodian.")
        n_open = session.scalar(
            select(func.count()).where(RequestRow.owner_id == who.id, RequestRow.state.not_in(ENDED))
        )
        if (n_open or 0) >= MOST_OPEN:
            raise RefusedError(
                f"you have {n_open} requests open, and {MOST_OPEN} is the most.",
                hint="withdraw one, or wait until one is answered.",
            )
        _check(data, question=question, code=code, shown=shown, kind=kind)
        row = RequestRow(
            name=secrets.token_hex(8),
            data_set_id=data.id,
            owner_id=who.id,
            question=question.strip(),
            kind=kind.strip(),
            shown=shown.strip(),
            code=_one_kind_of_lines(code),
            state=State.DRAFT.value,
        )
        session.add(row)
        session.flush()
        audit_log.append(session, who, "draft", request=row.name, detail={"data set": data.name})
        return row.name


def edit(
    desk: Desk, who: Person, name: str, *, question: str, code: str, shown: str = "", kind: str = ""
) -> None:
    """Change a draft, or take up a returned request again."""
    with desk.database.writing() as session:
        row = find(session, who, name)
        _check(row.data_set, question=question, code=code, shown=shown, kind=kind)
        move(session, who, row, "edit")
        row.question, row.shown, row.kind = question.strip(), shown.strip(), kind.strip()
        row.code = _one_kind_of_lines(code)


def submit(desk: Desk, who: Person, name: str) -> None:
    """Submit a draft: it is tried on the synthetic data first."""
    with desk.database.writing() as session:
        row = find(session, who, name)
        if row.data_set.closed:
            raise RefusedError("this data set takes no more requests.", hint="ask its custodian.")
        _refuse_libraries(row)
        if asks_privately(row.code) and row.data_set.schema is None:
            raise RefusedError(
                "private questions need public bounds and categories of columns, and this data set has none.",
                hint="ask its custodian for a schema, or write an analysis: def analyze(data).",
                code="no-schema",
            )
        waiting = session.scalar(select(func.count()).where(JobRow.ended_at.is_(None))) or 0
        if waiting >= MOST_WAITING:
            raise RefusedError("too much work waits at this desk.", hint="your draft is kept; submit later.")
        move(session, who, row, "submit")
        row.note = ""
        jobs.add(session, "trial", row)


def withdraw(desk: Desk, who: Person, name: str) -> None:
    """Withdraw a request before it is decided."""
    with desk.database.writing() as session:
        row = find(session, who, name)
        move(session, who, row, "withdraw")
        jobs.cancel(session, row)


def approve(desk: Desk, who: Person, name: str) -> None:
    """Let the code run on the real data. This releases nothing."""
    with desk.database.writing() as session:
        row = find(session, who, name)
        require(who, row, "approve")
        if asks_privately(row.code):
            raise RefusedError(
                "this request asks private questions, which are answered and never run.",
                hint="load its page again, and let them be answered.",
                code="private",
            )
        move(session, who, row, "approve")
        jobs.add(session, "run", row)


def send_back(desk: Desk, who: Person, name: str, note: str) -> None:
    """Return a request with a note on what to change, which the researcher reads."""
    _decide(desk, who, name, "return", note)


def refuse(desk: Desk, who: Person, name: str, note: str) -> None:
    """Refuse a request before it ran."""
    _decide(desk, who, name, "refuse", note)


def cancel(desk: Desk, who: Person, name: str) -> None:
    """Stop a run, and look at the request again."""
    with desk.database.writing() as session:
        row = find(session, who, name)
        move(session, who, row, "cancel")
        jobs.cancel(session, row)


def _decide(desk: Desk, who: Person, name: str, action: str, note: str) -> None:
    if len(note.split()) < 2:
        raise UsageError("there is no note for the researcher.", hint="say in a sentence why.")
    if len(note) > MOST_WORDS:
        raise UsageError("the note is too long.", hint=f"{MOST_WORDS} characters are the most.")
    with desk.database.writing() as session:
        row = find(session, who, name)
        close(session, who, row, action, note)


def close(session: Session, who: Person, row: RequestRow, action: str, note: str) -> None:
    """End a request with a note, and delete what was held.

    If the desk itself refuses what was held, the researcher reads one sentence that is the same whatever the reason,
    and the reviewer's words stay in the log.
    """
    held = row.state == State.HELD
    refused = held and not _may_leave(session, row)
    move(session, who, row, action, {"words": note.strip()} if refused else None)
    row.note = NOT_ANSWERED if refused else note.strip()
    if held:
        forget_runs(session, row, trial=False)


def _may_leave(session: Session, row: RequestRow) -> bool:
    """Whether a reviewer could have released what is held."""
    run = latest_run(session, row, trial=False)
    if run is None or run.results is None:
        return False
    checks = [Check.from_json(check) for check in run.checks]
    return data_sets.policy_of(row.data_set).verdict(checks, run.prices).may_release


def _check(data: DataSetRow, *, question: str, code: str, shown: str, kind: str) -> None:
    if len(question.split()) < 3:
        raise UsageError(
            "the research question is too short: write a sentence."
            if question.strip()
            else "a request needs a research question.",
            hint="say in a sentence of at least three words what you want to know.",
        )
    for words, text in (("question", question), ("description of what the synthetic data showed", shown)):
        if len(text) > MOST_WORDS:
            raise UsageError(
                f"the {words} is too long ({len(text)} characters).", hint=f"{MOST_WORDS} are the most."
            )
    if len(kind) > 60:
        raise UsageError("the kind of analysis is too long.", hint="one or two words are enough.")
    if not code.strip():
        raise UsageError("a request needs code.", hint="`understudy desk template` prints a start.")
    whole = code + question + shown + kind
    if "\x00" in whole or any("\ud800" <= letter <= "\udfff" for letter in whole):
        raise UsageError(
            "the request contains a character that is not valid text.", hint="submit plain text."
        )
    most = data_sets.policy_of(data).most_code_bytes
    if len(code.encode("utf-8", "replace")) > most:
        raise UsageError(f"the code is longer than {most} bytes.", hint="leave out what is not needed.")


def _refuse_libraries(row: RequestRow) -> None:
    policy = data_sets.policy_of(row.data_set)
    if others := read_code(row.code, (), policy).not_allowed:
        raise RefusedError(
            f"the code imports {', '.join(others)}, which the policy of this data set does not allow.",
            hint=f"allowed are: {', '.join(policy.libraries)}.",
        )


def _one_kind_of_lines(code: str) -> str:
    # Browsers send \r\n: the same code has to have the same hash however it came.
    return code.replace("\r\n", "\n").replace("\r", "\n")
