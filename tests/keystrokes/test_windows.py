"""Windows: each holds consecutive typing of one owner, and all of it is in some window."""

import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.keystrokes.latencies import Kind, by_size, by_week, count_latencies
from understudy.keystrokes.simulate import TypingCourse


@pytest.fixture(scope="module")
def course():
    return TypingCourse(n_learners=5, n_weeks=3, characters_per_week=400).simulate(np.random.default_rng(0))[
        0
    ]


def test_a_window_per_owner_and_week(course):
    owner = np.where(course.week < 2, course.learner, -1)
    windows = by_week(course, owner)
    assert windows.n_windows == 10
    for r in range(course.n_rows):
        if course.week[r] < 2:
            assert windows.window[r] == 2 * course.learner[r] + course.week[r]
        else:
            assert windows.window[r] == -1
    assert windows.owner.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_weeks_of_windows_add_up_to_the_whole(course):
    windows = by_week(course, course.learner)
    parts = count_latencies(course, windows.window, windows.n_windows, (Kind.key,))
    whole = count_latencies(course, course.learner, 5, (Kind.key,))
    added = np.zeros_like(whole.count)
    np.add.at(added, windows.owner, parts.count)
    np.testing.assert_array_equal(added, whole.count)  # a week begins a session, so no latency is lost


def test_windows_of_a_size_take_the_rest_into_the_last():
    owner = np.array([0, 0, -1, 0, 0, 0, 2, 0, 0, 2, 1, 1, 1, 1])
    windows = by_size(owner, 3)
    assert windows.window.tolist() == [0, 0, -1, 0, 1, 1, 3, 1, 1, 3, 2, 2, 2, 2]
    assert windows.owner.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("n_keys", [2, 7, 100, 10_000])
def test_windows_of_a_size_are_those_of_a_loop(course, n_keys):
    rng = np.random.default_rng(n_keys)
    owner = np.where(rng.random(course.n_rows) < 0.2, -1, course.learner)
    windows = by_size(owner, n_keys)
    expected, owners = np.full(len(owner), -1), []
    for one in range(5):
        rows = np.flatnonzero(owner == one)
        for block in range(max(1, len(rows) // n_keys)):
            last = block == max(1, len(rows) // n_keys) - 1
            expected[rows[block * n_keys : None if last else (block + 1) * n_keys]] = len(owners)
            owners.append(one)
    np.testing.assert_array_equal(windows.window, expected)
    assert windows.owner.tolist() == owners


def test_nobodys_typing_has_no_windows(course):
    nobody = np.full(course.n_rows, -1)
    for windows in (by_week(course, nobody), by_size(nobody, 10)):
        assert windows.n_windows == 0
        assert (windows.window == -1).all()


def test_a_window_of_one_key_has_no_latency():
    with pytest.raises(UsageError, match="windows of 1 keys"):
        by_size(np.zeros(5, dtype=int), 1)
