"""The simulated Moodle course is read as a real export would be."""

import numpy as np
import pytest

from understudy.core.files.times import DateOrder
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.simulated.moodle import moodle_gradebook, moodle_report


@pytest.fixture(scope="module")
def course() -> Interactions:
    return Classroom(n_learners=30, n_actions=12, timed=True).simulate(np.random.default_rng(3))


def test_the_report_is_read_with_the_learners_and_activities_that_it_was_made_of(course, tmp_path):
    path = tmp_path / "course.csv"
    moodle_report(course).write_csv(path)

    log = read_log(path, date_order=DateOrder.day_first)

    assert log.outcome is None
    assert (log.n_rows, log.n_learners) == (course.n_rows, course.n_learners)
    assert sorted(log.lengths) == sorted(course.lengths)
    assert {name.split(": ")[1] for name in log.actions} <= set(course.actions)


def test_the_gradebook_names_the_learners_of_the_report(course):
    grades, report = moodle_gradebook(course), moodle_report(course)

    names = {f"{first} {last}" for first, last in grades.select("First name", "Last name").iter_rows()}

    assert set(report["User full name"]) <= names
    assert grades["Course total (Real)"].str.contains(r"^(\d+|-)$").all()
