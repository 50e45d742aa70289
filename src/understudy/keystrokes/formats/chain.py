"""Presses and releases to a record: repeats go, releases give hold times, and who follows whom is settled.

A row follows the one before if both are the same learner's in the same session, neighbours in the file,
with nothing left out between them and no step back of the clock.

Whatever is found out about a clock or an order is about one learner, and concerns that learner's rows only: a
guarantee needs that. So a large file is linked in pieces, some learners at a time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from understudy.keystrokes.formats import rows as rows_of
from understudy.keystrokes.keystrokes import NANOSECONDS, UNKNOWN

MINUTE = 60_000 * NANOSECONDS
SESSION_GAP = 30 * MINUTE
# A keyboard repeats a key a few times a second, after half a second or so.
LONGEST_REPEAT = 2_000 * NANOSECONDS
# On a coarser clock, two equal rows may be two presses.
COARSEST_FOR_REPEATS = 10 * NANOSECONDS
# Fewer steps say little about the clock.
ENOUGH_STEPS = 100
# More steps back than this, and a learner's rows are not in the order of time rather than the clock wrong.
SHARE_OF_STEPS_BACK = 0.01
FEW_STEPS_BACK = 3

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Events:
    """Columns of one length, in the order of the file. `key` is -1 where `reason` says why."""

    learner: Codes
    time: Ints
    key: Codes
    reason: NDArray[np.uint8]
    session: Codes | None = None
    week: Codes | None = None
    up: Flags | None = None
    code: Codes | None = None
    hold: Ints | None = None
    broken: Flags | None = None

    def take(self, rows: NDArray[Any]) -> Events:
        """The chosen rows, by position or by flag."""
        columns = {name: column[rows] for name, column in vars(self).items() if column is not None}
        return replace(self, **columns)

    @property
    def group(self) -> Ints:
        """A number per learner and session of the file."""
        if self.session is None:
            return self.learner.astype(np.int64)
        n_sessions = int(self.session.max(initial=0)) + 2
        return self.learner.astype(np.int64) * n_sessions + self.session + 1


@dataclass(frozen=True, repr=False)
class Presses:
    """Key presses of some learners, one after the other, each learner's in order of time.

    `events` are those of the presses alone, `learners` the codes of all who have one, and `lengths` the numbers of
    theirs. `session` numbers a learner's sittings. `apart` says that sessions have clocks of their own.
    """

    events: Events
    follows: Flags
    session: Codes
    learners: Ints
    lengths: Ints
    apart: bool

    def clock_step(self) -> tuple[int, int]:
        """The largest time in nanoseconds of which all latencies are multiples, and how many latencies there are."""
        latencies = np.diff(self.events.time, prepend=self.events.time[:1])[self.follows]
        latencies = latencies[latencies > 0]
        return int(np.gcd.reduce(latencies)), len(latencies)


def link(events: Events, *, relative: bool, left_out: Counter[str], notes: list[str]) -> Presses:
    """The presses among events of any order. A learner of whom no press is left is not among theirs."""
    events = _grouped(events)
    events = _without_repeats(events, left_out, notes)
    events, backwards = _ordered(events, left_out, notes)
    held, repeat = _releases(events, left_out)
    up = np.zeros(len(events.time), dtype=bool) if events.up is None else events.up
    reason = np.where(up, 0, events.reason)
    for code, number in enumerate(np.bincount(reason, minlength=len(rows_of.REASONS))):
        if code and number:
            left_out[str(rows_of.REASONS[code])] += int(number)
    breaks = repeat | (reason > 0) | backwards
    if events.broken is not None:
        breaks |= events.broken
    n_breaks = np.cumsum(breaks)
    kept = np.flatnonzero(~(up | repeat | (reason > 0)))
    if held is not None:
        events = replace(events, hold=held)
    events = events.take(kept)
    group = events.group
    follows = np.zeros(len(kept), dtype=bool)
    follows[1:] = (group[1:] == group[:-1]) & (n_breaks[kept[1:]] == n_breaks[kept[:-1]])
    events, apart = _one_after_the_other(events, relative, notes)
    events, follows = _by_time(events, follows)
    session, follows = _sessions(events, follows, notes)
    lengths = np.bincount(events.learner)
    present = np.flatnonzero(lengths)
    return Presses(events, follows, session, present, lengths[present], apart)


def _grouped(events: Events) -> Events:
    """Learner by learner and session by session, each in the order of the file."""
    group = events.group
    if (group[1:] < group[:-1]).any():
        return events.take(np.argsort(group, kind="stable"))
    return events


def _steps(events: Events) -> tuple[Flags, Ints]:
    """Whether the row before is of the same learner and session, and the time since."""
    group = events.group
    same = np.zeros(len(group), dtype=bool)
    same[1:] = group[1:] == group[:-1]
    return same, np.diff(events.time, prepend=events.time[:1])


def _per_learner(events: Events, flags: Flags) -> Ints:
    """How many rows of each learner are flagged."""
    return np.bincount(events.learner[flags], minlength=int(events.learner.max(initial=-1)) + 1)


def _without_repeats(events: Events, left_out: Counter[str], notes: list[str]) -> Events:
    """Equal rows once, wherever they stand: an export that was appended to itself repeats far away."""
    same, step = _steps(events)
    if not (same & (step <= 0)).any():
        return events
    coarse = _clock_steps(events, same, step) > COARSEST_FOR_REPEATS
    if (coarse[events.learner] & same & (step <= 0)).any():
        notes.append("Where the clock is coarse, equal rows may be two presses: exact repeats were kept.")
    same &= ~coarse[events.learner]
    if not (same & (step <= 0)).any():
        return events
    if (same & (step < 0)).any():
        candidates = np.flatnonzero(~coarse[events.learner])
    else:
        again = same & (step == 0)
        again[:-1] |= again[1:]
        candidates = np.flatnonzero(again)
    some = events.take(candidates)
    columns = {"group": some.group, "time": some.time, "key": some.key, "reason": some.reason}
    for name in ("up", "code"):
        if getattr(some, name) is not None:
            columns[name] = getattr(some, name)
    first = pl.DataFrame(columns).select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    # What is not a press may well happen twice at a time; it is counted as what it is.
    first = first | (some.reason > 0)
    if first.all():
        return events
    keep = np.ones(len(step), dtype=bool)
    keep[candidates[~first]] = False
    left_out[rows_of.REPEATED] += int((~first).sum())
    return events.take(keep)


def is_unordered(n_back: Any, n_steps: Any) -> Any:
    """Whether so many of a learner's steps go back that the rows are in another order than that of time."""
    return (n_back > SHARE_OF_STEPS_BACK * n_steps) & ((n_back > FEW_STEPS_BACK) | (2 * n_back > n_steps))


def _ordered(events: Events, left_out: Counter[str], notes: list[str]) -> tuple[Events, Flags]:
    """Rows in an order in which presses follow each other, and where the clock stepped back."""
    same, step = _steps(events)
    backwards = same & (step < 0)
    unordered = is_unordered(_per_learner(events, backwards), _per_learner(events, same))[events.learner]
    backwards &= ~unordered
    if n_back := int(backwards.sum()):
        left_out[rows_of.BACKWARDS] += n_back
    if not unordered.any():
        return events, backwards
    notes.append("The rows were not in the order of time and were sorted.")
    place = np.where(unordered, events.time, np.arange(len(backwards)))
    order = np.lexsort((place, events.group))
    return events.take(order), backwards[order]


def _releases(events: Events, left_out: Counter[str]) -> tuple[Ints | None, Flags]:
    """How long each key was down, and which presses are the keyboard's own repeats."""
    n_rows = len(events.time)
    if events.up is None:
        return None, np.zeros(n_rows, dtype=bool)
    place = events.key if events.code is None else events.code
    # Rows of unknown keys take part in nothing.
    place = np.where(place < 0, -1, place).astype(np.int32)
    held = np.full(n_rows, UNKNOWN, dtype=np.int64)
    repeat = np.zeros(n_rows, dtype=bool)
    n_keys = int(place.max(initial=-1)) + 1
    unmatched = _pair(
        events.group, events.time, events.up, place, np.full(n_keys, -1), LONGEST_REPEAT, held, repeat
    )
    # A learner without any release may well press a key twice.
    repeat &= (events.reason == 0) & (_per_learner(events, events.up) > 0)[events.learner]
    if unmatched:
        left_out[rows_of.NEVER_PRESSED] += int(unmatched)
    if repeat.any():
        left_out[rows_of.HELD] += int(repeat.sum())
    return held, repeat


@njit(cache=True)
def _pair(group, time, up, place, pressed, longest, held, repeat):  # type: ignore[no-untyped-def]
    """One walk over the rows; `pressed` is the row of the press that a key's release would end.

    Only the key that was pressed last repeats: the same key again after another one means that
    a release was lost.
    """
    unmatched, last, last_time = 0, -1, 0
    for r in range(len(time)):
        if r == 0 or group[r] != group[r - 1]:
            pressed[:] = -1
            last = -1
        p = place[r]
        if p < 0:
            continue
        if up[r]:
            if pressed[p] < 0:
                unmatched += 1
            else:
                if time[r] >= time[pressed[p]]:
                    held[pressed[p]] = time[r] - time[pressed[p]]
                pressed[p] = -1
        else:
            if p == last and pressed[p] >= 0 and 0 <= time[r] - last_time <= longest:
                repeat[r] = True
            else:
                pressed[p] = r
            last, last_time = p, time[r]
    return unmatched


def _one_after_the_other(events: Events, relative: bool, notes: list[str]) -> tuple[Events, bool]:
    """Sessions whose clocks all begin anew are laid one after the other, an hour apart."""
    if not relative or events.session is None or not len(events.time):
        return events, False
    first = np.flatnonzero(np.diff(events.group, prepend=-1))
    last = np.append(first[1:], len(events.time))
    start = np.minimum.reduceat(events.time, first)
    end = np.maximum.reduceat(events.time, first)
    learner = events.learner[first]
    overlap = (learner[1:] == learner[:-1]) & (start[1:] <= end[:-1])
    if not overlap.any():
        return events, False
    notes.append(
        "The clock begins anew in every session: sessions were laid one after the other, an hour apart, "
        "in the order of the file."
    )
    anew = np.isin(learner, learner[1:][overlap])
    length = end - start + 2 * SESSION_GAP
    begin = np.cumsum(length) - length
    opens = np.flatnonzero(np.diff(learner, prepend=-1))
    begin -= np.repeat(begin[opens], np.diff(np.append(opens, len(first))))
    moved = np.where(anew, begin - start, 0)
    return replace(events, time=events.time + np.repeat(moved, last - first)), True


def _by_time(events: Events, follows: Flags) -> tuple[Events, Flags]:
    """Each learner's rows in the order of time; a row that lost its predecessor thereby follows none."""
    back = (events.learner[1:] == events.learner[:-1]) & (events.time[1:] < events.time[:-1])
    if not back.any():
        return events, follows
    order = np.lexsort((events.time, events.learner))
    follows = follows[order]
    follows[1:] &= order[1:] == order[:-1] + 1
    follows[:1] = False
    return events.take(order), follows


def _sessions(events: Events, follows: Flags, notes: list[str]) -> tuple[Codes, Flags]:
    """Each learner's sessions numbered from 0 by time: the file's, or parted by a gap of half an hour."""
    learner = events.learner
    n_rows = len(learner)
    if not n_rows:
        return learner, follows
    new_learner = np.ones(n_rows, dtype=bool)
    new_learner[1:] = learner[1:] != learner[:-1]
    first = np.flatnonzero(new_learner)
    if events.session is None:
        notes.append("Sessions were parted where a learner pressed no key for 30 minutes.")
        opens = new_learner | (np.diff(events.time, prepend=events.time[:1]) > SESSION_GAP)
        number = np.cumsum(opens) - 1
        follows = follows & ~opens
    else:
        # Sessions at the same time alternate in runs; each keeps the number of its first run.
        group = events.group
        runs = np.flatnonzero(np.diff(group, prepend=-1))
        _, begin, which = np.unique(group[runs], return_index=True, return_inverse=True)
        rank = np.empty(len(begin), dtype=np.int64)
        rank[np.argsort(begin, kind="stable")] = np.arange(len(begin))
        number = np.repeat(rank[which], np.diff(np.append(runs, n_rows)))
    number = number - np.repeat(number[first], np.diff(np.append(first, n_rows)))
    return number.astype(np.int32), follows


def _clock_steps(events: Events, same: Flags, step: Ints) -> Ints:
    """The step of each learner's clock: the largest time of which all differences are multiples.

    Of few differences it would be a coincidence; a thousandfold of a nanosecond is taken then.
    """
    used = same & (step != 0)
    found = np.zeros(int(events.learner.max(initial=-1)) + 1, dtype=np.int64)
    np.gcd.at(found, events.learner[used], np.abs(step[used]))
    rounded = np.select([found % size == 0 for size in (10**9, 10**6, 10**3)], [10**9, 10**6, 10**3], 1)
    return np.where(_per_learner(events, used) >= ENOUGH_STEPS, found, rounded)
