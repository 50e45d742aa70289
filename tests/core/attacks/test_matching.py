"""Regrets of matchings against all permutations; matching names more people, and nobody where there is nothing."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from understudy.core.attacks.matching import regrets
from understudy.keystrokes.attacks.identification import hit_chances, matched

pytestmark = pytest.mark.oracle


def by_all_matchings(costs):
    """For each record and person: the least cost of a matching with this pair in it, less the least of any."""
    n_records, n_people = costs.shape
    least = np.full(costs.shape, np.inf)
    for people in itertools.permutations(range(n_people), n_records):
        cost = costs[range(n_records), people].sum()
        for record, person in enumerate(people):
            least[record, person] = min(least[record, person], cost)
    return least - least.min()


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (6, 6), (3, 5), (1, 4)])
def test_regrets_are_those_of_all_matchings(shape):
    rng = np.random.default_rng(0)
    for _ in range(10):
        np.testing.assert_allclose(regrets(c := rng.normal(size=shape)), by_all_matchings(c), atol=1e-12)
        # Few different costs: many matchings are equally good, and all of their pairs have regret 0.
        np.testing.assert_allclose(
            regrets(c := rng.integers(0, 3, size=shape) * 1.0), by_all_matchings(c), atol=1e-12
        )


def test_regrets_do_not_depend_on_the_order_of_records_or_people():
    """The right person stands in the same place on both sides of an experiment: that must not help."""
    rng = np.random.default_rng(1)
    costs = rng.integers(0, 4, size=(20, 20)) * 1.0
    rows, columns = rng.permutation(20), rng.permutation(20)
    np.testing.assert_allclose(regrets(costs[rows][:, columns]), regrets(costs)[rows][:, columns], atol=1e-12)


def people(rng, n, leaning):
    """Distances between two noisy views of n people."""
    own = leaning * rng.normal(size=(n, 4))
    first, second = own + rng.normal(size=own.shape), own + rng.normal(size=own.shape)
    return cdist(second, first, "sqeuclidean")


def test_matching_names_more_people_and_nobody_where_there_is_nothing():
    """Thirty classes of 30: standard errors of about 0.02 (matched), 0.006 (nothing to find)."""
    rng = np.random.default_rng(2)
    single, joint, nothing = [], [], []
    for _ in range(30):
        distances = people(rng, 30, 4.0)
        single.append(hit_chances(distances, 1).mean())
        joint.append(hit_chances(matched(distances), 1).mean())
        nothing.append(hit_chances(matched(people(rng, 30, 0.0)), 1).mean())
    assert np.mean(joint) > np.mean(single) + 0.05
    assert np.mean(nothing) == pytest.approx(1 / 30, abs=4 * 0.006)


def test_equal_profiles_are_guessed():
    assert hit_chances(matched(np.zeros((8, 8))), 2) == pytest.approx(2 / 8)


def test_an_attack_with_nothing_to_go_by_for_somebody_still_matches_the_others():
    distances = 1.0 - np.eye(5)
    distances[4] = np.nan
    assert hit_chances(matched(distances), 1) == pytest.approx(1.0)


def test_more_records_than_people_cannot_be_matched():
    with pytest.raises(ValueError, match="more records"):
        regrets(np.zeros((3, 2)))
