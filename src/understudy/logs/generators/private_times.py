"""The bounded statistics of learners' times, and the model of times that is made of them.

Each is a sum over learners of a vector that depends on that learner's rows alone. `one_of` statistics have one 1 per
learner (replacing a learner moves them by sqrt(2)), counts are scaled down to an L2 norm C and never negative
(sqrt(2) C), and the two bounds that differ are derived where they are. Grids, bins and shares of the budget follow from
what is public: the term, its resolution, what ends a session, the number of learners, and the budget. The proof,
statistic by statistic, is in docs/explanation/guarantee.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from math import inf, log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import norm as normal

from understudy.logs.generators.budget import Noisy, Spending, choose_norm
from understudy.logs.generators.private_sums import (
    RESOLUTION,
    Total,
    bounded_sum,
    clipped_counts,
    one_of,
)
from understudy.logs.interactions import IntArray, Interactions, totals
from understudy.logs.models.denoising import averaged_counts, shrunk_shares, to_simplex
from understudy.logs.models.sessions import (
    HOURS_OF_WEEK,
    Calendar,
    Timeline,
    microseconds,
    n_step_kinds,
    step_kinds,
)
from understudy.logs.models.times import (
    N_OCTAVES,
    N_PERSISTENCES,
    N_SESSION_CLASSES,
    SESSION_SHARES,
    TimeModel,
    octave,
    persistence,
    session_class,
)
from understudy.logs.term import Term

Floats = NDArray[np.float64]

# Shares of the budget where actions and outcomes have 1 together. Chosen on simulated classrooms, never on the data at
# hand.
SHARES = {
    "times sessions": 0.05,
    "times starts": 0.03,
    "times stops": 0.05,
    "times spans": 0.02,
    "times norms": 0.012,
    "times gaps": 0.04,
    "times session rows": 0.015,
    "times hours": 0.05,
    "times pauses": 0.02,
    "times pace": 0.008,
}
# What finding the days of a term takes where they are not declared.
TERM_SHARES = {"times years": 0.03, "times months": 0.03}

# Years in which a term is looked for.
FIRST_YEAR, LAST_YEAR = 1970, 2100
N_YEARS = LAST_YEAR - FIRST_YEAR + 1
# A year, or all years of a window, stands out from the noise by so many standard deviations of it; so do months.
YEARS_STAND_OUT, MONTHS_STAND_OUT = 4.0, 3.0
WINDOWS = (1, 2, 4, 8, 16)
# Bins for starts and stops: as many as leave each this many standard deviations of the noise on average, within limits.
BINS_STAND_OUT, FEWEST_BINS, MOST_BINS = 2.0, 4, 60
# Spans in bins: 0, 1, 2, 3 to 4, 5 to 8, ...
N_SPANS = 8
# Norms are at most this; their logarithms have about this spread, around what was asked for.
LARGEST_NORM, NORM_SPREAD = 2.0**15, 1.0
# Clipping moves this much of what it takes: learners with many rows keep other hours and gaps than others, but not much.
CLIPPED_MATTERS = 0.1
# A learner's entries lie on about so many cells: what they sum to is their norm times the root of it.
USUAL_CELLS = 6.0
# A learner's pace counts in full from so many pairs of gaps on, and is cut at this product of scores.
FULL_PACE, MOST_PRODUCT = 20.0, 2.0
# Gaps are usually about half a minute, give or take a factor of four.
USUAL_GAP, USUAL_GAP_SPREAD = 30e6, 1.4
# Noise of so little of the total is none; an hour has at least this share of an even one before anything is seen.
NO_NOISE, LEAST_GUESS = 1e-4, 1e-3
# Steps of a kind pause as often as others, unless so many standard deviations of the noise say otherwise.
ODDS_DOUBT, MOST_ODDS = 4.0, 8.0


def time_shares(log: Interactions) -> dict[str, float]:
    """What times take of the budget, by public facts alone; nothing where they are not part of what is told."""
    if not log.has_times:
        return {}
    assert log.term is not None
    return SHARES if log.term.declared else {**SHARES, **TERM_SHARES}


class TimeStatistics:
    """Sums over the learners of a log; each function bounds a learner's part by that learner's rows."""

    def __init__(self, log: Interactions, calendar: Calendar) -> None:
        self.log = log
        self.calendar = calendar
        self.timeline = Timeline(log, calendar)
        self.present = np.flatnonzero(log.lengths)

    def sessions(self) -> Total:
        """Learners by octave of rows and by how many sessions they have for that."""
        rows, n_sessions = self.log.lengths[self.present], self.timeline.n_sessions[self.present]
        cell = octave(rows) * N_SESSION_CLASSES + session_class(n_sessions, rows)
        return one_of(cell, N_OCTAVES * N_SESSION_CLASSES, self.present)

    def starts(self) -> Total:
        """Learners by the bin of their first row."""
        return one_of(self._start, self.calendar.n_bins, self.present)

    def stops(self) -> Total:
        """Learners by persistence and by the bin of their last row."""
        n_bins = self.calendar.n_bins
        return one_of(self._persistence * n_bins + self._stop, N_PERSISTENCES * n_bins, self.present)

    def spans(self) -> Total:
        """Learners by persistence and by how many bins lie between their first and last row."""
        cell = self._persistence * N_SPANS + span_class(self._stop - self._start)
        return one_of(cell, N_PERSISTENCES * N_SPANS, self.present)

    def log_norm(self, entries: Entries) -> Total:
        """Sum of the logarithms of the norms of learners' counts, from 0 to 1 (`LARGEST_NORM`)."""
        learner, _, count, _ = entries
        length = np.sqrt(totals(learner, count**2, self.log.n_learners))
        return bounded_sum(np.log(np.maximum(length, 1.0)) / log(LARGEST_NORM), 1.0)

    def counts(self, entries: Entries, norm: float | None) -> Total:
        """Sum of learners' counts, those of each scaled down to this norm; without one, as they are."""
        learner, column, count, n_columns = entries
        if norm is None:
            sums = totals(column, count, n_columns).astype(np.int64)
            return Total(sums, inf, 1.0, (learner, column, count))
        return clipped_counts(learner, column, count, (self.log.n_learners, n_columns), norm)

    @cached_property
    def gaps(self) -> Entries:
        """Steps by kind and class of the gap before them; a pause is one class more."""
        steps = ~self.timeline.first
        n_classes = len(self.calendar.gap_edges)
        cell = step_kinds(self.log)[steps] * n_classes + self.calendar.gap_class(self.timeline.gap[steps])
        return self._counted(self.log.learner[steps], cell, n_step_kinds(self.log) * n_classes)

    @cached_property
    def session_rows(self) -> Entries:
        """Sessions by octave of rows."""
        begins = np.flatnonzero(self.timeline.first | self.timeline.pause)
        rows = np.bincount(self.timeline.session, minlength=len(begins))[: len(begins)]
        return self._counted(self.log.learner[begins], octave(rows), N_OCTAVES)

    @cached_property
    def hours(self) -> Entries:
        """Rows by hour of the week."""
        return self._counted(
            self.log.learner, self.calendar.hour_of_week(self.timeline.time), HOURS_OF_WEEK
        )

    @cached_property
    def pauses(self) -> Entries:
        """Pauses between sessions by class."""
        rows = np.flatnonzero(self.timeline.pause)
        place = self.calendar.pause_class(self.timeline.gap[rows])
        return self._counted(self.log.learner[rows], place, len(self.calendar.pause_edges) - 1)

    def pace(self, laws: Floats) -> Total:
        """How alike the gaps of a learner are: the mean product of two of them, weighted, and the weight.

        A gap within a session becomes a normal score by the law of its kind, as released before. A learner with n of
        them has the weight w, from 0 to 1 by n, and the mean product p of two scores, cut to [-1, 1] in units of
        `MOST_PRODUCT`. The pair (w p, w) lies in the triangle with corners (0, 0), (1, 1) and (-1, 1), whose longest
        side is 2: replacing a learner moves it by 2, and rounding by less than 1 in each.
        """
        within = ~self.timeline.first & ~self.timeline.pause
        learner, n_learners = self.log.learner[within], self.log.n_learners
        score = _scores(laws)[
            step_kinds(self.log)[within], self.calendar.gap_class(self.timeline.gap[within])
        ]
        n = totals(learner, np.ones(len(learner)), n_learners)
        square = totals(learner, score, n_learners) ** 2 - totals(learner, score**2, n_learners)
        product = np.clip(square / np.maximum(n * (n - 1.0), 1.0) / MOST_PRODUCT, -1.0, 1.0)
        weight = np.clip((n - 1.0) / FULL_PACE, 0.0, 1.0)
        lattice = np.trunc(np.stack([weight * product, weight], axis=1) * RESOLUTION)
        parts = (
            np.repeat(np.arange(n_learners), 2),
            np.tile(np.arange(2), n_learners),
            lattice.ravel(),
        )
        step = np.array([MOST_PRODUCT, 1.0]) / RESOLUTION
        return Total(lattice.sum(axis=0).astype(np.int64), 2.0 * RESOLUTION + sqrt(2.0), step, parts)

    @cached_property
    def _start(self) -> IntArray:
        return self.calendar.bin_of(self.timeline.time[self.log.offsets[self.present]])

    @cached_property
    def _stop(self) -> IntArray:
        return self.calendar.bin_of(self.timeline.time[self.log.offsets[self.present + 1] - 1])

    @cached_property
    def _persistence(self) -> IntArray:
        return persistence(self.timeline.n_sessions[self.present])

    def _counted(self, learner: IntArray, column: IntArray, n_columns: int) -> Entries:
        pair, count = np.unique(learner.astype(np.int64) * n_columns + column, return_counts=True)
        return pair // n_columns, pair % n_columns, count.astype(np.float64), n_columns


# Learner, column, count, and the number of columns.
Entries = tuple[IntArray, IntArray, Floats, int]


def span_class(n_bins: IntArray) -> IntArray:
    """0, 1, 2, 3 to 4, 5 to 8, ... bins."""
    place: IntArray = np.where(n_bins < 1, 0, 1 + np.ceil(np.log2(np.maximum(n_bins, 1)))).astype(np.int64)
    return np.minimum(place, N_SPANS - 1)


def _scores(laws: Floats) -> Floats:
    """The normal score in the middle of each class of gaps, by kind."""
    upper = np.cumsum(laws, axis=1)
    scores: Floats = ndtri(np.clip(upper - laws / 2.0, 1e-4, 1.0 - 1e-4))
    return scores


def fit_times(log: Interactions, spending: Spending, n_learners: int) -> tuple[TimeModel, str]:
    """The model of a log's times, of sums that `spending` releases; and a sentence on its term where that was found."""
    assert log.term is not None
    term, note = (log.term, "") if log.term.declared else found_term(log, log.term, spending)
    n_bins = MOST_BINS if spending.exact else most_bins(n_learners, spending.rho_of("times stops"))
    calendar = Calendar.of(term, n_bins)
    return _Fit(log, calendar, spending, n_learners).model(), note


def most_bins(n_learners: int, rho: float) -> int:
    """Bins for starts and stops: by the number of learners and the noise, both of them public."""
    noise = 1.0 / sqrt(rho)
    wanted = n_learners / (BINS_STAND_OUT * noise * N_PERSISTENCES)
    return int(min(max(wanted, FEWEST_BINS), MOST_BINS))


@dataclass(frozen=True)
class _Fit:
    """Releases the sums, and makes laws of them."""

    log: Interactions
    calendar: Calendar
    spending: Spending
    n_learners: int

    def model(self) -> TimeModel:
        sums = TimeStatistics(self.log, self.calendar)
        spend = self.spending.spend
        (sessions,) = spend("times sessions", sums.sessions())
        (starts,) = spend("times starts", sums.starts())
        (stops,) = spend("times stops", sums.stops())
        (spans,) = spend("times spans", sums.spans())
        counted = {
            "times gaps": sums.gaps,
            "times session rows": sums.session_rows,
            "times hours": sums.hours,
            "times pauses": sums.pauses,
        }
        norms = self._norms(sums, counted)
        (gaps,) = spend("times gaps", sums.counts(sums.gaps, norms["times gaps"]))
        (rows,) = spend("times session rows", sums.counts(sums.session_rows, norms["times session rows"]))
        (hours,) = spend("times hours", sums.counts(sums.hours, norms["times hours"]))
        (pauses,) = spend("times pauses", sums.counts(sums.pauses, norms["times pauses"]))
        laws, odds = gap_laws(gaps, self.calendar, n_step_kinds(self.log))
        (pace,) = spend("times pace", sums.pace(laws))
        # Few rows are likelier than many.
        shrinking = 0.6 ** np.arange(N_OCTAVES)
        session_rows, signal = _shares(rows, shrinking / shrinking.sum())
        n_pauses = len(self.calendar.pause_edges) - 1
        return TimeModel(
            self.calendar,
            session_laws(sessions),
            span_laws(starts, stops, spans, self.calendar, self.n_learners),
            session_rows,
            signal,
            _shares(pauses, np.full(n_pauses, 1.0 / n_pauses))[0],
            odds,
            laws,
            hour_law(hours),
            _own_pace(pace),
        )

    def _norms(self, sums: TimeStatistics, counted: dict[str, Entries]) -> dict[str, float | None]:
        """Where learners' counts are clipped, by noisy mean logarithms of their norms."""
        noisy = self.spending.spend("times norms", *(sums.log_norm(each) for each in counted.values()))
        if self.spending.exact:
            return dict.fromkeys(counted)
        n = self.n_learners
        place = np.linspace(-3.0, 3.0, 61)
        weight = np.exp(-0.5 * place**2)
        norms: dict[str, float | None] = {}
        for (name, (_, _, _, n_columns)), each in zip(counted.items(), noisy, strict=True):
            mean = float(np.clip(each.values[0] / n, 0.0, 0.8)) * log(LARGEST_NORM)
            sizes = np.maximum(np.exp(mean + NORM_SPREAD * place), 1.0)
            learners = n * weight / weight.sum()
            mass = float(learners @ sizes) * sqrt(USUAL_CELLS)
            norms[name] = choose_norm(
                sizes, learners, mass, n_columns, self.spending.rho_of(name), CLIPPED_MATTERS
            )
        return norms


def _shares(noisy: Noisy, prior: Floats) -> tuple[Floats, float]:
    """Shares of noisy counts, drawn to a guess as far as they are noise; and how much is signal."""
    return shrunk_shares(noisy.values, noisy.sigma, float(noisy.values.sum()), prior)


def _own_pace(noisy: Noisy) -> float:
    """How alike the gaps of a learner are; not at all where the noise hides it."""
    product, weight = noisy.values
    noise = float(np.max(noisy.sigma))
    return float(np.clip(product / max(weight, 2.0 * noise, 1e-9), 0.0, 0.95))


def session_laws(noisy: Noisy) -> Floats:
    """Per octave of rows: how many sessions learners have, as expected around two guesses.

    One is a normal law of the logarithm of sessions as a share of that of rows, whose mean follows a line through the
    octaves; the other is what learners of neighbouring octaves have.
    """
    table = noisy.values.reshape(N_OCTAVES, N_SESSION_CLASSES)
    sigma = float(np.max(noisy.sigma))
    learners = table.sum(axis=1)
    if sigma * table.size < NO_NOISE * max(float(learners.sum()), 1.0):
        return np.maximum(table, 1e-12) / np.maximum(table, 1e-12).sum(axis=1, keepdims=True)
    normal_law = _normal_session_laws(table, learners, sigma)
    laws = np.empty(table.shape)
    for each, row in enumerate(table):
        rows = max(float(learners[each]), 1.0)
        near = table[max(each - 1, 1) : each + 2].sum(axis=0)
        law, _ = shrunk_shares(near, sigma * sqrt(3.0), float(near.sum()), normal_law[each])
        guesses = [rows * normal_law[each], rows * np.maximum(law, normal_law[each] / 10.0)]
        laws[each] = averaged_counts(row, sigma, guesses)
    # A learner with one row has one session.
    laws[0] = np.eye(N_SESSION_CLASSES)[0]
    return laws / laws.sum(axis=1, keepdims=True)


def _normal_session_laws(table: Floats, learners: Floats, sigma: float) -> Floats:
    """The first guess: a line by least squares, each noisy count a weight; sums of them have no bias.

    One session is a share of up to half of the first class.
    """
    upper = np.concatenate([[SESSION_SHARES[0] / 2.0], SESSION_SHARES, [1.0]])
    middle = np.concatenate([[0.0], (upper[:-1] + upper[1:]) / 2.0])
    # Octaves with few learners are noise; one row says nothing.
    noise = 2.0 * sigma * sqrt(N_SESSION_CLASSES)
    believed = np.maximum(learners, 0.0) ** 2 / (learners**2 + noise**2)
    believed[0] = 0.0
    counts, place = believed[:, None] * table, np.arange(N_OCTAVES, dtype=np.float64)[:, None]
    total = max(float(counts.sum()), 1.0)
    centre = float((counts * place).sum()) / total
    level = float((counts * middle).sum()) / total
    width = max(float((counts * (place - centre) ** 2).sum()), total / 4.0)
    line = level + float((counts * (place - centre) * (middle - level)).sum()) / width * (place - centre)
    line = np.clip(line, 0.0, 1.0)
    variance = float((counts * (middle - line) ** 2).sum()) / total
    below = normal.cdf(upper[None, :-1], line, sqrt(min(max(variance, 0.003), 0.1)))
    laws: Floats = np.diff(below, prepend=0.0, append=1.0, axis=1) + 1e-6
    return laws / laws.sum(axis=1, keepdims=True)


def span_laws(starts: Noisy, stops: Noisy, spans: Noisy, calendar: Calendar, n_learners: int) -> Floats:
    """Per persistence: the chance of each bin to start in and to stop in, by noisy numbers of starts, stops and spans.

    It is the table with these margins that is closest to an even one among starts that are not after their stops.
    """
    n = calendar.n_bins
    place = np.arange(n)
    days = np.minimum(calendar.bin_days, calendar.n_days - calendar.bin_days * place).astype(np.float64)
    start, _ = shrunk_shares(starts.values, starts.sigma, n_learners, days / days.sum())
    stop = _by_class(stops, n, days / days.sum())
    span = _by_class(spans, N_SPANS, np.full(N_SPANS, 1.0 / N_SPANS))
    apart = place[None, :] - place[:, None]
    table = np.repeat(np.outer(days, days)[None] * (apart >= 0), N_PERSISTENCES, axis=0)
    # One session begins and ends in one bin, but for those that go on past midnight.
    table[0] *= apart == 0
    of = span_class(np.maximum(apart, 0))
    for _ in range(100):
        for each in range(1, N_PERSISTENCES):
            found = np.bincount(of.ravel(), table[each].ravel(), N_SPANS)
            table[each] *= np.where(found > 1e-12, span[each] / np.maximum(found, 1e-12), 0.0)[of]
        table *= (start / np.maximum(table.sum(axis=(0, 2)), 1e-12))[None, :, None]
        table *= (stop / np.maximum(table.sum(axis=1), 1e-12))[:, None, :]
    table += 1e-9 * (apart >= 0)
    table[0] *= apart == 0
    laws: Floats = table / table.sum(axis=(1, 2), keepdims=True)
    return laws


def _by_class(noisy: Noisy, n_columns: int, prior: Floats) -> Floats:
    """A noisy table of learners by persistence and something else, each row drawn to that of all; it sums to 1."""
    table = noisy.values.reshape(N_PERSISTENCES, n_columns)
    sigma = float(np.max(noisy.sigma))
    together = table.sum(axis=0)
    pooled, _ = shrunk_shares(together, sigma * sqrt(N_PERSISTENCES), float(together.sum()), prior)
    weight = to_simplex(table.sum(axis=1), 1.0 if together.sum() <= 0 else float(together.sum()))
    laws = np.array([shrunk_shares(row, sigma, max(float(row.sum()), 1.0), pooled)[0] for row in table])
    shares: Floats = laws * (np.maximum(weight, 1e-6) / np.maximum(weight, 1e-6).sum())[:, None] + 1e-9
    return shares


def gap_laws(noisy: Noisy, calendar: Calendar, n_kinds: int) -> tuple[Floats, Floats]:
    """The law of gaps of each kind of step, and how much likelier than others each is to come after a pause.

    A kind's law is drawn to that of all kinds, and this one to a normal law of logarithms, as far as they are noise.
    """
    n_classes = len(calendar.gap_edges) - 1
    table = noisy.values.reshape(n_kinds, n_classes + 1)
    sigma = float(np.max(noisy.sigma))
    within = table[:, :n_classes]
    together = within.sum(axis=0)
    guess = _lognormal(to_simplex(together, max(float(together.sum()), 1.0)), calendar)
    pooled, _ = shrunk_shares(together, sigma * sqrt(n_kinds), float(together.sum()), guess)
    laws = np.array([shrunk_shares(row, sigma, float(row.sum()), pooled)[0] for row in within])
    steps, pauses = np.maximum(table.sum(axis=1), 0.0), np.maximum(table[:, n_classes], 0.0)
    rate = max(float(pauses.sum()), 1e-9) / max(float(steps.sum()), 1.0)
    doubt = ODDS_DOUBT * sigma / max(rate, 1e-3)
    odds = (pauses + doubt * rate) / (steps + doubt) / rate
    return laws, np.clip(odds, 1.0 / MOST_ODDS, MOST_ODDS)


def _lognormal(counts: Floats, calendar: Calendar) -> Floats:
    """A law of gaps whose logarithm is normal, with the mean and spread of these counts, or the usual ones."""
    edges = np.maximum(calendar.gap_edges.astype(np.float64), 0.5)
    middle = np.log(np.sqrt(edges[:-1] * edges[1:]))
    shares = counts / max(counts.sum(), 1e-9)
    usual = log(max(USUAL_GAP / calendar.resolution, 0.5))
    known = counts.sum() > len(counts)
    mean = float(shares @ middle) if known else usual
    variance = float(shares @ (middle - mean) ** 2) if known else USUAL_GAP_SPREAD**2
    upper = normal.cdf(np.log(edges[1:]), mean, max(sqrt(variance), 0.3))
    law: Floats = np.diff(upper, prepend=0.0) + 1e-6
    return law / law.sum()


def hour_law(noisy: Noisy) -> Floats:
    """Shares of hours of the week, as expected around days times hours of the day.

    One guess has one law of hours for all days, another has one for working days and one for weekends.
    """
    table, sigma = noisy.values.reshape(7, 24), float(np.max(noisy.sigma))
    total = max(float(table.sum()), 1.0)
    if sigma * table.size < NO_NOISE * total:
        return np.maximum(noisy.values, 0.0) / max(float(np.maximum(noisy.values, 0.0).sum()), 1e-9)
    guesses = []
    for parts in (((0, 7),), ((0, 5), (5, 7))):
        guess = np.full(table.shape, LEAST_GUESS * total / table.size)
        for first, last in parts:
            days = table[first:last]
            rows = max(float(days.sum()), 1.0)
            hour, _ = shrunk_shares(
                days.sum(axis=0), sigma * sqrt(last - first), rows, np.full(24, 1.0 / 24)
            )
            even = np.full(last - first, 1.0 / (last - first))
            day, _ = shrunk_shares(days.sum(axis=1), sigma * sqrt(24.0), rows, even)
            guess[first:last] += rows * np.outer(day, hour)
        guesses.append(guess.ravel())
    counts = averaged_counts(noisy.values, sigma, guesses)
    return counts / counts.sum()


# ---- The days of a term that are not declared


def found_term(log: Interactions, term: Term, spending: Spending) -> tuple[Term, str]:
    """The months in which learners start and stop, as far as they stand out from the noise, and a sentence on it.

    Learners are counted by the year of their first row and by that of their last, on a grid that is the same for every
    log; then by month, in the years that were found. A month more on either side leaves room for those few who do not
    stand out; times outside are moved to the ends. Where no year stands out the term is the likeliest year: the budget
    is spent by then, and the sentence says that times are noise.
    """
    present = np.flatnonzero(log.lengths)
    first, last = _first_and_last_months(log, present)
    by_year = spending.spend(
        "times years", one_of(first // 12, N_YEARS, present), one_of(last // 12, N_YEARS, present)
    )
    years, seen = _years(by_year)
    n_months = 12 * (years[1] - years[0] + 1)
    months = [np.clip(each - 12 * years[0], 0, n_months - 1) for each in (first, last)]
    by_month = spending.spend("times months", *(one_of(each, n_months, present) for each in months))
    begin, end = 0, n_months - 1
    root = np.sqrt(np.arange(1, n_months + 1))
    starts = np.cumsum(by_month[0].values) > MONTHS_STAND_OUT * by_month[0].sigma * root
    stops = np.cumsum(by_month[1].values[::-1]) > MONTHS_STAND_OUT * by_month[1].sigma * root
    if seen and starts.any() and stops.any():
        begin, end = int(np.argmax(starts)) - 1, n_months - int(np.argmax(stops))
        begin, end = min(begin, end), max(begin, end)
    begin, end = max(12 * years[0] + begin, 0), min(12 * years[0] + end, 12 * N_YEARS - 1)
    found = Term(
        _month(begin), _month(end + 1) - timedelta(days=1), term.resolution, term.session_minutes
    )
    return found, _about(found, seen=seen)


def _about(found: Term, *, seen: bool) -> str:
    if seen:
        return (
            f"The days of the term were not declared: {found.first} to {found.last} was found privately, with a month "
            "on either side; declared days leave more of the budget to all else."
        )
    return (
        f"The days of the term were not declared, and no year stands out from the noise: times lie in {found.first} "
        f"to {found.last}, which says nothing. Declare the first and the last day."
    )


def _first_and_last_months(log: Interactions, present: IntArray) -> tuple[IntArray, IntArray]:
    """Per learner with rows: the months since 1970 of the first and the last row, within the grid."""
    month = microseconds(log).astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    month = np.clip(month, 0, 12 * N_YEARS - 1)
    if not len(present):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    begin = log.offsets[present]
    return np.minimum.reduceat(month, begin), np.maximum.reduceat(month, begin)


def _years(noisy: list[Noisy]) -> tuple[tuple[int, int], bool]:
    """The first and the last year that stand out, by starts or by stops; the likeliest where none does."""
    for width in WINDOWS:
        windows = [np.convolve(each.values, np.ones(width), "valid") for each in noisy]
        limits = [YEARS_STAND_OUT * float(np.max(each.sigma)) * sqrt(width) for each in noisy]
        out = np.flatnonzero(
            np.any([found > limit for found, limit in zip(windows, limits, strict=True)], axis=0)
        )
        if len(out):
            return (int(out[0]), int(out[-1]) + width - 1), True
    likeliest = int(np.argmax(noisy[0].values + noisy[1].values))
    return (likeliest, likeliest), False


def _month(number: int) -> date:
    """The first day of a month, counted from January 1970."""
    return date(FIRST_YEAR + number // 12, number % 12 + 1, 1)
