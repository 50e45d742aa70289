"""A private summary of a simulated school, with noise from a seed."""

import numpy as np
import pytest

from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.summarize import summarize
from understudy.core.privacy.noise import seeded_noise


@pytest.fixture(scope="session")
def summary():
    rng = np.random.default_rng(5)
    cohort = School(n_learners=60).simulate(0, rng)
    return summarize(cohort, propose(cohort.schema, cohort.n_learners, 3.0, 1e-3), seeded_noise(rng))
