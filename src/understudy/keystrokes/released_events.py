"""Key presses as they are released: coarse times from 0, new names, and only the columns that were asked for.

What stays identifies: the text that was typed, the order of keys, how much was typed. There is no formal
guarantee; a sweep measures who can still be identified.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from understudy.core.names import SIMULATED_PREFIX
from understudy.errors import UsageError
from understudy.keystrokes.coarsening import (
    LONGEST_PAUSE,
    MIN_LEARNERS_PER_KEY,
    Coarsening,
    learners_per_key,
    rebuild_times,
)
from understudy.keystrokes.formats.events import event_table
from understudy.keystrokes.keystrokes import NANOSECONDS, UNKNOWN, Keystrokes

SHORTEST_PAUSE = 1000.0  # no less: up to 750 ms is typing

COLUMNS = ("week", "session", "hold")


class Keys(StrEnum):
    """How much of the keys is released."""

    all = "all"
    classes = "classes"


@dataclass(frozen=True)
class ReleasedColumns:
    """What of the events is released beside the order of keys and their coarse latencies."""

    week: bool = False
    session: bool = False
    hold: bool = False
    keys: Keys = Keys.classes
    fewest: int = MIN_LEARNERS_PER_KEY
    longest_pause: float = LONGEST_PAUSE

    def __post_init__(self) -> None:
        if not (np.isfinite(self.longest_pause) and self.longest_pause >= SHORTEST_PAUSE):
            raise UsageError(
                f"asked for pauses of at most {self.longest_pause:g} ms.",
                hint=f"give {SHORTEST_PAUSE:g} or more, such as 5000: a pause must not look like typing.",
                settings=("longest_pause",),
            )
        if self.fewest < 1:
            raise UsageError(
                f"asked for keys of at least {self.fewest} learners.",
                hint="give 1 or more.",
                settings=("rare_keys",),
            )

    @classmethod
    def parse(cls, text: str, **others: Any) -> ReleasedColumns:
        """From the names of columns as a user writes them: `week,session`."""
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if name not in COLUMNS:
                raise UsageError(
                    f"asked to keep '{name}'.",
                    hint=f"beside keys and latencies one can keep {', '.join(COLUMNS)}; all else is dropped.",
                    settings=("keep",),
                )
        asked = {name: name in names for name in COLUMNS}
        return cls(asked["week"], asked["session"], asked["hold"], **others)

    def check_hold(self, keystrokes: Keystrokes) -> None:
        """Refuse to keep hold times that the file does not have."""
        if self.hold and keystrokes.hold is None:
            raise UsageError(
                "asked to keep hold times, which the file does not have.",
                hint="leave hold out.",
                settings=("keep",),
            )


def coarsen_events(
    keystrokes: Keystrokes,
    coarsening: Coarsening,
    columns: ReleasedColumns,
    rng: np.random.Generator,
    chance: random.Random | None = None,
) -> Keystrokes:
    """What may be written: learners in random order, coarse times, only the chosen columns.

    With sessions, every session starts at 0. Without them, a learner's sessions follow one another,
    the longest pause apart, and their number cannot be read off.

    `rng` draws random places and delays, whose results are released. The order comes from `chance`, the
    operating system unless a test gives another, so that nothing released reveals it.
    """
    order = list(range(keystrokes.n_learners))
    (chance or random.SystemRandom()).shuffle(order)
    mixed = keystrokes.learners(np.array(order, dtype=np.int64))
    columns.check_hold(mixed)
    mixed = replace(
        _with_key_classes(mixed, columns.keys, columns.fewest), hold=mixed.hold if columns.hold else None
    )
    coarse = rebuild_times(
        mixed,
        coarsening,
        rng,
        longest_pause=columns.longest_pause,
        running_on=not columns.session,
        fewest=columns.fewest,
    )
    unknown = np.full(coarse.n_rows, UNKNOWN, dtype=np.int32)
    known = coarse.week[coarse.week >= 0]
    first = int(known.min()) if len(known) else 0
    hold = coarse.hold
    return replace(
        coarse,
        # Whole milliseconds: finer digits would only look exact.
        time=coarse.time // NANOSECONDS * NANOSECONDS,
        hold=None if hold is None else np.where(hold >= 0, hold // NANOSECONDS * NANOSECONDS, UNKNOWN),
        week=np.where(coarse.week >= 0, coarse.week - first, UNKNOWN) if columns.week else unknown,
        session=coarse.session if columns.session else np.zeros(coarse.n_rows, dtype=np.int32),
    )


def released_table(
    coarse: Keystrokes, columns: ReleasedColumns, chance: random.Random | None = None
) -> pl.DataFrame:
    """The events as they are written: fresh names, and no column beside those that were asked for.

    Where a key follows none, the gap before it is the longest pause; no column says so.
    """
    table = event_table(coarse)
    names = pseudonyms(coarse.n_learners, chance, SIMULATED_PREFIX if coarse.simulated else "learner-")
    table = table.with_columns(learner=pl.Series(names, dtype=pl.String).gather(coarse.learner))
    wanted = {"week": columns.week, "session": columns.session, "follows": False}
    return table.select(name for name in table.columns if wanted.get(name, True))


def _with_key_classes(keystrokes: Keystrokes, keys: Keys, fewest: int) -> Keystrokes:
    """Class names in place of all keys, or of those that fewer than `fewest` learners pressed.

    A class of so few points at them as well, unless all learners of the file are in it: it becomes "other".
    """
    n_learners = learners_per_key(keystrokes)
    names = [
        key_class(name) if keys is Keys.classes or n_learners[code] < fewest else name
        for code, name in enumerate(keystrokes.keys)
    ]
    classed = _renamed(keystrokes, names)
    few = learners_per_key(classed) < min(fewest, keystrokes.n_learners)
    rare = {name for name, is_rare in zip(classed.keys, few, strict=True) if is_rare and name in CLASSES}
    return _renamed(classed, ["other" if name in rare else name for name in classed.keys])


def _renamed(keystrokes: Keystrokes, names: list[str]) -> Keystrokes:
    """Keys by these names, a name per code; equal ones become one key."""
    # Sorted, so that the list of keys does not show who came first in the file.
    known = tuple(sorted({names[code] for code in np.unique(keystrokes.key)})) or ("",)
    place = {name: position for position, name in enumerate(known)}
    renamed = np.array([place.get(name, 0) for name in names], dtype=np.int32)
    return replace(keystrokes, key=renamed[keystrokes.key], keys=known)


CLASSES = ("letter", "digit", "space", "symbol", "backspace", "other")
_BLANK = {" ", "\n", "\t", "\r", "space", "enter", "return", "tab"}
_BACKWARDS = {"\b", "\x7f", "backspace", "delete", "del"}
_NAMED_SYMBOLS = {
    *("comma", "period", "semicolon", "colon", "slash", "backslash", "quote", "minus", "equal", "plus"),
    *("bracketleft", "bracketright", "backquote", "intlbackslash"),
}


def key_class(key: str) -> str:
    """letter, digit, space (and Enter, Tab), symbol, backspace (and Delete) or other, such as Shift or a text."""
    name = key.casefold()
    if name in CLASSES:  # of a file that was made coarse before
        return name
    if name in _BLANK:
        return "space"
    if name in _BACKWARDS:
        return "backspace"
    if re.fullmatch(r"key[a-z]", name):
        return "letter"
    if re.fullmatch(r"(digit|numpad)[0-9]", name):
        return "digit"
    if name in _NAMED_SYMBOLS:
        return "symbol"
    if len(key) != 1:
        return "other"
    if key.isalpha():
        return "letter"
    if key.isdigit():
        return "digit"
    return "symbol" if key.isprintable() else "other"


def pseudonyms(n_learners: int, chance: random.Random | None = None, prefix: str = "learner-") -> list[str]:
    """Fresh names that say nothing, all different; from the operating system unless a test gives another chance."""
    chance = chance or random.SystemRandom()
    names: dict[str, None] = {}
    while len(names) < n_learners:
        names[f"{prefix}{chance.getrandbits(32):08x}"] = None
    return list(names)
