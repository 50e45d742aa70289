"""`understudy simulate --shape typing`: events and labels that the keystroke reader takes as they are."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from understudy.cli.app import app
from understudy.errors import UsageError
from understudy.keystrokes.formats.reading import read_keystrokes

pytestmark = pytest.mark.functional


def run(*words: object):
    return CliRunner().invoke(app, ["simulate", *map(str, words)], catch_exceptions=True)


@pytest.mark.parametrize("name", ["course.csv", "course.parquet"])
def test_a_course_with_its_labels(tmp_path, name):
    out = tmp_path / name
    result = run(out, "--shape", "typing", "--learners", 6, "--seed", 2, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    source = read_keystrokes(out, labels=tmp_path / "course-labels.csv")
    assert source.keystrokes.simulated
    assert source.keystrokes.n_learners == facts["learners"] == 6
    assert source.keystrokes.n_rows == facts["keys"]
    assert source.label_names == ("none", "some")
    assert source.labels is not None
    assert (source.labels >= 0).all()
    assert source.keystrokes.hold is not None
    assert set(source.keystrokes.week.tolist()) == set(range(facts["weeks"]))
    before = out.read_bytes()
    assert run(out, "--shape", "typing", "--learners", 6, "--seed", 2).exit_code == 0
    assert out.read_bytes() == before


def test_what_does_not_fit(tmp_path):
    out = tmp_path / "course.csv"
    assert isinstance(run(out, "--shape", "typing", "--items", 5).exception, UsageError | SystemExit)
    labels = tmp_path / "course-labels.csv"
    labels.write_text("learner,experience\nana,some\n")
    assert run(out, "--shape", "typing", "--learners", 3).exit_code != 0
    assert labels.read_text() == "learner,experience\nana,some\n"
    assert not out.exists()
