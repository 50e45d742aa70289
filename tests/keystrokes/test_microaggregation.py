"""Groups of similar profiles: sizes and means by hand, the algorithm against one written without numpy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import DataError
from understudy.keystrokes.microaggregation import Microaggregation, mdav


def mdav_by_hand(points, k):
    """MDAV on lists: returns the groups as sets of positions."""
    left, groups = list(range(len(points))), []

    def mean(members):
        return [math.fsum(points[i][j] for i in members) / len(members) for j in range(len(points[0]))]

    def farthest(place):
        return max(left, key=lambda i: (math.dist(points[i], place), -i))

    def take(centre):
        near = sorted(left, key=lambda i: (i != centre, math.dist(points[i], points[centre]), i))[:k]
        groups.append(set(near))
        for i in near:
            left.remove(i)

    while len(left) >= 3 * k:
        first = farthest(mean(left))
        take(first)
        take(farthest(points[first]))
    if len(left) >= 2 * k:
        take(farthest(mean(left)))
    groups.append(set(left))
    return groups


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (5, 2), (9, 3), (10, 3), (31, 5), (40, 7), (41, 2)])
def test_groups_are_those_of_the_algorithm(n, k):
    points = np.random.default_rng([n, k]).normal(size=(n, 3))
    group = mdav(points, k)
    found = [set(np.flatnonzero(group == g).tolist()) for g in range(group.max() + 1)]
    assert found == mdav_by_hand(points.tolist(), k)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(0, 30), st.integers(1, 4), st.integers(0, 10**6))
def test_every_profile_is_shared_by_k_and_groups_are_no_larger_than_needed(k, extra, n_columns, seed):
    # Few distinct values, so that many points are equal.
    values = np.random.default_rng(seed).integers(0, 4, (k + extra, n_columns)).astype(float)
    sizes = np.bincount(mdav(values, k))
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1
    coarse = Microaggregation(k).averages(values)
    assert np.unique(coarse, axis=0, return_counts=True)[1].min() >= k
    assert coarse.mean(axis=0) == pytest.approx(values.mean(axis=0))


def test_clear_clusters_are_found_whatever_the_unit_of_a_column():
    rng = np.random.default_rng(2)
    where = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], 4, axis=0)
    values = (where + rng.normal(0, 0.01, where.shape)) * [1.0, 1000.0]
    group = mdav(where, 4)
    assert [len(set(group[i : i + 4])) for i in (0, 4, 8)] == [1, 1, 1]
    coarse = Microaggregation(4).averages(values)
    for i in (0, 4, 8):
        assert coarse[i : i + 4] == pytest.approx(np.tile(values[i : i + 4].mean(axis=0), (4, 1)))


@pytest.mark.parametrize("n", [0, 4])
def test_too_few_learners(n):
    with pytest.raises(DataError, match=f"there are {n}"):
        Microaggregation(5).averages(np.ones((n, 3)))


def test_a_learner_who_typed_nothing():
    values = np.ones((6, 2))
    values[3, 1] = np.nan
    with pytest.raises(DataError, match="no value"):
        Microaggregation(2).averages(values)
