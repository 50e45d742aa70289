import threading
from datetime import timedelta

import pytest
from sqlalchemy import text

from tests.desk.support.client import PASSWORD, quick_passwords
from understudy.desk.domain.people import WORKER, NotAllowedError, Person, Role
from understudy.desk.service import Desk, accounts, tokens
from understudy.desk.service.accounts import (
    MOST_OF_ACCOUNT,
    MOST_OF_ADDRESS,
    WINDOW,
    SlowDownError,
    check_password,
)
from understudy.desk.service.tokens import MOST_TOKENS
from understudy.desk.store import audit_log
from understudy.desk.store.settings import Settings
from understudy.desk.store.tables import AttemptRow, Base, InvitationRow, PersonRow
from understudy.errors import RefusedError, UsageError

HOUSE = "192.0.2.7"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    quick_passwords(monkeypatch)


@pytest.fixture
def desk(tmp_path):
    Settings.write(tmp_path / "desk", "Test desk")
    opened = Desk.open(tmp_path / "desk")
    yield opened
    opened.close()


@pytest.fixture
def custodian(desk):
    return accounts.accept(desk, accounts.first_custodian(desk, "Ann@School.example ", "Ann Lee"), PASSWORD)


@pytest.fixture
def bob(desk, custodian):
    return _invited(desk, custodian, "bob", Role.RESEARCHER)


def _invited(desk, who, name, role):
    secret = accounts.invite(desk, who, f"{name}@school.example", name.capitalize(), role)
    return accounts.accept(desk, secret, PASSWORD)


def _enter(desk, name="bob", password=PASSWORD, address=HOUSE):
    return accounts.sign_in(desk, f"{name}@school.example", password, address)


def _n_events(desk):
    with desk.database.reading() as session:
        return audit_log.verify(session).n_events


def _everything_stored(desk):
    with desk.database.reading() as session:
        return "\n".join(
            str(row)
            for table in Base.metadata.sorted_tables
            for row in session.execute(text(f'SELECT * FROM "{table.name}"'))
        )


def test_an_account_from_invitation_to_sign_out(tmp_path, database_url):
    # The one test of accounts on both databases.
    Settings.write(tmp_path / "desk", "Test desk", database=database_url)
    desk = Desk.open(tmp_path / "desk")
    ann = accounts.accept(desk, accounts.first_custodian(desk, "ann@school.example", "Ann Lee"), PASSWORD)
    bob = _invited(desk, ann, "bob", Role.REVIEWER)
    inside = _enter(desk)
    assert inside.person == bob == Person(bob.id, "Bob", Role.REVIEWER)
    assert accounts.current(desk, bob.id, inside.session, "one") == bob
    accounts.sign_out(desk, bob, "one")
    assert accounts.current(desk, bob.id, inside.session, "one") is None
    assert accounts.current(desk, bob.id, inside.session, "two") == bob
    accounts.deactivate(desk, ann, bob.id)
    assert accounts.current(desk, bob.id, inside.session, "two") is None
    with pytest.raises(NotAllowedError):
        _enter(desk)
    assert [one.name for one in accounts.people(desk, ann)] == ["Ann Lee", "Bob"]
    desk.close()


def test_the_first_custodian_is_first_until_they_came_in(desk):
    lost = accounts.first_custodian(desk, "ann@school.example", "Ann Lee")
    with pytest.raises(RefusedError):
        accounts.first_custodian(desk, "eve@school.example", "Eve")
    secret = accounts.first_custodian(desk, "ann@school.example", "Ann Lee")
    with pytest.raises(UsageError, match="no such invitation"):
        accounts.accept(desk, lost, PASSWORD)
    assert accounts.accept(desk, secret, PASSWORD).role is Role.CUSTODIAN
    with pytest.raises(RefusedError):
        accounts.first_custodian(desk, "ann@school.example", "Ann Lee")


def test_an_invitation_works_once_and_for_a_week(desk, custodian):
    secret = accounts.invite(desk, custodian, "bob@school.example", "Bob", Role.RESEARCHER)
    with desk.database.writing() as session:
        session.query(InvitationRow).filter_by(used_at=None).one().expires_at -= timedelta(days=7, seconds=1)
    with pytest.raises(UsageError, match="older than a week"):
        accounts.accept(desk, secret, PASSWORD)
    bob = accounts.people(desk, custodian)[-1]
    assert bob.invited
    second = accounts.reset(desk, custodian, bob.id)
    third = accounts.reset(desk, custodian, bob.id)
    with pytest.raises(UsageError):
        accounts.accept(desk, second, PASSWORD)
    accounts.accept(desk, third, PASSWORD)
    for secret in (third, "", "made up"):
        with pytest.raises(UsageError):
            accounts.accept(desk, secret, "another tram eats ten")
    assert _enter(desk).person.id == bob.id


def test_a_link_taken_up_twice_at_once_sets_one_password(desk, custodian):
    secret = accounts.invite(desk, custodian, "bob@school.example", "Bob", Role.RESEARCHER)
    passwords = [f"blue tram eats {number} apples" for number in range(4)]
    taken = _at_once([lambda one=one: accounts.accept(desk, secret, one) and one for one in passwords])
    won = [one for one in taken if isinstance(one, str)]
    assert len(won) == 1
    assert _enter(desk, password=won[0])


@pytest.mark.parametrize(
    "password",
    [
        "short",
        "bob@school.example",
        "bob bob bob!",
        "Robert Miller",
        "Robert.Miller2024",
        "Password123456!",
        "qwertyuiop1234",
        "correct horse battery staple",
        "aaaaaaaaaaaaaaa",
        "123456789012345",
        "abcdefghijklmno",
        "x" * 1001,
    ],
)
def test_passwords_that_are_tried_first_are_refused(password):
    with pytest.raises(UsageError) as caught:
        check_password(password, "bob@school.example", "Robert Miller")
    assert password not in str(caught.value)


def test_a_link_takes_no_easy_password_and_stays(desk, custodian):
    secret = accounts.invite(desk, custodian, "bob@school.example", "Bob", Role.RESEARCHER)
    with pytest.raises(UsageError, match="at least 12"):
        accounts.accept(desk, secret, "tram")
    assert accounts.accept(desk, secret, PASSWORD).name == "Bob"


def test_only_addresses_are_addresses(desk, custodian):
    for email in ("", "bob", "a b@c", "a@b@c", "<x>@y.z", "a@b\nc", "x" * 250 + "@y.zz"):
        with pytest.raises(UsageError, match="not an e-mail address"):
            accounts.invite(desk, custodian, email, "Bob", Role.RESEARCHER)


def test_an_address_has_one_account_however_it_is_written(desk, custodian):
    with pytest.raises(RefusedError):
        accounts.invite(desk, custodian, "ANN@school.EXAMPLE", "Ann", Role.RESEARCHER)
    assert accounts.sign_in(desk, " Ann@SCHOOL.example", PASSWORD, HOUSE).person == custodian


def test_who_cannot_come_in_hears_the_same_words_after_the_same_work(desk, custodian, bob, monkeypatch):
    accounts.invite(desk, custodian, "new@school.example", "New", Role.RESEARCHER)
    closed = _invited(desk, custodian, "closed", Role.RESEARCHER)
    accounts.deactivate(desk, custodian, closed.id)
    monkeypatch.undo()
    assert "m=65536,t=3,p=4" in accounts._NOBODYS  # as RFC 9106 recommends, for known and unknown alike
    quick_passwords(monkeypatch)
    compared, verify = [], accounts._HASHES.verify_and_update

    def counted(password, hashed):
        compared.append(hashed)
        return verify(password, hashed)

    monkeypatch.setattr(accounts._HASHES, "verify_and_update", counted)
    told = set()
    for name, password in (("bob", "wrong"), ("nobody", PASSWORD), ("new", ""), ("closed", PASSWORD)):
        with pytest.raises(NotAllowedError) as caught:
            _enter(desk, name, password)
        told.add(str(caught.value))
    assert len(told) == 1
    assert len(compared) == 4
    assert len({one.rpartition("$")[0].rpartition("$")[0] for one in compared}) == 1  # same cost


def test_ten_wrong_passwords_close_the_door_of_one_account_for_a_while(desk, bob):
    for attempt in range(MOST_OF_ACCOUNT):
        with pytest.raises(NotAllowedError):
            _enter(desk, password="wrong", address=f"192.0.2.{attempt}")
    for name in ("bob", "BOB"):
        with pytest.raises(SlowDownError, match="too many"):
            _enter(desk, name)
    # A name that nobody has is closed in the same way.
    for _ in range(MOST_OF_ACCOUNT):
        with pytest.raises(NotAllowedError):
            _enter(desk, "nobody")
    with pytest.raises(SlowDownError):
        _enter(desk, "nobody")
    assert _enter(desk, "ann").person.name == "Ann Lee"
    assert "192.0.2" not in _everything_stored(desk)
    _pass_time(desk)
    assert _enter(desk).person == bob
    with desk.database.reading() as session:
        assert session.query(AttemptRow).count() == 0


def test_an_address_that_guesses_at_many_accounts_has_to_wait(desk, bob, monkeypatch):
    monkeypatch.setattr(accounts, "MOST_OF_ADDRESS", 6)
    for number in range(6):
        with pytest.raises(NotAllowedError):
            _enter(desk, f"guess{number}")
    with pytest.raises(SlowDownError):
        _enter(desk)
    assert _enter(desk, address="192.0.2.8")
    assert MOST_OF_ADDRESS > 6


def test_many_guesses_at_once_are_not_more_than_many_after_one_another(desk, bob):
    told = _at_once([lambda: _enter(desk, password="wrong")] * 16)
    assert sum(isinstance(one, SlowDownError) for one in told) == 16 - MOST_OF_ACCOUNT
    assert sum(type(one) is NotAllowedError for one in told) == MOST_OF_ACCOUNT


def test_coming_in_forgets_earlier_mistakes(desk, bob):
    for _ in range(2):
        for _ in range(MOST_OF_ACCOUNT - 1):
            with pytest.raises(NotAllowedError):
                _enter(desk, password="wrong")
        _enter(desk)


def test_a_new_password_ends_other_sessions(desk, bob):
    before = _enter(desk).session
    with pytest.raises(UsageError, match="not your current password"):
        accounts.change_password(desk, bob, "wrong", "green tram eats ten", HOUSE)
    with pytest.raises(UsageError, match="first that an attacker would try"):
        accounts.change_password(desk, bob, PASSWORD, "Password123456!", HOUSE)
    number = accounts.change_password(desk, bob, PASSWORD, "green tram eats ten", HOUSE)
    assert accounts.current(desk, bob.id, before) is None
    assert accounts.current(desk, bob.id, number) == bob
    with pytest.raises(NotAllowedError):
        _enter(desk)
    assert _enter(desk, password="green tram eats ten").session == number
    accounts.sign_out_everywhere(desk, bob)
    assert accounts.current(desk, bob.id, number) is None


def test_guessing_the_old_password_in_a_stolen_session_is_slowed_down_too(desk, bob):
    for _ in range(MOST_OF_ACCOUNT):
        with pytest.raises(UsageError):
            accounts.change_password(desk, bob, "wrong", "green tram eats ten", HOUSE)
    with pytest.raises(SlowDownError):
        accounts.change_password(desk, bob, PASSWORD, "green tram eats ten", HOUSE)


def test_a_desk_keeps_a_custodian_who_came_in(desk, custodian, bob):
    accounts.invite(desk, custodian, "cy@school.example", "Cy", Role.CUSTODIAN)  # never comes
    for last in (accounts.deactivate, lambda *who: accounts.set_role(*who, Role.RESEARCHER)):
        with pytest.raises(RefusedError, match="last custodian"):
            last(desk, custodian, custodian.id)
    accounts.set_role(desk, custodian, bob.id, Role.CUSTODIAN)
    second = Person(bob.id, bob.name, Role.CUSTODIAN)
    told = _at_once(
        [
            lambda: accounts.deactivate(desk, second, custodian.id),
            lambda: accounts.set_role(desk, custodian, bob.id, Role.REVIEWER),
        ]
    )
    assert sorted(one is None for one in told) == [False, True]


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.RESEARCHER])
def test_only_custodians_manage_people(desk, custodian, role):
    who = _invited(desk, custodian, "bob", role)
    before = _n_events(desk)
    for verb in (
        lambda: accounts.invite(desk, who, "x@school.example", "X", Role.RESEARCHER),
        lambda: accounts.reset(desk, who, custodian.id),
        lambda: accounts.set_role(desk, who, who.id, Role.CUSTODIAN),
        lambda: accounts.deactivate(desk, who, custodian.id),
        lambda: accounts.reactivate(desk, who, who.id),
        lambda: accounts.people(desk, who),
    ):
        with pytest.raises(NotAllowedError):
            verb()
    assert _n_events(desk) == before


def test_every_change_is_one_line_of_the_log(desk, custodian, bob):
    session = _enter(desk).session
    verbs = [
        lambda: accounts.invite(desk, custodian, "x@school.example", "X", Role.RESEARCHER),
        lambda: accounts.reset(desk, WORKER, bob.id),
        lambda: accounts.set_role(desk, custodian, bob.id, Role.REVIEWER),
        lambda: accounts.deactivate(desk, custodian, bob.id),
        lambda: accounts.reactivate(desk, custodian, bob.id),
        lambda: accounts.sign_out(desk, bob, "one"),
        lambda: accounts.sign_out_everywhere(desk, bob),
        lambda: accounts.change_password(desk, bob, PASSWORD, "green tram eats ten", HOUSE),
        lambda: tokens.make_token(desk, bob, "script"),
        lambda: tokens.revoke_token(desk, bob, tokens.list_tokens(desk, bob)[0].id),
        lambda: tokens.feed_address(desk, bob),
        lambda: accounts.enter_by_subject(desk, "school bob", "bob@school.example"),
        lambda: _enter(desk, password="green tram eats ten"),
    ]
    for verb in verbs:
        before = _n_events(desk)
        verb()
        assert _n_events(desk) == before + 1
    assert accounts.current(desk, bob.id, session) is None
    # Nothing in the log that would have to be deleted later.
    with desk.database.reading() as stored:
        assert "@school" not in str(stored.execute(text("SELECT * FROM events")).all())


def test_no_secret_is_kept_as_it_is(desk, custodian, bob):
    secrets = [
        accounts.invite(desk, custodian, "x@school.example", "X", Role.RESEARCHER),
        tokens.make_token(desk, bob, "script"),
        tokens.feed_address(desk, bob),
        PASSWORD,
        "subject-4711",
    ]
    accounts.enter_by_subject(desk, "subject-4711", "bob@school.example")
    stored = _everything_stored(desk)
    assert "bob@school.example" in stored
    assert [one for one in secrets if one in stored] == []


def test_a_token_stands_for_its_maker_as_a_researcher(desk, custodian, bob):
    token = tokens.make_token(desk, custodian, "  my   script ")
    assert tokens.by_token(desk, token) == Person(custodian.id, custodian.name, Role.RESEARCHER)
    listed = tokens.list_tokens(desk, custodian)
    assert [one.name for one in listed] == ["my script"]
    assert listed[0].used is not None
    for wrong in ("", "desk_", token[:-1], token + "x"):
        assert tokens.by_token(desk, wrong) is None
    with pytest.raises(UsageError, match="no such token"):
        tokens.revoke_token(desk, bob, listed[0].id)
    tokens.revoke_token(desk, custodian, listed[0].id)
    assert tokens.by_token(desk, token) is None
    assert tokens.list_tokens(desk, custodian) == []


def test_tokens_and_feeds_of_a_closed_account_lead_nowhere(desk, custodian, bob):
    token, feed = tokens.make_token(desk, bob, "script"), tokens.feed_address(desk, bob)
    assert tokens.by_feed(desk, feed) == bob
    accounts.deactivate(desk, custodian, bob.id)
    assert tokens.by_token(desk, token) is None
    assert tokens.by_feed(desk, feed) is None
    accounts.reactivate(desk, custodian, bob.id)
    newer = tokens.feed_address(desk, bob)
    assert tokens.by_feed(desk, feed) is None
    assert tokens.by_feed(desk, newer) == bob


def test_a_person_has_few_tokens(desk, bob):
    for number in range(MOST_TOKENS):
        tokens.make_token(desk, bob, f"number {number}")
    with pytest.raises(RefusedError, match="the most"):
        tokens.make_token(desk, bob, "one more")
    for name in ("", "   ", "x" * 101, "a\x00b"):
        with pytest.raises(UsageError):
            tokens.make_token(desk, bob, name)


def test_single_sign_on_lets_in_who_was_invited_and_then_goes_by_the_subject(desk, custodian):
    link = accounts.invite(desk, custodian, "bob@school.example", "Bob", Role.REVIEWER)
    for subject, email in (("s1", None), ("s1", "nobody@school.example"), ("s1", "")):
        with pytest.raises(NotAllowedError, match="you have not been invited"):
            accounts.enter_by_subject(desk, subject, email)
    bob = accounts.enter_by_subject(desk, "s1", "Bob@school.example").person
    assert bob.role is Role.REVIEWER
    with pytest.raises(UsageError):
        accounts.accept(desk, link, PASSWORD)
    # The address at the provider may change hands: another subject with it is somebody else.
    with pytest.raises(NotAllowedError):
        accounts.enter_by_subject(desk, "s2", "bob@school.example")
    assert accounts.enter_by_subject(desk, "s1", None).person == bob
    with pytest.raises(RefusedError, match="no password"):
        accounts.change_password(desk, bob, "", PASSWORD, HOUSE)
    accounts.deactivate(desk, custodian, bob.id)
    with pytest.raises(NotAllowedError):
        accounts.enter_by_subject(desk, "s1", "bob@school.example")


def _pass_time(desk):
    with desk.database.writing() as session:
        for row in session.query(AttemptRow):
            row.at -= WINDOW + timedelta(seconds=1)
    with desk.database.reading() as session:
        assert session.query(PersonRow).count()


def _at_once(verbs):
    """What each of several calls gave, or raised, when they begin together."""
    gate, told = threading.Barrier(len(verbs)), [None] * len(verbs)

    def call(place, verb):
        gate.wait()
        try:
            told[place] = verb()
        except (RefusedError, UsageError) as error:
            told[place] = error

    threads = [threading.Thread(target=call, args=one) for one in enumerate(verbs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told
