"""The published fits draw the published noise, and give the figures that the findings report."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from understudy.exams.estimators.joint import PENALTY, PRINTED_PENALTY, estimate_ability, fit_joint
from understudy.exams.estimators.published import (
    OBJECTIVE_REASON,
    STATISTICS_REASON,
    objective,
    statistics,
    tilt_noise,
)
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam


@pytest.fixture
def sitting():
    return Exam(50, 10).simulate(np.random.default_rng(6))


def noise_by_item(responses, fit):
    """The noise of a fit, read from its own optimum: the derivatives in the difficulties vanish."""
    expected = expit(fit.ability[:, None] - fit.difficulty).sum(axis=0) - PENALTY * fit.difficulty
    return expected - responses.correct.sum(axis=0)


def noise_by_learner(responses, fit):
    expected = expit(fit.ability[:, None] - fit.difficulty).sum(axis=1) + PENALTY * fit.ability
    return expected - responses.correct.sum(axis=1)


# Each test below compares a sample with its distribution and alarms falsely once in 1,000 seeds.


def test_the_tilt_has_a_gamma_norm_and_a_uniform_direction():
    rng = np.random.default_rng(0)
    drawn = np.array([tilt_noise(5, 2.0, rng) for _ in range(4000)])
    norm = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(norm, stats.gamma(5, scale=np.sqrt(5) / 2).cdf).pvalue > 1e-3
    # One coordinate u of a uniform direction in five dimensions: (u + 1)/2 is Beta(2, 2).
    assert stats.kstest((drawn[:, 0] / norm + 1) / 2, stats.beta(2, 2).cdf).pvalue > 1e-3


def test_objective_perturbation_adds_that_tilt_and_leaves_scores_alone(sitting):
    rng = np.random.default_rng(1)
    fits = [objective(sitting.responses, 2.0, rng) for _ in range(400)]
    norm = [np.linalg.norm(noise_by_item(sitting.responses, fit)) for fit in fits]
    assert stats.kstest(norm, stats.gamma(10, scale=np.sqrt(10) / 2).cdf).pvalue > 1e-3
    # Finding: the abilities of such a fit reveal every score exactly.
    np.testing.assert_allclose(noise_by_learner(sitting.responses, fits[0]), 0, atol=1e-6)


def test_sufficient_statistics_get_laplace_noise_on_both_sides(sitting):
    rng = np.random.default_rng(2)
    fits = [statistics(sitting.responses, 2.0, rng, clamp=False) for _ in range(100)]
    for read in (noise_by_item, noise_by_learner):
        noise = np.concatenate([read(sitting.responses, fit) for fit in fits])
        assert stats.kstest(noise, stats.laplace(scale=10 / 2.0).cdf).pvalue > 1e-3


def test_noisy_statistics_are_clamped_to_what_they_can_be(sitting):
    """The same draws, brought back to [0, I] and [0, N]: read from the optimum, and by hand from the noise."""
    responses = sitting.responses
    n_learners, n_items = responses.correct.shape
    fit = statistics(responses, 1.0, np.random.default_rng(4))
    free = statistics(responses, 1.0, np.random.default_rng(4), clamp=False)
    for read, axis, most in ((noise_by_learner, 1, n_items), (noise_by_item, 0, n_learners)):
        true = responses.correct.sum(axis=axis)
        noisy = true + read(responses, free)
        assert (noisy < 0).any()
        assert (noisy > most).any()
        np.testing.assert_allclose(true + read(responses, fit), np.clip(noisy, 0, most), atol=1e-5)


@pytest.mark.parametrize("method", [objective, statistics])
def test_with_a_large_epsilon_they_are_the_fit_that_is_not_private(sitting, method):
    correct = sitting.responses.correct
    plain = fit_joint(correct.sum(axis=1), correct.sum(axis=0))
    fit = method(sitting.responses, 1e7, np.random.default_rng(0))
    np.testing.assert_allclose(fit.difficulty, plain.difficulty, atol=0.01)
    np.testing.assert_allclose(fit.ability, plain.ability, atol=0.01)


@pytest.mark.parametrize(
    ("method", "reason"), [(objective, OBJECTIVE_REASON), (statistics, STATISTICS_REASON)]
)
def test_nothing_is_promised_and_the_reason_is_said(sitting, method, reason):
    guarantee = method(sitting.responses, 1.0, np.random.default_rng(0)).guarantee
    assert not guarantee.formal
    assert reason in str(guarantee)


@pytest.mark.parametrize("method", [objective, statistics])
def test_a_seed_gives_the_same_fit_again(sitting, method):
    first, second = (method(sitting.responses, 1.0, np.random.default_rng(3)).difficulty for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("method", [objective, statistics])
def test_missing_responses_count_as_wrong(method):
    rows = np.array([[1, -1, 0], [0, 1, -1]])
    with_gaps, without = Responses.from_matrix(rows), Responses.from_matrix(np.maximum(rows, 0))
    first, second = (method(r, 1.0, np.random.default_rng(0)).difficulty for r in (with_gaps, without))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("method", [objective, statistics])
@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), float("nan")])
def test_an_epsilon_that_is_none_is_refused(sitting, method, epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        method(sitting.responses, epsilon, np.random.default_rng(0))


# Findings, section 2: correlations with the true chances and difficulties, means of 12 runs, as the paper prints it.
FINDINGS = {
    (1, 40): {objective: (0.49, 0.42), statistics: (0.32, 0.32)},
    (1, 120): {objective: (0.82, 0.51), statistics: (0.68, 0.74)},
    (1, 200): {objective: (0.89, 0.46), statistics: (0.73, 0.81)},
    (5, 40): {objective: (0.91, 0.53), statistics: (0.80, 0.51)},
    (5, 120): {objective: (0.95, 0.84), statistics: (0.92, 0.74)},
}


@pytest.mark.parametrize(("epsilon", "n_learners"), FINDINGS)
def test_the_findings_are_reproduced(epsilon, n_learners):
    rng = np.random.default_rng(11)
    n_runs = 24
    measured = {objective: [], statistics: []}
    for _ in range(n_runs):
        sitting = Exam(n_learners).simulate(rng)
        for method, results in measured.items():
            as_printed = {"penalty": PRINTED_PENALTY} | ({"clamp": False} if method is statistics else {})
            difficulty = method(sitting.responses, epsilon, rng, **as_printed).difficulty
            ability = estimate_ability(sitting.responses.correct, difficulty, penalty=PRINTED_PENALTY)
            chance = expit(ability[:, None] - difficulty)
            results.append(
                [
                    np.corrcoef(chance.ravel(), sitting.chances.ravel())[0, 1],
                    np.corrcoef(difficulty, sitting.difficulty)[0, 1],
                ]
            )
    for method, results in measured.items():
        # The findings' means are of 12 runs, these of 24, and findings are printed with two
        # digits; 20 comparisons of four standard errors alarm falsely once in 800 seeds.
        error = np.std(results, axis=0, ddof=1) * np.sqrt(1 / 12 + 1 / n_runs)
        expected = np.array(FINDINGS[epsilon, n_learners][method])
        assert (np.abs(np.mean(results, axis=0) - expected) <= 4 * error + 0.005).all()
