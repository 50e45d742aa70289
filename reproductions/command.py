"""How commands of the reproductions run: errors as sentences, and the product's own command in a process."""

from __future__ import annotations

import subprocess
import sys

import typer

from understudy.cli.terminal import TerminalProgress, complain
from understudy.core.engine.progress import reported_by
from understudy.errors import UnderstudyError


def new_app(words: str) -> typer.Typer:
    """An empty command with the product's look."""
    return typer.Typer(
        help=words,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


def run(app: typer.Typer) -> None:
    """Run a command; what a user can get wrong is a sentence and an exit code, as in the product."""
    try:
        with reported_by(TerminalProgress()):
            app()
    except UnderstudyError as error:
        complain(error, as_json=False)
        sys.exit(error.exit_code)


def understudy(*arguments: str) -> None:
    """Run `understudy` with these arguments, as a user would."""
    code = "from understudy.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)
