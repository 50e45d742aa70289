"""Runs: states and jumps by brute force, walks against closed forms."""

from collections import Counter
from itertools import groupby, pairwise

import numpy as np
import pytest
from scipy.special import logit

from understudy.logs.interactions import Interactions
from understudy.logs.models.markov import AliasTables
from understudy.logs.models.practice import NO_FEATURES, Features
from understudy.logs.models.runs import (
    BELOW_ONE,
    N_CELLS,
    N_FAILURES,
    N_LENGTHS,
    N_SUCCESSES,
    JumpCounts,
    JumpSources,
    RunModel,
    RunStates,
)

pytestmark = pytest.mark.oracle

LENGTH_CLASSES = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 9), (10, 10**9)]


@pytest.fixture(scope="module")
def log(make_log):
    return make_log(np.random.default_rng(1), n_learners=60, n_actions=4, mean_length=25)


def runs_of(log):
    """The runs of each learner: (action, outcomes)."""
    for begin, end in pairwise(log.offsets):
        rows = zip(log.action[begin:end].tolist(), log.outcome[begin:end].tolist(), strict=True)
        yield [(action, [o for _, o in run]) for action, run in groupby(rows, key=lambda row: row[0])]


def test_states_of_rows(log):
    cells, stays = [], []
    for runs in runs_of(log):
        for number, (_, outcomes) in enumerate(runs):
            for place in range(len(outcomes)):
                so_far = outcomes[: place + 1]
                streak = len(list(next(groupby(reversed(so_far)))[1]))
                ending = (
                    N_FAILURES + min(streak, N_SUCCESSES) - 1
                    if so_far[-1]
                    else N_FAILURES - min(streak, N_FAILURES)
                )
                (length,) = (k for k, (low, high) in enumerate(LENGTH_CLASSES) if low <= len(so_far) <= high)
                cells.append(ending * N_LENGTHS + length)
                inner = place + 1 < len(outcomes)
                stays.append(1 if inner else 0 if number + 1 < len(runs) else -1)
    states = RunStates.of(log)
    assert states.cell.tolist() == cells
    assert states.stays.tolist() == stays
    assert len(set(cells)) > N_CELLS / 2


@pytest.mark.parametrize("enough", [1, 8, 40, 10**6])
def test_jumps_back_off_by_counts(log, enough):
    one, two, popularity, starts = Counter(), Counter(), Counter(), Counter()
    for runs in runs_of(log):
        names = [action for action, _ in runs]
        starts[names[0]] += 1
        popularity.update(names[1:])
        one.update(pairwise(names))
        two.update(zip(names, names[1:], names[2:], strict=False))
    jumps = JumpCounts.of(log, enough)

    def targets(source):
        mine = jumps.source == source
        return dict(zip(jumps.target[mine].tolist(), jumps.count[mine].tolist(), strict=True))

    n = log.n_actions
    assert targets(n) == starts
    own = dict(zip(jumps.sources.pair.tolist(), jumps.sources.of_pair.tolist(), strict=True))
    for here in range(n):
        after = {t: c for (h, t), c in one.items() if h == here}
        expected = after if sum(after.values()) >= enough else popularity
        assert targets(jumps.sources.of_action[here]) == expected
        for before in range(n):
            after = {t: c for (b, h, t), c in two.items() if (b, h) == (before, here)}
            assert (before * n + here in own) == (sum(after.values()) >= enough)
            if before * n + here in own:
                assert targets(own[before * n + here]) == after


def cycle(n_actions, **settings):
    """Learners who go from each action to the next one, with chances that are the same everywhere."""
    source, target = np.arange(n_actions + 1), (np.arange(n_actions + 1) + 1) % (n_actions + 1) % n_actions
    target[-1] = 0
    usual = {
        "jumps": AliasTables.from_steps(source, target, np.ones(n_actions + 1), n_actions + 1),
        "stay": np.full(n_actions, logit(0.75)),
        "stay_by_cell": np.zeros(N_CELLS),
        "easiness": np.zeros(n_actions),
    }
    return RunModel(**usual | settings)


def test_runs_are_geometric_and_success_is_logistic():
    rng = np.random.default_rng(0)
    n, length = 400, 100
    action, outcome = cycle(3, easiness=np.array([-1.0, 0.0, 1.0])).walk(
        np.full(n, 0.3), np.full(n, length), rng
    )
    log = Interactions(action, outcome, np.arange(n + 1) * length, tuple("abc"))
    assert all((there - here) % 3 == 1 for runs in runs_of(log) for (here, _), (there, _) in pairwise(runs))
    # 40,000 rows: a share is off by 0.01 with a chance below 1e-4; for rows of one action by 0.02.
    states = RunStates.of(log)
    assert (states.stays[states.stays >= 0] == 1).mean() == pytest.approx(0.75, abs=0.01)
    for a, easiness in enumerate((-1.0, 0.0, 1.0)):
        assert outcome[action == a].mean() == pytest.approx(1 / (1 + np.exp(-0.3 - easiness)), abs=0.02)


def test_staying_is_by_action_and_cell():
    """Learners leave action 0 after two successes in a row, and action 1 after a failure."""
    stay_by_cell = np.full((2, N_CELLS), 50.0)
    stay_by_cell[0, (N_FAILURES + 1) * N_LENGTHS :] = -50.0
    stay_by_cell[1, : N_FAILURES * N_LENGTHS] = -50.0
    lengths = np.full(50, 60)
    action, outcome = cycle(2, stay_by_cell=stay_by_cell).walk(
        np.zeros(50), lengths, np.random.default_rng(1)
    )
    log = Interactions(action, outcome, np.arange(51) * 60, ("a", "b"))
    for runs in runs_of(log):
        for here, outcomes in runs[:-1]:
            if here == 0:
                assert outcomes[-2:] == [1, 1]
                assert "11" not in "".join(map(str, outcomes[:-1]))
            else:
                assert outcomes == [1] * (len(outcomes) - 1) + [0]


def test_a_jump_may_depend_on_two_actions():
    """From the middle learners go on in the direction in which they came; from either end back to the middle."""
    sources = JumpSources(np.arange(4), np.array([0 * 3 + 1, 2 * 3 + 1]), np.array([4, 5]))
    # Sources: the actions 0, 1, 2, the start, and those who came to 1 from 0 and from 2.
    source, target = np.array([0, 1, 2, 3, 4, 5]), np.array([1, 0, 1, 0, 2, 0])
    jumps = AliasTables.from_steps(source, target, np.ones(6), 6)
    model = cycle(3, jumps=jumps, sources=sources, stay=np.full(3, -50.0))
    action, _ = model.walk(np.zeros(1), np.array([9]), np.random.default_rng(0))
    assert action.tolist() == [0, 1, 2, 1, 0, 1, 2, 1, 0]


def test_untried_actions_are_preferred():
    source, target = np.repeat(np.arange(5), 4), np.tile(np.arange(4), 5)
    jumps = AliasTables.from_steps(source, target, np.ones(20), 5)
    model = cycle(4, jumps=jumps, stay=np.full(4, -50.0), untried=50.0)
    action, _ = model.walk(np.zeros(100), np.full(100, 4), np.random.default_rng(0))
    # A jump is refused twenty times at most, each time with a chance of 3 in 4 at most.
    assert (np.sort(action.reshape(100, 4), axis=1) == np.arange(4)).all(axis=1).mean() > 0.95


def test_success_is_by_the_learners_own_history():
    """Two failures at an action teach it: every learner fails twice and then succeeds, at each action anew."""
    features = Features(NO_FEATURES.classes, np.array([np.inf]))
    weights = np.tile([0.0, 100.0 / np.log(2.5)], (2, 1))
    model = cycle(2, features=features, weights=weights, easiness=np.full(2, -100.0), stay=np.full(2, 1.0))
    action, outcome = model.walk(np.zeros(20), np.full(20, 30), np.random.default_rng(0))
    log = Interactions(action, outcome, np.arange(21) * 30, ("a", "b"))
    seen = Counter()
    for learner, here, success in zip(log.learner, action, outcome, strict=True):
        seen[learner, here] += 1
        assert success == (seen[learner, here] > 2)


def test_what_was_practised_long_ago_is_forgotten():
    """Attempts half an hour apart, success with one in the last 45 minutes; a day passes between runs."""
    features = Features(NO_FEATURES.classes, np.array([2700.0]), failures=False)
    weights = np.tile([0.0, 100.0 / np.log(1.5)], (2, 1))
    gaps = np.log1p(np.array([[1800.0, 1800.0], [86400.0, 86400.0]]))
    model = cycle(
        2, features=features, weights=weights, easiness=np.full(2, -100.0), stay=np.full(2, 1.0), gaps=gaps
    )
    action, outcome = model.walk(np.zeros(20), np.full(20, 30), np.random.default_rng(0))
    log = Interactions(action, outcome, np.arange(21) * 30, ("a", "b"))
    for runs in runs_of(log):
        for _, outcomes in runs:
            assert outcomes == [0] + [1] * (len(outcomes) - 1)


def test_numbers_of_a_deck_are_below_one():
    """A number that rounds to 1 would be looked up past the end of its table."""
    assert np.float32(BELOW_ONE) < 1
    assert int(BELOW_ONE * 4_000_000) < 4_000_000


def test_a_walk_comes_closer_to_its_model_than_chance():
    """Shares of a jump with two targets, over many walks: what one by one would scatter is dealt evenly."""
    rng = np.random.default_rng(0)
    n_actions = 3
    source = np.array([0, 0, 1, 2, 3])
    target = np.array([1, 2, 0, 0, 0])
    model = RunModel(
        jumps=AliasTables.from_steps(source, target, np.array([0.3, 0.7, 1.0, 1.0, 1.0]), n_actions + 1),
        stay=np.full(n_actions, -20.0),
        stay_by_cell=np.zeros(N_CELLS),
        easiness=np.zeros(n_actions),
    )
    shares, successes = [], []
    for _ in range(30):
        action, outcome = model.walk(np.zeros(100), np.full(100, 21), rng)
        shares.append((action == 1).sum() / (action != 0).sum())
        successes.append(outcome.mean())
    by_chance = np.sqrt(0.3 * 0.7 / 1000), np.sqrt(0.25 / 2100)
    assert np.mean(shares) == pytest.approx(0.3, abs=0.01)
    assert np.mean(successes) == pytest.approx(0.5, abs=0.01)
    assert np.std(shares) < 0.7 * by_chance[0]
    assert np.std(successes) < 0.7 * by_chance[1]


def test_walks_have_the_shares_that_are_wanted_and_still_follow_the_jumps():
    """Three actions that lead to each other alike, of which one is to be rare: chance alone knows nothing of that."""
    n_actions, wanted = 3, np.array([0.5, 0.4, 0.1])
    source, target = np.nonzero(~np.eye(n_actions, dtype=bool))
    source, target = np.append(source, [3, 3, 3]), np.append(target, [0, 1, 2])
    model = RunModel(
        jumps=AliasTables.from_steps(source, target, np.ones(len(source)), n_actions + 1),
        stay=np.zeros(n_actions),
        stay_by_cell=np.zeros(N_CELLS),
        easiness=np.zeros(n_actions),
    )
    shares = []
    for given in (None, wanted):
        action, _ = model.walk(np.zeros(200), np.full(200, 20), np.random.default_rng(0), given)
        shares.append(np.bincount(action, minlength=3) / len(action))
    np.testing.assert_allclose(shares[0], 1 / 3, atol=0.03)
    np.testing.assert_allclose(shares[1], wanted, atol=0.015)
    # What cannot be had is not waited for: from a cycle no jump leads elsewhere.
    action, _ = cycle(3).walk(np.zeros(50), np.full(50, 20), np.random.default_rng(0), wanted)
    assert set(((action[1:] - action[:-1]) % 3)[np.arange(1, len(action)) % 20 > 0]) == {0, 1}


def test_actions_with_few_rows_have_their_share_of_successes():
    """Sixteen rows of each action: drawn one by one, successes would be off by 2 as a rule."""
    rng = np.random.default_rng(0)
    n_actions, n_rows = 50, 800
    action, outcome = cycle(n_actions, stay=np.full(n_actions, -50.0)).walk(
        np.zeros(1), np.array([n_rows]), rng
    )
    assert (np.bincount(action, minlength=n_actions) == 16).all()
    successes = np.bincount(action, outcome, n_actions)
    assert np.sqrt(np.mean((successes - 8) ** 2)) < 1.0


def test_walks_with_few_rows_for_each_action_are_held_to_their_shares():
    """Ten rows for each of 100 actions: with a surplus of ten rows most would go unnoticed."""
    n_actions = 100
    source, target = (
        np.repeat(np.arange(n_actions + 1), n_actions),
        np.tile(np.arange(n_actions), n_actions + 1),
    )
    jumps = AliasTables.from_steps(source, target, np.ones(len(source)), n_actions + 1)
    model = cycle(n_actions, jumps=jumps, stay=np.full(n_actions, -1.0))
    gaps = []
    for wanted in (None, np.full(n_actions, 1.0 / n_actions)):
        action, _ = model.walk(np.zeros(20), np.full(20, 50), np.random.default_rng(0), wanted)
        gaps.append(np.abs(np.bincount(action, minlength=n_actions) / 1000 - 0.01).sum() / 2)
    assert gaps[1] < 0.6 * gaps[0]
