"""Questions at a terminal: asked again when the answer cannot be right, and left by Ctrl-C with nothing made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import typer

Answer = TypeVar("Answer")
STOPPED = "Stopped; nothing was made."
# As a shell has it for Ctrl-C.
_STOPPED_CODE = 130


def ask(words: str, option: str, understood: Callable[[str], Answer], default: str | None = None) -> Answer:
    """The answer as `understood` takes it; what it refuses is said and asked again, where somebody can answer."""
    from understudy.errors import UnderstudyError

    while True:
        given = _asked(words, option, default)
        try:
            return understood(given.strip())
        except UnderstudyError as error:
            if not at_a_terminal():
                raise
            typer.echo(f"{error.message} Hint: {error.hint}", err=True)


def confirmed(words: str) -> bool:
    """A yes or no, yes by default."""
    try:
        return typer.confirm(words, default=True, err=True)
    except typer.Abort:
        raise stopped() from None


def file_named(text: str) -> Path:
    """A path as people type or drop it: with quotes around it, or from their home."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return Path(text).expanduser()


def at_a_terminal() -> bool:
    """Whether somebody can answer."""
    import sys

    return sys.stdin.isatty()


def stopped() -> typer.Exit:
    """To raise when somebody pressed Ctrl-C, once nothing is left behind."""
    typer.echo(f"\n{STOPPED}", err=True)
    return typer.Exit(_STOPPED_CODE)


def _asked(words: str, option: str, default: str | None) -> str:
    from understudy.errors import UsageError

    try:
        answer: str = typer.prompt(words, default=default, show_default=bool(default), err=True)
    except typer.Abort:
        if at_a_terminal():
            raise stopped() from None
        raise UsageError(
            f"nobody answered: {words}?", hint=f"give it with {option} where there is no terminal."
        ) from None
    return answer
