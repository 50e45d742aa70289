"""Mechanisms run many times on two worst-case neighbours, and lower bounds of what they lose."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from understudy.core.privacy import mechanisms
from understudy.core.privacy.audit import MuEstimate, mu_lower_bound
from understudy.core.privacy.composition import mu_from_pure
from understudy.core.privacy.noise import IntArray, Noise, os_noise

Floats = npt.NDArray[np.float64]

MECHANISMS = ("cube", "hexagon", "gaussian", "statistics")

# A correct mechanism is called broken less than once in this many audits: its true loss is the
# claim itself, so at 95 % every twentieth audit would raise a false alarm.
CONFIDENCE = 1 - 1e-4
_N_THRESHOLDS = 200
# The threshold is chosen by stricter bounds than it is judged by, as in `privacy.audit`.
_CHOICE_ERROR = 1e-7


@dataclass(frozen=True)
class EpsilonEstimate:
    """A lower confidence bound of epsilon: an event that is `rate` / `other_rate` times as likely.

    `rate` is a lower confidence bound of the event's probability on one data set, `other_rate` an
    upper one on the other; together they hold with probability `confidence`.
    """

    lower: float
    confidence: float
    n_runs: int
    rate: float
    other_rate: float


@dataclass(frozen=True)
class Empirical:
    """One mechanism run on two worst-case neighbours; epsilon only where the claim is pure."""

    mechanism: str
    n_items: int
    claimed_epsilon: float | None
    claimed_mu: float
    epsilon: EpsilonEstimate | None
    mu: MuEstimate

    @property
    def claimed(self) -> float:
        """The claim in its own currency: epsilon, or mu of a Gaussian."""
        return self.claimed_mu if self.claimed_epsilon is None else self.claimed_epsilon

    @property
    def found(self) -> float:
        """The lower bound in the same currency."""
        return self.mu.lower if self.epsilon is None else self.epsilon.lower

    @property
    def breaks(self) -> bool:
        """Whether the bound is above the claim."""
        return self.found > self.claimed


def epsilon_lower_bound(
    unchanged: npt.ArrayLike, changed: npt.ArrayLike, confidence: float = 0.95
) -> EpsilonEstimate:
    """A lower bound of epsilon from scores of runs on two neighbours, in the order they were made.

    Pure epsilon-DP allows no event to be more than e^epsilon times as likely on one data set as
    on the other. The event is "score at least a threshold" or "at most"; half of the runs choose
    it, Clopper-Pearson bounds on the other half judge it, each at half of the allowed error.
    """
    low, high = (np.asarray(scores, dtype=np.float64) for scores in (unchanged, changed))
    if low.ndim != 1 or low.shape != high.shape or low.size < 4:
        raise ValueError(f"an audit takes two score vectors of one length, not {low.shape}, {high.shape}")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence has to be in [0.5, 1), not {confidence}")
    error = (1 - confidence) / 2
    half = low.size // 2
    # "At least" favours the changed data, "at most" the unchanged; a score may point either way.
    tests = [(sign * one, sign * other) for sign in (1, -1) for one, other in ((low, high), (high, low))]
    best, chosen = -math.inf, (low, high, 0.0)
    for rare, common in tests:
        pooled = np.concatenate([rare[:half], common[:half]])
        thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, _N_THRESHOLDS), method="lower"))
        rates = _rates(rare[:half], common[:half], thresholds, min(error, _CHOICE_ERROR))
        bounds = np.log(np.maximum(rates[0], 1e-300)) - np.log(rates[1])
        place = int(np.argmax(bounds))
        if bounds[place] > best:
            best, chosen = float(bounds[place]), (rare, common, float(thresholds[place]))
    rare, common, threshold = chosen
    rate, other = _rates(rare[half:], common[half:], np.array([threshold]), error)
    lower = math.log(rate[0] / other[0]) if rate[0] > 0 else 0.0
    return EpsilonEstimate(max(0.0, lower), confidence, low.size, float(rate[0]), float(other[0]))


def _rates(rare: Floats, common: Floats, thresholds: Floats, error: float) -> tuple[Floats, Floats]:
    """Of the events "score at least the threshold": lower bounds of their rates in `common`, upper in `rare`."""
    n, m = common.size, rare.size
    hits = n - np.searchsorted(np.sort(common), thresholds, side="left")
    alarms = m - np.searchsorted(np.sort(rare), thresholds, side="left")
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1.0, error), 0.0)
    upper = np.where(alarms < m, betaincinv(alarms + 1.0, np.maximum(m - alarms, 1), 1 - error), 1.0)
    return lower, upper


def empirical_audit(
    mechanism: str,
    *,
    n_items: int = 5,
    epsilon: float = 1.0,
    rho: float = 0.5,
    n_runs: int = 20_000,
    confidence: float = CONFIDENCE,
    noise: Noise | None = None,
    noise_factor: float = 1.0,
) -> Empirical:
    """Run a mechanism on two worst-case neighbours and bound its loss from below.

    One learner has everything right, and is replaced by one with everything wrong (for the
    hexagon: by one who answered nothing): the totals move by one in every cell, as far as they
    can. The score of a run is the exact log-likelihood ratio, the best there is. "cube",
    "hexagon" and "statistics" claim `epsilon`, "gaussian" claims mu = sqrt(2 rho) (it is
    rho-zCDP, and on a lattice this fine no test can tell it from a Gaussian).

    `noise_factor` below 1 plants a bug, noise that much too small, to see that the audit catches it.
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"no mechanism is called {mechanism!r}; there are {', '.join(MECHANISMS)}")
    source = noise or os_noise()
    run = _RUNS[mechanism]
    claim = rho if mechanism == "gaussian" else epsilon
    scores = [run(n_items, claim, changed, n_runs, source, noise_factor) for changed in (False, True)]
    mu = mu_lower_bound(scores[0], scores[1], confidence)
    if mechanism == "gaussian":
        return Empirical(mechanism, n_items, None, math.sqrt(2 * rho), None, mu)
    bound = epsilon_lower_bound(scores[0], scores[1], confidence)
    return Empirical(mechanism, n_items, epsilon, mu_from_pure(epsilon), bound, mu)


def _cube_scores(
    n_items: int, epsilon: float, changed: bool, n_runs: int, noise: Noise, factor: float
) -> Floats:
    totals = np.full(n_items, int(changed), dtype=np.int64)
    drawn = [mechanisms.knorm_cube(totals, epsilon=epsilon / factor, noise=noise) for _ in range(n_runs)]
    released = np.array(drawn)
    return np.asarray(epsilon * (np.abs(released).max(axis=1) - np.abs(released - 1).max(axis=1)))


def _hexagon_scores(
    n_items: int, epsilon: float, changed: bool, n_runs: int, noise: Noise, factor: float
) -> Floats:
    totals = np.full((n_items, 2), int(changed), dtype=np.int64)
    drawn = [mechanisms.knorm_hexagon(totals, epsilon=epsilon / factor, noise=noise) for _ in range(n_runs)]
    released = np.array(drawn)
    return np.asarray(epsilon * (_hexagon_norm(released) - _hexagon_norm(released - 1)))


def _hexagon_norm(pairs: IntArray) -> IntArray:
    correct, answered = pairs[..., 0], pairs[..., 1]
    sizes = np.maximum(np.maximum(np.abs(correct), np.abs(answered)), np.abs(correct - answered))
    return np.asarray(sizes.max(axis=-1))


def _gaussian_scores(
    n_items: int, rho: float, changed: bool, n_runs: int, noise: Noise, factor: float
) -> Floats:
    totals = np.full((n_runs, n_items), int(changed), dtype=np.int64)
    sensitivity = math.sqrt(n_items)
    released = mechanisms.gaussian(totals, sensitivity=factor * sensitivity, rho=rho, noise=noise)
    # (|y|^2 - |y - 1|^2) / (2 sigma^2)
    return np.asarray((2 * released.sum(axis=1) - n_items) * rho / n_items, dtype=np.float64)


def _statistics_scores(
    n_items: int, epsilon: float, changed: bool, n_runs: int, noise: Noise, factor: float
) -> Floats:
    """The replaced learner's score and the totals, each with noise for sensitivity I, as published."""
    move = np.array([n_items] + [1] * n_items)
    values = np.broadcast_to(move * int(changed), (n_runs, n_items + 1))
    released = mechanisms.laplace(values, sensitivity=n_items, epsilon=epsilon / factor, noise=noise)
    return np.asarray((np.abs(released) - np.abs(released - move)).sum(axis=1) * epsilon / n_items)


_RUNS: dict[str, Callable[[int, float, bool, int, Noise, float], Floats]] = {
    "cube": _cube_scores,
    "hexagon": _hexagon_scores,
    "gaussian": _gaussian_scores,
    "statistics": _statistics_scores,
}
