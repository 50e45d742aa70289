"""Coarsening of latencies: the two ways of Leinonen (2016, equations 3 to 5) and three more, on averages or on events.

None of them carries a formal guarantee. They are written `round:300`, `bucket:300`, `shift:300`, `delay:25-500` or
`classes:3`; sizes and delays are in milliseconds.
"""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import UsageError
from understudy.keystrokes.keystrokes import NANOSECONDS, UNKNOWN, Keystrokes
from understudy.keystrokes.latencies import LONGEST, SHORTEST

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Random = np.random.Generator

# The length of a pause can be matched with another log of the same hour; above this all are equal.
LONGEST_PAUSE = 5000.0
# Keys of fewer learners than this point at them: a letter of another language, a text in place of a key.
MIN_LEARNERS_PER_KEY = 5


class Coarsening(Protocol):
    """A way to make latencies coarse, of events or as averages of profiles; `str()` of it is what a user writes."""

    def averages(self, values: Floats, rng: Random | None = None) -> Floats:
        """Profiles, a row per learner and a column per feature, with coarse averages.

        Kinds that leave something to chance need `rng`; the others ignore it.
        """
        ...

    def latencies(
        self, milliseconds: Floats, digraph: Codes, starts: NDArray[np.bool_], rng: Random
    ) -> Floats:
        """Coarse latencies of events, in their order; where a stretch of typing `starts`, nothing came before."""
        ...

    def holds(self, milliseconds: Floats, key: Codes, rng: Random) -> Floats:
        """Coarse times for which keys were down."""
        ...

    def events(self, keystrokes: Keystrokes, rng: Random) -> Keystrokes:
        """Key presses whose latencies are coarse: times rebuilt, every session from 0 (see `rebuild_times`)."""
        ...

    def typing_range(self) -> tuple[float, float]:
        """What latencies of typing become: the range to count in a coarsened file."""
        ...


class _EachLatency(ABC):
    """What the kinds share that look at one latency after the other."""

    @abstractmethod
    def values(self, milliseconds: Floats, group: Codes, rng: Random | None) -> Floats:
        """Coarse values; `group` says which latencies are of the same digraph, column or key."""

    def averages(self, values: Floats, rng: Random | None = None) -> Floats:
        """Every average for itself, a column being a group."""
        columns = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
        return self.values(values.ravel(), columns.ravel(), rng).reshape(values.shape)

    def latencies(
        self, milliseconds: Floats, digraph: Codes, starts: NDArray[np.bool_], rng: Random
    ) -> Floats:
        """Every latency for itself."""
        return self.values(milliseconds, digraph, rng)

    def holds(self, milliseconds: Floats, key: Codes, rng: Random) -> Floats:
        """Every hold time for itself."""
        return self.values(milliseconds, key, rng)

    def events(self, keystrokes: Keystrokes, rng: Random) -> Keystrokes:
        """Times rebuilt from coarse latencies."""
        return rebuild_times(keystrokes, self, rng)

    def typing_range(self) -> tuple[float, float]:
        """The coarse values of both ends."""
        low, high = self.values(np.array([SHORTEST, LONGEST]), np.zeros(2, np.int64), None)
        return float(low), float(high)


@dataclass(frozen=True)
class Rounding(_EachLatency):
    """Equation 3: y = x round(z / x), to the nearest multiple of `size`; halves go up. Size 0 changes nothing.

    The first cell, 0 to size/2, is half as wide as the others, so fast typing can become 0 ms.
    """

    size: float

    def __post_init__(self) -> None:
        _check_size(self.size)

    def __str__(self) -> str:
        return f"round:{self.size:g}"

    def values(self, milliseconds: Floats, group: Codes, rng: Random | None) -> Floats:
        """Equation 3."""
        return _to_nearest(milliseconds, self.size)


@dataclass(frozen=True)
class Bucketing(_EachLatency):
    """Equations 4 and 5: y = b round((z + b/2) / b), so that all cells are b wide; halves go up.

    A latency becomes the upper end of its bucket, so it is on average half a bucket too long.
    """

    size: float

    def __post_init__(self) -> None:
        _check_size(self.size)

    def __str__(self) -> str:
        return f"bucket:{self.size:g}"

    def values(self, milliseconds: Floats, group: Codes, rng: Random | None) -> Floats:
        """Equations 4 and 5."""
        return _to_nearest(milliseconds + self.size / 2, self.size)


@dataclass(frozen=True)
class Shifting(_EachLatency):
    """A random place within the bucket: reveals no more than `bucket`, and looks like typing."""

    size: float

    def __post_init__(self) -> None:
        _check_size(self.size)

    def __str__(self) -> str:
        return f"shift:{self.size:g}"

    def values(self, milliseconds: Floats, group: Codes, rng: Random | None) -> Floats:
        """Uniform on (b floor(z / b), b floor(z / b) + b], in whole milliseconds if b is: two keys never coincide."""
        if self.size == 0:
            return milliseconds
        place = self.size * (1.0 - _needed(rng, self).random(milliseconds.shape))
        if self.size == int(self.size):
            place = np.ceil(place)
        return np.asarray(self.size * np.floor(milliseconds / self.size) + place)

    def typing_range(self) -> tuple[float, float]:
        """From the lower end of the first bucket to the upper end of the last."""
        if self.size == 0:
            return SHORTEST, LONGEST
        ends = math.floor(SHORTEST / self.size), math.floor(LONGEST / self.size) + 1
        return self.size * ends[0], self.size * ends[1]


@dataclass(frozen=True)
class Delaying(_EachLatency):
    """Every key press arrives late, by a random delay between `low` and `high` (Monaco and Tappert's delay mix).

    Press r arrives at its time + its delay, but 1 ms after press r - 1 at the earliest: none overtakes another,
    as in a queue. Latencies change by the difference of two delays, which averages out over many presses of
    a digraph: what is hidden in one latency comes back in a long record.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (0 <= self.low <= self.high and math.isfinite(self.high)):
            raise UsageError(
                f"asked for delays from {self.low:g} to {self.high:g} ms.",
                hint="give the smaller first, of 0 ms or more: delay:25-500.",
            )

    def __str__(self) -> str:
        return f"delay:{self.low:g}-{self.high:g}"

    def values(self, milliseconds: Floats, group: Codes, rng: Random | None) -> Floats:
        """A single latency is between two delayed events: z + d - d', and never below 0."""
        drawn = _needed(rng, self).uniform(self.low, self.high, (2, *milliseconds.shape))
        return np.asarray(np.maximum(milliseconds + drawn[1] - drawn[0], 0.0))

    def latencies(
        self, milliseconds: Floats, digraph: Codes, starts: NDArray[np.bool_], rng: Random
    ) -> Floats:
        """Differences of the arrivals, in whole milliseconds."""
        if not len(milliseconds):
            return milliseconds
        place = np.where(starts, 0.0, milliseconds)
        passed = np.cumsum(place)
        stretch = np.cumsum(starts)
        # Less their number in the stretch, rows need no distance of 1 ms. A stretch begins after everything before
        # it has arrived, so that one running maximum serves all.
        number = np.arange(len(place)) - np.maximum.accumulate(np.where(starts, np.arange(len(place)), 0))
        arrival = passed + rng.uniform(self.low, self.high, len(place)) + stretch * (self.high + 1.0) - number
        arrival = np.floor(np.maximum.accumulate(arrival) + number)
        return np.where(starts, 0.0, np.diff(arrival, prepend=arrival[:1]))

    def typing_range(self) -> tuple[float, float]:
        """As far as two delays, and whole milliseconds, can move a latency."""
        return max(0.0, SHORTEST - self.high + self.low - 1), LONGEST + self.high - self.low + 1


@dataclass(frozen=True)
class Classing(_EachLatency):
    """Classes from fast to slow, per digraph, with as many latencies in each; a latency becomes its class's median.

    Thresholds and medians come from the data that is made coarse: they are a function of all learners'
    latencies, they differ between two releases, and a group of few people reveals something about these.
    Pauses (above 750 ms) are a class of their own.
    """

    n_classes: int

    def __post_init__(self) -> None:
        if self.n_classes < 1:
            raise UsageError(f"asked for {self.n_classes} classes.", hint="give 1 or more: classes:3.")

    def __str__(self) -> str:
        return f"classes:{self.n_classes}"

    def values(self, milliseconds: Floats, group: Codes, rng: Random | None) -> Floats:
        """The median of the class in whole milliseconds; equal values are always in one class."""
        pause = milliseconds > LONGEST
        # Pauses are one group that is not divided, whatever was typed.
        apart = group.min(initial=0) - 1
        groups = np.unique(np.where(pause, apart, group), return_inverse=True)[1]
        thresholds = _lower_quantiles(
            milliseconds, groups, [one / self.n_classes for one in range(1, self.n_classes)]
        )
        place = np.sum(milliseconds[:, None] > thresholds[groups], axis=1) if self.n_classes > 1 else 0
        cells = np.unique(groups * self.n_classes + np.where(pause, 0, place), return_inverse=True)[1]
        return np.asarray(np.rint(_lower_quantiles(milliseconds, cells, [0.5]))[cells, 0])

    def typing_range(self) -> tuple[float, float]:
        """A class's median is in the range of its latencies; editors' own keys may share the fastest class."""
        return 0.0, LONGEST


def parse_coarsening(text: str) -> Coarsening:
    """The coarsening that a user wrote, such as `bucket:300` or `delay:25-500`."""
    name, colon, value = text.strip().partition(":")
    if name not in _KINDS:
        near = difflib.get_close_matches(name.lower(), _KINDS, n=1)
        raise UsageError(
            f"no coarsening is called '{name}'.",
            hint=(f"did you mean {near[0]}? " if near else "") + f"Write one of {', '.join(EXAMPLES)}.",
            code="no-such-coarsening",
        )
    example = next(example for example in EXAMPLES if example.startswith(name + ":"))
    if not colon or not value:
        raise UsageError(f"'{text}' does not say how coarse.", hint=f"for example {example}.")
    try:
        return _KINDS[name](value)
    except ValueError:
        raise UsageError(
            f"'{value}' in '{text}' is not what {name} takes.", hint=f"for example {example}."
        ) from None


def _delays(value: str) -> Delaying:
    low, high = value.split("-")
    return Delaying(float(low), float(high))


_KINDS: dict[str, Callable[[str], Coarsening]] = {
    "round": lambda value: Rounding(float(value)),
    "bucket": lambda value: Bucketing(float(value)),
    "shift": lambda value: Shifting(float(value)),
    "delay": _delays,
    "classes": lambda value: Classing(int(value)),
}
EXAMPLES = ("round:300", "bucket:300", "shift:300", "delay:25-500", "classes:3")


def _check_size(size: float) -> None:
    if not (math.isfinite(size) and size >= 0):
        raise UsageError(f"asked to coarsen to {size} ms.", hint="give a size of 0 ms or more.")


def _to_nearest(milliseconds: Floats, size: float) -> Floats:
    """To the nearest multiple, halves up, as in Java's Math.round (Leinonen 2016); size 0 changes nothing."""
    return milliseconds if size == 0 else size * np.floor(milliseconds / size + 0.5)


def _needed(rng: Random | None, coarsening: object) -> Random:
    if rng is None:
        raise ValueError(f"{coarsening} leaves something to chance and needs a generator")
    return rng


def _lower_quantiles(values: Floats, group: Codes, levels: list[float]) -> Floats:
    """Per group (numbered from 0, none empty) the smallest value with at least this share at or below it."""
    order = np.lexsort((values, group))
    counts = np.bincount(group)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    # What a product of floats adds to a whole number is no reason to take the next value.
    ranks = np.maximum(np.ceil(counts[:, None] * np.array(levels) - 1e-9).astype(np.int64), 1)
    return np.asarray(values[order][starts[:, None] + ranks - 1])


def rebuild_times(
    keystrokes: Keystrokes,
    coarsening: Coarsening,
    rng: np.random.Generator,
    *,
    longest_pause: float = LONGEST_PAUSE,
    running_on: bool = False,
    fewest: int = MIN_LEARNERS_PER_KEY,
) -> Keystrokes:
    """The same keys at times whose differences are coarse, session after session, each from 0.

    A longer pause counts as the longest one, and so does the gap before a key that follows none in its
    session (a paste, rows left out): both are made coarse like latencies. Order holds, since no
    coarse latency is negative; with a latency of 0 two keys share a time, and the order of the rows decides.
    With `running_on`, a learner's sessions continue each other's times. A key held for longer counts as held
    for 750 ms: a key that was held for two hours points at its learner.
    """
    ordered = _by_session(keystrokes)
    learner, n_rows = ordered.learner, ordered.n_rows
    first = np.zeros(n_rows, dtype=bool)
    first[ordered.offsets[:-1][ordered.lengths > 0]] = True
    opens = first | (np.diff(ordered.session, prepend=-1) != 0)
    follows = ordered.follows & ~opens
    gaps = np.where(follows, ordered.latencies / NANOSECONDS, longest_pause)
    starts = first if running_on else opens
    gaps = np.where(starts, 0.0, np.minimum(gaps, longest_pause))
    digraph = _common_digraphs(ordered.key, follows, learner, len(ordered.keys), fewest)
    digraph[starts] = -2  # no latency at all, so in no class of latencies
    coarse = np.where(starts, 0.0, coarsening.latencies(gaps, digraph, starts, rng))
    passed = np.cumsum(np.rint(coarse * NANOSECONDS).astype(np.int64))
    begin = np.flatnonzero(starts)
    passed -= np.repeat(passed[begin], np.diff(np.append(begin, n_rows)))
    hold = ordered.hold
    if hold is not None:
        known = hold >= 0
        held = np.minimum(hold[known] / NANOSECONDS, LONGEST)
        common = learners_per_key(ordered)[ordered.key] >= fewest
        held = coarsening.holds(held, np.where(common, ordered.key, -1)[known], rng)
        hold = np.full(n_rows, UNKNOWN, dtype=np.int64)
        hold[known] = np.rint(held * NANOSECONDS).astype(np.int64)
    return replace(ordered, time=passed, follows=follows, hold=hold)


def _by_session(keystrokes: Keystrokes) -> Keystrokes:
    """Each learner's sessions one after the other, where they were interleaved (two tasks open at once)."""
    learner, session = keystrokes.learner, keystrokes.session
    if not np.any((np.diff(session) < 0) & (np.diff(learner) == 0)):
        return keystrokes
    order = np.lexsort((session, learner))  # stable, so time order holds within a session
    after = np.diff(order, prepend=-2) == 1
    return replace(
        keystrokes,
        key=keystrokes.key[order],
        time=keystrokes.time[order],
        follows=keystrokes.follows[order] & after,
        session=session[order],
        week=keystrokes.week[order],
        hold=None if keystrokes.hold is None else keystrokes.hold[order],
    )


def _common_digraphs(
    key: NDArray[np.integer[Any]],
    follows: NDArray[np.bool_],
    learner: NDArray[np.integer[Any]],
    n_keys: int,
    fewest: int,
) -> NDArray[np.int64]:
    """The pair of keys that each row ends; -1 for pairs of few learners and for a key that follows none."""
    before = np.concatenate([key[:1], key[:-1]]).astype(np.int64)
    pairs, pair = np.unique(before * n_keys + key, return_inverse=True)
    of_learner = np.unique(pair[follows] * (int(learner.max(initial=0)) + 1) + learner[follows])
    n_learners = np.bincount(of_learner // (int(learner.max(initial=0)) + 1), minlength=len(pairs))
    return np.where(follows & (n_learners[pair] >= fewest), pair, -1)


def learners_per_key(keystrokes: Keystrokes) -> NDArray[np.int64]:
    """How many learners pressed each key."""
    n_keys = len(keystrokes.keys)
    pressed = np.unique(keystrokes.learner.astype(np.int64) * n_keys + keystrokes.key) % n_keys
    return np.bincount(pressed, minlength=n_keys)
