"""Sums of times against a slow count, the laws that are made of them, and generators whose logs have times."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from math import ceil, inf, log2

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import ks_2samp

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.declared.term import Term
from understudy.logs.generators.baselines import Markov
from understudy.logs.generators.budget import Exact, Spending
from understudy.logs.generators.detail_split import detail_shares
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.private_sums import RESOLUTION
from understudy.logs.generators.private_times import TimeStatistics, fit_times
from understudy.logs.generators.runs import Runs
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import Interactions
from understudy.logs.models.sessions import Calendar, Timeline
from understudy.logs.models.time_laws import N_SPANS, gap_laws, hour_law, session_laws, span_class, span_laws
from understudy.logs.models.times import N_OCTAVES, N_PERSISTENCES, N_SESSION_CLASSES, SESSION_SHARES
from understudy.logs.simulated.classroom import Classroom

TERM = Term(date(2024, 9, 2), date(2024, 12, 8))


def classroom(n_learners, seed=0, **options):
    log = Classroom(n_learners=n_learners, timed=True, **options).simulate(np.random.default_rng(seed))
    return replace(log.declare(), columns=())


def fitted(generator, log, seed=0):
    rng = np.random.default_rng(seed)
    return generator.fit(log, rng, seeded_noise(rng))


# ---- statistics


@pytest.mark.oracle
@pytest.mark.parametrize("outcomes", [True, False])
def test_sums_are_what_counting_one_by_one_gives(outcomes):
    log = classroom(60)
    log = log if outcomes else log.without_outcomes()
    calendar = Calendar.of(TERM, 14)
    sums = TimeStatistics(log, calendar)
    laws = np.random.default_rng(0).dirichlet(np.ones(len(calendar.gap_edges) - 1), 4 if outcomes else 2)
    counted = {
        name: Counter()
        for name in ("sessions", "starts", "stops", "spans", "gaps", "rows", "hours", "pauses")
    }
    pace = np.zeros(2)
    first_day = datetime(2024, 9, 2, tzinfo=UTC)
    for i in range(log.n_learners):
        rows = range(log.offsets[i], log.offsets[i + 1])
        times = [log.time[row].astype(datetime).replace(tzinfo=UTC) for row in rows]
        n_sessions, in_session, scores = 1, 1, []
        for row, before, now in zip(rows[1:], times, times[1:], strict=False):
            gap = int((now - before).total_seconds())
            kind = int(log.action[row] != log.action[row - 1])
            if outcomes:
                kind = 2 * kind + int(log.outcome[row - 1])
            if gap > 1800:
                counted["gaps"][kind, len(calendar.gap_edges) - 1] += 1
                edges = calendar.pause_edges
                counted["pauses"][max(k for k in range(len(edges) - 1) if edges[k] <= gap)] += 1
                counted["rows"][ceil(log2(in_session))] += 1
                n_sessions, in_session = n_sessions + 1, 1
            else:
                place = max(k for k in range(len(calendar.gap_edges)) if calendar.gap_edges[k] <= gap)
                counted["gaps"][kind, place] += 1
                in_session += 1
                middle = laws[kind, :place].sum() + laws[kind, place] / 2
                scores.append(ndtri(min(max(middle, 1e-4), 1 - 1e-4)))
        counted["rows"][ceil(log2(in_session))] += 1
        for now in times:
            counted["hours"][24 * now.weekday() + now.hour] += 1
        share = 0 if n_sessions == 1 else 1 + sum(log2(n_sessions) / log2(len(rows)) > SESSION_SHARES)
        counted["sessions"][ceil(log2(len(rows))), share] += 1
        of = 0 if n_sessions == 1 else 1 if n_sessions <= 4 else 2
        start, stop = ((now - first_day) // timedelta(days=7) for now in (times[0], times[-1]))
        counted["starts"][start] += 1
        counted["stops"][of, stop] += 1
        counted["spans"][of, 0 if stop == start else 1 + ceil(log2(stop - start))] += 1
        n = len(scores)
        if n > 1:
            products = [scores[a] * scores[b] for a in range(n) for b in range(n) if a != b]
            weight = min((n - 1) / 20, 1)
            pace += [weight * min(max(np.mean(products), -2.0), 2.0), weight]
    shapes = {
        "sessions": (N_OCTAVES, N_SESSION_CLASSES), "starts": (14,), "stops": (N_PERSISTENCES, 14),
        "spans": (N_PERSISTENCES, N_SPANS), "gaps": (len(laws), len(calendar.gap_edges)), "rows": (N_OCTAVES,),
        "hours": (168,), "pauses": (len(calendar.pause_edges) - 1,),
    }  # fmt: skip
    found = {
        **{name: getattr(sums, name)() for name in ("sessions", "starts", "stops", "spans")},
        **{name: sums.counts(getattr(sums, name), None) for name in ("gaps", "hours", "pauses")},
        "rows": sums.counts(sums.session_rows, None),
    }
    for name, shape in shapes.items():
        expected = np.zeros(shape)
        for cell, count in counted[name].items():
            expected[cell] = count
        assert (found[name].values * found[name].step).reshape(shape) == pytest.approx(expected), name
    total = sums.pace(laws)
    assert total.values * total.step == pytest.approx(pace, abs=60 * 2 / RESOLUTION)


@pytest.mark.oracle
def test_counts_are_scaled_down_learner_by_learner():
    log = classroom(40)
    sums = TimeStatistics(log, Calendar.of(TERM, 14))
    expected = np.zeros(168)
    for i in range(log.n_learners):
        own = TimeStatistics(log.select([i]), sums.calendar)
        hours = np.zeros(168)
        np.add.at(hours, *own.hours[0][1:])
        expected += hours * min(1.0, 5.0 / np.linalg.norm(hours))
    total = sums.counts(sums.hours, 5.0)
    assert total.values * total.step == pytest.approx(expected, abs=168 * 5 / RESOLUTION)
    norms = sums.log_norm(sums.hours)
    assert float((norms.values * norms.step)[0]) == pytest.approx(
        sum(
            np.log(np.sqrt((TimeStatistics(log.select([i]), sums.calendar).hours[0][2] ** 2).sum()))
            / np.log(2**15)
            for i in range(40)
        ),
        abs=1e-3,
    )


# ---- laws


@pytest.mark.oracle
def test_exact_sums_give_exact_laws():
    log = classroom(300)
    model, note = fit_times(log, Exact(detail_shares(log, inf, log.n_learners)), log.n_learners)
    assert note == ""
    sums = TimeStatistics(log, model.calendar)
    for entries, law in ((sums.hours, model.hours), (sums.pauses, model.pauses)):
        total = sums.counts(entries, None).values
        assert law == pytest.approx(total / total.sum(), abs=1e-6)
    gaps = sums.counts(sums.gaps, None).values.reshape(4, -1)[:, :-1]
    assert model.gaps == pytest.approx(gaps / gaps.sum(axis=1, keepdims=True), abs=1e-6)
    starts, stops = sums.starts().values, sums.stops().values.reshape(N_PERSISTENCES, -1)
    learners = stops.sum(axis=1)
    assert np.tensordot(learners / learners.sum(), model.spans.sum(axis=2), 1) == pytest.approx(
        starts / starts.sum(), abs=0.01
    )
    assert model.spans.sum(axis=1) == pytest.approx(stops / learners[:, None], abs=1e-3)


def test_a_learner_stops_no_sooner_than_they_start():
    rng = np.random.default_rng(0)
    calendar = Calendar.of(TERM, 14)
    noisy = [rng.normal(0, 5, n) for n in (14, 3 * 14, 3 * N_SPANS)]
    laws = span_laws(*((values, 5.0) for values in noisy), calendar, 40)
    assert laws.sum(axis=(1, 2)) == pytest.approx(1.0)
    assert (np.tril(laws, -1) == 0).all()
    assert (laws[0] == np.diag(np.diag(laws[0]))).all()
    assert span_class(np.arange(10)).tolist() == [0, 1, 2, 3, 3, 4, 4, 4, 4, 5]


def test_laws_of_noise_alone_are_laws():
    rng = np.random.default_rng(1)
    calendar = Calendar.of(TERM, 14)
    for law in (
        hour_law(rng.normal(0, 9, 168), 9.0),
        session_laws(rng.normal(0, 9, N_OCTAVES * N_SESSION_CLASSES), 9.0),
        gap_laws(rng.normal(0, 9, 4 * len(calendar.gap_edges)), 9.0, calendar, 4)[0],
    ):
        assert law.sum(axis=-1) == pytest.approx(1.0)
        assert (law >= 0).all()


@pytest.mark.oracle
def test_hours_are_closer_than_their_noisy_counts():
    rng = np.random.default_rng(2)
    day, hour = np.array([5, 5, 5, 5, 4, 1, 1.0]), np.exp(-0.5 * ((np.arange(24) - 14) / 3.0) ** 2)
    real = np.outer(day, hour).ravel() * rng.lognormal(0, 0.3, 168)
    real *= 20_000 / real.sum()
    noisy = real + rng.normal(0, 60, 168)
    plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
    off = [np.abs(law - real / real.sum()).sum() / 2 for law in (hour_law(noisy, 60.0), plain)]
    assert off[0] < off[1]


@pytest.mark.oracle
def test_days_and_hours_are_counted_apart_where_learners_are_few():
    """Row by row, and clipped learner by learner; the law is the product of both."""
    log = classroom(60)
    sums = TimeStatistics(log, Calendar.of(TERM, 14))
    expected = np.zeros((log.n_learners, 31))
    for learner, time in zip(log.learner, log.time.astype("datetime64[s]").tolist(), strict=True):
        expected[learner, time.hour] += 1.0
        expected[learner, 24 + time.weekday()] += 0.5
    total = sums.counts(sums.days_and_hours, None)
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    clipped = sums.counts(sums.days_and_hours, 3.0)
    assert clipped.values * clipped.step == pytest.approx(
        (expected * np.minimum(1.0, 3.0 / np.maximum(norms, 1e-9))).sum(axis=0), abs=31 * 3 / RESOLUTION
    )
    hours, days = expected.sum(axis=0)[:24], expected.sum(axis=0)[24:]
    law = hour_law(np.concatenate([hours, days]), 1e-6).reshape(7, 24)
    assert law.sum(axis=0) == pytest.approx(hours / hours.sum(), abs=1e-3)
    assert law.sum(axis=1) == pytest.approx(days / days.sum(), abs=1e-3)
    assert total.values.shape == (31,)


@pytest.mark.parametrize(("n_learners", "n_cells"), [(150, 31), (700, 168)])
def test_how_hours_are_asked_for_follows_from_public_numbers(n_learners, n_cells):
    log = classroom(n_learners)
    noise = seeded_noise(np.random.default_rng(0))
    for same in (log, log.select(np.zeros(n_learners, dtype=np.int64))):
        shares = {"all else": 1.0, **detail_shares(same, inf, n_learners)}
        spending = Spending(1.0, noise, vocabulary=False, shares=shares)
        fit_times(same, spending, n_learners)
        assert len(spending.released["times hours 0"].values) == n_cells


# ---- generators


@pytest.mark.parametrize("generator", [Markov(), Runs(), MarkovDP(8.0), RunsDP(8.0)])
def test_synthetic_logs_have_times_of_the_same_term(generator):
    log = classroom(200, n_actions=8)
    drawn = fitted(generator, log).sample(50, np.random.default_rng(1))
    assert drawn.term == log.term
    assert drawn.has_times
    assert drawn.time.min() >= np.datetime64(log.term.first)
    assert drawn.time.max() < np.datetime64(log.term.last) + np.timedelta64(1, "D")
    assert "time" in drawn.to_polars().columns
    untold = fitted(generator.fresh(), replace(log, term=None)).sample(20, np.random.default_rng(1))
    assert untold.time is None
    assert untold.term is None


@pytest.mark.parametrize("generator", [Markov(), Runs()])
def test_no_baseline_repeats_a_learners_times(generator):
    """Neither a whole sequence nor three times in a row: they are drawn from laws, and no law has a row in it."""
    log = classroom(300, seed=3, n_actions=8)
    generator = fitted(generator, log)
    assert not any(
        isinstance(value, np.ndarray) and len(value) >= log.n_rows
        for value in vars(generator.details_.times).values()
    )
    drawn = generator.sample(600, np.random.default_rng(0))

    def triples(each):
        time = each.time.astype("datetime64[s]").astype(np.int64)
        same = each.learner[2:] == each.learner[:-2]
        return set(zip(time[:-2][same], time[1:-1][same], time[2:][same], strict=True))

    assert not triples(log) & triples(drawn)


@pytest.mark.parametrize("generator", [Markov(), MarkovDP(8.0), RunsDP(8.0)])
@pytest.mark.parametrize("case", ["no rows", "one row each", "equal", "outside", "dates", "far apart"])
@pytest.mark.parametrize("declared", [True, False])
def test_no_log_is_too_odd(generator, case, declared):
    lengths = {"no rows": [0, 0, 3, 1], "one row each": [1] * 12}.get(case, [3, 5, 40])
    action = [np.arange(n) % 2 for n in lengths]
    log = Interactions.from_sequences(action, [each % 2 for each in action], actions=["a", "b"])
    row = np.arange(log.n_rows)
    seconds = {
        "equal": 0 * row, "outside": row * 10**8 - 10**9, "dates": row * 86_400, "far apart": row * 4_000_000,
    }.get(case, row * 1000)  # fmt: skip
    term = replace(TERM if declared else Term(), resolution=86_400.0 if case == "dates" else 1.0)
    time = np.datetime64("2024-09-02", "us") + seconds * np.timedelta64(1_000_000, "us")
    drawn = fitted(generator.fresh(), replace(log.declare(), time=time, term=term)).sample(
        40, np.random.default_rng(0)
    )
    timeline = Timeline(drawn, Calendar.of(drawn.term, 10))
    assert (timeline.time == drawn.time.astype("datetime64[us]").astype(np.int64)).all()


def test_actions_and_outcomes_are_drawn_as_without_times():
    """Details are added to walks; walks of a baseline do not know of them."""
    log = classroom(100, n_actions=5)
    plain, timed = (
        fitted(Markov(), each).sample(30, np.random.default_rng(4)) for each in (replace(log, term=None), log)
    )
    assert (plain.action == timed.action).all()


def test_times_of_four_thousand_learners_are_close():
    """The bars of the project at epsilon 8, on a classroom on which nothing was tuned; `runs-dp` and more seeds are in
    docs/explanation/times.md."""
    log = classroom(4000, seed=11)
    drawn = fitted(MarkovDP(8.0), log).sample(rng=np.random.default_rng(0))
    calendar = Calendar.of(log.term, 1000)
    real, synthetic = (Timeline(each, calendar) for each in (log, drawn))
    assert ks_2samp(real.gap[~real.first], synthetic.gap[~synthetic.first]).statistic <= 0.05
    hours = [
        np.bincount(calendar.hour_of_week(each.time), minlength=168) / len(each.time)
        for each in (real, synthetic)
    ]
    assert np.abs(hours[0] - hours[1]).sum() / 2 <= 0.10
    assert ks_2samp(real.n_sessions, synthetic.n_sessions).statistic <= 0.08
    last = [calendar.bin_of(each.time[each.log.offsets[1:] - 1]) for each in (real, synthetic)]
    active = [1 - np.cumsum(np.bincount(each, minlength=14)) / len(each) for each in last]
    assert np.abs(active[0] - active[1]).max() <= 0.03
