"""Difficulties in words and in order."""

import numpy as np
import pytest

from understudy.exams.ranking import distinguished, in_words, rank_items


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (0.99, "solved by nearly all students"),
        (0.9, "solved by 9 of 10 students"),
        (0.67, "solved by 7 of 10 students"),
        (0.5, "solved by 5 of 10 students"),
        (0.25, "solved by 3 of 10 students"),  # JavaScript's Math.round, on the student's page
        (0.1, "solved by 1 of 10 students"),
        (0.0, "solved by hardly any student"),
    ],
)
def test_readings(chance, words):
    assert in_words(chance) == words


def test_precise_difficulties_have_one_place_each():
    order = rank_items(np.array([0.3, -2.0, 1.0]), np.full(3, 1e-3))
    assert order.rank_from.tolist() == order.rank_to.tolist() == [2, 1, 3]
    assert order.steps == ((1,), (0,), (2,))


def test_what_cannot_be_told_shares_a_step():
    order = rank_items(np.array([0.0, 0.1, 5.0]), np.full(3, 0.5))
    assert order.steps == ((0, 1), (2,))
    assert order.rank_from.tolist() == [1, 1, 3]
    assert order.rank_to.tolist() == [2, 2, 3]


def test_a_step_holds_no_pair_that_can_be_distinguished():
    rng = np.random.default_rng(1)
    difficulty, error = rng.normal(0, 1, 40), rng.uniform(0.05, 0.8, 40)
    order = rank_items(difficulty, error)
    apart = distinguished(difficulty, error)
    assert sorted(item for step in order.steps for item in step) == list(range(40))
    for step in order.steps:
        assert not apart[np.ix_(step, step)].any()
    assert (order.rank_from <= order.rank_to).all()
    # The place in the plain order is always among those that an item may have.
    place = np.argsort(np.argsort(difficulty)) + 1
    assert (order.rank_from <= place).all()
    assert (place <= order.rank_to).all()


def test_unbounded_items_stand_at_the_ends_and_unknown_ones_are_never_distinguished():
    order = rank_items(np.array([np.inf, 0.0, -np.inf, np.inf]), np.array([np.inf, 0.1, np.inf, np.inf]))
    assert order.rank_from.min() == 1
    unknown = distinguished(np.array([0.0, 9.0]), np.array([np.nan, 0.1]))
    assert not unknown.any()
