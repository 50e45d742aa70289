"""The `understudy` command: verbs that are loaded when they are used, and errors as sentences or JSON."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import understudy
from understudy.cli import terminal
from understudy.cli.lazy import StoppedError, lazy_group
from understudy.cli.terminal import (
    TerminalProgress,
    ask_after_interrupt,
    ask_before_charge,
    complain,
    wants_json,
)
from understudy.core.engine.progress import reported_by
from understudy.core.privacy.confirmation import Interrupted, Question, asked_by
from understudy.errors import MissingError, UnderstudyError, UsageError, safe_location

# What the parser of the command line raises. Typer carries its own copy of Click: its base is found, not imported.
CommandLineError: Any = typer.BadParameter.__mro__[2]

# By the job that people come for: the module of each command, and its sentence in the list of commands.
COMMANDS = {
    "Logs of learners' actions": {
        "inspect": ("understudy.cli.logs", "Show what is in a log, and how few points single a learner out."),
        "describe": ("understudy.cli.describe", "Draft a plan: what a log has, for you to declare."),
        "synthesize": ("understudy.cli.logs", "Write a synthetic log, and say what is guaranteed about it."),
        "audit": ("understudy.cli.logs", "Attack any generator's files, and measure what they are worth."),
        "study": (
            "understudy.cli.logs",
            "Compare generators: what their logs are worth and what attacks find.",
        ),
        "release": ("understudy.cli.logs", "Make a bundle: synthetic data and card, and what was measured."),
    },
    "Exams": {
        "difficulties": (
            "understudy.cli.exams",
            "Release how hard each item of an exam is, with a guarantee.",
        ),
        "difficulties combine": (
            "understudy.cli.schools",
            "Put the private difficulties of several schools on one scale.",
        ),
        "difficulties compare": (
            "understudy.cli.groups",
            "Find items that are harder for one group than for another, privately.",
        ),
        "ability": ("understudy.cli.exams", "Compute abilities and chances of passing from difficulties."),
        "ladder": ("understudy.cli.schools", "Draw students and items on one scale, for teachers."),
        "page": ("understudy.cli.exams", "Make a page on which students compute their own ability."),
    },
    "Other jobs": {
        "keystrokes": ("understudy.cli.keystrokes", "Open keystroke data: coarse enough, without names."),
        "cohort": ("understudy.cli.cohort", "Share the habits of a small cohort by a private summary."),
        "desk": ("understudy.cli.desk", "Answer researchers' questions on real data: the validation desk."),
    },
    "Around them": {
        "ledger": ("understudy.cli.ledger", "Show every release that counts for the learners of a file."),
        "simulate": ("understudy.cli.simulate", "Write data of learners who never existed, to try things."),
        "sandbox": ("understudy.cli.sandbox", "Check the sandbox that runs code from others."),
    },
}

# Exit codes of a command that was stopped: by Ctrl-C, and by a polite kill or a closed terminal.
STOPPED = (130, 143)

EXIT_CODES = (
    "Exit codes: 0 done; 1 an error that should not happen; 2 wrong use; 3 bad data; "
    "4 refused by a budget or a policy; 5 something is missing on this machine; "
    "130 stopped by Ctrl-C, 143 by a kill or a closed terminal."
)

app = lazy_group(
    "understudy",
    "Share what learners' data can teach without sharing the learners.",
    COMMANDS,
    EXIT_CODES,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"understudy {understudy.__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; print what went wrong as a sentence, never with a learner's value."""
    _end_politely()
    code = run(sys.argv[1:])
    if code in STOPPED:
        # Everything is tidied up, and said. Python would wait for threads whose results nobody wants any more.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _end_politely() -> None:
    """Let a closed terminal or a polite kill end like an error does: with temporary files removed."""
    for name in ("SIGTERM", "SIGHUP", "SIGALRM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: sys.exit(143))

    def once_more(lost: sys.UnraisableHookArgs) -> None:
        # Python drops an exit that is raised inside a callback of its own, such as the import lock's.
        if isinstance(lost.exc_value, SystemExit) and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            sys.__unraisablehook__(lost)

    sys.unraisablehook = once_more


def run(arguments: list[str]) -> int:
    """Run a command and give its exit code."""
    as_json = wants_json(arguments)

    def present() -> bool:
        return "--yes" not in arguments and terminal.somebody_is_there()

    def ask(question: Question | Interrupted) -> bool:
        if isinstance(question, Interrupted):
            return present() and ask_after_interrupt(question)
        return ask_before_charge(question, present)

    try:
        with (
            asked_by(ask),
            reported_by(TerminalProgress(quiet="--quiet" in arguments)),
        ):
            code: Any = app(arguments, standalone_mode=False)
        # A full disk may show itself only now.
        sys.stdout.flush()
        return int(code or 0)
    except UnderstudyError as error:
        complain(error, as_json, _notes(error), arguments)
        return error.exit_code
    except CommandLineError as error:
        if as_json:
            complain(UsageError(error.format_message(), hint="see the command's help."), as_json)
        else:
            error.show()
        return int(error.exit_code)
    except (StoppedError, KeyboardInterrupt, typer.Abort, SystemExit) as stop:
        code = stop.code if isinstance(stop, SystemExit) else 130  # a polite kill has a code of its own
        if as_json:
            complain(UnderstudyError("stopped.", code="stopped"), as_json, _notes(stop))
        elif code:
            for line in ("Stopped.", *_notes(stop)):
                typer.echo(line, err=True)
        return int(code or 0)
    except BrokenPipeError:
        # The reader of our output went away, as `head` does: not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if (fault := _machine_fault(error)) is not None:
            complain(fault, as_json, _notes(error))
            return fault.exit_code
        if os.environ.get("UNDERSTUDY_DEBUG"):
            raise
        # The message of an unforeseen error may quote a learner's record: say where, not what.
        complain(
            UnderstudyError(
                f"an error that should not happen: {safe_location(error)}.",
                hint="report it with this line; UNDERSTUDY_DEBUG=1 shows more, and may show data.",
                code="unforeseen",
            ),
            as_json,
            _notes(error),
        )
        return 1


def _machine_fault(error: Exception) -> UnderstudyError | None:
    """What this machine lacks, where no place in the library could say it better; None for another error."""
    if isinstance(error, MemoryError):
        return MissingError(
            "there is not enough memory on this machine for what was asked.",
            hint="close other programs, ask for less (fewer shadows, fewer learners), or use a larger machine.",
            code="memory",
        )
    if not isinstance(error, OSError):
        return None
    from understudy.core.files.storage.faults import disk_error

    if error.filename is None:
        # Nothing else is written without a name.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return disk_error(error, Path(os.fsdecode(error.filename)) if error.filename else None)


def _notes(error: BaseException) -> list[str]:
    """What the library has to say about a stop: what was charged, and what was written."""
    return [note for source in (error, error.__cause__) for note in getattr(source, "__notes__", ())]
