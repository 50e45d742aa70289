"""Private digraph statistics: sensitivity by exhaustive search, transcripts of neighbours, an audit.

Noise is seeded here, so every test fails always or never; over seeds the audit's assertion about the true
mechanism has a false-alarm rate of 1e-6.
"""

import itertools
import math

import numpy as np
import pytest

from understudy.core.privacy.audit import audit_mu
from understudy.core.privacy.composition import mu_to_delta
from understudy.core.privacy.noise import seeded_noise
from understudy.keystrokes.digraph_statistics import (
    ONE,
    Declaration,
    Release,
    contributions,
    lattice_sums,
    release_statistics,
)
from understudy.keystrokes.keystrokes import Keystrokes

MS = 1_000_000
LOW, HIGH, LEAST = 100.0, 300.0, 2
CONFIDENCE = 1 - 1e-6


def declaration(n_digraphs, n_groups):
    pairs = [f"{one} → {other}" for one in "abc" for other in "abc"]
    return Declaration(tuple(pairs[:n_digraphs]), tuple("ABCD"[:n_groups]), LOW, HIGH, LEAST)


def keystrokes_of(*learners):
    """Each learner is a list of (pair of keys, latency in ms), each pair typed on its own."""
    key, time, follows, lengths = [], [], [], []
    for pairs in learners:
        for first, second, latency in pairs:
            key += ["abc".index(first), "abc".index(second)]
            time += [0, latency]
            follows += [False, True]
        lengths.append(2 * len(pairs))
    zero = np.zeros(len(key), dtype=np.int32)
    return Keystrokes(
        np.array(key, dtype=np.int32),
        (np.array(time, dtype=np.float64) * MS).astype(np.int64),
        np.array(follows, dtype=bool),
        np.concatenate([[0], np.cumsum(lengths)]),
        ("a", "b", "c"),
        zero,
        zero,
    )


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


class Transcript:
    """Noise that keeps its inputs and adds nothing."""

    secret = False

    def __init__(self):
        self.draws = []

    def discrete_gaussian(self, values, sigma):
        self.draws.append((np.array(values, dtype=np.float64), sigma))
        return values


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_all_that_touches_the_learners_is_one_draw_within_the_claim(epsilon):
    declared = declaration(2, 2)
    release = Release(declared, 2, epsilon, 1e-6)
    other = [("a", "b", 150.0)] * 3
    fast, slow = (
        [("a", "a", LOW)] * 2 + [("a", "b", LOW)] * 2,
        [("a", "a", HIGH)] * 2 + [("a", "b", HIGH)] * 2,
    )
    inputs = []
    for learner, group in ((fast, 0), (slow, 1)):
        noise = Transcript()
        release_statistics(keystrokes_of(other, learner), np.array([0, group]), release, noise)
        assert len(noise.draws) == 1
        inputs.append(noise.draws[0])
    (one, sigma), (another, same_sigma) = inputs
    assert sigma == same_sigma
    mu = float(np.linalg.norm(one - another)) / sigma
    assert mu == pytest.approx(math.sqrt(2 * release.rho), rel=1e-6)
    # The two learners are as far apart as can be, so the claim is not far from what they cost.
    assert 0.9e-6 < mu_to_delta(mu, epsilon) <= 1e-6 * (1 + 1e-9)


class HalfTheNoise:
    """A mechanism with a mistake in its scale."""

    secret = False

    def __init__(self, noise):
        self.noise = noise

    def discrete_gaussian(self, values, sigma):
        return self.noise.discrete_gaussian(values, sigma / 2)


def audited(noise, n_runs=6000):
    """The auditor's bound: a fast learner of group A is replaced by a slow one of group B.

    At epsilon 8, mu is about 1.5. The bounds of both error rates cost about 0.25 with 3,000 judged runs at this
    confidence, so a small mu (0.45 at epsilon 2) would drown in them, and an audit of it would prove nothing.
    """
    declared = declaration(2, 2)
    release = Release(declared, 2, 8.0, 1e-6)
    other = [("a", "b", 150.0)] * 3
    fast, slow = (
        [("a", "a", LOW)] * 2 + [("a", "b", LOW)] * 2,
        [("a", "a", HIGH)] * 2 + [("a", "b", HIGH)] * 2,
    )
    worlds = (
        (keystrokes_of(other, fast), np.array([0, 0])),
        (keystrokes_of(other, slow), np.array([0, 1])),
    )
    sums = [lattice_sums(contributions(keystrokes, declared), group, 2) / ONE for keystrokes, group in worlds]
    direction = sums[1] - sums[0]

    def run(changed, n):
        keystrokes, group = worlds[changed]
        scores = []
        for _ in range(n):
            found = release_statistics(keystrokes, group, release, noise)
            scores.append(float((np.stack([found.count, found.total], axis=1) * direction).sum()))
        return scores

    return audit_mu(run, n_runs, CONFIDENCE), math.sqrt(2 * release.rho)


def test_an_audit_finds_no_more_than_is_claimed():
    found, claimed = audited(seeded_noise(np.random.default_rng(5)))
    assert found.lower <= claimed
    # The auditor is no straw man: most of the claim is seen.
    assert found.lower > 0.6 * claimed


def test_an_audit_catches_half_the_noise():
    found, claimed = audited(HalfTheNoise(seeded_noise(np.random.default_rng(5))))
    assert found.lower > claimed
