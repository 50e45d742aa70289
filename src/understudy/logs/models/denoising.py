"""Makes noisy counts of a chain usable: post-processing, which costs no privacy.

Everything here sees noisy totals and known noise scales, never a learner.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A cell is trusted by itself when it stands out by this many standard deviations of the noise.
OUTSTANDING = 3.0
# What is kept of the popularity model in a cell, whatever the noise says.
FLOOR = 0.05
# Logarithms of ratios between a count and its guess, and the laws that they may have.
RATIOS = np.linspace(-6.0, 4.0, 81)
SPREADS = np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 1.8, 2.3])
CENTRES = np.array([-2.5, -2.0, -1.5, -1.0, -0.7, -0.5, -0.3, -0.15, 0.0, 0.15, 0.3])
ZEROS = np.array([0.0, 0.1, 0.3, 0.5, 0.7])
NO_ZEROS = np.zeros(1)
# Counts that are looked at in one go.
BLOCK = 1024
# The parts of a positive float of 64 bits, and the exponent of 1.
EXPONENT_BITS, MANTISSA, ONE, EXPONENT_OF_ONE = 52, (1 << 52) - 1, 1023 << 52, 1023


def to_simplex(noisy: Floats, total: float) -> Floats:
    """The closest non-negative vector with the given sum (Euclidean projection)."""
    total = max(total, 1e-9)
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(noisy) + 1)
    last = np.flatnonzero(ordered > excess)[-1]
    projected: Floats = np.maximum(noisy - excess[last], 0.0)
    return projected


def shrunk_shares(noisy: Floats, sigma: float | Floats, total: float, prior: Floats) -> tuple[Floats, float]:
    """Shares out of noisy counts, drawn towards `prior` as far as they are noise; and how much is signal.

    What the counts depart from the prior by has the variance of the noise and that of the signal
    (James and Stein 1961): the signal's share of it is what is believed.
    """
    total = max(total, 1.0)
    departure = noisy - total * prior
    signal = max(0.0, 1.0 - len(noisy) * float(np.mean(sigma**2)) / max(float(departure @ departure), 1e-12))
    return to_simplex(total * prior + signal * departure, total) / total, signal


def shrink_jumps(noisy: Floats, sigma: float, popularity: Floats) -> Floats:
    """Shares of jumps from each action to each other one, out of a noisy count matrix.

    Popularity alone predicts a jump from a to b in proportion to both; the noisy matrix is believed
    where it departs from that by more than noise does: in single cells that stand out, and in
    the leading singular directions of the rest (singular values below 2 sigma sqrt(n) are noise,
    larger ones are shrunk by it; Gavish and Donoho 2017).
    """
    n = len(noisy)
    total = max(float(noisy.sum()), 1.0)
    expected = np.outer(popularity, popularity)
    np.fill_diagonal(expected, 0.0)
    expected *= total / max(expected.sum(), 1e-12)
    departure = noisy - expected
    np.fill_diagonal(departure, 0.0)
    single = np.where(np.abs(departure) > OUTSTANDING * sigma, departure, 0.0)
    rest = departure - single
    left, values, right = np.linalg.svd(rest)
    limit = 2.0 * sigma * np.sqrt(n)
    kept = np.where(values > limit, np.sqrt(np.maximum(values**2 - limit**2, 0.0)), 0.0)
    shrunk = expected + single + (left * kept) @ right
    np.fill_diagonal(shrunk, 0.0)
    floored: Floats = np.maximum(shrunk, FLOOR * expected) / total
    return floored


def expected_counts(noisy: Floats, sigma: float | Floats, guess: Floats, zeros: Floats = ZEROS) -> Floats:
    """The counts to expect behind noisy ones, each a guess times a ratio that is its own.

    Ratios are taken to be lognormal, some of them zero; centre, spread and the share of zeros are those under which
    the noisy counts are most likely (empirical Bayes). What noise hides stays near the guess.
    """
    guess, sigma = np.maximum(guess, 1e-12), np.broadcast_to(sigma, noisy.shape)
    laws, ratios = _laws(), np.exp(RATIOS)
    log_zero = -0.5 * (noisy / sigma) ** 2
    # In blocks that stay in the cache, each made twice: a matrix of jumps has a hundred thousand cells.
    blocks = [slice(begin, begin + BLOCK) for begin in range(0, len(noisy), BLOCK)]
    support = np.zeros((len(zeros), len(laws)))
    for some in blocks:
        fit, best = _fits(noisy[some], sigma[some], guess[some], log_zero[some])
        support += _log_likelihoods(fit @ laws.T, np.exp(log_zero[some] - best), zeros)
    zero, law = np.unravel_index(np.argmax(support), support.shape)
    nonzero, expected = 1.0 - zeros[zero], np.empty(len(noisy))
    for some in blocks:
        fit, best = _fits(noisy[some], sigma[some], guess[some], log_zero[some])
        weight = nonzero * (fit @ laws[law]) + zeros[zero] * np.exp(log_zero[some] - best)
        expected[some] = nonzero * guess[some] * (fit @ (ratios * laws[law])) / np.maximum(weight, 1e-300)
    return expected


def _fits(
    noisy: Floats, sigma: Floats, guess: Floats, at_least: float | Floats = -np.inf
) -> tuple[Floats, Floats]:
    """How likely each noisy count is at each ratio, over the likeliest or over exp(`at_least`); and the logarithm of
    that."""
    fit: Floats = guess[:, None] * np.exp(RATIOS)
    fit -= noisy[:, None]
    fit /= sigma[:, None]
    fit *= fit
    fit *= -0.5
    best: Floats = np.maximum(fit.max(axis=1), at_least)
    fit -= best[:, None]
    return np.exp(fit, out=fit), best


@njit(cache=True, nogil=True)
def _log_likelihoods(likely, zero, zeros):  # type: ignore[no-untyped-def]
    """Sums over counts of log((1 - z) likely + z zero), for each share of zeros z and each law.

    A sum of logarithms is one logarithm of a product; exponents of floats are added up apart, so that no product leaves
    their range.
    """
    n_counts, n_laws = likely.shape
    chance = np.empty(len(zeros) * n_laws)
    bits = chance.view(np.int64)
    exponent, product = np.zeros(len(chance), dtype=np.int64), np.ones(len(chance))
    support = np.zeros(len(chance))
    for i in range(n_counts):
        for z in range(len(zeros)):
            floor = zeros[z] * zero[i] + 1e-300
            for law in range(n_laws):
                chance[z * n_laws + law] = (1.0 - zeros[z]) * likely[i, law] + floor
        for k in range(len(bits)):
            exponent[k] += bits[k] >> EXPONENT_BITS
            bits[k] = bits[k] & MANTISSA | ONE
        for k in range(len(chance)):
            product[k] *= chance[k]
        # Each factor is below 2, so so many are below the largest float.
        if i % 1000 == 999 or i == n_counts - 1:
            for k in range(len(chance)):
                support[k] += np.log(product[k])
                product[k] = 1.0
    support += (exponent - EXPONENT_OF_ONE * n_counts) * np.log(2.0)
    return support.reshape(len(zeros), n_laws)


def averaged_counts(noisy: Floats, sigma: float | Floats, guesses: Sequence[Floats]) -> Floats:
    """The counts to expect behind few noisy ones, where more than one guess may be right and none is zero.

    As `expected_counts`, but no law and no guess is chosen: all are averaged, each by how likely the noisy counts are
    under it. A few dozen counts can hardly tell laws apart, and the likeliest one alone believes too much.
    """
    sigma = np.broadcast_to(sigma, noisy.shape)
    laws = _laws()
    support, expected = [], []
    for guess in guesses:
        guess = np.maximum(guess, 1e-12)
        fit, best = _fits(noisy, sigma, guess)
        likely = np.maximum(fit @ laws.T, 1e-300)
        support.append(np.log(likely).sum(axis=0) + best.sum())
        expected.append(guess[:, None] * (fit @ (np.exp(RATIOS) * laws).T) / likely)
    weight = np.concatenate(support)
    weight = np.exp(weight - weight.max())
    averaged: Floats = np.concatenate(expected, axis=1) @ (weight / weight.sum())
    return averaged


def _laws() -> Floats:
    """Lognormal laws of ratios, each with its centre and its spread."""
    laws = np.exp(-0.5 * ((RATIOS - CENTRES[:, None, None]) / SPREADS[:, None]) ** 2).reshape(-1, len(RATIOS))
    shares: Floats = laws / laws.sum(axis=1, keepdims=True)
    return shares


def fit_margins(table: Floats, rows: Floats, columns: Floats | None = None, n_rounds: int = 50) -> Floats:
    """The table scaled by rows and columns until both margins are as wanted (iterative fitting)."""
    fitted = table.copy()
    rows, columns = (np.maximum(margin, 1e-9) for margin in (rows, rows if columns is None else columns))
    rows, columns = rows / rows.sum(), columns / columns.sum()
    for _ in range(n_rounds):
        fitted *= (rows / np.maximum(fitted.sum(axis=1), 1e-15))[:, None]
        fitted *= (columns / np.maximum(fitted.sum(axis=0), 1e-15))[None, :]
    return fitted


def match_popularity(
    start: Floats,
    stay: Floats,
    jump: Floats,
    survival: Floats,
    wanted: Floats,
    n_rounds: int = 25,
) -> Floats:
    """Jump probabilities whose walks visit each action in the wanted share of rows.

    Walks start by `start`, stay with probability `stay`, else jump; row t exists with probability
    `survival[t]`. The visits of all rows together are computed and compared with the wanted ones,
    and each action's arrivals scaled accordingly.
    """
    arrivals = np.ones(len(wanted))
    chain = jump / np.maximum(jump.sum(axis=1, keepdims=True), 1e-15)
    for _ in range(n_rounds):
        visits = _visits(start, stay, chain, survival)
        arrivals *= np.clip((wanted + 1e-6) / (visits + 1e-6), 0.2, 5.0) ** 0.5
        chain = jump * arrivals
        chain /= np.maximum(chain.sum(axis=1, keepdims=True), 1e-15)
    matched: Floats = chain
    return matched


@njit(cache=True, nogil=True)
def _visits(start, stay, chain, survival):  # type: ignore[no-untyped-def]
    """The share of rows that each action gets."""
    step = chain * (1.0 - stay).reshape(-1, 1)
    for i in range(len(stay)):
        step[i, i] += stay[i]
    here = start.copy()
    visits = np.zeros(len(stay))
    for t in range(len(survival)):
        visits += survival[t] * here
        following = here @ step
        if survival[t] < 1e-3 or np.abs(following - here).sum() < 1e-4:
            # Long walks have settled: the remaining rows are like this one.
            visits += survival[t + 1 :].sum() * following
            break
        here = following
    return visits / visits.sum()
