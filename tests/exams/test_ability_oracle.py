"""Abilities against numerical integration, enumeration of all outcomes, and exams of known truth."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from tests.exams.support.made_difficulties import make_difficulties
from understudy.exams.ability import reestimated
from understudy.exams.estimators.joint import PENALTY, fit_joint
from understudy.exams.posterior import abilities, at_least, slope
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam

pytestmark = pytest.mark.oracle

CASES = [
    ((0.5,), (0.4,), 0.0, 1.0, [1]),
    ((-1.5, -0.4, 0.3, 1.2), (0.1, 0.5, 1.5, None), 0.3, 1.2, [1, 0, -1, 1]),
    ((-1.5, -0.4, 0.3, 1.2), (0.1, 0.5, 1.5, None), 0.3, 0.2, [0, 0, 0, 0]),
    (tuple(np.linspace(-4, 4, 60)), (0.3,) * 60, 0.0, 3.0, [1] * 60),
    (tuple(np.linspace(-4, 4, 60)), (0.0,) * 60, -1.0, 8.0, [1, 0, 1] * 20),
    ((6.0, 6.5, 7.0), (0.2,) * 3, 0.0, 0.7, [1, 1, 1]),
]


def integrals(difficulties, answers):
    """The posterior by adaptive integration: expectation of any function, and the mass below a point."""
    items, prior = difficulties.items, difficulties.ability

    def chance(item, b):
        return item.guess + (1 - item.guess) * special.expit(slope(item) * (b - item.difficulty))

    def log_weight(b):
        value = stats.norm.logpdf(b, prior.mean, prior.sd)
        for item, answer in zip(items, answers, strict=True):
            if answer >= 0:
                logit = slope(item) * (b - item.difficulty)
                if answer and item.guess:
                    value += math.log(chance(item, b))
                else:
                    value += math.log1p(-item.guess) + special.log_expit((2 * answer - 1) * logit)
        return value

    mode = optimize.minimize_scalar(lambda b: -log_weight(b), (prior.mean, prior.mean + 0.5)).x
    top = log_weight(mode)

    def integral(function, low, high):
        pieces = np.unique(np.clip([low, mode - prior.sd, mode, mode + prior.sd, high], low, high))
        return sum(
            integrate.quad(
                lambda b: function(b) * math.exp(log_weight(b) - top),
                a,
                z,
                epsabs=1e-13,
                epsrel=1e-12,
                limit=500,
            )[0]
            for a, z in itertools.pairwise(pieces)
        )

    low, high = mode - 8 * prior.sd, mode + 8 * prior.sd
    total = integral(lambda b: 1.0, low, high)
    return (
        lambda function: integral(function, low, high) / total,
        lambda point: integral(lambda b: 1.0, low, point) / total,
        chance,
    )


@pytest.mark.parametrize("guess", [0.0, 0.25])
@pytest.mark.parametrize(("difficulty", "errors", "mean", "sd", "answers"), CASES)
def test_posteriors_are_those_of_adaptive_integration(difficulty, errors, mean, sd, answers, guess):
    made = make_difficulties(difficulty, errors, mean=mean, sd=sd, guess=guess)
    found = abilities(made, Responses.from_matrix([answers], [item.name for item in made.items]))
    expectation, below, chance = integrals(made, answers)
    ability = expectation(lambda b: b)
    assert found.ability[0] == pytest.approx(ability, abs=1e-8)
    spread = math.sqrt(expectation(lambda b: (b - ability) ** 2))
    assert found.sd[0] == pytest.approx(spread, abs=1e-8)
    # Straight lines between points a tenth of the narrowest posterior apart.
    assert below(found.low[0]) == pytest.approx(0.025, abs=2e-4)
    assert below(found.high[0]) == pytest.approx(0.975, abs=2e-4)
    for k, item in enumerate(made.items[:4]):
        expected = expectation(lambda b, item=item: chance(item, b))
        assert found.chances[0, k] == pytest.approx(expected, abs=1e-8)
    passing = expectation(
        lambda b: at_least(np.array([[chance(item, b) for item in made.items]]), found.needed)[0]
    )
    assert found.passing[0] == pytest.approx(passing, abs=1e-7)


@pytest.mark.parametrize("penalty", [0.01, 0.02, 1.0])
def test_published_estimates_minimise_the_papers_objective(penalty):
    """Equation 6 in one ability, by a general minimiser; passing by its sum over all outcomes."""
    made = make_difficulties((-2.5, -0.4, 0.3, 1.2, 4.0), (0.1, 0.5, 1.5, None, 0.2), mean=0.7, sd=0.6)
    rows = [[1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [1, 0, -1, 1, 0], [-1, -1, -1, -1, 1], [0, 1, 1, 0, 0]]
    found = reestimated(made, Responses.from_matrix(rows, [item.name for item in made.items]), penalty, 0.6)
    difficulty = np.array([item.difficulty for item in made.items])
    for n, row in enumerate(rows):
        answered = np.array(row) >= 0
        hard, right = difficulty[answered], sum(answer for answer in row if answer > 0)

        def objective(b, hard=hard, right=right):
            return np.logaddexp(0, b - hard).sum() - right * b + penalty / 2 * b**2

        best = optimize.minimize_scalar(
            objective, bounds=(-300, 300), options={"xatol": 1e-10}, method="bounded"
        )
        assert found.ability[n] == pytest.approx(best.x, abs=1e-5)
        chances = 1 / (1 + np.exp(difficulty - best.x))
        np.testing.assert_allclose(found.chances[n], chances, atol=1e-6)
        passing = sum(
            np.prod(np.where(outcome, chances, 1 - chances))
            for outcome in itertools.product((0, 1), repeat=5)
            if sum(outcome) >= 3
        )
        assert found.passing[n] == pytest.approx(passing, abs=1e-5)
    assert np.isnan(found.low).all()


def test_published_estimates_of_the_joint_fit_are_its_own_abilities():
    """Their Experiment 1, exactly: the joint fit and a student at home solve the same equation."""
    correct = Exam(60, 8).simulate(np.random.default_rng(3)).responses.correct
    fit = fit_joint(correct.sum(axis=1), correct.sum(axis=0))
    made = make_difficulties(tuple(fit.difficulty), None)
    found = reestimated(made, Responses.from_matrix(correct, [item.name for item in made.items]), PENALTY)
    np.testing.assert_allclose(found.ability, fit.ability, atol=1e-7)


@pytest.mark.parametrize("n_items", [1, 2, 5, 9])
def test_passing_is_the_sum_over_all_outcomes(n_items):
    chances = np.random.default_rng(n_items).random((3, n_items))
    for needed in range(n_items + 1):
        expected = sum(
            np.prod(np.where(outcome, chances, 1 - chances), axis=1)
            for outcome in itertools.product((0, 1), repeat=n_items)
            if sum(outcome) >= needed
        )
        np.testing.assert_allclose(at_least(chances, needed), expected, atol=1e-14)


def test_the_flatter_logistic_is_close_to_the_averaged_one():
    """MacKay's approximation is off by less than 0.02 at any logit, also for a very unsure item."""
    for error in (0.1, 0.5, 1.0, 2.0, 4.0):
        item = make_difficulties((0.0,), (error,)).items[0]
        for logit in np.linspace(-6, 6, 25):
            exact, _ = integrate.quad(
                lambda d, b=logit, s=error: stats.norm.pdf(d, 0, s) / (1 + math.exp(d - b)),
                -9 * error,
                9 * error,
            )
            assert 1 / (1 + math.exp(-slope(item) * logit)) == pytest.approx(exact, abs=0.02)


def test_more_right_answers_mean_more_ability_when_all_are_as_sure():
    made = make_difficulties((-1.0, -0.2, 0.5, 0.8, 2.0), 0.5)
    patterns = list(itertools.product((0, 1), repeat=5))
    found = abilities(made, Responses.from_matrix(patterns, [item.name for item in made.items]))
    scores = np.array([sum(pattern) for pattern in patterns])
    for score in range(6):
        # With equal slopes the score is sufficient: which items were right does not matter.
        assert np.ptp(found.ability[scores == score]) < 1e-9
        assert np.ptp(found.passing[scores == score]) < 1e-9
    by_score = [found.ability[scores == score][0] for score in range(6)]
    assert np.all(np.diff(by_score) > 0.1)
    assert np.all(np.diff([found.passing[scores == score][0] for score in range(6)]) > 0)


@pytest.mark.parametrize("error", [0.0, 0.5, 1.0])
def test_intervals_cover_and_chances_are_calibrated(error):
    """200 exams of 50 students each: the errors of the difficulties are shared within an exam.

    The 95 % intervals cover between 93 and 97 %; predicted passes and successes in a new sitting
    come true to within 0.02. The binomial standard error of 10,000 students is 0.002; exams are
    correlated within, so a fixed seed is used and the bounds are wide.
    """
    rng = np.random.default_rng(17)
    covered, foretold, passed, chances, successes = [], [], [], [], []
    for _ in range(200):
        sitting = Exam(n_learners=50, n_items=20, difficulty_sd=1.0, missing=0.1).simulate(rng)
        # Difficulties are N(0, 1), seen with noise: what is released is their posterior and its spread.
        noisy = sitting.difficulty + rng.normal(0, error, 20)
        shrunk, spread = noisy / (1 + error**2), error / math.sqrt(1 + error**2)
        made = make_difficulties(shrunk.tolist(), spread, names=sitting.responses.items)
        found = abilities(made, sitting.responses)
        covered.append((found.low <= sitting.ability) & (sitting.ability <= found.high))
        # A new sitting with every item, also those that were missing in the first one.
        again = (rng.random(sitting.chances.shape) < sitting.chances).astype(int)
        foretold.append(found.passing)
        passed.append(again.sum(axis=1) >= found.needed)
        chances.append(found.chances)
        successes.append(again)
    assert 0.93 < np.mean(covered) < 0.97
    assert np.mean(foretold) == pytest.approx(np.mean(passed), abs=0.02)
    chance, success = np.concatenate(chances).ravel(), np.concatenate(successes).ravel()
    for low in np.arange(0.1, 0.9, 0.1):
        here = (chance >= low) & (chance < low + 0.1)
        assert success[here].mean() == pytest.approx(chance[here].mean(), abs=0.03)
