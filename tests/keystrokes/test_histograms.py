"""Histograms of latencies against a loop; they hold as many latencies as the totals."""

import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.keystrokes.latencies import Kind, count_histograms, count_latencies, latency_rows
from understudy.keystrokes.simulate import TypingCourse


@pytest.fixture(scope="module")
def course():
    return TypingCourse(n_learners=4, n_weeks=2, characters_per_week=400).simulate(np.random.default_rng(0))[
        0
    ]


@pytest.mark.parametrize("kind", Kind)
def test_classes_are_those_of_a_loop(course, kind):
    owner = np.where(course.week == 1, course.learner, -1)
    totals = count_latencies(course, owner, 4, (kind,))
    features = (*totals.features[3:20:2], "nobody typed this")
    found = count_histograms(course, owner, 4, features, kind, width=25.0)
    assert found.features == features
    code, value, labels = latency_rows(course, owner, kind)
    expected = np.zeros_like(found.count)
    for r in range(course.n_rows):
        if code[r] >= 0 and labels[code[r]] in features:
            expected[owner[r], features.index(labels[code[r]]), int(value[r] // 25)] += 1
    np.testing.assert_array_equal(found.count, expected)
    np.testing.assert_array_equal(found.count[:, :-1].sum(axis=2), totals.count[:, 3:20:2])


def test_latencies_at_the_bounds_have_a_class(course):
    totals = count_latencies(course, course.learner, 4, (Kind.digraph,), 0.0, 1000.0)
    found = count_histograms(course, course.learner, 4, totals.features, shortest=0.0, longest=1000.0)
    assert found.count.shape[2] == 101
    np.testing.assert_array_equal(found.count.sum(axis=2), totals.count)


def test_a_class_has_a_width(course):
    with pytest.raises(UsageError, match="classes of 0 ms"):
        count_histograms(course, course.learner, 4, ("a",), width=0)
