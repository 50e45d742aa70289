"""Last year's summary halves the noise, where it is of the same declaration."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.cohorts.support.cycles import YES, feedback_of, finding_named, summary_of
from understudy.cohorts.feedback import (
    suggest,
)
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.simulate import SCHEMA, School
from understudy.cohorts.summary import caveats, previous_year
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.previous_year import check_previous, drift_variance, recentred, with_previous
from understudy.cohorts.summary.statistics import MEASURES
from understudy.cohorts.summary.suggestions import (
    with_effects,
)
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.privacy.noise import os_noise
from understudy.core.privacy.noise import seeded_noise as seeded
from understudy.errors import DataError


def test_the_statement_says_what_went_in_beside_the_measurement():
    cohort = School().simulate(1, np.random.default_rng(1))
    plan = propose(cohort.schema, 120, 3.0, 1e-3)
    now = noisy_summary(cohort, plan, os_noise())
    before = noisy_summary(
        School().simulate(0, np.random.default_rng(2)), plan, os_noise(), {"card": "0" * 16}
    )
    effects = suggest(feedback_of(finding_named("activity_and_outcome: overnight", YES, YES)), SCHEMA)
    assert now.guarantee.caveats == ()
    # Without a ledger that knows it, that it was charged is a claim.
    claimed = with_previous(now, before)
    assert claimed.guarantee.caveats == (caveats.PREVIOUS_CLAIMED,)
    assert "as its file claims" in str(claimed.guarantee)
    assert "charged in their own year" not in str(claimed.guarantee)
    both = with_previous(now, before, charged=True)
    assert both.guarantee.caveats == (caveats.PREVIOUS,)
    assert "charged in their own year" in both.guarantee.to_json()["statement"]
    assert both.provenance["previous"] == ["0" * 16]
    assert replace(both.guarantee, caveats=()) == now.guarantee
    used = with_effects(both, effects)
    assert used.guarantee.caveats == (caveats.PREVIOUS, caveats.FEEDBACK)
    # Through a file, and into the year after.
    read = PrivateSummary.from_json(json.loads(json.dumps(used.to_json())))
    assert read.guarantee.caveats == (caveats.PREVIOUS, caveats.FEEDBACK, caveats.FROM_FILE)
    third = with_previous(summary_of(2, 1), read)
    assert third.statistics["habits"].context["years"] == 3
    formal = with_previous(noisy_summary(cohort, plan, os_noise()), read, charged=True)
    stated = (caveats.PREVIOUS, caveats.EARLIER_FROM_FILE, caveats.FEEDBACK)
    assert formal.guarantee.caveats == stated
    back = PrivateSummary.from_json(json.loads(json.dumps(formal.to_json())))
    assert back.guarantee.caveats == (*stated, caveats.FROM_FILE)
    # One claim in the chain makes a claim of all of it.
    unknown = PrivateSummary.from_json(json.loads(json.dumps(claimed.to_json())))
    later = with_previous(noisy_summary(cohort, plan, os_noise()), unknown, charged=True)
    assert later.guarantee.caveats == (caveats.PREVIOUS_CLAIMED, caveats.EARLIER_FROM_FILE)


def test_a_far_more_precise_earlier_year_is_read_again(monkeypatch):
    """What is written states no less noise than its years allow, however little an earlier one had."""
    monkeypatch.setattr(previous_year, "drift_variance", lambda *_: 0.0)
    cohort = School().simulate(1, np.random.default_rng(1))
    now = noisy_summary(cohort, propose(cohort.schema, 120, 1.0, 1e-3), os_noise())
    effects = suggest(feedback_of(finding_named("activity_and_outcome: overnight", YES, YES)), SCHEMA)
    sharp = noisy_summary(
        School().simulate(0, np.random.default_rng(2)), propose(SCHEMA, 120, 90.0, 1e-3), os_noise()
    )
    both = with_effects(with_previous(now, sharp), effects)
    assert (both.statistics["labels"].noise_sd < now.statistics["labels"].noise_sd / 3).all()
    read = PrivateSummary.from_json(json.loads(json.dumps(both.to_json())))
    third = with_previous(noisy_summary(cohort, propose(cohort.schema, 120, 1.0, 1e-3), os_noise()), read)
    assert PrivateSummary.from_json(json.loads(json.dumps(third.to_json()))).n_learners == 120


def test_last_years_summary_makes_the_noise_smaller_and_keeps_the_guarantee():
    before, now = summary_of(0, 1), summary_of(1, 1)
    both = with_previous(now, before)
    assert both.guarantee is now.guarantee
    for name, one in both.statistics.items():
        assert np.all(one.noise_sd <= np.asarray(now.statistics[name].noise_sd) * (1 + 1e-9))
        assert one.context["years"] == 2
    third = with_previous(summary_of(2, 1), both)
    assert third.statistics["habits"].context["years"] == 3


def test_combined_numbers_are_nearer_to_the_truth():
    """Over 12 schools the squared error of the combined numbers is below that of the year's own."""
    own, combined = [], []
    for seed in range(12):
        cohort = School().simulate(1, np.random.default_rng([seed, 1]))
        now = summary_of(1, seed)
        both = with_previous(now, summary_of(0, seed))
        for name in ("levels", "rhythm", "persistence"):
            exact = (
                noisy_summary(cohort, propose(cohort.schema, 120, 3.0, 1e-3), _Silence())
                .statistics[name]
                .values
            )
            own.append(((now.statistics[name].values - exact) ** 2).mean())
            combined.append(((both.statistics[name].values - exact) ** 2).mean())
    assert np.mean(combined) < 0.85 * np.mean(own)


class _Silence:
    secret = False

    def discrete_gaussian(self, values, sigma):
        return np.asarray(values, dtype=np.int64)


def test_products_around_other_centres_are_the_same_after_recentring():
    """Without noise and with the same learners, last year's matrix is this year's but for its centres."""
    cohort = School().simulate(0, np.random.default_rng(3))
    plan = propose(cohort.schema, 120, 3.0, 1e-3)
    first, second = (
        noisy_summary(cohort, plan, seeded(np.random.default_rng(seed))).statistics["habits"]
        for seed in (1, 2)
    )
    assert first.context["centre_active"] != second.context["centre_active"]

    def exact(one):
        measure = MEASURES["habits"](cohort.schema, {})
        context = dict(one.context)

        def vectors(of):
            active = (of.values > 0).astype(float)
            share = np.log1p(of.values) / np.log1p(of.schema.highs)[None, :, None]
            z_a = (active.mean(axis=2) - context["centre_active"]) / np.array(context["scale_active"])
            weeks = active.sum(axis=2)
            z_l = (
                (share.sum(axis=2) - weeks * context["centre_l"]) / (weeks + 2) / np.array(context["scale_l"])
            )
            ones = np.full((of.n_learners, 1), context["constant"])
            label = 1.8 * (of.label[:, None] - 1.0)
            return np.concatenate([ones, z_a, z_l, label], axis=1)

        u = vectors(cohort)
        assert u.shape[1] == measure.shape[0]
        return u.T @ u / cohort.n_learners

    moved, sd = recentred(exact(first), np.full((10, 10), 0.1), first, second, 17)
    n_features = cohort.schema.n_features
    exact_part = [0, *range(1, n_features + 1), 2 * n_features + 1]
    goal = exact(second)
    assert np.allclose(moved[np.ix_(exact_part, exact_part)], goal[np.ix_(exact_part, exact_part)])
    # For sizes of values it is an approximation, good where learners are active in some weeks; nights are rare.
    usual = [place for place in range(10) if place != 2 * n_features]
    assert np.abs(moved - goal)[np.ix_(usual, usual)].max() < 0.2
    unmoved = np.abs(exact(first) - goal)[np.ix_(usual, usual)].max()
    assert unmoved > 0.5
    assert (sd > 0).all()


def test_drift_is_seen_when_it_is_there():
    rng = np.random.default_rng(5)
    noise = np.full(200, 0.01)
    still = rng.normal(0, 0.1, 200)
    moving = still + rng.normal(0, 0.3, 200)
    assert drift_variance(still, noise) < 0.004
    assert drift_variance(moving, noise) == pytest.approx(0.09, rel=0.3)


def test_summaries_of_something_else_or_the_same_one_are_refused():
    now = summary_of(1, 1)
    with pytest.raises(DataError, match="same one"):
        with_previous(now, now)
    other = School(schema=Schema(n_weeks=9, cuts=(48.0, 62.0))).simulate(0, np.random.default_rng(1))
    before = noisy_summary(other, propose(other.schema, 120, 3.0, 1e-3), seeded(np.random.default_rng(1)))
    with pytest.raises(DataError, match=r"other weeks \(9; this year 17\)"):
        with_previous(now, before)


def test_another_bound_makes_every_number_something_else():
    now = summary_of(1, 1)
    high = tuple(Feature(f.name, 300.0, hours=f.hours) for f in SCHEMA.features)
    other = School(schema=Schema(features=high, cuts=(48.0, 62.0))).simulate(0, np.random.default_rng(1))
    before = noisy_summary(other, propose(other.schema, 120, 3.0, 1e-3), seeded(np.random.default_rng(1)))
    with pytest.raises(DataError, match="another bound of morning"):
        with_previous(now, before)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_weeks": 9}, "other weeks"),
        ({"cuts": (40.0, 62.0)}, r"other cuts \(48, 62; this year 40, 62\)"),
        ({"labels": ("a", "b", "c")}, "other labels"),
        ({"label": "mark"}, "another label"),
        ({"score_bounds": (0.0, 90.0)}, "other bounds of the scores"),
        ({"without_events": "dropped"}, "other learners without events"),
        (
            {"features": tuple(replace(one, high=500.0) for one in SCHEMA.features)},
            "another bound of morning",
        ),
        (
            {"features": tuple(replace(one, hours=(0, 5)) for one in SCHEMA.features)},
            "other hours of morning",
        ),
        (
            {"features": SCHEMA.features[:3]},
            r"other windows \(morning, afternoon, evening, overnight; this year",
        ),
    ],
)
def test_a_summary_of_another_declaration_is_no_prior(change, said):
    with pytest.raises(DataError, match=said):
        check_previous(replace(SCHEMA, **change), summary_of(1, 1))
    check_previous(replace(SCHEMA, title="Another school", context="Other words."), summary_of(1, 1))
