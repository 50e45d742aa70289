"""Puts the verbs together and turns errors into sentences and exit codes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path

import typer

import understudy
from understudy.cli.ability import ability
from understudy.cli.audit import audit
from understudy.cli.cohort.cohort import cohort
from understudy.cli.desk.desk import desk
from understudy.cli.exams import difficulties
from understudy.cli.inspect import inspect
from understudy.cli.keystrokes.keystrokes import keystrokes
from understudy.cli.ledger import ledger
from understudy.cli.logs import release
from understudy.cli.page import page
from understudy.cli.sandbox import sandbox
from understudy.cli.simulate import simulate
from understudy.cli.study import study
from understudy.cli.synthesize import synthesize
from understudy.errors import UnderstudyError

app = typer.Typer(
    name="understudy",
    help="Share what learners' data can teach without sharing the learners.",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with local variables would print learners' rows.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"understudy {understudy.__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and stop."
    ),
) -> None:
    pass


for verb in (
    inspect,
    synthesize,
    audit,
    study,
    release,
    difficulties,
    ability,
    page,
    ledger,
    simulate,
):
    # typer writes a hyphen for an underscore.
    app.command()(verb)

app.add_typer(sandbox)
app.add_typer(cohort)
app.add_typer(keystrokes)
app.add_typer(desk)


def main() -> None:
    """Run a command; print what went wrong as a sentence, never with a learner's value."""
    code = 0
    # A closed terminal or a polite kill ends like an error does: with temporary files removed.
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, lambda *_: sys.exit(143))
    try:
        app()
    except UnderstudyError as error:
        options = ", ".join("--" + setting.replace("_", "-") for setting in error.settings)
        _complain(error.message, f"{error.hint.removesuffix('.')} ({options})." if options else error.hint)
        code = error.exit_code
    except BrokenPipeError:
        # The reader of our output went away, as `head` does: not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if os.environ.get("UNDERSTUDY_DEBUG"):
            raise
        # The message of an unforeseen error may quote a learner's record: say where, not what.
        place = traceback.extract_tb(error.__traceback__)[-1]
        _complain(
            f"an error that should not happen: {type(error).__name__} "
            f"in {Path(place.filename).name}, line {place.lineno}.",
            "report it with this line; UNDERSTUDY_DEBUG=1 shows more, and may show data.",
        )
        code = 1
    sys.exit(code)


def _complain(message: str, hint: str) -> None:
    typer.echo(f"Error: {message}", err=True)
    if hint:
        typer.echo(f"Hint: {hint}", err=True)
