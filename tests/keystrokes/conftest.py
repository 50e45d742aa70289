"""A small simulated course, read only, and smaller forests."""

import numpy as np
import pytest

from understudy.keystrokes.attacks import trained
from understudy.keystrokes.simulate import TypingCourse
from understudy.keystrokes.traits import inference


@pytest.fixture(scope="session")
def course():
    """(keystrokes, experience) of twelve students over two weeks."""
    return TypingCourse(n_learners=12, n_weeks=2, characters_per_week=600).simulate(np.random.default_rng(6))


@pytest.fixture
def small_forests(monkeypatch):
    """For tests of what surrounds the forests: their trees are most of a sweep's time."""
    for module in (inference, trained):
        monkeypatch.setattr(module, "N_TREES", 20)
