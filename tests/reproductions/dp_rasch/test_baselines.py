"""The later fits: sensitivities by brute force, noise as stated, and what they estimate without noise."""

import math
from itertools import product

import numpy as np
import pytest

from reproductions.dp_rasch import baselines
from reproductions.dp_rasch.baselines import (
    GradientSettings,
    clipped_to_lattice,
    gradients,
    spectral,
)
from understudy.core.privacy import mechanisms
from understudy.core.privacy.composition import epsilon_for, mu_to_delta
from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.exams.estimators.conditional import fit_conditional
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam

METHODS = {"gradients": gradients, "spectral": spectral}


class Recorder:
    """Adds no noise and keeps what it was asked for."""

    secret = True

    def __init__(self):
        self.values, self.sigmas = [], []

    def discrete_gaussian(self, values, sigma):
        self.values.append(values.copy())
        self.sigmas.append(sigma)
        return values


@pytest.fixture
def sitting():
    return Exam(60, 8).simulate(np.random.default_rng(2))


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


def neighbours(rows, rng):
    """The same responses with one learner replaced by the one whose answers are all the other way."""
    other = rows.copy()
    chosen = rng.integers(len(rows))
    other[chosen] = np.where(rows[chosen] < 0, -1, 1 - rows[chosen])
    return Responses.from_matrix(rows), Responses.from_matrix(other)


# What is promised


def test_the_guarantee_is_the_one_asked_for(sitting, method):
    guarantee = method(sitting.responses, 2.0, os_noise()).guarantee
    assert (guarantee.epsilon, guarantee.delta) == (2.0, 1e-6)
    assert "discrete Gaussian" in str(guarantee)


def test_seeded_noise_promises_nothing(sitting, method):
    assert not method(sitting.responses, 2.0, seeded_noise(np.random.default_rng(0))).guarantee.formal


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0, 10.0])
def test_all_rounds_together_spend_what_is_stated(sitting, method, epsilon):
    """mu^2 adds up over rounds; the noise is never below what a continuous Gaussian would need."""
    noise = Recorder()
    method(sitting.responses, epsilon, noise)
    moved = {gradients: 2.0, spectral: math.sqrt(2 * 4 * 4)}[method] * baselines._FINENESS
    mu = math.sqrt(sum((moved / sigma) ** 2 for sigma in noise.sigmas))
    assert mu_to_delta(mu, epsilon) <= 1e-6
    # And it is not much above: 2 % less noise would be too little.
    assert mu_to_delta(mu * 1.02, epsilon) > 1e-6
    assert epsilon_for(mu**2 / 2, 1e-6) < epsilon * 1.25


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_one_learner_moves_what_is_noised_by_no_more_than_the_sensitivity(method, missing, monkeypatch):
    stated = []
    real = mechanisms.gaussian

    def spy(values, *, sensitivity, rho, noise):
        stated.append(sensitivity)
        return real(values, sensitivity=sensitivity, rho=rho, noise=noise)

    monkeypatch.setattr(mechanisms, "gaussian", spy)
    rng = np.random.default_rng(4)
    largest = 0.0
    for _ in range(20):
        rows = Exam(12, 7, missing=missing).simulate(rng).responses.correct
        recorders = []
        for responses in neighbours(rows, rng):
            recorders.append(Recorder())
            method(responses, 1.0, recorders[-1])
        # Only the first round starts from the same place.
        moved = np.linalg.norm(recorders[0].values[0] - recorders[1].values[0])
        largest = max(largest, moved)
    assert 0.7 * stated[0] < largest <= stated[0]


@pytest.mark.parametrize("n_items", [2, 3, 4, 5, 6])
def test_the_sensitivity_of_pairwise_counts_is_attained_and_never_exceeded(n_items):
    rows = np.array(list(product((0, 1), repeat=n_items)))
    counts = np.einsum("ni,nj->nij", rows, 1 - rows).reshape(len(rows), -1)
    largest = max(np.linalg.norm(a - b) for a in counts for b in counts)
    noise = Recorder()
    guarantee = spectral(Responses.from_matrix(rows), 1.0, noise).guarantee
    # sigma = sensitivity / sqrt(2 rho), in units of the lattice
    assert noise.sigmas[0] * math.sqrt(2 * guarantee.rho) / baselines._FINENESS == pytest.approx(largest)


def test_fewer_pairs_need_less_noise(sitting):
    chain = np.eye(8, k=1, dtype=bool)
    some, every = Recorder(), Recorder()
    spectral(sitting.responses, 1.0, some, pairs=chain)
    spectral(sitting.responses, 1.0, every)
    assert (some.values[0].size, every.values[0].size) == (14, 56)
    assert some.sigmas[0] / every.sigmas[0] == pytest.approx(math.sqrt(7 / 16), rel=1e-3)


def test_every_count_is_noised_also_one_of_zero():
    noise = Recorder()
    spectral(Responses.from_matrix(np.ones((5, 4))), 1.0, noise)
    assert noise.values[0].size == 12


def test_pairs_that_leave_an_item_out_are_refused(sitting):
    with pytest.raises(ValueError, match="connect"):
        spectral(sitting.responses, 1.0, Recorder(), pairs=np.zeros((8, 8), dtype=bool))


def test_clipped_rows_are_never_too_long():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 6)) * 10 ** rng.uniform(-3, 3, (20_000, 1))
    rows[0] = 0
    lattice = clipped_to_lattice(rows, 1.5, 1024 / 1.5)
    assert (lattice**2).sum(axis=1).max() <= 1024**2
    # Rounding towards zero costs less than one unit a cell; directions stay.
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = rows * np.minimum(1, 1.5 / np.maximum(length, 1e-300)) * 1024 / 1.5
    assert np.abs(lattice - wanted).max() < 1 + 1e-6
    assert (np.abs(lattice) <= np.abs(wanted) + 1e-6).all()


# What is estimated


def test_gradients_without_noise_or_clipping_give_the_marginal_fit():
    rows = Exam(400, 8, difficulty_sd=1.0, missing=0.2).simulate(np.random.default_rng(1)).responses
    settings = GradientSettings(n_rounds=60, clip=3.0, step=1.0, difficulty_sd=1e3, averaged=0.01)
    fit = gradients(rows, 1.0, Recorder(), settings=settings)
    # Rounding towards zero per learner leaves a bias below one unit of 3/1024.
    np.testing.assert_allclose(fit.difficulty, fit_marginal(rows.correct).difficulty, atol=0.03)


def test_spectral_without_noise_is_consistent():
    sitting = Exam(50_000, 8, difficulty_sd=1.0).simulate(np.random.default_rng(1))
    fit = spectral(sitting.responses, 1.0, Recorder())
    np.testing.assert_allclose(fit.difficulty, sitting.difficulty - sitting.difficulty.mean(), atol=0.08)
    best = fit_conditional(sitting.responses.correct).difficulty
    np.testing.assert_allclose(fit.difficulty, best, atol=0.05)


def test_two_items_have_the_closed_form():
    """The chain over two items rests in proportion to the counts that lead there."""
    rows = Responses.from_matrix([[1, 0]] * 3 + [[0, 1]] * 8 + [[1, 1]])
    fit = spectral(rows, 1.0, Recorder(), smoothing=0.0)
    np.testing.assert_allclose(fit.difficulty, np.array([1, -1]) * np.log(8 / 3) / 2)


def test_with_a_large_epsilon_noise_does_not_matter(sitting, method):
    noisy = method(sitting.responses, 500.0, seeded_noise(np.random.default_rng(0))).difficulty
    assert np.corrcoef(noisy, method(sitting.responses, 500.0, Recorder()).difficulty)[0, 1] > 0.99


def test_difficulties_are_finite_whatever_the_responses(method):
    for rows in (np.ones((3, 4)), np.zeros((3, 4)), -np.ones((3, 4)), np.eye(1, 4)):
        fit = method(Responses.from_matrix(rows), 1.0, seeded_noise(np.random.default_rng(0)))
        assert np.isfinite(fit.difficulty).all()


def test_they_find_the_difficulties_of_a_class_at_a_moderate_epsilon(method):
    """The seed's simulation at epsilon 5: means of 0.98 and 0.95 over 50 runs of 120 learners."""
    rng = np.random.default_rng(9)
    found = []
    for _ in range(10):
        sitting = Exam(120).simulate(rng)
        difficulty = method(sitting.responses, 5.0, seeded_noise(rng)).difficulty
        found.append(np.corrcoef(difficulty, sitting.difficulty)[0, 1])
    assert np.mean(found) > {gradients: 0.96, spectral: 0.92}[method]


def test_settings_are_those_of_the_nearest_epsilon():
    assert GradientSettings.tuned(0.1) == GradientSettings.tuned(1.0) == GradientSettings.tuned(2.0)
    assert GradientSettings.tuned(5.0) == GradientSettings.tuned(6.0)
    assert GradientSettings.tuned(8.0) == GradientSettings.tuned(100.0)
