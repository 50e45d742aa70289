"""What coarser typing still teaches: exact cases and refusals."""

import json

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from understudy.errors import DataError
from understudy.keystrokes.traits.preservation import preserved


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
        ({"original_profiles": np.full((5, 3), np.nan)}, "not numbers"),
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


@pytest.mark.oracle
def test_what_is_preserved_is_what_scipy_finds_with_jackknife_by_hand():
    rng = np.random.default_rng(8)
    n = 40
    profiles = rng.uniform(80, 300, size=(n, 12))
    coarse = 100 * np.floor(profiles / 100 + 0.5)
    speed = rng.uniform(100, 250, n)
    coarse_speed = 50 * np.floor(speed / 50 + 0.5)
    outcome = 0.01 * speed + rng.normal(size=n)

    def figures(rows):
        change = np.abs(coarse[rows].mean(axis=0) - profiles[rows].mean(axis=0))
        return np.array(
            [
                change.mean(),
                (change / profiles[rows].mean(axis=0)).mean(),
                np.corrcoef(coarse_speed[rows], outcome[rows])[0, 1]
                - np.corrcoef(speed[rows], outcome[rows])[0, 1],
                kendalltau(speed[rows], coarse_speed[rows]).statistic,
                spearmanr(speed[rows], coarse_speed[rows]).statistic,
            ]
        )

    result = preserved(profiles, coarse, speed, coarse_speed, outcome)
    ours = [
        result.digraph_error,
        result.digraph_error_relative,
        result.link_change,
        result.kendall,
        result.spearman,
    ]
    everybody = np.arange(n)
    assert [one.value for one in ours] == pytest.approx(figures(everybody))
    without = np.array([figures(np.delete(everybody, i)) for i in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    assert [one.value - one.low for one in ours] == pytest.approx(1.959964 * error, rel=1e-5)
    link = np.arctanh([np.corrcoef(np.delete(speed, i), np.delete(outcome, i))[0, 1] for i in range(n)])
    half = 1.959964 * np.sqrt((n - 1) / n * ((link - link.mean()) ** 2).sum())
    expected = np.tanh(np.arctanh(np.corrcoef(speed, outcome)[0, 1]) + np.array([-half, half]))
    assert [result.link_original.low, result.link_original.high] == pytest.approx(expected, rel=1e-5)
