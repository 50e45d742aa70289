"""The measured price of an answer against the exact game, and the published composition's two counterexamples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from understudy.desk.risk.game import advantage_at, learners_mu, mu_of, price, threshold_of
from understudy.desk.risk.likelihoods import ATTACKERS, Seen, cross_fitted
from understudy.desk.risk.shadows import draw_shadows

pytestmark = pytest.mark.oracle

N = 120


@pytest.fixture(scope="module")
def bank():
    return draw_shadows(N, np.random.default_rng(1))


def sums(bank, values):
    return (bank.counts.astype(float) @ values)[:, None]


def exact_game(values, target):
    """The laws of a sum with and without a learner: the others are drawn anew from the rest.

    Values are small whole numbers, so the law of a sum is a power of a polynomial.
    """
    rest = np.delete(values, target)
    step = np.bincount(rest, minlength=values.max() + 1) / len(rest)
    inside = np.array([1.0])
    for _ in range(len(values) - 1):
        inside = np.convolve(inside, step)
    outside = np.convolve(inside, step)
    inside = np.concatenate([np.zeros(values[target]), inside])
    size = max(len(inside), len(outside))
    return np.pad(inside, (0, size - len(inside))), np.pad(outside, (0, size - len(outside)))


def exact_mu(inside, outside):
    """The median mu over the stable range, from the optimal test's curve."""
    order = np.argsort(-(inside + 1e-300) / (outside + 1e-300))
    alarms = np.concatenate([[0.0], np.cumsum(outside[order])])
    misses = np.concatenate([[1.0], 1 - np.cumsum(inside[order])])
    alpha = np.linspace(0.1, 0.9, 81)
    return float(np.median(norm.ppf(1 - alpha) - norm.ppf(np.interp(alpha, alarms, misses))))


def test_a_shadow_holds_as_many_learners_as_the_data(bank):
    assert (bank.counts.sum(axis=1) == N).all()
    # Once, and not at all, with chance (1 - 1/n)^(n - 1) and (1 - 1/n)^n.
    assert bank.once.mean() == pytest.approx((1 - 1 / N) ** (N - 1), abs=0.01)
    assert bank.absent.mean() == pytest.approx((1 - 1 / N) ** N, abs=0.01)
    assert len(bank.learners(3)) == N


@pytest.mark.parametrize("outlier", [12, 30, 60])
def test_the_measured_game_is_the_exact_one(outlier):
    """A sum of whole numbers. The Gaussian attacker cannot beat the optimal one, and comes close to it."""
    rng = np.random.default_rng(outlier)
    values = rng.integers(0, 8, 60)
    values[0] = outlier
    bank = draw_shadows(60, rng)
    scores = cross_fitted(sums(bank, values), bank, ATTACKERS["independent"])
    inside, outside = scores[bank.once[:, 0], 0], scores[bank.absent[:, 0], 0]
    exact_inside, exact_outside = exact_game(values, 0)
    exact_advantage = 0.5 * np.abs(exact_inside - exact_outside).sum()
    # Standard errors with 1,000 shadows on a side are about 0.02 and 0.06.
    assert advantage_at(inside, outside, threshold_of(inside, outside)) == pytest.approx(
        exact_advantage, abs=0.06
    )
    assert mu_of(inside, outside) == pytest.approx(exact_mu(exact_inside, exact_outside), abs=0.2)


def test_many_numbers_are_priced_as_theory_says(bank):
    """40 sums, of which one learner moves all a little: Gaussians of single numbers see a third of it."""
    rng = np.random.default_rng(11)
    values = rng.normal(size=(N, 40))
    values[7] += rng.normal(size=40)
    rest = np.delete(values, 7, axis=0)
    shift = values[7] - rest.mean(axis=0)
    covariance = (N - 0.5) * np.cov(rest, rowvar=False, bias=True)
    expected = np.sqrt(shift @ np.linalg.solve(covariance, shift))
    outputs = bank.counts @ values
    assert learners_mu(outputs, bank)[7] == pytest.approx(expected, abs=0.2)
    assert learners_mu(outputs, bank, "independent")[7] < 0.7 * expected


def test_noise_costs_nothing(bank):
    """Twenty numbers that have nothing to do with anybody: the floor of the findings, section 5, is 0.2."""
    rng = np.random.default_rng(2)
    found = price(rng.normal(size=(bank.n_shadows, 20)), bank, rng)
    assert found.mu.value < 0.2
    assert found.advantage.value < 0.09
    assert found.largest_mu < 1.5 * found.largest_mu_by_chance[1]


def test_the_worst_learner_is_the_one_who_stands_out(bank):
    rng = np.random.default_rng(3)
    values = rng.normal(size=N)
    values[17] = 12.0
    assert int(np.argmax(learners_mu(sums(bank, values), bank))) == 17
    found = price(sums(bank, values), bank, rng)
    assert found.mu.low > found.largest_mu_by_chance[1]
    assert found.mu.low <= found.mu.value <= found.mu.high


def test_two_stages_do_not_multiply(bank):
    """Findings, section 5: a clipped sum at mu 0.96 and the exact sum; the corollary's square root of squares fails."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=N)
    values[0] = 10.0
    exact = sums(bank, values)
    first = sums(bank, np.clip(values, -1, 1)) + rng.normal(0.0, 2 / 0.96, (bank.n_shadows, 1))
    alone = price(exact, bank, rng).mu.value
    joint = price(np.hstack([first, exact]), bank, rng)
    assert joint.mu.low > np.hypot(0.96, alone)
    assert joint.attacker != "independent"
    assert joint.attacks["independent"].mu.value < 1.2


def test_two_means_that_differ_by_one_learner_are_priced_as_such(bank):
    """Equation 16 takes numbers as independent and sees nothing; the difference tells the learner."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=N)
    counts = bank.counts.astype(float)
    without = np.arange(N) != 5
    means = np.column_stack(
        [counts @ values / N, counts[:, without] @ values[without] / counts[:, without].sum(1)]
    )
    assert learners_mu(means, bank, "independent")[5] < 0.4
    assert price(means, bank, rng).advantage.value > 0.9


def test_an_answer_that_fails_without_somebody_tells_them(bank):
    """A missing number is a number: here the code fails in every shadow without learner 9."""
    outputs = np.where(bank.counts[:, 9] > 0, 1.0, np.nan)[:, None]
    assert price(outputs, bank, np.random.default_rng(6)).advantage.value > 0.95


def test_a_constant_costs_nothing(bank):
    constants = np.full((bank.n_shadows, 3), 7.0)
    # What adding in another order leaves: in every shadow without learner 9.
    constants[bank.absent[:, 9], 1] += 1e-15
    found = price(constants, bank, np.random.default_rng(7))
    assert found.mu.value == 0.0
    assert found.advantage.value == 0.0


def test_fitting_and_judging_on_the_same_shadows_would_cry_wolf(bank):
    """Why scores are cross-fitted: without it a learner without any leak looks exposed."""
    rng = np.random.default_rng(8)
    outputs = rng.normal(size=(bank.n_shadows, 20))[:200]
    few = bank.part(np.arange(200))
    naive = ATTACKERS["independent"](Seen(outputs, few), Seen(outputs, few))
    honest = cross_fitted(outputs, few, ATTACKERS["independent"])

    def mus(scores):
        return [mu_of(scores[few.once[:, i], i], scores[few.absent[:, i], i]) for i in range(N)]

    assert np.mean(mus(naive)) > 0.8
    assert np.mean(mus(honest)) < 0.25
