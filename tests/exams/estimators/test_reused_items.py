"""Priors of reused items: against the joint normal law, with names that mean nothing, and the gain."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from understudy.core.privacy.noise import seeded_noise
from understudy.exams.difficulties import DifficultiesOptions, fit_difficulties
from understudy.exams.estimators import reused_items
from understudy.exams.estimators.reused_items import with_reused_items
from understudy.exams.plan import plan
from understudy.exams.responses import Points
from understudy.exams.simulate import Exam


@pytest.mark.oracle
def test_it_is_the_posterior_of_the_joint_normal_law():
    """All unknowns as one normal vector, conditioned on what was seen, for each drift; weighted by its density."""
    rng = np.random.default_rng(1)
    n, mean, spread = 4, 0.3, 1.4
    noise = np.array([0.5, 0.9, 0.3, 0.7])
    seen = rng.normal(0, 1, n)
    earlier, error = rng.normal(0, 1, n), np.array([0.2, 0.4, 0.1, 0.3])
    precision = 1 / noise**2 + 1 / spread**2
    difficulty, variance = (seen / noise**2 + mean / spread**2) / precision, 1 / precision
    weights, means, variances = [0.5], [difficulty], [variance]
    weights[0] *= multivariate_normal(np.full(n, mean), np.diag(spread**2 + noise**2)).pdf(seen)
    for drift in reused_items._DRIFTS:
        prior = np.diag(error**2 + drift**2) + reused_items._SHIFT**2
        total = prior + np.diag(noise**2)
        weights.append(0.5 / len(reused_items._DRIFTS) * multivariate_normal(earlier, total).pdf(seen))
        gain = prior @ np.linalg.inv(total)
        means.append(earlier + gain @ (seen - earlier))
        variances.append(np.diag(prior - gain @ prior))
    share = np.array(weights) / np.sum(weights)
    expected = share @ np.array(means)
    found = with_reused_items(difficulty, variance, mean, spread, earlier, error)
    np.testing.assert_allclose(found.difficulty, expected, atol=1e-9)
    spread_of_means = share @ (np.array(variances) + np.array(means) ** 2) - expected**2
    np.testing.assert_allclose(found.variance, spread_of_means, atol=1e-9)
    assert found.same == pytest.approx(1 - share[0])


def exam(rng, n_items=20, noise=0.5, spread=1.2):
    truth = rng.normal(0, spread, n_items)
    seen = truth + rng.normal(0, noise, n_items)
    precision = 1 / noise**2 + 1 / spread**2
    return truth, seen / noise**2 / precision, np.full(n_items, 1 / precision)


def test_reused_items_gain_and_intervals_hold():
    rng = np.random.default_rng(2)
    before, after, held = [], [], []
    for _ in range(60):
        truth, difficulty, variance = exam(rng)
        shift = rng.normal(0, 0.5)
        earlier = truth - shift + rng.normal(0, np.hypot(0.3, 0.2), len(truth))
        found = with_reused_items(difficulty, variance, 0.0, 1.2, earlier, np.full(20, 0.3))
        before.append(((difficulty - truth) ** 2).mean())
        after.append(((found.difficulty - truth) ** 2).mean())
        held.append(np.abs(found.difficulty - truth) < 1.96 * np.sqrt(found.variance))
        assert found.same > 0.9
    assert np.mean(after) < 0.65 * np.mean(before)
    assert 0.92 < np.mean(held) < 0.99


def test_names_that_mean_nothing_do_no_harm():
    rng = np.random.default_rng(3)
    before, after, same = [], [], []
    for _ in range(60):
        truth, difficulty, variance = exam(rng)
        found = with_reused_items(difficulty, variance, 0.0, 1.2, rng.normal(0, 1.2, 20), np.full(20, 0.3))
        before.append(((difficulty - truth) ** 2).mean())
        after.append(((found.difficulty - truth) ** 2).mean())
        same.append(found.same)
    assert np.mean(after) < 1.1 * np.mean(before)
    assert np.mean(same) < 0.1


def test_items_that_the_earlier_exam_did_not_have_stay():
    difficulty, variance = np.array([0.5, -0.5]), np.array([0.2, 0.2])
    earlier = np.array([np.nan, -0.4])
    found = with_reused_items(difficulty, variance, 0.0, 1.0, earlier, np.array([np.nan, 0.1]))
    assert (found.difficulty[0], found.variance[0]) == (0.5, 0.2)
    assert found.n_items == 1
    nothing = with_reused_items(difficulty, variance, 0.0, 1.0, np.full(2, np.nan), np.full(2, np.nan))
    assert nothing.same == 0


def test_a_release_uses_the_earlier_items_by_their_names():
    rng = np.random.default_rng(4)
    sitting = Exam(200, 12).simulate(rng)

    def release(prior, points=None):
        options = DifficultiesOptions(epsilon=1.0, prior=prior)
        planned = plan(options, 12, 200, "wide", points)
        responses = replace(sitting.responses, points=points)
        found = fit_difficulties(responses, planned, seeded_noise(np.random.default_rng(5)), rng)
        return replace(found, guarantee=planned.guarantee)

    plain = release(None)
    # What an exam with next to no noise would have told, by another zero.
    items = tuple(
        replace(item, difficulty=float(place) - 0.7, standard_error=0.1)
        for item, place in zip(plain.items, sitting.difficulty, strict=True)
    )
    earlier = replace(plain, items=items)
    renamed = replace(earlier, items=tuple(replace(item, name=f"old {item.name}") for item in items))
    error = {}
    for name, prior in (("none", renamed), ("reused", earlier)):
        found = release(prior)
        error[name] = np.abs([i.difficulty - t for i, t in zip(found.items, sitting.difficulty, strict=True)])
    assert found.provenance["reused_items"]["count"] == 12
    assert found.provenance["reused_items"]["same"] > 0.9
    assert error["reused"].mean() < 0.6 * error["none"].mean()
    # An item with other points is another item.
    with_points = release(earlier, points=(Points(2),) * 12)
    assert with_points.provenance["reused_items"]["count"] == 0
