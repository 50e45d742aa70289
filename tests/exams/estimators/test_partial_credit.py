"""Partial credit and slopes: against girth, brute force, numerical derivatives, the Rasch model, and known truths."""

import girth
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from tests.exams.support.point_exams import simulate_points
from understudy.exams.estimators import partial_credit
from understudy.exams.estimators.credits import expected_share, filled_credits, log_chances
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.estimators.partial_credit import fit_partial_credit, half_points

MAXIMA = np.array([1, 2, 3, 4, 2])


def thresholds(rng, maxima=MAXIMA):
    return [np.sort(rng.normal(0, 1, most)) + rng.normal() for most in maxima]


@pytest.fixture
def answers():
    rng = np.random.default_rng(1)
    steps = simulate_points(rng.normal(0, 1.2, 300), thresholds(rng), rng)
    steps[rng.random(steps.shape) < 0.1] = -1
    return steps


@pytest.mark.oracle
@pytest.mark.parametrize("slopes", [False, True])
def test_derivatives_are_those_of_the_likelihood(answers, slopes, monkeypatch):
    seen = [partial_credit._seen(answers[:, i], most) for i, most in enumerate(MAXIMA)]
    model = partial_credit._Model.of(answers, seen, slopes=slopes)
    # The same nodes on both sides: their tiny error would be divided by the step.
    nodes = model._nodes(np.full(5, 3.0))
    monkeypatch.setattr(partial_credit._Model, "_nodes", lambda self, slope: nodes)
    point = np.random.default_rng(2).normal(0, 0.5, len(model.step) + model.slope_of.shape[1])
    _, gradient, information = model.evaluate(point)
    moves = 1e-5 * np.eye(len(point))
    ahead, behind = ([model.evaluate(point + sign * move) for move in moves] for sign in (1, -1))
    values = np.array([a[0] - b[0] for a, b in zip(ahead, behind, strict=True)]) / 2e-5
    gradients = np.array([a[1] - b[1] for a, b in zip(ahead, behind, strict=True)]) / 2e-5
    np.testing.assert_allclose(gradient, values, atol=1e-5)
    np.testing.assert_allclose(information, gradients, atol=1e-5)


@pytest.mark.oracle
def test_a_tiny_exam_is_fitted_as_by_brute_force():
    """The likelihood by adaptive integration over abilities, learner by learner, and a search without derivatives."""
    rng = np.random.default_rng(3)
    steps = simulate_points(rng.normal(0, 1, 25), [np.array([-0.5, 0.7]), np.array([0.2])], rng)
    fit = fit_partial_credit(steps, np.array([2, 1]))

    def minus_log_likelihood(point):
        costs, sd = ([0.0, point[0], point[1]], [0.0, point[2]]), np.exp(point[3])

        def likelihood(row, ability):
            product = norm.pdf(ability)
            for answer, cost in zip(row, costs, strict=True):
                terms = [np.exp(k * sd * ability - c) for k, c in enumerate(cost)]
                product *= terms[answer] / sum(terms)
            return product

        rows, sizes = np.unique(steps, axis=0, return_counts=True)
        return -sum(
            size * np.log(quad(lambda t, row=row: likelihood(row, t), -8, 8, epsrel=1e-7)[0])
            for row, size in zip(rows, sizes, strict=True)
        )

    start = [*fit.items[0].costs[1:], fit.items[1].costs[1], np.log(fit.sd)]
    assert minus_log_likelihood(start) == pytest.approx(-fit.log_likelihood, abs=1e-5)
    found = minimize(minus_log_likelihood, np.zeros(4), method="BFGS", options={"gtol": 1e-3})
    assert -fit.log_likelihood <= found.fun + 1e-6
    np.testing.assert_allclose(start, found.x, atol=5e-3)


@pytest.mark.oracle
def test_right_and_wrong_are_the_rasch_model(answers):
    right = np.where(answers < 0, -1, answers > 0).astype(np.int8)
    fit, rasch = fit_partial_credit(right, np.ones(5, dtype=int)), fit_marginal(right, sd=None)
    np.testing.assert_allclose([item.difficulty for item in fit.items], rasch.difficulty, atol=1e-5)
    np.testing.assert_allclose([item.standard_error for item in fit.items], rasch.standard_error, atol=1e-6)
    assert (fit.sd, fit.sd_error) == pytest.approx((rasch.sd, rasch.sd_error), abs=1e-5)
    assert fit.log_likelihood == pytest.approx(rasch.log_likelihood, abs=1e-6)


GIRTH = {"quadrature_n": 61, "quadrature_bounds": (-6, 6), "max_iteration": 200}


@pytest.mark.oracle
def test_slopes_are_those_of_girth():
    """Its pcm_mml has a discrimination per item (and stops at 1e-3); its twopl_mml is the two-parameter model."""
    rng = np.random.default_rng(4)
    steps = simulate_points(
        rng.normal(0, 1, 800), thresholds(rng), rng, slopes=np.array([0.7, 1.0, 1.4, 0.9, 1.2])
    )
    fit = fit_partial_credit(steps, MAXIMA, slopes=True)
    theirs = girth.pcm_mml(steps.T.astype(int), GIRTH)
    np.testing.assert_allclose([item.slope for item in fit.items], theirs["Discrimination"], atol=5e-3)
    for item, expected in zip(fit.items, theirs["Difficulty"], strict=True):
        np.testing.assert_allclose(item.thresholds, expected[np.isfinite(expected)], atol=0.02)
    right = (steps > 0).astype(np.int8)
    fit = fit_partial_credit(right, np.ones(5, dtype=int), slopes=True)
    theirs = girth.twopl_mml(right.T.astype(int), GIRTH)
    np.testing.assert_allclose([item.slope for item in fit.items], theirs["Discrimination"], atol=2e-3)
    np.testing.assert_allclose([item.difficulty for item in fit.items], theirs["Difficulty"], atol=2e-3)


@pytest.mark.parametrize("slopes", [False, True])
def test_intervals_hold_the_truth(slopes):
    """Of 30 exams, 95 % intervals of half-point abilities, and of slopes; 300 of them, so within 92 and 98.5 %."""
    rng = np.random.default_rng(5)
    maxima, held, slopes_held = np.array([1, 2, 4, 3, 1, 2, 5, 2, 1, 3]), [], []
    for _ in range(30):
        truth = thresholds(rng, maxima)
        slope = np.exp(rng.normal(0, 0.3, len(maxima))) if slopes else np.ones(len(maxima))
        sd = 1.0 if slopes else 1.3
        fit = fit_partial_credit(
            simulate_points(rng.normal(0, sd, 400), truth, rng, slopes=slope), maxima, slopes=slopes
        )
        for item, steps, a in zip(fit.items, truth, slope, strict=True):
            place = half_points(a * np.append(0.0, np.cumsum(steps)), a)
            held.append(abs(item.difficulty - place) < 1.96 * item.standard_error)
            slopes_held.append(abs(item.slope - a) <= 1.96 * item.slope_error)
    assert 0.92 <= np.mean(held) <= 0.985
    assert np.mean(slopes_held) >= 0.92 or not slopes


def test_numbers_of_points_that_no_learner_had_cost_infinitely_much_and_are_filled():
    rng = np.random.default_rng(6)
    steps = simulate_points(rng.normal(0, 1, 200), [np.array([-1.0, 0.0, 1.0]), np.array([0.0])], rng)
    steps[steps[:, 0] == 2, 0] = 3
    fit = fit_partial_credit(steps, np.array([3, 1]))
    assert np.isinf(fit.items[0].costs).tolist() == [False, False, True, False]
    credits = filled_credits(fit.items[0], fit.sd, 200)
    abilities = np.random.default_rng(7).normal(0, fit.sd, 100_000)
    shares = np.exp(log_chances(abilities - fit.items[0].difficulty, credits)).mean(axis=0)
    assert shares[2] * 200 == pytest.approx(0.5, rel=0.02)


def test_items_without_a_difference_are_left_out():
    steps = np.array([[2, 0, 1, -1, 2], [2, 0, 1, -1, 0], [2, 0, 1, -1, 1], [2, 0, 1, -1, 0]], dtype=np.int8)
    steps = np.column_stack([steps, [0, 1, 1, 0]]).astype(np.int8)
    fit = fit_partial_credit(steps, np.array([2, 2, 2, 2, 2, 1]))
    found = [item.difficulty for item in fit.items]
    assert found[0] == -np.inf
    assert found[1] == np.inf
    assert np.isnan(found[3])
    assert np.isfinite(found[4])
    assert np.isfinite(found[5])


def test_half_of_the_points_are_expected_at_the_difficulty():
    costs = np.array([0.0, -0.4, 0.9, 3.0])
    credits = half_points(costs) * np.arange(4) - costs
    assert expected_share(0.0, credits) == pytest.approx(0.5, abs=1e-9)
