"""`joint`: its posterior against all membership vectors, its strength against the scores of single learners."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from understudy.core.attacks.estimate import auc_with_error
from understudy.logs.attacks import joint
from understudy.logs.attacks.joint import MOST_ENTRIES, N_BURN_IN, N_KEPT, STRAY_STEPS, joint_scores, n_sweeps
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.plugins import check_attack
from understudy.logs.attacks.steps import count_scores, rare_scores, transition_scores
from understudy.logs.generators.baselines import Markov
from understudy.logs.interactions import Interactions

pytestmark = pytest.mark.oracle


def step_matrix(sequence, n_actions):
    """How often a sequence makes each step; row and column `n_actions` are the start and the end."""
    matrix = np.zeros((n_actions + 1, n_actions + 1))
    for source, target in zip([n_actions, *sequence], [*sequence, n_actions], strict=True):
        matrix[source, target] += 1
    return matrix


def posterior_by_enumeration(sequences, synthetic, n_actions, share):
    """The chance of each membership: every one of the 2^N vectors weighed by its likelihood."""
    own = np.array([step_matrix(sequence, n_actions) for sequence in sequences])
    # Steps that no learner made are set aside: the law of the others, given that they are others, needs them not.
    seen = sum(step_matrix(sequence, n_actions) for sequence in synthetic) * (own.sum(axis=0) > 0)
    vectors = np.array(list(product([0, 1], repeat=len(sequences))))
    logs = []
    for member in vectors:
        trained = np.tensordot(member, own, axes=1)
        left = trained.sum(axis=1, keepdims=True)
        chance = (trained + STRAY_STEPS) / (left + STRAY_STEPS * (n_actions + 1))
        prior = np.where(member, np.log(share), np.log(1 - share)).sum()
        logs.append(prior + (seen * np.log(chance)).sum())
    return np.exp(logs - logsumexp(logs)) @ vectors


def test_the_posterior_is_that_of_all_membership_vectors():
    rng = np.random.default_rng(4)
    n_actions = 4
    sequences = [rng.integers(n_actions, size=rng.integers(1, 8)).tolist() for _ in range(9)]
    population = Interactions.from_sequences(sequences, actions=[*"abcd"])
    synthetic = [sequences[0], sequences[3], [1, 2, 2, 0], [3, 1]]
    wanted = posterior_by_enumeration(sequences, synthetic, n_actions, share=4 / 9)
    found = joint_scores(Knowledge(population, 4), Interactions.from_sequences(synthetic, actions=[*"abcd"]))
    # 700 sweeps: the error of a chance is below 0.5 / sqrt(700), and correlated draws make it larger.
    np.testing.assert_allclose(expit(found), wanted, atol=0.06)
    assert wanted.max() - wanted.min() > 0.4


def test_it_passes_the_checks_of_every_attack():
    check_attack(joint_scores)


def test_learners_with_equal_records_have_equal_scores():
    sequences = [[0, 1, 2], [2, 1], [0, 1, 2], [1, 1, 0]]
    log = Interactions.from_sequences(sequences)
    scores = joint_scores(Knowledge(log, 2), log.select([0, 3]))
    assert scores[0] == scores[2]


def test_it_finds_more_than_any_score_of_single_learners(make_log):
    """Paired over six chains; each area alone has a standard error of 0.04."""
    gains, areas = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        log = make_log(rng, n_learners=150, n_actions=25, mean_length=25)
        member = np.arange(150) < 75
        knowledge = Knowledge(log, 75)
        synthetic = Markov().fit(log.select(member), rng).sample(None, rng)
        single = max(
            auc_with_error(score(knowledge, synthetic), member)[0]
            for score in (transition_scores, count_scores, rare_scores)
        )
        areas.append(auc_with_error(joint_scores(knowledge, synthetic), member)[0])
        gains.append(areas[-1] - single)
    assert np.mean(gains) > 0.0
    assert np.mean(areas) > 0.7


def test_a_large_log_is_swept_less_often():
    most = MOST_ENTRIES // (N_BURN_IN + N_KEPT)
    assert n_sweeps(0) == n_sweeps(most) == (N_BURN_IN, N_KEPT)
    assert n_sweeps(2 * most) == (N_BURN_IN // 2, N_KEPT // 2)
    assert n_sweeps(4 * most) == n_sweeps(1000 * most) == (N_BURN_IN // 4, N_KEPT // 4)


@pytest.mark.parametrize("seed", range(3))
def test_a_quarter_of_the_sweeps_finds_as_many(make_log, monkeypatch, seed):
    """Far within the error of the area, which is that of so many learners."""
    rng = np.random.default_rng(seed)
    log = make_log(rng, n_learners=2000, n_actions=25, mean_length=25)
    member = np.arange(2000) < 1000
    synthetic = Markov().fit(log.select(member), rng).sample(None, rng)
    area, error = auc_with_error(joint_scores(Knowledge(log, 1000), synthetic), member)
    monkeypatch.setattr(joint, "MOST_ENTRIES", 0)
    fewer, _ = auc_with_error(joint_scores(Knowledge(log, 1000), synthetic), member)
    assert area > 0.5 + 3 * error
    assert fewer != area
    assert abs(fewer - area) < error / 2
