"""The next-outcome model against scikit-learn, its history against plain Python."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from understudy.logs.interactions import Interactions
from understudy.logs.models.next_outcome import fit_next_outcome, history_of

pytestmark = pytest.mark.oracle

SHAPES = {
    "typical": {"n_learners": 40, "n_actions": 6, "mean_length": 15},
    "many actions": {"n_learners": 15, "n_actions": 60, "mean_length": 40},
    "long sequences": {"n_learners": 4, "n_actions": 3, "mean_length": 300},
    "mostly right": {"n_learners": 60, "n_actions": 8, "mean_length": 15, "easiness": 4.0},
    "mostly wrong": {"n_learners": 60, "n_actions": 8, "mean_length": 15, "easiness": -4.0},
}


@pytest.fixture(params=SHAPES)
def log(request, make_log):
    return make_log(np.random.default_rng(2), **SHAPES[request.param])


def plain_history(log):
    rows = []
    for begin, end in zip(log.offsets, log.offsets[1:], strict=False):
        seen = []
        for action, outcome in zip(log.action[begin:end], log.outcome[begin:end], strict=True):
            good = sum(o for a, o in seen if a == action)
            bad = sum(1 - o for a, o in seen if a == action)
            rate = (sum(o for _, o in seen) + 1) / (len(seen) + 2) - 0.5
            rows.append([math.log(1 + good), math.log(1 + bad), rate])
            seen.append((int(action), int(outcome)))
    return np.array(rows)


def test_history_is_what_happened_before(log):
    np.testing.assert_allclose(history_of(log), plain_history(log), atol=1e-12)


def test_parameters_are_those_of_scikit_learn(log):
    fitted = fit_next_outcome(log)
    design = np.column_stack([np.eye(log.n_actions)[log.action], plain_history(log)])
    model = LogisticRegression(C=1, tol=1e-10, solver="newton-cg", max_iter=10_000).fit(design, log.outcome)
    np.testing.assert_allclose(fitted.easiness, model.coef_[0][: log.n_actions], atol=1e-4)
    np.testing.assert_allclose(fitted.weights, model.coef_[0][log.n_actions :], atol=1e-4)
    assert fitted.base == pytest.approx(float(model.intercept_[0]), abs=1e-4)
    np.testing.assert_allclose(fitted.log_odds(log), model.decision_function(design), atol=1e-3)


@pytest.mark.parametrize("outcome", [0, 1])
def test_equal_outcomes_stay_finite(outcome):
    log = Interactions.from_sequences([[0, 1, 0], [1, 2]] * 10, [[outcome] * 3, [outcome] * 2] * 10)
    prediction = fit_next_outcome(log).log_odds(log)
    assert np.isfinite(prediction).all()
    assert (np.sign(prediction) == (1 if outcome else -1)).all()


def test_an_empty_log_knows_nothing(make_log):
    model = fit_next_outcome(Interactions.from_sequences([], actions=["a", "b"]))
    log = Interactions.from_sequences([[0, 1, 1]], [[0, 1, 1]])
    assert model.log_odds(log).tolist() == [0.0, 0.0, 0.0]
