"""Validated findings and summaries of simulated schools, for tests of a cycle."""

import numpy as np

from understudy.cohorts.feedback import Feedback, FeedbackFile, ValidatedFinding, Verdict
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.core.privacy.noise import seeded_noise

YES, NO, AGAINST = Verdict(1, True), Verdict(0, False), Verdict(-1, True)


def finding_named(name, synthetic=YES, real=YES):
    return ValidatedFinding(name, synthetic, real)


def feedback_of(*findings, n=120):
    return FeedbackFile((Feedback("What goes with achievement?", findings=findings),), n)


def summary_of(year, seed, epsilon=3.0, plan=None, n=120):
    cohort = School(n_learners=n).simulate(year, np.random.default_rng([seed, year]))
    chosen = plan or propose(cohort.schema, n, epsilon, 1e-3)
    card = {"card": f"{seed}-{year}"}
    return noisy_summary(cohort, chosen, seeded_noise(np.random.default_rng([seed, year, 1])), card)
