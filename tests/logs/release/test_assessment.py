"""The attacks on a sample of the learners, where there are very many."""

import numpy as np
import pytest

from understudy.logs.generators.registry import parse_generator
from understudy.logs.release import assessment
from understudy.logs.simulated.classroom import Classroom

pytestmark = pytest.mark.functional


@pytest.mark.parametrize("most", [60, 200])
def test_of_very_many_learners_a_sample_is_attacked(most, monkeypatch):
    monkeypatch.setattr(assessment, "MOST_ATTACKED", most)
    log = Classroom(n_learners=120, n_actions=8).simulate(np.random.default_rng(1))
    found = assessment.assess(log, parse_generator("markov"), n_learners=240, n_halves=1, n_shadows=8)
    n_attacked = min(most, 120)
    assert (found.n_learners, found.n_attacked) == (120, n_attacked)
    worst = found.worst
    assert worst.n_members + worst.n_outsiders + found.n_set_aside == n_attacked
    # Twice as many synthetic learners as there are, on half of those who are attacked; actions, and with outcomes.
    assert found.matching.pairs == 2 * n_attacked * n_attacked
    assert found.to_json()["learners_attacked"] == n_attacked


def test_the_sample_is_the_same_each_time_and_in_order(monkeypatch):
    log = Classroom(n_learners=50, n_actions=8).simulate(np.random.default_rng(2))
    assert assessment.sampled_learners(log) is log
    monkeypatch.setattr(assessment, "MOST_ATTACKED", 20)
    first, second = (assessment.sampled_learners(log) for _ in range(2))
    assert first.n_learners == 20
    np.testing.assert_array_equal(first.action, second.action)


def test_the_sample_has_no_more_rows_than_can_be_refitted_but_some_learners(monkeypatch):
    log = Classroom(n_learners=50, n_actions=8).simulate(np.random.default_rng(2))
    monkeypatch.setattr(assessment, "MOST_ATTACKED_ROWS", log.n_rows // 2)
    monkeypatch.setattr(assessment, "LEAST_ATTACKED", 2)
    some = assessment.sampled_learners(log)
    assert log.n_rows // 2 - log.lengths.max() < some.n_rows <= log.n_rows // 2
    monkeypatch.setattr(assessment, "LEAST_ATTACKED", 45)
    assert assessment.sampled_learners(log).n_learners == 45
    monkeypatch.setattr(assessment, "LEAST_ATTACKED", 100)
    assert assessment.sampled_learners(log).n_learners == 50
