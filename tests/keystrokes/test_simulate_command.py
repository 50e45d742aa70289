"""`understudy simulate --shape typing`: events and labels that the keystroke reader takes as they are."""

from __future__ import annotations

import json

import pytest

from tests.support import command
from understudy.keystrokes.formats.reading import read_keystrokes

pytestmark = pytest.mark.functional


def run(out, *words: object):
    return command.run("simulate", out.name, "--shape", "typing", *words, cwd=out.parent)


@pytest.mark.parametrize("name", ["course.csv", "course.parquet"])
def test_a_course_with_its_labels(tmp_path, name):
    out = tmp_path / name
    result = run(out, "--learners", 6, "--seed", 2, "--json")
    assert result.returncode == 0, result.stderr
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
    assert run(out, "--learners", 6, "--seed", 2).returncode == 0
    assert out.read_bytes() == before


def test_what_does_not_fit(tmp_path):
    out = tmp_path / "course.csv"
    refused = run(out, "--items", 5)
    assert refused.returncode == 2
    assert "neither actions nor items" in refused.stderr
    labels = tmp_path / "course-labels.csv"
    labels.write_text("learner,experience\nana,some\n")
    refused = run(out, "--learners", 3)
    assert refused.returncode == 2
    assert "course-labels.csv" in refused.stderr
    assert labels.read_text() == "learner,experience\nana,some\n"
    assert not out.exists()
