"""`joint-linear` and `transcript` on cohorts: linear as they claim, the exact posterior on tiny data, a ceiling."""

import itertools

import numpy as np
import pytest

from understudy.cohorts.attacks.joint import MeasuredStatistics, summary_white_box
from understudy.cohorts.methods import exact_summary, seeded_summary
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.learner_cells import added_by_learners, released_cells
from understudy.core.attacks.estimate import auc_with_error
from understudy.core.privacy.risk import worst_case

pytestmark = pytest.mark.oracle


def school_of(n, seed):
    return School(n_learners=n).simulate(0, np.random.default_rng(seed))


def half(n, rng):
    return rng.permutation(n) < n // 2


def test_the_statistics_of_a_copy_of_the_members_are_linear_in_who_they_are():
    population = school_of(30, 1)
    statistics = MeasuredStatistics(population, 15)
    member = half(30, np.random.default_rng(2))
    moved = (member - 0.5) @ statistics.contributions
    np.testing.assert_allclose(statistics.of(population.select(member)) - statistics.real, moved, atol=1e-9)
    assert len(statistics.kind) == statistics.contributions.shape[1]


def test_the_learners_add_up_to_what_was_released():
    """Without noise exactly; the scale of the noise that was not drawn cancels out."""
    population = school_of(24, 3)
    member = half(24, np.random.default_rng(4))
    summary = exact_summary(population.select(member), 3.0, 1e-3)
    sums = member @ added_by_learners(summary, population)
    np.testing.assert_allclose(sums, released_cells(summary), rtol=1e-9, atol=1e-6)


def test_what_is_left_is_noise_of_variance_one():
    population = school_of(24, 3)
    rng = np.random.default_rng(5)
    left = []
    for _ in range(10):
        member = half(24, rng)
        summary = seeded_summary(population.select(member), 3.0, 1e-3, rng)
        left.append(released_cells(summary) - member @ added_by_learners(summary, population))
    # Some 1,400 draws: standard errors 0.02 and 0.03.
    assert np.std(left) == pytest.approx(1.0, abs=0.08)
    assert abs(np.mean(left)) < 0.12


def posterior_by_enumeration(added, released, n_members):
    """The share of each learner in the likelihood of every set of so many members."""
    sets = list(itertools.combinations(range(len(added)), n_members))
    logs = np.array([-0.5 * np.sum((released - added[list(one)].sum(axis=0)) ** 2) for one in sets])
    weight = np.exp(logs - logs.max())
    chance = np.zeros(len(added))
    for one, share in zip(sets, weight / weight.sum(), strict=True):
        chance[list(one)] += share
    return chance


def test_transcript_is_the_posterior_of_all_sets_of_members():
    """Ten learners, 252 sets of five: a normal prior gives nearly the same as the true one of 0 and 1."""
    population = school_of(10, 6)
    rng = np.random.default_rng(7)
    for _ in range(5):
        summary = seeded_summary(population.select(half(10, rng)), 3.0, 1e-3, rng)
        exact = posterior_by_enumeration(
            added_by_learners(summary, population), released_cells(summary), summary.n_learners
        )
        assert summary_white_box(population, summary).scores + 0.5 == pytest.approx(exact, abs=0.03)


def test_it_finds_more_than_guessing_and_no_more_than_the_proof_allows():
    """Forty halves of 40 learners: the mean area has a standard error of 0.015."""
    population = school_of(40, 8)
    rng = np.random.default_rng(9)
    found, control, reach = [], [], []
    for _ in range(40):
        member = half(40, rng)
        seen = summary_white_box(population, seeded_summary(population.select(member), 5.0, 1e-3, rng))
        found.append(auc_with_error(seen.scores, member)[0])
        control.append(auc_with_error(seen.scores, rng.permutation(member))[0])
        reach.append(seen.reach)
    bound = worst_case(propose(population.schema, 20, 5.0, 1e-3).guarantee)["auc"]
    assert 0.5 + 4 * 0.015 < np.mean(found) < bound
    assert np.max(reach) <= bound
    assert np.mean(control) == pytest.approx(0.5, abs=4 * 0.015)


def test_reach_grows_with_what_sets_a_learner_apart():
    """A learner like all others cannot be told from an average one; the summary of twins exposes nobody."""
    twins = school_of(1, 1).select(np.zeros(12, dtype=int))
    summary = seeded_summary(twins, 5.0, 1e-3, np.random.default_rng(1))
    assert summary_white_box(twins, summary).reach == pytest.approx(0.5, abs=1e-6)
