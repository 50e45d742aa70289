"""Addresses of logs in databases: `duckdb:school.db?table=events`, `postgresql://user@host/school?query=SELECT ...`.

An address may hold a password. So it is never shown: messages use `name`, which has no user, password or query.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from understudy.errors import UsageError

Kind = Literal["duckdb", "postgresql"]

_BEGIN = re.compile(r"\s*(?:(duckdb):|postgres(?:ql)?://)", re.IGNORECASE)
# Any address, also one whose slashes a path has made one; a drive has a single letter.
_ANY = re.compile(r"\s*(?:duckdb:|postgres(?:ql)?:|[a-z][\w+.:-]+:/)", re.IGNORECASE)
# What clients take in place of an address: `host=db user=me password=...`, or with semicolons. A password shows it
# wherever it is, another keyword where a second one follows: a folder may be called user=7.
_PARAMETER = (
    r"(?:host(?:addr)?|port|dbname|user|service|passfile|options|application_name|(?:ssl|channel)\w+)\s*="
)
_KEYWORDS = re.compile(
    rf"(?:^|.*[^\w.-])\w*(?:password|passwd|pwd)\s*=|\s*{_PARAMETER}[^/]*\s{_PARAMETER}",
    re.IGNORECASE | re.DOTALL,
)
_FORMS = "duckdb:FILE?table=NAME, postgresql://USER@HOST/DATABASE?table=NAME, or query=SELECT ... in place of the table"


@dataclass(frozen=True, repr=False)
class DatabaseAddress:
    """A table or a query of a database; `place` is DuckDB's file, or what PostgreSQL's client is given."""

    kind: Kind
    place: str
    table: str = ""
    query: str = ""

    @classmethod
    def parse(cls, text: str) -> DatabaseAddress:
        """An address as a user types it; a query comes last, and is taken as it is."""
        begin = _BEGIN.match(text)
        if begin is None:
            raise _unknown(text)
        kind: Kind = "duckdb" if begin[1] else "postgresql"
        text = ("" if begin[1] else "postgresql://") + text[begin.end() :]
        before, mark, query = text.partition("query=")
        if mark and before[-1:] not in ("?", "&"):
            before, query = text, ""
        place, _, parameters = before.partition("?")
        given = [each for each in parameters.split("&") if each]
        tables = [each.removeprefix("table=") for each in given if each.startswith("table=")]
        others = [each for each in given if not each.startswith("table=")]
        found = tables[0] if tables else ""
        if len(tables) > 1 or bool(found) == bool(query.strip()) or (kind == "duckdb" and others):
            raise UsageError(
                "an address of a database names one table or one query.",
                hint=f"write {_FORMS}.",
                code="bad-address",
            )
        if kind == "duckdb":
            return cls(kind, place, found, query.strip())
        # The client knows its own parameters, such as sslmode.
        return cls(kind, place + ("?" + "&".join(others) if others else ""), found, query.strip())

    @property
    def file(self) -> Path | None:
        """The file of the database, if it is one."""
        return Path(self.place) if self.kind == "duckdb" else None

    @property
    def database(self) -> str:
        """The database as messages call it."""
        if self.kind == "duckdb":
            return Path(self.place).name
        try:
            parts = urlsplit(self.place)
            host = parts.hostname
        except ValueError:
            return "PostgreSQL"
        if "@" in parts.path + parts.query + parts.fragment:
            # A password with a slash or the like: what looks like the host or the database is a part of it.
            return "PostgreSQL"
        return " on ".join(filter(None, (parts.path.strip("/") or "PostgreSQL", host)))

    @property
    def name(self) -> str:
        """The log as messages call it."""
        return f"{self.table or 'query'} ({self.database})"

    def __str__(self) -> str:
        return self.name

    def seen_from(self, folder: Path) -> DatabaseAddress:
        """The same address where a file's path was written as seen from a folder."""
        return replace(self, place=str(folder / self.place)) if self.kind == "duckdb" else self

    def text(self, seen_from: Path | None = None) -> str:
        """The address as it is typed. It may hold a password: for the user's own plan, never for a message."""
        wanted = f"table={self.table}" if self.table else f"query={self.query}"
        if self.kind == "duckdb":
            place = self.place if seen_from is None else os.path.relpath(self.place, seen_from)
            return f"duckdb:{place}?{wanted}"
        return f"{self.place}{'&' if '?' in self.place else '?'}{wanted}"


def database_address(given: object) -> DatabaseAddress | None:
    """The address that a user gave in place of a file, or None if it is a file."""
    if isinstance(given, DatabaseAddress):
        return given
    if isinstance(given, str) and _is_address(given):
        return DatabaseAddress.parse(given)
    return None


def refuse_address(path: Path) -> None:
    """Refuse an address of a database where only files are read; a message about a missing file would show it."""
    if _is_address(str(path)):
        raise UsageError(
            "asked to read a database where only files are read.",
            hint="inspect, synthesize, study and release read logs in databases; for the rest, export the table.",
            code="not-a-file",
        )


def _is_address(text: str) -> bool:
    return bool(_ANY.match(text) or _KEYWORDS.match(text))


def _unknown(text: str) -> UsageError:
    if not re.match(r"\s*[\w+.:-]+:/", text):
        return UsageError(
            "a database was given by keywords, and an address has the form "
            "postgresql://USER@HOST/DATABASE?query=SELECT ...",
            hint="write it so; a password is best kept in ~/.pgpass, or in the environment variable PGPASSWORD.",
            code="bad-address",
        )
    return UsageError(
        "this is an address, of a kind that is not read.",
        hint=f"give a file, or {_FORMS}.",
        code="bad-address",
    )
