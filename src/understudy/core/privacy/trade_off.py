"""What any attack can reach under a guarantee: the trade-off between its false alarms and its hits."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from understudy.core.privacy.guarantee import Guarantee


def worst_case(guarantee: Guarantee) -> dict[str, float]:
    """The most that any attack on one learner can reach under a guarantee, rounded up to percents.

    Testing one learner against another in their place has the power 1 - f(alpha) at false-alarm
    rate alpha, where f(alpha) = max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha))
    (Wasserman and Zhou 2010; Kairouz et al. 2015): the area under it is
    1 - (1 - delta)^2 / (1 + e^epsilon). With mu, f(alpha) = Phi(Phi^-1(1 - alpha) - mu) and the
    area is Phi(mu / sqrt 2) (Dong et al. 2022). Where a mechanism is Gaussian up to a factor
    e^slack, the power is at most e^slack Phi(Phi^-1(e^slack alpha) + mu) + delta (the proof's far tail is
    part of delta, since the curve is concave). All that is known holds, so the smallest does.
    """
    epsilon, delta, alpha = guarantee.epsilon, guarantee.delta, 0.01
    # In terms of e^-epsilon, which a large epsilon does not overflow.
    shrink = math.exp(-epsilon)
    auc = 1.0 - (1.0 - delta) ** 2 * shrink / (1.0 + shrink)
    power = 1.0 - shrink * (1.0 - delta - alpha)
    if epsilon < 50:
        power = min(power, math.exp(epsilon) * alpha + delta)
    if guarantee.mu is not None:
        auc = min(auc, float(norm.cdf(guarantee.mu / math.sqrt(2))))
        power = min(power, float(norm.cdf(norm.ppf(alpha) + guarantee.mu)))
    if guarantee.rho is not None and guarantee.slack is not None:
        mu, factor = math.sqrt(2.0 * guarantee.rho), math.exp(guarantee.slack)
        # Right ends of ten thousand steps: the power grows with alpha, so the sum is above the area.
        steps = np.append(np.arange(1, 10_001) / 10_000, alpha)
        powers = np.minimum(1.0, factor * norm.cdf(norm.ppf(np.minimum(1.0, factor * steps)) + mu) + delta)
        auc, power = min(auc, float(powers[:-1].mean())), min(power, float(powers[-1]))
    return {"auc": _rounded_up(auc), "tpr_at_1pct": _rounded_up(power)}


def _rounded_up(share: float) -> float:
    # A bound may not shrink by rounding; the allowance is for 0.57 * 100 = 56.99999999999999 and its like.
    return min(1.0, math.ceil(100 * share - 1e-9) / 100)
