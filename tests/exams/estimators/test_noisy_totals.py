"""Difficulties from noisy totals against slow, independent ways to the same numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import beta, binom, norm

from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.noise_moments import cube_radius_weights
from understudy.exams.agreement import expected_agreement
from understudy.exams.estimators.chances import Answering, chance_curve
from understudy.exams.estimators.noisy_totals import Prior, estimate_difficulties
from understudy.exams.mechanisms.totals import NoisyAgreement, NoisyTotals, choose_measurement, cube
from understudy.exams.simulate import Exam

pytestmark = pytest.mark.oracle

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(81)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


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


def posterior(density, middle, width):
    """Mean and standard deviation of a density that is narrow around `middle`."""
    low, high = max(-15.0, middle - 12 * width), min(15.0, middle + 12 * width)
    whole = integral(density, low, high)
    mean = integral(lambda d: d * density(d), low, high) / whole
    square = integral(lambda d: d * d * density(d), low, high) / whole
    return mean, math.sqrt(square - mean**2)


def moments_of_an_answer(difficulty, sd=1.0, guess=0.0, discrimination=1.0):
    """The chance of a random learner, and the mean variance of an answer given the learner."""
    chance = guess + (1 - guess) * expit(discrimination * (sd * NODES - difficulty))
    return float(WEIGHTS @ chance), float(WEIGHTS @ (chance * (1 - chance)))


@pytest.mark.parametrize(
    ("correct", "n_learners", "variance", "guess"),
    [
        ([31.0, 60.0, -8.0, 131.0], 120, 154.0, 0.0),
        ([12.0], 12, 9.0, 0.0),
        ([420_000.0, 3.0], 1_000_000, 154.0, 0.0),
        ([31.0, 60.0, -8.0, 131.0], 120, 154.0, 0.25),
        ([420_000.0, 251_000.0], 1_000_000, 154.0, 0.25),
    ],
)
def test_with_a_given_prior_the_posterior_is_the_integral(correct, n_learners, variance, guess):
    prior = Prior(0.3, 1.7)
    found = estimate_difficulties(
        noisy_totals(correct, n_learners, variance), 1.0, prior, Answering(np.full(len(correct), guess))
    )
    assert found.standard_error**2 == pytest.approx(found.order_error**2 + 1.0 / n_learners)
    for place, total in enumerate(correct):

        def density(d, total=total):
            chance, scatter = moments_of_an_answer(d, guess=guess)
            spread = math.sqrt(max(n_learners * scatter + variance, 1e-6))
            return norm.pdf(total, n_learners * chance, spread) * norm.pdf(d, prior.mean, prior.spread)

        mean, deviation = posterior(density, found.difficulty[place], max(found.order_error[place], 1e-4))
        assert found.difficulty[place] == pytest.approx(mean, abs=2e-3 * deviation + 1e-5)
        assert found.order_error[place] == pytest.approx(deviation, rel=4e-3)


def test_discriminations_are_integrated_out():
    prior, n_learners, variance = Prior(0.3, 1.7), 400, 80.0
    correct = [350.0, 170.0, 30.0]
    found = estimate_difficulties(
        noisy_totals(correct, n_learners, variance), 1.4, prior, Answering(0.2, discrimination_spread=0.3)
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    for place, total in enumerate(correct):

        def density(d, total=total):
            summed = 0.0
            for node, weight in zip(nodes, weights / weights.sum(), strict=True):
                chance, scatter = moments_of_an_answer(d, 1.4, 0.2, math.exp(0.3 * node))
                deviation = math.sqrt(n_learners * scatter + variance)
                summed += weight * norm.pdf(total, n_learners * chance, deviation)
            return summed * norm.pdf(d, prior.mean, prior.spread)

        mean, deviation = posterior(density, found.difficulty[place], found.order_error[place])
        assert found.difficulty[place] == pytest.approx(mean, abs=0.02 * deviation)
        assert found.order_error[place] == pytest.approx(deviation, rel=0.02)


def skipped_totals(right, answered, n_learners, covariance):
    return NoisyTotals(np.array(right), np.array(answered), np.array(covariance), n_learners)


def test_numbers_of_answers_are_integrated_out():
    """A grid over the true number of answers and the difficulty, for the rates that all items make most likely."""
    covariance = [[90.0, 45.0], [45.0, 100.0]]
    totals = skipped_totals([30.0, 8.0, -20.0, 75.0], [52.0, 31.0, -15.0, 90.0], 120, covariance)
    prior = Prior(0.0, 1.5)
    found = estimate_difficulties(totals, 1.0, prior)
    rates = (np.arange(1, 1200) - 0.5) / 1199
    laws = [
        (mean, size)
        for mean in expit(np.linspace(-3, 3, 61))
        for size in np.geomspace(1.5, 200, 30)
        if min(mean, 1 - mean) * size >= 0.5
    ]

    def evidence(law):
        weight = beta.pdf(rates, law[0] * law[1], (1 - law[0]) * law[1])
        return sum(math.log(weight @ norm.pdf(one, 120 * rates, 10.0)) for one in totals.answered)

    mean, size = max(laws, key=evidence)
    weight = beta.pdf(rates, mean * size, (1 - mean) * size)
    grid = np.linspace(-9, 9, 601)
    chance, scatter = np.array([moments_of_an_answer(d) for d in grid]).T
    for place in range(4):
        n = 120 * rates[:, None]
        noise = np.array([totals.correct[place] - n * chance, totals.answered[place] - n + 0 * chance])
        # Who answers is drawn from all learners.
        own = n * (scatter + (1 - n / 120) * (chance * (1 - chance) - scatter))
        # The joint normal density of (right, answered) given the number of answers.
        a, b, c = covariance[0][0] + own, covariance[0][1], covariance[1][1]
        determinant = a * c - b * b
        square = (c * noise[0] ** 2 - 2 * b * noise[0] * noise[1] + a * noise[1] ** 2) / determinant
        likelihood = weight @ (np.exp(-0.5 * square) / np.sqrt(determinant))
        density = likelihood * norm.pdf(grid, prior.mean, prior.spread)
        middle = density @ grid / density.sum()
        deviation = math.sqrt(density @ grid**2 / density.sum() - middle**2)
        assert found.difficulty[place] == pytest.approx(middle, abs=0.05 * deviation)
        assert found.order_error[place] == pytest.approx(deviation, rel=0.05)


def test_the_spread_of_abilities_is_integrated_out():
    """Items and agreement at each spread, one by one; only the weights of the spreads are summed here."""
    n_learners, variance = 300, 60.0
    measured = NoisyAgreement(total=110.0, variance=40.0, fewest=5)
    totals = replace(
        noisy_totals([250.0, 190.0, 150.0, 90.0, 40.0], n_learners, variance), agreement=measured
    )
    prior = Prior(0.0, 1.5)
    found = estimate_difficulties(totals, None, prior)
    grid = np.linspace(-9, 9, 901)
    logs, means, squares, sds = [], [], [], np.geomspace(0.3, 5.0, 60)
    for sd in sds:
        chance, scatter = np.array([moments_of_an_answer(d, sd) for d in grid]).T
        spread = np.sqrt(n_learners * scatter + variance)
        likelihood = norm.pdf(totals.correct[:, None], n_learners * chance, spread) * norm.pdf(grid, 0.0, 1.5)
        each = likelihood.sum(axis=1)
        mean = likelihood @ grid / each
        doubt = likelihood @ grid**2 / each - mean**2
        expected, scatter_of_agreement = expected_agreement(
            mean,
            doubt,
            float(sd),
            guess=np.zeros(5),
            answers=np.full(5, 300.0),
            n_learners=n_learners,
            fewest=5,
        )
        logs.append(
            np.log(each).sum()
            + norm.logpdf(measured.total, expected, math.sqrt(scatter_of_agreement + measured.variance))
            + norm.logpdf(math.log(sd / 1.5), 0.0, 0.6)
        )
        means.append(mean)
        squares.append(doubt + mean**2 + sd**2 / n_learners)
    weight = np.exp(np.array(logs) - max(logs))
    weight /= weight.sum()
    assert found.ability_sd == pytest.approx(math.exp(weight @ np.log(sds)), rel=0.03)
    mean = weight @ np.array(means)
    assert found.difficulty == pytest.approx(mean, abs=0.03)
    assert found.standard_error == pytest.approx(np.sqrt(weight @ np.array(squares) - mean**2), rel=0.06)


def test_the_noise_of_the_cube_is_integrated_out_with_its_radius():
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
    # The standard errors are about 1. Here totals are binomial; in the estimator normal, and less scattered by what
    # abilities of the same learners have in common.
    assert np.abs(found.difficulty - mean).max() < 0.12
    assert np.corrcoef(found.difficulty, mean)[0, 1] > 0.998


def test_mean_and_spread_are_integrated_out():
    """A grid over all of it, without any zooming in."""
    totals = noisy_totals([100.0, 84.0, 66.0, 20.0, 11.0], 120, 60.0)
    found = estimate_difficulties(totals)
    grid = np.linspace(-15, 15, 3001)
    chance = np.asarray(chance_curve(1.0)(grid))
    # Minus the slope of the chance is the mean variance of an answer given the learner.
    spread = np.sqrt(120 * -chance_curve(1.0)(grid, 1) + 60.0)
    likelihood = norm.pdf(totals.correct[:, None], 120 * chance, spread)
    weights, means, squares = [], [], []
    for mean in np.linspace(-6, 6, 61):
        for scale in np.geomspace(0.2, 8.0, 60):
            prior = norm.pdf(grid, mean, scale)
            evidence = likelihood @ prior
            hyper = norm.logpdf(
                mean, 0, 2.5 * math.sqrt((1 + 1 / 1.702**2) / (1 + 1.5**2 / 1.702**2))
            ) + norm.logpdf(math.log(scale), math.log(1.5), 0.5)
            weights.append(np.log(evidence).sum() + hyper)
            means.append((likelihood * grid) @ prior / evidence)
            squares.append((likelihood * grid**2) @ prior / evidence)
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    mean = weight @ np.array(means)
    assert found.difficulty == pytest.approx(mean, abs=0.05)
    assert found.order_error == pytest.approx(np.sqrt(weight @ np.array(squares) - mean**2), rel=0.08)


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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("agreement", [0.2, 0.37, 0.99])
def test_precise_totals_of_a_million_learners_give_no_warning(agreement):
    """Most spreads of abilities have no weight at all then."""
    correct = np.array([250.0, 190.0, 150.0, 90.0, 40.0]) / 300 * 1_000_000
    measured = NoisyAgreement(total=agreement * 1_000_000, variance=40.0, fewest=5)
    found = estimate_difficulties(
        replace(noisy_totals(correct, 1_000_000, 40.0), agreement=measured), None, Prior(0.0, 1.5)
    )
    assert np.isfinite([found.difficulty, found.standard_error]).all()
    assert 0.3 <= found.ability_sd <= 5.0 + 1e-9


@pytest.mark.parametrize("total", [-1e6, 0.0, 120.0, 1e6])
def test_impossible_totals_have_finite_difficulties(total):
    found = estimate_difficulties(noisy_totals([total, 60.0], 120, 154.0))
    assert np.isfinite(found.difficulty).all()
    assert np.isfinite(found.standard_error).all()
    assert (found.chance >= 0).all()
    assert (found.chance <= 1).all()
