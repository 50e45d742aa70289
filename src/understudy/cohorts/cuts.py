"""Cuts that split scores into even groups, found privately on a public grid."""

from __future__ import annotations

import math

import numpy as np

from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.mechanisms import exponential
from understudy.core.privacy.noise import FloatArray, Noise

# Steps of the public grid: half a point for scores from 0 to 100.
N_STEPS = 200


def cut_grid(low: float, high: float) -> FloatArray:
    """The cuts that can come out: public, since the bounds are declared."""
    return low + (high - low) * np.arange(1, N_STEPS) / N_STEPS


def private_cuts(
    scores: FloatArray, bounds: tuple[float, float], n_groups: int, *, epsilon: float, noise: Noise
) -> tuple[float, ...]:
    """Cuts from which on a score is in the next of `n_groups` groups of about the same size: epsilon-DP.

    Mechanism: for each of the k = n_groups - 1 cuts an exponential mechanism with epsilon / k
    over the grid c, whose utility is how far the rank of c is from the wanted one,

        u(c) = -| #{i : score_i < c} - n g / n_groups |,    g = 1, ..., k.

    Norm and adjacency: one learner is replaced. If both have a score, n stays, the number
    #{score_i < c} is a sum of n indicators, of which one changes, so it moves by at most 1, and
    n g / n_groups does not move. If one of them has none, n moves by 1 and the number by 0 or 1 in
    the same direction, so their difference moves by g / n_groups or 1 - g / n_groups at most.
    | |a| - |b| | <= |a - b|, so no u(c) moves by more than 1: sensitivity 1, and n is not taken for
    public here. (Cutting scores to the bounds is done learner by learner and changes nothing of
    this.) The k cuts compose to epsilon by basic composition. Sorting them, and moving a cut that
    equals the one below it to the next point of the grid, is post-processing.

    Source: McSherry and Talwar (2007); Smith, "Privacy-preserving statistical estimation with
    optimal convergence rates" (2011), for the rank as utility.
    """
    grid = cut_grid(*bounds)
    ordered = np.sort(np.clip(scores, *bounds))
    below = np.searchsorted(ordered, grid, side="left")
    n_cuts = n_groups - 1
    places = sorted(
        exponential(
            -np.abs(below - len(ordered) * group / n_groups),
            sensitivity=1.0,
            epsilon=epsilon / n_cuts,
            noise=noise,
        )
        for group in range(1, n_groups)
    )
    for rank in range(1, n_cuts):
        places[rank] = max(places[rank], places[rank - 1] + 1)
    # What was pushed beyond the last point goes back, and takes those below with it.
    for rank in reversed(range(n_cuts)):
        places[rank] = min(places[rank], len(grid) - n_cuts + rank)
    return tuple(float(grid[place]) for place in places)


def cuts_guarantee(epsilon: float) -> Guarantee:
    """What `private_cuts` promises."""
    return Guarantee(epsilon, mechanisms=("exponential mechanism on ranks",))


def rank_error(n_groups: int, epsilon: float, chance: float = 0.05) -> float:
    """Learners by which any cut is off at most, but for a `chance` (beyond what ties and the grid make).

    A point whose rank is off by t has at most e^(-epsilon' t / 2) times the weight of the best
    one, epsilon' = epsilon / k, and there are fewer than N_STEPS of them, for each of k cuts.
    """
    n_cuts = n_groups - 1
    return 2.0 * n_cuts / epsilon * math.log(N_STEPS * n_cuts / chance)
