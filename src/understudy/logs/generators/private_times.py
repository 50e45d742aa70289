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

from understudy.logs.declared.term import Term
from understudy.logs.generators.budget import Noisy, Spending, choose_norm
from understudy.logs.generators.private_sums import (
    RESOLUTION,
    Entries,
    Total,
    clipped_counts,
    log_norms,
    one_of,
)
from understudy.logs.interactions import IntArray, Interactions, counted_pairs, totals
from understudy.logs.models.denoising import shrunk_shares
from understudy.logs.models.sessions import (
    Calendar,
    Timeline,
    microseconds,
)
from understudy.logs.models.time_laws import (
    DAYS_AND_HOURS,
    N_SPANS,
    gap_laws,
    hour_law,
    session_laws,
    span_class,
    span_laws,
)
from understudy.logs.models.times import (
    N_OCTAVES,
    N_PERSISTENCES,
    N_SESSION_CLASSES,
    TimeModel,
    octave,
    persistence,
    session_class,
)
from understudy.logs.schedule import HOURS_OF_WEEK, n_step_kinds, step_kinds

Floats = NDArray[np.float64]

# Shares of the budget where actions and outcomes have 1 together; `detail_split` weighs them. Chosen on simulated
# classrooms, never on the data at hand.
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
# Norms are at most this; their logarithms have about this spread, around what was asked for.
LARGEST_NORM, NORM_SPREAD = 2.0**15, 1.0
# Clipping moves this much of what it takes: learners with many rows differ little from others in hours and gaps.
CLIPPED_MATTERS = 0.1
# A learner's entries lie on about so many cells: what they sum to is their norm times the root of it.
USUAL_CELLS = 6.0
# Hours of the week are asked for as days and as hours of the day where there are fewer learners than this, in units of
# the noise for one of them: on simulated classrooms (75 to 1,000 learners) their product is then closer than a table of
# both. Days, of which there are fewer, weigh less.
FEWEST_FOR_WEEK, DAY_WEIGHT = 90.0, 0.5
# A learner's pace counts in full from so many pairs of gaps on, and is cut at this product of scores.
FULL_PACE, MOST_PRODUCT = 20.0, 2.0


def time_shares(log: Interactions, weight: float = 1.0) -> dict[str, float]:
    """What times take of the budget, by public facts alone; nothing where they are not included."""
    if not log.has_times:
        return {}
    assert log.term is not None
    shares = SHARES if log.term.declared else {**SHARES, **TERM_SHARES}
    return {name: weight * share for name, share in shares.items()}


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

    def log_norm(self, counted: Counted) -> Total:
        """Sum of the logarithms of the norms of learners' counts, from 0 to 1 (`LARGEST_NORM`)."""
        return log_norms(counted[0], self.log.n_learners, LARGEST_NORM)

    def counts(self, counted: Counted, norm: float | None) -> Total:
        """Sum of learners' counts, those of each scaled down to this norm; without one, as they are."""
        (learner, column, count), n_columns = counted
        if norm is None:
            sums = totals(column, count, n_columns).astype(np.int64)
            return Total(sums, inf, 1.0, (learner, column, count))
        return clipped_counts(learner, column, count, (self.log.n_learners, n_columns), norm)

    @cached_property
    def gaps(self) -> Counted:
        """Steps by kind and class of the gap before them; a pause is one class more."""
        steps = ~self.timeline.first
        n_classes = len(self.calendar.gap_edges)
        cell = step_kinds(self.log)[steps] * n_classes + self.calendar.gap_class(self.timeline.gap[steps])
        return self._counted(self.log.learner[steps], cell, n_step_kinds(self.log) * n_classes)

    @cached_property
    def session_rows(self) -> Counted:
        """Sessions by octave of rows."""
        begins = np.flatnonzero(self.timeline.first | self.timeline.pause)
        rows = np.bincount(self.timeline.session, minlength=len(begins))[: len(begins)]
        return self._counted(self.log.learner[begins], octave(rows), N_OCTAVES)

    @cached_property
    def hours(self) -> Counted:
        """Rows by hour of the week."""
        return self._counted(self.log.learner, self.calendar.hour_of_week(self.timeline.time), HOURS_OF_WEEK)

    @cached_property
    def days_and_hours(self) -> Counted:
        """Rows by hour of the day, and once more by day of the week, with less weight."""
        day, hour = np.divmod(self.calendar.hour_of_week(self.timeline.time), 24)
        learner = np.concatenate([self.log.learner, self.log.learner])
        learner, column, count = counted_pairs(learner, np.concatenate([hour, 24 + day]), DAYS_AND_HOURS)
        return (learner, column, np.where(column < 24, count, DAY_WEIGHT * count)), DAYS_AND_HOURS

    @cached_property
    def pauses(self) -> Counted:
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

    def _counted(self, learner: IntArray, column: IntArray, n_columns: int) -> Counted:
        return counted_pairs(learner, column, n_columns), n_columns


# What learners add, and the number of columns.
Counted = tuple[Entries, int]


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
            "times hours": sums.days_and_hours if self._few else sums.hours,
            "times pauses": sums.pauses,
        }
        norms = self._norms(sums, counted)
        (gaps,) = spend("times gaps", sums.counts(sums.gaps, norms["times gaps"]))
        (rows,) = spend("times session rows", sums.counts(sums.session_rows, norms["times session rows"]))
        (hours,) = spend("times hours", sums.counts(counted["times hours"], norms["times hours"]))
        (pauses,) = spend("times pauses", sums.counts(sums.pauses, norms["times pauses"]))
        laws, odds = gap_laws(*_plain(gaps), self.calendar, n_step_kinds(self.log))
        (pace,) = spend("times pace", sums.pace(laws))
        # Few rows are likelier than many.
        shrinking = 0.6 ** np.arange(N_OCTAVES)
        session_rows, signal = _shares(rows, shrinking / shrinking.sum())
        n_pauses = len(self.calendar.pause_edges) - 1
        return TimeModel(
            self.calendar,
            session_laws(*_plain(sessions)),
            span_laws(_plain(starts), _plain(stops), _plain(spans), self.calendar, self.n_learners),
            session_rows,
            signal,
            _shares(pauses, np.full(n_pauses, 1.0 / n_pauses))[0],
            odds,
            laws,
            hour_law(*_plain(hours)),
            _own_pace(pace),
        )

    @property
    def _few(self) -> bool:
        """Whether a table of all hours of the week would be noise; by public numbers."""
        in_noise = self.n_learners * sqrt(self.spending.rho_of("times hours"))
        return not self.spending.exact and in_noise < FEWEST_FOR_WEEK

    def _norms(self, sums: TimeStatistics, counted: dict[str, Counted]) -> dict[str, float | None]:
        """Where learners' counts are clipped, by noisy mean logarithms of their norms."""
        noisy = self.spending.spend("times norms", *(sums.log_norm(each) for each in counted.values()))
        if self.spending.exact:
            return dict.fromkeys(counted)
        n = self.n_learners
        place = np.linspace(-3.0, 3.0, 61)
        weight = np.exp(-0.5 * place**2)
        norms: dict[str, float | None] = {}
        for (name, (_, n_columns)), each in zip(counted.items(), noisy, strict=True):
            mean = float(np.clip(each.values[0] / n, 0.0, 0.8)) * log(LARGEST_NORM)
            sizes = np.maximum(np.exp(mean + NORM_SPREAD * place), 1.0)
            learners = n * weight / weight.sum()
            mass = float(learners @ sizes) * sqrt(USUAL_CELLS)
            norms[name] = choose_norm(
                sizes, learners, mass, n_columns, self.spending.rho_of(name), CLIPPED_MATTERS
            )
        return norms


def _plain(noisy: Noisy) -> tuple[Floats, float]:
    """Noisy counts, and the standard deviation that all of them share."""
    return noisy.values, noisy.largest_sigma


def _shares(noisy: Noisy, prior: Floats) -> tuple[Floats, float]:
    """Shares of noisy counts, drawn to a guess as far as they are noise; and how much is signal."""
    return shrunk_shares(noisy.values, noisy.sigma, float(noisy.values.sum()), prior)


def _own_pace(noisy: Noisy) -> float:
    """How alike the gaps of a learner are; not at all where the noise hides it."""
    (product, weight), noise = _plain(noisy)
    return float(np.clip(product / max(weight, 2.0 * noise, 1e-9), 0.0, 0.95))


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
    found = Term(_month(begin), _month(end + 1) - timedelta(days=1), term.resolution, term.session_minutes)
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
        limits = [YEARS_STAND_OUT * each.largest_sigma * sqrt(width) for each in noisy]
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
