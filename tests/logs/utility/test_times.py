"""Metrics of times against plain definitions; where they do not apply, they do not appear."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ks_2samp

from understudy.logs.simulated.classroom import Classroom
from understudy.logs.utility import Real, measure
from understudy.logs.utility.times import TIME_METRICS

pytestmark = pytest.mark.oracle

NAMES = {metric.name for metric in TIME_METRICS}


@pytest.fixture(scope="module")
def logs():
    rng = np.random.default_rng(3)
    room = Classroom(n_learners=60, n_actions=6, timed=True)
    return tuple(room.simulate(rng) for _ in range(3))


def learners(log):
    """For each learner: (time, action, outcome) of the rows."""
    times = log.time.astype("datetime64[us]").tolist()
    outcomes = [None] * log.n_rows if log.outcome is None else log.outcome.tolist()
    rows = list(zip(times, log.action.tolist(), outcomes, strict=True))
    return [rows[a:b] for a, b in pairwise(log.offsets)]


def gaps(log, kind=None):
    return [
        (after[0] - before[0]).total_seconds()
        for rows in learners(log)
        for before, after in pairwise(rows)
        if kind is None or (before[1] != after[1], before[2]) == kind
    ]


def hours(log):
    counts = np.zeros(168)
    for rows in learners(log):
        for time, _, _ in rows:
            counts[24 * time.weekday() + time.hour] += 1
    return counts / counts.sum()


def sessions(log):
    return [
        1 + sum(after[0] - before[0] > timedelta(minutes=30) for before, after in pairwise(rows))
        for rows in learners(log)
        if rows
    ]


def monday(time):
    return (time - timedelta(days=time.weekday())).date()


def week_difference(first, second, place):
    """The largest difference of the shares of learners whose first or last row lies in a week or before."""
    weeks = [[monday(rows[place][0]) for rows in learners(log)] for log in (first, second)]
    return max(
        abs(np.mean([week <= until for week in weeks[0]]) - np.mean([week <= until for week in weeks[1]]))
        for until in {*weeks[0], *weeks[1]}
    )


def plain(training, synthetic):
    kinds = [(other, outcome) for other in (False, True) for outcome in (0, 1)]
    if training.outcome is None:
        kinds = [(other, None) for other in (False, True)]
    spans = [
        [(rows[-1][0] - rows[0][0]).total_seconds() for rows in learners(log)]
        for log in (training, synthetic)
    ]
    return {
        "gap_ks": ks_2samp(gaps(training), gaps(synthetic)).statistic,
        "gap_kind_ks": max(ks_2samp(gaps(training, kind), gaps(synthetic, kind)).statistic for kind in kinds),
        "hour_tv": np.abs(hours(training) - hours(synthetic)).sum() / 2,
        "session_ks": ks_2samp(sessions(training), sessions(synthetic)).statistic,
        "span_ks": ks_2samp(*spans).statistic,
        "start_gap": week_difference(training, synthetic, 0),
        "dropout_gap": week_difference(training, synthetic, -1),
    }


@pytest.mark.parametrize("judged", [True, False])
def test_every_metric_by_its_definition(logs, judged):
    training, held_out, synthetic = logs if judged else (log.without_outcomes() for log in logs)
    found = measure(Real(training, held_out), synthetic)
    for name, value in plain(training, synthetic).items():
        assert found[name] == pytest.approx(value, abs=1e-9), name
    assert plain(training, synthetic).keys() == NAMES


def test_the_training_log_itself_is_the_best(logs):
    training, held_out, _ = logs
    found = measure(Real(training, held_out), training.select(np.arange(training.n_learners)[::-1]))
    assert {found[name] for name in NAMES} == {0.0}


def test_times_that_are_not_told_are_not_measured(logs):
    training, held_out, synthetic = logs
    for pair in (
        (replace(training, term=None), synthetic),
        (training, replace(synthetic, term=None)),
        (training, replace(synthetic, time=None, term=None)),
    ):
        assert not NAMES & measure(Real(pair[0], held_out), pair[1]).keys()


def stretched(log):
    start = np.datetime64(datetime(2024, 9, 2), "us")
    return replace(log, time=start + (log.time - start) // 3)


def at_night(log):
    return replace(log, time=log.time + np.timedelta64(11, "h"))


def without_pauses(log):
    day = log.time.astype("datetime64[D]")[log.offsets[:-1]]
    place = np.arange(log.n_rows) - np.repeat(log.offsets[:-1], log.lengths)
    return replace(
        log, time=np.repeat(day, log.lengths).astype("datetime64[us]") + place * np.timedelta64(20, "s")
    )


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (stretched, {"gap_ks", "gap_kind_ks", "hour_tv", "span_ks", "dropout_gap"}),
        (at_night, {"hour_tv"}),
        (without_pauses, NAMES - {"start_gap"}),
    ],
)
def test_a_damaged_log_is_worse(logs, damage, names):
    training, held_out, _ = logs
    bad = measure(Real(training, held_out), damage(training))
    for name in names:
        assert bad[name] > 0.02, name


def test_a_log_of_nothing_is_never_better_than_a_wrong_one(logs):
    training, held_out, _ = logs
    empty = measure(Real(training, held_out), training.select(np.empty(0, dtype=int)))
    assert all(empty[name] == pytest.approx(1.0) for name in NAMES)
