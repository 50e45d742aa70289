"""Audit: a lower bound of the mu that a mechanism really has, from many runs on two neighbours.

The auditor's story: two data sets differ in one learner. They run the mechanism many times on
each, reduce every result to one number, and guess from that number which data set it was. If
the guesses err less often than mu-Gaussian DP allows, the mechanism does not have that mu.

What it proves: with the stated confidence mu is at least `lower`, for this pair of data sets
and this number. A bound above the claim is a bug. A bound below it proves nothing more: other
neighbours, or another number, could show more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

FloatArray = npt.NDArray[np.float64]

METHOD = "threshold chosen on half of the runs, Clopper-Pearson bounds of its errors on the other half"
_N_THRESHOLDS = 200
# The threshold is chosen by stricter bounds than it is judged by: they keep it away from the
# tails, where a few lucky runs look better than they are.
_CHOICE_ERROR = 1e-7


@dataclass(frozen=True)
class MuEstimate:
    """A lower confidence bound of mu, and the test that gives it.

    `false_positive` and `false_negative` are upper confidence bounds of the test's errors;
    together they hold with probability `confidence`.
    """

    lower: float
    confidence: float
    n_runs: int
    false_positive: float
    false_negative: float
    method: str = METHOD

    def __str__(self) -> str:
        return f"mu at least {self.lower:.2f} ({self.confidence:.0%} confidence, {self.n_runs} runs a side)"


def audit_mu(run: Callable[[bool, int], npt.ArrayLike], n_runs: int, confidence: float = 0.95) -> MuEstimate:
    """Audit a mechanism: `run(changed, n_runs)` gives a score per run, on the data or on its neighbour.

    The score must be a fixed function of what the mechanism releases. Half of the runs choose
    the threshold and the direction, the other half are judged by them.
    """
    return mu_lower_bound(run(False, n_runs), run(True, n_runs), confidence)


def mu_lower_bound(unchanged: npt.ArrayLike, changed: npt.ArrayLike, confidence: float = 0.95) -> MuEstimate:
    """The bound from scores that exist already, the runs in the order in which they were made.

    mu-Gaussian DP requires of every test: Phi^-1(1 - FPR) - Phi^-1(FNR) <= mu (Dong, Roth and
    Su 2022). Each error rate gets an upper Clopper-Pearson bound at half of the allowed error.
    """
    null, alternative = (np.asarray(scores, dtype=np.float64) for scores in (unchanged, changed))
    if null.ndim != 1 or null.shape != alternative.shape or null.size < 4:
        raise ValueError(
            f"an audit takes two score vectors of one length, not {null.shape}, {alternative.shape}"
        )
    if not (np.isfinite(null).all() and np.isfinite(alternative).all()):
        raise ValueError("a score that is not a number cannot be compared with a threshold")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence has to be in [0.5, 1), not {confidence}")
    error = (1 - confidence) / 2
    strict = min(error, _CHOICE_ERROR)
    half = null.size // 2

    pooled = np.concatenate([null[:half], alternative[:half]])
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, _N_THRESHOLDS), method="lower"))
    best = (-np.inf, 1.0, 0.0)
    for sign in (1.0, -1.0):
        positive, negative = _errors(sign * null[:half], sign * alternative[:half], sign * thresholds, strict)
        bounds = _mu(positive, negative)
        place = int(np.argmax(bounds))
        best = max(best, (float(bounds[place]), sign, float(thresholds[place])))
    _, sign, threshold = best

    positive, negative = _errors(
        sign * null[half:], sign * alternative[half:], np.array([sign * threshold]), error
    )
    return MuEstimate(
        lower=max(0.0, float(_mu(positive, negative)[0])),
        confidence=confidence,
        n_runs=null.size,
        false_positive=float(positive[0]),
        false_negative=float(negative[0]),
    )


def _errors(
    null: FloatArray, alternative: FloatArray, thresholds: FloatArray, error: float
) -> tuple[FloatArray, FloatArray]:
    """Upper bounds of both error rates of the tests "changed if the score is above the threshold"."""
    null, alternative = np.sort(null), np.sort(alternative)
    false_positives = null.size - np.searchsorted(null, thresholds, side="right")
    false_negatives = np.searchsorted(alternative, thresholds, side="right")
    return (
        _upper(false_positives, null.size, error),
        _upper(false_negatives, alternative.size, error),
    )


def _upper(count: npt.NDArray[np.int64], n: int, error: float) -> FloatArray:
    """Clopper-Pearson: the largest rate under which `count` or fewer of n has probability `error`."""
    bound = betaincinv(count + 1.0, np.maximum(n - count, 1.0), 1 - error)
    return np.where(count >= n, 1.0, bound)


def _mu(false_positive: FloatArray, false_negative: FloatArray) -> FloatArray:
    # -Phi^-1(p) = Phi^-1(1 - p); an error bound of 1 says nothing: minus infinity.
    return np.asarray(-ndtri(false_positive) - ndtri(false_negative), dtype=np.float64)
