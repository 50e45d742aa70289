"""What drives the price of a request, its method or the size of its answer? Statistics over a study's requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.desk.web.price_figures import Interval, PricedRequest, rank_correlation
from understudy.errors import DataError

CAUSAL = "causal"
N_RESAMPLED = 10_000


@dataclass(frozen=True)
class Drivers:
    """Size and method against the advantage of each request alone; intervals are over requests, 95 %.

    `by_size` is the rank correlation of output size with advantage, `by_size_of_others` the same without causal
    analyses, `by_influence` that of the largest influence of one learner. `chance` is how often requests dealt
    out at random differ as much as causal ones and others do (either way).
    """

    by_size: Interval
    by_size_of_others: Interval
    by_influence: Interval
    causal: Interval
    others: Interval
    difference: Interval
    chance: float
    n_causal: int
    n_others: int

    @property
    def method_drives(self) -> bool:
        """Whether the published finding is seen: causal analyses cost more, and larger answers do not."""
        return self.difference[1] > 0 and self.by_size[1] <= 0


def drivers(
    requests: Sequence[PricedRequest], influences: Sequence[float], rng: np.random.Generator
) -> Drivers:
    """What the requests of a study say about method, size, and the largest influence of one learner on each."""
    causal = np.array([one.advantage[0] for one in requests if one.kind == CAUSAL])
    others = np.array([one.advantage[0] for one in requests if one.kind != CAUSAL])
    if len(causal) < 2 or len(others) < 3:
        raise DataError("two causal requests and three others are needed to compare them.", hint="add some.")
    again = [rng.choice(side, (N_RESAMPLED, len(side))).mean(axis=1) for side in (causal, others)]
    gap = float(causal.mean() - others.mean())
    dealt = rng.permuted(np.tile(np.concatenate([causal, others]), (N_RESAMPLED, 1)), axis=1)
    gaps = dealt[:, : len(causal)].mean(axis=1) - dealt[:, len(causal) :].mean(axis=1)
    sizes = [(float(one.n_outputs), one.advantage[0]) for one in requests]
    influenced = [(most, one.advantage[0]) for most, one in zip(influences, requests, strict=True)]
    other_sizes = [(float(one.n_outputs), one.advantage[0]) for one in requests if one.kind != CAUSAL]
    return Drivers(
        _correlation(sizes, rng),
        _correlation(other_sizes, rng),
        _correlation(influenced, rng),
        _around(float(causal.mean()), again[0]),
        _around(float(others.mean()), again[1]),
        _around(gap, again[0] - again[1]),
        float((1 + np.sum(np.abs(gaps) >= abs(gap) - 1e-12)) / (1 + N_RESAMPLED)),
        len(causal),
        len(others),
    )


def _around(value: float, resampled: Any) -> Interval:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return value, float(low), float(high)


def _correlation(points: Sequence[tuple[float, float]], rng: np.random.Generator, n: int = 1000) -> Interval:
    found = [
        rank_correlation([points[place] for place in rng.integers(len(points), size=len(points))])
        for _ in range(n)
    ]
    value = rank_correlation(points)
    return _around(0.0 if value is None else value, [one for one in found if one is not None] or [0.0])
