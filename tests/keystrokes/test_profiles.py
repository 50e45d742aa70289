"""Profiles: averages where there are enough, the speed elsewhere; the most common features; who is compared."""

import numpy as np
import pytest

from understudy.errors import DataError
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import Totals, count_latencies
from understudy.keystrokes.profiles import (
    Profiles,
    build_profiles,
    by_sessions,
    by_weeks,
    enough_typed,
    most_common,
)
from understudy.keystrokes.simulate import TypingCourse


def totals(count, total):
    count, total = np.array(count), np.array(total, dtype=float)
    names = tuple("abcdefgh"[: count.shape[1]])
    # The speed is over all digraphs, also those that are no feature.
    return Totals(names, count, total, count.sum(axis=1) + 10, total.sum(axis=1) + 1000.0)


def events(week, session, lengths=None):
    n = len(week)
    return Keystrokes(
        np.zeros(n, dtype=int),
        np.arange(n) * 100_000_000,
        np.zeros(n, dtype=bool),
        np.concatenate([[0], np.cumsum(lengths or [n])]),
        ("a",),
        np.array(session),
        np.array(week),
    )


def test_averages_need_five_occurrences_and_the_speed_fills_in():
    profiles = build_profiles(totals([[5, 4], [0, 10]], [[500.0, 4000.0], [0.0, 2000.0]]))
    speed = [5500 / 19, 3000 / 20]
    np.testing.assert_allclose(profiles.values, [[100, speed[0], speed[0]], [speed[1], 200, speed[1]]])
    assert profiles.missing.tolist() == [[False, True, False], [True, False, False]]
    assert profiles.n_owners == 2
    assert build_profiles(totals([[5, 4]], [[500.0, 4000.0]]), least=1).values[0, 1] == 1000.0


def test_profiles_are_averages_of_a_loop():
    keystrokes, _ = TypingCourse(n_learners=3, n_weeks=2, characters_per_week=300).simulate(
        np.random.default_rng(0)
    )
    counted = count_latencies(keystrokes, keystrokes.learner, 3)
    profiles = build_profiles(counted)
    values = {}
    passed = keystrokes.latencies / 1_000_000
    for r in range(keystrokes.n_rows):
        if keystrokes.follows[r] and 10 <= passed[r] <= 750:
            pair = keystrokes.key[r - 1], keystrokes.key[r]
            values.setdefault((int(keystrokes.learner[r]), pair), []).append(passed[r])
    for i in range(3):
        mine = sorted(np.mean(v) for (owner, _), v in values.items() if owner == i and len(v) >= 5)
        found = np.sort(profiles.values[i, :-1][~profiles.missing[i, :-1]])
        np.testing.assert_allclose(found, mine)
        every = np.concatenate([v for (owner, _), v in values.items() if owner == i])
        assert profiles.values[i, -1] == pytest.approx(every.mean())


def test_somebody_who_typed_nothing_has_no_numbers():
    empty = Totals(("a",), np.zeros((1, 1), int), np.zeros((1, 1)), np.zeros(1, int), np.zeros(1))
    assert np.isnan(build_profiles(empty).values).all()


def test_a_profile_needs_a_speed():
    with pytest.raises(DataError, match="speed"):
        Profiles(("a", "b"), np.zeros((3, 2)), np.zeros((3, 2), dtype=bool))


def test_the_most_common_are_common_in_both_parts():
    first = totals([[9, 5, 7, 0], [9, 5, 7, 0], [0, 5, 7, 90]], np.ones((3, 4)))
    second = totals([[1, 6, 6, 0]] * 3, np.ones((3, 4)))
    assert most_common([first]).tolist() == [0, 2, 1]  # the last is nobody's but one
    assert most_common([first, second]).tolist() == [2, 1, 0]
    assert most_common([first, second], 2).tolist() == [2, 1]
    assert most_common([second], 2).tolist() == [1, 2]  # ties go to the one listed first


def test_the_last_week_is_named_from_those_before():
    keystrokes = events([0, 1, 2, 3, 3, -1], [0] * 6)
    assert by_weeks(keystrokes).known.tolist() == [0, 0, 0, -1, -1, -1]
    assert by_weeks(keystrokes).unknown.tolist() == [-1, -1, -1, 0, 0, -1]
    assert by_weeks(keystrokes, 1).known.tolist() == [-1, -1, 0, -1, -1, -1]
    assert by_weeks(keystrokes, 9).known.tolist() == by_weeks(keystrokes).known.tolist()
    with pytest.raises(DataError, match="two weeks; found 1"):
        by_weeks(events([4, 4], [0, 1]))


def test_later_sessions_are_named_from_earlier_ones():
    keystrokes = events([-1] * 7, [0, 1, 2, 0, 1, 2, 3], [3, 4])
    split = by_sessions(keystrokes)
    assert split.known.tolist() == [0, 0, -1, 1, 1, -1, -1]
    assert split.unknown.tolist() == [-1, -1, 0, -1, -1, 1, 1]
    with pytest.raises(DataError, match="two sessions"):
        by_sessions(events([-1, -1], [0, 0]))


def test_who_typed_little_in_the_first_week_takes_no_part():
    keystrokes = events([0, 0, 0, 1, 0, 1, 1, 1], [0] * 8, [4, 4])
    assert enough_typed(keystrokes, 3).tolist() == [0]
    assert enough_typed(keystrokes, 4, first_week_only=False).tolist() == [0, 1]
    without_weeks = events([-1] * 5, [0] * 5, [4, 1])
    assert enough_typed(without_weeks, 4).tolist() == [0]
