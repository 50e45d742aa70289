"""A backup is a whole desk: restored, its log verifies and its releases agree with the ledger."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.desk.support.fixtures import OTHER, PRIVATE, REASON, fill
from understudy.core.privacy.ledger import Ledger
from understudy.desk.service import private_answers, releases, views
from understudy.desk.service.backup import back_up, restore
from understudy.desk.service.verification import verify
from understudy.desk.store.tables import DataSetRow
from understudy.errors import DataError, MissingError, UsageError


def test_a_restored_desk_goes_on(small, tmp_path):
    released = small.released()
    held = small.held(OTHER)
    shown = views.request(small.desk, small.researcher, released)
    kept = verify(small.desk)
    back_up(small.desk, tmp_path / "desk.tar.gz")
    assert (tmp_path / "desk.tar.gz").stat().st_mode & 0o777 == 0o600

    desk = restore(tmp_path / "desk.tar.gz", tmp_path / "restored")
    assert verify(desk, kept.newest) == kept
    assert views.request(desk, small.researcher, released) == shown
    assert (tmp_path / "restored" / "secret.key").stat().st_mode & 0o777 == 0o600
    # It has its own ledger, and what waits can be decided.
    small.desk = desk
    releases.decide(desk, small.second_reviewer, held, REASON)
    small.work()
    assert small.state(held) == "released"
    assert verify(desk).n_releases == 2
    assert len(Ledger(tmp_path / "restored" / "understudy.ledger").entries()) == 2
    assert len(Ledger(tmp_path / "desk" / "understudy.ledger").entries()) == 1
    desk.close()


def test_a_ledger_that_is_there_is_not_overwritten(small, tmp_path):
    elsewhere = tmp_path / "data" / "understudy.ledger"
    with small.desk.database.writing() as session:
        session.query(DataSetRow).update({"ledger": str(elsewhere)})
    name = small.held()
    back_up(small.desk, tmp_path / "desk.tar.gz")
    releases.decide(small.desk, small.reviewer, name, REASON)
    small.work()
    desk = restore(tmp_path / "desk.tar.gz", tmp_path / "restored")
    assert len(Ledger(elsewhere).entries()) == 1
    with pytest.raises(DataError, match="the desk does not know it"):
        verify(desk)
    desk.close()


def test_a_private_answer_that_left_after_the_backup_is_charged_again(tmp_path):
    """The restored desk draws new noise, and both answers may have been seen."""
    filled = fill(tmp_path, schema=True)
    elsewhere = tmp_path / "data" / "understudy.ledger"
    with filled.desk.database.writing() as session:
        session.query(DataSetRow).update({"ledger": str(elsewhere)})
    name = filled.submitted(PRIVATE)
    filled.work()
    private_answers.approve(filled.desk, filled.reviewer, name)
    back_up(filled.desk, tmp_path / "desk.tar.gz")
    filled.work()
    first = views.request(filled.desk, filled.researcher, name).private.answers
    filled.desk.close()

    filled.desk = restore(tmp_path / "desk.tar.gz", tmp_path / "restored")
    filled.work()
    assert views.request(filled.desk, filled.researcher, name).private.answers != first
    assert len({entry.card for entry in Ledger(elsewhere).entries()}) == 2
    filled.desk.close()


def test_a_ledger_outside_is_written_only_if_that_is_said(small, tmp_path):
    elsewhere = tmp_path / "school" / "understudy.ledger"
    elsewhere.parent.mkdir()
    with small.desk.database.writing() as session:
        session.query(DataSetRow).update({"ledger": str(elsewhere)})
    small.released()
    back_up(small.desk, tmp_path / "desk.tar.gz")
    elsewhere.unlink()
    with pytest.raises(UsageError, match=str(elsewhere)):
        restore(tmp_path / "desk.tar.gz", tmp_path / "restored")
    assert not (tmp_path / "restored").exists()
    assert not elsewhere.exists()
    desk = restore(tmp_path / "desk.tar.gz", tmp_path / "restored", ledgers_too=True)
    assert verify(desk).n_releases == 1
    desk.close()


@pytest.mark.parametrize(
    ("place", "target", "content"),
    [
        ("ledgers/9.ledger", "home/autostart", None),
        ("ledgers/9.ledger", "home/evil.ledger", b"evil = 1\n"),
        ("ledgers/9.ledger", "desk/../home/autostart", None),
        ("ledgers/9.ledger", "relative", None),
        ("../stolen", "home/stolen.ledger", None),
        ("ledgers/../../out", "home/out.ledger", None),
        ("/etc/hostname", "home/stolen.ledger", None),
        ("home/link", "home/link.ledger", "link"),
        ("ledgers/9.ledger", "home/link.ledger", "link"),
        ("ledgers/9.ledger", "home/stolen.ledger", "listed only"),
    ],
)
def test_a_crafted_backup_writes_and_reads_nothing_elsewhere(small, tmp_path, place, target, content):
    with small.desk.database.reading() as session:
        Ledger(Path(session.query(DataSetRow.ledger).scalar())).set_limit("somebody", 1.0)
    back_up(small.desk, tmp_path / "desk.tar.gz")
    (tmp_path / "outside").write_bytes(b"SQLite format 3\x00 of somebody else")
    before = sorted(tmp_path.rglob("*"))
    with tarfile.open(tmp_path / "desk.tar.gz") as old:
        files = {member.name: old.extractfile(member).read() for member in old}
    contents = json.loads(files.pop("contents.json"))
    given = content if isinstance(content, bytes) else files["ledgers/1.ledger"]
    contents["files"][place] = hashlib.sha256(given).hexdigest()
    contents["ledgers"][place] = target if target == "relative" else f"{tmp_path}/{target}"
    with tarfile.open(tmp_path / "evil.tar.gz", "w:gz") as new:
        for name, data in {"contents.json": json.dumps(contents).encode(), **files}.items():
            new.addfile(_member(name, size=len(data)), io.BytesIO(data))
        if content == "link":
            new.addfile(_member(place, type=tarfile.SYMTYPE, linkname=str(tmp_path / "outside")))
        elif content != "listed only":
            new.addfile(_member(place, size=len(given)), io.BytesIO(given))
    with pytest.raises(DataError, match=r"not a backup|not a ledger"):
        restore(tmp_path / "evil.tar.gz", tmp_path / "restored", ledgers_too=True)
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "evil.tar.gz"])


def test_a_restored_desk_has_its_own_database(tmp_path):
    made = fill(tmp_path, database=f"sqlite:///{tmp_path}/elsewhere.sqlite")
    made.released()
    back_up(made.desk, tmp_path / "desk.tar.gz")
    desk = restore(tmp_path / "desk.tar.gz", tmp_path / "restored")
    assert Path(desk.database.engine.url.database).parent == tmp_path / "restored"
    assert verify(desk).n_releases == 1
    for one in (made.desk, desk):
        one.close()


def test_postgresql_is_dumped_and_restored(postgresql, tmp_path):
    made = fill(tmp_path, database=postgresql.new())
    made.released()
    kept = verify(made.desk)
    back_up(made.desk, tmp_path / "desk.tar.gz")
    # The database of the settings is not empty: nothing is mixed, and no desk is left behind.
    with pytest.raises(MissingError, match="pg_restore"):
        restore(tmp_path / "desk.tar.gz", tmp_path / "restored")
    assert not (tmp_path / "restored" / "desk.toml").exists()
    made.desk.close()
    name = made.desk.database.engine.url.database
    postgresql.empty(name)
    desk = restore(tmp_path / "desk.tar.gz", tmp_path / "again")
    assert verify(desk, kept.newest) == kept
    desk.close()


def test_what_is_no_backup_is_told(small, tmp_path):
    back_up(small.desk, tmp_path / "desk.tar.gz")
    with pytest.raises(UsageError, match="exists already"):
        back_up(small.desk, tmp_path / "desk.tar.gz")
    with pytest.raises(UsageError, match="a desk in"):
        restore(tmp_path / "desk.tar.gz", tmp_path / "desk")
    content = (tmp_path / "desk.tar.gz").read_bytes()
    (tmp_path / "half.tar.gz").write_bytes(content[: len(content) // 2])
    (tmp_path / "empty.tar.gz").write_bytes(gzip.compress(b""))
    _changed(tmp_path / "desk.tar.gz", tmp_path / "changed.tar.gz")
    for name in ("half", "empty", "changed"):
        with pytest.raises(DataError, match="not a backup"):
            restore(tmp_path / f"{name}.tar.gz", tmp_path / "new")
        assert not (tmp_path / "new").exists()


def _changed(source, target):
    with tarfile.open(source) as old, tarfile.open(target, "w:gz") as new:
        for member in old:
            content = old.extractfile(member).read()
            if member.name == "secret.key":
                content = content.replace(content[:1], b"0" if content[:1] != b"0" else b"1")
                member.size = len(content)

            new.addfile(member, io.BytesIO(content))


def _member(name, **more):
    member = tarfile.TarInfo(name)
    for key, value in more.items():
        setattr(member, key, value)
    return member
