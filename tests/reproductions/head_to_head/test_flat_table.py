"""The flat table of steps and the walk that makes a log of it."""

import numpy as np
import polars as pl
import pytest

from reproductions.head_to_head.flat_table import COLUMNS, END, START, domain, flatten, walk
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

LOG = Interactions.from_sequences([[0, 0, 1], [1]], [[0, 1, 1], [0]], actions=["a", "b"])


def test_a_row_is_a_step():
    assert flatten(LOG).rows() == [
        (START, "from 0", "a", "0"),
        ("a", "from 1", "a", "1"),
        ("a", "from 2", "b", "1"),
        ("b", "from 2", END, END),
        (START, "from 0", "b", "0"),
        ("b", "from 1", END, END),
    ]
    assert flatten(LOG, 1).rows() == [(START, "from 0", "a", "0"), (START, "from 0", "b", "0")]


def test_every_value_is_in_the_domain():
    log = Classroom(n_learners=30, n_actions=6).simulate(np.random.default_rng(1))
    table, values = flatten(log), domain(log.actions)
    assert tuple(table.columns) == tuple(values) == COLUMNS
    for column in COLUMNS:
        assert set(table[column]) <= set(values[column])


def test_a_walk_over_the_real_steps_gives_a_log_like_the_real_one():
    log = Classroom(n_learners=300, n_actions=6).simulate(np.random.default_rng(1))
    drawn = walk(flatten(log), 300, log.actions, 1000, np.random.default_rng(2))
    assert drawn.n_learners == 300
    assert drawn.actions == log.actions
    assert drawn.lengths.min() >= 1
    shares = [np.bincount(each.action, minlength=6) / each.n_rows for each in (log, drawn)]
    assert shares[1] == pytest.approx(shares[0], abs=0.05)
    assert np.median(drawn.lengths) == pytest.approx(np.median(log.lengths), rel=0.35)


def test_rows_that_no_sequence_has_are_not_walked():
    rows = [(START, "from 0", END, END), (START, "from 0", "a", END), (START, "from 0", "b", "1")]
    table = pl.DataFrame([*rows, ("b", "from 1", "a", "0")], schema=list(COLUMNS), orient="row")
    drawn = walk(table, 2, ("a", "b"), 3, np.random.default_rng(1))
    # After `a` nothing is known, so any action may follow until the bound.
    assert drawn.lengths.tolist() == [3, 3]
    assert drawn.action[[0, 1, 3, 4]].tolist() == [1, 0, 1, 0]
