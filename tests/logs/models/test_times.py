"""Times drawn onto walks: given laws come out again, and every time could have been written by the platform."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chisquare

from understudy.logs.declared.term import Term
from understudy.logs.interactions import Interactions
from understudy.logs.models.sessions import DAY, SECOND, Calendar, Timeline
from understudy.logs.models.times import (
    N_OCTAVES,
    N_PERSISTENCES,
    N_SESSION_CLASSES,
    TimeModel,
    _divide,
    _from_class,
    _hazards,
    draw_sessions,
    octave,
    persistence,
    session_class,
)
from understudy.logs.schedule import step_kinds

pytestmark = pytest.mark.oracle

TERM = Term(date(2024, 9, 2), date(2024, 12, 8))


def walks_of(lengths, rng, outcomes=True):
    action = [rng.integers(0, 3, n) for n in lengths]
    log = Interactions.from_sequences(action, [rng.integers(0, 2, n) for n in lengths], actions=list("abc"))
    return log if outcomes else log.without_outcomes()


def model_of(calendar, rng, *, n_kinds=4, one_session=False, pace=0.0):
    """Laws drawn at random."""
    n = calendar.n_bins
    spans = np.triu(rng.random((N_PERSISTENCES, n, n)))
    spans[0] *= np.eye(n)
    sessions = rng.random((N_OCTAVES, N_SESSION_CLASSES))
    if one_session:
        sessions = np.tile(np.eye(N_SESSION_CLASSES)[0], (N_OCTAVES, 1))
    return TimeModel(
        calendar,
        sessions / sessions.sum(axis=1, keepdims=True),
        spans / spans.sum(axis=(1, 2), keepdims=True),
        np.full(N_OCTAVES, 1.0 / N_OCTAVES),
        0.0,
        rng.dirichlet(np.ones(len(calendar.pause_edges) - 1)),
        np.ones(n_kinds),
        rng.dirichlet(np.ones(len(calendar.gap_edges) - 1), n_kinds),
        rng.dirichlet(np.ones(168)),
        pace,
    )


# ---- reading a log's times


@pytest.mark.parametrize("resolution", [1.0, 60.0, 7.0])
def test_a_timeline_is_what_counting_one_by_one_gives(resolution):
    rng = np.random.default_rng(0)
    term = Term(date(2024, 3, 1), date(2024, 3, 20), resolution, session_minutes=20)
    calendar = Calendar.of(term, 5)
    log = walks_of([0, 1, 5, 40, 0, 200], rng)
    base = datetime(2024, 2, 28, tzinfo=UTC)
    seconds = np.cumsum(rng.integers(-300, 6000, log.n_rows))
    log = replace(
        log, time=np.datetime64("2024-02-28", "us") + seconds * np.timedelta64(SECOND, "us"), term=term
    )
    timeline = Timeline(log, calendar)
    first, last = datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 21, tzinfo=UTC)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    sessions, hours, bins, begins = [], [], [], []
    for i in range(log.n_learners):
        before, n = None, 0
        for row in range(log.offsets[i], log.offsets[i + 1]):
            ticks = (base + timedelta(seconds=int(seconds[row])) - epoch) // timedelta(seconds=resolution)
            least = -((epoch - first) // timedelta(seconds=resolution))
            most = (last - epoch - timedelta(microseconds=1)) // timedelta(seconds=resolution)
            ticks = min(max(ticks, least), most)
            ticks = ticks if before is None else max(ticks, before)
            new = before is None or (ticks - before) * resolution > 20 * 60
            n += new
            moment = epoch + ticks * timedelta(seconds=resolution)
            hours.append(24 * moment.weekday() + moment.hour)
            bins.append((moment - first) // timedelta(days=calendar.bin_days))
            begins.append(new)
            assert timeline.time[row] == ticks * resolution * SECOND
            assert timeline.gap[row] == (0 if before is None else ticks - before)
            before = ticks
        sessions.append(n)
    assert timeline.n_sessions.tolist() == sessions
    assert (timeline.first | timeline.pause).tolist() == begins
    assert calendar.hour_of_week(timeline.time).tolist() == hours
    assert calendar.bin_of(timeline.time).tolist() == bins


def test_classes_of_gaps_and_pauses_divide_all_numbers():
    calendar = Calendar.of(TERM, 20)
    limit = 1800
    gaps = np.arange(limit + 1)
    assert (np.diff(calendar.gap_class(gaps)) >= 0).all()
    assert calendar.gap_class(np.array([0, 1, limit, limit + 1])).tolist() == [
        0, 1, len(calendar.gap_edges) - 2, len(calendar.gap_edges) - 1,
    ]  # fmt: skip
    assert calendar.pause_edges[0] == limit + 1
    assert calendar.pause_class(np.array([limit + 1, 10**9])).tolist() == [0, len(calendar.pause_edges) - 2]


@pytest.mark.parametrize(
    ("days", "most", "expected"), [(10, 60, (1, 10)), (98, 60, (7, 14)), (98, 5, (21, 5)), (3, 1, (3, 1))]
)
def test_bins_are_days_or_whole_weeks(days, most, expected):
    first = date(2024, 9, 2)
    calendar = Calendar.of(Term(first, first + timedelta(days=days - 1)), most)
    assert (calendar.bin_days, calendar.n_bins) == expected


def test_bins_of_weeks_begin_on_mondays():
    """A term from Thursday to Tuesday: the first week has four days, the last two; and each day is in the right one."""
    first = date(2024, 9, 5)
    calendar = Calendar.of(Term(first, first + timedelta(days=47)), 60)
    assert calendar.bin_lengths.tolist() == [4, 7, 7, 7, 7, 7, 7, 2]
    days = np.array([first + timedelta(days=day) for day in range(48)], dtype="datetime64[us]").astype(
        np.int64
    )
    weeks = [(first + timedelta(days=day)).isocalendar().week - 36 for day in range(48)]
    assert calendar.bin_of(days).tolist() == weeks


def test_kinds_of_steps():
    log = Interactions.from_sequences([[0, 0, 1, 1], [1]], [[1, 0, 0, 1], [0]])
    assert step_kinds(log)[1:4].tolist() == [1, 2, 0]
    assert step_kinds(log.without_outcomes())[1:4].tolist() == [0, 1, 0]


# ---- drawing


def test_every_division_into_sessions_is_equally_likely():
    """Against all of them: 3 sessions of 6 rows begin at two of five rows; chance alone fails once in 10,000."""
    rng = np.random.default_rng(0)
    found = dict.fromkeys(combinations(range(1, 6), 2), 0)
    begin = np.empty(4, dtype=np.int64)
    for _ in range(20_000):
        _divide(rng, 0, 6, 3, np.zeros(6, dtype=np.int64), np.zeros(1), np.zeros(N_OCTAVES), begin)
        found[tuple(begin[1:3].tolist())] += 1
    assert chisquare(list(found.values())).pvalue > 1e-4


def test_pauses_come_before_steps_of_their_kind():
    """One pause among two rows with odds e: e / (1 + e) of them come before the first, for which it is e to 1."""
    rng = np.random.default_rng(0)
    begin, n = np.empty(3, dtype=np.int64), 20_000
    first = 0
    for _ in range(n):
        _divide(rng, 0, 3, 2, np.array([0, 1, 0]), np.array([0.0, 1.0]), np.zeros(N_OCTAVES), begin)
        first += begin[1] == 1
    assert first / n == pytest.approx(np.e / (1 + np.e), abs=0.015)


def test_hazards_of_a_geometric_law_are_constant():
    chance = 0.2
    rows = np.random.default_rng(0).geometric(chance, 400_000)
    hazards = _hazards(np.bincount(octave(rows), minlength=N_OCTAVES))
    # Within an octave ends are taken to be even, so it is close and not exact.
    assert hazards[:4] == pytest.approx(np.full(4, chance), rel=0.1)


def test_numbers_of_sessions_have_their_law():
    rng = np.random.default_rng(0)
    lengths = np.concatenate([np.full(4000, 200), np.full(4000, 30)])
    law = rng.dirichlet(np.ones(N_SESSION_CLASSES), N_OCTAVES)
    # No whole number lies in the first class beyond one session, with 30 rows.
    law[octave(np.array([30])), 1] = 0.0
    law /= law.sum(axis=1, keepdims=True)
    drawn = draw_sessions(law, lengths, rng)
    assert (drawn <= lengths).all()
    for length in (200, 30):
        here = lengths == length
        found = np.bincount(session_class(drawn[here], lengths[here]), minlength=N_SESSION_CLASSES) / 4000
        # Systematic sampling: a class is off by one learner at each of its ends at the most.
        assert found == pytest.approx(law[octave(np.array([length]))[0]], abs=2.01 / 4000)
    assert (draw_sessions(law, np.ones(50, dtype=np.int64), rng) == 1).all()
    assert draw_sessions(law, np.zeros(3, dtype=np.int64), rng).tolist() == [1, 1, 1]


def test_numbers_within_a_class_are_log_uniform():
    edges = np.array([0, 1, 100, 10_000])
    cumulative = np.array([0.25, 0.5, 1.0])
    level = np.linspace(0.0, 1.0, 4001)[:-1]
    drawn = np.array([_from_class(each, cumulative, edges) for each in level])
    assert (drawn[level < 0.25] == 0).all()
    assert np.median(drawn[(level >= 0.25) & (level < 0.5)]) == pytest.approx(10, abs=1)
    assert np.median(drawn[level >= 0.5]) == pytest.approx(1000, rel=0.01)
    assert drawn.max() < 10_000


def test_gaps_have_the_law_of_their_kind_and_learners_their_pace():
    rng = np.random.default_rng(1)
    calendar = Calendar.of(TERM, 20)
    model = model_of(calendar, rng, one_session=True, pace=0.3)
    walks = walks_of([60] * 1500, rng)
    timeline = Timeline(replace(walks, time=model.draw(walks, rng).astype("datetime64[us]")), calendar)
    steps = ~timeline.first & (timeline.time < calendar.end)
    kind, place = step_kinds(walks)[steps], calendar.gap_class(timeline.gap[steps])
    score = np.empty(len(kind))
    for each in range(4):
        found = np.bincount(place[kind == each], minlength=len(calendar.gap_edges) - 1)
        assert np.abs(found / found.sum() - model.gaps[each]).sum() / 2 < 0.05
        upper = np.cumsum(model.gaps[each])
        score[kind == each] = ndtri(np.clip(upper - model.gaps[each] / 2, 1e-4, 1 - 1e-4))[
            place[kind == each]
        ]
    mean = np.bincount(walks.learner[steps], score) / np.maximum(np.bincount(walks.learner[steps]), 1)
    # The variance between learners, less what chance leaves of the rest among 59 gaps.
    assert mean.var() - (1 - 0.3) / 59 == pytest.approx(0.3, abs=0.05)


def test_starts_stops_and_hours_have_their_laws():
    rng = np.random.default_rng(2)
    calendar = Calendar.of(TERM, 20)
    model = model_of(calendar, rng)
    # Sessions of minutes, as one that goes on for hours cannot have an hour of its own.
    quick = np.where(np.arange(model.gaps.shape[1]) < 12, 1.0 / 12, 0.0)
    model = replace(model, gaps=np.tile(quick, (4, 1)))
    walks = walks_of(rng.integers(1, 60, 3000), rng)
    timeline = Timeline(replace(walks, time=model.draw(walks, rng).astype("datetime64[us]")), calendar)
    start = calendar.bin_of(timeline.time[walks.offsets[:-1]])
    stop = calendar.bin_of(timeline.time[walks.offsets[1:] - 1])
    of = persistence(timeline.n_sessions)
    for each in range(N_PERSISTENCES):
        here = of == each
        for found, law in ((start, model.spans[each].sum(axis=1)), (stop, model.spans[each].sum(axis=0))):
            shares = np.bincount(found[here], minlength=calendar.n_bins) / here.sum()
            # Sessions that begin late in a bin may end in the next one.
            assert np.abs(np.cumsum(shares - law)).max() < 0.03
    hours = np.bincount(calendar.hour_of_week(timeline.time), minlength=168) / walks.n_rows
    assert np.abs(hours - model.hours).sum() / 2 < 0.08


@pytest.mark.parametrize("outcomes", [True, False])
@pytest.mark.parametrize(
    "term",
    [
        TERM,
        replace(TERM, resolution=60.0),
        replace(TERM, resolution=0.001),
        replace(TERM, resolution=7.0),
        replace(TERM, resolution=86_400.0),
        replace(TERM, session_minutes=600.0),
        Term(date(1970, 1, 1), date(1972, 9, 3)),
        Term(date(2024, 9, 5), date(2024, 10, 22)),
        Term(date(2024, 2, 29), date(2024, 2, 29)),
    ],
)
def test_times_could_have_been_written_by_the_platform(term, outcomes):
    """In the term, multiples of the resolution, never running backwards, and sessions with a pause between them."""
    rng = np.random.default_rng(3)
    calendar = Calendar.of(term, 20)
    model = model_of(calendar, rng, n_kinds=4 if outcomes else 2)
    walks = walks_of([1, 2, 3, 0, 400, *rng.integers(1, 30, 200)], rng, outcomes)
    drawn = model.add_to(walks, rng)
    assert drawn.term == term
    time = drawn.time.astype(np.int64)
    first = np.datetime64(term.first, "us").astype(np.int64)
    assert first <= time.min()
    assert time.max() < first + term.n_days * DAY
    assert (time % round(term.resolution * SECOND) == 0).all()
    timeline = Timeline(drawn, calendar)
    assert (timeline.time == time).all()
    if term.n_days > 30:
        # Nobody's sessions are squeezed together: the law of sessions is the one that was asked for.
        assert (timeline.n_sessions[walks.lengths > 0] >= 1).all()
        wanted = draw_sessions(model.sessions, walks.lengths, np.random.default_rng(0))
        assert timeline.n_sessions.mean() == pytest.approx(wanted[walks.lengths > 0].mean(), rel=0.15)


def test_no_walks_have_no_times():
    calendar = Calendar.of(TERM, 20)
    rng = np.random.default_rng(0)
    for walks in (walks_of([], rng), walks_of([0, 0], rng)):
        assert len(model_of(calendar, rng).add_to(walks, rng).time) == 0
