"""Two later private Rasch fits, rebuilt for comparison and calibrated for a learner.

`gradients` follows FedIRT-DP (Zhou, Luo and Ji 2025, arXiv 2506.21744): every learner's gradient
of the marginal likelihood is clipped, their sum is given Gaussian noise, and the difficulties
take a step towards the most probable ones. `spectral` follows Nguyen and Zhang (2023, arXiv
2303.06234): pairwise counts "right on i and wrong on j" with discrete Gaussian noise are the
transitions of a Markov chain over items whose stationary distribution is proportional to
exp(difficulty).

Both are rebuilt from their descriptions and carry a guarantee for one learner replaced; what
that takes is said at each function. Their settings were chosen on simulations, to their
advantage, and not on anybody's responses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from understudy.core.privacy import mechanisms
from understudy.core.privacy.composition import analytic_rho, from_gaussians
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.exams.responses import Responses

Floats = NDArray[np.float64]

DELTA = 1e-6
# Counts and gradients are multiplied by about so much before integers are noised: the finer the
# lattice, the closer the discrete Gaussian is to the continuous one (`analytic_delta`).
_FINENESS = 1024


@dataclass(frozen=True)
class LaterFit:
    """Difficulties and what is promised about them."""

    difficulty: Floats
    guarantee: Guarantee


@dataclass(frozen=True)
class GradientSettings:
    """Rounds, clipping bound (L2), step (1 is a full scoring step), prior of difficulties, share of rounds averaged."""

    n_rounds: int
    clip: float
    step: float
    difficulty_sd: float
    averaged: float

    @classmethod
    def tuned(cls, epsilon: float) -> GradientSettings:
        """The best of a grid on the seed's simulation, for the nearest of epsilon 1, 5 and 10.

        Grid: 1 to 16 rounds, clip 0.5 to 2.2, step 0.2 to 2, prior 1 and 2, the last iterate
        or means of the last 30, 50 or 60 %; 40, 120 and 200 learners, 20 items; by the sum of
        the correlations of difficulties and of chances. The best dozen lie within 0.01.
        """
        return _TUNED[min(_TUNED, key=lambda tried: abs(math.log(tried / epsilon)))]


_TUNED = {
    1.0: GradientSettings(n_rounds=5, clip=1.5, step=0.3, difficulty_sd=1.0, averaged=0.6),
    5.0: GradientSettings(n_rounds=5, clip=1.5, step=0.6, difficulty_sd=2.0, averaged=0.6),
    10.0: GradientSettings(n_rounds=5, clip=1.5, step=0.8, difficulty_sd=2.0, averaged=0.6),
}


def gradients(
    responses: Responses,
    epsilon: float,
    noise: Noise,
    *,
    delta: float = DELTA,
    ability_sd: float = 1.0,
    settings: GradientSettings | None = None,
) -> LaterFit:
    """Noisy sums of clipped per-learner gradients, with steps to the most probable difficulties.

    A learner's gradient of the marginal log-likelihood is E[chance of i | answers] - (i right),
    0 where not answered. It is clipped to L2 norm C, scaled to the lattice and rounded towards
    zero, so that its norm is at most C. When one learner is replaced the sum moves by at most
    2 C: gradients have both signs (findings, section 6). Each of the rounds is a discrete Gaussian
    mechanism on the same learners, and their rhos add up, also though each starts from what
    the one before has shown. The number of learners is public, and so is everything else that
    the step uses: the curvature is what the model expects at the current difficulties.
    """
    chosen = settings if settings is not None else GradientSettings.tuned(epsilon)
    n_items = responses.n_items
    n_cells = chosen.n_rounds * n_items
    factor = _FINENESS / chosen.clip
    sensitivity = 2.0 * _FINENESS
    rho, sigma = _calibrated(epsilon, delta, sensitivity, n_cells, chosen.n_rounds)
    ability, weight = _quadrature(ability_sd)
    right, answered = responses.correct > 0, (responses.correct >= 0).astype(np.float64)
    precision = 1.0 / chosen.difficulty_sd**2
    limit = 3.0 * chosen.difficulty_sd
    difficulty = np.zeros(n_items)
    passed = np.empty((chosen.n_rounds, n_items))
    for turn in range(chosen.n_rounds):
        chance = expit(ability[:, None] - difficulty[None, :])
        each = _gradients(right, answered, difficulty, ability, weight)
        lattice = clipped_to_lattice(each, chosen.clip, factor)
        noisy = mechanisms.gaussian(
            lattice.sum(axis=0), sensitivity=sensitivity, rho=rho / chosen.n_rounds, noise=noise
        )
        curvature = responses.n_learners * (weight @ (chance * (1.0 - chance))) + precision
        difficulty = difficulty + chosen.step * (noisy / factor - precision * difficulty) / curvature
        # Three standard deviations of the prior: a wild step would leave the curve's slope for good.
        difficulty = np.clip(difficulty, -limit, limit)
        passed[turn] = difficulty
    n_averaged = max(1, round(chosen.averaged * chosen.n_rounds))
    name = f"discrete Gaussian on clipped gradients, {chosen.n_rounds} rounds"
    claim = from_gaussians(rho, epsilon, delta, (name,), n_cells=n_cells, sigma=sigma)
    return LaterFit(passed[-n_averaged:].mean(axis=0), claim if noise.secret else Guarantee.seeded(claim))


def spectral(
    responses: Responses,
    epsilon: float,
    noise: Noise,
    *,
    delta: float = DELTA,
    pairs: NDArray[np.bool_] | None = None,
    least: float = 1.0,
    smoothing: float = 1.0,
) -> LaterFit:
    """The stationary distribution of a Markov chain over items, with noise on its counts.

    Y[i, j] is the number of learners who are right on i and wrong on j. In the Rasch model
    E Y[i, j] / E Y[j, i] = exp(difficulty_j - difficulty_i) whatever the abilities, so a chain
    that goes from i to j with weight Y[i, j] rests on i in proportion to exp(difficulty_i).

    Sensitivity: a learner with k of m items right adds 1 to k (m - k) of the cells, at most
    floor(m/2) ceil(m/2). Two learners' cells differ in at most the sum of that, and do when
    each is right where the other is wrong: the L2 norm of the difference is at most
    sqrt(2 floor(I/2) ceil(I/2)), 14.1 for 20 items. (The authors' code takes the square root of the number
    of pairs, 13.8, and adds noise only to counts that are not zero, which shows which are; here
    all get it.) `pairs` restricts the chain to a symmetric set of pairs that was chosen without
    looking at the responses; both members of a pair can change, so the bound is then
    sqrt(2 * number of pairs) if that is smaller.

    As in the authors' code, noisy counts are raised to `least` and `smoothing` is added. On the
    seed's simulation (40, 120 and 200 learners, 20 items) a quarter or half of the pairs were
    worse at every epsilon; `least` from 0.1 to 20 changed the sum of the two correlations by
    0.01 or less for the better; smoothing by up to twice the noise's standard deviation gained
    up to 0.03 for the difficulties and lost more for the chances.
    """
    n_items = responses.n_items
    used = np.ones((n_items, n_items), dtype=np.bool_) if pairs is None else pairs | pairs.T
    used = used & ~np.eye(n_items, dtype=np.bool_)
    n_pairs = int(used.sum()) // 2
    if n_items < 2 or connected_components(used, directed=False)[0] > 1:
        raise ValueError("the pairs have to connect all items, or their difficulties cannot be compared")
    right = (responses.correct > 0).astype(np.int64)
    counts = right.T @ (responses.correct == 0).astype(np.int64)
    moved = math.sqrt(2 * min(n_pairs, (n_items // 2) * ((n_items + 1) // 2)))
    n_cells = 2 * n_pairs
    sensitivity = moved * _FINENESS
    rho, sigma = _calibrated(epsilon, delta, sensitivity, n_cells, n_rounds=1)
    noisy = mechanisms.gaussian(counts[used] * _FINENESS, sensitivity=sensitivity, rho=rho, noise=noise)
    flow = np.zeros((n_items, n_items))
    flow[used] = np.maximum(noisy / _FINENESS, least) + smoothing
    difficulty = np.log(_stationary(flow))
    claim = from_gaussians(
        rho, epsilon, delta, ("discrete Gaussian on pairwise counts",), n_cells=n_cells, sigma=sigma
    )
    return LaterFit(difficulty - difficulty.mean(), claim if noise.secret else Guarantee.seeded(claim))


def clipped_to_lattice(vectors: Floats, clip: float, factor: float) -> NDArray[np.int64]:
    """Each row scaled to L2 norm `clip` where it is longer, times `factor`, rounded towards zero.

    Rounding towards zero shortens a row. Floating point could still leave it a little too
    long, so rows are checked as integers, and one that is too long becomes zero.
    """
    length = np.sqrt(np.einsum("ni,ni->n", vectors, vectors))
    scale = factor * np.minimum(1.0, clip * (1.0 - 1e-12) / np.maximum(length, 1e-300))
    lattice: NDArray[np.int64] = np.trunc(vectors * scale[:, None]).astype(np.int64)
    lattice[np.einsum("ni,ni->n", lattice, lattice) > math.floor((clip * factor) ** 2)] = 0
    return lattice


def _calibrated(
    epsilon: float, delta: float, sensitivity: float, n_cells: int, n_rounds: int
) -> tuple[float, float]:
    """The total rho of all rounds, and the standard deviation of each round's noise, in lattice units."""
    # Exact accounting may assume a lattice finer than the noise by this much, if it then is.
    for fineness in (float(_FINENESS), 1.0):
        rho = analytic_rho(epsilon, delta, n_cells=n_cells, sigma=fineness)
        sigma = mechanisms.gaussian_sigma(sensitivity, rho / n_rounds)
        if sigma >= fineness:
            return rho, sigma
    raise ValueError(f"epsilon {epsilon:g} leaves hardly any noise; it has no use as a comparison")


def _quadrature(sd: float) -> tuple[Floats, Floats]:
    """Abilities and their weights: Gauss-Hermite with 31 nodes."""
    node, weight = np.polynomial.hermite_e.hermegauss(31)
    return sd * node, weight / weight.sum()


def _gradients(
    right: NDArray[np.bool_], answered: Floats, difficulty: Floats, ability: Floats, weight: Floats
) -> Floats:
    """Each learner's gradient of the marginal log-likelihood in the difficulties."""
    eta = ability[:, None] - difficulty[None, :]
    log_posterior = (
        right.sum(axis=1)[:, None] * ability[None, :] - answered @ np.logaddexp(0.0, eta).T + np.log(weight)
    )
    posterior = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    return np.asarray((posterior @ expit(eta)) * answered - right)


@njit(cache=True, nogil=True)
def _stationary(flow):  # type: ignore[no-untyped-def]
    """The stationary distribution of a chain with these transition weights off the diagonal.

    Elimination of one state after the other without a subtraction, so that small
    probabilities keep their digits (Grassmann, Taksar and Heyman 1985).
    """
    flow = flow.copy()
    n = len(flow)
    for k in range(n - 1, 0, -1):
        leaving = flow[k, :k].sum()
        for i in range(k):
            flow[i, k] /= leaving
            for j in range(k):
                flow[i, j] += flow[i, k] * flow[k, j]
    resting = np.empty(n)
    resting[0] = 1.0
    for k in range(1, n):
        total = 0.0
        for i in range(k):
            total += resting[i] * flow[i, k]
        resting[k] = total
    return resting / resting.sum()
