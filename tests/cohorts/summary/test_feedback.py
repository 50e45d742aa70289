"""Feedback becomes suggestions, suggestions change the next summary, and last year's halves the noise."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from understudy.cohorts.feedback import (
    Feedback,
    FeedbackFile,
    ValidatedFinding,
    Verdict,
    check_names,
    prompt_for,
    read_feedback,
    suggest,
    suggest_with,
)
from understudy.cohorts.panel.brief import write_brief
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.simulate import SCHEMA, School
from understudy.cohorts.summary import caveats, previous_year
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.previous_year import check_previous, drift_variance, with_previous
from understudy.cohorts.summary.statistics import MEASURES
from understudy.cohorts.summary.suggestions import (
    Suggestions,
    correlation_given_significance,
    read_suggestions,
    with_budget,
    with_effects,
)
from understudy.cohorts.summary.summarize import summarize
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.privacy.noise import os_noise
from understudy.core.privacy.noise import seeded_noise as seeded
from understudy.errors import DataError, UsageError

YES, NO, AGAINST = Verdict(1, True), Verdict(0, False), Verdict(-1, True)


def finding(name, synthetic=YES, real=YES):
    return ValidatedFinding(name, synthetic, real)


def told(*findings, n=120):
    return FeedbackFile((Feedback("What goes with achievement?", findings=findings),), n)


def summary_of(year, seed, epsilon=3.0, plan=None, n=120):
    cohort = School(n_learners=n).simulate(year, np.random.default_rng([seed, year]))
    chosen = plan or propose(cohort.schema, n, epsilon, 1e-3)
    card = {"card": f"{seed}-{year}"}
    return summarize(cohort, chosen, seeded(np.random.default_rng([seed, year, 1])), card)


@pytest.mark.parametrize(
    ("synthetic", "real", "outcome"),
    [
        (YES, YES, "held"),
        (YES, NO, "invented"),
        (YES, AGAINST, "reversed"),
        (NO, YES, "missed"),
        (NO, NO, "absent"),
    ],
)
def test_a_finding_holds_or_not(synthetic, real, outcome):
    assert finding("a: b", synthetic, real).outcome == outcome


def test_statistics_whose_findings_failed_get_more_and_those_that_held_less():
    failed = [finding(f"weekly_slope: {k}", YES, NO) for k in range(10)]
    held = [finding(f"activity_persists: {k}") for k in range(10)]
    budget = suggest(told(*failed, *held)).budget
    assert budget["rhythm"] > 1.1 > 0.9 > budget["persistence"]


def test_one_failure_moves_the_budget_little():
    held = [finding(f"activity_persists: {k}") for k in range(5)]
    budget = suggest(told(finding("weekly_slope: morning", YES, NO), *held)).budget
    assert budget["rhythm"] < 1.4


def test_validated_effects_are_kept_or_dropped_by_what_the_real_data_said():
    found = suggest(
        told(
            finding("activity_and_outcome: evening", YES, YES),
            finding("activity_by_group: evening", YES, YES),
            finding("intensity_and_outcome: morning", YES, NO),
            finding("minutes_and_outcome: all windows", YES, YES),
        ),
        SCHEMA,
    )
    effects = {(one.feature, one.habit): one.share for one in found.effects}
    assert effects == {("evening", "active"): 1.0, ("morning", "l"): 0.0}
    assert any(s.startswith("Keep: evening") for s in found.sentences)
    assert any(s.startswith("Drop: morning") for s in found.sentences)


def test_one_effect_is_no_effects():
    (sentence,) = suggest(told(finding("weekly_slope: x", YES, NO))).sentences
    assert sentence.startswith("Synthetic data showed 1 effect in the rhythm")
    (sentence,) = suggest(told(*(finding(f"weekly_slope: {k}", NO, YES) for k in range(2)))).sentences
    assert sentence.startswith("Synthetic data missed 2 effects in the rhythm")


def test_words_alone_become_sentences_and_move_no_number():
    entry = Feedback("Is the distribution heavy-tailed?", synthetic="Hardly.", real="Very much so.")
    found = suggest(FeedbackFile((entry,)))
    assert "Very much so." in found.sentences[0]
    assert (found.budget, found.effects) == ({}, ())


def test_what_a_finding_rests_on_is_declared_by_its_analysis_and_never_read_from_words():
    """Names of one's own that sound like statistics, kinds and questions: none of them moves a share."""
    own = ValidatedFinding("weekly rhythm and persistence: slope", YES, NO, kind="trend")
    entry = Feedback("Does the weekly rhythm persist, with heavy tails?", findings=(own,))
    found = suggest(FeedbackFile((entry,)), SCHEMA)
    assert (found.budget, found.effects) == ({}, ())
    assert "1 effect in 'weekly rhythm and persistence'" in found.sentences[0]
    # `evening` holds "even", which was once taken for spread.
    budget = suggest(told(finding("preferred_windows: evening", YES, NO)), SCHEMA).budget
    assert set(budget) == {"levels"}


def test_the_budget_is_split_anew_and_costs_the_same():
    plan = propose(SCHEMA, 120, 3.0, 1e-3)
    failed = [finding(f"weekly_slope: {k}", YES, NO) for k in range(10)]
    moved = with_budget(
        plan, suggest(told(*failed, *(finding(f"activity_persists: {k}") for k in range(10))))
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


def test_the_statement_says_what_went_in_beside_the_measurement():
    cohort = School().simulate(1, np.random.default_rng(1))
    plan = propose(cohort.schema, 120, 3.0, 1e-3)
    now = summarize(cohort, plan, os_noise())
    before = summarize(School().simulate(0, np.random.default_rng(2)), plan, os_noise(), {"card": "0" * 16})
    effects = suggest(told(finding("activity_and_outcome: overnight", YES, YES)), SCHEMA)
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
    formal = with_previous(summarize(cohort, plan, os_noise()), read, charged=True)
    stated = (caveats.PREVIOUS, caveats.EARLIER_FROM_FILE, caveats.FEEDBACK)
    assert formal.guarantee.caveats == stated
    back = PrivateSummary.from_json(json.loads(json.dumps(formal.to_json())))
    assert back.guarantee.caveats == (*stated, caveats.FROM_FILE)
    # One claim in the chain makes a claim of all of it.
    unknown = PrivateSummary.from_json(json.loads(json.dumps(claimed.to_json())))
    later = with_previous(summarize(cohort, plan, os_noise()), unknown, charged=True)
    assert later.guarantee.caveats == (caveats.PREVIOUS_CLAIMED, caveats.EARLIER_FROM_FILE)


def test_a_far_more_precise_earlier_year_is_read_again(monkeypatch):
    """What is written states no less noise than its years allow, however little an earlier one had."""
    monkeypatch.setattr(previous_year, "drift_variance", lambda *_: 0.0)
    cohort = School().simulate(1, np.random.default_rng(1))
    now = summarize(cohort, propose(cohort.schema, 120, 1.0, 1e-3), os_noise())
    effects = suggest(told(finding("activity_and_outcome: overnight", YES, YES)), SCHEMA)
    sharp = summarize(
        School().simulate(0, np.random.default_rng(2)), propose(SCHEMA, 120, 90.0, 1e-3), os_noise()
    )
    both = with_effects(with_previous(now, sharp), effects)
    assert (both.statistics["labels"].noise_sd < now.statistics["labels"].noise_sd / 3).all()
    read = PrivateSummary.from_json(json.loads(json.dumps(both.to_json())))
    third = with_previous(summarize(cohort, propose(cohort.schema, 120, 1.0, 1e-3), os_noise()), read)
    assert PrivateSummary.from_json(json.loads(json.dumps(third.to_json()))).n_learners == 120


def test_what_was_written_is_read_again_also_by_the_brief(tmp_path):
    found = suggest(told(finding("activity_and_outcome: evening"), finding("weekly_slope: x", YES, NO)))
    path = tmp_path / "suggestions.json"
    path.write_text(json.dumps(found.to_json()))
    assert read_suggestions(path) == found
    assert found.sentences[0] in write_brief(summary_of(0, 1), read_suggestions(path).sentences).text


def test_suggestions_that_were_tampered_with_are_refused(tmp_path):
    content = suggest(told(finding("weekly_slope: x", YES, NO))).to_json()
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


def test_feedback_is_read_from_json_and_toml(tmp_path):
    one = {
        "question": "Q?",
        "findings": [
            {
                "name": "weekly_slope: evening",
                "synthetic": {"direction": 1, "significant": True},
                "real": {"direction": 0, "significant": False},
            }
        ],
    }
    (tmp_path / "f.json").write_text(json.dumps({"learners": 113, "feedback": [one]}))
    (tmp_path / "f.toml").write_text(
        'learners = 113\n[[feedback]]\nquestion = "Q?"\n[[feedback.findings]]\nname = "weekly_slope: evening"\n'
        "synthetic = {direction = 1, significant = true}\nreal = {direction = 0, significant = false}\n"
    )
    first, second = (read_feedback(tmp_path / name) for name in ("f.json", "f.toml"))
    assert first == second
    assert (first.n_learners, first.findings[0].outcome) == (113, "invented")


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '[{"question": ""}]',
        '[{"question": "Q?"}]',
        '[{"question": "Q?", "rows": []}]',
        '[{"question": "Q?", "synthetic": "a", "real": 3}]',
        '[{"question": "Q?", "findings": [{"name": "x", "synthetic": {"direction": 2, "significant": true}, '
        '"real": {"direction": 0, "significant": false}}]}]',
        "{not json",
        '{"feedback": [{"question": "Q?", "synthetic": "a", "real": "b"}], "learners": 0}',
    ],
)
def test_feedback_of_a_wrong_form_is_refused_without_repeating_it(tmp_path, content):
    path = tmp_path / "f.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        read_feedback(path)
    assert "f.json" in str(caught.value)
    assert caught.value.hint


def test_a_missing_file_is_wrong_use(tmp_path):
    with pytest.raises(UsageError):
        read_feedback(tmp_path / "none.json")


def test_a_model_writes_sentences_in_two_steps_and_moves_no_numbers():
    asked = []

    def write(conversation):
        asked.append(list(conversation))
        return (
            "A summary."
            if len(asked) == 1
            else "1. Match the heavy tails better.\n- Drop overnight effects.\n\n"
        )

    feedback = told(finding("weekly_slope: x", YES, NO))
    found = suggest_with(write, feedback, None, "model")
    assert found.sentences == ("Match the heavy tails better.", "Drop overnight effects.")
    assert found.budget == suggest(feedback).budget
    assert asked[0] == [prompt_for(feedback)]
    assert asked[1][1] == "A summary."


def test_a_model_that_says_nothing_is_an_error():
    with pytest.raises(DataError):
        suggest_with(lambda _: "", told(finding("weekly_slope: x", YES, NO)), None, "model")


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
                summarize(cohort, propose(cohort.schema, 120, 3.0, 1e-3), _Silence()).statistics[name].values
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
        summarize(cohort, plan, seeded(np.random.default_rng(seed))).statistics["habits"] for seed in (1, 2)
    )
    assert first.context["centre_active"] != second.context["centre_active"]
    from understudy.cohorts.summary.previous_year import _recentred
    from understudy.cohorts.summary.statistics import MEASURES

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

    moved, sd = _recentred(exact(first), np.full((10, 10), 0.1), first, second, 17)
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
    before = summarize(other, propose(other.schema, 120, 3.0, 1e-3), seeded(np.random.default_rng(1)))
    with pytest.raises(DataError, match=r"other weeks \(9; this year 17\)"):
        with_previous(now, before)


def test_another_bound_makes_every_number_something_else():
    now = summary_of(1, 1)
    high = tuple(Feature(f.name, 300.0, hours=f.hours) for f in SCHEMA.features)
    other = School(schema=Schema(features=high, cuts=(48.0, 62.0))).simulate(0, np.random.default_rng(1))
    before = summarize(other, propose(other.schema, 120, 3.0, 1e-3), seeded(np.random.default_rng(1)))
    with pytest.raises(DataError, match="another bound of morning"):
        with_previous(now, before)


def test_validated_effects_pull_the_measured_ones():
    now = summary_of(1, 1)
    up = with_effects(now, suggest(told(finding("activity_and_outcome: overnight", YES, YES)), SCHEMA))
    none = with_effects(now, suggest(told(finding("activity_and_outcome: overnight", YES, NO)), SCHEMA))
    cell = now.statistics["habits"].names[0].index("active overnight"), -1
    assert none.statistics["habits"].values[cell] < up.statistics["habits"].values[cell]
    assert up.statistics["habits"].noise_sd[cell] < now.statistics["habits"].noise_sd[cell]
    assert up.guarantee is now.guarantee
    changed = ~np.isclose(up.statistics["habits"].values, now.statistics["habits"].values)
    assert changed.sum() == 2
    assert with_effects(now, suggest(told(finding("weekly_slope: x")))) is now


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


def test_misspelled_findings_are_refused_and_ones_own_are_told():
    def named(*names):
        verdict = Verdict(1, True)
        return FeedbackFile(
            (Feedback("q", findings=tuple(ValidatedFinding(name, verdict, verdict) for name in names)),)
        )

    assert check_names(named("activity_and_outcome: evening", "my_test: x"), SCHEMA) == ["my_test"]
    with pytest.raises(DataError, match="no finding 'evning'") as caught:
        check_names(named("activity_and_outcome: evning"), SCHEMA)
    assert "did you mean 'evening'" in caught.value.hint
    with pytest.raises(DataError, match="no analysis is called 'activty_and_outcome'") as caught:
        check_names(named("activty_and_outcome: evening"))
    assert "did you mean 'activity_and_outcome'" in caught.value.hint
    assert check_names(named("activity_and_outcome: evning")) == []


@pytest.mark.parametrize("content", [b"PAR1", b'{"format": "understudy cohort summary"}'])
def test_another_kind_of_file_is_neither_feedback_nor_suggestions(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    for read, what in ((read_feedback, "not feedback"), (read_suggestions, "not suggestions")):
        with pytest.raises(DataError, match=what) as caught:
            read(tmp_path / "x.json")
        assert "summarize" not in caught.value.hint
