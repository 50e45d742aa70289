"""Responses: what may be in the matrix, and what the methods that make new ones keep and change."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from understudy.errors import DataError
from understudy.exams.responses import ItemTotals, Responses

MATRIX = [[1, 0, -1], [0, 1, 1]]
matrices = arrays(np.int8, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(-1, 1))
quick = settings(max_examples=50, deadline=None, derandomize=True)


def test_from_a_matrix():
    responses = Responses.from_matrix(MATRIX)
    assert responses.correct.tolist() == MATRIX
    assert responses.correct.dtype == np.int8
    assert responses.items == ("item 1", "item 2", "item 3")
    assert (responses.n_learners, responses.n_items, responses.n_missing) == (2, 3, 1)
    assert responses.declared
    assert not responses.simulated
    assert Responses.from_matrix([[1.0, float("nan")]], ["a", "b"]).correct.tolist() == [[1, -1]]
    assert Responses.from_matrix(np.array([[True, False]])).correct.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    "matrix", [[[2, 0]], [[-2, 0]], [[0.5, 1]], [[float("inf"), 1]], [["a", "b"]], [1, 0], 1, [[[1]]]]
)
def test_a_matrix_that_holds_no_responses(matrix):
    with pytest.raises(DataError, match="responses are"):
        Responses.from_matrix(matrix)


@pytest.mark.parametrize(
    ("correct", "items", "message"),
    [
        (np.zeros((2, 2), dtype=np.int64), ("a", "b"), "small integers"),
        (np.zeros(2, dtype=np.int8), ("a", "b"), "a matrix of learners by items"),
        (np.zeros((2, 2), dtype=np.int8), ("a",), "2 items have 1 names"),
        (np.zeros((2, 2), dtype=np.int8), ("a", "a"), "the same name"),
        (np.full((2, 2), 2, dtype=np.int8), ("a", "b"), "0 or 1, or missing"),
    ],
)
def test_what_is_refused(correct, items, message):
    with pytest.raises(DataError, match=message):
        Responses(correct, items)


def test_is_frozen_and_tells_sizes_only():
    mine = np.array(MATRIX, dtype=np.int8)
    responses = Responses(mine, ("secret 1", "b", "c"), simulated=True)
    with pytest.raises(ValueError, match="read-only"):
        responses.correct[0, 0] = 0
    assert mine.flags.writeable
    assert repr(responses) == "<simulated Responses: 2 learners, 3 items>"


def test_no_learners():
    nobody = Responses(np.empty((0, 2), dtype=np.int8), ("a", "b"))
    assert nobody.n_missing == 0
    assert nobody.totals().answered.tolist() == [0, 0]
    assert nobody.at_most(1, np.random.default_rng(0)).n_learners == 0


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        ("first", [[0, 1, -1], [-1, 1, 0]]),
        ("last", [[0, 0, -1], [-1, 0, 0]]),
        ("best", [[1, 1, -1], [-1, 1, 0]]),
    ],
)
def test_one_attempt_of_several_events_counts(attempt, expected):
    events = pl.DataFrame(
        {
            "learner": ["ana"] * 5 + ["ben"] * 3,
            "action": ["0", "1", "0", "0", "1", "1", "2", "1"],
            "outcome": [0, 1, 1, 0, 0, 1, 0, 0],
        }
    )
    responses = Responses.from_events(events, attempt)
    assert responses.correct.tolist() == expected
    assert responses.items == ("0", "1", "2")
    assert not responses.declared


def test_attempts_are_in_the_order_of_their_times():
    events = pl.DataFrame(
        {"learner": ["ana", "ana", "ben"], "action": ["q", "q", "q"], "outcome": [1, 0, 1], "time": [5, 2, 1]}
    )
    assert Responses.from_events(events, "first").correct.tolist() == [[0], [1]]
    assert Responses.from_events(events, "last").correct.tolist() == [[1], [1]]


def test_declared_items():
    responses = Responses(np.array(MATRIX, dtype=np.int8), ("a", "b", "c"))
    assert responses.declare().declared
    chosen = responses.with_items(["c", "new", "a"])
    assert chosen.correct.tolist() == [[-1, -1, 1], [1, -1, 0]]
    assert chosen.items == ("c", "new", "a")
    assert chosen.declared
    with pytest.raises(DataError, match="the same name"):
        responses.with_items(["a", "a"])


def test_some_learners():
    responses = Responses.from_matrix(MATRIX)
    assert responses.select([1, 1]).correct.tolist() == [MATRIX[1]] * 2
    assert responses.select([True, False]).correct.tolist() == [MATRIX[0]]
    assert responses.select([]).correct.shape == (0, 3)


def test_missing_as_wrong():
    responses = Responses.from_matrix(MATRIX)
    assert responses.missing_as_wrong().correct.tolist() == [[1, 0, 0], [0, 1, 1]]
    complete = responses.missing_as_wrong()
    assert complete.missing_as_wrong() is complete


@quick
@given(matrix=matrices, n_answers=st.integers(0, 9))
def test_at_most_so_many_answers(matrix, n_answers):
    responses = Responses.from_matrix(matrix)
    fewer = responses.at_most(n_answers, np.random.default_rng(1))
    given_before, given_now = matrix >= 0, fewer.correct >= 0
    assert (given_now.sum(axis=1) == np.minimum(given_before.sum(axis=1), n_answers)).all()
    assert (fewer.correct[given_now] == matrix[given_now]).all()
    assert fewer.items == responses.items


def test_every_answer_is_as_likely_to_be_kept():
    n_learners = 20_000
    responses = Responses.from_matrix(np.ones((n_learners, 5), dtype=np.int8))
    kept = (responses.at_most(2, np.random.default_rng(2)).correct >= 0).mean(axis=0)
    # Six standard errors of a share of 0.4: a false alarm in 10^8 runs of any seed.
    assert np.abs(kept - 0.4).max() < 6 * np.sqrt(0.24 / n_learners)


@quick
@given(matrix=matrices, cut=st.integers(0, 8))
def test_totals_add_up(matrix, cut):
    totals = ItemTotals.of(matrix)
    assert totals.correct.tolist() == (matrix == 1).sum(axis=0).tolist()
    assert totals.answered.tolist() == (matrix >= 0).sum(axis=0).tolist()
    parts = ItemTotals.of(matrix[:cut]) + ItemTotals.of(matrix[cut:])
    assert parts.correct.tolist() == totals.correct.tolist()
    assert parts.answered.tolist() == totals.answered.tolist()
    assert parts.n_learners == totals.n_learners == len(matrix)


def test_totals_of_more_than_a_block():
    matrix = np.random.default_rng(3).integers(-1, 2, (20_000, 3)).astype(np.int8)
    assert ItemTotals.of(matrix).correct.tolist() == (matrix == 1).sum(axis=0).tolist()
