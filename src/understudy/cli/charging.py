"""What a person who stops a command is told: whether anything was charged by then."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from understudy.privacy.ledger import Ledger


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
