"""Feedback becomes suggestions: by rules that analyses declare, or in a model's words."""

import json

import pytest

from tests.cohorts.support.cycles import AGAINST, NO, YES, feedback_of, finding_named
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
from understudy.cohorts.simulate import SCHEMA
from understudy.cohorts.summary.suggestions import (
    read_suggestions,
)
from understudy.errors import DataError, UsageError


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
    assert finding_named("a: b", synthetic, real).outcome == outcome


def test_statistics_whose_findings_failed_get_more_and_those_that_held_less():
    failed = [finding_named(f"weekly_slope: {k}", YES, NO) for k in range(10)]
    held = [finding_named(f"activity_persists: {k}") for k in range(10)]
    budget = suggest(feedback_of(*failed, *held)).budget
    assert budget["rhythm"] > 1.1 > 0.9 > budget["persistence"]


def test_one_failure_moves_the_budget_little():
    held = [finding_named(f"activity_persists: {k}") for k in range(5)]
    budget = suggest(feedback_of(finding_named("weekly_slope: morning", YES, NO), *held)).budget
    assert budget["rhythm"] < 1.4


def test_validated_effects_are_kept_or_dropped_by_what_the_real_data_said():
    found = suggest(
        feedback_of(
            finding_named("activity_and_outcome: evening", YES, YES),
            finding_named("activity_by_group: evening", YES, YES),
            finding_named("intensity_and_outcome: morning", YES, NO),
            finding_named("minutes_and_outcome: all windows", YES, YES),
        ),
        SCHEMA,
    )
    effects = {(one.feature, one.habit): one.share for one in found.effects}
    assert effects == {("evening", "active"): 1.0, ("morning", "l"): 0.0}
    assert any(s.startswith("Keep: evening") for s in found.sentences)
    assert any(s.startswith("Drop: morning") for s in found.sentences)


def test_one_effect_is_no_effects():
    (sentence,) = suggest(feedback_of(finding_named("weekly_slope: x", YES, NO))).sentences
    assert sentence.startswith("Synthetic data showed 1 effect in the rhythm")
    (sentence,) = suggest(
        feedback_of(*(finding_named(f"weekly_slope: {k}", NO, YES) for k in range(2)))
    ).sentences
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
    budget = suggest(feedback_of(finding_named("preferred_windows: evening", YES, NO)), SCHEMA).budget
    assert set(budget) == {"levels"}


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

    feedback = feedback_of(finding_named("weekly_slope: x", YES, NO))
    found = suggest_with(write, feedback, None, "model")
    assert found.sentences == ("Match the heavy tails better.", "Drop overnight effects.")
    assert found.budget == suggest(feedback).budget
    assert asked[0] == [prompt_for(feedback)]
    assert asked[1][1] == "A summary."


def test_a_model_that_says_nothing_is_an_error():
    with pytest.raises(DataError):
        suggest_with(lambda _: "", feedback_of(finding_named("weekly_slope: x", YES, NO)), None, "model")


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
