"""A small simulated course, read only."""

import numpy as np
import pytest

from understudy.keystrokes.simulate import TypingCourse


@pytest.fixture(scope="package")
def course():
    """(keystrokes, experience) of twelve students over two weeks."""
    return TypingCourse(n_learners=12, n_weeks=2, characters_per_week=600).simulate(np.random.default_rng(6))
