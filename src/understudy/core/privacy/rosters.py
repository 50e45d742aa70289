"""Rosters: the ledger knows learners again, whatever their file or population is called.

For every population the ledger keeps a sketch of its learners' ids: their BLAKE2 digests under a key that is made
once for the ledger and stays in it, of which the smallest are kept (a bottom-k sketch; Cohen and Kaplan 2007). Up to
`SIZE` learners that is all of them, and the share of learners that two rosters have in common is exact. Of more
learners it is a uniform sample, half a megabyte however many there are.

The key makes sketches of different ledgers incomparable, and lists of digests made beforehand useless. It does not
hide the ids from the owner of the ledger, who holds the key and can try them: the ledger is as private as the data.
"""

from __future__ import annotations

import secrets
import sqlite3
from functools import cached_property
from pathlib import Path

import numpy as np

from understudy.core.files.people.learner_ids import Digests, are_only_numbered, keyed_digests, within_file
from understudy.core.privacy.balance import counted_with, linked_with, spent_on
from understudy.core.privacy.population import FOLDER_POPULATION, SIMULATED_POPULATION

# Learners that a sketch holds at most.
SIZE = 65_536
# From this share of the smaller group on, two groups may be the same learners. Whoever is in both bears both
# charges, so it is low; below it names may agree by chance, such as first names.
MIN_SHARED = 0.1
_KEY_BYTES = 32

SCHEMA = """
CREATE TABLE IF NOT EXISTS roster_keys (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS rosters (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    population TEXT NOT NULL,
    sketch BLOB NOT NULL
);
"""


class Roster:
    """The learners of a charge by their digests; nothing of it is shown."""

    def __init__(self, learners: Digests) -> None:
        self._learners = learners
        self._sketches: dict[bytes, Digests] = {}

    @classmethod
    def of(cls, learners: Digests | None, path: Path | None) -> Roster | None:
        """The learners of a file; None where nothing tells them from others.

        Every class has a learner 1: who is only numbered is known by the number and the bytes of the file.
        """
        if learners is None or not are_only_numbered(learners):
            return None if learners is None else cls(learners)
        return cls(within_file(learners, path)) if path is not None and path.exists() else None

    def __len__(self) -> int:
        return len(self._learners)

    @cached_property
    def new_key(self) -> bytes:
        """The key of a ledger that has none yet: the same one when a charge is checked and when it is made.

        A roster is made for one account and so for one ledger: no two ledgers get the same key.
        """
        return secrets.token_bytes(_KEY_BYTES)

    def sketch(self, key: bytes) -> Digests:
        """What a ledger with this key keeps; computed once, in one pass."""
        if key not in self._sketches:
            self._sketches[key] = _smallest(keyed_digests(self._learners, key))
        return self._sketches[key]


def shared_share(first: Digests, second: Digests) -> float:
    """The share of the smaller group's learners that are in both, exact where both sketches are complete.

    Below the smaller of their largest numbers both sketches are complete, so what they hold there is a uniform
    sample of each group by the same rule: a learner in both groups is in both samples or in neither.
    """
    reach = min(_reach(first), _reach(second))
    first, second = first[first <= reach], second[second <= reach]
    smaller = min(len(first), len(second))
    return len(np.intersect1d(first, second, assume_unique=True)) / smaller if smaller else 0.0


def known_as(connection: sqlite3.Connection, population: str, roster: Roster | None) -> tuple[str, ...]:
    """Other populations with releases that have learners of this roster, and whose releases do not count for it."""
    key = _key(connection)
    if roster is None or key is None or population == FOLDER_POPULATION:
        return ()
    apart, sketch = counted_with(connection, population), roster.sketch(key)
    rows = connection.execute("SELECT population, sketch FROM rosters ORDER BY id").fetchall()
    same = dict.fromkeys(
        row["population"]
        for row in rows
        if row["population"] not in apart and shared_share(sketch, _numbers(row["sketch"])) >= MIN_SHARED
    )
    return tuple(name for name in same if spent_on(connection, linked_with(connection, name)).n_entries)


def keep_roster(
    connection: sqlite3.Connection, population: str, roster: Roster | None, at: str, who: str
) -> None:
    """Note the learners of a population, unless the same ones are noted already."""
    if roster is None or not len(roster) or population in (FOLDER_POPULATION, SIMULATED_POPULATION):
        return
    key = _key(connection)
    if key is None:
        key = roster.new_key
        connection.execute("INSERT INTO roster_keys (key) VALUES (?)", (key,))
    sketch = roster.sketch(key).astype("<u8").tobytes()
    there = "SELECT 1 FROM rosters WHERE population = ? AND sketch = ?"
    if connection.execute(there, (population, sketch)).fetchone() is None:
        connection.execute(
            "INSERT INTO rosters (at, who, population, sketch) VALUES (?, ?, ?, ?)",
            (at, who, population, sketch),
        )


def _key(connection: sqlite3.Connection) -> bytes | None:
    row = connection.execute("SELECT key FROM roster_keys ORDER BY id LIMIT 1").fetchone()
    return None if row is None else bytes(row["key"])


def _smallest(numbers: Digests) -> Digests:
    """The smallest numbers, each once. Sorted and compared: numpy's unique takes ten times as long for a million."""
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=ordered[:1] - np.uint64(1)) > 0][:SIZE]


def _numbers(data: bytes) -> Digests:
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def _reach(sketch: Digests) -> int:
    """Up to which number a sketch has every learner."""
    return int(sketch[-1]) if len(sketch) >= SIZE else 2**64 - 1
