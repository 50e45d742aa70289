"""Who can do what when: every person, every state and every verb, against the one table of changes."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import pytest

from tests.desk.support.fixtures import MEAN, PRIVATE, REASON, fill
from understudy.desk.domain.people import WORKER, NotAllowedError, Role, may_see, require_actor, require_role
from understudy.desk.domain.states import (
    BEING_ANSWERED,
    CHANGES,
    HIDDEN_FROM_OWNER,
    Actor,
    State,
    actions_from,
    change,
)
from understudy.desk.service import feedback, private_answers, releases, requests
from understudy.desk.store.database import Database
from understudy.desk.store.tables import EventRow, RequestRow
from understudy.errors import RefusedError, UsageError

ACTIONS = tuple(dict.fromkeys(one.action for one in CHANGES))
WORDS = "please look at this again"
VERBS = {
    "edit": lambda desk, who, name: requests.edit(desk, who, name, question="What about it?", code=MEAN),
    "submit": requests.submit,
    "withdraw": requests.withdraw,
    "return": lambda desk, who, name: requests.send_back(desk, who, name, WORDS),
    "refuse": lambda desk, who, name: requests.refuse(desk, who, name, WORDS),
    "approve": requests.approve,
    "answer": private_answers.approve,
    "cancel": requests.cancel,
    "run again": releases.run_again,
    "withhold": releases.withhold,
    "release": lambda desk, who, name: releases.decide(desk, who, name, REASON),
    "report": lambda desk, who, name: feedback.report(desk, who, name, 0.5),
}


class Rehearsed(Database):
    """A database in which every transaction is taken back at its end."""

    @contextmanager
    def writing(self):
        with super().writing() as session:
            yield session
            session.flush()
            session.rollback()


def is_actor(person, actor, owner):
    """The rule in other words than `permissions` has it."""
    if actor is Actor.WORKER:
        return person is WORKER
    if actor is Actor.OWNER:
        return person == owner
    return person.role in (Role.REVIEWER, Role.CUSTODIAN) and person != owner


def test_every_state_can_be_reached_and_every_end_is_one():
    reached, todo = set(), [State.DRAFT]
    while todo:
        state = todo.pop()
        reached.add(state)
        todo += [one.end for one in actions_from(state) if one.end not in reached]
    assert reached == set(State)
    ends = {state for state in State if not actions_from(state)}
    assert ends == {State.REFUSED, State.WITHHELD, State.FEEDBACK, State.WITHDRAWN}


def test_an_action_leads_from_a_state_to_one_state_only():
    assert len({(one.action, one.start) for one in CHANGES}) == len(CHANGES)


def test_nothing_is_released_past_a_reviewer_and_the_worker():
    into = [one for one in CHANGES if one.end is State.RELEASED]
    assert [(one.start, one.actor) for one in into] == [(State.RELEASING, Actor.WORKER)]
    into = [one for one in CHANGES if one.end is State.RELEASING]
    # Without a reviewer only private questions whose data set's policy says so, straight from their trial.
    assert {(one.action, one.start, one.actor) for one in into} == {
        ("answer", State.TRIAL, Actor.WORKER),
        ("answer", State.IN_REVIEW, Actor.REVIEWER),
        ("release", State.HELD, Actor.REVIEWER),
    }
    into = [one for one in CHANGES if one.end is State.APPROVED]
    assert {one.actor for one in into} == {Actor.REVIEWER}


@pytest.mark.parametrize("owner_role", list(Role))
@pytest.mark.parametrize("asks", ["analysis", "private questions"])
def test_exactly_the_table_is_allowed(tmp_path, owner_role, asks):
    """All persons x all states x all actions; the verbs that people have and the worker's moves."""
    small = fill(tmp_path, schema=True)
    name = small.held() if asks == "analysis" else small.in_review(PRIVATE)
    # Code is approved to run, private questions are answered; not the other way round.
    never = "answer" if asks == "analysis" else "approve"
    desk = replace(small.desk, database=Rehearsed(small.desk.database.url))
    owner = {
        Role.RESEARCHER: small.researcher,
        Role.REVIEWER: small.reviewer,
        Role.CUSTODIAN: small.custodian,
    }[owner_role]
    _set(small, name, owner_id=owner.id)
    tried = 0
    for state in State:
        _set(small, name, state=state.value)
        for action, person in product(ACTIONS, [*small.people, WORKER]):
            wanted = change(action, state)
            allowed = wanted is not None and is_actor(person, wanted.actor, owner)
            # Of private questions nothing is ever held.
            allowed = allowed and action != never and (asks == "analysis" or action != "release")
            found = _goes(desk, person, name, action)
            assert found == allowed, (state, action, person)
            tried += 1
    assert tried == len(State) * len(ACTIONS) * 6
    assert small.state(name) == State.WITHDRAWN
    desk.close()


def test_verbs_for_people_are_those_of_the_table():
    assert {one.action for one in CHANGES if one.actor is not Actor.WORKER} == set(VERBS)


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.CUSTODIAN])
def test_nobody_reviews_their_own_request(small, role):
    own = small.reviewer if role is Role.REVIEWER else small.custodian
    name = small.in_review(who=own)
    with pytest.raises(NotAllowedError, match="own request"):
        requests.approve(small.desk, own, name)
    requests.approve(small.desk, small.second_reviewer, name)
    small.work()
    with pytest.raises(NotAllowedError, match="own request"):
        releases.decide(small.desk, own, name, REASON)
    assert small.state(name) == State.HELD


def test_a_change_and_its_line_are_one(small):
    name = small.draft()
    requests.submit(small.desk, small.researcher, name)
    with pytest.raises(RefusedError):
        requests.submit(small.desk, small.researcher, name)
    with small.desk.database.reading() as session:
        lines = session.query(EventRow).filter_by(request=name).order_by(EventRow.id).all()
        assert [line.action for line in lines] == ["draft", "submit"]
        assert lines[1].detail == {"from": "draft", "to": "submitted"}
        assert lines[1].who == f"{small.researcher.name} ({small.researcher.id})"


def test_a_refusal_does_not_tell_a_researcher_what_happens_inside(small):
    name = small.held()
    for state in HIDDEN_FROM_OWNER:
        _set(small, name, state=state.value)
        with pytest.raises(RefusedError) as caught:
            requests.withdraw(small.desk, small.researcher, name)
        assert state.value not in str(caught.value)
        assert BEING_ANSWERED in str(caught.value)


def test_a_reviewer_does_not_learn_what_happens_to_their_own_request(small):
    name = small.held(who=small.second_reviewer)
    with pytest.raises(RefusedError) as caught:
        requests.withdraw(small.desk, small.second_reviewer, name)
    assert BEING_ANSWERED in str(caught.value)


def test_others_do_not_learn_that_a_request_exists(small):
    name = small.draft()
    with pytest.raises(UsageError, match="no such request"), small.desk.database.reading() as session:
        requests.find(session, small.second_researcher, name)
    # A draft is its author's alone; what was handed in is seen by those who review.
    for person in small.people:
        owner, reviews = person == small.researcher, person.role is not Role.RESEARCHER
        assert may_see(person, small.researcher.id, State.DRAFT) == owner
        assert may_see(person, small.researcher.id, State.SUBMITTED) == (owner or reviews)


def test_roles_are_asked_for():
    from understudy.desk.domain.people import Person

    with pytest.raises(NotAllowedError, match="custodian"):
        require_role(Person(1, "R", Role.REVIEWER), Role.CUSTODIAN)
    with pytest.raises(NotAllowedError):
        require_actor(Person(1, "R", Role.REVIEWER), Actor.WORKER, 2)


def _set(filled, name, **values):
    with filled.desk.database.writing() as session:
        session.query(RequestRow).filter_by(name=name).update(values)


def _goes(desk, person, name, action):
    """By the verb that people have for it, or as the worker moves a request."""
    try:
        if action in VERBS:
            VERBS[action](desk, person, name)
        else:
            with desk.database.writing() as session:
                requests.move(session, person, requests.find(session, WORKER, name), action)
    except (RefusedError, UsageError):
        return False
    return True
