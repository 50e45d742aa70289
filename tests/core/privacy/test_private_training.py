"""What private steps cost: the pair that dominates a step, and its composition, against independent numerics."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.stats import norm

from understudy.core.privacy.composition import mu_to_delta
from understudy.core.privacy.private_training import PrivateSteps, calibrated, replaced_delta
from understudy.errors import UsageError

DELTA = 1e-3


def epsilon_of(steps, delta=DELTA):
    return brentq(lambda e: steps.delta(e, 300) - delta, 1e-2, 30.0, xtol=1e-4)


# ---- one step: no two gradients are further apart than two opposite ones


def divergence(first, second, weight, rate, sigma):
    """The integral of the positive part of P(first) - weight P(second) over the plane."""
    axis = np.arange(-9.0, 9.0, 0.05) * max(sigma, 1.0)
    x, y = np.meshgrid(axis, axis)

    def density(centre):
        return np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * sigma**2))

    here, there, still = density(first), density(second), density((0.0, 0.0))
    apart = (1 - rate) * (1 - weight) * still + rate * here - weight * rate * there
    cell = (axis[1] - axis[0]) ** 2 / (2 * math.pi * sigma**2)
    return float(np.maximum(apart, 0).sum() * cell)


@pytest.mark.oracle
@pytest.mark.parametrize(("rate", "sigma"), [(0.1, 0.6), (0.5, 1.0), (0.9, 2.0)])
def test_two_opposite_gradients_are_the_worst_of_all_at_every_epsilon(rate, sigma):
    rng = np.random.default_rng(3)
    pairs = rng.normal(size=(12, 2, 2))
    pairs /= np.maximum(1.0, np.linalg.norm(pairs, axis=2, keepdims=True))
    for weight in (0.5, 1.0, 1.3, 3.0):
        worst = divergence((1, 0), (-1, 0), weight, rate, sigma)
        found = [divergence(g, h, weight, rate, sigma) for g, h in pairs]
        found += [
            divergence((1, 0), (0, 0), weight, rate, sigma),
            divergence((0, 0), (1, 0), weight, rate, sigma),
        ]
        assert max(found) <= worst + 1e-6
        assert worst == pytest.approx(one_step_delta(rate, sigma, math.log(weight)), abs=1e-4)


def one_step_delta(rate, sigma, epsilon):
    """P(1) against P(-1) on the line, where the likelihood ratio grows with x: a threshold is the best test."""

    def loss(x):
        return math.log((1 - rate + rate * ratio(x, 1.0)) / (1 - rate + rate * ratio(x, -1.0)))

    def ratio(x, centre):
        return math.exp((centre * x - centre**2 / 2) / sigma**2)

    cut = brentq(lambda x: loss(x) - epsilon, -40.0, 40.0)
    above = norm.sf(cut, [1.0, -1.0, 0.0], sigma)
    return (1 - rate) * above[2] * (1 - math.exp(epsilon)) + rate * (above[0] - math.exp(epsilon) * above[1])


# ---- many steps


def convolved_delta(rate, sigma, n_steps, epsilon, unit=2e-3):
    """delta of the product by Fourier transform of the losses of one step, each rounded to the nearest unit."""
    x = np.linspace(-12 * sigma - 2, 12 * sigma + 2, 400_001)
    still, up, down = (norm.pdf(x, centre, sigma) for centre in (0.0, 1.0, -1.0))
    first, second = (1 - rate) * still + rate * up, (1 - rate) * still + rate * down
    place = np.rint(np.log(first / second) / unit).astype(np.int64)
    n = 2**16
    mass = np.bincount(place % n, weights=first * (x[1] - x[0]), minlength=n)
    product = np.fft.irfft(np.fft.rfft(mass) ** n_steps, n)
    losses = np.fft.fftfreq(n, 1 / n) * unit
    return float((product * np.maximum(0.0, -np.expm1(epsilon - losses))).sum())


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("rate", "sigma", "n_steps", "epsilon"),
    [(0.5, 5.0, 20, 2.0), (0.1, 2.0, 60, 1.5), (0.02, 1.0, 200, 2.0), (0.5, 8.0, 1, 0.1)],
)
def test_many_steps_cost_what_a_convolution_of_their_losses_says(rate, sigma, n_steps, epsilon):
    exact = convolved_delta(rate, sigma, n_steps, epsilon)
    found = replaced_delta(rate, sigma, n_steps, epsilon)
    assert exact * (1 - 1e-3) <= found <= exact * 1.01
    if n_steps == 1:
        assert found == pytest.approx(one_step_delta(rate, sigma, epsilon), rel=1e-2)


def test_all_taking_part_doubles_mu():
    found = calibrated(3.0, DELTA, rate=1.0, n_steps=25, clip=1.0, n_parameters=300)
    delta = mu_to_delta(2 * math.sqrt(25) / found.noise_multiplier, 3.0)
    assert 0.95 * DELTA < delta <= DELTA
    # Hardly anybody left out is hardly less.
    assert replaced_delta(0.999, found.noise_multiplier, 25, 3.0) == pytest.approx(delta, rel=0.03)


@pytest.mark.parametrize(("rate", "n_steps"), [(0.1, 60), (0.5, 40), (1.0, 20)])
def test_noise_is_calibrated_to_the_epsilon(rate, n_steps):
    steps = calibrated(3.0, DELTA, rate, n_steps, clip=1.0, n_parameters=300)
    assert steps.delta(3.0, 300) <= DELTA
    assert 2.95 < epsilon_of(steps) <= 3.0


def by_way_of_zero(accountant, epsilon):
    """delta for replacing, when one learner leaves and another one comes: (2 e, (1 + exp(e)) d)-DP from (e, d)-DP."""
    return (1 + math.exp(epsilon / 2)) * accountant.get_delta(epsilon / 2)


@pytest.mark.parametrize(("rate", "n_steps"), [(0.1, 60), (0.3, 50), (0.5, 40)])
def test_replacing_at_once_costs_more_than_leaving_and_less_than_leaving_and_coming(rate, n_steps):
    steps = PrivateSteps(rate, n_steps, clip=1.0, noise_multiplier=5.0)
    epsilon = epsilon_of(steps)
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(5.0))
    losses = PLDAccountant(value_discretization_interval=1e-3).compose(event, n_steps)
    renyi = RdpAccountant([*range(2, 128), 160, 192, 256, 512]).compose(event, n_steps)
    assert losses.get_delta(epsilon) < 0.1 * DELTA
    assert DELTA < by_way_of_zero(losses, epsilon) < 4 * DELTA
    assert by_way_of_zero(losses, epsilon) < by_way_of_zero(renyi, epsilon)


def test_an_epsilon_that_no_noise_reaches_is_refused():
    with pytest.raises(UsageError, match="too small"):
        calibrated(1e-7, 1e-12, rate=1.0, n_steps=10, clip=1.0, n_parameters=300)
