"""Success that grows with practice: features by hand, the fit against brute force, known weights found again."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit, log_expit

from understudy.logs.interactions import Interactions
from understudy.logs.models.markov import AliasTables
from understudy.logs.models.practice import (
    BASE_PENALTY,
    COMMON_PENALTY,
    EASINESS_PENALTY,
    FEATURES,
    HOUR,
    WEIGHT_PENALTY,
    WINDOWS,
    earlier_outcomes,
    fit_practice,
    octave_of,
)
from understudy.logs.models.runs import N_CELLS, RunModel

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def log(make_log):
    rng = np.random.default_rng(3)
    drawn = make_log(rng, n_learners=25, n_actions=4, mean_length=12)
    # Gaps between minutes and months.
    gaps = np.exp(rng.uniform(np.log(60), np.log(60 * 24 * HOUR), drawn.n_rows))
    time = np.datetime64("2020-01-01", "us") + (1e6 * np.cumsum(gaps)).astype("timedelta64[us]")
    return Interactions(drawn.action, drawn.outcome, drawn.offsets, drawn.actions, time=time)


def earlier_attempts(log):
    """For each row: (time, outcome) of the earlier attempts of its learner at its action."""
    return [
        [(log.time[s], log.outcome[s]) for s in range(begin, row) if log.action[s] == log.action[row]]
        for begin, end in pairwise(log.offsets)
        for row in range(begin, end)
    ]


def class_of(n):
    """One of: 1, 2, 3, 4 to 5, 6 and more."""
    return [n == 1, n == 2, n == 3, 4 <= n <= 5, n >= 6]


def test_features_are_counts_of_earlier_attempts(log):
    earlier = earlier_attempts(log)
    successes = [sum(outcome for _, outcome in attempts) for attempts in earlier]
    failures = [len(attempts) - good for attempts, good in zip(earlier, successes, strict=True)]
    assert earlier_outcomes(log)[0].tolist() == successes
    assert earlier_outcomes(log)[1].tolist() == failures
    classes = np.array([class_of(len(attempts)) for attempts in earlier], dtype=float)
    assert FEATURES["attempts"].of(log).tolist() == classes.tolist()
    factors = np.log1p(np.column_stack([successes, failures]))
    np.testing.assert_allclose(FEATURES["pfa"].of(log), np.column_stack([classes, factors]))


def test_time_windows_count_what_lies_within_them(log):
    columns = []
    for window in WINDOWS:
        for right_only in (True, False):
            counts = [
                sum(
                    1
                    for time, outcome in attempts
                    if (log.time[row] - time) / np.timedelta64(1, "s") <= window
                    and (outcome or not right_only)
                )
                for row, attempts in enumerate(earlier_attempts(log))
            ]
            columns.append(np.log1p(counts))
    assert np.ptp(np.array(columns), axis=1).min() > 0, "every window makes a difference"
    np.testing.assert_allclose(FEATURES["das3h"].of(log)[:, 5:], np.array(columns).T)


def marginal_likelihood(log, eta, mean, spread):
    """The log-likelihood with each ability integrated out on a fine grid."""
    grid = np.linspace(-8, 8, 801)
    total = 0.0
    for learner, (begin, end) in enumerate(pairwise(log.offsets)):
        sign = 2 * log.outcome[begin:end, None] - 1
        likelihood = np.exp(log_expit(sign * (eta[begin:end, None] + grid)).sum(axis=0))
        prior = np.exp(-0.5 * ((grid - mean[learner]) / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
        total += np.log(np.sum(likelihood * prior) * (grid[1] - grid[0]))
    return total


def test_the_fit_maximises_the_marginal_likelihood(log):
    """Brute force: with abilities integrated on a fine grid, the objective is flat at the fit, and not beside it."""
    features = FEATURES["pfa"]
    fitted = fit_practice(log, features, tolerance=1e-6, n_rounds=1000)
    design = np.column_stack([np.ones(log.n_rows), features.of(log)])
    mean = fitted.ability_mean[octave_of(log.lengths)]
    penalty = np.array([EASINESS_PENALTY] + [WEIGHT_PENALTY] * features.n_columns)
    common_penalty = np.array([BASE_PENALTY] + [COMMON_PENALTY] * features.n_columns)

    def likelihood(parameters):
        eta = np.sum(design * parameters[log.action], axis=1)
        return marginal_likelihood(log, eta, mean, fitted.ability_spread)

    def loss(flat):
        parameters = flat.reshape(log.n_actions, -1)
        # What actions have in common is where the penalties are least.
        common = penalty * parameters.sum(axis=0) / (penalty * log.n_actions + common_penalty)
        penalised = np.sum(common_penalty * common**2) + np.sum(penalty * (parameters - common) ** 2)
        return 0.5 * penalised - likelihood(parameters)

    found = np.column_stack([fitted.easiness, fitted.weights])
    assert np.abs(approx_fprime(found.ravel(), loss)).max() < 0.01
    assert np.abs(approx_fprime(found.ravel() + 0.02, loss)).max() > 0.1
    assert fitted.log_likelihood == pytest.approx(likelihood(found), abs=1e-3)


def test_known_weights_are_found_again_where_able_learners_leave_early():
    """Learners leave after successes, so that later attempts are those of weaker ones; abilities grow with length."""
    rng = np.random.default_rng(0)
    n, n_actions = 2000, 6
    lengths = rng.integers(4, 60, n)
    ability = rng.normal(0.4 * (lengths >= 32), 0.8)
    target = np.array([(a + step) % n_actions for a in range(n_actions) for step in (1, 2)] + [0, 1])
    source = np.repeat(np.arange(n_actions + 1), 2)
    stay_by_cell = np.repeat([2.0, 2.0, 2.0, 0.5, -0.5, -1.5, -2, -2], N_CELLS // 8)
    weights = np.zeros((n_actions, 7))
    weights[:, :5], weights[:, 5:] = 0.5, (0.4, -0.2)
    model = RunModel(
        jumps=AliasTables.from_steps(source, target, np.ones(len(target)), n_actions + 1),
        stay=np.zeros(n_actions),
        stay_by_cell=stay_by_cell,
        easiness=np.linspace(-1, 1, n_actions),
        features=FEATURES["pfa"],
        weights=weights,
    )
    action, outcome = model.walk(ability, lengths, rng)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    log = Interactions(action, outcome, offsets, tuple("abcdef"))
    fitted = fit_practice(log, FEATURES["pfa"])
    np.testing.assert_allclose(fitted.weights[:, 5:].mean(axis=0), (0.4, -0.2), atol=0.12)
    np.testing.assert_allclose(fitted.weights[:, :5].mean(axis=0), 0.5, atol=0.15)
    assert fitted.ability_spread == pytest.approx(0.8, abs=0.12)
    assert fitted.ability_mean[5] - fitted.ability_mean[4] == pytest.approx(0.4, abs=0.12)
    easiness = fitted.easiness + fitted.ability_mean[4]
    np.testing.assert_allclose(easiness, np.linspace(-1, 1, n_actions), atol=0.2)


def test_outcomes_all_alike_have_a_fit():
    log = Interactions.from_sequences([[0, 1, 1, 0]] * 5, [[1, 1, 1, 1]] * 5)
    fitted = fit_practice(log, FEATURES["pfa"])
    assert np.isfinite(fitted.weights).all()
    assert (expit(fitted.easiness) > 0.99).all()
