"""What an attacker can reach under a guarantee, against closed forms; and the epsilon for a stated limit."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import norm

from understudy.core.privacy.composition import from_gaussians
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.risk import (
    RISK_COLUMNS,
    RISKS,
    ByRisk,
    RiskLimit,
    StatedRisk,
    area,
    explained_epsilons,
    guessed,
    power,
)
from understudy.errors import UsageError
from understudy.logs.generators.budget import stated

ALPHAS = np.array([0.0, 0.001, 0.01, 0.2, 0.5, 0.9, 1.0])


@pytest.mark.oracle
def test_the_power_under_epsilon_is_that_of_randomised_response():
    """A coin that tells the truth with chance e^epsilon / (1 + e^epsilon) has exactly this curve."""
    epsilon = 1.3
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    # The best test at a false-alarm rate below 1 - truth accuses some of those whose coin says yes.
    lying = 1 - truth
    expected = np.where(lying >= ALPHAS, ALPHAS * truth / lying, truth + (ALPHAS - lying) / truth * lying)
    np.testing.assert_allclose(power(Guarantee(epsilon), ALPHAS), expected)


@pytest.mark.oracle
def test_the_power_under_mu_is_that_of_two_normal_laws():
    mu = 0.8
    found = power(Guarantee(20.0, 1e-9, mu=mu), ALPHAS)
    np.testing.assert_allclose(found, norm.sf(norm.isf(ALPHAS) - mu), atol=1e-8)
    assert area(Guarantee(20.0, 1e-9, mu=mu)) == pytest.approx(norm.cdf(mu / np.sqrt(2)), abs=1e-6)


@pytest.mark.oracle
def test_a_guess_from_a_gaussian_sum_stays_below_the_bound_and_comes_near_it():
    """One learner's bit in a noisy sum: the best guess is right Phi(mu / 2) of the time."""
    for mu in (0.3, 1.0, 2.0):
        best = norm.cdf(mu / 2)
        bound = guessed(Guarantee(20.0, 1e-9, mu=mu), 0.5)
        assert best <= bound <= norm.cdf(mu) + 1e-9


def test_without_a_guarantee_everything_may_be_found():
    nothing = Guarantee.none("a test")
    assert (power(nothing, ALPHAS) == 1).all()
    assert area(nothing) == 1


@pytest.mark.parametrize("text", ["2 in 100", "5 in 100", "1 in 3", "auc 0.55", "AUC .7"])
@pytest.mark.parametrize(
    "guarantee_of", [Guarantee, lambda epsilon: stated(epsilon, 1e-6, "noise")], ids=["pure", "gaussian"]
)
def test_the_epsilon_of_a_risk_keeps_to_it_and_no_larger_one_does(text, guarantee_of):
    limit = RiskLimit.parse(text)
    epsilon = limit.epsilon(guarantee_of)
    assert limit.reached(guarantee_of(epsilon)) <= limit.most
    assert limit.reached(guarantee_of(1.02 * epsilon)) > limit.most


def test_the_curve_of_noise_allows_more_than_its_epsilon():
    """Five in a hundred: epsilon 1.6 if nothing else is known, and twice as much for Gaussian noise."""
    limit = RiskLimit.parse("5 in 100")
    assert limit.epsilon(Guarantee) == pytest.approx(np.log(5), abs=0.01)
    assert limit.epsilon(lambda epsilon: stated(epsilon, 1e-6, "noise")) > 3


@pytest.mark.parametrize(
    "text",
    ["", "5", "5 of 100", "5 in 0", "auc", "auc half", "e"],
)
def test_what_is_no_risk_is_refused(text):
    with pytest.raises(UsageError, match="5 in 100") as refusal:
        RiskLimit.parse(text)
    assert refusal.value.code == "not-a-risk"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 in 100", "not more than guessing"),
        ("1 in 1000", "not more than guessing"),
        ("0 in 100", "not more than guessing"),
        ("auc 0.5", "not more than guessing"),
        ("100 in 100", "rules nothing out"),
        ("auc 1", "rules nothing out"),
        ("auc 2", "rules nothing out"),
    ],
)
def test_a_risk_that_guessing_reaches_or_that_everything_keeps_to_is_refused_in_words(text, why):
    with pytest.raises(UsageError, match=f"a risk of '{text}' .*{why}") as refusal:
        RiskLimit.parse(text)
    assert (refusal.value.code, refusal.value.settings) == ("risk-out-of-range", ("risk",))
    assert "above 'auc 0.5'" in str(refusal.value) or "above '1 in 100'" in str(refusal.value)


@pytest.mark.parametrize(
    ("guarantee", "mu"),
    [
        (Guarantee(1.0), 2 * norm.ppf(np.e / (1 + np.e))),
        (Guarantee(5.0, 1e-6, mu=0.9), 0.9),
        (stated(3.0, 1e-6, "noise"), np.sqrt(2 * stated(3.0, 1e-6, "noise").rho)),
        (Guarantee(3.0, 1e-6, rho=0.2), None),
    ],
)
def test_a_stated_risk_is_read_off_the_curve_and_rounded_up(guarantee, mu):
    risk = StatedRisk.of(guarantee)
    for share, exact in (
        (risk.found, power(guarantee, 0.01)),
        (risk.guessed, power(guarantee, 0.5)),
        (risk.singled_out, power(guarantee, 0.001)),
        (risk.auc, area(guarantee)),
    ):
        assert exact - 1e-9 <= share < exact + 0.01
    assert (risk.epsilon, risk.delta) == (guarantee.epsilon, guarantee.delta)
    assert risk.mu == (None if mu is None else pytest.approx(mu))
    assert len(risk.cells()) == len(RISK_COLUMNS)


def test_an_explanation_shows_the_epsilons_of_usual_risks():
    shown = explained_epsilons(lambda epsilon: stated(epsilon, 1e-6, "noise"), (1.0, 8.0))
    assert shown == sorted(shown)
    assert len(shown) == 2 + len(RISKS)
    found = [StatedRisk.of(stated(epsilon, 1e-6, "noise")).found for epsilon in shown]
    assert {0.02, 0.05, 0.1, 0.2} <= set(found)
    # A risk that the method cannot keep to is left out.
    assert len(explained_epsilons(lambda epsilon: Guarantee(epsilon, 0.03), (1.0,))) == 1 + len(RISKS) - 1


def test_no_noise_keeps_to_a_risk_below_delta():
    with pytest.raises(UsageError, match="no noise"):
        RiskLimit.parse("2 in 100").epsilon(lambda epsilon: Guarantee(epsilon, 0.05))


@dataclass(frozen=True)
class Options(ByRisk):
    usual_epsilon: ClassVar[float | None] = 3.0
    epsilon: float | None = None


def test_options_take_the_epsilon_of_their_risk():
    assert Options().by_risk(lambda options: Guarantee(options.epsilon)) == Options(epsilon=3.0)
    assert Options(1.0).by_risk(lambda options: Guarantee(options.epsilon)) == Options(epsilon=1.0)
    assert Options(risk="5 in 100").by_risk(lambda options: Guarantee(options.epsilon)).epsilon == 1.6
    for given in (1.0, 3.0):  # also the usual one
        with pytest.raises(UsageError, match="an epsilon and a risk"):
            Options(epsilon=given, risk="5 in 100").by_risk(lambda options: Guarantee(options.epsilon))


@pytest.mark.oracle
def test_the_power_under_gaussians_on_a_lattice_is_that_of_two_normal_laws_and_no_less():
    """A guarantee by `from_gaussians` states rho and slack: mu is sqrt(2 rho), and the lattice adds next to nothing."""
    guarantee = from_gaussians(0.5, 8.0, 1e-5, ("test",), n_cells=100, sigma=2.0**12)
    found, exact = power(guarantee, ALPHAS), norm.sf(norm.isf(ALPHAS) - 1.0)
    assert (found >= exact).all()
    np.testing.assert_allclose(found, exact, atol=1e-4)


def test_what_happens_with_the_chance_of_delta_is_in_the_power():
    """Names of actions, say, which delta pays for: whoever has one alone is found by it without a false alarm."""
    found = power(Guarantee(5.0, 0.05, rho=0.5, slack=1e-6), [0.0, 0.1])
    assert found[0] == pytest.approx(0.05)
    assert found[1] >= norm.sf(norm.isf(0.1) - 1.0) + 0.05
