"""Joint, conditional and marginal fits against scikit-learn, girth, scipy's optimisers and enumeration."""

from fractions import Fraction
from itertools import product

import girth
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression

from understudy.exams.estimators import conditional, marginal
from understudy.exams.estimators.conditional import fit_conditional
from understudy.exams.estimators.joint import estimate_ability, fit_joint
from understudy.exams.estimators.marginal import fit_marginal
from understudy.exams.simulate import Exam

pytestmark = pytest.mark.oracle

SHAPES = {
    "complete": Exam(60, 6, difficulty_sd=1.0),
    "missing": Exam(80, 5, difficulty_sd=1.0, missing=0.3),
    "two items": Exam(30, 2, difficulty_sd=1.0),
    "spread": Exam(300, 6, ability_sd=2.0, difficulty_sd=1.5),
}


@pytest.fixture(params=SHAPES)
def correct(request):
    return SHAPES[request.param].simulate(np.random.default_rng(5)).responses.correct


# Joint


@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_joint_is_scikit_learns_logistic_regression(correct, penalty):
    n_learners, n_items = correct.shape
    learner, item = np.nonzero(correct >= 0)
    design = np.zeros((len(learner), n_learners + n_items))
    design[np.arange(len(learner)), learner] = 1
    design[np.arange(len(learner)), n_learners + item] = -1
    model = LogisticRegression(
        C=1 / penalty, fit_intercept=False, tol=1e-12, solver="newton-cholesky", max_iter=1000
    )
    expected = model.fit(design, correct[learner, item]).coef_[0]
    right = correct > 0
    fit = fit_joint(right.sum(axis=1), right.sum(axis=0), penalty=penalty, mask=correct >= 0)
    np.testing.assert_allclose(fit.ability, expected[:n_learners], atol=1e-5)
    np.testing.assert_allclose(fit.difficulty, expected[n_learners:], atol=1e-5)


def test_joint_with_noise_and_tilt_minimises_equation_6():
    rng = np.random.default_rng(2)
    n_learners, n_items, penalty = 7, 4, 0.1
    right_by_learner, right_by_item = rng.normal(2, 5, n_learners), rng.normal(3, 5, n_items)
    tilt = rng.normal(0, 5, n_items)

    def objective(point):
        ability, difficulty = point[:n_learners], point[n_learners:]
        return (
            np.logaddexp(0, ability[:, None] - difficulty).sum()
            + difficulty @ (right_by_item + tilt)
            - ability @ right_by_learner
            + penalty / 2 * point @ point
        )

    found = minimize(objective, np.zeros(n_learners + n_items), method="BFGS", options={"gtol": 1e-8})
    fit = fit_joint(right_by_learner, right_by_item, penalty=penalty, tilt=tilt)
    # BFGS with numerical derivatives stops a little early; the last line says who is closer.
    np.testing.assert_allclose(np.r_[fit.ability, fit.difficulty], found.x, atol=2e-3)
    assert objective(np.r_[fit.ability, fit.difficulty]) <= found.fun + 1e-9


def test_abilities_given_difficulties_minimise_their_part_of_equation_6(correct):
    difficulty = np.random.default_rng(1).normal(0, 2, correct.shape[1])
    fitted = estimate_ability(correct, difficulty, penalty=0.01)
    for row, ability in list(zip(correct, fitted, strict=True))[:20]:
        kept = row >= 0

        def objective(x, row=row, kept=kept):
            eta = x[0] - difficulty[kept]
            return np.logaddexp(0, eta).sum() - x[0] * row[kept].sum() + 0.005 * x[0] ** 2

        found = minimize(objective, [0.0], method="BFGS", options={"gtol": 1e-9})
        assert ability == pytest.approx(found.x[0], abs=2e-3)
        assert objective([ability]) <= found.fun + 1e-10


# Conditional


def enumerated_log_likelihood(correct, difficulty):
    """The conditional likelihood by listing all patterns with a learner's score."""
    total = 0.0
    for row in correct:
        kept = np.flatnonzero(row >= 0)
        weights = [
            np.exp(-np.dot(pattern, difficulty[kept]))
            for pattern in product((0, 1), repeat=len(kept))
            if sum(pattern) == row[kept].sum()
        ]
        total += -row[kept] @ difficulty[kept] - np.log(sum(weights))
    return total


def gamma(values, order):
    """The elementary symmetric function, in exact fractions."""
    row = [Fraction(1)] + [Fraction(0)] * order
    for value in values:
        for r in range(order, 0, -1):
            row[r] += value * row[r - 1]
    return row[order]


def test_conditional_likelihood_is_the_enumerated_one(correct):
    difficulty = np.random.default_rng(3).normal(0, 2, correct.shape[1])
    value, gradient, information = conditional.log_likelihood(correct, difficulty)
    assert value == pytest.approx(enumerated_log_likelihood(correct, difficulty), rel=1e-12)
    numerical = approx_fprime(difficulty, lambda d: conditional.log_likelihood(correct, d)[0], 1e-6)
    np.testing.assert_allclose(gradient, numerical, atol=1e-3)
    numerical = -approx_fprime(difficulty, lambda d: conditional.log_likelihood(correct, d)[1], 1e-6)
    np.testing.assert_allclose(information, numerical, atol=1e-3)


def test_conditional_fit_maximises_the_enumerated_likelihood(correct):
    small = correct[:40]
    fit = fit_conditional(small)
    found = minimize(
        lambda d: -enumerated_log_likelihood(small, d),
        np.zeros(small.shape[1]),
        method="BFGS",
        options={"gtol": 1e-5},
    )
    np.testing.assert_allclose(fit.difficulty, found.x - found.x.mean(), atol=1e-3)
    assert fit.log_likelihood == pytest.approx(-found.fun, abs=1e-6)


def test_conditional_chances_keep_their_digits_among_extreme_items():
    """Difficulties from -12 to 12: against exact fractions of integers."""
    powers = [-17, -9, -3, 0, 0, 4, 10, 17]
    n_items = len(powers)
    difficulty = np.log(2.0) * np.array(powers)
    easiness = [Fraction(2) ** -power for power in powers]

    for score in range(1, n_items):
        rows = np.zeros((1, n_items), dtype=np.int8)
        rows[0, :score] = 1
        _, gradient, information = conditional.log_likelihood(rows, difficulty)
        for i in range(n_items):
            others = easiness[:i] + easiness[i + 1 :]
            chance = easiness[i] * gamma(others, score - 1) / gamma(easiness, score)
            assert gradient[i] + rows[0, i] == pytest.approx(float(chance), rel=1e-9)
            assert information[i, i] == pytest.approx(float(chance * (1 - chance)), rel=1e-8)


@pytest.mark.parametrize("apart", [0.0, 1e-9, 5e-5, 1.5e-4, 1e-2])
def test_conditional_covariances_of_tied_and_nearly_tied_items_are_exact(apart):
    """Against exact fractions: pairs of items, three of one difficulty, and a step of `apart` between neighbours."""
    difficulty = np.array([-4.0, -1.0, -1.0 + apart, 0.3, 0.3, 0.3, 0.3 + apart, 2.0, 2.0 + apart, 6.0])
    easiness = [Fraction(float(np.exp(-d))) for d in difficulty]
    for score in (1, 4, 9):
        rows = np.zeros((1, len(difficulty)), dtype=np.int8)
        rows[0, :score] = 1
        _, _, information = conditional.log_likelihood(rows, difficulty)
        whole = gamma(easiness, score)
        chance = [
            value * gamma(easiness[:i] + easiness[i + 1 :], score - 1) / whole
            for i, value in enumerate(easiness)
        ]
        for i in range(len(difficulty)):
            for j in range(i):
                others = [value for k, value in enumerate(easiness) if k not in (i, j)]
                both = easiness[i] * easiness[j] * gamma(others, score - 2) / whole if score > 1 else 0
                assert information[i, j] == pytest.approx(float(both - chance[i] * chance[j]), rel=1e-8)
                assert information[i, j] == information[j, i]


def test_conditional_fit_of_sparse_answers_is_at_the_optimum():
    """Many patterns and many ties: the gradient vanishes by exact fractions, and standard errors are those."""
    rng = np.random.default_rng(4)
    correct = (rng.random((60, 30)) < 0.6).astype(np.int8)
    correct[rng.random(correct.shape) < 0.7] = -1
    fit = fit_conditional(correct)
    kept = np.isfinite(fit.difficulty)
    assert kept.sum() > 25
    rows = correct[:, kept]
    easiness = [Fraction(float(np.exp(-d))) for d in fit.difficulty[kept]]
    gradient = np.zeros(kept.sum())
    for row in rows:
        own = np.flatnonzero(row >= 0)
        values, score = [easiness[i] for i in own], int(row[own].sum())
        for k, i in enumerate(own):
            others = values[:k] + values[k + 1 :]
            chance = values[k] * gamma(others, score - 1) / gamma(values, score) if score else 0
            gradient[i] += float(chance) - row[i]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    _, _, information = conditional.log_likelihood(rows, fit.difficulty[kept])
    errors = np.sqrt(np.diag(np.linalg.pinv(information, rcond=1e-10, hermitian=True)))
    np.testing.assert_allclose(fit.standard_error[kept], errors, rtol=1e-6)


def test_conditional_standard_errors_are_the_spread_of_estimates():
    rng = np.random.default_rng(8)
    ability, difficulty = rng.normal(0, 1, 400), np.linspace(-1.5, 1.5, 7)
    chance = expit(ability[:, None] - difficulty)
    fits = [fit_conditional((rng.random(chance.shape) < chance).astype(np.int8)) for _ in range(300)]
    spread = np.std([fit.difficulty for fit in fits], axis=0)
    stated = np.mean([fit.standard_error for fit in fits], axis=0)
    # 300 repetitions know a standard deviation to 4 %; four of these.
    np.testing.assert_allclose(spread, stated, rtol=0.17)


def test_conditional_fit_is_girths():
    correct = SHAPES["spread"].simulate(np.random.default_rng(1)).responses.correct
    expected = girth.rasch_conditional(correct.T.astype(int))["Difficulty"]
    np.testing.assert_allclose(fit_conditional(correct).difficulty, expected, atol=5e-3)


# Marginal


def integrated_log_likelihood(correct, difficulty, sd):
    """The marginal likelihood with an adaptive integral for every learner."""
    total = 0.0
    for row in correct:
        kept = row >= 0

        def density(t, row=row, kept=kept):
            eta = t - difficulty[kept]
            answers = np.where(row[kept] == 1, log_expit(eta), log_expit(-eta)).sum()
            return np.exp(answers - (t / sd) ** 2 / 2) / (sd * np.sqrt(2 * np.pi))

        total += np.log(quad(density, -9 * sd, 9 * sd, epsabs=0, epsrel=1e-10, limit=200)[0])
    return total


@pytest.mark.parametrize("sd", [0.3, 1.0, 3.0])
def test_marginal_likelihood_is_the_integral(correct, sd):
    small = correct[:25]
    difficulty = np.random.default_rng(3).normal(0, 2, correct.shape[1])
    value, gradient, information = marginal.log_likelihood(small, difficulty, sd)
    assert value == pytest.approx(integrated_log_likelihood(small, difficulty, sd), rel=1e-8)
    point = np.append(difficulty, np.log(sd))

    def at(p):
        return marginal.log_likelihood(small, p[:-1], np.exp(p[-1]))

    np.testing.assert_allclose(gradient, approx_fprime(point, lambda p: at(p)[0], 1e-6), atol=1e-3)
    np.testing.assert_allclose(information, -approx_fprime(point, lambda p: at(p)[1], 1e-6), atol=1e-3)


def test_marginal_likelihood_of_sparse_answers_is_a_plain_sum_over_a_fine_grid():
    """From one answer of a learner to two hundred: each posterior has another width."""
    rng = np.random.default_rng(6)
    n_items, sd = 200, 1.7
    correct = (rng.random((40, n_items)) < 0.7).astype(np.int8)
    for row, n_answers in zip(correct, np.geomspace(1, n_items, len(correct)).astype(int), strict=True):
        row[rng.permutation(n_items)[n_answers:]] = -1
    difficulty = rng.normal(0, 1.5, n_items)
    nodes = np.linspace(-12 * sd, 12 * sd, 8001)
    log_prior = -0.5 * (nodes / sd) ** 2
    log_prior -= np.log(np.exp(log_prior).sum())
    eta = nodes[:, None] - difficulty
    log_right, log_wrong, chance = -np.logaddexp(0, -eta), -np.logaddexp(0, eta), expit(eta)
    value, gradient, information = 0.0, np.zeros(n_items + 1), np.zeros((n_items + 1, n_items + 1))
    for row in correct:
        log_posterior = log_prior + log_right @ (row == 1) + log_wrong @ (row == 0)
        top = log_posterior.max()
        posterior = np.exp(log_posterior - top)
        value += top + np.log(posterior.sum())
        posterior /= posterior.sum()
        # Scores of the complete data: chance - right of each item, (t/sd)^2 - 1; Louis (1982).
        scores = np.column_stack([(chance - (row == 1)) * (row >= 0), (nodes / sd) ** 2 - 1])
        mean = posterior @ scores
        gradient += mean
        centred = scores - mean
        information -= (centred * posterior[:, None]).T @ centred
        inner = posterior @ (chance * (1 - chance)) * (row >= 0)
        information += np.diag(np.append(inner, 2 * posterior @ (nodes / sd) ** 2))
    found = marginal.log_likelihood(correct, difficulty, sd)
    assert found[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found[1], gradient, atol=1e-9)
    np.testing.assert_allclose(found[2], information, atol=1e-9)


def test_marginal_fit_maximises_the_integral():
    correct = SHAPES["missing"].simulate(np.random.default_rng(5)).responses.correct[:40]
    fit = fit_marginal(correct, sd=None)
    best = integrated_log_likelihood(correct, fit.difficulty, fit.sd)
    assert fit.log_likelihood == pytest.approx(best, rel=1e-8)
    for change in 0.05 * np.vstack([np.eye(5), -np.eye(5)]):
        assert integrated_log_likelihood(correct, fit.difficulty + change, fit.sd) < best
    for factor in (0.95, 1.05):
        assert integrated_log_likelihood(correct, fit.difficulty, fit.sd * factor) < best


def test_marginal_fit_is_close_to_girths():
    """girth matches each item's share of right answers and then finds the spread by likelihood.

    That is not the maximum in all parameters, but it estimates the same with nearly the same
    precision, so the two differ by a fraction of a standard error. It fixes the spread at 1
    and fits a slope instead; the spread is that slope.
    """
    correct = Exam(3000, 8, ability_sd=1.5).simulate(np.random.default_rng(1)).responses.correct
    options = {"quadrature_n": 101, "quadrature_bounds": (-8, 8)}
    theirs = girth.onepl_mml(correct.T.astype(int), options=options)
    fit = fit_marginal(correct, sd=None)
    assert abs(fit.sd - theirs["Discrimination"]) < 0.3 * fit.sd_error
    missed = fit.difficulty - theirs["Difficulty"] * theirs["Discrimination"]
    assert np.abs(missed / fit.standard_error).max() < 0.5


def test_marginal_standard_errors_are_the_spread_of_estimates():
    rng = np.random.default_rng(8)
    difficulty = np.linspace(-1.5, 1.5, 7)
    fits = []
    for _ in range(300):
        chance = expit(rng.normal(0, 1.2, 400)[:, None] - difficulty)
        fits.append(fit_marginal((rng.random(chance.shape) < chance).astype(np.int8), sd=None))
    np.testing.assert_allclose(
        np.std([[*fit.difficulty, fit.sd] for fit in fits], axis=0),
        np.mean([[*fit.standard_error, fit.sd_error] for fit in fits], axis=0),
        rtol=0.17,
    )
    # Means of 300 estimates: unbiased up to four of their standard errors.
    mean = np.mean([fit.difficulty for fit in fits], axis=0)
    np.testing.assert_allclose(mean, difficulty, atol=4 * 0.15 / np.sqrt(300))
