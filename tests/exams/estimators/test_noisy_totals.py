"""Difficulties from noisy totals against slow, independent ways to the same numbers."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import binom, norm

from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.noise_moments import cube_radius_weights
from understudy.exams.estimators.chances import chance_curve
from understudy.exams.estimators.noisy_totals import Prior, estimate_difficulties
from understudy.exams.simulate import Exam
from understudy.exams.totals_mechanism import NoisyTotals, choose_measurement, cube

pytestmark = pytest.mark.oracle


def noisy_totals(correct, n_learners, variance):
    correct = np.asarray(correct, dtype=float)
    return NoisyTotals(
        correct, np.full(len(correct), float(n_learners)), np.diag([variance, 0.0]), n_learners
    )


def integral(function, low, high):
    return quad(function, low, high, epsabs=1e-12, epsrel=1e-10, limit=500)[0]


@pytest.mark.parametrize("sd", [0.1, 1.0, 3.0])
def test_the_chance_of_a_random_learner_is_the_integral(sd):
    for difficulty in (-9.0, -2.0, 0.0, 0.7, 6.0):
        exact = integral(lambda x, d=difficulty: expit(sd * x - d) * norm.pdf(x), -9, 9)
        assert float(chance_curve(sd)(difficulty)) == pytest.approx(exact, abs=2e-8)


@pytest.mark.parametrize(
    ("correct", "n_learners", "variance"),
    [([31.0, 60.0, -8.0, 131.0], 120, 154.0), ([12.0], 12, 9.0), ([420_000.0, 3.0], 1_000_000, 154.0)],
)
def test_with_a_given_prior_the_posterior_is_the_integral(correct, n_learners, variance):
    prior, curve = Prior(0.3, 1.7), chance_curve(1.0)
    found = estimate_difficulties(noisy_totals(correct, n_learners, variance), 1.0, prior)
    for place, total in enumerate(correct):

        def density(d, total=total):
            chance = float(curve(d))
            spread = math.sqrt(n_learners * chance * (1 - chance) + variance)
            return norm.pdf(total, n_learners * chance, spread) * norm.pdf(d, prior.mean, prior.spread)

        middle, width = found.difficulty[place], max(found.standard_error[place], 1e-4)
        low, high = max(-15.0, middle - 12 * width), min(15.0, middle + 12 * width)
        total_mass = integral(density, low, high)
        mean = integral(lambda d: d * density(d), low, high) / total_mass
        square = integral(lambda d: d * d * density(d), low, high) / total_mass
        assert middle == pytest.approx(mean, abs=1e-5)
        assert found.standard_error[place] == pytest.approx(math.sqrt(square - mean**2), rel=1e-3)


def test_the_normal_likelihood_stands_for_the_exact_one_of_the_cube():
    """Binomial totals plus uniform noise on a cube of random size, all summed out exactly."""
    rng = np.random.default_rng(3)
    n_learners, n_items, epsilon = 60, 12, 1.0
    sitting = Exam(n_learners, n_items).simulate(rng)
    measurement = cube(n_items, epsilon)
    totals = measurement.measure(sitting.responses.totals(), seeded_noise(rng))
    found = estimate_difficulties(totals, 1.0, Prior(0.0, 2.0))
    radius, weight = cube_radius_weights(n_items, epsilon)
    grid = np.linspace(-9, 9, 361)
    chance = np.asarray(chance_curve(1.0)(grid))
    below = np.zeros((n_learners + 2, len(grid)))
    below[1:] = np.cumsum(binom.pmf(np.arange(n_learners + 1)[:, None], n_learners, chance), axis=0)
    noisy = totals.correct.astype(int)
    high = np.clip(noisy[:, None] + radius, -1, n_learners) + 1
    low = np.clip(noisy[:, None] - radius - 1, -1, n_learners) + 1
    likelihood = (below[high] - below[low]) / (2 * radius + 1)[:, None]
    prior = norm.pdf(grid, 0.0, 2.0)
    each = likelihood @ prior
    by_radius = weight * np.exp(np.log(np.maximum(each, 1e-300)).sum(axis=0))
    by_radius /= by_radius.sum()
    mean = ((likelihood * grid) @ prior / np.maximum(each, 1e-300)) @ by_radius
    # The standard errors are about 1; the approximation may move an estimate by a fraction of that.
    assert np.abs(found.difficulty - mean).max() < 0.35
    assert np.corrcoef(found.difficulty, mean)[0, 1] > 0.99


def test_mean_and_spread_are_integrated_out():
    """A grid over all of it, without any zooming in."""
    totals = noisy_totals([100.0, 84.0, 66.0, 20.0, 11.0], 120, 60.0)
    found = estimate_difficulties(totals)
    grid = np.linspace(-15, 15, 3001)
    chance = np.asarray(chance_curve(1.0)(grid))
    spread = np.sqrt(120 * chance * (1 - chance) + 60.0)
    likelihood = norm.pdf(totals.correct[:, None], 120 * chance, spread)
    weights, means, squares = [], [], []
    for mean in np.linspace(-6, 6, 61):
        for scale in np.geomspace(0.2, 8.0, 60):
            prior = norm.pdf(grid, mean, scale)
            evidence = likelihood @ prior
            hyper = norm.logpdf(mean, 0, 2.0) + norm.logpdf(math.log(scale), math.log(1.5), 0.5)
            weights.append(np.log(evidence).sum() + hyper)
            means.append((likelihood * grid) @ prior / evidence)
            squares.append((likelihood * grid**2) @ prior / evidence)
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    mean = weight @ np.array(means)
    assert found.difficulty == pytest.approx(mean, abs=0.05)
    assert found.standard_error == pytest.approx(np.sqrt(weight @ np.array(squares) - mean**2), rel=0.08)


@pytest.mark.parametrize("missing", ["wrong", "skipped"])
@pytest.mark.parametrize("method", ["knorm", "gaussian"])
def test_intervals_cover_what_they_promise(method, missing):
    """400 difficulties each: 95 % give or take 1.1; false alarms of one in ten thousand are allowed."""
    rng = np.random.default_rng(11)
    inside = []
    for n_learners, epsilon in ((120, 1.0), (300, 2.0)):
        for _ in range(10):
            sitting = Exam(n_learners, 20, missing=0.3 if missing == "skipped" else 0.0).simulate(rng)
            measurement = choose_measurement(
                method, n_items=20, missing=missing, at_most=None, epsilon=epsilon, delta=1e-6
            )
            found = estimate_difficulties(measurement.measure(sitting.responses.totals(), seeded_noise(rng)))
            inside.append(np.abs(found.difficulty - sitting.difficulty) < 1.96 * found.standard_error)
    assert 0.90 < np.mean(inside) < 0.99


def test_many_learners_and_little_noise_give_the_truth():
    sitting = Exam(200_000, 15).simulate(np.random.default_rng(5))
    totals = cube(15, 1.0).measure(sitting.responses.totals(), seeded_noise(np.random.default_rng(6)))
    found = estimate_difficulties(totals)
    assert np.abs(found.difficulty - sitting.difficulty).max() < 0.1
    assert found.standard_error.max() < 0.05


@pytest.mark.parametrize("total", [-1e6, 0.0, 120.0, 1e6])
def test_impossible_totals_have_finite_difficulties(total):
    found = estimate_difficulties(noisy_totals([total, 60.0], 120, 154.0))
    assert np.isfinite(found.difficulty).all()
    assert np.isfinite(found.standard_error).all()
    assert (found.chance >= 0).all()
    assert (found.chance <= 1).all()
