"""Schools on one scale: against a likelihood written down as one big matrix, and on schools of known difficulties."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from understudy.exams.estimators.linking import Found, _Cells, link_schools, without_prior
from understudy.exams.estimators.noisy_totals import Prior


def make_found(rng, n_items=12, n_schools=4, between=0.4, missing=0.3):
    """Normal estimates of known variances: what the estimator takes for granted."""
    truth, shift = rng.normal(0, 1.5, n_items), rng.normal(0, 0.6, n_schools)
    variance = rng.uniform(0.01, 0.2, (n_items, n_schools))
    stretch = 0.1 * truth[:, None] * np.ones(n_schools)
    sizes = rng.integers(100, 900, n_schools).astype(float)
    shift -= sizes @ shift / sizes.sum()
    y = truth[:, None] + shift + stretch * rng.normal(size=n_schools)
    y = y + rng.normal(0, np.sqrt(variance + between**2))
    y[rng.random(y.shape) < missing] = np.nan
    y[:4] = np.where(np.isnan(y[:4]), truth[:4, None] + shift, y[:4])
    return Found(y, variance, stretch, sizes), truth, shift


def brute_force(found, tau):
    """Restricted log-likelihood, difficulties and their variances from whole matrices (Harville 1974)."""
    item, school = np.nonzero(np.isfinite(found.difficulty))
    y = found.difficulty[item, school]
    n_items, n_schools = found.difficulty.shape
    covariance = np.diag(found.variance[item, school] + tau**2)
    t = found.stretch[item, school]
    covariance += np.where(school[:, None] == school, t[:, None] * t, 0.0)
    # Shifts with the mean 0 over learners: the last one follows from the others.
    design = np.zeros((len(y), n_items + n_schools - 1))
    design[np.arange(len(y)), item] = 1.0
    for column in range(n_schools - 1):
        design[school == column, n_items + column] = 1.0
        design[school == n_schools - 1, n_items + column] = (
            -found.n_learners[column] / found.n_learners[n_schools - 1]
        )
    inverse = np.linalg.inv(covariance)
    information = design.T @ inverse @ design
    effects = np.linalg.solve(information, design.T @ inverse @ y)
    away = y - design @ effects
    value = -0.5 * (
        np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(information)[1] + away @ inverse @ away
    )
    return value, effects[:n_items], np.diag(np.linalg.inv(information))[:n_items]


@pytest.mark.oracle
def test_likelihood_difficulties_and_errors_are_those_of_whole_matrices():
    found, _, _ = make_found(np.random.default_rng(1))
    cells, n_items = _Cells.of(found), len(found.difficulty)
    reference, reference_fit = brute_force(found, 0.3), cells.at(np.full(n_items, 0.09))
    for tau in (0.0, 0.2, 0.8):
        value, difficulty, variance = brute_force(found, tau)
        fit = cells.at(np.full(n_items, tau**2))
        assert fit.log_likelihood - reference_fit.log_likelihood == pytest.approx(value - reference[0])
        assert fit.difficulty == pytest.approx(difficulty)
        assert fit.variance == pytest.approx(variance)


@pytest.mark.oracle
def test_the_deviation_between_schools_is_the_restricted_maximum():
    found, _, _ = make_found(np.random.default_rng(2))
    best = minimize_scalar(lambda tau: -brute_force(found, tau)[0], bounds=(0, 3), method="bounded")
    joint = link_schools(lambda places: found, np.zeros(found.difficulty.shape))
    assert not joint.misfit.flagged.any() or joint.between <= best.x
    assert joint.between == pytest.approx(best.x, abs=1e-3)


@pytest.mark.oracle
def test_leaving_an_item_out_is_fitting_without_it():
    found, _, _ = make_found(np.random.default_rng(3), missing=0.0)
    cells, n_items = _Cells.of(found), len(found.difficulty)
    fit = cells.at(np.full(n_items, 0.04))
    away, _ = fit.without(cells)
    rest = Found(found.difficulty[1:], found.variance[1:], found.stretch[1:], found.n_learners)
    other = _Cells.of(rest).at(np.full(n_items - 1, 0.04))
    # A school's stretch is not among the results: differences of items without stretch show its shifts alone.
    flat = Found(found.difficulty, found.variance, np.zeros_like(found.stretch), found.n_learners)
    cells = _Cells.of(flat)
    away, _ = cells.at(np.full(n_items, 0.04)).without(cells)
    rest = Found(flat.difficulty[1:], flat.variance[1:], flat.stretch[1:], flat.n_learners)
    other = _Cells.of(rest).at(np.full(n_items - 1, 0.04))
    assert away[0] == pytest.approx(flat.difficulty[0] - other.shift, abs=1e-6)


def test_a_posterior_without_its_prior_is_the_likelihood():
    y, v, prior = np.array([1.0, -2.0]), np.array([0.5, 0.1]), Prior(0.3, 1.2)
    variance = 1 / (1 / v + prior.spread**-2)
    mean = variance * (y / v + prior.mean * prior.spread**-2)
    found, alone = without_prior(mean, variance, prior)
    assert found == pytest.approx(y)
    assert alone == pytest.approx(v)
    assert np.isnan(without_prior(np.array([0.3]), np.array([1.44]), prior)[0]).all()


@pytest.mark.parametrize(("n_schools", "between"), [(2, 0.0), (2, 0.4), (5, 0.0), (5, 0.3)])
def test_intervals_hold_the_truth_and_misfit_is_rarely_a_false_alarm(n_schools, between):
    rng = np.random.default_rng(4)
    covered, alarms = [], 0
    for _ in range(60):
        found, truth, shift = make_found(rng, 15, n_schools, between)
        joint = link_schools(lambda places, found=found: found, np.zeros(found.difficulty.shape))
        covered.append(np.abs(joint.difficulty - truth) < 1.96 * joint.standard_error)
        covered.append(np.abs(joint.ability + shift) < 1.96 * joint.ability_error)
        alarms += bool(joint.misfit.flagged.any())
    assert 0.92 <= np.concatenate(covered).mean() <= 0.99
    if not between:
        # 5 % of 60 are 3; nine or more happen once in 500 times.
        assert alarms <= 8


def test_an_item_that_differs_in_one_school_is_named_and_does_not_move_the_others():
    rng = np.random.default_rng(5)
    found, truth, _shift = make_found(rng, 15, 4, 0.0, missing=0.0)
    found.difficulty[6, 2] += 3.0
    joint = link_schools(lambda places: found, np.zeros(found.difficulty.shape))
    assert np.argwhere(joint.misfit.flagged).tolist() == [[6, 2]]
    assert joint.misfit.deviation[6, 2] == pytest.approx(3.0, abs=1.0)
    assert joint.between < 0.3
    assert joint.standard_error[6] > 2 * np.median(joint.standard_error)
    assert np.abs(joint.difficulty[6] - truth[6]) < 1.96 * joint.standard_error[6]
