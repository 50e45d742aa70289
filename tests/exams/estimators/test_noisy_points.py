"""Difficulties from noisy shares of points: against a sum over every unknown, without noise, and on known truths."""

import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from tests.exams.support.point_exams import simulate_points
from understudy.core.privacy.noise import seeded_noise
from understudy.exams.estimators.noisy_points import estimate_from_points, shape_credits
from understudy.exams.estimators.noisy_totals import Prior
from understudy.exams.estimators.partial_credit import fit_partial_credit, half_points
from understudy.exams.mechanisms.points import NoisyPoints, choose_points_measurement
from understudy.exams.responses import Points, Responses


def test_shape_0_is_half_way_between_equal_tasks_and_equal_thresholds():
    credits = np.exp(2 * shape_credits(3, 0.0))
    np.testing.assert_allclose(credits, [1, 3, 3, 1])
    thresholds = -np.diff(shape_credits(4, 0.7))
    np.testing.assert_allclose(
        thresholds, [np.log(k / (5 - k)) / 2 + 0.7 * (2 * k - 5) / 3 for k in range(1, 5)]
    )


@pytest.mark.oracle
def test_right_and_wrong_with_a_given_prior_are_a_plain_sum():
    """Two items of one step, sd and prior given: the posterior by a sum over a fine grid of difficulties."""
    noisy = NoisyPoints(np.array([31.0, 64.0]), None, None, 40.0, 0.0, 0.0, 100)
    found = estimate_from_points(noisy, (Points(), Points()), 1.2, Prior(0.3, 0.8))
    grid = np.linspace(-5, 5, 4001)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    chance = expit(1.2 * nodes - grid[:, None])
    weights = weights / weights.sum()
    share, within = chance @ weights, (chance * (1 - chance)) @ weights
    for item, total in enumerate(noisy.shares):
        density = norm.pdf(grid, 0.3, 0.8) * norm.pdf(total, 100 * share, np.sqrt(40 + 100 * within))
        density /= density.sum()
        mean = density @ grid
        variance = density @ grid**2 - mean**2
        assert found.difficulty[item] == pytest.approx(mean, abs=2e-3)
        assert found.order_error[item] == pytest.approx(np.sqrt(variance), abs=2e-3)
        assert found.standard_error[item] == pytest.approx(np.sqrt(variance + 1.2**2 / 100), abs=2e-3)


def released(rng, n_learners, maxima, epsilon, sd=1.0, thresholds_differ=0.7):
    places = [rng.normal(0, thresholds_differ, most) + rng.normal() for most in maxima]
    truth = np.array([half_points(np.append(0.0, np.cumsum(place))) for place in places])
    points = tuple(Points(int(most)) for most in maxima)
    steps = simulate_points(rng.normal(0, sd, n_learners), places, rng)
    responses = Responses(steps, tuple(f"q{k}" for k in range(len(maxima))), declared=True, points=points)
    measurement = choose_points_measurement("knorm", points, epsilon=epsilon, delta=0.0, agreement=True)
    return truth, steps, points, measurement.release(responses, seeded_noise(rng))


def test_with_next_to_no_noise_it_is_near_the_fit_without_noise():
    rng = np.random.default_rng(1)
    maxima = np.array([1, 2, 4, 3, 2, 1, 4, 2, 3, 4])
    _, steps, points, noisy = released(rng, 4000, maxima, 100.0)
    found = estimate_from_points(noisy, points)
    fit = fit_partial_credit(steps, maxima)
    assert found.ability_sd == pytest.approx(fit.sd, rel=0.1)
    expected = np.array([item.difficulty for item in fit.items])
    # An exam of one shape is not that of any thresholds.
    assert (np.abs(found.difficulty - expected) < 3 * found.standard_error).all()
    assert np.corrcoef(found.difficulty, expected)[0, 1] > 0.99


def test_intervals_hold_the_truth_where_noise_is_large_and_where_it_is_small():
    """Of 2 x 3 exams of 15 items 95 % intervals: at least 90 % of 90 (the page has more exams)."""
    rng = np.random.default_rng(2)
    held = []
    for n_learners, _ in itertools.product((100, 1500), range(3)):
        truth, _, points, noisy = released(rng, n_learners, rng.choice([1, 2, 4], 15), 2.0)
        found = estimate_from_points(noisy, points)
        held.append(np.abs(found.difficulty - truth) < 1.96 * found.standard_error)
    assert np.mean(held) >= 0.9
