"""`understudy simulate --shape exam`: a sheet that the reader of responses understands."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from tests.support.command import run
from understudy.exams.formats.reading import read_responses
from understudy.exams.responses import Points
from understudy.exams.simulate import Exam

pytestmark = pytest.mark.functional


@pytest.mark.parametrize("name", ["exam.csv", "exam.parquet"])
@pytest.mark.parametrize("items", [("--items", 7), ("--actions", 7), ("--items", 7, "--actions", 7)])
def test_writes_a_sheet(tmp_path, name, items):
    done = run("simulate", name, "--shape", "exam", "--learners", 30, *items, "--seed", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{name}: answers of 30 simulated learners to 7 items.\n"
    read = read_responses(tmp_path / name, keep_names=True)
    expected = Exam(n_learners=30, n_items=7).simulate(np.random.default_rng(3)).responses
    assert read.origin.layout == "wide"
    assert read.simulated
    assert read.items == expected.items == tuple(f"item {n}" for n in range(1, 8))
    assert (read.correct == expected.correct).all()
    assert read.origin.learners[:2] == ("simulated-1", "simulated-2")


def test_sizes_by_default_and_for_machines(tmp_path):
    done = run("simulate", "exam.csv", "--shape", "exam", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"out": "exam.csv", "rows": 120, "learners": 120, "items": 20}
    assert pl.read_csv(tmp_path / "exam.csv").columns[:2] == ["learner", "item 1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--items", 7), "the shape classroom has actions"),
        (("--shape", "exam", "--items", 7, "--actions", 8), "either 8 or 7 items"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, arguments, message):
    done = run("simulate", "exam.csv", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "exam.csv").exists()


def test_an_exam_with_points_goes_through_all_commands(tmp_path):
    done = run("simulate", "exam.csv", "--shape", "exam", "--points", 3, "--items", 8, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    read = read_responses(tmp_path / "exam.csv", points=1)
    assert read.points == (Points(3),) * 8
    assert set(np.unique(read.correct)) == {0, 1, 2, 3}
    made = run("difficulties", "exam.csv", "--points", 1, "--epsilon", 5, "-o", "d.json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "shares of points" in made.stdout
    assert run("page", "d.json", "-o", "page.html", cwd=tmp_path).returncode == 0
    assert run("ability", "d.json", "--answers", "exam.csv", "-o", "a.csv", cwd=tmp_path).returncode == 0
    refused = run("simulate", "log.csv", "--points", 3, cwd=tmp_path)
    assert "has no points" in refused.stderr
