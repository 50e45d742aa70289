"""Composition: from what mechanisms spend (rho, mu) to the epsilon and delta that are stated.

zCDP adds up: mechanisms with rho_1, rho_2, ... on the same learners are (rho_1 + rho_2 + ...)-zCDP
together, also when a later one is chosen by an earlier one's result (Bun and Steinke 2016).
The conversion to (epsilon, delta) is dp-accounting's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from understudy.privacy.guarantee import Guarantee

# Slack for the comparison of floating-point epsilons, far below anything that is printed.
_TOLERANCE = 1e-9


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
    # rho-zCDP at order infinity would be pure: epsilon is always more than rho, and 0 costs 0.
    low, high = 0.0, epsilon
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if epsilon_for(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


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


def compose(guarantees: Sequence[Guarantee], delta: float) -> Guarantee:
    """One guarantee for everything that was released about the same learners.

    Basic composition (epsilons and deltas add up) always holds. Where every guarantee is zCDP
    (rho is known, or it is pure: epsilon-DP is epsilon^2/2-zCDP, Bun and Steinke 2016) the
    rhos add up too; the smaller epsilon is stated. `delta` is what zCDP is stated at.
    """
    if not guarantees:
        raise ValueError("there is nothing to compose")
    if not all(one.formal for one in guarantees):
        return Guarantee.none("composed with a release that has no formal guarantee")
    names = tuple(dict.fromkeys(name for one in guarantees for name in one.mechanisms))
    basic = Guarantee(
        math.fsum(one.epsilon for one in guarantees),
        math.fsum(one.delta for one in guarantees),
        mechanisms=names,
    )
    rhos = [_rho(one) for one in guarantees]
    known = [rho for rho in rhos if rho is not None]
    if len(known) < len(rhos):
        return basic
    rho = math.fsum(known)
    epsilon = epsilon_for(rho, delta)
    if epsilon < basic.epsilon or delta < basic.delta:
        return from_zcdp(rho, epsilon, delta, names)
    return basic


def _rho(guarantee: Guarantee) -> float | None:
    if guarantee.rho is not None:
        return guarantee.rho
    return guarantee.epsilon**2 / 2 if guarantee.delta == 0 else None
