"""Backs a desk up while it runs, and makes a desk from a backup: database, settings, secret, policy, ledgers.

The database is copied first and the ledgers after it. A release in between is then in the copied ledger and not
in the copied database: the learners' account shows too much rather than too little, and `desk verify` says so.
Answers to private questions that were being released are charged again after a restore, since their noise is new.
Real and synthetic tables are not in a backup; the school keeps them as it keeps its other records.

What a backup says about itself is not believed: anyone can write an archive. Files have names that a backup has,
ledgers are ledgers, and outside of the new folder nothing is written unless the caller was asked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import zlib
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, select

import understudy
from understudy.desk.service import Desk
from understudy.desk.store.settings import DATABASE, POLICY, SECRET, SETTINGS, Settings
from understudy.desk.store.tables import DataSetRow, ReleaseRow
from understudy.errors import DataError, MissingError, UsageError

FORMAT = "understudy desk backup"
VERSION = 1
_CONTENTS = "contents.json"
_DUMP = "desk.dump"
_LEDGERS = "ledgers"
_KEPT = (SETTINGS, SECRET, POLICY)
_A_LEDGER = re.compile(r"ledgers/[0-9]{1,6}\.ledger")
_LEDGER_NAME = ".ledger"
_SQLITE = b"SQLite format 3\x00"


def back_up(desk: Desk, target: Path) -> None:
    """Write everything that the desk needs to go on into one new file, for its owner only."""
    if target.exists():
        raise UsageError(f"{target.name} exists already.", hint="give the name of a new file.")
    with tempfile.TemporaryDirectory(prefix="understudy-", dir=target.parent) as made:
        folder = Path(made)
        _copy_database(desk, folder)
        ledgers = _copy_ledgers(desk, folder)
        for name in _KEPT:
            if (desk.settings.folder / name).is_file():
                shutil.copyfile(desk.settings.folder / name, folder / name)
        _describe(desk, folder, ledgers)
        _pack(folder, target)


def restore(source: Path, folder: Path, *, ledgers_too: bool = False) -> Desk:
    """Make a desk's folder from a backup. A ledger that is where it was stays: it may know of later releases.

    Ledgers that belong outside of the folder and are not there are only written with `ledgers_too`. With
    PostgreSQL, the database that the settings name has to be there and empty.
    """
    if (folder / SETTINGS).exists():
        raise UsageError(f"there is a desk in {folder} already.", hint="choose another folder.")
    with tempfile.TemporaryDirectory(prefix="understudy-") as made:
        unpacked = Path(made)
        contents = _unpack(source, unpacked)
        settings = _with_own_database(unpacked)
        ledgers = _missing_ledgers(unpacked, contents, folder)
        if not ledgers_too:
            _refuse_outside(ledgers, folder)
        for place, target in ledgers.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            _place(unpacked / place, target)
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
        _place(settings, folder / SETTINGS)
    desk = Desk.open(folder)
    _point_to_ledgers(desk, contents, folder)
    _charge_drawn_noise_again(desk)
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
            hint="check whether there is room on the disk.",
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
            hint="check whether there is room on the disk.",
        ) from None


def _unpack(source: Path, folder: Path) -> dict[str, Any]:
    """The files of the archive, if they have names that a backup has and are as its list of contents says."""
    try:
        with tarfile.open(source, "r:gz") as archive:
            members = archive.getmembers()
            names = {member.name for member in members if member.isreg() and _belongs(member.name)}
            if len(names) != len(members):
                raise ValueError("other files")
            for member in members:
                archive.extract(member, folder, set_attrs=False, filter="data")
        contents: dict[str, Any] = json.loads((folder / _CONTENTS).read_text(encoding="utf-8"))
        if contents["format"] != FORMAT or contents["version"] != VERSION:
            raise KeyError(FORMAT)
        hashes = {
            name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names - {_CONTENTS}
        }
        if hashes != contents["files"] or SETTINGS not in names:
            raise ValueError("changed files")
        if set(contents["ledgers"]) != {name for name in names if _A_LEDGER.fullmatch(name)}:
            raise ValueError("other ledgers")
        if not all(isinstance(path, str) for path in (contents["desk"], *contents["ledgers"].values())):
            raise TypeError("no paths")
        return contents
    except (
        OSError,
        tarfile.TarError,
        KeyError,
        ValueError,
        TypeError,
        EOFError,
        RecursionError,
        zlib.error,
    ) as error:
        raise DataError(
            f"{source.name} is not a backup of a desk, or it is damaged ({type(error).__name__}).",
            hint="give the file that `understudy desk backup` wrote.",
        ) from None


def _belongs(name: str) -> bool:
    return name in (_CONTENTS, _DUMP, DATABASE, *_KEPT) or _A_LEDGER.fullmatch(name) is not None


def _place(source: Path, target: Path) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as sink, source.open("rb") as content:
        shutil.copyfileobj(content, sink)


def _settings_of(unpacked: Path) -> Settings:
    return Settings.read(unpacked)


def _ledger_now(place: str, contents: dict[str, Any], folder: Path) -> Path:
    """Where a ledger is now: one that was in the desk's folder moves with it."""
    # Without "..": where a path seems to lead and where it leads are then the same.
    old, desk = (Path(os.path.normpath(path)) for path in (contents["ledgers"][place], contents["desk"]))
    return folder.resolve() / old.relative_to(desk) if old.is_relative_to(desk) else old


def _missing_ledgers(unpacked: Path, contents: dict[str, Any], folder: Path) -> dict[str, Path]:
    """The ledgers to write. One that is there may know of releases after the backup: what was spent stays spent."""
    missing: dict[str, Path] = {}
    for place in sorted(contents["ledgers"]):
        target = _ledger_now(place, contents, folder)
        if target.exists() or target.is_symlink():
            continue
        with (unpacked / place).open("rb") as content:
            is_ledger = content.read(len(_SQLITE)) == _SQLITE
        if (
            not is_ledger
            or not target.is_absolute()
            or target.suffix != _LEDGER_NAME
            or target in missing.values()
        ):
            raise DataError(
                f"the backup would write {place} as {target}, which is not a ledger.",
                hint="if the backup is yours, take the ledger out of it with tar and put it there yourself.",
            )
        missing[place] = target
    return missing


def _refuse_outside(ledgers: dict[str, Path], folder: Path) -> None:
    outside = [path for path in ledgers.values() if not path.resolve().is_relative_to(folder.resolve())]
    if outside:
        raise UsageError(
            f"the backup holds {len(outside)} {'ledger' if len(outside) == 1 else 'ledgers'} that would be written "
            f"outside of {folder}: {', '.join(map(str, outside))}.",
            hint="if that is where they were, allow it.",
            settings=("ledgers_too",),
        )


def _with_own_database(unpacked: Path) -> Path:
    """The settings; an SQLite file elsewhere is not named any more, since the copy is in the new folder."""
    path = unpacked / SETTINGS
    if make_url(_settings_of(unpacked).database_url).get_backend_name() == "sqlite":
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        own = [line for line in lines if not re.match(r"\s*[\"']?database[\"']?\s*=", line)]
        path.write_text("".join(own), encoding="utf-8")
    if _settings_of(unpacked).database.startswith("sqlite"):
        raise DataError(
            f"{SETTINGS} of the backup names a database elsewhere.",
            hint="take that line out of it, with tar.",
        )
    return path


def _point_to_ledgers(desk: Desk, contents: dict[str, Any], folder: Path) -> None:
    moved = {old: str(_ledger_now(place, contents, folder)) for place, old in contents["ledgers"].items()}
    with desk.database.writing() as session:
        for row in session.scalars(select(DataSetRow)):
            row.ledger = moved.get(row.ledger, row.ledger)


def _charge_drawn_noise_again(desk: Desk) -> None:
    """Give private answers that were being released when the backup was made cards of their own.

    They may have left since, and the ledger knows their charge: another draw of noise is another release.
    """
    with desk.database.writing() as session:
        for release in session.scalars(select(ReleaseRow).where(ReleaseRow.released_at.is_(None))):
            if release.run.private is not None:
                release.certificate = secrets.token_hex(8)


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
            hint="check that the database of the settings exists, can be reached and (to restore) is empty.",
        )
