"""Private digraph statistics: sensitivity by exhaustive search, and what the worst neighbours cost, without chance."""

import itertools
import math

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, transcripts
from tests.privacy.support.worst_pairs import HIGH, LOW, keystrokes_of, typing
from understudy.core.privacy.composition import mu_to_delta
from understudy.keystrokes.digraph_statistics import (
    ONE,
    Declaration,
    Release,
    contributions,
    lattice_sums,
    release_statistics,
)

LEAST = 2


def declaration(n_digraphs, n_groups):
    pairs = [f"{one} → {other}" for one in "abc" for other in "abc"]
    return Declaration(tuple(pairs[:n_digraphs]), tuple("ABCD"[:n_groups]), LOW, HIGH, LEAST)


def every_learner(declared):
    """All learners who type each declared digraph not at all, too seldom, or often: at the bounds, between, beyond."""
    habits = [
        [],
        [LOW],
        [LOW] * 2,
        [HIGH] * 3,
        [LOW, HIGH],
        [LOW - 1] * 9,
        [HIGH + 1] * 9,
        [LOW, HIGH, HIGH + 99],
    ]
    for chosen in itertools.product(habits, repeat=len(declared.digraphs)):
        yield [
            (*name.split(" → "), latency)
            for name, latencies in zip(declared.digraphs, chosen, strict=True)
            for latency in latencies
        ]


@pytest.mark.parametrize(("n_digraphs", "n_groups"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)])
def test_no_neighbour_moves_the_sums_by_more_than_the_sensitivity(n_digraphs, n_groups):
    """Every pair of neighbours over a small world, through the whole path from keystrokes to sums."""
    declared = declaration(n_digraphs, n_groups)
    others = [[("a", "a", 150.0)] * 3, [("a", "b", 222.0)] * 4]
    vectors = []
    for learner in every_learner(declared):
        added = contributions(keystrokes_of(*others, learner), declared)
        for group in range(-1, n_groups):  # -1: a label that was not declared
            sums = lattice_sums(added, np.array([0, n_groups - 1, group]), n_groups)
            vectors.append(sums.ravel() / ONE)
    vectors = np.unique(np.array(vectors), axis=0)
    squares = (vectors**2).sum(axis=1)
    largest = math.sqrt((squares[:, None] + squares[None] - 2 * vectors @ vectors.T).max())
    assert largest <= declared.sensitivity * (1 + 1e-9)
    # And the bound is reached: more noise than needed would hide a mistake elsewhere.
    assert largest == pytest.approx(declared.sensitivity, rel=1e-6)


def test_the_bound_of_the_box_holds_for_any_vectors():
    """The proof rests on the box alone: random members of it, whatever typing could give them."""
    rng = np.random.default_rng(3)
    for n_digraphs in (1, 3, 9):
        typed = rng.integers(0, 2, (4000, n_digraphs))
        t = typed * rng.choice([-1.0, 1.0, 0.3, -0.9], (4000, n_digraphs))
        group = rng.integers(0, 3, 4000)
        block = np.concatenate([typed, t], axis=1)
        spread = np.zeros((4000, 3, 2 * n_digraphs))
        spread[np.arange(4000), group] = block
        one, other = spread[:2000].reshape(2000, -1), spread[2000:].reshape(2000, -1)
        moves = np.linalg.norm(one - other, axis=1)
        assert moves.max() <= declaration(n_digraphs, 3).sensitivity + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_all_that_touches_the_learners_is_one_draw_within_the_claim(epsilon):
    release = Release(declaration(2, 2), 2, epsilon, 1e-6)

    found = transcripts(lambda data, noise: release_statistics(*data, release, noise).to_json(), typing())
    (cost,) = costs(*found)
    # The two learners are as far apart as can be: all of the claim is spent on them, and not more.
    assert cost.rho == pytest.approx(release.rho, rel=1e-6)
    assert cost.rho <= release.rho
    assert 0.9e-6 < mu_to_delta(math.sqrt(2 * cost.rho), epsilon) <= 1e-6 * (1 + 1e-9)


def test_half_the_noise_breaks_the_claim():
    release = Release(declaration(2, 2), 2, 8.0, 1e-6)
    found = transcripts(
        lambda data, noise: release_statistics(*data, release, noise).to_json(), typing(), factor=0.5
    )
    assert costs(*found)[0].rho > 3.9 * release.rho
