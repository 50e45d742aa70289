"""What the commands of a desk share: its folder, the options of a table, and checks of paths."""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.core.extras import install_hint
from understudy.desk.domain.people import Person, Role
from understudy.errors import MissingError, UsageError

if TYPE_CHECKING:
    from understudy.desk.service import Desk

DeskFolder = Annotated[Path, typer.Option("--desk", metavar="FOLDER", help="The desk's folder.")]
DEFAULT_FOLDER = Path("desk")


@dataclass(frozen=True)
class TableOptions:
    """How the real table of a data set is read, priced and charged."""

    summary: Annotated[
        Path | None,
        "The private summary that the synthetic table was made from, if any: prices then count what it revealed.",
    ] = None
    schema: Annotated[
        Path | None,
        "What is public about the columns, for private questions: a cohort's toml file, or one with [[columns]].",
    ] = None
    learner: Annotated[str, "Column of the real table that names the learner."] = "learner"
    population: Annotated[str, "Whose data this is, as in the ledger (default: learners of this folder)."] = (
        ""
    )
    ledger: Annotated[Path | None, "Where the ledger is kept, if not beside the real table."] = None


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Desk]:
    """The desk of a folder, closed at the end."""
    require_desk()
    from understudy.desk.service import Desk

    desk = Desk.open(folder)
    try:
        yield desk
    finally:
        desk.close()


def require_desk() -> None:
    """Raise unless the libraries of the extra `desk` are there."""
    for library in ("sqlalchemy", "alembic", "fastapi", "uvicorn", "httpx2", "pwdlib", "cryptography"):
        if importlib.util.find_spec(library) is None:
            raise MissingError(
                f"the desk needs {library}, which is not installed.",
                hint=install_hint("desk"),
            )


def at_the_machine() -> Person:
    """The custodian as the log names them: a user who can read the desk's folder, and used no page."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown user"
    return Person(0, f"{name}, at the machine", Role.CUSTODIAN)


def existing(path: Path, what: str) -> Path:
    """The path, if there is a file."""
    if not path.is_file():
        raise UsageError(f"there is no file {path} for {what}.", hint="check the path.")
    return path


def a_table(path: Path, what: str) -> Path:
    """The path, if there is a file whose name is that of a table."""
    if existing(path, what).suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(
            f"{path.name} is not a table, and {what} was asked for.", hint="give csv or parquet."
        )
    return path


def hexadecimal(text: str | None, what: str, setting: str, hint: str) -> None:
    """Refuse a hash or a key that cannot be one."""
    if text is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", text.strip()):
        raise UsageError(
            f"this is not a {what}: a {what} has 64 hexadecimal digits.", hint=hint, settings=(setting,)
        )
