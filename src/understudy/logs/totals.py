"""Sums per learner, action or step: the one operation that every statistic here is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.logs.interactions import IntArray


def totals(code: IntArray, weight: NDArray[np.generic], n_codes: int) -> NDArray[np.float64]:
    """The sum of the weights of each code."""
    sums: NDArray[np.float64] = np.bincount(code, weights=weight, minlength=n_codes).astype(np.float64)
    return sums
