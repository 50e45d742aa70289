"""`runs`: mastery rules appear by themselves, learning curves are kept, able learners are longer in it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from understudy.errors import UsageError
from understudy.logs.generators.conformance import check_generator
from understudy.logs.generators.registry import parse_generator
from understudy.logs.generators.runs import Runs
from understudy.logs.interactions import Interactions
from understudy.logs.models.runs import RunStates
from understudy.logs.utility import Real, learning_curve, leaving_rates, measure

N_ACTIONS = 8


def mastery_log(rng, n_learners=600):
    """Learners go on after three successes in a row, or after eight attempts, and learn from each.

    Able learners do more.
    """
    actions, outcomes = [], []
    for _ in range(n_learners):
        ability = rng.normal()
        left = int(rng.integers(4, 40) * (2 if ability > 0 else 1))
        sequence, results = [], []
        action = int(rng.integers(N_ACTIONS))
        while len(sequence) < left:
            streak = 0
            for attempt in range(8):
                success = int(rng.random() < expit(ability + 0.4 * attempt - 0.8 + 0.2 * action))
                sequence.append(action)
                results.append(success)
                streak = streak + 1 if success else 0
                if streak == 3:
                    break
            action = (action + int(rng.integers(1, 4))) % N_ACTIONS
        actions.append(sequence[:left])
        outcomes.append(results[:left])
    return Interactions.from_sequences(actions, outcomes, actions=[f"skill {k}" for k in range(N_ACTIONS)])


@pytest.fixture(scope="module")
def log():
    drawn = mastery_log(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    gap = np.where(rng.random(drawn.n_rows) < 0.8, 60, 86_400).cumsum()
    return replace(drawn, time=np.datetime64("2020-01-01", "us") + gap * np.timedelta64(1_000_000, "us"))


@pytest.fixture(scope="module", params=["attempts", "pfa", "das3h"])
def sample(log, request):
    generator = parse_generator(f"runs:outcomes={request.param}")
    return generator.fit(log, np.random.default_rng(1)).sample(1200, np.random.default_rng(2))


def share_leaving_after_three(log):
    """Of runs that begin with three successes, and are followed by anything, how many end there; and of two."""
    states = RunStates.of(log)
    begins = np.r_[True, (log.action[1:] != log.action[:-1]) | (log.learner[1:] != log.learner[:-1])]
    place = np.arange(log.n_rows) - np.maximum.accumulate(np.where(begins, np.arange(log.n_rows), 0))
    right = np.concatenate([[0], np.cumsum(log.outcome)])
    shares = []
    for n in (3, 2):
        whole = (place == n - 1) & (states.stays >= 0)
        rows = np.flatnonzero(whole)
        rows = rows[right[rows + 1] - right[rows + 1 - n] == n]
        shares.append(float((states.stays[rows] == 0).mean()))
    return shares


def test_a_mastery_rule_appears_by_itself(log, sample):
    assert share_leaving_after_three(log) == [1.0, 0.0]
    after_three, after_two = share_leaving_after_three(sample)
    assert after_three > 0.97
    assert after_two < 0.03


def test_learners_grow_and_leave_as_the_real_ones_do(log, sample):
    """With 600 learners a rate is off by 0.02 or less as a rule; a chain has a gap of 0.1 in all of these."""
    found = measure(Real(log, log), sample)
    assert learning_curve(log)[3] - learning_curve(log)[0] > 0.15
    assert leaving_rates(log)[1] - leaving_rates(log)[0] > 0.15
    for name in ("success_gap", "curve_gap", "leaving_success_gap", "leaving_failure_gap", "repeats_ks"):
        assert found[name] < 0.06, name
    chain = (
        parse_generator("markov").fit(log, np.random.default_rng(1)).sample(1200, np.random.default_rng(2))
    )
    plain = measure(Real(log, log), chain)
    for name in ("curve_gap", "leaving_success_gap", "leaving_failure_gap"):
        assert plain[name] > 2 * found[name], name


def test_longer_sequences_succeed_more_as_in_the_log(log, sample):
    def advantage(some):
        long = some.lengths[some.learner] >= 32
        return some.outcome[long].mean() - some.outcome[~long].mean()

    assert advantage(log) > 0.1
    assert advantage(sample) == pytest.approx(advantage(log), abs=0.05)


def test_rasch_outcomes_do_not_grow(log):
    """The control: abilities and difficulties alone, so that who stays longest succeeds least."""
    fitted = parse_generator("runs:outcomes=rasch").fit(log, np.random.default_rng(1))
    assert fitted.model_.weights.shape == (N_ACTIONS, 0)
    assert measure(Real(log, log), fitted.sample(1200, np.random.default_rng(2)))["curve_gap"] > 0.1


def test_das3h_does_what_every_generator_has_to_do():
    check_generator(Runs("das3h"))


def test_no_times_no_forgetting(log):
    with pytest.raises(UsageError, match="has no times") as caught:
        parse_generator("runs:outcomes=das3h").fit(replace(log, time=None))
    assert (caught.value.code, caught.value.settings) == ("no-times", ("time",))


def test_times_stay_inside(sample):
    assert sample.time is None


def test_outcomes_that_are_not_known_are_refused():
    with pytest.raises(UsageError, match="outcomes=magic"):
        parse_generator("runs:outcomes=magic")
