"""Confirmation: a person may be asked before a charge, and after an interrupt. Nobody is by default.

Then a script goes on where a charge would be confirmed, and ends where it was interrupted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.core.privacy.balance import Balance
    from understudy.core.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Doubt:
    """Why a charge may not be what the custodian wants, and the settings that would help."""

    sentence: str
    settings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Question:
    """What a person is asked before a charge: what it costs, and what makes it doubtful if anything does."""

    doubts: tuple[Doubt, ...]
    guarantee: Guarantee
    balance: Balance


@dataclass(frozen=True)
class Interrupted:
    """What a person is asked after an interrupt that left something to go on with: whether to."""

    sentence: str


Asker = Callable[[Question | Interrupted], bool]
Present = Callable[[], bool]
_asker: ContextVar[tuple[Asker, Present] | None] = ContextVar("asker", default=None)


@contextlib.contextmanager
def asked_by(asker: Asker, present: Present) -> Iterator[None]:
    """Let a person confirm the charges of the block, if one is present; else the asker only states them."""
    token = _asker.set((asker, present))
    try:
        yield
    finally:
        _asker.reset(token)


def confirmed(question: Question) -> bool:
    """Whether a person agrees, if one can be asked."""
    found = _asker.get()
    return found is None or found[0](question)


def goes_on(interrupted: Interrupted) -> bool:
    """Whether a person wants to go on after an interrupt; not so where none can be asked."""
    found = _asker.get()
    return found is not None and found[1]() and found[0](interrupted)


def can_ask() -> bool:
    """Whether a person would answer: some charges are refused where none does."""
    found = _asker.get()
    return found is not None and found[1]()
