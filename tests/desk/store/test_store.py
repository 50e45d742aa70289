"""The store: tables as the models say, a log that only grows, and one writer at a time."""

import subprocess
import sys
import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from understudy.desk.domain.people import WORKER
from understudy.desk.store import audit_log
from understudy.desk.store.database import Database
from understudy.desk.store.settings import Settings
from understudy.desk.store.tables import AttemptRow, Base, EventRow, PersonRow
from understudy.errors import DataError


@pytest.fixture
def database(tmp_path, database_url):
    opened = Database(database_url or f"sqlite:///{tmp_path / 'desk.sqlite'}")
    opened.upgrade()
    yield opened
    opened.close()


def write_log(database, n_lines=4):
    for place in range(n_lines):
        with database.writing() as session:
            audit_log.append(session, WORKER, "try", request="0" * 16, detail={"place": place, "word": "é"})


def test_migrations_make_the_tables_of_the_models(database):
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_several_processes_may_bring_the_tables_up_to_date_at_once(tmp_path, database_url, request):
    url = f"sqlite:///{tmp_path / 'new.sqlite'}"
    if database_url:
        url = request.getfixturevalue("postgresql").new(template="template1")
    code = "import sys; from understudy.desk.store.database import Database; Database(sys.argv[1]).upgrade()"
    started = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(3)]
    assert [one.wait() for one in started] == [0, 0, 0]
    database = Database(url)
    write_log(database)
    database.close()


@pytest.mark.parametrize("words", ["UPDATE events SET action = 'x'", "DELETE FROM events"])
def test_the_log_only_grows(database, words):
    write_log(database)
    with pytest.raises(DBAPIError, match="append-only"), database.writing() as session:
        session.execute(text(words))
    with database.reading() as session:
        assert audit_log.verify(session).n_events == 4


def test_an_untouched_log_verifies_and_its_newest_hash_is_known_again(database):
    write_log(database)
    with database.reading() as session:
        kept = audit_log.verify(session).newest
    write_log(database)
    with database.reading() as session:
        assert audit_log.verify(session, kept).n_events == 8


@pytest.mark.parametrize(
    "tamper",
    [
        "UPDATE events SET action = 'hold' WHERE id = 2",
        "UPDATE events SET who = 'somebody' WHERE id = 2",
        "UPDATE events SET request = NULL WHERE id = 2",
        """UPDATE events SET detail = '{"place": 9}' WHERE id = 2""",
        "UPDATE events SET at = '2020-01-01T00:00:00+00:00' WHERE id = 2",
        "DELETE FROM events WHERE id = 2",
        "DELETE FROM events WHERE id = 1",
    ],
)
def test_a_changed_or_removed_line_is_found(database, tamper):
    write_log(database)
    _without_guards(database, tamper)
    with pytest.raises(DataError, match="broken at line"), database.reading() as session:
        audit_log.verify(session)


def test_a_removed_end_is_found_by_the_hash_that_was_kept(database):
    write_log(database)
    with database.reading() as session:
        kept = audit_log.verify(session).newest
    _without_guards(database, "DELETE FROM events WHERE id = 4")
    with database.reading() as session:
        assert audit_log.verify(session).n_events == 3
        with pytest.raises(DataError, match="kept elsewhere"):
            audit_log.verify(session, kept)


def test_writers_take_turns_so_that_the_chain_has_no_forks(database):
    _at_once([lambda: write_log(database, 5)] * 6)
    with database.reading() as session:
        assert audit_log.verify(session).n_events == 30


def test_a_transaction_that_fails_changes_nothing(database):
    def fail():
        with database.writing() as session:
            session.add(AttemptRow(key="k"))
            audit_log.append(session, WORKER, "try")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with database.reading() as session:
        assert session.query(AttemptRow).count() == session.query(EventRow).count() == 0


def test_errors_of_the_database_do_not_quote_values(database):
    def one():
        return PersonRow(email="one@school.example", name="CANARY-7431", role="researcher")

    with pytest.raises(DBAPIError) as caught, database.writing() as session:
        session.add_all([one(), one()])
    assert "CANARY-7431" not in str(caught.value)


def test_the_folder_and_its_secret_are_for_their_owner(tmp_path):
    settings = Settings.write(tmp_path / "desk", 'A "desk"')
    assert settings.title == 'A "desk"'
    assert (tmp_path / "desk").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "desk" / "secret.key").stat().st_mode & 0o777 == 0o600
    assert settings.secret not in repr(settings)
    assert settings.keyed("a", "x") != settings.keyed("b", "x")
    assert Settings.write(tmp_path / "other", "x").keyed("a", "x") != settings.keyed("a", "x")


def _without_guards(database, words):
    """As somebody who can write the file."""
    with database.writing() as session:
        if database.is_sqlite:
            session.execute(text("DROP TRIGGER events_no_update"))
            session.execute(text("DROP TRIGGER events_no_delete"))
        else:
            session.execute(text("DROP TRIGGER events_stay ON events"))
        session.execute(text(words))


def _at_once(verbs):
    errors = []

    def do(verb):
        try:
            verb()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=do, args=(verb,)) for verb in verbs]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []
