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


def test_the_sample_is_the_same_each_time_and_in_order():
    log = Classroom(n_learners=50, n_actions=8).simulate(np.random.default_rng(2))
    first, second = (assessment.sampled_learners(log, 20) for _ in range(2))
    assert first.n_learners == 20
    np.testing.assert_array_equal(first.action, second.action)
    assert assessment.sampled_learners(log, 50) is log
