"""The store: tables as the models say, a log that only grows, and one writer at a time."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, select, text
from sqlalchemy.exc import DBAPIError

from tests.desk.support.fixtures import MEAN, OTHER, REASON, fill
from understudy.desk.domain.people import WORKER
from understudy.desk.service import Desk, data_sets, releases, views
from understudy.desk.service.verification import verify
from understudy.desk.store import audit_log
from understudy.desk.store.database import Database
from understudy.desk.store.settings import Settings
from understudy.desk.store.tables import AttemptRow, Base, EventRow, PersonRow, RunRow
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


def at_first_revision(url):
    """A database as the first desks made it."""
    database = Database(url)
    database.upgrade("0001")
    return database


def add_runs(database, **runs):
    """Runs of a request as raw rows, by the bytes of their probes and shadows."""
    tables = MetaData()
    tables.reflect(database.engine)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    person = {
        "id": 1,
        "email": "a@school.example",
        "name": "A",
        "role": "researcher",
        "active": True,
        "session": 0,
    }
    data = {
        **{
            "id": 1,
            "name": "d",
            "title": "d",
            "description": "",
            "real": "",
            "synthetic": "",
            "learner": "learner",
        },
        **{"columns": [], "n_learners": 1, "policy": {}, "ledger": "", "population": "", "simulated": True},
        **{"seed": 1, "version": 1, "closed": False, "made_at": moment},
    }
    request = {
        **{
            "id": 1,
            "name": "r",
            "data_set_id": 1,
            "owner_id": 1,
            "question": "",
            "kind": "",
            "shown": "",
            "code": "",
        },
        **{"state": "released", "note": "", "made_at": moment, "moved_at": moment},
    }
    run = {
        **{
            "request_id": 1,
            "trial": False,
            "code_hash": "",
            "data_hash": "",
            "environment": {},
            "data_version": 1,
        },
        **{"checks": [], "support": {}, "basis": [], "at": moment},
    }
    with database.engine.begin() as connection:
        connection.execute(tables.tables["people"].insert(), {**person, "made_at": moment})
        connection.execute(tables.tables["data_sets"].insert(), data)
        connection.execute(tables.tables["requests"].insert(), request)
        for place, (probes, shadows) in enumerate(runs.values(), 1):
            connection.execute(
                tables.tables["runs"].insert(), {"id": place, **run, "probes": probes, "shadows": shadows}
            )


def test_a_desk_of_the_first_revision_is_brought_up_to_date(tmp_path, database_url, request):
    url = f"sqlite:///{tmp_path / 'old.sqlite'}"
    if database_url:
        url = request.getfixturevalue("postgresql").new(template="template1")
    database = at_first_revision(url)
    units = {"mean / of all": 0.01, "n": 0.0, "é": 1e-07}
    add_runs(
        database,
        measured_again=(json.dumps({"units": units}).encode(), None),
        own=(b"PK\x03\x04 probes", b"PK\x03\x04 shadows"),
        too_large_to_price=(b"PK\x03\x04 probes", None),
        deleted=(None, None),
    )
    database.upgrade()
    with database.reading() as session:
        rows = session.query(RunRow).order_by(RunRow.id).all()
        kept = [(row.kept_units, row.probes, row.shadows) for row in rows]
        assert kept == [
            (units, None, None),
            (None, b"PK\x03\x04 probes", b"PK\x03\x04 shadows"),
            (None, b"PK\x03\x04 probes", None),
            (None, None, None),
        ]
        assert list(rows[0].kept_units) == list(units)
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    database.close()


def test_a_desk_of_the_first_revision_goes_on_with_its_requests(small, tmp_path):
    """Its rows are written as they were then; a release that was measured again is counted in the next price."""
    small.released()
    data_sets.withdraw_learner(small.desk, small.custodian, small.data_set, "simulated-07")
    waiting = small.held(OTHER)
    new, old = MetaData(), MetaData()
    new.reflect(small.desk.database.engine)
    database = at_first_revision(f"sqlite:///{tmp_path / 'old.sqlite'}")
    old.reflect(database.engine)
    with small.desk.database.engine.connect() as source, database.engine.begin() as target:
        for table in old.sorted_tables:
            rows = [dict(row._mapping) for row in source.execute(new.tables[table.name].select())]
            for row in rows if table.name == "runs" else ():
                if (units := row.pop("kept_units")) is not None:
                    row["probes"] = json.dumps({"units": units}).encode()
            if rows and table.name != "alembic_version":
                target.execute(table.insert(), rows)
    small.desk.close()
    database.close()
    (tmp_path / "old.sqlite").replace(small.desk.settings.folder / "desk.sqlite")
    for left in small.desk.settings.folder.glob("desk.sqlite-*"):
        left.unlink()
    upgraded = replace(small, desk=Desk.open(small.desk.settings.folder))
    releases.decide(upgraded.desk, upgraded.reviewer, waiting, REASON)
    upgraded.work()
    assert upgraded.state(waiting) == "released"
    # The learner who left is still out: what was kept of the first release is enough to measure it.
    data_sets.withdraw_learner(upgraded.desk, upgraded.custodian, upgraded.data_set, "simulated-08")
    third = upgraded.held(MEAN.replace("evening_01", "evening_02"))
    held = views.request(upgraded.desk, upgraded.reviewer, third).held
    assert held.prices["together"]["n_outputs"] == 3
    assert verify(upgraded.desk).n_releases == 2
    upgraded.desk.close()


def test_a_desk_of_before_private_questions_loses_nothing_and_can_answer_them(tmp_path):
    """A database of the revision before, with a release and a held output in it, as that version wrote them."""
    filled = fill(tmp_path)
    kept = filled.released()
    waiting = filled.held(OTHER)
    seen = views.certificate(
        filled.desk, views.request(filled.desk, filled.researcher, kept).certificate or ""
    )
    new, old = MetaData(), MetaData()
    new.reflect(filled.desk.database.engine)
    database = Database(f"sqlite:///{tmp_path / 'old.sqlite'}")
    database.upgrade("0002")
    old.reflect(database.engine)
    known = {(table, column) for table in ("data_sets", "runs") for column in ("schema", "private")}
    assert not any(column in old.tables[table].columns for table, column in known)
    n_rows = {}
    with filled.desk.database.engine.connect() as source, database.engine.begin() as target:
        for table in old.sorted_tables:
            columns = [new.tables[table.name].columns[one.name] for one in table.columns]
            rows = [dict(row._mapping) for row in source.execute(select(*columns))]
            for row in rows if table.name == "data_sets" else ():
                # Its policy did not have these lines.
                row["policy"] = {k: v for k, v in row["policy"].items() if not k.startswith("private_")}
            for row in rows if table.name == "runs" else ():
                if row["prices"]:
                    row["prices"]["published"].pop("private_mu")
            if rows and table.name != "alembic_version":
                target.execute(table.insert(), rows)
                n_rows[table.name] = len(rows)
    filled.desk.close()
    database.close()
    (tmp_path / "old.sqlite").replace(filled.desk.settings.folder / "desk.sqlite")
    for left in filled.desk.settings.folder.glob("desk.sqlite-*"):
        left.unlink()
    upgraded = replace(filled, desk=Desk.open(filled.desk.settings.folder))
    with upgraded.desk.database.reading() as session:
        for name, n in n_rows.items():
            assert session.execute(text(f"SELECT count(*) FROM {name}")).scalar() == n
    assert views.certificate(upgraded.desk, seen["certificate"]) == seen
    assert verify(upgraded.desk).n_releases == 1
    releases.decide(upgraded.desk, upgraded.reviewer, waiting, REASON)
    upgraded.work()
    data_sets.set_schema(
        upgraded.desk, upgraded.custodian, upgraded.data_set, tmp_path / "data" / "cohort.toml"
    )
    upgraded.answered()
    assert verify(upgraded.desk).n_releases == 3
    upgraded.desk.close()
