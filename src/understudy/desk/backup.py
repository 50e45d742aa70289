"""Backs a desk up while it runs, and makes a desk from a backup: database, settings, secret, policy, ledgers.

The database is copied first and the ledgers after it. A release in between is then in the copied ledger and not
in the copied database: the learners' account shows too much rather than too little, and `desk verify` says so.
Real and synthetic tables are not in a backup; the school keeps them as it keeps its other records.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, select

import understudy
from understudy.desk.service.desk import Desk
from understudy.desk.settings import DATABASE, POLICY, SECRET, SETTINGS, Settings
from understudy.desk.store.models import DataSetRow
from understudy.errors import DataError, MissingError, UsageError

FORMAT = "understudy desk backup"
VERSION = 1
_CONTENTS = "contents.json"
_DUMP = "desk.dump"
_LEDGERS = "ledgers"
_KEPT = (SETTINGS, SECRET, POLICY)


def back_up(desk: Desk, target: Path) -> None:
    """Write everything that the desk needs to go on into one new file, for its owner only."""
    if target.exists():
        raise UsageError(f"{target.name} is there already.", hint="give the name of a new file.")
    with tempfile.TemporaryDirectory(prefix="understudy-", dir=target.parent) as made:
        folder = Path(made)
        _copy_database(desk, folder)
        ledgers = _copy_ledgers(desk, folder)
        for name in _KEPT:
            if (desk.settings.folder / name).is_file():
                shutil.copyfile(desk.settings.folder / name, folder / name)
        _describe(desk, folder, ledgers)
        _pack(folder, target)


def restore(source: Path, folder: Path) -> Desk:
    """Make a desk's folder from a backup, with each ledger where it was, unless a newer one is there.

    With PostgreSQL, the database that the settings name has to be there and empty.
    """
    if (folder / SETTINGS).exists():
        raise UsageError(f"there is a desk in {folder} already.", hint="choose another folder.")
    with tempfile.TemporaryDirectory(prefix="understudy-") as made:
        unpacked = Path(made)
        contents = _unpack(source, unpacked)
        _put_ledgers_back(unpacked, contents, folder)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        for name in (*_KEPT, DATABASE):
            if (unpacked / name).is_file() and name != SETTINGS:
                _place(unpacked / name, folder / name)
        if (unpacked / _DUMP).is_file():
            _run_postgresql(
                "pg_restore",
                _settings_of(unpacked).database,
                "--exit-on-error",
                "--no-owner",
                unpacked / _DUMP,
            )
        # The settings come last: without them there is no desk yet.
        _place(unpacked / SETTINGS, folder / SETTINGS)
    desk = Desk.open(folder)
    _point_to_ledgers(desk, contents, folder)
    return desk


def _copy_database(desk: Desk, folder: Path) -> None:
    if not desk.database.is_sqlite:
        _run_postgresql("pg_dump", desk.database.url, "--format=custom", "--file", folder / _DUMP)
        return
    _copy_sqlite(Path(desk.database.engine.url.database or ""), folder / DATABASE)


def _copy_sqlite(source: Path, target: Path) -> None:
    """A copy in one piece, also while others write."""
    try:
        with closing(sqlite3.connect(source, timeout=30)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
            # A single file that can be read on its own.
            new.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        raise MissingError(
            f"a database of the desk cannot be copied ({type(error).__name__}).",
            hint="look whether there is room on the disk.",
        ) from None
    target.chmod(0o600)


def _copy_ledgers(desk: Desk, folder: Path) -> dict[str, str]:
    """Copies of the ledgers, and where they were."""
    with desk.database.reading() as session:
        paths = sorted(set(session.scalars(select(DataSetRow.ledger))))
    (folder / _LEDGERS).mkdir()
    found = {}
    for place, path in enumerate(paths, 1):
        if Path(path).is_file():
            found[f"{_LEDGERS}/{place}.ledger"] = path
            _copy_sqlite(Path(path), folder / _LEDGERS / f"{place}.ledger")
    return found


def _describe(desk: Desk, folder: Path, ledgers: dict[str, str]) -> None:
    files = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    contents = {
        "format": FORMAT,
        "version": VERSION,
        "made_with": f"Understudy {understudy.__version__}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "desk": str(desk.settings.folder.resolve()),
        "files": files,
        "ledgers": ledgers,
    }
    (folder / _CONTENTS).write_text(json.dumps(contents, indent=1), encoding="utf-8")


def _pack(folder: Path, target: Path) -> None:
    # Made under another name: a backup that was interrupted shall not look like one.
    half = target.with_name(target.name + ".part")
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as sink, tarfile.open(fileobj=sink, mode="w:gz") as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    archive.add(path, str(path.relative_to(folder)))
        half.replace(target)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise MissingError(
            f"the backup cannot be written ({type(error).__name__}).",
            hint="look whether there is room on the disk.",
        ) from None


def _unpack(source: Path, folder: Path) -> dict[str, Any]:
    """Only files that the backup lists, unchanged since; nothing else of the archive is written."""
    try:
        with tarfile.open(source, "r:gz") as archive:
            contents: dict[str, Any] = json.loads(_content(archive, _CONTENTS))
            if contents["format"] != FORMAT or contents["version"] != VERSION:
                raise KeyError(FORMAT)
            for name, expected in contents["files"].items():
                content = _content(archive, name)
                if hashlib.sha256(content).hexdigest() != expected:
                    raise ValueError(name)
                path = folder / name
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise ValueError(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return contents
    except (OSError, tarfile.TarError, KeyError, ValueError, TypeError, EOFError) as error:
        raise DataError(
            f"{source.name} is not a backup of a desk, or it is damaged ({type(error).__name__}).",
            hint="give the file that `understudy desk backup` wrote.",
        ) from None


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    if member is None:
        raise KeyError(name)
    with member:
        return member.read()


def _place(source: Path, target: Path) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as sink, source.open("rb") as content:
        shutil.copyfileobj(content, sink)


def _settings_of(unpacked: Path) -> Settings:
    return Settings.read(unpacked)


def _ledger_now(place: str, contents: dict[str, Any], folder: Path) -> Path:
    """Where a ledger is now: one that was in the desk's folder moves with it."""
    old = Path(contents["ledgers"][place])
    desk = Path(contents["desk"])
    return folder.resolve() / old.relative_to(desk) if old.is_relative_to(desk) else old


def _put_ledgers_back(unpacked: Path, contents: dict[str, Any], folder: Path) -> None:
    for place in contents["ledgers"]:
        target = _ledger_now(place, contents, folder)
        # A ledger that is there may know of releases after the backup: what was spent stays spent.
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            _place(unpacked / place, target)


def _point_to_ledgers(desk: Desk, contents: dict[str, Any], folder: Path) -> None:
    moved = {old: str(_ledger_now(place, contents, folder)) for place, old in contents["ledgers"].items()}
    with desk.database.writing() as session:
        for row in session.scalars(select(DataSetRow)):
            row.ledger = moved.get(row.ledger, row.ledger)


def _run_postgresql(program: str, url: str, *arguments: str | Path) -> None:
    """PostgreSQL's own program; it gets the address, and with it a password, where no list of processes shows it."""
    address = make_url(url)
    found = shutil.which(program) or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)),
        None,
    )
    if found is None:
        raise MissingError(
            f"the desk's database is PostgreSQL, and its program {program} is not on this machine.",
            hint="install PostgreSQL's client programs (postgresql-client).",
        )
    known = {
        "PGHOST": address.query.get("host") or address.host,
        "PGPORT": None if address.port is None else str(address.port),
        "PGUSER": address.username,
        "PGPASSWORD": address.password,
        "PGDATABASE": address.database,
    }
    environment = {**os.environ, **{name: str(value) for name, value in known.items() if value}}
    target = ["--dbname", address.database or ""] if program == "pg_restore" else []
    done = subprocess.run(
        [found, *target, *map(str, arguments)], env=environment, stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode != 0:
        raise MissingError(
            f"{program} ended with code {done.returncode}.",
            hint="look whether the database of the settings is there, can be reached and (to restore) is empty.",
        )
