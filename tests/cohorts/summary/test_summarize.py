"""The type that reaches a prompt: who can make it, and what its file says."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from understudy.cohorts.card import cohort_card, synthetic_schema
from understudy.cohorts.panel.brief import write_brief
from understudy.cohorts.simulate import School
from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.summary_file import PrivateSummary, Statistic, zero_shares
from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.errors import DataError, UnderstudyError, UsageError


@pytest.fixture(scope="module")
def cohort():
    return School().simulate(0, np.random.default_rng(5))


@pytest.fixture(scope="module")
def summary(cohort):
    return noisy_summary(
        cohort, propose(cohort.schema, 120, 3.0, 1e-3), seeded_noise(np.random.default_rng(1))
    )


def test_nobody_makes_one_from_numbers_of_their_own(cohort, summary):
    with pytest.raises(TypeError):
        PrivateSummary(cohort.schema, summary.guarantee, 120, summary.statistics, {})
    with pytest.raises(TypeError):
        PrivateSummary._made(object(), cohort.schema, summary.guarantee, 120, {}, {})
    with pytest.raises(AttributeError):
        summary.n_learners = 3
    with pytest.raises(TypeError):
        summary.statistics["labels"] = None
    with pytest.raises(ValueError, match="read-only"):
        summary.statistics["labels"].values[0] = 3.0


def test_there_and_back(summary):
    content = json.loads(json.dumps(summary.to_json()))
    read = PrivateSummary.from_json(content, "summary.json")
    assert read.schema == summary.schema
    assert read.n_learners == 120
    assert list(read.statistics) == list(summary.statistics)
    for name, one in summary.statistics.items():
        assert np.allclose(read.statistics[name].values, one.values, rtol=1e-5)
        assert np.allclose(read.statistics[name].noise_sd, one.noise_sd, rtol=1e-5)
        assert read.statistics[name].axes == one.axes
        assert read.statistics[name].names == one.names
    assert not read.guarantee.formal
    # The file says so itself, nothing here knows whether it is true.
    assert summary.provenance["source"] == "mechanism"
    assert read.provenance["source"] == "file"
    assert read.provenance["file"] == "summary.json"


def test_a_formal_guarantee_survives_the_file(summary, cohort):
    claimed = propose(cohort.schema, 120, 3.0, 1e-3).guarantee
    read = PrivateSummary.from_json(claiming(summary)).guarantee
    assert read == claimed.with_caveats(caveats.FROM_FILE)
    assert "as the file claims" in str(read)
    # Read, written and read again: each sentence once.
    again = PrivateSummary.from_json(
        json.loads(json.dumps(PrivateSummary.from_json(claiming(summary)).to_json()))
    )
    assert again.guarantee == read


def claiming(summary, epsilon=3.0, delta=1e-3):
    """The file of a summary, which claims a guarantee."""
    content = json.loads(json.dumps(summary.to_json()))
    content["guarantee"] = propose(summary.schema, 120, epsilon, delta).guarantee.to_json()
    return content


def set_at(*path):
    def change(content, value):
        place = content
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


ROWS = "rows of a table: Zq7canary 12 40 high"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ("statistics", "rows"),
            {"values": [1.0], "noise_sd": 1.0, "axes": ["x"], "meaning": ROWS},
            "no mechanism",
        ),
        (("statistics", "labels", "noise_sd"), 0, "without noise"),
        (("statistics", "labels", "noise_sd"), 1e-9, "too little"),
        (("statistics", "labels", "noise_sd"), 5.0, "too little"),
        (("statistics", "labels", "noise_sd"), [9.0, 7.0, 9.0], "no mechanism"),
        (("statistics", "labels", "axes"), [ROWS], "other axes"),
        (("statistics", "labels", "names"), [[ROWS, "average", "high"]], "other axes"),
        (("statistics", "labels", "context"), {"n_learners": 120, "note": ROWS}, "not known here"),
        (("statistics", "labels", "context"), {"n_learners": 7}, "not known here"),
        (("statistics", "labels", "values"), [[1.0, 2.0, 3.0]], "shape"),
        (("statistics", "levels", "context", "middle"), [0.0, 0.0], "not known here"),
        (("statistics", "labels", "context"), {"n_learners": 120, "years": 2}, "own measurement"),
        (("statistics", "labels", "context"), {"n_learners": 120, "measured_sd": 9.0}, "own measurement"),
        (("statistics", "habits", "context", "centre_active"), [0.1, 0.2, 0.3, 0.4], "not centred"),
        (("statistics", "habits", "context", "centre_l"), ["a", "b", "c", "d"], "wrong form"),
        (("statistics", "habits", "context", "validated_cells"), [ROWS], "wrong form"),
        (("schema", "cuts_source"), "data", "come from the data"),
        (("schema", "cuts_source"), "private", "does not state what they cost"),
        (("guarantee", "epsilon"), 0.1, "too little"),
        (("guarantee", "epsilon"), "3", "`epsilon` is not a number"),
        (("guarantee", "delta"), 1e-30, "too little"),
        (("guarantee", "unit"), "a row", "of another kind"),
        (("guarantee", "caveats"), [ROWS], "caveat that is not known"),
    ],
)
def test_a_forged_file_is_refused(summary, path, value, message):
    content = claiming(summary)
    PrivateSummary.from_json(content)
    set_at(*path)(content, value)
    with pytest.raises(DataError, match=message) as caught:
        PrivateSummary.from_json(content)
    assert str(caught.value).count("Hint:") == 1
    assert "Zq7canary" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "path",
    [
        ("statistics", "labels", "meaning"),
        ("guarantee", "statement"),
        ("guarantee", "mechanisms"),
        ("provenance", "note"),
        ("provenance", "card"),
        ("provenance", "feedback"),
        ("derived", "zero_shares"),
    ],
)
@pytest.mark.parametrize("formal", [True, False])
def test_no_text_of_a_file_but_its_schema_reaches_a_prompt(summary, path, formal):
    content = claiming(summary) if formal else json.loads(json.dumps(summary.to_json()))
    set_at(*path)(content, [ROWS] if path[-1] == "mechanisms" else ROWS)
    read = PrivateSummary.from_json(content)
    assert "Zq7canary" not in json.dumps(read.to_json())
    assert "Zq7canary" not in write_brief(read).text


def test_less_noise_after_an_earlier_year_does_not_pass_for_a_measurement(summary):
    content = claiming(summary)
    content["statistics"]["labels"]["noise_sd"] = 1e-3
    content["statistics"]["labels"]["context"] |= {"years": 2, "measured_sd": 1e-3}
    with pytest.raises(DataError, match="too little"):
        PrivateSummary.from_json(content)
    content = claiming(summary)
    own = content["statistics"]["labels"]["noise_sd"]
    content["statistics"]["labels"]["context"] |= {"years": 2, "measured_sd": own}
    # The sentence belongs to the numbers, whether the file has it or not.
    assert caveats.PREVIOUS_CLAIMED in PrivateSummary.from_json(content).guarantee.caveats
    content["statistics"]["labels"]["noise_sd"] = 2 * own
    with pytest.raises(DataError, match="no mechanism"):
        PrivateSummary.from_json(content)


@pytest.mark.parametrize("years", [2, 5])
@pytest.mark.parametrize("name", ["labels", "habits"])
def test_no_number_of_years_leaves_next_to_no_noise(summary, name, years):
    """Else exact numbers would go on into the next year's summary, where they would count for all."""
    content = claiming(summary)
    one = content["statistics"][name]
    own = np.max(one["noise_sd"])
    one["context"] |= {"years": years, "measured_sd": own}
    sd = np.array(one["noise_sd"]) / 4.2 / np.sqrt(years - 1)
    one["noise_sd"] = sd.tolist()
    with pytest.raises(DataError, match="less noise than its number of years"):
        PrivateSummary.from_json(content)
    one["noise_sd"] = (sd * 4.2 / 3.5).tolist()
    PrivateSummary.from_json(content)


def test_validated_effects_leave_the_noise_of_other_cells(summary):
    content = claiming(summary)
    one = content["statistics"]["habits"]
    cell = one["names"][-1][1]
    one["context"] |= {"validated_cells": [cell], "measured_sd": np.max(one["noise_sd"])}
    sd = np.array(one["noise_sd"])
    sd[1, -1] = sd[-1, 1] = sd[1, -1] / 2
    one["noise_sd"] = sd.tolist()
    PrivateSummary.from_json(content)
    for place, value in (((1, -1), 1e-9), ((2, -1), sd[2, -1] / 2)):
        forged = np.array(sd)
        forged[place] = value
        one["noise_sd"] = forged.tolist()
        with pytest.raises(DataError, match="less noise"):
            PrivateSummary.from_json(content)


@pytest.mark.parametrize("cost", [5.0, 0.1, 1 / 3])
def test_private_cuts_are_in_what_a_summary_states(cohort, cost):
    """The file is the cuts, and noise given the cuts: both epsilons."""
    schema = replace(cohort.schema, cuts_source="private", cuts_epsilon=cost)
    plan = propose(schema, 120, 3.0, 1e-3)
    found = noisy_summary(replace(cohort, schema=schema), plan, os_noise())
    assert found.guarantee.epsilon == 3.0 + cost
    assert found.guarantee.delta == 1e-3
    assert found.guarantee.rho is None
    assert f"for the cuts (epsilon {cost:g} of it)" in str(found.guarantee)
    # The ledger charged the cuts before.
    assert plan.charge.epsilon == 3.0
    content = json.loads(json.dumps(found.to_json()))
    read = PrivateSummary.from_json(content)
    assert read.guarantee.epsilon == pytest.approx(3.0 + cost, rel=1e-12)
    assert read.guarantee == replace(found.guarantee, epsilon=read.guarantee.epsilon).with_caveats(
        caveats.FROM_FILE
    )
    again = PrivateSummary.from_json(json.loads(json.dumps(read.to_json())))
    assert again.guarantee == read.guarantee
    # What a reader of the synthetic cohort is told is the same.
    assert f"epsilon {3.0 + cost:g}, delta" in synthetic_schema(read).context
    card = cohort_card(read, cohort, authors=[], files=[], made="today", version="0")
    assert card["guarantee"]["epsilon"] == read.guarantee.epsilon
    for claimed, said in (
        (3.0, "no more than its cuts" if cost == 5.0 else "too little"),
        (cost, "no more than"),
    ):
        content["guarantee"]["epsilon"] = claimed
        with pytest.raises(DataError, match=said):
            PrivateSummary.from_json(content)


def test_private_cuts_without_a_price_are_refused_before_anything_is_spent(cohort):
    with pytest.raises(DataError, match="does not state what they cost"):
        propose(replace(cohort.schema, cuts_source="private"), 120, 3.0, 1e-3)


def test_learners_left_out_without_a_score_are_stated(cohort):
    schema = replace(cohort.schema, without_score="dropped")
    found = noisy_summary(replace(cohort, schema=schema), propose(schema, 120, 3.0, 1e-3), os_noise())
    assert found.guarantee.caveats == (caveats.UNSCORED,)
    content = json.loads(json.dumps(found.to_json()))
    del content["guarantee"]["caveats"]
    assert PrivateSummary.from_json(content).guarantee.caveats == (caveats.UNSCORED, caveats.FROM_FILE)


def test_a_file_of_before_names_caveats_by_their_sentences(cohort):
    schema = replace(cohort.schema, without_score="dropped")
    found = noisy_summary(replace(cohort, schema=schema), propose(schema, 120, 3.0, 1e-3), os_noise())
    content = json.loads(json.dumps(found.to_json()))
    assert content["guarantee"]["caveats"] == ["learners-without-score-dropped"]
    assert "listed without a score" in content["guarantee"]["statement"]
    content["guarantee"]["caveats"] = [caveats.UNSCORED.sentence, caveats.FROM_FILE.sentence]
    assert PrivateSummary.from_json(content).guarantee.caveats == (caveats.UNSCORED, caveats.FROM_FILE)


def test_real_learners_need_a_guarantee(summary):
    content = summary.to_json()
    content["provenance"]["simulated"] = False
    with pytest.raises(DataError, match="claims no guarantee"):
        PrivateSummary.from_json(content)


def test_every_number_has_its_noise_beside_it(summary):
    for one in summary.to_json()["statistics"].values():
        values = np.array(one["values"])
        noise = np.array(one["noise_sd"])
        assert noise.shape in ((), values.shape)
        assert (noise > 0).all()
        assert [len(names) for names in one["names"]] == list(values.shape)


def broken(content, *path, value):
    changed = copy.deepcopy(content)
    place = changed
    for step in path[:-1]:
        place = place[step]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), "something else"),
        (("version",), 99),
        (("n_learners",), "many"),
        (("n_learners",), True),
        (("n_learners",), 0),
        (("schema",), KeyError),
        (("schema", "feature"), [{"name": "x"}]),
        (("statistics",), [1]),
        (("guarantee", "formal"), KeyError),
        (("guarantee",), None),
        (("statistics", "labels", "values"), ["a", "b", "c"]),
        (("statistics", "labels", "values"), [1.0, float("nan"), 2.0]),
        (("statistics", "labels", "values"), [1.0, 2.0]),
        (("statistics", "labels", "noise_sd"), -1.0),
        (("statistics", "labels", "noise_sd"), [1.0, 2.0]),
        (("statistics", "labels", "axes"), []),
        (("statistics", "labels"), None),
    ],
)
def test_a_damaged_file_is_refused_with_a_sentence(summary, path, value):
    with pytest.raises(DataError):
        PrivateSummary.from_json(broken(summary.to_json(), *path, value=value))


@pytest.mark.parametrize("content", [None, [], "text", {}])
def test_something_else_is_refused(content):
    with pytest.raises(UnderstudyError):
        PrivateSummary.from_json(content)


def test_files_that_are_not_there_or_not_json(tmp_path):
    with pytest.raises(UsageError):
        PrivateSummary.read(tmp_path / "absent.json")
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(DataError):
        PrivateSummary.read(tmp_path / "text.json")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("cohort.parquet", b"PAR1", "a table of learners"),
        ("cohort.csv", b"learner,morning_01", "a table of learners"),
        ("cohort.toml", b"weeks = 3", "the declaration of a cohort"),
        ("advice.json", b'{"format": "understudy cohort suggestions"}', "suggestions"),
    ],
)
def test_another_kind_of_file_is_called_by_its_name_and_nothing_is_spent(tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name} is {kind}.*, not a private summary") as caught:
        PrivateSummary.read(tmp_path / name)
    assert "a new one is charged again" in caught.value.hint


def test_a_statistic_needs_axes_and_noise():
    with pytest.raises(DataError):
        Statistic(np.ones(3), np.ones(2), ("week",), "")
    with pytest.raises(DataError):
        Statistic(np.ones((3, 2)), 1.0, ("week",), "")
    with pytest.raises(DataError):
        Statistic(np.ones(3), 1.0, ("week",), "", (("a", "b"),))


def test_zeros_by_label_follow_from_the_sums(cohort):
    """At next to no noise: the straight line through the labels' shares of zero weeks."""
    found = noisy_summary(
        cohort, propose(cohort.schema, 120, 90.0, 1e-3), seeded_noise(np.random.default_rng(1))
    )
    shares, sd = zero_shares(found)
    zero = (cohort.values == 0).mean(axis=2)
    slope, start = np.polyfit(cohort.label - 1.0, zero, 1)
    line = start + slope * np.array([[-1.0], [0.0], [1.0]])
    assert np.abs(shares - line).max() < 0.03
    assert (sd < 0.01).all()
    only = noisy_summary(
        cohort,
        propose(cohort.schema, 120, 3.0, 1e-3, statistics=["labels"]),
        seeded_noise(np.random.default_rng(1)),
    )
    assert zero_shares(only) is None
    assert only.to_json()["derived"] == {}
