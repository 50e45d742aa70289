"""Judging attacks on typing: ties, chance, intervals, the strongest, groups of equal profiles."""

import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.keystrokes.attacks.identification import (
    hit_chances,
    identification,
    smallest_group,
    strongest,
)
from understudy.keystrokes.attacks.profiles import euclidean


def test_equal_profiles_are_found_exactly_as_often_as_by_chance():
    for n, k in [(153, 10), (139, 10), (7, 1), (20, 5)]:
        found = identification("euclidean", euclidean(np.full((n, 4), 300.0), np.full((n, 4), 300.0)), k)
        assert found.rate == pytest.approx(k / n)
        assert found.chance == pytest.approx(k / n)
        assert found.low < k / n < found.high


def test_a_planted_identity_is_found():
    values = np.arange(30.0)[:, None]
    found = identification("euclidean", euclidean(values, values), 1)
    assert (found.rate, found.high, found.n_learners) == (1.0, 1.0, 30)
    assert found.low == pytest.approx(0.025 ** (1 / 30))
    assert not found.at_chance


def test_ties_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    known, unknown = rng.integers(3, size=(2, 25, 2)).astype(float)
    order = rng.permutation(25)
    straight = identification("euclidean", euclidean(known, unknown), 5)
    assert identification("euclidean", euclidean(known[order], unknown[order]), 5) == straight


def test_differences_of_rounding_are_ties():
    distances = np.array([[0.3, 0.1 + 0.2], [0.1 + 0.2, 0.3]])
    assert hit_chances(distances, 1).tolist() == [0.5, 0.5]


def test_more_guesses_than_people_find_everybody():
    found = identification("a", np.random.default_rng(0).random((4, 4)), 10)
    assert (found.rate, found.chance) == (1.0, 1.0)


def test_who_cannot_be_measured_is_guessed_last():
    distances = np.array([[np.nan, np.nan, np.nan], [0.5, np.inf, 0.1], [0.5, np.nan, 0.1]])
    assert hit_chances(distances, 1).tolist() == [pytest.approx(1 / 3), 0.0, 1.0]
    assert hit_chances(distances, 3).tolist() == [1.0, 1.0, 1.0]
    assert hit_chances(np.array([[np.nan, -5.0], [-5.0, np.nan]]), 1).tolist() == [0.0, 0.0]


def test_nobody_to_identify_is_refused():
    with pytest.raises(UsageError, match="no learner to identify"):
        identification("a", np.empty((0, 3)), 1, np.empty(0, dtype=int))


def test_a_person_elsewhere_in_the_list_is_the_right_one():
    distances = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    found = identification("a", distances, 1, np.array([0, 2]))
    assert (found.rate, found.chance, found.n_learners) == (1.0, pytest.approx(1 / 3), 2)


def test_the_strongest_attack_has_the_rate_of_the_best_and_bounds_for_all():
    rng = np.random.default_rng(0)
    distances = {name: rng.random((40, 40)) for name in "abc"}
    np.fill_diagonal(distances["b"][:20, :20], 0.0)
    estimates = [identification(name, part, 3) for name, part in distances.items()]
    best = strongest(estimates)
    assert best.attack == "b"
    assert best.rate == estimates[1].rate
    assert best.high == max(one.high for one in estimates)
    assert best.low < estimates[1].low  # the price of having picked it
    assert strongest(estimates[:1]) == estimates[0]


def test_only_comparable_attacks_have_a_strongest():
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match="different"):
        strongest([identification("a", rng.random((4, 4)), 1), identification("a", rng.random((5, 5)), 1)])
    with pytest.raises(UsageError, match="no attacks"):
        strongest([])


def test_an_estimate_is_at_chance_only_when_twice_chance_is_excluded():
    def equal(n):
        return identification("a", np.zeros((n, n)), 10)

    assert equal(153).at_chance
    assert not equal(15).at_chance or equal(15).chance > 0.5
    assert equal(153).to_json()["at_chance"] is True


def test_groups_of_equal_profiles():
    values = np.array([[300.0, 600], [300, 600], [300, 300], [600, 600], [600, 600], [600, 600]])
    assert smallest_group(values) == (1, pytest.approx(1 / 6))
    assert smallest_group(values[[0, 1, 3, 4, 5]]) == (2, 0.0)
    assert smallest_group(np.zeros((7, 3))) == (7, 0.0)
    assert smallest_group(np.array([[0.1 + 0.2], [0.3]])) == (2, 0.0)
    with pytest.raises(UsageError):
        smallest_group(np.empty((0, 3)))
