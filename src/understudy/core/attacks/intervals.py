"""Confidence intervals of shares."""

from __future__ import annotations

from scipy.stats import beta

LEVEL = 0.95


def exact_interval(share: float, n: int, *, level: float = LEVEL, n_compared: int = 1) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share of n trials, which may be a fraction of whole successes.

    With `n_compared` the lower bound holds for so many shares at once (Bonferroni), for whoever picks
    the largest of them.
    """
    successes, tail = share * n, (1 - level) / 2
    low = 0.0 if successes <= 0 else float(beta.ppf(tail / n_compared, successes, n - successes + 1))
    high = 1.0 if successes >= n else float(beta.ppf(1 - tail, successes + 1, n - successes))
    return low, high
