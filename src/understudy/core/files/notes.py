"""Notes on how a file was read: sentences, whose counts can be added up where a file is read in pieces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from understudy.core.files.words import counted


class Count(NamedTuple):
    """A number of things in a note."""

    n: int
    noun: str = ""

    @property
    def words(self) -> str:
        """As it stands in the sentence."""
        return counted(self.n, self.noun) if self.noun else f"{self.n:,}"


class CountingNote(str):
    """A sentence made of words and counts."""

    parts: tuple[str | Count, ...]

    def __new__(cls, *parts: str | Count) -> CountingNote:
        """Join the parts, in this order."""
        note = super().__new__(
            cls, "".join(part.words if isinstance(part, Count) else part for part in parts)
        )
        note.parts = parts
        return note


def add_up(notes: Iterable[str]) -> list[str]:
    """Each sentence once, in the order of its first appearance, with the counts of all its appearances."""
    sums: dict[tuple[str, ...], tuple[str | Count, ...]] = {}
    for note in notes:
        parts = note.parts if isinstance(note, CountingNote) else (note,)
        form = tuple(part.noun if isinstance(part, Count) else part for part in parts)
        sums[form] = tuple(map(_sum, sums[form], parts)) if form in sums else parts
    return [CountingNote(*parts) for parts in sums.values()]


def _sum(first: str | Count, second: str | Count) -> str | Count:
    if isinstance(first, Count) and isinstance(second, Count):
        return Count(first.n + second.n, first.noun)
    return first
