"""Equation 6 at its edges: extreme noise, tiny penalties, one learner, one item, nothing answered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from understudy.exams.estimators.joint import estimate_ability, fit_joint


def derivatives(fit, right_by_learner, right_by_item, penalty, mask=True):
    chance = expit(fit.ability[:, None] - fit.difficulty) * mask
    by_learner = chance.sum(axis=1) - right_by_learner + penalty * fit.ability
    by_item = right_by_item - chance.sum(axis=0) + penalty * fit.difficulty
    return np.concatenate([by_learner, by_item])


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_learners=st.integers(1, 50),
    n_items=st.integers(1, 25),
    penalty=st.floats(-6, 1),
    noise=st.floats(-2, 6),
    missing=st.sampled_from([0.0, 0.3, 0.95]),
)
def test_the_optimum_is_found_under_any_noise(seed, n_learners, n_items, penalty, noise, missing):
    rng = np.random.default_rng(seed)
    penalty, scale = 10.0**penalty, 10.0**noise
    right_by_learner = rng.uniform(0, n_items, n_learners) + rng.laplace(0, scale, n_learners)
    right_by_item = rng.uniform(0, n_learners, n_items) + rng.laplace(0, scale, n_items)
    mask = rng.random((n_learners, n_items)) >= missing
    fit = fit_joint(right_by_learner, right_by_item, penalty=penalty, mask=mask)
    largest = np.abs(derivatives(fit, right_by_learner, right_by_item, penalty, mask)).max()
    size = n_learners + n_items + np.abs(right_by_learner).max() + np.abs(right_by_item).max()
    # Rounding of an ability of size a moves a chance by at most a/4 times 1e-16.
    assert largest <= 1e-9 * size + 1e-13 * np.abs(fit.ability).max() * (n_learners + n_items)


def test_learners_with_the_same_score_have_the_same_ability():
    fit = fit_joint([1, 2, 1, 2, 0], [3, 2, 1])
    assert fit.ability[0] == fit.ability[2]
    assert fit.ability[1] == fit.ability[3]
    assert fit.ability[4] < fit.ability[0] < fit.ability[1]


def test_a_full_mask_is_no_mask():
    rng = np.random.default_rng(0)
    correct = rng.integers(0, 2, (30, 8))
    plain = fit_joint(correct.sum(1), correct.sum(0))
    masked = fit_joint(correct.sum(1), correct.sum(0), mask=np.ones(correct.shape, dtype=bool))
    np.testing.assert_allclose(plain.ability, masked.ability, atol=1e-9)
    np.testing.assert_allclose(plain.difficulty, masked.difficulty, atol=1e-9)


def test_everybody_right_and_everybody_wrong_mirror_each_other():
    right = fit_joint([3, 3], [2, 2, 2])
    wrong = fit_joint([0, 0], [0, 0, 0])
    np.testing.assert_allclose(right.ability, -wrong.ability, atol=1e-9)
    np.testing.assert_allclose(right.difficulty, -wrong.difficulty, atol=1e-9)
    assert (right.ability > 0).all()
    assert (right.difficulty < 0).all()


def test_one_learner_and_one_item():
    fit = fit_joint([1], [1], penalty=0.01)
    np.testing.assert_allclose(derivatives(fit, [1], [1], 0.01), 0, atol=1e-8)
    assert fit.ability[0] == pytest.approx(-fit.difficulty[0])


def test_an_item_nobody_answered_has_the_difficulty_of_its_tilt():
    mask = np.array([[True, False], [True, False]])
    fit = fit_joint([1, 0], [1, 0], tilt=[0.0, 0.5], mask=mask, penalty=0.01)
    assert fit.difficulty[1] == pytest.approx(-0.5 / 0.01)


@pytest.mark.parametrize("penalty", [0.0, -1.0, float("nan")])
def test_without_a_penalty_there_is_no_fit(penalty):
    with pytest.raises(ValueError, match="penalty"):
        fit_joint([1], [1], penalty=penalty)


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite"):
        fit_joint([np.inf], [1])


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="mask"):
        fit_joint([1, 2], [1, 1, 1], mask=np.ones((3, 2), dtype=bool))


# Abilities given difficulties


def test_abilities_rise_with_the_score_and_are_finite_with_a_penalty():
    rows = np.tri(6, 5, -1, dtype=np.int8)
    ability = estimate_ability(rows, [-2.0, -1.0, 0.0, 1.0, 2.0], penalty=0.01)
    assert np.isfinite(ability).all()
    assert (np.diff(ability) > 0).all()
    np.testing.assert_allclose(ability, -ability[::-1], atol=1e-9)


def test_without_a_penalty_the_score_is_met_exactly():
    rows = np.array(
        [[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, -1, 0, -1], [-1, -1, -1, -1]], dtype=np.int8
    )
    difficulty = np.array([-40.0, 3.0, 0.5, 60.0])
    ability = estimate_ability(rows, difficulty, penalty=0.0)
    assert expit(ability[0] - difficulty).sum() == pytest.approx(2)
    assert expit(ability[3] - difficulty[[0, 2]]).sum() == pytest.approx(1)
    assert list(ability[[1, 2, 4]]) == [-np.inf, np.inf, 0.0]


def test_items_without_a_finite_difficulty_say_nothing():
    rows = np.array([[1, 0, 1, 0], [0, 1, 1, 1]], dtype=np.int8)
    known = estimate_ability(rows[:, 1:3], [0.3, -0.4])
    np.testing.assert_array_equal(estimate_ability(rows, [-np.inf, 0.3, -0.4, np.nan]), known)


def test_one_row_is_one_learner():
    assert estimate_ability(np.array([1, 0], dtype=np.int8), [0.0, 0.0]) == pytest.approx([0.0])


def test_extreme_difficulties_are_no_obstacle():
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 2, (200, 12)).astype(np.int8)
    difficulty = rng.normal(0, 300, 12)
    for penalty in (1e-8, 0.01, 1.0):
        ability = estimate_ability(rows, difficulty, penalty=penalty)
        chance = expit(ability[:, None] - difficulty) * (rows >= 0)
        missed = chance.sum(axis=1) - (rows > 0).sum(axis=1) + penalty * ability
        np.testing.assert_allclose(missed, 0, atol=1e-9)
