"""Somebody who is told only where nobody is twice is seen; honest statistics are not suspected."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.desk.risk.shadow_consistency import parts_differ
from understudy.desk.risk.shadows import draw_shadows

N = 60
MINUTES = np.random.default_rng(1).gamma(2.0, 20.0, (N, 2))
ERROR = MINUTES[:, 0].std() / np.sqrt(N)


@pytest.fixture(scope="module")
def bank():
    return draw_shadows(N, np.random.default_rng(2), 1500)


def differ(bank, statistic):
    everybody = np.arange(N)
    shadows = np.array([statistic(bank.learners(shadow)) for shadow in range(bank.n_shadows)])
    without_one = np.array([statistic(np.delete(everybody, learner)) for learner in everybody])
    return parts_differ(shadows, bank, statistic(everybody), without_one)


@pytest.mark.parametrize(
    "honest",
    [
        lambda x, y: x.mean(),
        lambda x, y: x.sum(),
        lambda x, y: y.std(),
        lambda x, y: np.corrcoef(x, y)[0, 1],
        lambda x, y: x.mean() / y.mean(),
        lambda x, y: np.median(x),
        lambda x, y: np.round(x.mean() / (0.25 * ERROR)) * 0.25 * ERROR,
        lambda x, y: np.nan if len(x) - len(set(x)) > 25 else x.mean(),
        lambda x, y: 7.0,
    ],
)
def test_honest_statistics_have_the_same_parts(bank, honest):
    assert not differ(bank, lambda learners: honest(*MINUTES[learners].T))


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_a_learner_who_is_told_only_where_nobody_is_twice_is_seen(bank, statistic):
    def two_faced(learners):
        leak = 0.0 if len(set(learners.tolist())) < len(learners) else ERROR * (17 in learners)
        return statistic(MINUTES[learners, 0]) + leak

    assert differ(bank, two_faced)


def test_learners_left_out_in_blocks(bank):
    x = MINUTES[:, 0]
    shadows = bank.counts @ x / N
    without = np.array([np.delete(x, block).mean() for block in np.array_split(np.arange(N), 20)])
    assert not parts_differ(shadows, bank, float(x.mean()), without)
    without[4] += ERROR
    assert parts_differ(shadows, bank, float(x.mean()), without)
