"""What an attacker needs to know, on small profiles and on a simulated course."""

import csv
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from reproductions.keystroke_privacy import sweep
from reproductions.keystroke_privacy.__main__ import app
from reproductions.keystroke_privacy.knowledge import (
    BY_DIGRAPHS,
    BY_WEEKS,
    across_courses,
    by_number_of_features,
    by_training,
    from_another_course,
    knowledge,
)
from reproductions.keystroke_privacy.traits import infer_as_thesis
from tests.support.command import run
from understudy.errors import UsageError
from understudy.keystrokes.attacks import trained
from understudy.keystrokes.attacks.identification import identification
from understudy.keystrokes.attacks.profiles import euclidean
from understudy.keystrokes.simulate import TypingCourse
from understudy.keystrokes.sweeps.course import SweepOptions, prepare
from understudy.keystrokes.sweeps.results import PUBLISHED, select
from understudy.keystrokes.traits import inference

OPTIONS = SweepOptions(largest=600.0, step=100.0, trained_step=300.0, guesses="1,5", min_characters=200)


@pytest.fixture(scope="module")
def course():
    keystrokes, experience = TypingCourse(
        n_learners=24, n_weeks=3, characters_per_week=900.0, habit=0.3, drift=0.05
    ).simulate(np.random.default_rng(1))
    return prepare(keystrokes, experience.astype(np.int32), OPTIONS)


def one(rows, **wanted):
    (found,) = select(rows, **wanted)
    return found


def test_more_features_and_more_weeks_identify_more_people():
    rng = np.random.default_rng(0)
    people = rng.normal(size=(80, 26))
    weeks = people[None] + rng.normal(size=(7, *people.shape))
    known, unknown = weeks[:6].mean(axis=0), weeks[6]
    rates = by_number_of_features("euclidean", euclidean, known, unknown, [0, 5, 25], 5)
    assert list(rates) == [0, 5, 25]
    assert rates[0].rate < rates[5].rate < rates[25].rate
    assert rates[25] == identification("euclidean", euclidean(known, unknown), 5)
    with pytest.raises(UsageError, match="first 26 features of 25"):
        by_number_of_features("euclidean", euclidean, known, unknown, [26], 5)
    training = by_training(
        "euclidean", euclidean, {n: weeks[6 - n : 6].mean(axis=0) for n in (1, 6)}, unknown, 1
    )
    assert training[1].rate < training[6].rate == identification("e", euclidean(known, unknown), 1).rate


def test_only_those_in_both_courses_are_judged_but_all_are_candidates():
    known = np.array([[0.0], [10], [20], [30]])
    unknown = np.array([[29.0], [11], [5]])
    found = across_courses("euclidean", euclidean, known, unknown, np.array([3, 1, -1]), 1)
    assert (found.rate, found.n_learners, found.chance) == (1.0, 2, 0.25)


def test_more_digraphs_and_weeks_name_more(course):
    rows = knowledge(course, OPTIONS)
    digraphs = {row.size: row.value for row in select(rows, measure=BY_DIGRAPHS, k=1)}
    assert digraphs[25.0] > digraphs[1.0]
    weeks = select(rows, measure=BY_WEEKS, k=5)
    assert [row.size for row in weeks] == [1.0, 2.0]


def test_a_person_is_named_by_another_course(course):
    early = course.keystrokes.rows(course.keystrokes.week < 2)
    late = course.keystrokes.rows(course.keystrokes.week == 2)
    rows = from_another_course(late, early, OPTIONS)
    found = one(rows, k=5, name=PUBLISHED)
    assert found.value > 0.8
    # Learners in another order are named no better than by guessing.
    mixed = late.learners(np.roll(np.arange(late.n_learners), 7))
    shuffled = one(from_another_course(mixed, early, OPTIONS), k=5, name=PUBLISHED)
    assert shuffled.low < shuffled.baseline


@pytest.mark.functional
def test_the_command_of_the_repository_writes_table_and_figures(tmp_path, monkeypatch):
    """The same file as the other course: everybody types there as here. Small forests and few folds show that."""
    for module in (inference, trained):
        monkeypatch.setattr(module, "N_TREES", 10)
    monkeypatch.setattr(sweep, "infer_as_thesis", partial(infer_as_thesis, n_folds=3))
    made = run("simulate", "course.csv", "--shape", "typing", "--learners", "12", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    course = str(tmp_path / "course.csv")
    options = ("--largest", "300", "--step", "300", "--trained-step", "300", "--guesses", "5")
    labels = ("--labels", str(tmp_path / "course-labels.csv"))
    done = CliRunner().invoke(
        app, [course, "--other-course", course, *labels, *options, "-o", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    with (tmp_path / "out" / "results.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    courses = [row for row in rows if row["measure"] == "another course"]
    assert courses
    assert all(float(row["value"]) == 1.0 for row in courses)
    assert "naive-bayes, selected outside" in {row["name"] for row in rows}
    assert {path.stem for path in (tmp_path / "out").glob("*.svg")} >= {"digraphs", "weeks", "attacks"}
