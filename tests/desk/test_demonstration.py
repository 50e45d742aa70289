"""The demonstration holds a request in every state, made by real verbs, and people can come in."""

import pytest
from sqlalchemy import select

from tests.desk.support.fixtures import InProcess, make_rough
from understudy.desk.demonstration import SIGN_INS, fill
from understudy.desk.domain.people import Role
from understudy.desk.domain.policy import Grounds, Policy
from understudy.desk.domain.states import State
from understudy.desk.service import Desk, accounts, verification, views
from understudy.desk.store import jobs
from understudy.desk.store.tables import RequestRow

# Few learners and shadows, for speed: then checks fail that pass with 120.
LENIENT = Policy(
    n_shadows=30,
    mu_limit=50.0,
    advantage_limit=1.0,
    minimum_learners=2,
    share_of_learners=10.0,
    may_override=(
        "learners",
        "dominance",
        "freedom",
        "extremes",
        "individuals",
        "consistency",
        "differencing",
    ),
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demonstration") / "desk"
    with pytest.MonkeyPatch.context() as patch:
        make_rough(patch.setattr)
        signs = fill(folder, n_learners=30, policy=LENIENT, open_sandbox=InProcess)
    desk = Desk.open(folder)
    yield desk, signs, folder
    desk.close()


def test_a_request_is_in_every_state_and_stays_there(shown):
    desk, _, _ = shown
    with desk.database.reading() as session:
        assert set(session.scalars(select(RequestRow.state))) == {state.value for state in State}
    # A worker that comes by finds nothing to do.
    with desk.database.writing() as session:
        assert jobs.take(session) is None


def test_five_people_can_sign_in(shown):
    desk, signs, folder = shown
    assert sorted(one.role.value for one in signs) == sorted(
        [Role.CUSTODIAN, Role.REVIEWER, Role.REVIEWER, Role.RESEARCHER, Role.RESEARCHER]
    )
    for one in signs:
        assert accounts.sign_in(desk, one.email, one.password, "127.0.0.1").person.name == one.name
        assert one.password in (folder / SIGN_INS).read_text()
    assert (folder / SIGN_INS).stat().st_mode & 0o077 == 0


def test_what_is_held_can_be_decided_by_its_price(shown):
    """No price is old: a reviewer who tries the demonstration can release."""
    desk, _, _ = shown
    reviewer = accounts.by_email(desk, "rosa@desk.example")
    held = [one.name for one in views.requests(desk, reviewer) if one.state == State.HELD.value]
    assert len(held) == 2
    for name in held:
        output = views.request(desk, reviewer, name).held
        assert not output.verdict.has(Grounds.OUT_OF_DATE)
        assert output.prices is not None


def test_its_books_agree(shown):
    assert verification.verify(shown[0]).n_releases == 2
