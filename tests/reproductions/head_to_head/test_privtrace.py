"""PrivTrace's rule against counts and decisions made one by one."""

import itertools
from math import sqrt

import numpy as np
import pytest

from reproductions.head_to_head.claims import CHECKS, check_privtrace, check_steps
from reproductions.head_to_head.privtrace import (
    PrivTrace,
    first_order,
    outcome_counts,
    second_order,
    second_order_states,
)
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def log() -> Interactions:
    return Classroom(n_learners=40, n_actions=7, longest=40).simulate(np.random.default_rng(1))


def learners(log):
    for i in range(log.n_learners):
        rows = slice(log.offsets[i], log.offsets[i + 1])
        yield list(log.action[rows]), list(log.outcome[rows])


def test_counts_are_those_of_every_learner_divided_by_their_number(log):
    n = log.n_actions
    first, second, outcomes = np.zeros((n + 1, n + 1)), np.zeros((n, n + 1, n + 1)), np.zeros((2, n))
    for actions, results in learners(log):
        way = [n, *actions, n]
        for a, b in itertools.pairwise(way):
            first[a, b] += 1 / (len(actions) + 1)
        for before, here, after in zip(way[:-2], way[1:-1], way[2:], strict=True):
            second[here, before, after] += 1 / len(actions)
        for action, result in zip(actions, results, strict=True):
            outcomes[result, action] += 1 / len(actions)
    assert first_order(log) == pytest.approx(first)
    assert outcome_counts(log) == pytest.approx(outcomes)
    for state in range(n):
        assert second_order(log, state) == pytest.approx(second[state])
    # So a learner, however long, adds 1 to each.
    assert [table.sum() for table in (first, second, outcomes)] == pytest.approx([log.n_learners] * 3)


def test_the_order_is_chosen_for_each_state_by_its_noise():
    rng = np.random.default_rng(2)
    for _ in range(50):
        n, epsilon = int(rng.integers(3, 60)), float(rng.choice([0.1, 1.0, 5.0]))
        noisy = rng.exponential(size=(n + 1, n + 1)) * (rng.random((n + 1, n + 1)) < 0.4) * rng.integers(1, 9)
        expected = []
        for state in range(n):
            ways = sorted(noisy[state, :n], reverse=True)
            worth_it = sum(ways) > n * sqrt(2) / epsilon and ways[1] > 0 and ways[0] / ways[1] < 5
            busy = noisy[state].sum() > 0.02 * noisy.sum()
            start = noisy[n, state] > 0.02 * noisy[n, :n].sum()
            end = noisy[state, n] > 0.02 * noisy[:n, n].sum()
            expected.append(worth_it or busy or start or end)
        assert second_order_states(noisy, epsilon).tolist() == expected


def test_without_noise_it_is_the_chain_of_the_chosen_orders(log):
    fitted = PrivTrace(1e9).fit(log, np.random.default_rng(3))
    assert fitted.first_ == pytest.approx(first_order(log), abs=1e-6)
    assert fitted.second_
    for state, counts in fitted.second_.items():
        assert counts == pytest.approx(second_order(log, state), abs=1e-6)
    failures, successes = outcome_counts(log)
    seen = failures + successes > 0
    assert fitted.success_[seen] == pytest.approx(successes[seen] / (failures + successes)[seen], abs=1e-5)
    drawn = fitted.sample(4000, rng=np.random.default_rng(4))
    starts = np.bincount(drawn.action[drawn.offsets[:-1]], minlength=log.n_actions) / 4000
    assert starts == pytest.approx(first_order(log)[-1, :-1] / first_order(log)[-1].sum(), abs=0.04)


def test_a_way_that_was_never_seen_falls_back_to_the_first_order(log):
    fitted = PrivTrace(1e9).fit(log, np.random.default_rng(3))
    state, counts = next(iter(fitted.second_.items()))
    fitted.second_[state] = np.zeros_like(counts)
    assert fitted.chances(0, state) is fitted.first_[state] or (
        fitted.chances(0, state) == pytest.approx(fitted.first_[state])
    )


def test_what_one_learner_moves_is_what_is_stated():
    assert check_privtrace()["counts_moved"] == pytest.approx(1.0)
    for name in ("markov-dp", "runs-dp"):
        facts = CHECKS[name]()
        assert 0 < facts["rho_used"] <= facts["rho_stated"]


def test_a_learner_moves_a_gradient_by_two_norms_at_most():
    pytest.importorskip("opacus")
    assert 0 < check_steps()["gradient_moved"] <= 2.0
