"""Difficulties as they are released: the file that a student's side needs, and all that it needs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy.errors import DataError
from understudy.privacy.guarantee import Guarantee

FORMAT = "understudy difficulties"
VERSION = 1


@dataclass(frozen=True)
class Item:
    """One item: its difficulty on the scale of log-odds, and how sure it is.

    `difficulty` is None where the fit has no finite one (everybody was right, or nobody was, in
    a fit that is not private); `unbounded` then says "easy" or "hard". `chance` is that of a
    student drawn from the ability distribution. `rank_from` and `rank_to` are the places,
    from the easiest on, that the item may have at this precision.
    """

    name: str
    difficulty: float | None
    standard_error: float | None
    chance: float
    reading: str
    rank_from: int
    rank_to: int
    unbounded: str | None = None


@dataclass(frozen=True)
class Ability:
    """The distribution of abilities that the difficulties refer to: the prior of a student's ability."""

    mean: float = 0.0
    sd: float = 1.0
    source: str = "fixed"


@dataclass(frozen=True)
class Difficulties:
    """Items with their difficulties, the guarantee they carry, and how they came about.

    `steps` groups the items from the easiest on; the order within a group cannot be told.
    """

    items: tuple[Item, ...]
    steps: tuple[tuple[str, ...], ...]
    ability: Ability
    guarantee: Guarantee
    provenance: dict[str, Any] = field(default_factory=dict)
    title: str = ""

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "items": [
                {
                    "item": item.name,
                    "difficulty": item.difficulty,
                    "standard_error": item.standard_error,
                    "chance": item.chance,
                    "reading": item.reading,
                    "rank_from": item.rank_from,
                    "rank_to": item.rank_to,
                    "unbounded": item.unbounded,
                }
                for item in self.items
            ],
            "steps": [list(step) for step in self.steps],
            "ability": {
                "mean": self.ability.mean,
                "sd": self.ability.sd,
                "source": self.ability.source,
            },
            "guarantee": self.guarantee.to_json(),
            "provenance": self.provenance,
        }
