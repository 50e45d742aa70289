"""What coarser typing still teaches: exact cases and refusals."""

import json

import numpy as np
import pytest

from understudy.errors import DataError
from understudy.keystrokes.traits import preserved


@pytest.fixture
def typing():
    rng = np.random.default_rng(1)
    speed = rng.uniform(100.0, 300.0, 30)
    return speed[:, None] * rng.uniform(0.8, 1.2, (30, 6)), speed, -speed + rng.normal(0, 20, 30)


def test_what_is_not_changed_is_kept_whole(typing):
    profiles, speed, outcome = typing
    result = preserved(profiles, profiles, speed, speed, outcome)
    assert (result.digraph_error.value, result.digraph_error.high) == (0.0, 0.0)
    assert result.kendall.value == result.kendall.low == 1.0
    assert result.spearman.value == pytest.approx(1.0)
    assert result.link_original == result.link_coarse
    assert result.link_change.value == result.link_change.high == 0.0
    assert result.tied_pairs == 0.0


def test_a_shift_is_an_error_of_its_size_and_keeps_the_order(typing):
    profiles, speed, outcome = typing
    result = preserved(profiles, profiles + 150.0, speed, speed + 150.0, outcome)
    assert result.digraph_error.value == pytest.approx(150.0)
    assert result.digraph_error.high == pytest.approx(150.0)
    assert result.digraph_error_relative.value == pytest.approx((150.0 / profiles.mean(axis=0)).mean())
    assert result.kendall.value == 1.0
    assert result.link_change.value == pytest.approx(0.0)


def test_one_speed_for_all_keeps_no_order_and_no_link(typing):
    profiles, speed, outcome = typing
    result = preserved(profiles, np.full_like(profiles, 300.0), speed, np.full(30, 300.0), outcome)
    assert result.tied_pairs == 1.0
    assert np.isfinite(result.link_original.value)
    read = json.loads(json.dumps(result.to_json()))
    for name in ("link_coarse", "link_change", "kendall", "spearman"):
        assert read[name] == {"value": None, "low": None, "high": None}


def test_missing_outcomes_count_for_the_rest_only(typing):
    profiles, speed, outcome = typing
    some = outcome.copy()
    some[:5] = np.nan
    result = preserved(profiles, profiles, speed, speed, some)
    assert (result.n_learners, result.n_with_outcome) == (30, 25)
    assert result.link_original.value == pytest.approx(np.corrcoef(speed[5:], outcome[5:])[0, 1])
    none = preserved(profiles, profiles, speed, speed)
    assert none.link_original is None
    assert none.to_json()["link_change"] is None


def test_many_learners_are_compared_in_blocks():
    rng = np.random.default_rng(2)
    speed = rng.uniform(100, 300, 1201)
    coarse = 50 * np.floor(speed / 50)
    whole = preserved(speed[:, None], coarse[:, None], speed, coarse)
    assert 0.8 < whole.kendall.low < whole.kendall.value < whole.kendall.high < 1.0
    assert whole.kendall.value == pytest.approx(np.sqrt(1 - whole.tied_pairs))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coarse_profiles": np.ones((4, 3))}, "cannot be compared"),
        ({"speed_coarse": np.ones(4)}, "4 speeds after for 5 learners"),
        ({"outcome": np.ones(6)}, "6 outcomes for 5 learners"),
        ({"outcome": [1.0, 2.0, np.nan, np.nan, np.nan]}, "learners who have one; found 2"),
        ({"original_profiles": np.full((5, 3), np.nan)}, "no numbers"),
    ],
)
def test_bad_data_is_refused(change, message):
    given = {
        "original_profiles": np.ones((5, 3)),
        "coarse_profiles": np.ones((5, 3)),
        "speed_original": np.arange(5.0),
        "speed_coarse": np.arange(5.0),
        "outcome": None,
        **change,
    }
    with pytest.raises(DataError, match=message):
        preserved(**given)


def test_two_learners_are_too_few():
    with pytest.raises(DataError, match="needs 3 learners; found 2"):
        preserved(np.ones((2, 1)), np.ones((2, 1)), [1, 2], [1, 2])
