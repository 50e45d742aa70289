"""The likelihood of noisy totals against sums and integrals that know nothing of its closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import erfcx
from scipy.stats import norm

from understudy.core.privacy.noise import seeded_noise
from understudy.exams.estimators.noise_likelihood import (
    _tail,
    agreement_log_likelihood,
    answers_log_likelihood,
    log_likelihood,
)
from understudy.exams.mechanisms.totals import NoisyTotals, cube, hexagon, laplace_right_and_wrong

pytestmark = pytest.mark.oracle

MEASUREMENTS = {
    "cube": cube(8, 1.0),
    "hexagon": hexagon(8, 1.0),
    "laplace": laplace_right_and_wrong(5, 1.0),
}


def density(kind, right, answered, radius, scale):
    """Of the noise (right, answered), at a number or an array of them."""
    if kind == "laplace":
        return np.exp(-(np.abs(right) + np.abs(answered - right)) / scale) / (4.0 * scale**2)
    if kind == "cube":
        return np.where(np.abs(right) <= radius, 1.0 / (2.0 * radius), 0.0)
    norm_of = np.maximum(np.maximum(np.abs(right), np.abs(answered)), np.abs(right - answered))
    return np.where(norm_of <= radius, 1.0 / (3.0 * radius**2), 0.0)


def totals_of(kind, correct, answered, n_learners=60):
    measurement = MEASUREMENTS[kind]
    return NoisyTotals(
        np.array(correct), np.array(answered), measurement.covariance, n_learners, law=measurement.law
    )


@pytest.mark.parametrize("kind", MEASUREMENTS)
@pytest.mark.parametrize(
    "right", [-3.0, 14.0, 29.0], ids=["below all that is possible", "likely", "too many"]
)
def test_noise_is_summed_out(kind, right):
    """One item with given numbers of answers: the noise against the normal law of right answers."""
    totals = totals_of(kind, [right], [60.0 if kind == "cube" else 25.0])
    numbers = np.array([[60.0]]) if kind == "cube" else np.array([[19.0, 28.0, 33.0]])
    chance, scatter, radius = np.array([[0.1, 0.4, 0.9]]), np.array([[0.07, 0.2, 0.08]]), 11.0
    step = np.ones_like(numbers)
    log_weight = np.zeros_like(numbers)
    if kind != "cube":
        log_weight = answers_log_likelihood(totals, numbers, radius, step)
    found = log_likelihood(totals, numbers, log_weight, radius, chance, scatter)[0]
    scale = math.sqrt(totals.covariance[0, 0] / 2.0)
    grid = np.linspace(-80.0, 140.0, 400_001)
    for j in range(3):
        expected = 0.0
        for n in numbers[0]:
            between = chance[0, j] * (1 - chance[0, j]) - scatter[0, j]
            deviation = math.sqrt(n * (scatter[0, j] + (1 - n / 60.0) * between))
            noise = density(kind, right - grid, totals.answered[0] - n, radius, scale)
            expected += float(
                (noise * norm.pdf(grid, n * chance[0, j], deviation)).sum() * (grid[1] - grid[0])
            )
        if expected > 1e-12:
            assert found[j] == pytest.approx(math.log(expected), abs=2e-3)
        else:
            assert found[j] < -20


@pytest.mark.parametrize("start", [-300.0, -4.0, 0.0, 3.0, 12.0])
@pytest.mark.parametrize("steep", [0.01, 1.0, 6.0, 250.0])
def test_exponential_tails_are_finite_and_exact(start, steep):
    exact = 0.5 * erfcx((start + steep) / math.sqrt(2.0))
    # e^(t^2/2) Q(t) overflows far below 0; what is asked for does not.
    if math.isinf(exact):
        assert _tail(start, steep) == pytest.approx(math.exp(0.5 * steep**2 + steep * start))
    else:
        assert _tail(start, steep) == pytest.approx(math.exp(-0.5 * start**2) * exact, rel=1e-5)


@pytest.mark.parametrize("kind", MEASUREMENTS)
def test_the_cells_of_agreement_are_judged_by_the_law_of_their_noise(kind):
    measurement = replace(MEASUREMENTS[kind], agreement_cells=2)
    totals = totals_of(kind, [20.0], [60.0])
    cells = (
        np.array([[31.0, 60.0], [24.0, 60.0]]) if kind == "cube" else np.array([[31.0, 63.0], [24.0, 55.0]])
    )
    totals = replace(totals, agreement=measurement.agreement_of(cells, 60, 4))
    radius, scale = 11.0, math.sqrt(totals.covariance[0, 0] / 2.0)
    values = []
    for mean in (15.0, 26.0, 36.0):
        grid = np.linspace(mean - 30.0, mean + 30.0, 200_001)
        noise = np.prod([density(kind, c - grid, a - 60.0, radius, scale) for c, a in cells], axis=0)
        exact = math.log((noise * norm.pdf(grid, mean, 3.0)).sum() * (grid[1] - grid[0]))
        values.append(agreement_log_likelihood(totals, mean, 9.0, radius) - exact)
    # A constant that is the same for every mean does not matter.
    assert values == pytest.approx([values[0]] * 3, abs=0.01)


@pytest.mark.parametrize("kind", MEASUREMENTS)
def test_noise_that_is_simulated_has_the_moments_of_the_mechanism(kind):
    measurement = MEASUREMENTS[kind]
    rng = np.random.default_rng(4)
    drawn = np.concatenate([measurement.law.draw(measurement.covariance, 8, rng) for _ in range(4000)])
    assert np.cov(drawn.T) == pytest.approx(measurement.covariance, rel=0.06, abs=0.5)
    cells = np.zeros((8, 2), dtype=np.int64) if kind != "cube" else np.zeros(8, dtype=np.int64)
    noise = seeded_noise(rng)
    real = np.concatenate(
        [np.asarray(measurement.add_noise(cells, noise)).reshape(8, -1) for _ in range(1500)]
    )
    # The largest deviations tell the shape of the law apart from another one of the same variance.
    first = np.abs(drawn[:, 0])
    assert np.quantile(np.abs(real[:, 0]), [0.5, 0.9, 0.99]) == pytest.approx(
        np.quantile(first, [0.5, 0.9, 0.99]), rel=0.08
    )
