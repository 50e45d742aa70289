"""Suggestions change the next summary: the split of its budget, and its effects on the label."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.cohorts.support.cycles import NO, YES, feedback_of, finding_named, summary_of
from understudy.cohorts.feedback import (
    suggest,
)
from understudy.cohorts.panel.brief import write_brief
from understudy.cohorts.simulate import SCHEMA
from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.statistics import MEASURES
from understudy.cohorts.summary.suggestions import (
    Suggestions,
    correlation_given_significance,
    read_suggestions,
    with_budget,
    with_effects,
)
from understudy.errors import DataError, UsageError


def test_the_budget_is_split_anew_and_costs_the_same():
    plan = propose(SCHEMA, 120, 3.0, 1e-3)
    failed = [finding_named(f"weekly_slope: {k}", YES, NO) for k in range(10)]
    moved = with_budget(
        plan, suggest(feedback_of(*failed, *(finding_named(f"activity_persists: {k}") for k in range(10))))
    )
    assert sum(moved.shares.values()) == pytest.approx(1.0)
    assert moved.shares["rhythm"] > plan.shares["rhythm"]
    assert replace(moved.guarantee, caveats=()) == plan.guarantee
    assert moved.rho == plan.rho
    # The split was chosen by what exact answers said: the statement says so.
    assert moved.guarantee.caveats == (caveats.FEEDBACK,)
    assert "no epsilon covers" in str(moved.guarantee)
    assert with_budget(plan, Suggestions(("a sentence",))).guarantee == plan.guarantee


def test_a_split_that_the_accounting_does_not_cover_is_refused_before_the_charge():
    """At an epsilon near the limit the noise of one statistic is only just covered; a larger share is not."""

    def covered(epsilon):
        try:
            return propose(SCHEMA, 120, epsilon, 1e-3)
        except UsageError:
            return None

    low, high = 3.0, 1e6
    while high - low > 1000:
        middle = (low + high) / 2
        low, high = (middle, high) if covered(middle) else (low, middle)
    plan = covered(low)
    finest = min(
        plan.predictions(), key=lambda one: one.noise_sd / MEASURES[one.statistic](SCHEMA, {}).step
    ).statistic
    with pytest.raises(UsageError, match="accounting"):
        with_budget(plan, Suggestions((), {finest: 1.5}))


def test_what_was_written_is_read_again_also_by_the_brief(tmp_path):
    found = suggest(
        feedback_of(finding_named("activity_and_outcome: evening"), finding_named("weekly_slope: x", YES, NO))
    )
    path = tmp_path / "suggestions.json"
    path.write_text(json.dumps(found.to_json()))
    assert read_suggestions(path) == found
    assert found.sentences[0] in write_brief(summary_of(0, 1), read_suggestions(path).sentences).text


def test_suggestions_that_were_tampered_with_are_refused(tmp_path):
    content = suggest(feedback_of(finding_named("weekly_slope: x", YES, NO))).to_json()
    path = tmp_path / "suggestions.json"
    for change in (
        {"budget": {"rhythm": 1000}},
        {"budget": {"nothing": 1}},
        {"validated_on": 0},
        {"version": 9},
    ):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(DataError):
            read_suggestions(path)


def test_validated_effects_pull_the_measured_ones():
    now = summary_of(1, 1)
    up = with_effects(
        now, suggest(feedback_of(finding_named("activity_and_outcome: overnight", YES, YES)), SCHEMA)
    )
    none = with_effects(
        now, suggest(feedback_of(finding_named("activity_and_outcome: overnight", YES, NO)), SCHEMA)
    )
    cell = now.statistics["habits"].names[0].index("active overnight"), -1
    assert none.statistics["habits"].values[cell] < up.statistics["habits"].values[cell]
    assert up.statistics["habits"].noise_sd[cell] < now.statistics["habits"].noise_sd[cell]
    assert up.guarantee is now.guarantee
    changed = ~np.isclose(up.statistics["habits"].values, now.statistics["habits"].values)
    assert changed.sum() == 2
    assert with_effects(now, suggest(feedback_of(finding_named("weekly_slope: x")))) is now


def test_what_significance_says_of_a_correlation():
    """Against drawing correlations from N(0, 0.3^2) and testing them among 120 learners."""
    rng = np.random.default_rng(8)
    true = rng.normal(0, 0.3, 400_000)
    found = true + rng.normal(0, 1 / math.sqrt(120), len(true))
    beyond = found * math.sqrt(120) > 1.96
    mean, sd = correlation_given_significance(1.0, 120, 120)
    assert mean == pytest.approx(found[beyond].mean(), abs=0.005)
    assert sd**2 == pytest.approx(found[beyond].var() + 2 / 120, rel=0.02)
    within = np.abs(found) * math.sqrt(120) < 1.96
    mean, sd = correlation_given_significance(0.0, 120, 120)
    assert mean == 0
    assert sd**2 == pytest.approx(found[within].var() + 2 / 120, rel=0.02)
