"""How much abilities differ, found privately."""

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.exams.ability_spread import estimate_spread, score_spread_moments
from understudy.exams.simulate import Exam
from understudy.exams.totals_mechanism import cube


@pytest.mark.parametrize("sd", [0.5, 1.0, 2.0])
def test_many_learners_show_their_spread(sd):
    rng = np.random.default_rng(1)
    sitting = Exam(20_000, 20, ability_sd=sd).simulate(rng)
    totals = cube(20, 0.8).measure(sitting.responses.totals(), seeded_noise(rng))
    found = estimate_spread(sitting.responses, totals, 0.2, seeded_noise(rng))
    assert found == pytest.approx(sd, rel=0.1)


def test_few_learners_leave_it_near_one():
    rng = np.random.default_rng(1)
    sitting = Exam(30, 20, ability_sd=1.0).simulate(rng)
    totals = cube(20, 0.8).measure(sitting.responses.totals(), seeded_noise(rng))
    found = [estimate_spread(sitting.responses, totals, 0.2, seeded_noise(rng)) for _ in range(20)]
    assert min(found) >= 0.3
    assert max(found) <= 3.0
    assert np.median(found) == pytest.approx(1.0, abs=0.5)


def test_the_expected_spread_of_scores_agrees_with_simulation():
    rng = np.random.default_rng(2)
    sitting = Exam(200_000, 12, ability_sd=1.5).simulate(rng)
    score = sitting.responses.correct.sum(axis=1).astype(float)
    statistic = (2 * score - 12) ** 2
    mean, variance = score_spread_moments(sitting.difficulty, 1.5)
    assert statistic.mean() == pytest.approx(mean, rel=0.02)
    assert statistic.var() == pytest.approx(variance, rel=0.15)
