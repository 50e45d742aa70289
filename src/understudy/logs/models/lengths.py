"""How many rows learners have: what noisy sums tell about it, and how far the mean can be off.

Post-processing, which costs no privacy: everything here sees noisy sums over learners with the standard deviation of
their noise, and never a learner. Each sum is of a function of a learner's number of rows: its logarithm, being in a
bin, being cut at some number.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from understudy.logs.interactions import totals
from understudy.logs.models.denoising import to_simplex

Floats = NDArray[np.float64]

# The logarithm of lengths is taken to be normal, with a standard deviation of about 1.2, give or take a factor of 2.
USUAL_SPREAD, SPREAD_DOUBT = 1.2, 0.7
# Real shares of bins depart from that law by as much as the law itself, alike in bins that are near each other.
DEPARTURE, REACH = 1.0, 2.0
# A bin whose noisy count lies so many standard deviations from that law is believed by itself, whatever the law says:
# a platform may have a few learners who do fifty times as much as others.
OUTSTANDING = 3.5
# Within a bin lengths are not known; on logs whose learners all had the same length it moved the mean by 5 %.
BIN_WIDTH = 0.05


class Lengths:
    """What is believed about the lengths of `n_learners` learners, from 1 to the last edge; bins lie between edges."""

    def __init__(self, n_learners: int, edges: NDArray[np.integer]) -> None:
        self.n_learners = n_learners
        self.rows = np.arange(1, int(edges[-1]), dtype=np.float64)
        self._bin = np.searchsorted(edges, self.rows, side="right") - 1
        # Within a bin, shorter ones are likelier.
        weight = 1.0 / self.rows
        self._within = weight / np.bincount(self._bin, weight)[self._bin]
        self._laws = _normal_laws(tuple(edges.tolist()))
        self._seen: list[tuple[Floats, Floats, float, float]] = []
        self._counts, self._count_noise = np.zeros(len(edges) - 1), np.full(len(edges) - 1, np.inf)

    def observe(self, feature: Floats, total: float, sigma: float) -> None:
        """Take in a noisy sum over learners: `feature` is what a learner of each length adds to it."""
        mean, square = self._by_bin(feature), self._by_bin(feature**2)
        self._seen.append((mean, square, total, sigma))

    def observe_moments(self, sums: Floats, sigma: float) -> None:
        """Take in noisy sums of the logarithm of length, from 0 (one row) to 1 (the longest), and of its square."""
        position = np.log(self.rows) / np.log(self.rows[-1])
        for feature, total in zip((position, position**2), sums, strict=True):
            self.observe(feature, float(total), sigma)

    def observe_bins(self, counts: Floats, sigma: float | Floats) -> None:
        """Take in noisy numbers of learners in each bin."""
        self._counts, self._count_noise = counts, np.broadcast_to(sigma, counts.shape)
        for place, (total, noise) in enumerate(zip(counts, self._count_noise, strict=True)):
            self.observe((self._bin == place).astype(np.float64), float(total), float(noise))

    @property
    def unseen(self) -> int:
        """So many learners of a length that is far from all others do not stand out from the noise."""
        return min(self.n_learners, math.ceil(OUTSTANDING * float(self._count_noise.max())))

    def bins(self, law: Floats) -> Floats:
        """The share of each bin under a law of lengths."""
        return totals(self._bin, law, self._bin[-1] + 1)

    def law(self) -> tuple[Floats, float]:
        """The chance of each length, and a factor within which the real mean is of this law's mean, as a rule.

        First the normal laws of logarithms are weighed by what was observed; then bins may depart from their mean
        (a Gaussian process with the noisy sums as linear observations), as far as that law allows, and those that
        stand out from the noise as far as they do. The factor
        is two standard deviations of both, and what is not known within bins.
        """
        weight = self._weights()
        prior = weight @ self._laws
        per_bin = self._by_bin(self.rows)
        by_law = np.log(self._laws @ per_bin)
        doubt_of_law = float(np.sqrt(weight @ (by_law - weight @ by_law) ** 2))
        learners, covariance = self._departed(self.n_learners * prior)
        shares = to_simplex(learners, self.n_learners) / self.n_learners
        mean = float(shares @ per_bin)
        doubt = np.sqrt(max(float(per_bin @ covariance @ per_bin), 0.0)) / (self.n_learners * mean)
        law = shares[self._bin] * self._within
        return law / law.sum(), float(np.exp(2.0 * np.hypot(doubt, doubt_of_law) + BIN_WIDTH))

    def _by_bin(self, feature: Floats) -> Floats:
        """The mean of a feature in each bin."""
        return totals(self._bin, self._within * feature, self._bin[-1] + 1)

    def _weights(self) -> Floats:
        """How likely each normal law is after what was observed."""
        _, spread = _grid()
        log_weight = -0.5 * (np.log(spread * np.log(self.rows[-1]) / USUAL_SPREAD) / SPREAD_DOUBT) ** 2
        for mean, square, total, sigma in self._seen:
            expected = self._laws @ mean
            variance = sigma**2 + self.n_learners * np.maximum(self._laws @ square - expected**2, 0.0)
            log_weight -= 0.5 * (total - self.n_learners * expected) ** 2 / variance + 0.5 * np.log(variance)
        weight = np.exp(log_weight - log_weight.max())
        normed: Floats = weight / weight.sum()
        return normed

    def _departed(self, prior: Floats) -> tuple[Floats, Floats]:
        """Learners in each bin with their covariance, departing from the prior where the noise lets it be seen."""
        place = np.arange(len(prior))
        near = np.exp(-0.5 * ((place[:, None] - place) / REACH) ** 2)
        departure = self._counts - prior
        outstanding = np.abs(departure) > OUTSTANDING * np.sqrt(self._count_noise**2 + prior)
        own = np.where(outstanding, departure**2, 0.0)
        covariance = DEPARTURE**2 * prior[:, None] * near * prior + np.diag(prior + own)
        # All learners together are public.
        seen = [*self._seen, (np.ones(len(prior)), np.ones(len(prior)), float(self.n_learners), 1e-3)]
        matrix = np.array([mean for mean, _, _, _ in seen])
        noise = [sigma**2 + float((square - mean**2) @ prior) for mean, square, _, sigma in seen]
        observed = np.array([total for _, _, total, _ in seen])
        gain = np.linalg.solve(matrix @ covariance @ matrix.T + np.diag(noise), matrix @ covariance).T
        return prior + gain @ (observed - matrix @ prior), covariance - gain @ matrix @ covariance


def spread_lengths(law: Floats, n_learners: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Lengths of so many learners, as close to a law as so many can be (systematic sampling), in random order.

    Drawn one by one, a few very long ones more or less would move the number of all rows by a tenth.
    """
    place = (rng.permutation(n_learners) + rng.random()) / n_learners
    return 1 + np.searchsorted(np.cumsum(law)[:-1], place, side="right")


def _grid() -> tuple[Floats, Floats]:
    """Means and standard deviations of the logarithm of length, as shares of that of the longest."""
    mean, spread = np.meshgrid(np.linspace(0.05, 0.95, 61), np.geomspace(0.03, 0.45, 31))
    return mean.ravel(), spread.ravel()


@lru_cache(maxsize=4)
def _normal_laws(edges: tuple[int, ...]) -> Floats:
    """The shares of bins under each normal law of the grid."""
    mean, spread = _grid()
    position = np.log(edges) / np.log(max(edges[-1] - 1, 2))
    shares = np.diff(norm.cdf(position, mean[:, None], spread[:, None]), axis=1) + 1e-9
    laws: Floats = shares / shares.sum(axis=1, keepdims=True)
    laws.setflags(write=False)
    return laws
