"""Minutes per window and week against a slow and obvious count, minute by minute, with Python's own calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.cohorts.building.sessions import MINUTE, Rule, Term, find_sessions, minutes_per_week
from understudy.cohorts.schema import Feature, Schema

pytestmark = pytest.mark.oracle

SPRING = Schema(n_weeks=3)
NIGHTS = Schema(
    features=(
        Feature("night", 600.0, hours=(22, 5)),
        Feature("second", 600.0, hours=(2, 3)),
        Feature("all", 1e5, hours=(0, 24)),
    ),
    n_weeks=3,
)
ZONES = (None, "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia")
# Changes of the clock (Berlin, New York, Lord Howe), midnights and Mondays of two terms.
TURNS = {
    date(2024, 3, 11): (
        "2024-03-31T01:00",
        "2024-03-31T00:00",
        "2024-03-18T00:00",
        "2024-03-11T04:00",
        "2024-04-01T04:00",
    ),
    date(2024, 10, 14): (
        "2024-10-27T01:00",
        "2024-10-26T22:00",
        "2024-11-03T06:00",
        "2024-10-21T00:00",
        "2024-11-04T11:00",
    ),
    date(2024, 4, 1): (
        "2024-04-06T15:00",
        "2024-04-06T13:00",
        "2024-03-31T22:00",
        "2024-04-07T22:00",
        "2024-04-21T23:30",
    ),
}


def count_minutes(events, schema, start, zone, gap, credit):
    """Every minute of every session goes to the window and week that the clock shows at its beginning."""
    place = UTC if zone is None else ZoneInfo(zone)
    minutes = np.zeros((schema.n_features, schema.n_weeks))
    sessions = []
    for moment in sorted(set(events)):
        if sessions and moment - sessions[-1][1] <= gap:
            sessions[-1][1] = moment
        else:
            sessions.append([moment, moment])
    for first, last in sessions:
        for minute in range(first, last + credit):
            clock = datetime.fromtimestamp(minute * 60, place)
            week = (clock.date() - start).days // 7
            if not 0 <= week < schema.n_weeks:
                continue
            for row, feature in enumerate(schema.features):
                begin, end = feature.hours
                inside = begin <= clock.hour < end if begin < end else clock.hour >= begin or clock.hour < end
                minutes[row, week] += inside
    return minutes


@st.composite
def activity(draw):
    start = draw(st.sampled_from(sorted(TURNS)))
    learners = []
    for _ in range(draw(st.integers(1, 3))):
        events = []
        for _ in range(draw(st.integers(0, 4))):
            turn = datetime.fromisoformat(draw(st.sampled_from(TURNS[start]))).replace(tzinfo=UTC)
            near = draw(st.lists(st.integers(-240, 240), min_size=1, max_size=10))
            events += [int(turn.timestamp()) // 60 + offset for offset in near]
        learners.append(events)
    return start, learners


@settings(max_examples=250, deadline=None, derandomize=True)
@given(
    made=activity(),
    zone=st.sampled_from(ZONES),
    schema=st.sampled_from([SPRING, NIGHTS]),
    rule=st.tuples(st.integers(1, 240), st.integers(0, 240)).filter(lambda pair: pair[1] <= pair[0]),
    seed=st.integers(0, 99),
)
@example(made=(date(2024, 3, 11), [[]]), zone="Europe/Berlin", schema=SPRING, rule=(30, 1), seed=0)
def test_minutes_are_those_of_the_slow_count(made, zone, schema, rule, seed):
    start, learners = made
    gap, credit = rule
    who = np.array([n for n, events in enumerate(learners) for _ in events], dtype=np.int64)
    when = np.array([moment for events in learners for moment in events], dtype=np.int64) * MINUTE
    order = np.random.default_rng(seed).permutation(len(who))  # the order of a file means nothing
    term = Term(start, schema.n_weeks, zone)
    sessions = find_sessions(who[order], when[order], Rule(gap, credit))
    found = minutes_per_week(sessions, len(learners), schema, term)
    expected = [count_minutes(events, schema, start, zone, gap, credit) for events in learners]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("first", "last", "overnight"),
    [
        # 00:30 to 04:30 on the clock, of which the change takes or adds an hour.
        ("2024-03-30T23:30", "2024-03-31T02:30", 3 * 60),
        ("2024-10-26T22:30", "2024-10-27T03:30", 5 * 60),
    ],
)
def test_a_night_in_which_the_clock_changes_counts_real_minutes(first, last, overnight):
    begin, end = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (first, last))
    moments = np.arange(int(begin.timestamp()), int(end.timestamp()) + 1, 600) * 1_000_000
    sessions = find_sessions(np.zeros(len(moments), dtype=np.int64), moments, Rule(30, 0))
    assert sessions.n_sessions == 1
    start = begin.date() - timedelta(days=begin.weekday())
    values = minutes_per_week(sessions, 1, SPRING, Term(start, 3, "Europe/Berlin"))
    assert values[0, :, 0].tolist() == [0, 0, 0, overnight]


def test_a_session_is_split_at_the_second():
    when = np.array([datetime(2024, 3, 17, 23, 59, 50, tzinfo=UTC).timestamp() * 1e6]).astype(np.int64)
    sessions = find_sessions(np.zeros(1, dtype=np.int64), when, Rule(30, 1))
    values = minutes_per_week(sessions, 1, SPRING, Term(date(2024, 3, 11), 3))
    assert values[0, 2, 0] == pytest.approx(10 / 60)
    assert values[0, 3, 1] == pytest.approx(50 / 60)
    assert values.sum() == pytest.approx(1)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    minutes=st.lists(st.integers(-400, 400), min_size=1, max_size=20),
    zone=st.sampled_from(ZONES[1:]),
    start=st.sampled_from(sorted(TURNS)),
)
def test_clock_times_become_instants_as_python_says(minutes, zone, start):
    turn = datetime.fromisoformat(TURNS[start][0])
    local = [turn + timedelta(minutes=minute) for minute in minutes]
    found, n_unclear = Term(start, 3, zone).instants(pl.Series(local, dtype=pl.Datetime("us")))
    # fold=0: the first of two hours; in a gap, the offset before the change.
    expected = [
        moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None) for moment in local
    ]
    assert found.to_list() == expected
    folds = [
        moment.replace(tzinfo=ZoneInfo(zone)).utcoffset()
        != moment.replace(tzinfo=ZoneInfo(zone), fold=1).utcoffset()
        for moment in local
    ]
    assert n_unclear == sum(folds)


def test_events_in_the_term_are_those_on_its_days():
    term = Term(date(2024, 3, 11), 3, "Europe/Berlin")
    place = ZoneInfo("Europe/Berlin")
    hours = [datetime(2024, 3, 10, tzinfo=UTC) + timedelta(minutes=15 * n) for n in range(24 * 4 * 25)]
    times = np.array([int(hour.timestamp()) * 1_000_000 for hour in hours])
    expected = [date(2024, 3, 11) <= hour.astimezone(place).date() <= date(2024, 3, 31) for hour in hours]
    assert term.contains(times).tolist() == expected
    assert term.contains(np.array([0, 2**60])).tolist() == [False, False]
