"""Runs: unbroken stretches of attempts at one action. When does one end, and where does the next one begin?

Learners stay until they succeed, or give up: whether they stay depends on the action, on how long the run has
lasted, and on the outcomes that they saw last. Where they go depends on where they are and, where that
is known well enough, on where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.models.markov import AliasTables
from understudy.logs.models.practice import NO_FEATURES, Features, fill_features

Floats = NDArray[np.float64]

# Successes in a row, or failures in a row, at the end of a run: failures 3 or more, 2, 1; successes 1, 2, 3, 4, 5 or
# more.
N_FAILURES, N_SUCCESSES = 3, 5
# The length of a run so far: 1, 2, 3, 4, 5 to 6, 7 to 9, 10 or more.
_LENGTH_CLASS = np.array([0, 0, 1, 2, 3, 4, 4, 5, 5, 5, 6])
N_LENGTHS = 7
# The largest number of a deck: a place in a table is a number times its size, and 1 would lie past its end.
BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))
# Numbers are dealt from decks of these sizes; the larger they are, the closer a log comes to its model. All decks
# together hold about so many.
LEAST_DECK, MOST_DECK, ALL_DECKS = 4, 1024, 2**23
# After so many refusals a jump is taken as it comes: learners who have tried everything have to go somewhere.
MOST_REFUSALS = 20
# A jump to an action with so many rows more than it is to have by now is taken at one of e chances; where actions have
# few rows, so much of their mean number.
SURPLUS, SURPLUS_SHARE = 10.0, 0.3
N_CELLS = (N_FAILURES + N_SUCCESSES) * N_LENGTHS


@dataclass(frozen=True)
class RunStates:
    """Each row of a log as a part of its run.

    `cell` is the class of the run after the row, by its length and by the outcomes at its end; `stays` is 1 if the
    next row is at the same action, 0 if it is at another, and -1 where there is none.
    """

    cell: NDArray[np.int32]
    stays: NDArray[np.int8]

    @classmethod
    def of(cls, log: Interactions) -> RunStates:
        """The states of all rows."""
        return cls(*_states(log.offsets, log.action, log.outcome))


@dataclass(frozen=True)
class JumpSources:
    """Which source a jump is drawn from: for each action and the start, and for pairs that have one of their own.

    A pair is an action with the one before it, as the number `before` x number of actions + `here`; pairs are sorted.
    """

    of_action: NDArray[np.int64]
    pair: NDArray[np.int64]
    of_pair: NDArray[np.int64]

    @classmethod
    def by_action(cls, of_action: NDArray[np.int64]) -> JumpSources:
        """No pair has a source of its own."""
        none = np.empty(0, dtype=np.int64)
        return cls(of_action, none, none)


@dataclass(frozen=True)
class JumpCounts:
    """How often a jump led from each source to each action, sorted by source: actions, the start, and more."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    count: Floats
    n_sources: int
    sources: JumpSources

    @classmethod
    def of(cls, log: Interactions, enough: int) -> JumpCounts:
        """Jumps by the last two actions where these were left often enough, else by the last one, else by popularity.

        The order is chosen for each state by its counts (as PrivTrace does by their noise; Wang et al. 2023).
        """
        n = log.n_actions
        begins = np.ones(log.n_rows, dtype=bool)
        begins[1:] = (log.action[1:] != log.action[:-1]) | (log.learner[1:] != log.learner[:-1])
        action, learner = log.action[begins].astype(np.int64), log.learner[begins]
        first = np.ones(len(action), dtype=bool)
        first[1:] = learner[1:] != learner[:-1]
        jump = np.flatnonzero(~first)
        here, there = action[jump - 1], action[jump]
        start, popularity = n, n + 1
        of_action = np.arange(n + 1)
        of_action[:n][np.bincount(here, minlength=n) < enough] = popularity
        # A first run has none before it, and is in no pair.
        before = np.where(first[jump - 1], -1, action[np.maximum(jump - 2, 0)])
        pair, place, n_left = np.unique(before * n + here, return_inverse=True, return_counts=True)
        own = (n_left >= enough) & (pair >= 0)
        of_pair = np.where(own, popularity + np.cumsum(own), -1)
        source = np.concatenate(
            [np.full(int(first.sum()), start), here, np.full(len(there), popularity), of_pair[place]]
        )
        target = np.concatenate([action[first], there, there, there])
        known = source >= 0
        key, count = np.unique(source[known] * n + target[known], return_counts=True)
        n_sources = popularity + 1 + int(own.sum())
        sources = JumpSources(of_action, pair[own], of_pair[own])
        return cls(key // n, key % n, count.astype(np.float64), n_sources, sources)

    def tables(self, arrival: Floats) -> AliasTables:
        """Tables for drawing jumps, each action weighed by its `arrival`."""
        return AliasTables.from_steps(
            self.source, self.target, self.count * arrival[self.target], self.n_sources
        )


@dataclass(frozen=True)
class RunModel:
    """How learners walk: who stays, where the others go, who succeeds.

    `jumps` leads from one run to the next; its sources are the actions and then the start, unless `sources` names
    others. The rest are log-odds, which are added up: of staying, by action (`stay`) and by cell, for all actions or
    for each (`stay_by_cell`); of success, by action (`easiness`), by earlier successes and failures at it
    (`gain`), and by `features` of earlier attempts at it, with `weights` for each action. Features that need times get
    them from `gaps`: quantiles of log(1 + seconds to the next row), within a run and between runs.
    """

    jumps: AliasTables
    stay: Floats
    stay_by_cell: Floats
    easiness: Floats
    gain: Floats = field(default_factory=lambda: np.zeros((1, 1)))
    untried: float = 0.0
    """Log-odds of a jump to an action that the learner has not tried, against one of equal chance that they have."""
    sources: JumpSources | None = None
    features: Features = NO_FEATURES
    weights: Floats | None = None
    gaps: Floats = field(default_factory=lambda: np.zeros((2, 2)))

    def walk(
        self, ability: Floats, lengths: IntArray, rng: np.random.Generator, wanted: Floats | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Walks of learners with these abilities and lengths: actions and outcomes, one learner after the other.

        Where `wanted` has the share of rows that each action is to have, jumps to actions that were visited more
        often than that are refused now and then, so that chance takes little from these shares.
        """
        n_rows, n_actions = int(lengths.sum()), len(self.stay)
        action, outcome = np.empty(n_rows, dtype=np.int32), np.empty(n_rows, dtype=np.int8)
        sources = self.sources or JumpSources.by_action(np.arange(n_actions + 1))
        _walk(
            rng,
            ability,
            lengths.astype(np.int64),
            (self.jumps.begin, self.jumps.likely, self.jumps.other, self.jumps.threshold),
            (sources.of_action, sources.pair, sources.of_pair),
            self.untried,
            self.stay,
            np.broadcast_to(self.stay_by_cell, (n_actions, N_CELLS)).copy(),
            self.easiness,
            self.gain,
            np.zeros((n_actions, 0)) if self.weights is None else self.weights,
            (self.features.classes, self.features.windows, self.features.failures),
            self.gaps,
            np.empty(0) if wanted is None else wanted,
            action,
            outcome,
        )
        return action, outcome


@njit(cache=True, nogil=True)
def _cell(length, streak):  # type: ignore[no-untyped-def]
    """`streak` is positive for successes in a row, negative for failures."""
    ending = (
        min(streak, N_SUCCESSES) + N_FAILURES - 1 if streak > 0 else N_FAILURES + max(streak, -N_FAILURES)
    )
    return ending * N_LENGTHS + _LENGTH_CLASS[min(length, len(_LENGTH_CLASS) - 1)]


@njit(cache=True, nogil=True)
def _longer(streak, success):  # type: ignore[no-untyped-def]
    """The streak with one more outcome."""
    if success:
        return max(streak, 0) + 1
    return min(streak, 0) - 1


@njit(cache=True, nogil=True)
def _states(offsets, action, outcome):  # type: ignore[no-untyped-def]
    n_rows = len(action)
    cell = np.empty(n_rows, dtype=np.int32)
    stays = np.empty(n_rows, dtype=np.int8)
    for i in range(len(offsets) - 1):
        length, streak = 0, 0
        for row in range(offsets[i], offsets[i + 1]):
            here = action[row]
            if row == offsets[i] or action[row - 1] != here:
                length, streak = 0, 0
            length += 1
            streak = _longer(streak, outcome[row])
            cell[row] = _cell(length, streak)
            last = row + 1 == offsets[i + 1]
            stays[row] = -1 if last else action[row + 1] == here
    return cell, stays


@njit(cache=True, nogil=True)
def _chance(log_odds):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + np.exp(-log_odds))


@njit(cache=True, nogil=True)
def _shuffle(rng, numbers, size, key):  # type: ignore[no-untyped-def]
    """A new deck of evenly spread numbers from 0 to 1, twice as large as the last one; its size."""
    n = min(max(2 * size[key], LEAST_DECK), numbers.shape[1])
    for k in range(n):
        numbers[key, k] = min((k + rng.random()) / n, BELOW_ONE)
    for k in range(n - 1, 0, -1):
        other = int(rng.random() * (k + 1))
        numbers[key, k], numbers[key, other] = numbers[key, other], numbers[key, k]
    size[key] = n
    return n


@njit(cache=True, nogil=True)
def _gap(u, gaps, kind):  # type: ignore[no-untyped-def]
    """Seconds between two rows: their logarithm lies between two quantiles, evenly."""
    x = u * (gaps.shape[1] - 1)
    k = int(x)
    return np.expm1(gaps[kind, k] + (x - k) * (gaps[kind, k + 1] - gaps[kind, k]))


@njit(cache=True, nogil=True)
def _walk(  # type: ignore[no-untyped-def]
    rng,
    ability,
    lengths,
    jumps,
    sources,
    untried,
    stay,
    stay_by_cell,
    easiness,
    gain,
    weights,
    features,
    gaps,
    wanted,
    action,
    outcome,
):
    begin, likely, other, threshold = jumps
    of_action, pair, of_pair = sources
    n_actions, n_sources = len(stay), len(begin) - 1
    # A deck for the jumps of each source, one for staying at each action, one for success at each action.
    n_decks = n_sources + 2 * n_actions
    most_numbers = min(MOST_DECK, max(LEAST_DECK, ALL_DECKS // n_decks))
    numbers = np.empty((n_decks, most_numbers), dtype=np.float32)
    size, left = np.zeros(n_decks, dtype=np.int64), np.zeros(n_decks, dtype=np.int64)
    classes, windows, failures = features
    new, old = np.exp(min(untried, 0.0)), np.exp(min(-untried, 0.0))
    good, bad = np.zeros(n_actions, dtype=np.int64), np.zeros(n_actions, dtype=np.int64)
    last_row = np.full(n_actions, -1, dtype=np.int64)
    previous, seconds = np.empty(len(action), dtype=np.int64), np.empty(len(action))
    practised = np.zeros(weights.shape[1])
    visits = np.zeros(n_actions, dtype=np.int64)
    usual_surplus = min(SURPLUS, SURPLUS_SHARE * len(action) / n_actions)
    most = len(gain) - 1
    row = 0
    # Numbers are dealt here and not by a function: one that takes arrays counts references to each, and that takes
    # three times as long as all else.
    for i in range(len(lengths)):
        first, last = row, row + lengths[i]
        before, here, length, streak = -1, -1, 0, 0
        now = 0.0
        while row < last:
            stays = False
            if length > 0:
                deck = n_sources + here
                if left[deck] == 0:
                    left[deck] = _shuffle(rng, numbers, size, deck)
                left[deck] -= 1
                stays = numbers[deck, left[deck]] < _chance(
                    stay[here] + stay_by_cell[here, _cell(length, streak)]
                )
            if not stays:
                # Before the first action `here` is -1, and the start is the last source.
                source = of_action[here]
                if before >= 0 and len(pair):
                    key = before * (len(of_action) - 1) + here
                    place = np.searchsorted(pair, key)
                    if place < len(pair) and pair[place] == key:
                        source = of_pair[place]
                there = here
                if begin[source + 1] > begin[source]:
                    for _ in range(MOST_REFUSALS):
                        if left[source] == 0:
                            left[source] = _shuffle(rng, numbers, size, source)
                        left[source] -= 1
                        x = numbers[source, left[source]] * (begin[source + 1] - begin[source])
                        k = begin[source] + int(x)
                        there = likely[k] if x - int(x) < threshold[k] else other[k]
                        chance = old if good[there] + bad[there] else new
                        if len(wanted):
                            surplus = visits[there] - wanted[there] * row
                            chance *= np.exp(-max(surplus, 0.0) / usual_surplus)
                        if there != here and rng.random() < chance:
                            break
                before, here = here, there
                length, streak = 0, 0
            length += 1
            if row > first:
                u = rng.random()
                if len(practised):
                    now += _gap(u, gaps, 0 if stays else 1)
            log_odds = ability[i] + easiness[here] + gain[min(good[here], most), min(bad[here], most)]
            if len(practised):
                fill_features(
                    practised,
                    classes,
                    windows,
                    failures,
                    good[here],
                    bad[here],
                    now,
                    last_row[here],
                    previous,
                    seconds,
                    outcome,
                )
                for column in range(len(practised)):
                    log_odds += weights[here, column] * practised[column]
            deck = n_sources + n_actions + here
            if left[deck] == 0:
                left[deck] = _shuffle(rng, numbers, size, deck)
            left[deck] -= 1
            success = numbers[deck, left[deck]] < _chance(log_odds)
            streak = _longer(streak, success)
            action[row], outcome[row] = here, success
            seconds[row], previous[row], last_row[here] = now, last_row[here], row
            good[here] += success
            bad[here] += not success
            visits[here] += 1
            row += 1
        for k in range(first, last):
            good[action[k]], bad[action[k]], last_row[action[k]] = 0, 0, -1
