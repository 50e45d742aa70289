"""Composition: conversions agree with independent accountants, and never state less than is spent."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from understudy.core.privacy.composition import (
    Cost,
    analytic_delta,
    analytic_rho,
    counted_epsilon,
    epsilon_for,
    from_gaussians,
    from_zcdp,
    gaussian_mu,
    largest_epsilon,
    mu_from_pure,
    mu_of,
    mu_to_delta,
    rho_for,
    total_epsilon,
)
from understudy.core.privacy.guarantee import Guarantee

EPSILONS = [0.01, 0.5, 1.0, 2.0, 8.0, 20.0]
DELTAS = [1e-5, 1e-6, 1e-12]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_is_the_largest_that_proves_epsilon(epsilon, delta):
    rho = rho_for(epsilon, delta)
    assert epsilon_for(rho, delta) <= epsilon
    assert epsilon_for(rho * (1 + 1e-8), delta) > epsilon


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_rho_is_between_the_classical_bound_and_the_exact_gaussian(epsilon):
    # Bun and Steinke 2016: rho + 2 sqrt(rho log(1/delta)) is enough; and no conversion that holds
    # for all of zCDP can do better than the Gaussian, which is one of it.
    delta, rho = 1e-6, rho_for(epsilon, 1e-6)
    assert rho + 2 * math.sqrt(rho * -math.log(delta)) > epsilon
    assert mu_to_delta(math.sqrt(2 * rho), epsilon) < delta


@pytest.mark.parametrize("rho", [1e-6, 0.01, 1.0, 30.0])
def test_the_grid_of_orders_is_fine_enough(rho):
    # The formula itself, minimised over a million orders.
    orders = 1 + np.geomspace(0.011, 1e5, 1_000_000)
    delta = 1e-6
    best = np.min(orders * rho + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))
    assert best - 1e-12 <= epsilon_for(rho, delta) <= best * 1.0001


def test_zcdp_is_stated_as_dp_accounting_states_the_gaussian():
    accountant = RdpAccountant()
    accountant.compose(GaussianDpEvent(2.0))
    ours = epsilon_for(1 / 8, 1e-6)
    assert ours <= accountant.get_epsilon(1e-6) <= ours * 1.01


def test_nothing_spent_is_epsilon_zero():
    assert epsilon_for(0.0, 1e-6) == 0.0


@pytest.mark.parametrize(("rho", "delta"), [(-1, 1e-6), (math.inf, 1e-6), (math.nan, 1e-6), (1, 0), (1, 1)])
def test_conversions_that_mean_nothing(rho, delta):
    with pytest.raises(ValueError, match="not"):
        epsilon_for(rho, delta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_epsilons_that_mean_nothing(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        rho_for(epsilon, 1e-6)


def test_a_guarantee_from_zcdp_has_rho_and_no_mu():
    guarantee = from_zcdp(rho_for(8.0, 1e-6), 8.0, 1e-6, ("discrete Gaussian",))
    assert (guarantee.epsilon, guarantee.delta, guarantee.mu) == (8.0, 1e-6, None)
    assert guarantee.rho == rho_for(8.0, 1e-6)
    assert guarantee.mechanisms == ("discrete Gaussian",)


def test_a_claim_below_what_is_spent_is_refused():
    with pytest.raises(ValueError, match=r"more than the 7\.9 stated"):
        from_zcdp(rho_for(8.0, 1e-6), 7.9, 1e-6, ())


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 4.0])
def test_mu_to_delta_against_dp_accounting(mu, epsilon):
    oracle = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    assert mu_to_delta(mu, epsilon) == pytest.approx(
        oracle.get_delta_for_epsilon(epsilon), rel=1e-2, abs=1e-9
    )


def test_mu_to_delta_does_not_overflow():
    assert mu_to_delta(1.0, 800.0) == 0.0
    assert mu_to_delta(0.0, 1.0) == 0.0
    assert mu_to_delta(60.0, 1.0) == pytest.approx(1.0)


def test_mu_of_the_default_release():
    # The figure of issue 3: epsilon 8 at delta 1e-6 is mu 1.53.
    assert mu_to_delta(1.5315, 8.0) == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 500.0])
def test_pure_epsilon_implies_this_mu(epsilon):
    mu = mu_from_pure(epsilon)
    # The corner of epsilon-DP's trade-off function, both errors 1 / (1 + e^epsilon), lies on mu's.
    assert norm.logcdf(-mu / 2) == pytest.approx(-epsilon - math.log1p(math.exp(-epsilon)), rel=1e-9)
    if epsilon < 10:
        assert mu == pytest.approx(2 * norm.ppf(math.exp(epsilon) / (1 + math.exp(epsilon))))


def test_mu_of_the_gaussian_mechanism():
    assert gaussian_mu(2.0, 4.0) == 0.5
    with pytest.raises(ValueError, match="sigma"):
        gaussian_mu(1.0, 0.0)


@pytest.mark.parametrize(("sigma", "shift"), [(4, 1), (20, 20), (50, 25), (10, 20)])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_analytic_delta_covers_the_exact_discrete_gaussian(sigma, shift, epsilon):
    exact = pld.from_discrete_gaussian_mechanism(sigma, shift).get_delta_for_epsilon(epsilon)
    stated = analytic_delta((shift / sigma) ** 2 / 2, epsilon, n_cells=1, sigma=sigma)
    assert exact <= stated


def test_the_analytic_delta_covers_a_composition_of_discrete_gaussians():
    n_cells, sigma, shift, epsilon = 16, 60, 15, 3.0
    exact = pld.from_discrete_gaussian_mechanism(sigma, shift).self_compose(n_cells)
    stated = analytic_delta(n_cells * (shift / sigma) ** 2 / 2, epsilon, n_cells=n_cells, sigma=sigma)
    assert exact.get_delta_for_epsilon(epsilon) <= stated <= 1.1 * exact.get_delta_for_epsilon(epsilon)


def test_the_bounds_between_rounded_and_discrete_gaussian_that_the_proof_uses():
    for sigma in (1.0, 2.0, 7.5):
        k = np.arange(-int(8 * sigma), int(8 * sigma) + 1)
        weights = np.exp(-(k**2) / (2 * sigma**2))
        discrete = weights / np.exp(-(np.arange(-400, 401) ** 2) / (2 * sigma**2)).sum()
        # The upper tail where k > 0 keeps its digits.
        rounded = norm.sf((np.abs(k) - 0.5) / sigma) - norm.sf((np.abs(k) + 0.5) / sigma)
        ratio = np.log(discrete / rounded)
        slack = 1e-9
        assert (ratio <= 1 / (24 * sigma**2) + slack).all()
        assert (-ratio <= k**2 / (24 * sigma**4) + 3 * math.exp(-2 * (math.pi * sigma) ** 2) + slack).all()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 8.0])
def test_the_analytic_rho_is_proved_and_spends_less_noise_than_zcdp(epsilon):
    rho = analytic_rho(epsilon, 1e-6, n_cells=10_000, sigma=1e4)
    assert analytic_delta(rho, epsilon, n_cells=10_000, sigma=1e4) <= 1e-6
    assert 1.10 < rho / rho_for(epsilon, 1e-6) < 1.17
    assert mu_to_delta(math.sqrt(2 * rho), epsilon) == pytest.approx(1e-6, rel=1e-3)


def test_a_coarse_lattice_is_charged_for():
    fine = analytic_rho(1.0, 1e-6, n_cells=10_000, sigma=1e4)
    coarse = analytic_rho(1.0, 1e-6, n_cells=10_000, sigma=100.0)
    assert coarse < 0.95 * fine
    assert analytic_delta(0.01, 1.0, n_cells=10**6, sigma=10.0) == 1.0
    with pytest.raises(ValueError, match="sigma"):
        analytic_delta(0.01, 1.0, n_cells=1, sigma=0.5)


def test_the_slack_of_the_lattice_is_that_of_the_proof():
    """c1 + c2 of `analytic_delta`, written out once more."""
    n, sigma, epsilon = 400, 64.0, 2.0
    found = from_gaussians(0.01, epsilon, 1e-3, ("test",), n_cells=n, sigma=sigma)
    radius = math.sqrt(n) * (1 + 1 / (2 * sigma)) + math.sqrt(2 * (epsilon + 20 * math.log(10)))
    assert found.slack == pytest.approx((n + radius**2) / (24 * sigma**2), rel=1e-12)


def test_on_a_lattice_too_coarse_for_epsilon_zcdp_is_what_is_proved():
    lattice = {"n_cells": 10_000_000, "sigma": 2.0**13}
    for epsilon in (1e-4, 0.01, 0.1, 1.0):
        rho = analytic_rho(epsilon, 1e-6, **lattice)
        assert rho >= rho_for(epsilon, 1e-6) > 0
        assert from_gaussians(rho, epsilon, 1e-6, (), **lattice).rho == rho


def test_a_guarantee_from_gaussians():
    rho = analytic_rho(8.0, 1e-6, n_cells=1000, sigma=1e4)
    guarantee = from_gaussians(rho, 8.0, 1e-6, ("discrete Gaussian",), n_cells=1000, sigma=1e4)
    assert (guarantee.epsilon, guarantee.delta, guarantee.rho, guarantee.mu) == (8.0, 1e-6, rho, None)
    with pytest.raises(ValueError, match="stated"):
        from_gaussians(1.01 * rho, 8.0, 1e-6, (), n_cells=1000, sigma=1e4)


def gaussian_cost(epsilon=1.0, delta=1e-6, extra=0.0, cells=1000, sigma=2.0**15):
    """A release whose Gaussians take what `extra` leaves of delta, as with names that have to be found."""
    rest = (epsilon + math.log1p(-extra), delta - extra)
    rho = analytic_rho(*rest, n_cells=cells, sigma=sigma)
    claim = from_gaussians(rho, *rest, (), n_cells=cells, sigma=sigma)
    return replace(Cost.of(claim), epsilon=epsilon, delta=delta, extra_delta=extra)


def exact_epsilon(sigma_of_all, delta):
    """The epsilon of a Gaussian mechanism of sensitivity 1, by the accountant of privacy-loss distributions."""
    return pld.from_gaussian_mechanism(
        sigma_of_all, value_discretization_interval=1e-4
    ).get_epsilon_for_delta(delta)


@pytest.mark.oracle
@pytest.mark.parametrize(("n", "epsilon"), [(2, 1.0), (10, 1.0), (10, 0.1), (3, 4.0), (40, 0.5)])
def test_gaussians_together_count_as_one_with_the_sum_of_squares(n, epsilon):
    costs = [gaussian_cost(epsilon)] * n
    mu = math.sqrt(2 * n * costs[0].rho)
    found = total_epsilon(costs)
    exact = exact_epsilon(1 / mu, n * 1e-6)
    # The closed form, which proves it without the lattice; the accountant rounds up by its grid.
    assert mu_to_delta(mu, found) <= n * 1e-6
    assert found - 1e-3 <= exact * (1 + 1e-3)
    assert exact - 2e-3 <= found <= n * epsilon


def test_ten_releases_at_epsilon_1_count_about_three():
    assert total_epsilon([gaussian_cost()] * 10) == pytest.approx(3.14, abs=0.005)
    # Names that are found take half of delta; a claim that does not say so in its rho counts a little more.
    assert total_epsilon([gaussian_cost(extra=5e-7)] * 10) == pytest.approx(3.14, abs=0.02)
    assert 3.2 < total_epsilon([replace(gaussian_cost(), extra_delta=5e-7)] * 10) < 3.35


@pytest.mark.parametrize("extra", [0.0, 5e-7])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 7.5])
def test_the_cost_at_another_epsilon_is_that_of_the_mechanism(epsilon, extra):
    """The slack of the lattice hardly depends on epsilon, and is kept."""
    found, made = gaussian_cost(8.0, extra=extra).at(epsilon), gaussian_cost(epsilon, extra=extra)
    assert found.rho == pytest.approx(made.rho, rel=1e-3)
    assert found.epsilon == epsilon
    assert Cost(8.0, 1e-7).at(epsilon) == Cost(epsilon, 1e-7)


@pytest.mark.parametrize(
    "before", [[], [Cost(2.0)], [gaussian_cost(2.0)], [gaussian_cost(1.0, extra=5e-7)] * 4, [Cost(1.0)] * 3]
)
@pytest.mark.parametrize("wanted", [Cost(20.0), gaussian_cost(20.0), gaussian_cost(20.0, extra=5e-7)])
def test_the_largest_epsilon_fits_and_the_next_one_does_not(before, wanted):
    largest = largest_epsilon(before, wanted, 10.0)
    assert counted_epsilon([*before, wanted.at(largest)]) <= 10.0 * (1 + 1e-9)
    assert counted_epsilon([*before, wanted.at(largest + 0.1)]) > 10.0
    assert largest == 10.0 or counted_epsilon([*before, wanted.at(largest + 0.01)]) > 10.0
    assert largest == float(f"{largest:.3g}")
    assert largest >= 10.0 - sum(cost.epsilon for cost in before) - 0.01


def test_where_all_is_spent_no_epsilon_fits():
    assert largest_epsilon([Cost(10.0)], Cost(1.0), 10.0) == 0.0
    assert largest_epsilon([Cost(11.0)], gaussian_cost(), 10.0) == 0.0


def test_one_release_counts_what_it_states_however_much_delta_stands_beside_it():
    """At the sum of five deltas the total is smaller than the last epsilon alone."""
    costs = [gaussian_cost()] * 4 + [gaussian_cost(10.2)]
    assert total_epsilon(costs) < 10.2
    assert counted_epsilon(costs) == 10.2


def test_zcdp_proves_no_less_than_is_counted():
    """What zCDP proves for the same rho is valid too, and weaker for Gaussians: the count lies below."""
    costs = [gaussian_cost(0.5)] * 12
    assert total_epsilon(costs) <= epsilon_for(12 * costs[0].rho, 12e-6)


COSTS = [
    gaussian_cost(0.3),
    gaussian_cost(2.0, 1e-7, 5e-8),
    gaussian_cost(1.0, 1e-5),
    Cost(0.5),
    Cost(1.5, 1e-6),
    Cost(8.0, 1e-9),
]


@pytest.mark.oracle
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(COSTS), min_size=1, max_size=12))
def test_the_count_is_never_above_the_sum_nor_below_the_exact_curve(costs):
    found = total_epsilon(costs)
    assert found <= math.fsum(cost.epsilon for cost in costs)
    # Pure releases and events that fail can be as bad as they are stated: then this is the exact delta.
    rest = [cost for cost in costs if cost.rho is None]
    gaussians = [cost for cost in costs if cost.rho is not None]
    mu = math.sqrt(2 * math.fsum(cost.rho for cost in gaussians))
    left = found - math.fsum(cost.epsilon for cost in rest)
    failing = math.fsum(cost.delta for cost in rest) + math.fsum(cost.extra_delta for cost in gaussians)
    if gaussians:
        assert mu_to_delta(mu, max(left, 0.0)) + failing <= math.fsum(cost.delta for cost in costs) * (
            1 + 1e-6
        )


@pytest.mark.oracle
@pytest.mark.parametrize("n_pure", [0, 1, 4])
def test_pure_and_gaussian_releases_count_no_less_than_their_privacy_loss(n_pure):
    """Randomised response and Gaussians, composed exactly: the stated pair holds."""
    gaussians, pure = [gaussian_cost(0.5, 1e-5)] * 6, [Cost(0.2)] * n_pure
    found = total_epsilon([*gaussians, *pure])
    sigma = 1 / math.sqrt(2 * sum(cost.rho for cost in gaussians))
    together = pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    for cost in pure:
        flip = 1 / (1 + math.exp(cost.epsilon))
        together = together.compose(
            pld.from_randomized_response(2 * flip, 2, value_discretization_interval=1e-4)
        )
    assert together.get_delta_for_epsilon(found) <= 6e-5 * 1.001


def test_the_count_never_falls_when_a_release_adds_much_delta_and_little_epsilon():
    costs = [gaussian_cost(8.0), gaussian_cost(3.0), *[gaussian_cost(0.05, delta=1e-5)] * 3]
    totals = [total_epsilon(costs[:n]) for n in range(1, 6)]
    counts = [counted_epsilon(costs[:n]) for n in range(1, 6)]
    assert totals[4] < totals[1]
    assert counts == sorted(counts)
    assert all(count >= total for count, total in zip(counts, totals, strict=True))


def test_what_is_not_nearly_gaussian_adds_up():
    assert total_epsilon([]) == 0.0
    assert total_epsilon([Cost(1.0, 1e-7), Cost(2.0)]) == 3.0
    assert total_epsilon([gaussian_cost(1.0), Cost(2.0)]) == 3.0
    zcdp = from_zcdp(rho_for(1.0, 1e-6), 1.0, 1e-6, ())
    assert total_epsilon([Cost.of(zcdp)] * 3) == 3.0
    # All of delta is for something else: nothing is left for the tails.
    assert total_epsilon([replace(gaussian_cost(1.0), extra_delta=1e-6)] * 3) == 3.0
    # So large that the far tails of the proof would matter.
    assert total_epsilon([gaussian_cost(60.0)] * 3) == 180.0


def test_every_formal_guarantee_has_a_mu_to_compose_it_with():
    """A Gaussian with noise of 2 for a sensitivity of 1, however it is stated; and what epsilon alone implies."""
    sigma = 2.0
    assert mu_of(Guarantee(1.0, mu=1 / sigma)) == 1 / sigma
    assert mu_of(Guarantee(1.0, 1e-6, rho=1 / (2 * sigma**2))) == pytest.approx(1 / sigma)
    assert mu_of(Guarantee(1.0)) == mu_from_pure(1.0)
    # A mechanism that reaches epsilon in both directions, randomised response, is no better told apart than mu says.
    kept = math.e / (1 + math.e)
    assert 2 * norm.cdf(mu_of(Guarantee(1.0)) / 2) - 1 == pytest.approx(2 * kept - 1)
