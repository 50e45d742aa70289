"""Noisy totals: what each mechanism adds, what it costs, and which one is chosen."""

import math

import numpy as np
import pytest

from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.errors import UsageError
from understudy.exams.mechanisms.totals import (
    choose_measurement,
    cube,
    gaussian_right,
    gaussian_right_and_wrong,
    hexagon,
    laplace_right_and_wrong,
    noise_variance,
    predicted_variance,
)
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam

MECHANISMS = (
    cube(5, 1.0),
    hexagon(5, 1.0),
    laplace_right_and_wrong(2, 1.0),
    gaussian_right(5, 1.0, 1e-6),
    gaussian_right_and_wrong(5, 2, 1.0, 1e-6),
)


@pytest.mark.parametrize("measurement", MECHANISMS, ids=lambda m: m.name)
def test_the_noise_has_the_covariance_that_the_estimate_relies_on(measurement):
    totals = Exam(60, 5, missing=0.3).simulate(np.random.default_rng(1)).responses.totals()
    noise = seeded_noise(np.random.default_rng(2))
    drawn = [measurement.measure(totals, noise) for _ in range(4000)]
    exact = totals.answered if measurement.covariance[1, 1] else np.full(5, 60)
    pairs = np.concatenate(
        [np.stack([one.correct - totals.correct, one.answered - exact], axis=1) for one in drawn]
    )
    assert all(one.n_learners == 60 for one in drawn)
    # 20,000 draws: a standard error of a percent of the variance; five of them are allowed.
    scale = math.sqrt(measurement.covariance[0, 0])
    assert np.abs(pairs.mean(axis=0)).max() < 5 * 1.5 * scale / math.sqrt(len(pairs))
    assert np.cov(pairs.T) == pytest.approx(measurement.covariance, abs=0.07 * scale**2)


@pytest.mark.parametrize("measurement", MECHANISMS, ids=lambda m: m.name)
def test_every_mechanism_states_what_it_was_asked_for(measurement):
    guarantee = measurement.guarantee
    assert guarantee.epsilon == 1.0
    assert guarantee.delta == (1e-6 if "Gaussian" in measurement.name else 0.0)
    assert guarantee.mechanisms == (measurement.name,)


@pytest.mark.parametrize("measurement", MECHANISMS, ids=lambda m: m.name)
def test_every_mechanism_runs_on_the_noise_that_carries_a_guarantee(measurement):
    totals = Exam(60, 5).simulate(np.random.default_rng(1)).responses.totals()
    noisy = measurement.measure(totals, os_noise())
    assert noisy.correct.shape == noisy.answered.shape == (5,)


def test_the_choice_follows_the_predicted_error():
    def chosen(method="knorm", *, n_items=50, missing="skipped", at_most=None, epsilon=1.0):
        return choose_measurement(
            method, n_items=n_items, missing=missing, at_most=at_most, epsilon=epsilon, delta=1e-6
        )

    assert chosen(missing="wrong").name == cube(5, 1.0).name
    assert chosen("gaussian", missing="wrong").name == gaussian_right(5, 1.0, 1e-6).name
    assert chosen().name == hexagon(5, 1.0).name
    assert chosen(at_most=5).name == laplace_right_and_wrong(5, 1.0).name
    assert chosen("gaussian", at_most=5).name == gaussian_right_and_wrong(5, 5, 1.0, 1e-6).name
    # Somewhere in between the two private ways change places, and it is where the errors cross.
    for most in range(1, 51):
        small, large = laplace_right_and_wrong(most, 1.0), hexagon(50, 1.0)
        better = min((large, small), key=predicted_variance)
        assert chosen(at_most=most).name == better.name
    with pytest.raises(UsageError):
        chosen(at_most=0)


def test_gaussian_noise_is_smaller_beyond_some_fifty_items():
    """Findings, section 2: 12.4 at 20 items and epsilon 1; the Gaussian wins above about 50 items."""
    assert math.sqrt(cube(20, 1.0).covariance[0, 0]) == pytest.approx(12.4, abs=0.05)
    better = [
        n
        for n in range(10, 100)
        if gaussian_right(n, 1.0, 1e-6).covariance[0, 0] < cube(n, 1.0).covariance[0, 0]
    ]
    assert 40 <= min(better) <= 60
    assert better == list(range(min(better), 100))


def test_the_variance_of_the_difference_is_that_of_the_linear_form():
    covariance = np.array([[3.0, 1.0], [1.0, 2.0]])
    for chance in (0.0, 0.3, 1.0):
        row = np.array([1.0, -chance])
        assert noise_variance(covariance, np.array(chance)) == pytest.approx(row @ covariance @ row)


def test_an_epsilon_beyond_the_accounting_is_refused():
    responses = Responses.from_matrix(np.ones((4, 1), dtype=int))
    with pytest.raises(UsageError):
        gaussian_right(1, 5000.0, 1e-6).measure(responses.totals(), os_noise())
