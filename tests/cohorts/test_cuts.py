"""Private cuts: the promised sensitivity and probabilities, and cuts that are of use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.cohorts import cuts
from understudy.cohorts.cuts import cut_grid, cuts_guarantee, private_cuts, rank_error
from understudy.core.privacy.noise import seeded_noise as seeded

scores = st.lists(st.floats(-10, 110), min_size=1, max_size=30)


def utilities(values, n_groups, monkeypatch):
    """The scores with which the exponential mechanism is called, and its share of epsilon."""
    calls = []

    def record(utility, *, sensitivity, epsilon, noise):
        calls.append((np.array(utility), sensitivity, epsilon))
        return int(np.argmax(utility))

    monkeypatch.setattr(cuts, "exponential", record)
    private_cuts(np.array(values), (0.0, 100.0), n_groups, epsilon=1.0, noise=None)
    return calls


@settings(max_examples=200, deadline=None, derandomize=True)
@given(values=scores, other=st.floats(-10, 110), place=st.integers(0, 29), n_groups=st.integers(2, 5))
def test_one_replaced_learner_moves_no_utility_by_more_than_one(values, other, place, n_groups):
    neighbour = list(values)
    neighbour[place % len(values)] = other
    with pytest.MonkeyPatch.context() as patch:
        one, two = utilities(values, n_groups, patch), utilities(neighbour, n_groups, patch)
    assert len(one) == n_groups - 1
    assert sum(epsilon for _, _, epsilon in one) == pytest.approx(1.0)
    for (before, sensitivity, _), (after, _, _) in zip(one, two, strict=True):
        assert np.abs(before - after).max() <= sensitivity + 1e-9


@settings(max_examples=100, deadline=None, derandomize=True)
@given(values=scores, other=st.floats(-10, 110), n_groups=st.integers(2, 5))
def test_a_learner_without_a_score_moves_no_utility_by_more_than_one(values, other, n_groups):
    """Then the number of scores is another one, and nothing takes it for public."""
    with pytest.MonkeyPatch.context() as patch:
        one, two = utilities(values, n_groups, patch), utilities([*values, other], n_groups, patch)
    for (before, sensitivity, _), (after, _, _) in zip(one, two, strict=True):
        assert np.abs(before - after).max() <= sensitivity + 1e-9


@settings(max_examples=100, deadline=None, derandomize=True)
@given(values=scores, n_groups=st.integers(2, 6), epsilon=st.floats(0.01, 50), seed=st.integers(0, 99))
def test_cuts_grow_and_lie_on_the_grid(values, n_groups, epsilon, seed):
    noise = seeded(np.random.default_rng(seed))
    cuts = private_cuts(np.array(values), (0.0, 100.0), n_groups, epsilon=epsilon, noise=noise)
    assert len(cuts) == n_groups - 1
    assert list(cuts) == sorted(set(cuts))
    assert set(cuts) <= set(cut_grid(0.0, 100.0).tolist())


def test_cuts_at_the_ends_of_the_grid_are_moved_apart(monkeypatch):
    for place in (0, len(cut_grid(0, 1)) - 1):
        monkeypatch.setattr(cuts, "exponential", lambda *_, place=place, **__: place)
        found = private_cuts(np.ones(3), (0.0, 100.0), 4, epsilon=1.0, noise=None)
        assert list(found) == sorted(set(found))


def test_groups_are_even_up_to_the_promised_error():
    """At most 5 in 100 runs may be beyond the bound; more than 15 of 200 have a chance below 1 %."""
    rng = np.random.default_rng(3)
    values = rng.normal(55, 15, 400)
    beyond = 0
    for seed in range(200):
        cuts = private_cuts(values, (0, 100), 3, epsilon=2.0, noise=seeded(np.random.default_rng(seed)))
        ranks = np.searchsorted(np.sort(values), cuts)
        grid_ranks = np.searchsorted(np.sort(values), cut_grid(0, 100))
        best = [np.abs(grid_ranks - 400 * g / 3).min() for g in (1, 2)]
        off = np.abs(ranks - 400 * np.array([1, 2]) / 3) - best
        beyond += bool((off > rank_error(3, 2.0)).any())
    assert beyond <= 15


def test_the_guarantee_is_the_stated_epsilon():
    assert cuts_guarantee(0.5).epsilon == 0.5
    assert cuts_guarantee(0.5).delta == 0
