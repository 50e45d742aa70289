"""Difficulties as they are released: the file that a student's side needs, and all that it needs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError

FORMAT = "understudy difficulties"
VERSION = 1

# Log-odds beyond these are no difficulties of anything: a chance of e^-100 never happens. They also
# bound the work of whoever integrates over abilities.
_FARTHEST = 100.0
_NARROWEST, _WIDEST = 0.01, 20.0
_LEAST_SURE = 1000.0
_LARGEST = sys.float_info.max

# What `Guarantee.__str__` writes when nothing is proved; the reason stands in parentheses behind it.
_NOTHING_PROVED = "no formal guarantee"


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

    @classmethod
    def read(cls, path: Path | str) -> Difficulties:
        """The difficulties of a file that `understudy difficulties` wrote."""
        path = Path(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(
                f"asked to read difficulties from {path}, which cannot be opened ({error.strerror}).",
                hint="give the JSON file that `understudy difficulties` wrote.",
            ) from None
        # A file of brackets only is nested deeper than the parser goes.
        except (ValueError, RecursionError):
            raise DataError(
                f"{path} is not a JSON file, or a damaged one.", hint=_ASK_AGAIN.format(what="the file")
            ) from None
        return cls.from_json(content, source=str(path))

    @classmethod
    def from_json(cls, content: Any, *, source: str = "the difficulties") -> Difficulties:
        """The difficulties of a file's content; `source` names it in errors."""
        found = _Content(content, source)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise DataError(
                f'{source} is not a file of difficulties: it does not say "format": "{FORMAT}".',
                hint="give the JSON file that `understudy difficulties` wrote.",
            )
        if content.get("version") != VERSION or isinstance(content["version"], bool):
            raise DataError(
                f"{source} is of another version than {VERSION}, the one that is understood here.",
                hint="use the version of understudy that wrote it, or a newer one.",
            )
        try:
            # What JSON text cannot hold (a lone surrogate, an infinite number) could not be shown or kept.
            json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8")
        except (ValueError, RecursionError):
            raise found.damaged("a number or a text that no such file holds") from None
        entries = found.list("items")
        items = tuple(_item(_Content(entry, source, f"item {k + 1}")) for k, entry in enumerate(entries))
        names = [item.name for item in items]
        if not items:
            raise found.damaged("no items")
        if len(set(names)) < len(names):
            raise found.damaged("two items of the same name")
        if any(not 1 <= item.rank_from <= item.rank_to <= len(items) for item in items):
            raise found.damaged(f"an item whose places are not between 1 and {len(items)}")
        ability = _Content(found.dict("ability"), source, "ability")
        return cls(
            items=items,
            steps=_steps(found, items),
            ability=Ability(
                ability.number("mean", -_FARTHEST, _FARTHEST),
                ability.number("sd", _NARROWEST, _WIDEST),
                ability.text("source"),
            ),
            guarantee=_guarantee(_Content(found.dict("guarantee"), source, "guarantee")),
            provenance=dict(found.dict("provenance")),
            title=found.text("title"),
        )


_ASK_AGAIN = "get {what} again from whoever released the difficulties; it must not be edited."


@dataclass(frozen=True)
class _Content:
    """A part of the file, asked for one value at a time; what is wrong is told by its place."""

    content: Any
    source: str
    place: str = ""

    def damaged(self, what: str) -> DataError:
        """The error that names the file, the place and what was found."""
        where = f" ({self.place})" if self.place else ""
        return DataError(
            f"{self.source} is a damaged file of difficulties{where}: found {what}.",
            hint=_ASK_AGAIN.format(what="the file"),
        )

    def value(self, name: str) -> Any:
        """What stands under a name."""
        if not isinstance(self.content, dict) or name not in self.content:
            raise self.damaged(f"no '{name}'")
        return self.content[name]

    def text(self, name: str) -> str:
        """A text."""
        value = self.value(name)
        if not isinstance(value, str):
            raise self.damaged(f"a '{name}' that is no text")
        return value

    def number(self, name: str, least: float, most: float) -> float:
        """A number between two bounds."""
        value = self.value(name)
        # True is an int to Python; nan fails both comparisons.
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.damaged(f"a '{name}' that is no number between {least:g} and {most:g}")
        return float(value)

    def optional(self, name: str, least: float, most: float) -> float | None:
        """A number between two bounds, or nothing."""
        return None if self.value(name) is None else self.number(name, least, most)

    def whole(self, name: str) -> int:
        """A whole number."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.damaged(f"a '{name}' that is no whole number")
        return value

    def list(self, name: str) -> list[Any]:
        """A list."""
        value = self.value(name)
        if not isinstance(value, list):
            raise self.damaged(f"a '{name}' that is no list")
        return value

    def dict(self, name: str) -> dict[str, Any]:
        """Names with values."""
        value = self.value(name)
        if not isinstance(value, dict):
            raise self.damaged(f"a '{name}' that has no named values")
        return value


def _item(entry: _Content) -> Item:
    name, unbounded = entry.text("item"), entry.value("unbounded")
    if not name.strip():
        raise entry.damaged("an item without a name")
    if unbounded not in (None, "easy", "hard"):
        raise entry.damaged("an 'unbounded' that is neither null nor easy nor hard")
    return Item(
        name=name,
        difficulty=entry.optional("difficulty", -_FARTHEST, _FARTHEST),
        standard_error=entry.optional("standard_error", 0.0, _LEAST_SURE),
        chance=entry.number("chance", 0.0, 1.0),
        reading=entry.text("reading"),
        rank_from=entry.whole("rank_from"),
        rank_to=entry.whole("rank_to"),
        unbounded=unbounded,
    )


def _steps(found: _Content, items: tuple[Item, ...]) -> tuple[tuple[str, ...], ...]:
    steps = found.list("steps")
    if not all(isinstance(step, list) and step for step in steps):
        raise found.damaged("a step that is no list of items")
    placed = [name for step in steps for name in step]
    if not all(isinstance(name, str) for name in placed) or not set(placed) <= {item.name for item in items}:
        raise found.damaged("a step with something that is none of the items")
    if len(set(placed)) < len(placed):
        raise found.damaged("an item that stands on two steps")
    if {item.name for item in items if item.difficulty is not None} - set(placed):
        raise found.damaged("an item with a difficulty that stands on no step")
    return tuple(tuple(step) for step in steps)


def _guarantee(entry: _Content) -> Guarantee:
    """The guarantee as it was written; the reason for having none is read out of its statement."""
    formal, mechanisms = entry.value("formal"), entry.list("mechanisms")
    statement = entry.text("statement")
    if not isinstance(formal, bool) or formal != (entry.value("epsilon") is not None):
        raise entry.damaged("a 'formal' that does not agree with 'epsilon'")
    if not all(isinstance(name, str) for name in mechanisms):
        raise entry.damaged("a mechanism that is no text")
    if not formal:
        if not statement.startswith(_NOTHING_PROVED):
            raise entry.damaged("a 'statement' that does not agree with 'formal'")
        reason = statement.removeprefix(_NOTHING_PROVED).strip()
        return replace(
            Guarantee.none(reason[1:-1] if reason.startswith("(") and reason.endswith(")") else reason),
            mechanisms=tuple(mechanisms),
            unit=entry.text("unit"),
            adjacency=entry.text("adjacency"),
        )
    epsilon, delta = entry.number("epsilon", 0.0, _LARGEST), entry.number("delta", 0.0, 1.0)
    if not epsilon > 0 or not delta < 1:
        raise entry.damaged("an epsilon of 0 or a delta of 1")
    return Guarantee(
        epsilon,
        delta,
        mu=entry.optional("mu", 0.0, _LARGEST),
        mechanisms=tuple(mechanisms),
        unit=entry.text("unit"),
        adjacency=entry.text("adjacency"),
        rho=entry.optional("rho", 0.0, _LARGEST),
        slack=entry.optional("slack", 0.0, _LARGEST),
    )
