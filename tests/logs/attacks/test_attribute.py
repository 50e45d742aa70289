"""The attribute attack: its guesses against loops, its advantage where it is known."""

import numpy as np
import pytest

from understudy.logs.attacks import attribute
from understudy.logs.attacks.attribute import (
    N_NEIGHBOURS,
    PRIOR_NEIGHBOURS,
    attribute_attack,
    choose_targets,
    guess_outcomes,
)
from understudy.logs.interactions import Interactions

pytestmark = pytest.mark.oracle


def rows_of(log, i):
    part = slice(log.offsets[i], log.offsets[i + 1])
    return list(zip(log.action[part].tolist(), log.outcome[part].tolist(), strict=True))


def plain_guess(members, target, action, source):
    columns = [(a, o) for a in range(members.n_actions) for o in (0, 1)]
    others = [rows_of(source, i) for i in range(source.n_learners)]
    seen = {c: sum(c in rows for rows in others) for c in columns}
    weight = {c: np.log((1 + len(others)) / (1 + seen[c])) + 0.1 for c in columns}

    def profile(rows):
        return np.array([np.sqrt(rows.count(c)) * weight[c] for c in columns])

    guesses = []
    for learner, hidden in zip(target, action, strict=True):
        wanted = profile([(a, o) for a, o in rows_of(members, learner) if a != hidden])
        near = []
        for rows in others:
            results = [o for a, o in rows if a == hidden]
            if results:
                own = profile(rows)
                near.append((wanted @ own / (np.linalg.norm(own) + 1e-9), np.mean(results)))
        near = sorted(near, reverse=True)[:N_NEIGHBOURS]
        everybody = [o for rows in others for a, o in rows if a == hidden]
        prior = (sum(everybody) + 1) / (len(everybody) + 2)
        closest = max((likeness for likeness, _ in near), default=0.0)
        top = sum((likeness / closest) ** 8 * rate for likeness, rate in near if likeness > 0)
        bottom = sum((likeness / closest) ** 8 for likeness, _ in near if likeness > 0)
        guesses.append((top + PRIOR_NEIGHBOURS * prior) / (bottom + PRIOR_NEIGHBOURS))
    return guesses


@pytest.mark.parametrize("block", [5, 256])
@pytest.mark.parametrize("n_source", [3, 40])
def test_guesses_are_those_of_loops(make_log, n_source, block, monkeypatch):
    monkeypatch.setattr(attribute, "BLOCK_CELLS", block)
    rng = np.random.default_rng(0)
    members = make_log(rng, n_learners=30, n_actions=7, mean_length=12)
    source = make_log(rng, n_learners=n_source, n_actions=7, mean_length=12)
    target, action, _ = choose_targets(members, rng)
    np.testing.assert_allclose(
        guess_outcomes(members, target, action, source),
        plain_guess(members, target, action, source),
        atol=1e-5,
    )


def test_the_hidden_outcome_plays_no_part(make_log):
    """Turning the outcome that is guessed around does not change the guess."""
    rng = np.random.default_rng(1)
    members, source = make_log(rng, n_learners=30), make_log(rng, n_learners=30)
    target, action, _ = choose_targets(members, rng)
    hidden = np.isin(members.learner * 100 + members.action, target * 100 + action)
    outcome = np.where(hidden, 1 - members.outcome, members.outcome)
    turned = Interactions(members.action, outcome, members.offsets, members.actions)
    before, after = (guess_outcomes(log, target, action, source) for log in (members, turned))
    np.testing.assert_array_equal(before, after)


def test_targets_are_first_outcomes_of_those_with_two_actions():
    log = Interactions.from_sequences(
        [[0, 0], [1, 2, 1], [3], [2, 0, 2]], [[1, 0], [1, 0, 0], [1], [0, 1, 1]]
    )
    first = {(1, 1): 1, (1, 2): 0, (3, 2): 0, (3, 0): 1}
    met = set()
    for seed in range(20):
        target, action, truth = choose_targets(log, np.random.default_rng(seed))
        assert target.tolist() == [1, 3]
        for i, j, outcome in zip(target.tolist(), action.tolist(), truth.tolist(), strict=True):
            assert first[i, j] == outcome
            met.add((i, j))
    assert met == set(first)


def law(make_log, rng):
    return make_log(rng, n_learners=150, n_actions=10, mean_length=12)


def test_a_verbatim_copy_tells_the_outcome(make_log):
    rng = np.random.default_rng(2)
    members, outsiders = law(make_log, rng), law(make_log, rng)
    copy = members.select(rng.permutation(members.n_learners))
    found = attribute_attack(members, outsiders, copy, rng)
    assert found.low > 0.05
    assert found.auc > 0.9
    assert found.n_targets > 140
    assert found.advantage == pytest.approx(found.auc - found.baseline)


def test_independent_learners_tell_nothing_about_members(make_log):
    """No advantage in 12 independent runs: more than three misses of 0 have probability 0.002."""
    missed, advantages = 0, []
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        members, outsiders, synthetic = (law(make_log, rng) for _ in range(3))
        found = attribute_attack(members, outsiders, synthetic, rng)
        missed += not found.low <= 0 <= found.high
        advantages.append(found.advantage)
    assert missed <= 3
    assert abs(np.mean(advantages)) < 4 * np.std(advantages, ddof=1) / np.sqrt(12)


def test_an_empty_release_tells_nothing(make_log):
    rng = np.random.default_rng(3)
    members, outsiders = make_log(rng), make_log(rng)
    found = attribute_attack(members, outsiders, members.select(np.empty(0, dtype=int)), rng)
    assert found.auc == found.baseline == 0.5
    assert found.low <= 0 <= found.high


def test_equal_outcomes_cannot_be_judged(make_log):
    rng = np.random.default_rng(4)
    log = make_log(rng)
    right = Interactions(log.action, np.ones_like(log.outcome), log.offsets, log.actions)
    found = attribute_attack(right, log, log, rng)
    assert (found.advantage, found.low, found.high) == (0.0, -0.5, 0.5)
