"""Confidence intervals: of shares, and of a figure's mean over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, binomtest

from understudy.errors import DataError

LEVEL = 0.95
N_BOOTSTRAPS = 1000


def exact_interval(
    share: float, n: float, *, level: float = LEVEL, n_compared: int = 1
) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share of n trials, which may be a fraction of whole successes.

    `n` may be smaller than the number of trials where these depend on each other. With `n_compared` the lower
    bound holds for so many shares at once (Bonferroni), for whoever picks the largest of them.
    """
    successes, tail = share * n, (1 - level) / 2
    low = 0.0 if successes <= 0 else float(beta.ppf(tail / n_compared, successes, n - successes + 1))
    high = 1.0 if successes >= n else float(beta.ppf(1 - tail, successes + 1, n - successes))
    return low, high


def wilson_interval(successes: int, n: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of a share of n trials: shorter than the exact one, right on average."""
    if n == 0:
        return 0.0, 1.0
    found = binomtest(successes, n).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


@dataclass(frozen=True)
class SeedInterval:
    """The mean of a figure over seeds with its 95 % interval."""

    mean: float
    low: float
    high: float
    n_seeds: int

    def to_json(self) -> dict[str, Any]:
        """The interval for a machine."""
        return dict(vars(self))


def over_seeds(values: Sequence[float], rng: np.random.Generator) -> SeedInterval:
    """The mean of a figure over seeds and its 95 % interval from 1,000 resamples of the seeds.

    Resamples of five seeds are few (126 different ones), and the interval is somewhat too short. One seed
    has no interval: it is then the value itself.
    """
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        raise DataError("there is no seed to average over.", hint="run at least one.")
    means = sample[rng.integers(len(sample), size=(N_BOOTSTRAPS, len(sample)))].mean(axis=1)
    low, high = np.quantile(means, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return SeedInterval(float(sample.mean()), float(low), float(high), len(sample))
