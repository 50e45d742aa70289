"""Conditional estimates at the edges: items without a bound, without a comparison, without an answer."""

import numpy as np
import pytest

from understudy.exams.estimators.conditional import fit_conditional
from understudy.exams.simulate import Exam

INF = np.inf


def fit(rows):
    return fit_conditional(np.array(rows, dtype=np.int8))


def test_two_items_have_the_closed_form():
    """Of those with one right, a right on the first and b on the second: difficulties +-log(b/a)/2."""
    found = fit([[1, 0]] * 3 + [[0, 1]] * 7 + [[1, 1], [0, 0]])
    np.testing.assert_allclose(found.difficulty, np.array([1, -1]) * np.log(7 / 3) / 2, atol=1e-9)
    # The difference has variance 1/3 + 1/7, each of the two halves a quarter of it.
    np.testing.assert_allclose(found.standard_error, np.sqrt(1 / 3 + 1 / 7) / 2, rtol=1e-6)


def test_scores_of_zero_and_of_everything_say_nothing():
    rows = Exam(50, 5).simulate(np.random.default_rng(1)).responses.correct
    more = np.vstack([rows, np.zeros((9, 5), np.int8), np.ones((9, 5), np.int8)])
    np.testing.assert_allclose(fit(rows).difficulty, fit(more).difficulty, atol=1e-7)


def test_items_all_right_or_all_wrong_are_unbounded_and_the_others_are_as_without_them():
    rows = np.array([[1, 0], [1, 0], [0, 1]])
    around = np.column_stack([np.ones(3), rows, np.zeros(3)])
    found = fit(around)
    assert list(found.difficulty[[0, 3]]) == [-INF, INF]
    assert list(found.standard_error[[0, 3]]) == [INF, INF]
    np.testing.assert_allclose(found.difficulty[1:3], fit(rows).difficulty)


def test_an_item_is_unbounded_when_only_its_own_learners_bound_it():
    """Items 0 and 1 bound each other; 2 is wrong for everybody who is not right everywhere."""
    found = fit([[1, 0, 0], [0, 1, 0], [1, 1, 1]])
    np.testing.assert_allclose(found.difficulty, [0, 0, INF], atol=1e-9)


def test_an_item_nobody_answered_or_that_nothing_compares_is_nan():
    found = fit([[1, 0, -1, -1], [0, 1, -1, -1], [-1, -1, -1, 1]])
    np.testing.assert_array_equal(np.isnan(found.difficulty), [False, False, True, True])


def test_parts_of_a_test_that_nobody_joins_are_not_compared():
    found = fit(
        [[1, 0, 0, -1, -1], [0, 1, 0, -1, -1], [0, 0, 1, -1, -1], [-1, -1, -1, 1, 0], [-1, -1, -1, 0, 1]]
    )
    np.testing.assert_allclose(found.difficulty[:3], 0, atol=1e-9)
    assert np.isnan(found.difficulty[3:]).all()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 0, 1]], [-INF, INF, -INF]),
        ([[1, 1, 1]] * 4, [np.nan] * 3),
        ([[0, 0]] * 4, [np.nan] * 2),
        ([[1], [0]], [np.nan]),
        ([[-1, -1]], [np.nan] * 2),
    ],
    ids=["one learner", "all right", "all wrong", "one item", "nothing answered"],
)
def test_without_a_comparison_nothing_is_fitted(rows, expected):
    np.testing.assert_array_equal(fit(rows).difficulty, expected)


def test_no_learners():
    assert np.isnan(fit_conditional(np.empty((0, 3), dtype=np.int8)).difficulty).all()


def test_missing_responses_join_two_halves_of_a_class():
    """Each half answers its own and two common items; all difficulties come out on one scale."""
    sitting = Exam(6000, 8, difficulty_sd=1.0).simulate(np.random.default_rng(4))
    rows = sitting.responses.correct.copy()
    rows[:3000, 5:] = -1
    rows[3000:, :3] = -1
    found = fit_conditional(rows)
    wanted = sitting.difficulty - sitting.difficulty.mean()
    assert np.abs(found.difficulty - wanted).max() < 4 * found.standard_error.max()


def test_many_items_do_not_overflow():
    sitting = Exam(300, 400, ability_sd=2.0, difficulty_sd=3.0).simulate(np.random.default_rng(4))
    found = fit_conditional(sitting.responses.correct)
    finite = np.isfinite(found.difficulty)
    assert finite.sum() > 300
    assert np.corrcoef(found.difficulty[finite], sitting.difficulty[finite])[0, 1] > 0.98
    assert np.isfinite(found.standard_error[finite]).all()
