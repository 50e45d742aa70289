"""The prior of difficulties: what to expect of an exam before it is seen, declared or from an earlier one."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from understudy.errors import DataError, UsageError
from understudy.exams.difficulties_file import Difficulties
from understudy.exams.estimators.noisy_totals import Prior


def parse_prior(given: str | Path) -> Prior | Difficulties:
    """What difficulties to expect, as people write it: `MEAN,SD`, or the difficulties file of an earlier exam."""
    if isinstance(given, Path) or given.endswith(".json"):
        return Difficulties.read(given)
    mean, _, spread = given.partition(",")
    try:
        prior = Prior(float(mean), float(spread))
    except ValueError:
        raise UsageError(
            f"a prior is MEAN,SD or a difficulties file, not '{given}'.",
            hint="for example 0,2.",
            settings=("prior",),
        ) from None
    if not (abs(prior.mean) <= 10 and 0.01 <= prior.spread <= 20):
        raise UsageError(
            f"difficulties around {prior.mean:g} that spread by {prior.spread:g} were asked for.",
            hint="the mean lies between -10 and 10, the standard deviation between 0.01 and 20.",
            settings=("prior",),
        )
    return prior


def prior_of(earlier: Difficulties) -> Prior:
    """The prior that an earlier exam's released difficulties suggest: their mean, and their own spread.

    Errors make estimates spread differently from true difficulties: private ones, which are
    posterior means, are drawn together by the mean squared error, others driven apart by it.
    """
    known = [item for item in earlier.items if item.difficulty is not None]
    if len(known) < 2:
        raise DataError(
            f"a prior takes at least 2 items with a difficulty; the earlier exam has {len(known)}.",
            hint="give a mean and a standard deviation, or leave the prior out.",
            settings=("prior",),
        )
    values = np.array([item.difficulty for item in known], dtype=np.float64)
    errors = np.array([item.standard_error or 0.0 for item in known])
    missing = float((errors**2).mean()) * (1.0 if earlier.guarantee.formal else -1.0)
    return Prior(float(values.mean()), math.sqrt(max(float(values.var()) + missing, 0.01)))
