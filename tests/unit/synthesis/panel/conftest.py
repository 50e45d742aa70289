"""A private summary of a simulated school, with noise from a seed."""

import numpy as np
import pytest

from understudy.privacy.noise import test_noise as seeded_noise
from understudy.records.school import School
from understudy.synthesis.cohorts.budget import propose
from understudy.synthesis.cohorts.measuring import summarize


@pytest.fixture(scope="session")
def summary():
    rng = np.random.default_rng(5)
    cohort = School(n_learners=60).simulate(0, rng)
    return summarize(cohort, propose(cohort.schema, cohort.n_learners, 3.0, 1e-3), seeded_noise(rng))
