"""Composition: from what mechanisms spend (rho, mu) to the epsilon and delta that are stated.

zCDP adds up: mechanisms with rho_1, rho_2, ... on the same learners are (rho_1 + rho_2 + ...)-zCDP
together, also when a later one is chosen by an earlier one's result (Bun and Steinke 2016).
The conversion to (epsilon, delta) is dp-accounting's. Where all of them are discrete Gaussians
on a fine lattice, `analytic_delta` proves the same epsilon with 5 to 7 % less noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from understudy.core.privacy.guarantee import Guarantee

# Slack for the comparison of floating-point epsilons, far below anything that is printed.
_TOLERANCE = 1e-9
# The chance that `analytic_delta` gives up to noise far out; it is part of the delta it states.
_TAIL = 1e-20
# No smaller epsilon is looked for: it would be nothing but noise.
LEAST_EPSILON = 1e-3


def epsilon_for(rho: float, delta: float) -> float:
    """The smallest epsilon for which dp-accounting proves: rho-zCDP implies (epsilon, delta)-DP.

    rho-zCDP bounds the Renyi divergence of every order a by a rho; each order gives an epsilon
    (Canonne, Kamath and Steinke 2020, Proposition 12), and the smallest holds. Any set of
    orders is valid; the one used here is fine around the best order, which is near
    1 + sqrt(log(1/delta) / rho).
    """
    if not (rho >= 0 and math.isfinite(rho)):
        raise ValueError(f"rho has to be a finite number of at least 0, not {rho}")
    if not 0 < delta < 1:
        raise ValueError(f"zCDP states an epsilon for a delta between 0 and 1, not {delta}")
    if rho == 0:
        return 0.0
    # Imported where it is used: the command line starts without it.
    from dp_accounting import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    near = math.sqrt(-math.log(delta) / rho)
    accountant = RdpAccountant(1.0 + near * np.geomspace(1 / 16, 4, 400))
    accountant.compose(ZCDpEvent(rho))
    return float(accountant.get_epsilon(delta))


def rho_for(epsilon: float, delta: float) -> float:
    """The largest rho, rounded down, with epsilon_for(rho, delta) <= epsilon."""
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon has to be a finite number above 0, not {epsilon}")
    return _largest_rho(lambda rho: epsilon_for(rho, delta) <= epsilon, epsilon)


def from_zcdp(rho: float, epsilon: float, delta: float, mechanisms: tuple[str, ...]) -> Guarantee:
    """The guarantee of mechanisms that together are rho-zCDP, stated as (epsilon, delta).

    It has no mu: zCDP bounds Renyi divergences, not the trade-off of errors at every level.
    """
    proved = epsilon_for(rho, delta)
    if proved > epsilon * (1 + _TOLERANCE):
        raise ValueError(
            f"{rho:g}-zCDP proves epsilon {proved:.6g} at delta {delta:.3e}, more than the {epsilon:g} stated"
        )
    return Guarantee(epsilon, delta, rho=rho, mechanisms=mechanisms)


def analytic_delta(rho: float, epsilon: float, *, n_cells: int, sigma: float) -> float:
    """A delta with: discrete Gaussians of total `rho` are (epsilon, delta)-DP, tighter than zCDP.

    Holds for any adaptive composition of discrete Gaussian mechanisms and nothing else, with
    `n_cells` noisy integers in all, each with a standard deviation of at least `sigma` >= 1
    units of its lattice. The finer the lattice, the closer this is to the continuous Gaussian
    (mu = sqrt(2 rho)).

    Proof. Let p be the discrete Gaussian's probability of k, and g the one that x + N(0, sigma^2)
    rounds to x + k: rounding is post-processing, so mechanisms with g are mu-Gaussian DP.
    (1) g(k) is the normal density at k times E[exp(-(2ks + s^2) / (2 sigma^2))], s uniform on
    [-1/2, 1/2]. By Jensen that mean is at least exp(-1 / (24 sigma^2)), and p's normaliser is at
    least sigma sqrt(2 pi), so p <= e^(c1) g over all cells with c1 = n / (24 sigma^2).
    (2) The mean is at most sinh(a)/a <= exp(a^2 / 6) with a = k / (2 sigma^2), and the
    normaliser is at most sigma sqrt(2 pi) (1 + 3 e^(-2 pi^2 sigma^2)) (Poisson summation), so
    g <= e^(c2) p wherever |k / sigma| <= r, c2 = r^2 / (24 sigma^2) + 3 n e^(-2 pi^2 sigma^2).
    (3) Under g, |k / sigma| > r = sqrt(n) (1 + 1 / (2 sigma)) + t has probability at most
    tau = e^(-t^2 / 2) (concentration of the norm of a normal vector, plus the rounding).
    Noise is independent of earlier results, so (1) to (3) hold for the whole composition, and
    P(S) <= e^c1 G(S) <= e^c1 (e^e0 G'(S) + delta0) <= e^c1 (e^e0 (e^c2 P'(S) + tau) + delta0):
    epsilon = e0 + c1 + c2, delta = e^c1 (delta0 + e^e0 tau), with delta0 = mu_to_delta(mu, e0).
    """
    if not rho >= 0:
        raise ValueError(f"rho has to be at least 0, not {rho}")
    return lattice_delta(lambda e: mu_to_delta(math.sqrt(2 * rho), e), epsilon, n_cells=n_cells, sigma=sigma)


def lattice_delta(
    continuous: Callable[[float], float], epsilon: float, *, n_cells: int, sigma: float
) -> float:
    """The delta of discrete Gaussians at `epsilon`, from the one that `continuous` noise of that scale has.

    By (1) to (3) of `analytic_delta`: they compare the noise alone, cell by cell, so they hold for whatever
    it is added to, also where learners are sampled.
    """
    if n_cells < 1 or not (sigma >= 1 and epsilon >= 0):
        raise ValueError(f"no proof for {n_cells} cells, sigma {sigma}, epsilon {epsilon}")
    first, second = _lattice_slack(epsilon, n_cells, sigma)
    if first + second >= epsilon:
        return 1.0
    return min(1.0, math.exp(first) * (continuous(epsilon - first - second) + _TAIL))


def _lattice_slack(epsilon: float, n_cells: int, sigma: float) -> tuple[float, float]:
    """c1 and c2 of `analytic_delta`."""
    distance = math.sqrt(2 * (epsilon - math.log(_TAIL)))  # e^epsilon tau = _TAIL
    radius = math.sqrt(n_cells) * (1 + 1 / (2 * sigma)) + distance
    second = radius**2 / (24 * sigma**2) + 3 * n_cells * math.exp(-2 * (math.pi * sigma) ** 2)
    return n_cells / (24 * sigma**2), second


def analytic_rho(epsilon: float, delta: float, *, n_cells: int, sigma: float) -> float:
    """The largest rho, rounded down, for which `from_gaussians` states (epsilon, delta).

    On a lattice that is too coarse for so small an epsilon that is what zCDP proves.
    """
    found = _largest_rho(
        lambda rho: analytic_delta(rho, epsilon, n_cells=n_cells, sigma=sigma) <= delta, 4 * epsilon + 4
    )
    return found if epsilon_for(found, delta) > epsilon else rho_for(epsilon, delta)


def from_gaussians(
    rho: float, epsilon: float, delta: float, mechanisms: tuple[str, ...], *, n_cells: int, sigma: float
) -> Guarantee:
    """The guarantee of discrete Gaussians with total `rho`, by `analytic_delta` or else by zCDP."""
    if analytic_delta(rho, epsilon, n_cells=n_cells, sigma=sigma) > delta * (1 + _TOLERANCE):
        return from_zcdp(rho, epsilon, delta, mechanisms)
    slack = sum(_lattice_slack(epsilon, n_cells, sigma))
    return Guarantee(epsilon, delta, rho=rho, slack=slack, mechanisms=mechanisms)


def gaussian_mu(sensitivity: float, sigma: float) -> float:
    """mu of the continuous Gaussian mechanism (Dong, Roth and Su 2022)."""
    if not (sensitivity >= 0 and sigma > 0):
        raise ValueError(f"sensitivity {sensitivity} and sigma {sigma} are no Gaussian mechanism")
    return sensitivity / sigma


def mu_from_pure(epsilon: float) -> float:
    """The smallest mu with: epsilon-DP implies mu-Gaussian DP, 2 Phi^-1(e^epsilon / (1 + e^epsilon))."""
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon has to be a finite number of at least 0, not {epsilon}")
    # Phi^-1(1 - p) = -Phi^-1(p), and 1/(1 + e^epsilon) keeps its digits where e^epsilon is large.
    return -2.0 * float(ndtri(math.exp(-epsilon) / (1.0 + math.exp(-epsilon))))


def mu_of(guarantee: Guarantee) -> float:
    """The mu that a formal guarantee stands for where it is composed with others.

    That of Gaussian DP where it is proved. Of zCDP the mu of the Gaussian with the same rho, which discrete Gaussians
    are to within `slack`. Otherwise the one that epsilon-DP implies; what happens with probability delta is left out.
    """
    if guarantee.mu is not None:
        return guarantee.mu
    return math.sqrt(2 * guarantee.rho) if guarantee.rho is not None else mu_from_pure(guarantee.epsilon)


def mu_to_delta(mu: float, epsilon: float) -> float:
    """The smallest delta with: mu-Gaussian DP implies (epsilon, delta)-DP.

    Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2) (Dong, Roth and Su 2022,
    Corollary 1; Balle and Wang 2018).
    """
    if not (mu >= 0 and epsilon >= 0):
        raise ValueError(f"mu {mu} and epsilon {epsilon} have to be at least 0")
    if mu == 0:
        return 0.0
    first = float(ndtr(-epsilon / mu + mu / 2))
    second = math.exp(epsilon + float(log_ndtr(-epsilon / mu - mu / 2)))
    return max(0.0, first - second)


def default_delta(n_learners: int) -> float:
    """One over the squared number of learners, and no more than a millionth."""
    return min(1e-6, 1.0 / max(n_learners, 1) ** 2)


@dataclass(frozen=True)
class Cost:
    """What a release spends: (epsilon, delta), and where it is nearly Gaussian what composes better.

    With `rho`, on events of probability 1 - `extra_delta` on either side its probabilities are those of a
    sqrt(2 rho)-Gaussian-DP mechanism up to a factor e^`slack`, as `analytic_delta` proves, and `delta` is what
    (epsilon, delta) was stated at.
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    slack: float = 0.0
    extra_delta: float = 0.0

    @classmethod
    def of(cls, guarantee: Guarantee) -> Cost:
        """The cost of a formal guarantee. One that is zCDP only, or pure, composes by its epsilon."""
        if guarantee.rho is None or guarantee.slack is None:
            return cls(guarantee.epsilon, guarantee.delta)
        return cls(guarantee.epsilon, guarantee.delta, guarantee.rho, guarantee.slack, guarantee.extra_delta)

    def at(self, epsilon: float) -> Cost:
        """The cost of the same mechanism with another epsilon and the same deltas."""
        if self.rho is None:
            return replace(self, epsilon=epsilon)
        # As mechanisms choose their rho: names that are found cost a factor 1 / (1 - extra_delta) of e^epsilon.
        room = epsilon + math.log1p(-self.extra_delta) - self.slack
        delta = math.exp(-self.slack) * (self.delta - self.extra_delta) - _TAIL
        rho = _largest_rho(
            lambda rho: room > 0 and mu_to_delta(math.sqrt(2 * rho), room) <= delta, 4 * epsilon + 4
        )
        return replace(self, epsilon=epsilon, rho=rho)


def total_epsilon(costs: Sequence[Cost]) -> float:
    """An epsilon with: everything together is (epsilon, sum of all deltas)-DP. Never more than the sum of epsilons.

    Each release may be chosen by what the earlier ones showed, while its cost must not be.

    Proof. By Kairouz, Oh and Viswanath 2015 an (epsilon_i, delta_i)-DP release is epsilon_i-DP on events of
    probability 1 - delta_i on either side, and a nearly Gaussian one is as `Cost` says on events of probability
    1 - extra_i (events that are larger on one side are thinned at random). All these events together fail with
    at most A = sum of delta_i over the first kind and D = sum of extra_i over the second. Given them, densities
    of the whole are products of conditional densities, so the constants c1 and c2 of `analytic_delta` add up to
    at most S = sum of slacks, and its n far tails to at most 2 n `_TAIL` (tau is `_TAIL` e^-epsilon_i, or where
    names were found `_TAIL` e^-epsilon_i / (1 - extra_i)). The rounded Gaussians compose to mu-Gaussian DP with
    mu^2 = sum of 2 rho_i, also when chosen by earlier results (the composition theorem of Dong, Roth and Su
    2022), and releases of the first kind shift epsilon by their sum E. So for every e, the whole is
    (E + S + e, delta)-DP with

        delta = A + D + e^S (mu_to_delta(mu, e) + 2 n _TAIL e^e).

    The smallest e for which this is at most the sum of all deltas is taken.
    """
    plain = math.fsum(cost.epsilon for cost in costs)
    gaussian = [cost for cost in costs if cost.rho is not None]
    if len(gaussian) < 2:
        return plain  # one alone is as it was stated
    slack = math.fsum(cost.slack for cost in gaussian)
    shift = slack + math.fsum(cost.epsilon for cost in costs if cost.rho is None)
    high = plain - shift
    tails = 2 * len(gaussian) * _TAIL * math.exp(min(high, 700.0))
    delta = math.exp(-slack) * math.fsum(cost.delta - cost.extra_delta for cost in gaussian) - tails
    mu = math.sqrt(2 * math.fsum(cost.rho or 0.0 for cost in gaussian))
    if high <= 0 or delta <= 0 or mu_to_delta(mu, high) > delta:
        return plain
    low = 0.0
    while high - low > 1e-12 * high:
        # What is returned is always proved: rounding is on the private side.
        middle = (low + high) / 2
        low, high = (low, middle) if mu_to_delta(mu, middle) <= delta else (middle, high)
    return min(plain, shift + high)


def counted_epsilon(costs: Sequence[Cost]) -> float:
    """What releases, in the order in which they were made, count as: a total that never falls.

    `total_epsilon` is stated at the sum of all deltas, so a release that adds much delta and little epsilon would
    lower it. The largest total so far holds as well, and nobody can take for a refund what is none. Nor does all
    together count less than one release states for itself.
    """
    totals = [total_epsilon(costs[: n + 1]) for n in range(len(costs))]
    return max((*totals, *(cost.epsilon for cost in costs)), default=0.0)


def largest_epsilon(costs: Sequence[Cost], wanted: Cost, limit: float) -> float:
    """The largest epsilon, rounded down to three digits, with which `wanted` fits in the limit.

    0 if none from `LEAST_EPSILON` on does.
    """
    before = counted_epsilon(costs)

    def fits(epsilon: float) -> bool:
        together = max(before, epsilon, total_epsilon((*costs, wanted.at(epsilon))))
        return together <= limit * (1 + _TOLERANCE)

    if not fits(LEAST_EPSILON):
        return 0.0
    if fits(wanted.epsilon):
        return rounded_down(wanted.epsilon * (1 + _TOLERANCE))
    low, high = LEAST_EPSILON, wanted.epsilon
    while high / low > 1 + _TOLERANCE / 10:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return rounded_down(low)


def rounded_down(epsilon: float) -> float:
    """An epsilon with three digits, on the private side."""
    scale = 10.0 ** (2 - math.floor(math.log10(epsilon)))
    return math.floor(epsilon * scale) / scale


def _largest_rho(proved: Callable[[float], bool], high: float) -> float:
    """Bisection that keeps `proved` true at what it returns, so that rounding is on the private side."""
    low = 0.0
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if proved(middle) else (low, middle)
    return low
