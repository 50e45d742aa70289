"""The Rasch fit against scikit-learn, a brute-force gradient and polars' group_by."""

import numpy as np
import polars as pl
import pytest
from scipy.sparse import coo_array
from sklearn.linear_model import LogisticRegression

from understudy.logs.interactions import Interactions
from understudy.logs.models.rasch import PairCounts, fit_rasch

pytestmark = pytest.mark.oracle


def with_oddities(log):
    """The log with an action nobody tried and a learner who is always right, repeatedly."""
    sequences = [log.action[a:b] for a, b in zip(log.offsets, log.offsets[1:], strict=False)]
    outcomes = [log.outcome[a:b] for a, b in zip(log.offsets, log.offsets[1:], strict=False)]
    return Interactions.from_sequences(
        [*sequences, [0, 0, 0, 1, 0, 1]],
        [*outcomes, [1] * 6],
        actions=[str(j) for j in range(log.n_actions + 1)],
    )


SHAPES = {
    "typical": {"n_learners": 40, "n_actions": 8, "mean_length": 15},
    "many actions": {"n_learners": 12, "n_actions": 60, "mean_length": 40},
    "many learners": {"n_learners": 300, "n_actions": 3, "mean_length": 4},
    "long sequences": {"n_learners": 5, "n_actions": 4, "mean_length": 300},
    "mostly right": {"n_learners": 40, "n_actions": 8, "mean_length": 15, "easiness": 4.0},
}


@pytest.fixture(params=SHAPES)
def log(request, make_log):
    return with_oddities(make_log(np.random.default_rng(1), **SHAPES[request.param]))


def sklearn_fit(log):
    rows = np.arange(log.n_rows)
    design = coo_array(
        (
            np.ones(2 * log.n_rows),
            (np.tile(rows, 2), np.concatenate([log.learner, log.n_learners + log.action])),
        ),
        shape=(log.n_rows, log.n_learners + log.n_actions),
    ).tocsr()
    model = LogisticRegression(C=1, tol=1e-10, solver="newton-cg", max_iter=10_000)
    model.fit(design, log.outcome)
    coefficients = model.coef_[0]
    return coefficients[: log.n_learners], -coefficients[log.n_learners :], float(model.intercept_[0])


def test_parameters_are_those_of_scikit_learn(log):
    fitted = fit_rasch(log)
    ability, difficulty, intercept = sklearn_fit(log)
    np.testing.assert_allclose(fitted.ability, ability, atol=1e-4)
    np.testing.assert_allclose(fitted.difficulty, difficulty, atol=1e-4)
    assert fitted.intercept == pytest.approx(intercept, abs=1e-4)


def test_no_derivative_is_left(log):
    fitted = fit_rasch(log, tolerance=1e-7)
    eta = fitted.intercept + fitted.ability[log.learner] - fitted.difficulty[log.action]
    residual = 1 / (1 + np.exp(-eta)) - log.outcome
    for i in range(log.n_learners):
        assert abs(fitted.ability[i] + residual[log.learner == i].sum()) < 1e-6
    for j in range(log.n_actions):
        assert abs(-fitted.difficulty[j] + residual[log.action == j].sum()) < 1e-6
    assert abs(residual.sum()) < 1e-4  # the intercept is free but for its tiny penalty


def test_an_action_nobody_tried_has_difficulty_zero(log):
    assert fit_rasch(log).difficulty[-1] == 0.0


def test_pairs_are_those_of_a_group_by(log):
    pairs = PairCounts.of(log)
    learner = np.repeat(np.arange(log.n_learners), np.diff(pairs.offsets))
    ours = sorted(zip(learner, pairs.action, pairs.attempts, pairs.successes, strict=True))
    frame = pl.DataFrame({"learner": log.learner, "action": log.action, "outcome": log.outcome})
    grouped = frame.group_by("learner", "action").agg(n=pl.len(), good=pl.col("outcome").sum())
    assert ours == sorted(grouped.rows())
    from_pairs, from_log = fit_rasch(pairs), fit_rasch(log)
    np.testing.assert_array_equal(from_pairs.ability, from_log.ability)


@pytest.mark.parametrize("outcome", [0, 1])
def test_equal_outcomes_stay_finite(outcome):
    log = Interactions.from_sequences([[0, 1, 0], [1, 2]], [[outcome] * 3, [outcome] * 2])
    fitted = fit_rasch(log)
    everything = np.concatenate([fitted.ability, fitted.difficulty, [fitted.intercept]])
    assert np.isfinite(everything).all()
    assert np.sign(fitted.intercept) == (1 if outcome else -1)


@pytest.mark.parametrize("n_actions", [0, 3])
def test_an_empty_log_gives_zeros(n_actions):
    fitted = fit_rasch(Interactions.from_sequences([], actions=[str(j) for j in range(n_actions)]))
    assert fitted.difficulty.tolist() == [0.0] * n_actions
    assert len(fitted.ability) == 0
    assert fitted.intercept == 0.0
