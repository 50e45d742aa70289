"""What commands that charge share: where a result goes, a last question, and what is told to who stops them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from understudy.core.privacy.ledger import Ledger


@dataclass
class Charge:
    """What will be charged, once that is known: the ledger, the release, and where the result goes."""

    book: Ledger | None = None
    card: str = ""
    out: Path | None = None

    def said(self) -> str:
        """The truth, from the ledger itself: a stop may fall into the very moment of the charge."""
        if self.book is None or not any(entry.card == self.card for entry in self.book.entries()):
            return "Stopped; nothing was charged."
        written = self.out is not None and self.out.exists()
        return (
            f"Stopped after the charge (card {self.card}): it stays in the ledger {self.book.path}, and "
            + (f"{self.out} was written." if written else "nothing was written.")
        )


@contextlib.contextmanager
def told_when_stopped() -> Iterator[Charge]:
    """Turns Ctrl-C into a sentence and the exit code that shells use for it."""
    charge = Charge()
    try:
        yield charge
    except KeyboardInterrupt:
        typer.echo(charge.said(), err=True)
        raise typer.Exit(130) from None


def paid_output(out: Path | None, usual: str, *, explain: bool) -> Path:
    """Where a json that costs budget is written; what was paid for is not overwritten. `usual` is a name for it."""
    from understudy.core.files.writing import check_parent
    from understudy.errors import UsageError

    if out is None:
        if explain:
            return Path(usual)
        raise UsageError("no file to write was given.", hint=f"add -o {usual}.")
    if out.suffix != ".json":
        raise UsageError(f"asked to write {out}; it is written as json.", hint="end it with .json.")
    check_parent(out)
    if out.exists() and not explain:
        raise UsageError(
            f"asked to write {out}, which is there already.",
            hint="choose another name; every release costs, so an earlier one is not overwritten.",
        )
    return out


def ask_before_charge() -> None:
    """A person at a terminal may still stop it."""
    if somebody_is_there() and not typer.confirm("Charge it all the same?", err=True):
        typer.echo("Nothing was charged.", err=True)
        raise typer.Exit(1)


def somebody_is_there() -> bool:
    """Whether a question would be answered."""
    return sys.stdin.isatty() and sys.stderr.isatty()
