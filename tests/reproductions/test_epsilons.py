"""What epsilon costs and buys: the measurement, small; its table is on the page of attacks (test_attack_strength)."""

import numpy as np
import pytest

from reproductions import epsilons
from understudy.logs.simulated.classroom import Classroom


def test_a_larger_epsilon_is_closer_to_the_log_and_shows_more_of_its_learners():
    log = Classroom(n_learners=60, n_actions=6).simulate(np.random.default_rng(0)).declare()
    found = {
        epsilon: epsilons.measured(log, f"runs-dp:epsilon={epsilon}", n_halves=3, n_shadows=6)
        for epsilon in (0.5, 50)
    }
    assert found[50]["action_tv"] < found[0.5]["action_tv"]
    assert found[50]["transcript"] > max(found[0.5]["transcript"], 0.7)
    # The synthetic log is made of the noisy sums alone, so nothing finds more in it.
    assert found[50]["joint_linear"] < found[50]["transcript"]
    assert found[0.5]["exposed"] == pytest.approx(0.0)
