"""Displacements in a declared order, against plain loops."""

import numpy as np
import pytest

from understudy.logs.models.curriculum import (
    CHAPTER_VARIANCE,
    by_chapter,
    displacement_class,
    jumps_by_displacement,
    n_displacements,
)


@pytest.mark.oracle
@pytest.mark.parametrize("n_actions", [2, 9, 11, 12, 40, 1200])
def test_classes_are_single_steps_and_then_octaves(n_actions):
    moves = np.array([d for d in range(-n_actions + 1, n_actions) if d])
    found = displacement_class(moves, n_actions)
    assert 0 <= found.min() <= found.max() < n_displacements(n_actions)
    half = n_displacements(n_actions) // 2
    for move, kind in zip(moves, found, strict=True):
        size, octave = abs(move), 0
        while size > 10 * 2 ** (octave + 1) - 1e-9 and size >= 10 * 2 ** (octave + 1):
            octave += 1
        assert kind == (0 if move > 0 else half) + (size - 1 if size <= 10 else 10 + octave)


def test_jumps_have_the_shares_of_their_displacements():
    rng = np.random.default_rng(0)
    n = 60
    shares = np.zeros(n_displacements(n))
    shares[[0, 1, len(shares) // 2]] = 0.7, 0.2, 0.1
    jump = jumps_by_displacement(shares, rng.dirichlet(np.ones(n)))
    np.testing.assert_allclose(jump.sum(axis=1), 1.0)
    assert (np.diag(jump) == 0).all()
    middle = np.arange(5, 50)
    np.testing.assert_allclose(jump[middle, middle + 1], 0.7 * 0.98, atol=0.005)
    np.testing.assert_allclose(jump[middle, middle - 1], 0.1 * 0.98, atol=0.005)


def test_where_a_displacement_leads_nowhere_the_others_share_its_part():
    shares = np.zeros(n_displacements(3))
    shares[0] = 1.0
    jump = jumps_by_displacement(shares, np.ones(3))
    np.testing.assert_allclose(jump.sum(axis=1)[:2], 1.0)
    assert jump[0, 1] > 0.98
    assert np.isfinite(jump).all()


@pytest.mark.oracle
def test_means_of_chapters_are_those_of_a_normal_prior():
    """Against the posterior of each chapter, written out."""
    rng = np.random.default_rng(0)
    chapters = np.array([0, 0, 2, 2, 2])
    value, variance = rng.normal(size=5), rng.gamma(2.0, size=5)
    expected = np.zeros(5)
    for chapter in (0, 2):
        own = chapters == chapter
        precision = (1 / variance[own]).sum()
        expected[own] = np.average(value[own], weights=1 / variance[own]) * precision
        expected[own] /= precision + 1 / CHAPTER_VARIANCE
    np.testing.assert_allclose(by_chapter(value, variance, chapters), expected)
