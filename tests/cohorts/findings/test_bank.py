"""The bank, its findings, and what counts as replicated."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings import (
    NO_EVIDENCE,
    Analysis,
    Evidence,
    Finding,
    add_analyses,
    add_analysis,
    bank,
    bank_table,
    compare_findings,
    remove_analysis,
    run_bank,
    without_effect,
)
from understudy.cohorts.findings.evidence import (
    correlation,
    mean_difference,
    ordinal_regression,
    regression,
)
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.simulate import School
from understudy.errors import DataError, UsageError

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "findings.md"
KINDS = {
    "correlation",
    "group difference",
    "regression",
    "time of day",
    "cluster",
    "trend",
    "mediation",
    "persistence",
    "inequality",
    "causal discovery",
}


def school_of(seed, n=60):
    return School(n_learners=n).simulate(0, np.random.default_rng(seed))


def fixed(name, *findings):
    """An analysis whose findings depend on the number of learners only: one list for 1, another for 2."""
    return Analysis(name, "made up", "?", lambda cohort: list(findings[cohort.n_learners - 1]))


def made(name, direction, p_value):
    return Finding.of(name, Evidence(float(direction), p_value))


def people(n):
    schema = Schema(features=(Feature("day", 10.0),), n_weeks=2, labels=("low", "high"))
    return Cohort(np.ones((n, 1, 2)), np.zeros(n, dtype=np.int8), schema)


def test_the_bank_has_at_least_30_analyses_of_every_kind():
    assert len(bank()) >= 30
    assert {analysis.kind for analysis in bank()} == KINDS
    assert len({analysis.name for analysis in bank()}) == len(bank())
    assert all(analysis.question.endswith("?") and analysis.null for analysis in bank())


def test_the_page_lists_the_analyses_as_they_are():
    page = PAGE.read_text(encoding="utf-8")
    assert bank_table() in page
    assert f"{len(bank())} analyses" in page
    assert f"{len(run_bank(school_of(0)))} findings" in page


def test_findings_are_the_same_on_every_run():
    assert run_bank(school_of(3)) == run_bank(school_of(3))


def test_findings_know_their_direction_and_level():
    up, down, unsure = made("a", 2, 0.049), made("b", -2, 0.0), made("c", 1, 0.05)
    assert (up.direction, up.significant) == (1, True)
    assert (down.direction, down.significant) == (-1, True)
    assert (unsure.direction, unsure.significant) == (1, False)
    assert Finding.of("d", Evidence(3.0, 0.0), directed=False).direction == 0
    assert Finding.of("e", NO_EVIDENCE) == Finding("e", 0, False, 1.0, 0.0)


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("n_weeks", [2, 3, 9])
@pytest.mark.parametrize("n_labels", [2, 5])
def test_every_schema_and_every_size_gives_the_same_names(n_features, n_weeks, n_labels):
    schema = Schema(
        features=tuple(Feature(f"window {place}", 100.0) for place in range(n_features)),
        n_weeks=n_weeks,
        labels=tuple("abcde"[:n_labels]),
    )
    names = set()
    for n in (0, 1, 2, 5, 40):
        rng = np.random.default_rng(n)
        values = rng.uniform(0, 100, (n, n_features, n_weeks))
        sparse = values * (rng.random(values.shape) < 0.2)
        for table in (values, sparse, np.zeros_like(values), np.full_like(values, 7.0)):
            for label in (np.zeros(n, dtype=np.int8), rng.integers(0, n_labels, n).astype(np.int8)):
                found = run_bank(Cohort(table, label, schema))
                names.add(tuple(found))
                for finding in found.values():
                    assert 0.0 <= finding.p_value <= 1.0
                    assert math.isfinite(finding.effect)
                    assert n_features == 0 or n > 2 or not finding.significant
                    assert np.ptp(table) > 0 if finding.significant else True
    assert len(names) == 1


def test_a_finding_holds_when_it_is_significant_on_both_with_the_same_direction():
    real = [made("same", 1, 0.01), made("turned", 1, 0.01), made("missed", 1, 0.01), made("made up", 1, 0.5)]
    synthetic = [
        made("same", 1, 0.02),
        made("turned", -1, 0.01),
        made("missed", 1, 0.2),
        made("made up", 1, 0.0),
    ]
    result = compare_findings(people(1), people(2), bank=[fixed("x", real, synthetic)])
    assert (result.n_real, result.n_synthetic, result.n_holding) == (3, 3, 1)
    assert result.precision == result.recall == pytest.approx(1 / 3)
    assert {pair.real.name: pair.holds for pair in result.details} == {
        "x: same": True,
        "x: turned": False,
        "x: missed": False,
        "x: made up": False,
    }
    assert result.by_kind["made up"].precision == pytest.approx(1 / 3)


def test_shares_of_nothing_are_not_numbers_and_null_in_json():
    nothing = [made("a", 1, 0.9)]
    result = compare_findings(people(1), people(2), bank=[fixed("x", nothing, nothing)])
    assert math.isnan(result.precision)
    assert math.isnan(result.recall)
    content = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert content["precision"] is None
    assert content["findings"][0]["finding"] == "x: a"


def test_a_cohort_replicates_itself():
    cohort = school_of(1)
    result = compare_findings(cohort, cohort)
    assert result.precision == result.recall == 1.0
    assert result.about_outcome.n_real < result.n_real == result.n_synthetic
    assert sum(shares.n_real for shares in result.by_kind.values()) == result.n_real


def test_cohorts_of_different_schemas_are_refused():
    with pytest.raises(DataError, match="different features"):
        compare_findings(school_of(1), people(3))


def test_an_analysis_whose_names_depend_on_the_data_is_refused():
    with pytest.raises(DataError, match="names its findings differently"):
        compare_findings(people(1), people(2), bank=[fixed("x", [made("a", 1, 0.1)], [made("b", 1, 0.1)])])
    twice = [made("a", 1, 0.1), made("a", 1, 0.2)]
    with pytest.raises(UsageError, match="two findings"):
        compare_findings(people(1), people(2), bank=[fixed("x", twice, twice)])


def test_an_analysis_of_ones_own_runs_with_the_others():
    def peak_week(cohort):
        week = cohort.values.sum(axis=1).argmax(axis=1)
        return [Finding.of("week", correlation(week, cohort.label))]

    before = len(bank())
    try:
        add_analysis("my_peak_week", "my own", "Do late peaks go with achievement?", peak_week)
        with pytest.raises(UsageError, match="already"):
            add_analysis("my_peak_week", "my own", "Again?", peak_week)
        result = compare_findings(school_of(1), school_of(2))
        assert "my own" in result.by_kind
        assert result.details[-1].about_outcome
    finally:
        remove_analysis("my_peak_week")
    assert len(bank()) == before
    with pytest.raises(UsageError, match="no analysis"):
        remove_analysis("my_peak_week")


EXAMPLE = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]


@pytest.fixture
def same_bank():
    before = {analysis.name for analysis in bank()}
    yield before
    for analysis in bank():
        if analysis.name not in before:
            remove_analysis(analysis.name)


def test_the_example_of_the_page_is_a_file_of_analyses(tmp_path, same_bank):
    path = tmp_path / "my_analyses.py"
    path.write_text(EXAMPLE)
    (mine,) = add_analyses(path)
    assert (mine.name, mine.kind, mine.null) == ("peak_week", "my own", "labels")
    assert "Spearman's rho of the busiest week" in bank_table([mine])
    result = compare_findings(school_of(1), school_of(2))
    assert result.details[-1].real.name == "peak_week: week"
    assert "my own" in result.by_kind
    # Where there is nothing to find it finds nothing.
    assert not run_bank(people(3), [mine])["peak_week: week"].significant
    with pytest.raises(UsageError, match="already"):
        add_analyses(path)


HEAD = "from understudy.cohorts.findings import Finding, register\n"


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ("x = 1\n", UsageError, "adds no analysis"),
        ("def f(:\n", DataError, "SyntaxError in line 1 of my.py"),
        (HEAD + "raise ValueError('planted')\n", DataError, "ValueError in line 2 of my.py"),
        (HEAD + "@register('planted_', '?')\ndef f(cohort):\n    return []\n", UsageError, "plain words"),
    ],
)
def test_a_file_that_is_wrong_adds_nothing(tmp_path, same_bank, content, error, words):
    path = tmp_path / "my.py"
    path.write_text(content)
    with pytest.raises(error, match=words) as caught:
        add_analyses(path)
    assert "planted" not in str(caught.value)
    assert {analysis.name for analysis in bank()} == same_bank
    with pytest.raises(UsageError, match="no Python file"):
        add_analyses(tmp_path / "absent.py")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError(str(cohort.values))", "'f' ended with ValueError in line 4 of my.py"),
        ("return [1]", "'f' of my.py returned something other"),
    ],
)
def test_an_analysis_that_fails_names_its_line_and_no_value(tmp_path, same_bank, body, words):
    path = tmp_path / "my.py"
    path.write_text(HEAD + f"@register('mine', '?')\ndef f(cohort):\n    {body}\n")
    added = add_analyses(path)
    with pytest.raises(DataError) as caught:
        run_bank(people(3), added)
    assert words in caught.value.message
    assert "[[" not in str(caught.value)


def test_breaking_a_relation_keeps_the_rest():
    cohort = school_of(4)
    rng = np.random.default_rng(0)
    labels = without_effect(cohort, "labels", rng)
    assert (labels.values == cohort.values).all()
    assert sorted(labels.label) == sorted(cohort.label)
    weeks = without_effect(cohort, "weeks", rng)
    assert (np.sort(weeks.values, axis=2) == np.sort(cohort.values, axis=2)).all()
    learners = without_effect(cohort, "learners", rng)
    assert (np.sort(learners.values, axis=0) == np.sort(cohort.values, axis=0)).all()
    windows = without_effect(cohort, "windows", rng)
    assert np.sort(windows.values, axis=1).sum(axis=1) == pytest.approx(cohort.values.sum(axis=1))
    assert not (windows.values == cohort.values).all()


def test_tests_that_the_data_cannot_answer_find_nothing():
    assert correlation([1.0] * 9, range(9)) == NO_EVIDENCE
    assert correlation([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == NO_EVIDENCE
    assert mean_difference([1.0], [2.0, 3.0]) == NO_EVIDENCE
    twins = np.column_stack([np.arange(20.0), 2 * np.arange(20.0)])
    assert regression(twins, np.random.default_rng(0).normal(size=20)) == [NO_EVIDENCE] * 2
    separated = np.column_stack([np.repeat([0.0, 1.0, 2.0], 10), np.tile(np.arange(10.0), 3)])
    assert ordinal_regression(separated, np.repeat([0, 1, 2], 10)) == [NO_EVIDENCE] * 2


def test_effects_of_the_simulated_school_are_found():
    """They were fixed before the bank: evenings for achievement, a rise before the exam, a holiday."""
    found = run_bank(School(n_learners=400).simulate(0, np.random.default_rng(1)))
    for name, direction in [
        ("minutes_and_outcome: evening", 1),
        ("share_and_outcome: morning", -1),
        ("activity_by_group: overnight", -1),
        ("exam_rise: all windows", 1),
        ("holiday_dip: all windows", -1),
        ("activity_persists: afternoon", 1),
        ("learners_keep_their_place: evening", 1),
    ]:
        assert found[name].significant, name
        assert found[name].direction == direction, name
