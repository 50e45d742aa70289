"""The risk of digraph statistics: learners add up to what is released, the proof holds, luck is luck."""

from itertools import combinations

import numpy as np
import pytest

from understudy.core.attacks.transcript import LearnerSums, white_box
from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.risk import worst_case
from understudy.keystrokes.digraph_statistics import Declaration, Release, release_statistics
from understudy.keystrokes.simulate import TypingCourse
from understudy.keystrokes.statistics_risk import learner_sums, statistics_risk

pytestmark = pytest.mark.oracle

DECLARED = Declaration(("i → n", "r → e", "e → r", "Space → i"), ("none", "some"), least=2)
GROUP = np.array([0, 1, -1] * 8)


class NoNoise:
    """The sums as they are."""

    secret = False

    def discrete_gaussian(self, values, sigma):
        return values.copy()


@pytest.fixture(scope="module")
def typing():
    course = TypingCourse(n_learners=24, n_weeks=1, characters_per_week=300.0)
    return course.simulate(np.random.default_rng(1))[0]


def released(typing, member, release, noise):
    chosen = np.flatnonzero(member)
    found = release_statistics(typing.learners(chosen), GROUP[chosen], release, noise)
    return np.stack([found.count, found.total], axis=1).ravel() / release.noise_sd


def test_the_learners_add_up_to_what_was_released(typing):
    release = Release(DECLARED, 12, 4.0, 1e-3)
    added = learner_sums(typing, GROUP, release)
    assert added.shape == (24, DECLARED.n_cells)
    assert (added[GROUP == 0][:, : DECLARED.n_cells // 2] != 0).any()
    assert not added[GROUP == -1].any()
    member = np.random.default_rng(2).permutation(24) < 12
    np.testing.assert_allclose(member @ added, released(typing, member, release, NoNoise()), atol=1e-9)


def test_everybody_together_is_the_posterior_of_all_sets_of_members(typing):
    """Ten learners, 252 sets of five; a normal prior gives nearly the same as the true one of 0 and 1."""
    release = Release(DECLARED, 5, 8.0, 1e-3)
    added = learner_sums(typing, GROUP, release)[:10]
    rng = np.random.default_rng(3)
    member = np.arange(24) < 5
    seen = released(typing, member, release, seeded_noise(rng))
    sets = [list(one) for one in combinations(range(10), 5)]
    logs = np.array([-0.5 * np.sum((seen - added[one].sum(axis=0)) ** 2) for one in sets])
    weight = np.exp(logs - logs.max())
    exact = [
        sum(w for w, one in zip(weight, sets, strict=True) if i in one) / weight.sum() for i in range(10)
    ]
    middle = added.mean(axis=0)
    found = white_box(LearnerSums(added - middle, seen - 5 * middle), 0.5)
    assert found.scores + 0.5 == pytest.approx(exact, abs=0.03)


def test_what_is_found_lies_between_luck_and_the_proof(typing):
    """At epsilon 60 the noise hides little; at epsilon 0.1 it hides everything (20 halves, standard error 0.027)."""
    rng = np.random.default_rng(4)
    loud = statistics_risk(typing, GROUP, Release(DECLARED, 24, 60.0, 1e-3), rng, n_halves=6)
    quiet = statistics_risk(typing, GROUP, Release(DECLARED, 24, 0.1, 1e-3), rng, n_halves=20)
    assert 0.6 < loud.optimum.auc <= worst_case(loud.guarantee)["auc"]
    assert loud.exposed_share > 0.0 == quiet.exposed_share
    assert quiet.optimum.auc == pytest.approx(0.5, abs=4 * 0.027)
    assert loud.chance.low < 0.5 < loud.chance.high
    proved, best, strongest = loud.levels()
    assert best.auc <= strongest.auc <= worst_case(loud.guarantee)["auc"]
    assert proved.auc is None  # what epsilon 60 proves limits nothing
    assert all(level.sentence in " ".join(loud.lines()) for level in (proved, best, strongest))


def test_a_handful_of_learners_says_nothing(typing):
    few = np.arange(6)
    release = Release(DECLARED, 6, 4.0, 1e-3)
    assert statistics_risk(typing.learners(few), GROUP[few], release, np.random.default_rng(5)) is None
