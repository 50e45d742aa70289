"""The terminal: results for people or for machines, progress, questions, errors."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import typer

from understudy.cli.other_verb import verb_for
from understudy.errors import UnderstudyError

if TYPE_CHECKING:
    from understudy.core.engine.progress import Task
    from understudy.core.files.origin import Origin
    from understudy.core.privacy.confirmation import Interrupted, Question

# A setting of the library in a note.
_SETTING = re.compile(r"`(\w+)`")
# Settings of the library that the command line calls otherwise.
OPTION_NAMES: dict[str, tuple[str, ...]] = {
    "out": ("-o", "--out"),
    "method": ("-m", "--method"),
    "methods": ("-m", "--method"),
    "as_json": ("--json",),
    # The second one where it is not the table of learners.
    "n_learners": ("--n-learners", "--learners"),
    "n_seeds": ("--seeds",),
    "n_shadows": ("--shadows",),
    "actions_file": ("--actions",),
    "at_most": ("--answers-at-most",),
    "meant_for": ("--for",),
    "pass_share": ("--pass",),
    "pass_from": ("--pass",),
    "keep_shape": ("--keep-shape/--no-keep-shape",),
}


# What a person types where no option of the same command helps, by the code of the error.
def _raise_the_limit(fields: Mapping[str, Any]) -> str:
    """The command that allows more for these learners, and for no others."""
    # A file that is yet to be written is no way to the ledger.
    files = [file for file in fields.get("files", ()) if Path(file).exists()] or ["FILE"]
    ledger = fields.get("ledger")
    beside = ledger is None or Path(files[0]).resolve().parent == Path(ledger).resolve().parent
    kept = [] if beside else ["--ledger", str(ledger)]
    words = ["understudy", "ledger", files[0], *kept, "--population", fields["population"]]
    return f'{shlex.join(words)} --limit LIMIT --reason "WHY"'


COMMANDS_THAT_HELP: dict[str, Callable[[Mapping[str, Any]], str]] = {"budget": _raise_the_limit}

# Formats whose columns have no names to choose from.
WITHOUT_COLUMNS = ("caliper", "edx", "slam", "three-line", "xapi")


def option_of(setting: str) -> str:
    """The option of a setting as people type it."""
    return OPTION_NAMES.get(setting, ("--" + setting.replace("_", "-"),))[0]


class Result(Protocol):
    """What a verb returns: it says itself in lines for people and as JSON for machines."""

    def lines(self) -> list[str]:
        """The result for people."""

    def to_json(self) -> dict[str, Any]:
        """The result for machines."""


def show(result: Result, as_json: bool) -> None:
    """Print a result, for a machine or for a person."""
    if as_json:
        echo_json(result.to_json())
    else:
        for line in result.lines():
            typer.echo(line)


def echo_json(content: Any) -> None:
    """Print a result for a machine."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """The same values with None for what JSON has no word for."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that stays readable when piped into a file."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        # A pipe has no width of its own: do not fold what a program may read.
        console = Console(width=200)
    table = Table(title=title, title_justify="left", title_style="italic", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def tell(notes: Sequence[str], quiet: bool) -> None:
    """Notes on how a file was read, beside the result."""
    if not quiet:
        for note in notes:
            typer.echo(note, err=True)


def tell_reading(origin: Origin, options: Any, quiet: bool) -> None:
    """Notes on how a file was read, and the options that declare what was recognised by names."""
    tell(with_options(origin.notes, options), quiet)
    named = [
        f"{option_of(setting)} {shlex.quote(name)}" for setting, name in recognised(origin, options).items()
    ]
    if named:
        tell([f"Recognised; to declare it: {' '.join(named)}"], quiet)


def with_options(notes: Sequence[str], options: Any) -> list[str]:
    """Notes of the library, which name its settings as errors do, with the options of a command in their place."""
    return [_SETTING.sub(lambda found: _option_in(found, options), note) for note in notes]


def _option_in(found: re.Match[str], options: Any) -> str:
    return option_of(found[1]) if hasattr(options, found[1]) else found[0]


def recognised(origin: Origin, options: Any) -> dict[str, str]:
    """The settings of reading that were recognised by names and not declared."""
    found = {"format": origin.format}
    if origin.format not in WITHOUT_COLUMNS:
        found |= origin.columns
    if not hasattr(options, "action") and "action" in found:
        found["item"] = found.pop("action")
    if hasattr(options, "time_for_order"):
        # To name it is to include its times; where it only orders the rows, there is nothing to declare.
        found.pop("time", None)
    return {
        setting: name
        for setting, name in found.items()
        if hasattr(options, setting) and getattr(options, setting) is None
    }


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the caller is a machine: then errors are JSON too."""
    return "--json" in arguments


def declared(arguments: Sequence[str], declare: Mapping[str, Any]) -> str:
    """The same command with settings declared; an option that was given already has its value replaced."""
    left = list(arguments)
    for setting, value in declare.items():
        option = option_of(setting)
        for at, argument in reversed(list(enumerate(left))):
            if argument == option or argument.startswith(f"{option}="):
                del left[at : at + (2 if argument == option else 1)]
        left += [option] if value is True else [option, value]
    return shlex.join(["understudy", *left])


def complain(
    error: UnderstudyError, as_json: bool, notes: Sequence[str] = (), arguments: Sequence[str] = ()
) -> None:
    """Print an error with the options that would help, and notes on what was charged and written.

    Where the error says what to declare, the command of these `arguments` is printed as it would be run next.
    """
    options = [option_of(setting) for setting in error.settings]
    declare = error.fields.get("declare")
    command = declared(arguments, declare) if declare and arguments else ""
    if arguments and (other := verb_for(error, arguments)) is not None:
        what, command = other
        error.hint = f"the file seems to be {what}; if it is not: {error.hint}"
    if as_json:
        content = {**error.to_json(), "options": options, "notes": list(notes)}
        if command:
            content["command"] = command
        typer.echo(json.dumps({"error": content}, indent=2, ensure_ascii=False, default=str), err=True)
        return
    typer.echo(f"Error: {error.message}", err=True)
    hint = error.hint
    if options:
        named = f"({', '.join(options)})"
        hint = f"{hint.removesuffix('.')} {named}." if hint else f"see {named[1:-1]}."
    if hint:
        typer.echo(f"Hint: {hint}", err=True)
    if error.code in COMMANDS_THAT_HELP:
        typer.echo(f"      {COMMANDS_THAT_HELP[error.code](error.fields)}", err=True)
    if command:
        typer.echo(f"Run next: {command}", err=True)
    for note in notes:
        typer.echo(note, err=True)


class TerminalProgress:
    """Shows tasks as bars on a terminal; elsewhere a line now and then, so that a log shows life.

    Nothing is shown where nobody looks: with `quiet`, and without a terminal in continuous integration, which sets CI.
    """

    # Seconds between two lines where there is no terminal, and before the first.
    LINE_EVERY = 10.0

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._no_lines = quiet or os.environ.get("CI", "").lower() not in ("", "0", "false")

    @contextlib.contextmanager
    def task(self, name: str, total: int | None) -> Iterator[Task]:
        """Show a task until its block ends."""
        from rich.console import Console

        console = Console(stderr=True)
        if self._quiet or not console.is_terminal:
            with _Lines(name, total, None if self._no_lines else self.LINE_EVERY) as lines:
                yield lines
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
        )
        with bar:
            yield _Bar(bar, bar.add_task(name, total=total, note=""))


class _Bar:
    def __init__(self, bar: Any, number: Any) -> None:
        self._bar, self._number = bar, number

    def advance(self, n: int = 1) -> None:
        self._bar.advance(self._number, n)

    def note(self, text: str) -> None:
        self._bar.update(self._number, note=text)


class _Lines:
    """A line now and then, also while a part of the step takes long."""

    def __init__(self, name: str, total: int | None, every: float | None) -> None:
        self._name, self._total, self._every = name, total, every
        self._done, self._note, self._ended = 0, "", threading.Event()
        self._begun = time.monotonic()

    def __enter__(self) -> _Lines:
        if self._every is not None:
            threading.Thread(target=self._tell, args=(sys.stderr,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _tell(self, stream: TextIO) -> None:
        last: tuple[int, str] | None = None
        while not self._ended.wait(self._every):
            state = self._done, self._note
            # The same line once more would say nothing.
            if state != last:
                typer.echo(self._line(*state), file=stream)
            last = state

    def _line(self, done: int, note: str) -> str:
        if not self._total:
            return f"{self._name} {note}".rstrip()
        left = ""
        if 0 < done < self._total:
            seconds = (time.monotonic() - self._begun) * (self._total - done) / done
            left = f", about {duration(seconds)} left"
        return f"{self._name}: {done} of {self._total}{left} {note}".rstrip()

    def advance(self, n: int = 1) -> None:
        self._done += n

    def note(self, text: str) -> None:
        self._note = text


def duration(seconds: float) -> str:
    """A time to wait, no finer than it is known."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def somebody_is_there() -> bool:
    """Whether a question would be answered."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_before_charge(question: Question, present: Callable[[], bool]) -> bool:
    """State a charge and its doubts on the side, and let a person at the terminal stop it."""
    for doubt in question.doubts:
        options = ", ".join(map(option_of, doubt.settings))
        typer.echo(f"{doubt} ({options})" if options else str(doubt), err=True)
    if question.guarantee.formal:
        typer.echo(question.balance.price(question.guarantee), err=True)
    if not present():
        return True
    return confirm("Charge it?")


def listen_to_ctrl_c() -> None:
    """Let Ctrl-C stop a question that is open; called before each one.

    polars sets a handler of its own for SIGINT, after which the system resumes a read that the signal interrupts: the
    command would be stopped by the next Enter only.
    """
    if hasattr(signal, "siginterrupt"):
        signal.siginterrupt(signal.SIGINT, True)


def confirm(question: str) -> bool:
    """Ask a question on the side, and go on only if the answer is yes; Ctrl-C and the end of input stop the command.

    Nothing of the question goes to the output, which a machine may read.
    """
    listen_to_ctrl_c()
    while True:
        typer.echo(f"{question} [y/N]: ", err=True, nl=False)
        answer = sys.stdin.readline()
        if not answer:
            typer.echo(err=True)
            raise typer.Abort
        if answer.strip().lower() in ("y", "yes"):
            return True
        if answer.strip().lower() in ("", "n", "no"):
            return False
        typer.echo("Please answer y or n.", err=True)


def ask_after_interrupt(interrupted: Interrupted) -> bool:
    """Say at once what an interrupt left, and whether to go on with it; another Ctrl-C means no."""
    typer.echo(f"\n{interrupted.sentence}", err=True)
    try:
        return confirm("Write what was learned so far? Ctrl-C stops without writing.")
    except (typer.Abort, KeyboardInterrupt):
        typer.echo(err=True)
        return False


def file_named(text: str) -> Path:
    """A path as people type or drop it: with quotes around it, or from their home."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return Path(text).expanduser()
