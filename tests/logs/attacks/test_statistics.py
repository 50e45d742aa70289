"""LogStatistics: against plain counting, and what a learner adds against what leaving them out takes away."""

from collections import Counter

import numpy as np
import pytest

from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.shadow import joint_linear_scores
from understudy.logs.attacks.statistics import LogStatistics
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

pytestmark = pytest.mark.oracle

N_LENGTHS = 24


def parts(statistics, log, values):
    """The values by kind; bands are put together again."""
    n = log.n_actions
    n_jumps = len(values) - 4 * n - N_LENGTHS
    ends = np.cumsum([n, n, n, N_LENGTHS, n_jumps, n])
    names = ("rows", "runs", "starts", "lengths", "jumps", "successes")
    return dict(zip(names, np.split(values, ends[:-1]), strict=True))


def test_the_statistics_by_counting():
    log = Interactions.from_sequences([[0, 0, 1], [1, 1], [2, 0, 2, 2]], [[1, 0, 1], [0, 0], [1, 1, 1, 0]])
    statistics = LogStatistics(log, 0.5)
    found = parts(statistics, log, statistics.of(log))
    np.testing.assert_allclose(found["rows"], [3 / 9, 3 / 9, 3 / 9])
    np.testing.assert_allclose(found["runs"], [2 / 6, 2 / 6, 2 / 6])
    np.testing.assert_allclose(found["starts"], [1 / 3, 1 / 3, 1 / 3])
    jumps = Counter([(0, 1), (2, 0), (0, 2)])
    np.testing.assert_allclose(found["jumps"], [jumps[pair] / 3 for pair in sorted(jumps)])
    assert found["lengths"].sum() == pytest.approx(1.0)
    # Successes beyond the rate (successes + 1) / (attempts + 2), per attempt and one more.
    np.testing.assert_allclose(found["successes"], [(s - 3 * (s + 1) / 5) / 4 for s in (2, 1, 2)])
    empty = Interactions.from_sequences([[], []], actions=["0", "1", "2"])
    assert np.isfinite(statistics.of(empty)).all()


def test_contributions_add_up_to_what_the_members_move(make_log):
    log = make_log(np.random.default_rng(0), n_learners=200, n_actions=12, mean_length=30)
    statistics = LogStatistics(log, 0.5)
    whole = parts(statistics, log, statistics.of(log))
    moved = {name: [] for name in whole}
    predicted = {name: [] for name in whole}
    for seed in range(10):
        member = np.random.default_rng(seed).permutation(200) < 100
        half = parts(statistics, log, statistics.of(log.select(member)))
        linear = parts(statistics, log, statistics.contributions.rmatvec(member - 0.5))
        for name in whole:
            moved[name].append(half[name] - whole[name])
            predicted[name].append(linear[name])
    # A learner has one start and one length, so these are linear; shares are nearly, long learners are cut, and
    # success rates are explained by abilities in part.
    for name, least in {
        "starts": 1.0,
        "lengths": 1.0,
        "rows": 0.97,
        "runs": 0.97,
        "jumps": 0.97,
        "successes": 0.8,
    }.items():
        seen = np.corrcoef(np.ravel(moved[name]), np.ravel(predicted[name]))[0, 1]
        assert seen >= least - 1e-9, name
    np.testing.assert_allclose(moved["starts"], predicted["starts"], atol=1e-12)
    squares = (statistics.contributions @ np.eye(len(statistics.kind))) ** 2
    np.testing.assert_allclose(statistics.spread, 0.25 * squares.sum(axis=0), atol=1e-15)


def test_a_log_without_jumps_has_statistics():
    log = Interactions.from_sequences([[0], [1, 1], [0, 0, 0]])
    statistics = LogStatistics(log, 0.5)
    assert np.isfinite(statistics.of(log)).all()
    assert statistics.contributions.shape == (3, len(statistics.kind))


def test_what_never_varies_does_not_blind_the_attack():
    """Where every learner begins with the same action, rounding once made the variance of that share negative."""
    log = Classroom(n_learners=80, n_actions=8).simulate(np.random.default_rng(2))
    knowledge = Knowledge(log, 40)
    assert (knowledge.statistics.spread >= 0).all()
    assert np.isfinite(joint_linear_scores(knowledge, log.select(np.arange(40)))).all()
