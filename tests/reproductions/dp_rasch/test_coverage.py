"""Stated errors of private difficulties hold: a small part of the grid, and the whole one as it was measured."""

from dataclasses import fields

import numpy as np
import pytest

from reproductions.dp_rasch import coverage as grid
from reproductions.dp_rasch.coverage import COLUMNS, Case, cases, measure, measure_class, measure_grid
from reproductions.pages import rows_of, tables_of
from understudy.exams.simulate import Exam

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    "case",
    [
        Case(120, 20, None, 0.8, 0.0, 2.0, "knorm"),
        Case(500, 20, None, 2.5, 0.25, 10.0, "knorm"),
        Case(500, 60, None, 2.5, 0.0, 2.0, "gaussian"),
        Case(400, 60, 20, 2.5, 0.0, 10.0, "gaussian"),
        Case(400, 60, 4, 0.8, 0.0, 10.0, "knorm"),
        Case(120, 20, None, 2.5, 0.0, 2.0, "knorm", mean=-2.5),
    ],
    ids=lambda case: f"{case.n_learners} x {case.n_items}, {case.method}, {case.mean:g}",
)
def test_intervals_hold_the_truth(case):
    """Twelve exams each; their share varies by 2 percentage points from seed to seed, of which three are allowed."""
    found = measure(case, 12)
    assert 0.89 <= found.covered <= 1.0
    assert found.wrong <= 0.05
    assert 0.6 < found.error / found.stated < 1.25


def test_the_measured_grid_is_the_one_that_is_asked_for():
    rows = rows_of(tables_of("dp_rasch") / "coverage.csv")
    assert tuple(rows[0]) == COLUMNS
    measured = {tuple(list(row.values())[: len(fields(Case))]) for row in rows}
    assert measured == {
        tuple("" if value is None else str(value) for value in vars(case).values()) for case in cases()
    }


def test_stated_orders_are_right_all_over_the_grid():
    rows = rows_of(tables_of("dp_rasch") / "coverage.csv")
    assert max(float(row["wrong"]) for row in rows) <= 0.05


def test_a_grid_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    few = [Case(30, 5, None, 0.8, 0.0, epsilon, "knorm") for epsilon in (1.0, 2.0)]
    monkeypatch.setattr(grid, "n_exams", lambda case: 2)
    monkeypatch.setattr(grid, "cases", lambda: iter(few[:1]))
    told = []
    measure_grid(tmp_path / "t.csv", told.append)
    monkeypatch.setattr(grid, "cases", lambda: iter(few))
    measure_grid(tmp_path / "t.csv", told.append)
    assert [row.epsilon for row in told] == [1.0, 2.0]
    assert len(rows_of(tmp_path / "t.csv")) == 2
    assert "30 x 5, spread 0.8" in told[0].line()


def test_a_class_is_compared_with_its_own_fit():
    responses = Exam(300, 12, ability_sd=2.0).simulate(np.random.default_rng(3)).responses
    found = measure_class(responses, 10.0, "knorm", runs=3)
    assert found.covered > 0.9
    assert found.error < found.stated
