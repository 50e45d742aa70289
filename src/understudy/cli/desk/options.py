"""Options that several verbs of the desk share, and who acts when somebody types at the machine itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from understudy.desk.domain.people import Person
    from understudy.desk.service import Desk

LearnerColumn = Annotated[str, typer.Option(help="Column of the real table that says whose row it is.")]
Population = Annotated[
    str, typer.Option(help="Whose data this is, as in the ledger (default: learners of this folder).")
]
LedgerPath = Annotated[
    Path | None, typer.Option(help="Where the ledger is kept, if not beside the real table.")
]
DeskFolder = Annotated[Path, typer.Option("--desk", metavar="FOLDER", help="The desk's folder.")]
DEFAULT_FOLDER = Path("desk")


def group(name: str, words: str) -> typer.Typer:
    """A group of verbs, with the same conventions as all others."""
    return typer.Typer(
        name=name,
        help=words,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Desk]:
    """The desk of a folder, closed at the end; without its libraries one sentence says what to install."""
    require_desk()
    from understudy.desk.service import Desk

    desk = Desk.open(folder)
    try:
        yield desk
    finally:
        desk.close()


def require_desk() -> None:
    """Raise unless the libraries of the extra `desk` are there."""
    import importlib.util

    from understudy.errors import MissingError

    for library in ("sqlalchemy", "alembic", "fastapi", "uvicorn", "httpx2", "pwdlib", "cryptography"):
        if importlib.util.find_spec(library) is None:
            raise MissingError(
                f"the desk needs {library}, which is not installed.",
                hint="install the extra: pip install 'understudy[desk]'.",
            )


def at_the_machine() -> Person:
    """Who can read the desk's folder is its custodian; the log says that it was done here and not on a page."""
    import getpass

    from understudy.desk.domain.people import Person, Role

    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "somebody"
    return Person(0, f"{name}, at the machine", Role.CUSTODIAN)


def existing(path: Path, what: str) -> Path:
    """The path, if there is a file."""
    from understudy.errors import UsageError

    if not path.is_file():
        raise UsageError(f"there is no file {path} for {what}.", hint="check the path.")
    return path


def a_table(path: Path, what: str) -> Path:
    """The path, if there is a file that can be a table by its name."""
    from understudy.errors import UsageError

    if existing(path, what).suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"{path.name} is no table, and {what} was asked for.", hint="give csv or parquet.")
    return path


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"
