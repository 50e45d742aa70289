"""Confirmation: a person may be asked before a charge, and after an interrupt. By default no one is asked.

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
_asker: ContextVar[Asker | None] = ContextVar("asker", default=None)


@contextlib.contextmanager
def asked_by(asker: Asker) -> Iterator[None]:
    """Let a person confirm the charges of the block; where none is there, the asker only states them."""
    token = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(token)


def confirmed(question: Question) -> bool:
    """Whether a person agrees, if one can be asked."""
    asker = _asker.get()
    return asker is None or asker(question)


def goes_on(interrupted: Interrupted) -> bool:
    """Whether a person wants to go on after an interrupt; not so where none can be asked."""
    asker = _asker.get()
    return asker is not None and asker(interrupted)
