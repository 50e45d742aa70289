"""How many learners answered each item, where that is known with noise only.

Rates of answers are beta distributed over items, with the mean and the concentration that make the noisy numbers most
likely: of many items, each with much noise, the mean rate is known well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, logsumexp

from understudy.exams.estimators.noise_likelihood import answers_log_likelihood
from understudy.exams.mechanisms.totals import NoisyTotals

Floats = NDArray[np.float64]

_RATE_MEANS = np.linspace(-6.0, 6.0, 13)
_RATE_SIZES = np.linspace(math.log(1.5), math.log(200.0), 6)
# Numbers of answers: so many to find which are likely, and so many of these.
_SOUGHT_ANSWERS, _N_ANSWERS = 65, 15


@dataclass(frozen=True, eq=False)
class NumbersOfAnswers:
    """Per item, numbers of answers to integrate over, what each stands for, and the weight of each before looking."""

    totals: NoisyTotals
    numbers: Floats
    step: Floats
    log_prior: Floats

    @classmethod
    def of(cls, totals: NoisyTotals) -> NumbersOfAnswers:
        """The numbers that are likely for each item."""
        n, law = totals.n_learners, totals.law
        noise = math.sqrt(totals.covariance[1, 1])
        if not noise:
            known = np.clip(totals.answered, 1.0, n)[:, None]
            return cls(totals, known, np.ones_like(known), np.zeros_like(known))
        reach = float(law.radii()[-1]) if law.kind == "hexagon" else 4.5 * noise
        middle = np.clip(totals.answered, 0.0, n)
        # A number that noise has moved out of what is possible leaves the possible ones close to it.
        ends = np.array([np.maximum(middle - reach, 0.0), np.minimum(middle + reach, n)])
        low, high = np.arcsin(np.sqrt(ends / n))
        angle, rate, step = _rates(low, high, n, _SOUGHT_ANSWERS)
        likelihood = answers_log_likelihood(totals, n * rate, law.middle, step) + np.log(step)
        best = _best_rates(rate, likelihood)
        weight = likelihood + _log_beta(rate, *best)
        likely = weight > weight.max(axis=1, keepdims=True) - 10.0
        rows, half = np.arange(len(rate)), 0.5 * (angle[:, 1] - angle[:, 0])
        low = angle[rows, likely.argmax(axis=1)] - half
        high = angle[rows, _SOUGHT_ANSWERS - 1 - likely[:, ::-1].argmax(axis=1)] + half
        _, rate, step = _rates(low, high, n, _N_ANSWERS)
        return cls(totals, n * rate, step, np.log(step) + _log_beta(rate, *best))

    def log_weight(self, radius: float) -> Floats:
        """Of each number, with the noisy number known."""
        if not self.totals.covariance[1, 1]:
            return self.log_prior
        return self.log_prior + answers_log_likelihood(self.totals, self.numbers, radius, self.step)

    @cached_property
    def expected(self) -> Floats:
        """The expected number of answers to each item."""
        log_weight = self.log_weight(self.totals.law.middle)
        weight = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
        return np.asarray((weight * self.numbers).sum(axis=1))


def _rates(low: Floats, high: Floats, n_learners: int, size: int) -> tuple[Floats, Floats, Floats]:
    """Angles between two of each item, the rates that are their squared sines, and the answers that each stands for.

    In equal steps of the angle: a beta distribution of rates is about as wide in it everywhere.
    """
    angle = low[:, None] + (high - low)[:, None] * (np.arange(size) + 0.5) / size
    step = n_learners * (high - low)[:, None] * np.sin(2.0 * angle) / size
    return angle, np.clip(np.sin(angle) ** 2, 1e-9, 1.0 - 1e-9), np.maximum(step, 1e-12)


def _best_rates(rate: Floats, log_likelihood: Floats) -> tuple[float, float]:
    """Mean and size of the beta distribution of rates that makes the noisy numbers of answers most likely."""

    def evidence(law: tuple[float, float]) -> float:
        mean, size = expit(law[0]), math.exp(law[1])
        # A density without bound at 0 or 1 could not be summed over a few numbers.
        if min(mean, 1.0 - mean) * size < 0.5 or not 1.4 < size < 201.0:
            return -math.inf
        return float(logsumexp(log_likelihood + _log_beta(rate, mean, size), axis=1).sum())

    best = max(((mean, size) for mean in _RATE_MEANS for size in _RATE_SIZES), key=evidence)
    # With thousands of items the mean is known to a few hundredths.
    for step in (1.0, 0.25, 0.06):
        nearby = [
            (best[0] + up * step / 2, best[1] + wide * step / 2) for up in range(-2, 3) for wide in (-1, 0, 1)
        ]
        best = max(nearby, key=evidence)
    return float(expit(best[0])), math.exp(best[1])


def _log_beta(rate: Floats, mean: float, size: float) -> Floats:
    a, b = mean * size, (1.0 - mean) * size
    return np.asarray((a - 1.0) * np.log(rate) + (b - 1.0) * np.log1p(-rate) - betaln(a, b))
