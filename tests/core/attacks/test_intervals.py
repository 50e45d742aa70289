"""Confidence intervals: against scipy's exact ones, known values of Wilson's, and resamples of seeds."""

import numpy as np
import pytest
from scipy.stats import binom

from understudy.core.attacks.intervals import exact_interval, over_seeds, wilson_interval
from understudy.errors import DataError

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(("successes", "n"), [(1, 10), (3, 10), (9, 10), (400, 2000)])
def test_each_exact_bound_is_missed_with_the_stated_chance(successes, n):
    low, high = exact_interval(successes / n, n)
    assert binom.sf(successes - 1, n, low) == pytest.approx(0.025)
    assert binom.cdf(successes, n, high) == pytest.approx(0.025)
    assert exact_interval(successes / n, n, n_compared=5)[0] < low
    assert exact_interval(0.0, n)[0] == 0.0
    assert exact_interval(1.0, n)[1] == 1.0


def test_wilsons_interval_solves_its_quadratic():
    """The bounds are the shares p for which the observed one lies 1.96 standard errors of p away."""
    for successes, n in [(0, 10), (3, 10), (10, 10), (400, 2000)]:
        for bound in wilson_interval(successes, n):
            if 0 < bound < 1:
                error = np.sqrt(bound * (1 - bound) / n)
                assert abs(successes / n - bound) / error == pytest.approx(1.959964, rel=1e-5)
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_the_interval_over_seeds_holds_the_mean_and_is_reproducible():
    values = [0.1, 0.3, 0.2, 0.4, 0.25]
    result = over_seeds(values, np.random.default_rng(7))
    assert result.low < result.mean < result.high
    assert result.n_seeds == 5
    assert result == over_seeds(values, np.random.default_rng(7))
    assert over_seeds([0.3], np.random.default_rng(0)).to_json() == {
        "mean": 0.3,
        "low": 0.3,
        "high": 0.3,
        "n_seeds": 1,
    }
    with pytest.raises(DataError, match="no seed"):
        over_seeds([], np.random.default_rng(0))
