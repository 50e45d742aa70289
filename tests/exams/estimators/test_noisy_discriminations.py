"""Discriminations from noisy totals: expected totals by simulation, the fit without noise, and known truths."""

import numpy as np
import pytest
from scipy.special import expit

from understudy.core.privacy.noise import seeded_noise
from understudy.exams.estimators import noisy_discriminations
from understudy.exams.estimators.noisy_discriminations import estimate_discriminations
from understudy.exams.estimators.partial_credit import fit_partial_credit
from understudy.exams.mechanisms.discrimination import discrimination_measurement, goes_with_rest
from understudy.exams.responses import Responses


def answers(rng, n_learners, log_slope, place):
    chance = expit(np.exp(log_slope) * (rng.normal(0, 1, n_learners)[:, None] - place))
    return (rng.random(chance.shape) < chance).astype(np.int8)


@pytest.mark.oracle
def test_expected_numbers_are_those_of_a_million_learners():
    rng = np.random.default_rng(1)
    log_slope, place = rng.normal(0, 0.4, 12), rng.normal(0, 1, 12)
    found = goes_with_rest(answers(rng, 400_000, log_slope, place)).mean(axis=0)
    expected, _ = noisy_discriminations._rest(log_slope, place)
    sign = 2 * expit(np.exp(log_slope) * (noisy_discriminations._NODES[:, None] - place)) - 1
    product = noisy_discriminations._WEIGHTS @ (sign * expected)
    np.testing.assert_allclose(0.5 + 0.5 * product, found, atol=0.004)


@pytest.mark.oracle
def test_with_next_to_no_noise_it_is_near_the_fit_without_noise():
    rng = np.random.default_rng(2)
    log_slope, place = rng.normal(0.1, 0.4, 15), rng.normal(0, 1, 15)
    right = answers(rng, 6000, log_slope, place)
    measurement = discrimination_measurement("knorm", 15, epsilon=100.0, delta=0.0)
    found = estimate_discriminations(measurement.release(Responses.from_matrix(right), seeded_noise(rng)))
    fit = fit_partial_credit(right, np.ones(15, dtype=int), slopes=True)
    slopes = np.log([item.slope for item in fit.items])
    assert np.corrcoef(found.log_slope, slopes)[0, 1] > 0.97
    assert np.abs(found.log_slope - slopes).mean() < 0.08
    np.testing.assert_allclose(found.difficulty, [item.difficulty for item in fit.items], atol=0.2)


def test_intervals_hold_the_truth():
    """Of four exams of 15 items: at least 90 % of 60 intervals of each kind (the page has more exams)."""
    rng = np.random.default_rng(3)
    places, slopes = [], []
    for n_learners in (800, 2500) * 2:
        log_slope, place = rng.normal(0, 0.3, 15), rng.normal(0, 1.2, 15)
        measurement = discrimination_measurement("knorm", 15, epsilon=3.0, delta=0.0)
        responses = Responses.from_matrix(answers(rng, n_learners, log_slope, place))
        found = estimate_discriminations(measurement.release(responses, seeded_noise(rng)))
        places.append(np.abs(found.difficulty - place) < 1.96 * found.standard_error)
        slopes.append(np.abs(found.log_slope - log_slope) < 1.96 * found.log_slope_error)
    assert np.mean(places) >= 0.9
    assert np.mean(slopes) >= 0.9
