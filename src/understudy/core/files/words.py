"""How messages count: "1 column", "2 columns"; and how they state a share."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """A number with its noun in the right form: the last word of `noun` takes the s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def share_of_points(share: float) -> str:
    """A share of an item's points in words."""
    if share == 1:
        return "all points"
    return "half of the points" if share == 0.5 else f"{100 * share:.4g} % of the points"


def listed(words: Sequence[str]) -> str:
    """Words as a sentence lists them: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
