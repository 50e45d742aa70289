"""The simulated exam: answers follow the Rasch model, and are marked as nobody's."""

from __future__ import annotations

import numpy as np

from understudy.exams.simulate import Exam, chances


def test_the_shape_of_a_sitting():
    sitting = Exam(n_learners=7, n_items=3).simulate(np.random.default_rng(1))
    assert sitting.responses.correct.shape == (7, 3)
    assert sitting.responses.items == ("item 1", "item 2", "item 3")
    assert sitting.responses.simulated
    assert sitting.responses.declared
    assert sitting.responses.n_missing == 0
    assert sitting.ability.shape == (7,)
    assert sitting.difficulty.shape == (3,)


def test_the_same_seed_gives_the_same_exam():
    one, two = (Exam(30, 5, missing=0.2).simulate(np.random.default_rng(4)) for _ in range(2))
    assert (one.responses.correct == two.responses.correct).all()
    assert (one.difficulty == two.difficulty).all()


def test_chances_are_those_of_the_rasch_model():
    chance = chances(np.array([0.0, 2.0]), np.array([0.0, 2.0, -1.0]))
    expected = [[1 / (1 + np.exp(b - a)) for b in (0.0, 2.0, -1.0)] for a in (0.0, 2.0)]
    np.testing.assert_allclose(chance, expected)
    assert chance[0, 0] == chance[1, 1] == 0.5


def test_abilities_and_difficulties_have_their_spread():
    sitting = Exam(4_000, 2_000, ability_sd=0.5, difficulty_sd=3.0).simulate(np.random.default_rng(5))
    # The standard error of a standard deviation is sd / sqrt(2 n); six of them.
    assert abs(sitting.ability.std() - 0.5) < 6 * 0.5 / np.sqrt(8_000)
    assert abs(sitting.difficulty.std() - 3.0) < 6 * 3.0 / np.sqrt(4_000)


def test_answers_come_with_their_chances():
    sitting = Exam(5_000, 8).simulate(np.random.default_rng(6))
    expected, observed = sitting.chances.mean(axis=0), (sitting.responses.correct == 1).mean(axis=0)
    assert np.abs(observed - expected).max() < 6 * 0.5 / np.sqrt(5_000)
    again = sitting.again(np.random.default_rng(7))
    assert (again.correct != sitting.responses.correct).any()
    assert np.abs((again.correct == 1).mean(axis=0) - expected).max() < 6 * 0.5 / np.sqrt(5_000)
    assert again.simulated


def test_items_that_were_not_given_are_missing_at_random_and_again():
    sitting = Exam(5_000, 10, missing=0.3).simulate(np.random.default_rng(8))
    missing = sitting.responses.correct < 0
    assert abs(missing.mean() - 0.3) < 6 * np.sqrt(0.21 / missing.size)
    assert sitting.responses.simulated
    assert sitting.responses.declared
    again = sitting.again(np.random.default_rng(9))
    assert ((again.correct < 0) == missing).all()
