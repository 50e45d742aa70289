"""Intervals of identification: coverage when hits are probabilities, and when the strongest attack was picked."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from understudy.core.attacks.intervals import LEVEL, exact_interval
from understudy.keystrokes.attacks.identification import identification, matched, strongest

pytestmark = pytest.mark.oracle

STEPS = 12  # hits are multiples of 1/12: 0, 1/12, ..., 1


def misses(law, n, grid_low, grid_high):
    """The chance that the lower bound lies above the true rate, and the upper one below it: computed, not drawn."""
    size = n * STEPS + 1
    total = np.clip(np.fft.irfft(np.fft.rfft(law, 2 * size) ** n, 2 * size)[:size], 0.0, None)
    rate = law @ np.arange(STEPS + 1) / STEPS
    return total[grid_low > rate + 1e-12].sum(), total[grid_high < rate - 1e-12].sum()


def laws(rng):
    """Laws of a person's chance to be hit: few points, many points, rare certain hits, rare fractions."""
    for _ in range(1500):
        points = rng.choice(STEPS + 1, size=rng.integers(2, 5), replace=False)
        law = np.zeros(STEPS + 1)
        law[points] = rng.dirichlet(np.full(len(points), rng.choice([0.2, 1.0, 5.0])))
        # Most of the weight on one end makes the rates small or large, where such bounds are weakest.
        if rng.random() < 0.6:
            end = rng.choice([0, STEPS])
            law *= 10 ** rng.uniform(-2.5, 0)
            law[end] += 1 - law.sum()
        yield law


@pytest.mark.parametrize("n", [8, 30, 100])
def test_bounds_cover_the_rate_when_hits_are_probabilities(n):
    """Exact: no seed can make this fail but by a law that breaks the claim. Each side misses at most 2.5 %."""
    hits = np.arange(n * STEPS + 1) / STEPS
    tail = (1 - LEVEL) / 2
    low = np.where(hits > 0, beta.ppf(tail, np.maximum(hits, 1e-300), n - hits + 1), 0.0)
    high = np.where(hits < n, beta.ppf(1 - tail, hits + 1, np.maximum(n - hits, 1e-300)), 1.0)
    for h in (0, 5, n * STEPS // 2 + 1, n * STEPS):  # the same bounds as the attack's
        assert exact_interval(h / STEPS / n, n) == pytest.approx((low[h], high[h]))
    worst = max(max(misses(law, n, low, high)) for law in laws(np.random.default_rng(n)))
    assert worst <= tail + 1e-9


def test_bounds_are_clopper_and_pearsons_when_everybody_is_hit_or_not():
    for hits, n in [(0, 20), (3, 20), (20, 20), (10, 153)]:
        distances = np.where(np.eye(n, dtype=bool), 1.0, 2.0)
        distances[hits:] = 3.0 - distances[hits:]
        found = identification("a", distances, 1)
        low, high = found.low, found.high
        assert found.rate == pytest.approx(hits / n)
        assert hits == 0 or binom.sf(hits - 1, n, low) == pytest.approx(0.025)
        assert hits == n or binom.cdf(hits, n, high) == pytest.approx(0.025)


def test_the_strongest_attacks_interval_covers_the_largest_rate():
    """Ten equal, independent attacks: the hardest case for picking one. 4,000 runs, false alarm below 1 in 1,000."""
    rng = np.random.default_rng(0)
    n, n_attacks, n_runs, true = 50, 10, 4000, 0.2
    hits = rng.binomial(n, true, size=(n_runs, n_attacks)).max(axis=1)
    table = {}
    for most in np.unique(hits):
        # Of attacks on the same people only the largest rate decides both bounds.
        distances = np.where(np.eye(n, dtype=bool), 1.0, 2.0)
        distances[most:] = 3.0 - distances[most:]
        best = strongest([identification(str(a), distances, 1) for a in range(n_attacks)])
        alone = identification("a", distances, 1)
        table[most] = best.low <= true <= best.high, alone.low <= true <= alone.high
    covered, naive = np.mean([table[most] for most in hits], axis=0)
    assert covered >= LEVEL - 3.1 * np.sqrt(LEVEL * (1 - LEVEL) / n_runs)
    assert naive < 0.92  # what it would be without the care


@pytest.mark.parametrize(("n", "n_features", "noise"), [(20, 8, 0.6), (20, 4, 0.6), (40, 4, 0.3)])
def test_where_all_are_matched_together_intervals_cover_too(n, n_features, noise):
    """Errors come in pairs there: 300 classes, as if hits were independent 72 to 92 % of the intervals cover."""
    rng = np.random.default_rng(n)
    found = []
    for _ in range(300):
        own = rng.normal(size=(n, n_features))
        views = [own + noise * rng.normal(size=own.shape) for _ in range(2)]
        distances = ((views[1][:, None] - views[0][None]) ** 2).sum(axis=2)
        found.append(identification("x", matched(distances), 1, together=True))
    rate = np.mean([one.rate for one in found])
    assert np.mean([one.low <= rate <= one.high for one in found]) >= 0.95
    apart = [exact_interval(one.rate, n) for one in found]
    assert np.mean([low <= rate <= high for low, high in apart]) < 0.95
