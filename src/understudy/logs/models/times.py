"""When learners do what they do: a model of times, and times drawn onto walks.

Its parts can be named one by one: when learners start and stop in the term, how many sessions learners of a length
have, how many rows a session has, how long learners pause between sessions, at which hours of the week they work, how
long they take from row to row (by the kind of the step), and how much of that is a learner's own pace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import erf, exp, log, sqrt
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.declared.term import Term
from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.models.sessions import (
    DAY,
    HOUR,
    Calendar,
    Timeline,
)
from understudy.logs.schedule import HOURS_OF_WEEK, step_kinds

Floats = NDArray[np.float64]

# Learners by length, and sessions by rows: 1, 2, 3 to 4, 5 to 8, ...
N_OCTAVES = 16
# How many sessions a learner has: one, or the logarithm of their number as a share of that of rows, up to these.
SESSION_SHARES = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
N_SESSION_CLASSES = len(SESSION_SHARES) + 2
# Learners with one session, with 2 to 4, and with more differ in when they stop.
FEW_SESSIONS = 4
N_PERSISTENCES = 3
# Weights of hours, pauses and ends of sessions are calibrated in rounds. Each takes back this much of what is off: less
# and less, so that the chance of single draws averages out.
PACES = (1.0, 0.8, 0.6, 0.45, 0.35, 0.3, 0.25)
# An hour, a class of pauses or of sessions with so few rows is left as it is.
FEW_ROWS = 3.0
# A weight moves by no more than this factor in a round.
MOST_STEP = 3.0
# Pauses of up to half a day are kept as they are; longer ones may move to another hour, by this share of them or by
# half a week.
KEPT_PAUSE, MOVED_SHARE, MOST_MOVED = DAY // 2, 0.45, 7 * DAY // 2
# Among so many lists of pauses the one is taken that best fills the time between the first session and the last.
N_TRIES = 4


def octave(n: IntArray) -> IntArray:
    """The octave of a number of rows: 1, 2, 3 to 4, 5 to 8, and so on."""
    place: IntArray = np.ceil(np.log2(np.maximum(n, 1))).astype(np.int64)
    return np.minimum(place, N_OCTAVES - 1)


def session_class(n_sessions: IntArray, n_rows: IntArray) -> IntArray:
    """Whether a learner has one session, or which share of the logarithm of rows that of sessions is."""
    share = np.log(np.maximum(n_sessions, 1)) / np.log(np.maximum(n_rows, 2))
    place: IntArray = 1 + np.searchsorted(SESSION_SHARES, share)
    return np.where(n_sessions <= 1, 0, place)


def persistence(n_sessions: IntArray) -> IntArray:
    """One session, a few, or more."""
    return np.where(n_sessions <= 1, 0, np.where(n_sessions <= FEW_SESSIONS, 1, 2))


@dataclass(frozen=True)
class TimeModel:
    """The laws of a log's times.

    `sessions[octave, class]` has how many sessions learners of a length have; `spans[persistence, start, stop]` the
    bins in which they start and stop; `session_rows[octave]` how many rows sessions have, believed as far as
    `session_signal` (from 0 to 1); `pauses` and `gaps[kind]` are laws over the calendar's classes; `pause_odds[kind]`
    is how much likelier a pause is before a step of this kind than before any other; `hours` are shares of rows by hour
    of the week; `own_pace` is how alike the gaps of a learner are, from 0 to 1.
    """

    calendar: Calendar
    sessions: Floats
    spans: Floats
    session_rows: Floats
    session_signal: float
    pauses: Floats
    pause_odds: Floats
    gaps: Floats
    hours: Floats
    own_pace: float

    def add_to(self, walks: Interactions, rng: np.random.Generator) -> Interactions:
        """The walks with times: in the term, multiples of its resolution, never running backwards in a learner."""
        time = self.draw(walks, rng)
        calendar = self.calendar
        term = Term(calendar.first_day, calendar.last_day, calendar.resolution / 1e6, calendar.limit / 60e6)
        return replace(walks, time=time.astype("datetime64[us]"), term=term)

    def draw(self, walks: Interactions, rng: np.random.Generator) -> NDArray[np.int64]:
        """Times of walks in microseconds since 1970.

        Where sessions can be depends on each other: an hour's own weight is not its share of rows. So weights of hours,
        of pauses and of ends of sessions are moved until what is drawn onto these walks has the model's shares.
        """
        weights = _Weights.of(self)
        for pace in PACES:
            weights = weights.closer(self, walks, self._drawn(weights, walks, rng), pace)
        return self._drawn(weights, walks, rng)

    def _drawn(self, weights: _Weights, walks: Interactions, rng: np.random.Generator) -> NDArray[np.int64]:
        lengths = walks.lengths.astype(np.int64)
        n_sessions = draw_sessions(self.sessions, lengths, rng)
        start, stop = _draw_spans(self.spans, n_sessions, rng)
        calendar = self.calendar
        clock = np.array(
            [
                calendar.midnight,
                calendar.start,
                calendar.end,
                calendar.resolution,
                calendar.limit,
                calendar.first_bin,
            ]
        )
        warped = np.concatenate([[0.0], np.cumsum(weights.of_hours(calendar))])
        time: NDArray[np.int64] = _draw_times(
            rng,
            walks.offsets,
            step_kinds(walks),
            n_sessions,
            start,
            stop,
            clock,
            calendar.bin_days,
            warped,
            np.log(self.pause_odds),
            weights.end_odds,
            _cumulative(self.gaps),
            calendar.gap_edges,
            _cumulative(weights.pauses),
            calendar.pause_edges,
            rng.standard_normal(walks.n_learners),
            self.own_pace,
            spread(int(n_sessions.sum()), rng),
            self.hours,
            int(calendar.hour_of_week(np.array([calendar.midnight]))[0]),
        )
        return time


@dataclass(frozen=True)
class _Weights:
    """What hours, pauses and ends of sessions are drawn by; `end_odds` are logarithms."""

    hours: Floats
    pauses: Floats
    end_odds: Floats

    @classmethod
    def of(cls, model: TimeModel) -> _Weights:
        return cls(model.hours + 1e-9, model.pauses.copy(), np.zeros(N_OCTAVES))

    def of_hours(self, calendar: Calendar) -> Floats:
        """The weight of each hour of the term."""
        hour = calendar.hour_of_week(calendar.midnight + HOUR * np.arange(24 * calendar.n_days))
        return self.hours[hour]

    def closer(self, model: TimeModel, walks: Interactions, time: NDArray[np.int64], pace: float) -> _Weights:
        """Weights that bring hours, pauses and rows of sessions closer to the model's."""
        drawn = Timeline(replace(walks, time=time.astype("datetime64[us]")), model.calendar)
        calendar = model.calendar
        hours = np.bincount(calendar.hour_of_week(drawn.time), minlength=HOURS_OF_WEEK)
        pauses = np.bincount(calendar.pause_class(drawn.gap[drawn.pause]), minlength=len(model.pauses))
        rows = np.bincount(drawn.session, minlength=1)
        ended = np.bincount(octave(rows[rows > 0]), minlength=N_OCTAVES)
        law = ended.sum() * model.session_rows
        step = np.log(_ratio(_hazards(law), _hazards(ended), ended))
        return _Weights(
            self.hours * _ratio(model.hours * hours.sum(), hours, hours) ** pace,
            self.pauses * _ratio(model.pauses * pauses.sum(), pauses, pauses) ** pace,
            np.clip(self.end_odds + pace * model.session_signal * step, -4.0, 4.0),
        )


def _ratio(wanted: Floats, found: NDArray[Any], seen: NDArray[Any]) -> Floats:
    """By which factor weights are off, drawn to 1 where little was seen."""
    few = FEW_ROWS * np.where(seen > 0, np.maximum(found, 1e-12) / np.maximum(seen, 1.0), 1.0)
    ratio: Floats = np.clip((wanted + few) / (found + few), 1.0 / MOST_STEP, MOST_STEP)
    return ratio


def _hazards(ended: NDArray[Any]) -> Floats:
    """Per octave: the chance that a session ends with a row of it, if it has come to that row."""
    upper = 2.0 ** np.arange(N_OCTAVES)
    width = np.diff(upper, prepend=0.0)
    counts = np.asarray(ended, dtype=np.float64)
    beyond = np.cumsum(counts[::-1])[::-1] - counts
    # Rows of an octave: all of them where a session goes on, half where it ends there.
    rows = width * beyond + (1.0 + (width - 1.0) / 2.0) * counts
    return counts / np.maximum(rows, 1e-9)


def _cumulative(law: Floats) -> Floats:
    """Cumulative shares, the last exactly 1."""
    sums = np.cumsum(law, axis=-1)
    cumulative: Floats = sums / np.maximum(sums[..., -1:], 1e-300)
    return cumulative


def spread(n: int, rng: np.random.Generator) -> Floats:
    """Numbers between 0 and 1, evenly spread, in random order: what is drawn by them is as close to its law as n go."""
    places: Floats = (rng.permutation(n) + rng.random(n)) / max(n, 1)
    return places


def draw_sessions(law: Floats, lengths: IntArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """A number of sessions for each learner, by the law for learners with so many rows; never more than rows."""
    n_sessions = np.ones(len(lengths), dtype=np.int64)
    of = octave(lengths)
    edges = np.concatenate([[0.0, 0.0], SESSION_SHARES, [1.0]])
    for each in np.unique(of):
        here = np.flatnonzero(of == each)
        place = np.searchsorted(_cumulative(law[each]), spread(len(here), rng), side="right")
        place = np.minimum(place, N_SESSION_CLASSES - 1)
        rows = lengths[here].astype(np.float64)
        # Whole numbers whose class this is, fewer likelier than more; the nearest where there are none.
        low = np.floor(rows ** edges[place] + 1e-9).astype(np.int64) + 1
        high = np.floor(rows ** edges[place + 1] + 1e-9).astype(np.int64)
        drawn = np.floor(low * (np.maximum(high + 1, low + 1) / low) ** rng.random(len(here))).astype(
            np.int64
        )
        n_sessions[here] = np.where(place == 0, 1, np.clip(drawn, 2, None))
    return np.minimum(n_sessions, np.maximum(lengths, 1))


def _draw_spans(spans: Floats, n_sessions: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """The bins in which learners start and stop, by how many sessions they have."""
    n_bins = spans.shape[1]
    cell = np.zeros(len(n_sessions), dtype=np.int64)
    of = persistence(n_sessions)
    for each in range(N_PERSISTENCES):
        here = np.flatnonzero(of == each)
        place = np.searchsorted(_cumulative(spans[each].ravel()), spread(len(here), rng), side="right")
        cell[here] = np.minimum(place, n_bins**2 - 1)
    return cell // n_bins, cell % n_bins


@njit(cache=True, nogil=True)
def _draw_times(  # type: ignore[no-untyped-def]
    rng,
    offsets,
    kind,
    n_sessions,
    start_bin,
    stop_bin,
    clock,
    bin_days,
    warped,
    pause_odds,
    end_odds,
    gaps,
    gap_edges,
    pauses,
    pause_edges,
    pace,
    own_pace,
    levels,
    wanted,
    first_hour,
):
    """Times of all rows, learner by learner."""
    midnight, start, end, resolution, limit, first_bin = clock
    time = np.empty(offsets[-1], dtype=np.int64)
    own, rest = sqrt(own_pace), sqrt(1.0 - own_pace)
    bin_width = bin_days * DAY
    n_placed = 0
    visits = np.zeros(HOURS_OF_WEEK)
    hours = (warped, wanted, visits, first_hour)
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        n = n_sessions[i]
        if last == first:
            continue
        # Which rows begin a session, and when they happen after its beginning: kept in `time` for now.
        begin = np.empty(n + 1, dtype=np.int64)
        _divide(rng, first, last, n, kind, pause_odds, end_odds, begin)
        length = np.zeros(n, dtype=np.int64)
        for session in range(n):
            passed = 0
            time[begin[session]] = 0
            for row in range(begin[session] + 1, begin[session + 1]):
                score = own * pace[i] + rest * rng.standard_normal()
                level = 0.5 * (1.0 + erf(score / sqrt(2.0)))
                passed += _from_class(level, gaps[kind[row]], gap_edges) * resolution
                time[row] = passed
            length[session] = passed
        at = np.empty(n, dtype=np.int64)
        low = max(first_bin + start_bin[i] * bin_width, start)
        high = min(first_bin + (start_bin[i] + 1) * bin_width, end + 1)
        stop_low = max(first_bin + stop_bin[i] * bin_width, start)
        stop_high = min(first_bin + (stop_bin[i] + 1) * bin_width, end + 1)
        _place(
            rng, n, length, low, high, stop_low, stop_high, start, end, midnight, limit, resolution,
            hours, pauses, pause_edges, levels[n_placed : n_placed + n], at,
        )  # fmt: skip
        n_placed += n
        for session in range(n):
            for row in range(begin[session], begin[session + 1]):
                time[row] = min(at[session] + time[row], end)
                if row > first:
                    # Only where a term is too short for all sessions.
                    time[row] = max(time[row], time[row - 1])
                visits[((time[row] - midnight) // HOUR + first_hour) % HOURS_OF_WEEK] += 1
    return time


@njit(cache=True, nogil=True)
def _divide(rng, first, last, n, kind, pause_odds, end_odds, begin):  # type: ignore[no-untyped-def]
    """Rows that begin the n sessions of a learner, and the end.

    Each row may end its session, by the pauses that are still needed among the rows that are left (which alone makes
    every division equally likely), by the kind of the step and by the rows of the session so far.
    """
    begin[0], begin[n] = first, last
    session, rows = 1, 1
    for row in range(first + 1, last):
        needed, left = n - session, last - row
        if needed == 0:
            break
        chance = 1.0
        if needed < left:
            place = min(int(np.ceil(np.log2(rows))), len(end_odds) - 1)
            odds = needed / (left - needed) * exp(pause_odds[kind[row]] + end_odds[place])
            chance = odds / (1.0 + odds)
        if rng.random() < chance:
            begin[session] = row
            session, rows = session + 1, 1
        else:
            rows += 1


@njit(cache=True, nogil=True)
def _from_class(level, cumulative, edges):  # type: ignore[no-untyped-def]
    """The number at this level of a law over classes; within a class logarithms are equally likely."""
    place = min(np.searchsorted(cumulative, level, side="right"), len(cumulative) - 1)
    below = cumulative[place - 1] if place else 0.0
    within = (level - below) / max(cumulative[place] - below, 1e-300)
    low, high = edges[place], edges[place + 1]
    if high - low <= 1:
        return low
    number = int(exp(log(low) + min(max(within, 0.0), 1.0) * (log(high) - log(low))))
    return min(max(number, low), high - 1)


@njit(cache=True, nogil=True)
def _warp(time, midnight, warped):  # type: ignore[no-untyped-def]
    """The weight of all hours up to a time."""
    place = (time - midnight) / HOUR
    hour = min(max(int(place), 0), len(warped) - 2)
    share = min(max(place - hour, 0.0), 1.0)
    return warped[hour] + share * (warped[hour + 1] - warped[hour])


@njit(cache=True, nogil=True)
def _at_level(level, low, high, midnight, resolution, warped):  # type: ignore[no-untyped-def]
    """The time at this level (0 to 1) from low on and before high, by the weights of hours, as it is written."""
    least = -(-low // resolution) * resolution
    if high <= low:
        return least
    from_weight, to_weight = _warp(low, midnight, warped), _warp(high, midnight, warped)
    weight = from_weight + level * (to_weight - from_weight)
    hour = min(max(np.searchsorted(warped, weight, side="right") - 1, 0), len(warped) - 2)
    width = warped[hour + 1] - warped[hour]
    share = (weight - warped[hour]) / width if width > 0 else level
    time = int((hour + min(max(share, 0.0), 1.0)) * HOUR) + midnight
    time = min(max(time, low), high - 1) // resolution * resolution
    return max(time, least)


@njit(cache=True, nogil=True)
def _moment(rng, level, low, high, midnight, resolution, hours):  # type: ignore[no-untyped-def]
    """A time from low on and before high by the weights of hours: of two, the one whose hour has fewer rows so far
    beside its share, so that a log comes closer to its model than chance alone would bring it."""
    warped, wanted, visits, first_hour = hours
    time = _at_level(level, low, high, midnight, resolution, warped)
    other = _at_level(rng.random(), low, high, midnight, resolution, warped)
    here = ((time - midnight) // HOUR + first_hour) % HOURS_OF_WEEK
    there = ((other - midnight) // HOUR + first_hour) % HOURS_OF_WEEK
    # Hours whose share is tiny are as full as any.
    if (visits[there] + 1.0) * (wanted[here] + 1e-6) < (visits[here] + 1.0) * (wanted[there] + 1e-6):
        return other
    return time


@njit(cache=True, nogil=True)
def _place(  # type: ignore[no-untyped-def]
    rng, n, length, low, high, stop_low, stop_high, start, end, midnight, limit, resolution,
    hours, pauses, pause_edges, levels, at,
):  # fmt: skip
    """When each of n sessions begins.

    The first is in the bin of the start and the last in that of the stop, at hours by their weights. Those between them
    follow after pauses; long pauses are stretched to fill the time, and moved to hours by their weights.
    """
    shortest = (limit // resolution + 1) * resolution
    busy = np.sum(length) + (n - 1) * shortest
    at[0] = _moment(rng, levels[0], low, max(min(high, end - busy + 1), low + 1), midnight, resolution, hours)
    at[0] = max(min(at[0], end), start)
    if n == 1:
        return
    beyond = stop_low > low
    final = end
    if beyond:
        least = max(stop_low, at[0] + busy - length[n - 1])
        final = _moment(
            rng, levels[n - 1], least, min(stop_high, end - length[n - 1] + 1), midnight, resolution, hours
        )
    # Pauses beyond the shortest.
    best, pause, tried = np.inf, np.empty(n - 1), np.empty(n - 1)
    room = (final if beyond else stop_high - 1 - length[n - 1]) - at[0] - (busy - length[n - 1])
    for _ in range(N_TRIES):
        kept, moving = 0.0, 0.0
        for j in range(n - 1):
            drawn = _from_class(rng.random(), pauses, pause_edges) * resolution - shortest
            tried[j] = drawn
            if drawn > KEPT_PAUSE:
                moving += drawn
            else:
                kept += drawn
        if beyond:
            factor = (room - kept) / moving if moving > 0 and room > kept else 1e-9
            off = abs(log(factor)) + (
                abs(log((room + 1.0) / (kept + moving + 1.0))) if factor < 1e-6 else 0.0
            )
        else:
            off = 0.0 if kept + moving <= room else log((kept + moving + 1.0) / max(room, 1.0))
        if off < best:
            best = off
            pause[:] = tried
        if off == 0.0:
            break
    kept, moving = 0.0, 0.0
    for j in range(n - 1):
        if pause[j] > KEPT_PAUSE:
            moving += pause[j]
        else:
            kept += pause[j]
    if beyond or kept + moving > room:
        room = max(room, 0.0)
        if moving > 0 and room > kept:
            for j in range(n - 1):
                if pause[j] > KEPT_PAUSE:
                    pause[j] *= (room - kept) / moving
        else:
            pause *= room / max(kept + moving, 1.0)
    # Where sessions would be, and then where they are.
    place = float(at[0])
    wanted = np.empty(n)
    for j in range(1, n):
        place += length[j - 1] + shortest + pause[j - 1]
        wanted[j] = place
    needed = busy - length[n - 1]
    for j in range(1, n):
        needed -= length[j - 1] + shortest
        least = at[j - 1] + length[j - 1] + shortest
        if j == n - 1 and beyond:
            at[j] = max(final, least)
            break
        time = int(wanted[j])
        if pause[j - 1] > KEPT_PAUSE:
            move = min(MOVED_SHARE * pause[j - 1], MOST_MOVED)
            if j < n - 1:
                move = min(move, max(MOVED_SHARE * pause[j], 0.1 * move))
            most = min(
                time + move, (final - needed) if beyond else float(stop_high - 1 - needed - length[n - 1])
            )
            time = _moment(
                rng, levels[j], max(int(time - move), least), int(most) + 1, midnight, resolution, hours
            )
        time = time // resolution * resolution
        at[j] = max(time, -(-least // resolution) * resolution)
    # What does not fit in the term is moved together at its end.
    latest = end - length[n - 1]
    for j in range(n - 1, -1, -1):
        at[j] = max(min(at[j], latest // resolution * resolution), start)
        if j:
            latest = at[j] - shortest - length[j - 1]
