"""Populations: the names under which the ledger knows whose learners a release is about.

By default a release is about the learners of its file. Whoever declares a population says that these are
the learners, and the file is linked to it from then on: whatever is charged to one counts for the other.
A table may carry the random name of its data set, so that a copy is linked to the same learners whatever
the file is called. "Learners of this folder" are everybody the ledger knows.
"""

from __future__ import annotations

import secrets
import unicodedata
from pathlib import Path

from understudy.errors import UsageError

FOLDER_POPULATION = "learners of this folder"
SIMULATED_POPULATION = "simulated learners"
_FILE_POPULATION = "learners of the file "
_DATA_SET_POPULATION = "learners of the data set "


def normalised(name: str) -> str:
    """The name as the ledger keeps it: spaces, capitals and invisible signs do not make other people of it."""
    plain = unicodedata.normalize("NFKC", name)
    visible = "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")
    return " ".join(visible.split()).casefold()


def file_population(data: Path) -> str:
    """The learners of one file, such as a class's exam."""
    return _FILE_POPULATION + data.resolve().name


def data_set_population(data_set: str) -> str:
    """The learners of a data set by its random name, whatever files they are in."""
    return _DATA_SET_POPULATION + data_set


def new_data_set() -> str:
    """A random name for the learners of a table: nothing about them can be worked out from it."""
    return secrets.token_hex(8)


def resolve_population(declared: str | None, data: Path | None, *, simulated: bool) -> str:
    """Whose learners a release is about: those declared, else those of the file."""
    if simulated:
        if declared is not None:
            raise UsageError(
                "a population was declared, but these learners are simulated: they do not exist, and have no budget.",
                hint="leave the population out.",
                code="simulated-population",
                settings=("population",),
            )
        return SIMULATED_POPULATION
    if declared is not None:
        if not normalised(declared):
            raise UsageError(
                "the name of a population is empty.",
                hint="say whose data this is, such as '7b, spring 2024'.",
                code="empty-population",
                settings=("population",),
            )
        if normalised(declared) == SIMULATED_POPULATION:
            raise UsageError(
                f"'{SIMULATED_POPULATION}' is a reserved name: real learners have a budget.",
                hint="choose another name, or declare that the learners are simulated.",
                code="reserved-population",
                settings=("population", "simulated"),
            )
        return normalised(declared)
    if data is None:
        raise UsageError(
            "whose learners these are is not known: the data is not in a file.",
            hint="declare the population, and where its ledger is kept.",
            code="unknown-population",
            settings=("population", "ledger"),
        )
    return normalised(file_population(data))
