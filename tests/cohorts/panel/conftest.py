"""A private summary of a simulated school, with noise from a seed."""

import numpy as np
import pytest

from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.core.privacy.noise import seeded_noise


@pytest.fixture(scope="session")
def summary():
    rng = np.random.default_rng(5)
    cohort = School(n_learners=60).simulate(0, rng)
    return noisy_summary(cohort, propose(cohort.schema, cohort.n_learners, 3.0, 1e-3), seeded_noise(rng))
