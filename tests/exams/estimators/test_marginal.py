"""Marginal estimates at the edges: unbounded items, no spread, one learner, nothing answered."""

import numpy as np
import pytest

from understudy.exams.estimators.marginal import LARGEST_SD, SMALLEST_SD, fit_marginal
from understudy.exams.simulate import Exam

INF = np.inf


def fit(rows, **options):
    return fit_marginal(np.array(rows, dtype=np.int8), **options)


def test_truth_is_recovered_with_and_without_missing_responses():
    for missing in (0.0, 0.4):
        exam = Exam(20_000, 12, ability_sd=1.4, missing=missing)
        sitting = exam.simulate(np.random.default_rng(3))
        found = fit_marginal(sitting.responses.correct, sd=None)
        assert abs(found.sd - 1.4) < 4 * found.sd_error
        # The mean ability of the sample is not 0 exactly; that shift is in the standard errors.
        assert np.abs((found.difficulty - sitting.difficulty) / found.standard_error).max() < 4.5


def test_items_all_right_or_all_wrong_are_unbounded_and_the_others_are_as_without_them():
    rows = Exam(40, 4, difficulty_sd=1.0).simulate(np.random.default_rng(0)).responses.correct
    around = np.column_stack([np.ones(40), rows, np.zeros(40), -np.ones(40)])
    found = fit(around)
    np.testing.assert_array_equal(found.difficulty[[0, 5, 6]], [-INF, INF, np.nan])
    np.testing.assert_array_equal(found.standard_error[[0, 5, 6]], [INF, INF, np.nan])
    np.testing.assert_allclose(found.difficulty[1:5], fit(rows).difficulty, atol=1e-9)


def test_one_item_has_the_share_of_right_answers():
    found = fit([[1]] * 30 + [[0]] * 10)
    t = np.linspace(-9, 9, 4001)
    density = np.exp(-(t**2) / 2) / np.exp(-(t**2) / 2).sum()
    assert density @ (1 / (1 + np.exp(found.difficulty[0] - t))) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 0, 1]], [-INF, INF, -INF]),
        ([[1, 1]] * 4, [-INF, -INF]),
        ([[0, 0]] * 4, [INF, INF]),
        ([[-1, -1]], [np.nan, np.nan]),
    ],
    ids=["one learner", "all right", "all wrong", "nothing answered"],
)
@pytest.mark.parametrize("sd", [1.0, None])
def test_without_a_bounded_item_nothing_is_fitted(rows, expected, sd):
    np.testing.assert_array_equal(fit(rows, sd=sd).difficulty, expected)


def test_equal_learners_have_no_spread():
    """Fair coins, and every learner with the same score: less variation than any spread gives."""
    found = fit([[1, 0], [0, 1]] * 20, sd=None)
    assert found.sd == pytest.approx(SMALLEST_SD)
    assert np.isnan(found.sd_error)
    np.testing.assert_allclose(found.difficulty, 0, atol=1e-6)
    # Forty fair coins: their log-odds have a standard error of 2 / sqrt(40).
    np.testing.assert_allclose(found.standard_error, 2 / np.sqrt(40), rtol=1e-3)


def test_learners_who_know_all_or_nothing_have_the_largest_spread():
    found = fit([[1] * 6, [0] * 6] * 20 + [[1, 1, 1, 0, 0, 0]], sd=None)
    assert found.sd == pytest.approx(LARGEST_SD)
    assert found.n_iterations < 50


def test_a_wide_spread_is_found():
    sitting = Exam(2000, 15, ability_sd=6.0).simulate(np.random.default_rng(1))
    found = fit_marginal(sitting.responses.correct, sd=None)
    assert abs(found.sd - 6.0) < 4 * found.sd_error


@pytest.mark.parametrize("sd", [0.0, -1.0, INF, float("nan")])
def test_a_spread_that_is_none_is_refused(sd):
    with pytest.raises(ValueError, match="standard deviation"):
        fit([[1, 0], [0, 1]], sd=sd)


def test_the_columns_of_a_bigger_table_may_be_fitted():
    rows = Exam(60, 10, missing=0.2).simulate(np.random.default_rng(0)).responses.correct
    some = rows[:, ::2]
    np.testing.assert_array_equal(fit_marginal(some).difficulty, fit_marginal(some.copy()).difficulty)
