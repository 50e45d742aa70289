"""Declarations: what people said about the learners of a population, kept in the ledger with who said it and why."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from understudy.core.privacy.balance import counted_with, linked_with, spent_on
from understudy.core.privacy.ledger_file import now, user
from understudy.core.privacy.population import (
    SIMULATED_POPULATION,
    data_set_population,
    file_population,
    normalised,
)
from understudy.errors import UsageError

# How a fact is known for which no reason was given.
DECLARED = "declared by the user"


def declare(connection: sqlite3.Connection, population: str, fact: str, how: str) -> None:
    """Note what is said about the learners of a population, and how that is known."""
    connection.execute(
        "INSERT INTO declarations (at, who, population, fact, how) VALUES (?, ?, ?, ?, ?)",
        (now(), user(), population, fact, how),
    )


def declare_others(
    connection: sqlite3.Connection, population: str, names: Sequence[str], reason: str
) -> None:
    """Note that a population holds other learners than those of these names, and why.

    That starts a count of their own, as a higher limit would, so it needs a reason as well: once for each pair of
    populations. Simulated learners have no count at all, so there every time is the first one.
    """
    told = set() if population == SIMULATED_POPULATION else _facts_with_reason(connection, population)
    new = [name for name in names if _other_than(name) not in told]
    if new and not reason:
        known_as = " and ".join(f"'{name}'" for name in new)
        raise UsageError(
            f"the learners of '{population}' were declared to be others than {known_as} without a reason: what was "
            "released before would not count for them.",
            hint="say why they are others, such as 'the class of this year, in the file of last year': the ledger "
            "keeps it, with who said so and when.",
            code="no-reason",
            settings=("reason",),
        )
    for name in names:
        declare(connection, population, _other_than(name), reason or DECLARED)


def names_of(files: Sequence[Path], data_sets: Sequence[str]) -> list[str]:
    """The names under which the ledger knows the learners of files and data sets."""
    return [normalised(name) for name in (*map(file_population, files), *map(data_set_population, data_sets))]


def unlinked(
    connection: sqlite3.Connection,
    population: str,
    files: Sequence[Path],
    data_sets: Sequence[str],
    *,
    apart: bool,
) -> list[str]:
    """The names of files and data sets with releases that do not count for a population yet.

    Without `apart` those alone of which it was declared before that they are of other learners: a declaration that is
    forgotten the next time must not join the two for good.
    """
    facts = connection.execute("SELECT fact FROM declarations WHERE population = ?", (population,)).fetchall()
    declared, counted = {fact for (fact,) in facts}, counted_with(connection, population)
    return [
        name
        for name in names_of(files, data_sets)
        if (apart or _other_than(name) in declared)
        and name not in counted
        and spent_on(connection, linked_with(connection, name)).n_entries
    ]


def _facts_with_reason(connection: sqlite3.Connection, population: str) -> set[str]:
    rows = connection.execute(
        "SELECT fact FROM declarations WHERE population = ? AND how != ?", (population, DECLARED)
    )
    return {fact for (fact,) in rows.fetchall()}


def _other_than(name: str) -> str:
    return f"other learners than {name}"
