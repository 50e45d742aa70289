"""Post-processing of noisy counts: projections, shrinkage, margins and visits against definitions."""

import numpy as np
import pytest
from scipy.optimize import minimize

from understudy.logs.models import denoising
from understudy.logs.models.denoising import (
    CENTRES,
    RATIOS,
    SPREADS,
    ZEROS,
    _log_likelihoods,
    averaged_counts,
    expected_counts,
    fit_margins,
    match_popularity,
    shrink_jumps,
    shrunk_shares,
    to_simplex,
)

pytestmark = pytest.mark.oracle


def test_the_projection_is_the_closest_point():
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = rng.normal(1, 2, 6)
        found = to_simplex(noisy, 5.0)
        assert found.sum() == pytest.approx(5.0)
        assert found.min() >= 0
        best = minimize(
            lambda x, y=noisy: ((x - y) ** 2).sum(),
            np.full(6, 5 / 6),
            bounds=[(0, None)] * 6,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 5.0},
        )
        np.testing.assert_allclose(found, best.x, atol=1e-3)


def test_signal_is_believed_and_noise_is_not():
    rng = np.random.default_rng(1)
    prior, truth = np.full(50, 0.02), rng.dirichlet(np.full(50, 0.3))
    clear, signal = shrunk_shares(10_000 * truth + rng.normal(0, 1, 50), 1.0, 10_000, prior)
    assert signal > 0.99
    np.testing.assert_allclose(clear, truth, atol=0.001)
    # All departures are noise: on average next to nothing is believed.
    drowned = [shrunk_shares(100 * prior + rng.normal(0, 500, 50), 500.0, 100, prior)[1] for _ in range(50)]
    assert np.mean(drowned) < 0.15


def test_jumps_without_noise_are_kept():
    rng = np.random.default_rng(2)
    counts = rng.dirichlet(np.full(64, 0.2)).reshape(8, 8) * 5000
    np.fill_diagonal(counts, 0.0)
    popularity = np.full(8, 1 / 8)
    wanted = np.maximum(counts / counts.sum(), 0.05 / 56)
    np.fill_diagonal(wanted, 0.0)
    np.testing.assert_allclose(shrink_jumps(counts, 1e-6, popularity), wanted, atol=1e-5)


def test_jumps_that_are_all_noise_follow_popularity():
    rng = np.random.default_rng(3)
    popularity = rng.dirichlet(np.ones(30))
    noise = rng.normal(0, 50, (30, 30))
    np.fill_diagonal(noise, 0.0)
    expected = np.outer(popularity, popularity)
    np.fill_diagonal(expected, 0.0)
    expected /= expected.sum()
    found = shrink_jumps(5000 * expected + noise, 50.0, popularity)
    # A few of 870 cells stand out by chance; nine in ten stay at what popularity says.
    assert np.mean(np.isclose(found, expected, rtol=0.2)[~np.eye(30, dtype=bool)]) > 0.9


def test_margins_are_fitted():
    rng = np.random.default_rng(4)
    table = rng.random((6, 6)) + 0.1
    margin = rng.dirichlet(np.ones(6))
    fitted = fit_margins(table, margin)
    np.testing.assert_allclose(fitted.sum(axis=0), margin, atol=1e-9)
    np.testing.assert_allclose(fitted.sum(axis=1), margin, atol=1e-3)


def test_walks_visit_as_wanted():
    """The visits of simulated walks, not of the computation that was fitted."""
    rng = np.random.default_rng(5)
    n = 5
    start, wanted = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 3.0))
    stay, jump = rng.uniform(0.3, 0.8, n), rng.random((n, n)) + 0.05
    np.fill_diagonal(jump, 0.0)
    length = 40
    chain = match_popularity(start, stay, jump, np.ones(length), wanted, n_rounds=200)
    step = chain * (1 - stay)[:, None] + np.diag(stay)
    here = rng.choice(n, 20_000, p=start)
    visits = np.zeros(n)
    for _ in range(length):
        visits += np.bincount(here, minlength=n)
        here = (rng.random(len(here))[:, None] < np.cumsum(step, axis=1)[here]).argmax(axis=1)
    np.testing.assert_allclose(visits / visits.sum(), wanted, atol=0.01)


@pytest.mark.oracle
@pytest.mark.parametrize("sigma", [2.0])
def test_expected_counts_are_the_posterior_means_of_the_most_likely_law(sigma):
    """Against plain loops over counts, ratios and laws."""
    rng = np.random.default_rng(0)
    guess = rng.gamma(2.0, 5.0, 4)
    noisy = guess * np.exp(rng.normal(0, 0.8, 4)) * [1, 0, 1, 1] + rng.normal(0, sigma, 4)
    best = (-np.inf, None)
    for zero in ZEROS:
        for spread in SPREADS:
            for centre in CENTRES:
                law = [np.exp(-0.5 * ((ratio - centre) / spread) ** 2) for ratio in RATIOS]
                support, means = 0.0, []
                for y, g in zip(noisy, guess, strict=True):
                    parts = [(zero, 0.0)]
                    parts += [
                        ((1 - zero) * w / sum(law), g * np.exp(r)) for w, r in zip(law, RATIOS, strict=True)
                    ]
                    chances = [p * np.exp(-0.5 * ((y - count) / sigma) ** 2) for p, count in parts]
                    support += np.log(sum(chances) + 1e-300)
                    weighed = sum(c * count for c, (_, count) in zip(chances, parts, strict=True))
                    means.append(weighed / max(sum(chances), 1e-300))
                if support > best[0]:
                    best = (support, means)
    np.testing.assert_allclose(expected_counts(noisy, sigma, guess), best[1], rtol=1e-6)


@pytest.mark.oracle
def test_likelihoods_of_laws_are_sums_of_logarithms():
    """Of more counts than one product holds, some of them next to impossible under a law."""
    rng = np.random.default_rng(1)
    likely = np.exp(-rng.gamma(0.5, 200.0, (2500, 7)))
    likely[::100, 0] = 0.0
    zero = rng.random(2500) ** 8
    chances = (1.0 - ZEROS)[:, None, None] * likely + (ZEROS[:, None] * zero)[:, :, None] + 1e-300
    np.testing.assert_allclose(_log_likelihoods(likely, zero, ZEROS), np.log(chances).sum(axis=1), rtol=1e-11)


def test_blocks_of_counts_change_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    guess = rng.gamma(2.0, 5.0, 50)
    noisy = guess * np.exp(rng.normal(0, 0.8, 50)) + rng.normal(0, 2.0, 50)
    whole = expected_counts(noisy, 2.0, guess)
    monkeypatch.setattr(denoising, "BLOCK", 7)
    np.testing.assert_allclose(expected_counts(noisy, 2.0, guess), whole, rtol=1e-12)


@pytest.mark.oracle
def test_averaged_counts_are_posterior_means_over_all_laws_and_guesses():
    """Against plain loops: every guess and law weighs by how likely the noisy counts are under it."""
    rng = np.random.default_rng(0)
    sigma = np.array([2.0, 3.0, 1.0])
    guesses = [np.full(3, 9.0), rng.gamma(2.0, 5.0, 3)]
    noisy = guesses[1] * np.exp(rng.normal(0, 0.5, 3)) + rng.normal(0, sigma)
    weights, means = [], []
    for guess in guesses:
        for spread in SPREADS:
            for centre in CENTRES:
                law = [np.exp(-0.5 * ((ratio - centre) / spread) ** 2) for ratio in RATIOS]
                likelihood, mean = 1.0, []
                for y, s, g in zip(noisy, sigma, guess, strict=True):
                    counts = [g * np.exp(ratio) for ratio in RATIOS]
                    chances = [
                        w / sum(law) * np.exp(-0.5 * ((y - count) / s) ** 2)
                        for w, count in zip(law, counts, strict=True)
                    ]
                    likelihood *= sum(chances)
                    mean.append(sum(c * x for c, x in zip(chances, counts, strict=True)) / sum(chances))
                weights.append(likelihood)
                means.append(mean)
    expected = np.average(means, axis=0, weights=weights)
    np.testing.assert_allclose(averaged_counts(noisy, sigma, guesses), expected, rtol=1e-6)


def test_the_guess_that_fits_is_the_one_that_counts():
    rng = np.random.default_rng(1)
    truth = rng.gamma(0.5, 100.0, 200)
    noisy = truth + rng.normal(0, 30.0, 200)
    same, close = np.full(200, truth.mean()), truth * np.exp(rng.normal(0, 0.1, 200))
    errors = [
        np.abs(averaged_counts(noisy, 30.0, guesses) - truth).sum()
        for guesses in ([close], [same, close], [same])
    ]
    assert errors[1] == pytest.approx(errors[0], rel=0.01)
    assert errors[1] < 0.7 * errors[2]


def test_what_noise_hides_stays_near_the_guess_and_what_it_does_not_is_believed():
    guess = np.full(50, 20.0)
    noisy = np.random.default_rng(0).normal(20.0, 100.0, 50)
    assert np.ptp(expected_counts(noisy, 100.0, guess)) < 10.0
    clear = np.linspace(5.0, 200.0, 50)
    np.testing.assert_allclose(expected_counts(clear, 0.5, guess), clear, rtol=0.1)


def test_margins_of_rows_and_columns_may_differ():
    rows, columns = np.array([0.2, 0.8]), np.array([0.5, 0.3, 0.2])
    fitted = fit_margins(np.ones((2, 3)), rows, columns)
    np.testing.assert_allclose(fitted, np.outer(rows, columns))
