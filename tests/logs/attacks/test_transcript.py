"""`transcript`: the sums it rests on are those that were released; what it finds lies between proof and black box."""

import numpy as np
import pytest

from understudy.core.attacks.estimate import auc_with_error
from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.risk import worst_case
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.transcript import white_box
from understudy.logs.generators.baselines import Markov
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.large import parts
from understudy.logs.simulated.classroom import Classroom

pytestmark = pytest.mark.oracle


class NoNoise:
    """The sums as they are."""

    secret = False

    def discrete_gaussian(self, values, sigma):
        return values.copy()


@pytest.fixture(scope="module")
def log():
    return Classroom(n_learners=240, n_actions=15).simulate(np.random.default_rng(0))


@pytest.mark.parametrize("declared", [True, False])
def test_the_learners_add_up_to_what_was_released(log, declared):
    """Without noise exactly, whatever the population; names that are not told are pooled in both."""
    log = log.declare() if declared else log
    member = np.random.default_rng(1).random(240) < 0.5
    fitted = MarkovDP(epsilon=8.0).fit(log.select(member), np.random.default_rng(0), NoNoise())
    sums = fitted.learner_sums(log)
    assert sums.added.shape == (240, len(sums.released))
    np.testing.assert_allclose(sums.added.T @ member, sums.released, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", [MarkovDP, RunsDP])
def test_the_learners_of_a_log_in_parts_add_the_same(log, method, monkeypatch):
    log = log.declare()
    rng = np.random.default_rng(3)
    fitted = method(epsilon=8.0).fit(log, rng, seeded_noise(rng))
    whole = fitted.learner_sums(log)
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    assert parts.in_parts(log)
    divided = fitted.learner_sums(log)
    np.testing.assert_array_equal(divided.added.toarray(), whole.added.toarray())
    np.testing.assert_array_equal(divided.released, whole.released)


def test_what_is_left_is_noise_of_variance_one(log):
    member = np.random.default_rng(1).random(240) < 0.5
    rng = np.random.default_rng(2)
    fitted = MarkovDP(epsilon=8.0).fit(log.declare().select(member), rng, seeded_noise(rng))
    sums = fitted.learner_sums(log.declare())
    left = sums.released - sums.added.T @ member
    # Some 400 draws: the variance has a standard error of 0.07.
    assert left.std() == pytest.approx(1.0, abs=0.15)
    assert abs(left.mean()) < 0.25


def test_it_finds_more_than_guessing_and_no_more_than_the_proof_allows(log):
    """Twelve halves; each area has a standard error of 0.04."""
    found, control, reach = [], [], []
    log = log.declare()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        member = rng.permutation(240) < 120
        fitted = MarkovDP(epsilon=8.0).fit(log.select(member), rng, seeded_noise(rng))
        seen = white_box(Knowledge(log, 120), fitted)
        scores = seen.scores
        reach.append(seen.reach)
        found.append(auc_with_error(scores, member)[0])
        control.append(auc_with_error(scores, rng.permutation(member))[0])
    bound = worst_case(MarkovDP(epsilon=8.0).guarantee(120))["auc"]
    assert 0.55 < np.mean(found) < bound
    # No learner can be picked out further than is proved; knowing all others helps.
    assert np.max(reach) <= bound
    assert np.mean(found) < np.mean(reach)
    assert np.mean(control) == pytest.approx(0.5, abs=4 * 0.04 / np.sqrt(12))


def test_a_generator_without_noisy_sums_has_no_transcript(log):
    assert white_box(Knowledge(log, 120), Markov().fit(log.select(np.arange(120)))) is None


def test_reach_is_that_of_two_normal_laws(log):
    """A learner who is in or not, all others known: the likelihood ratio's AUC, by simulation."""
    log = log.declare()
    rng = np.random.default_rng(3)
    fitted = MarkovDP(epsilon=8.0).fit(log, rng, seeded_noise(rng))
    added = fitted.learner_sums(log).added[[7]].toarray()[0]
    noise = rng.normal(size=(2, 4000, len(added)))
    ratio_in, ratio_out = ((noise[0] + added) @ added, noise[1] @ added)
    member = np.arange(8000) < 4000
    area = auc_with_error(np.concatenate([ratio_in, ratio_out]), member)[0]
    assert white_box(Knowledge(log, 120), fitted).reach[7] == pytest.approx(area, abs=0.025)
