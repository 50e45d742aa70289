"""Latencies of typing, counted and summed by who typed and which keys: all that a profile needs.

Totals are additive, so that a large course can be read in parts. The bounds follow Leinonen (2016, section 4.1):
below 10 ms an editor types, above 750 ms the typist thinks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.errors import UsageError
from understudy.keystrokes.keystrokes import NANOSECONDS, UNKNOWN, Keystrokes

SHORTEST, LONGEST = 10.0, 750.0  # milliseconds
ARROW, TO, HOLD = " → ", "→ ", "↓ "
# Beyond this many possible combinations they are sorted instead of looked up in a table.
LARGEST_TABLE = 50_000_000

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]


class Kind(StrEnum):
    """What a latency is about."""

    digraph = "digraph"  # from one key to the next
    trigraph = "trigraph"  # from a key to the one after the next
    key = "key"  # to a key, from whichever
    hold = "hold"  # how long a key is down


@dataclass(frozen=True, eq=False, repr=False)
class Totals:
    """How often each owner typed each feature, and the milliseconds that it took in sum.

    An owner is what a profile describes: a learner, or a learner in a stretch of time.
    `speed_count` and `speed_total` are over all digraphs, also those that are not a feature here.
    """

    features: tuple[str, ...]
    count: NDArray[np.int64]
    total: Floats
    speed_count: NDArray[np.int64]
    speed_total: Floats

    @property
    def speed(self) -> Floats:
        """An owner's average digraph latency; nan for one who typed nothing."""
        with np.errstate(invalid="ignore"):
            return self.speed_total / self.speed_count

    def of(self, features: Codes) -> Totals:
        """Only the features at these positions."""
        return Totals(
            tuple(self.features[j] for j in features),
            self.count[:, features],
            self.total[:, features],
            self.speed_count,
            self.speed_total,
        )

    def named(self, features: tuple[str, ...]) -> Totals:
        """The features of these names, in this order; what was not typed here counts 0."""
        place = {name: position for position, name in enumerate(self.features)}
        known = np.array([place.get(name, -1) for name in features], dtype=np.int64)
        found = known >= 0
        count = np.zeros((len(self.count), len(features)), dtype=self.count.dtype)
        total = np.zeros((len(self.total), len(features)))
        count[:, found], total[:, found] = self.count[:, known[found]], self.total[:, known[found]]
        return Totals(features, count, total, self.speed_count, self.speed_total)

    @classmethod
    def of_all(cls, parts: Sequence[Totals]) -> Totals:
        """Of the owners of all parts, which have the same features."""
        return cls(
            parts[0].features,
            np.concatenate([part.count for part in parts]),
            np.concatenate([part.total for part in parts]),
            np.concatenate([part.speed_count for part in parts]),
            np.concatenate([part.speed_total for part in parts]),
        )

    def owners(self, chosen: Codes) -> Totals:
        """Only the owners at these positions."""
        return Totals(
            self.features,
            self.count[chosen],
            self.total[chosen],
            self.speed_count[chosen],
            self.speed_total[chosen],
        )


def count_latencies(
    keystrokes: Keystrokes,
    owner: Codes,
    n_owners: int,
    kinds: tuple[Kind, ...] = (Kind.digraph,),
    shortest: float = SHORTEST,
    longest: float = LONGEST,
) -> Totals:
    """Totals over the rows whose owner is not negative; a latency belongs to the owner of its last key.

    Both ends of a digraph must have the same owner: none begins in another week.
    """
    milliseconds, typed = _typed(keystrokes, owner, shortest, longest)
    speed_count, speed_total = np.zeros((n_owners, 1), np.int64), np.zeros((n_owners, 1))
    _add(np.where(typed, 0, -1), milliseconds, owner, speed_count, speed_total)
    names: list[str] = []
    counts, totals = [], []
    for kind in kinds:
        code, value, labels = _features(keystrokes, milliseconds, typed, owner, kind, longest)
        count, total = np.zeros((n_owners, len(labels)), np.int64), np.zeros((n_owners, len(labels)))
        _add(code, value, owner, count, total)
        names += labels
        counts.append(count)
        totals.append(total)
    return Totals(tuple(names), np.hstack(counts), np.hstack(totals), speed_count[:, 0], speed_total[:, 0])


def in_order(features: Iterable[str], kind: Kind, keys: tuple[str, ...]) -> list[str]:
    """Features of one kind as `count_latencies` lists them."""
    place = {shown(key): at for at, key in enumerate(keys)}
    prefix = {Kind.key: TO, Kind.hold: HOLD}.get(kind, "")
    return sorted(features, key=lambda name: [place[key] for key in name.removeprefix(prefix).split(ARROW)])


def latency_rows(
    keystrokes: Keystrokes,
    owner: Codes,
    kind: Kind,
    shortest: float = SHORTEST,
    longest: float = LONGEST,
) -> tuple[NDArray[np.int64], Floats, list[str]]:
    """Row for row what `count_latencies` adds up: the feature (-1: none), its milliseconds; the features' names.

    A trigraph can take up to twice `longest`: each of its two latencies is within the bounds.
    """
    return _features(keystrokes, *_typed(keystrokes, owner, shortest, longest), owner, kind, longest)


def _typed(
    keystrokes: Keystrokes, owner: Codes, shortest: float, longest: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """Milliseconds since the row before, and whether that is a latency of typing by one owner."""
    milliseconds = keystrokes.latencies / NANOSECONDS
    typed = keystrokes.follows & (owner >= 0) & (milliseconds >= shortest) & (milliseconds <= longest)
    typed[1:] &= owner[1:] == owner[:-1]
    return milliseconds, typed


def _features(
    keystrokes: Keystrokes,
    milliseconds: Floats,
    typed: NDArray[np.bool_],
    owner: Codes,
    kind: Kind,
    longest: float,
) -> tuple[NDArray[np.int64], Floats, list[str]]:
    """The feature that each row ends (-1: none), its value, and the features' names."""
    key, keys = keystrokes.key.astype(np.int64), keystrokes.keys
    if kind is Kind.key:
        return np.where(typed, key, -1), milliseconds, [f"{TO}{shown(one)}" for one in keys]
    if kind is Kind.hold:
        held = np.full(len(key), UNKNOWN) if keystrokes.hold is None else keystrokes.hold
        value = held / NANOSECONDS
        usable = (owner >= 0) & (value >= 0) & (value <= longest)
        return np.where(usable, key, -1), value, [f"{HOLD}{shown(one)}" for one in keys]
    parts, value = [_shifted(key), key], milliseconds
    if kind is Kind.trigraph:
        parts, value = [_shifted(parts[0]), *parts], milliseconds + _shifted(milliseconds)
        typed = typed & _shifted(typed)
    combined = parts[0]
    for part in parts[1:]:
        combined = combined * len(keys) + part
    code, present = _numbered(combined, typed, len(keys) ** len(parts))
    return code, value, [_name(int(one), keys, len(parts)) for one in present]


def _shifted(column: NDArray[Any]) -> NDArray[Any]:
    """Each row's value in the row before; the first row keeps its own, and follows none anyway."""
    return np.concatenate([column[:1], column[:-1]])


def _name(combined: int, keys: tuple[str, ...], n_parts: int) -> str:
    places = [combined // len(keys) ** power % len(keys) for power in reversed(range(n_parts))]
    return ARROW.join(shown(keys[place]) for place in places)


def shown(key: str) -> str:
    """A key as people can read it."""
    return {" ": "Space", "\n": "Enter", "\t": "Tab"}.get(key, key)


def _numbered(
    combined: NDArray[np.int64], typed: NDArray[np.bool_], n_possible: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Combinations numbered from 0 among those that occur (-1 elsewhere), and which they are."""
    if n_possible > LARGEST_TABLE:
        present, place = np.unique(combined[typed], return_inverse=True)
        code = np.full(len(combined), -1)
        code[typed] = place
        return code, present
    occurs = np.zeros(n_possible, dtype=bool)
    occurs[combined[typed]] = True
    numbers = np.cumsum(occurs) - 1
    return np.where(typed, numbers[combined], -1), np.flatnonzero(occurs)


@njit(cache=True)
def _add(code, value, owner, count, total):  # type: ignore[no-untyped-def]
    for r in range(len(code)):
        if code[r] >= 0:
            count[owner[r], code[r]] += 1
            total[owner[r], code[r]] += value[r]


WIDTH = 10.0  # milliseconds of a class


@dataclass(frozen=True, eq=False, repr=False)
class Histograms:
    """`count[i, j, c]`: latencies of owner i on feature j from c to c + 1 times `width` milliseconds."""

    features: tuple[str, ...]
    width: float
    count: NDArray[np.int32]


def count_histograms(
    keystrokes: Keystrokes,
    owner: Codes,
    n_owners: int,
    features: tuple[str, ...],
    kind: Kind = Kind.digraph,
    width: float = WIDTH,
    shortest: float = SHORTEST,
    longest: float = LONGEST,
) -> Histograms:
    """Histograms over the rows that `count_latencies` would count, for the named features of one kind.

    The features are named, not numbered, so that two calls count the same ones. A name that does not
    occur has no latencies. Coarse times should be counted up to where `longest` is coarsened to.
    """
    if not width > 0:
        raise UsageError(f"asked for classes of {width} ms.", hint="give a width above 0 ms.")
    code, value, labels = latency_rows(keystrokes, owner, kind, shortest, longest)
    wanted = {name: place for place, name in enumerate(features)}
    place = np.array([wanted.get(name, -1) for name in labels] + [-1], dtype=np.int64)
    largest = 2 * longest if kind is Kind.trigraph else longest
    count = np.zeros((n_owners, len(features), int(largest // width) + 1), dtype=np.int32)
    _tally(place[code], np.asarray(value, dtype=np.float64), owner, width, count)
    return Histograms(features, width, count)


@njit(cache=True)
def _tally(feature, value, owner, width, count):  # type: ignore[no-untyped-def]
    for r in range(len(feature)):
        if feature[r] >= 0:
            count[owner[r], feature[r], int(value[r] // width)] += 1


@dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """`window[r]` is the window of row r, or -1; `owner[w]` is whose typing window w is.

    `count_latencies(keystrokes, windows.window, windows.n_windows)` gives the totals of each.
    """

    window: NDArray[np.int32]
    owner: NDArray[np.int32]

    @property
    def n_windows(self) -> int:
        """How many windows there are."""
        return len(self.owner)


def by_week(keystrokes: Keystrokes, owner: Codes) -> Windows:
    """A window per owner and week; rows without an owner or a week belong to none."""
    used = (owner >= 0) & (keystrokes.week >= 0)
    n_weeks = int(keystrokes.week.max(initial=0)) + 1
    return _numbered_windows(owner.astype(np.int64) * n_weeks + keystrokes.week, used, n_weeks)


def by_size(owner: Codes, n_keys: int) -> Windows:
    """Windows of `n_keys` presses one after the other; what is left at an owner's end joins the last window.

    The rows of an owner need not be next to each other, only in order.
    """
    if n_keys < 2:
        raise UsageError(
            f"asked for windows of {n_keys} keys.", hint="give at least 2; some hundred are usual."
        )
    used = owner >= 0
    rows = np.flatnonzero(used)
    order = rows[np.argsort(owner[rows], kind="stable")]
    size = np.bincount(owner[rows]) if len(rows) else np.zeros(0, np.int64)
    first = np.cumsum(size) - size
    whose = owner[order]
    place = np.arange(len(order)) - first[whose]
    n_windows = np.maximum(size // n_keys, 1)
    block = np.minimum(place // n_keys, n_windows[whose] - 1)
    most = int(n_windows.max(initial=1))
    combined = np.full(len(owner), -1, dtype=np.int64)
    combined[order] = whose.astype(np.int64) * most + block
    return _numbered_windows(combined, used, most)


def _numbered_windows(combined: NDArray[np.int64], used: NDArray[np.bool_], per_owner: int) -> Windows:
    present, place = np.unique(combined[used], return_inverse=True)
    window = np.full(len(combined), -1, dtype=np.int32)
    window[used] = place
    return Windows(window, (present // per_owner).astype(np.int32))
