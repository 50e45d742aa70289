"""Lengths of sequences from noisy sums: the mean, the factor that is stated for it, and how they are drawn."""

import numpy as np
import pytest

from understudy.logs.generators.private_sums import bin_edges
from understudy.logs.models.lengths import Lengths, spread_lengths

LONGEST = 300
EDGES = bin_edges(LONGEST)
SHAPES = {
    "usual": lambda rng, n: np.exp(rng.normal(3.0, 1.1, n)),
    "all alike": lambda rng, n: np.full(n, 30.0),
    "two groups": lambda rng, n: np.where(rng.random(n) < 0.7, rng.normal(8, 2, n), rng.normal(120, 20, n)),
}


def drawn(shape, n, rng):
    return np.clip(np.round(SHAPES[shape](rng, n)), 1, LONGEST)


def believed(lengths, noise, rng, most=60.0):
    """What noisy sums of these lengths tell; `noise` is that of a count of learners."""
    found, position = Lengths(len(lengths), EDGES), np.log(lengths) / np.log(LONGEST)
    moments = np.array([position.sum(), (position**2).sum()]) + rng.normal(0, noise, 2)
    found.observe_moments(moments, noise)
    bins = np.histogram(lengths, EDGES)[0]
    found.observe_bins(bins + rng.normal(0, noise, len(bins)), noise)
    rows = np.minimum(lengths, most).sum() + rng.normal(0, most * noise)
    found.observe(np.minimum(found.rows, most), rows, most * noise)
    return found.law()


@pytest.mark.parametrize("shape", SHAPES)
def test_without_noise_the_mean_is_right_within_the_width_of_a_bin(shape):
    rng = np.random.default_rng(0)
    lengths = drawn(shape, 5000, rng)
    law, factor = believed(lengths, 1e-3, rng)
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(1, LONGEST + 1) == pytest.approx(lengths.mean(), rel=0.06)
    assert 1.05 <= factor < 1.2


@pytest.mark.parametrize("noise", [2.0, 8.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_real_mean_lies_within_the_stated_factor(shape, noise):
    """Two standard deviations: of 60 at most 8 may be outside (chance below 0.5 % at 5 %)."""
    outside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        lengths = drawn(shape, 150, rng)
        law, factor = believed(lengths, noise, rng)
        ratio = law @ np.arange(1, LONGEST + 1) / lengths.mean()
        outside += not 1 / factor <= ratio <= factor
    assert outside <= 8


def test_more_noise_states_a_larger_factor():
    lengths = drawn("usual", 150, np.random.default_rng(3))
    factors = [believed(lengths, noise, np.random.default_rng(1))[1] for noise in (0.5, 2.0, 8.0, 32.0)]
    assert factors == sorted(factors)


def test_drawn_lengths_follow_the_law_as_closely_as_so_many_can():
    law = np.array([0.5, 0.0, 0.3, 0.199, 0.001])
    rng = np.random.default_rng(2)
    for n in (1, 10, 997):
        lengths = spread_lengths(law, n, rng)
        found = np.bincount(lengths, minlength=6)[1:]
        assert found.sum() == n
        assert (np.abs(found - n * law) < 1).all()
        assert found[1] == 0
    # In random order, and over many draws the rare one comes as often as it should.
    assert spread_lengths(law, 50, rng).tolist() != sorted(spread_lengths(law, 50, rng).tolist())
    rare = np.mean([(spread_lengths(law, 20, rng) == 5).sum() for _ in range(3000)])
    assert rare == pytest.approx(0.02, abs=0.01)
