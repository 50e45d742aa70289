"""`us.cohort`: its names, its verbs in memory, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from tests.support.command import run
from understudy.core.files.origin import Origin
from understudy.core.files.simulated import mark_simulated
from understudy.core.privacy.noise import seeded_noise
from understudy.sandbox import require_sandbox

NAMES = [
    *("Cohort", "PrivateSummary", "Schema", "School"),
    *("build", "compare", "improve", "plan", "prompt", "read", "summarize", "synthesize"),
]


@pytest.fixture(scope="module")
def school():
    return us.cohort.School(n_learners=60).simulate(0, np.random.default_rng(1))


@pytest.fixture(scope="module")
def real(school):
    """The same cohort as a frame gives it, which may hold real learners."""
    return us.cohort.Cohort.from_frame(school.to_pandas(), school.schema)


@pytest.fixture(scope="module")
def summarized(school):
    return us.cohort.summarize(school, epsilon=3, delta=1e-3)


@pytest.fixture
def ledger(tmp_path):
    return us.Ledger(tmp_path / "l.ledger")


def test_the_names():
    assert us.cohort.__all__ == dir(us.cohort) == NAMES
    assert all(getattr(us.cohort, name).__module__.startswith("understudy.cohorts") for name in NAMES)
    assert "cohort" in us.__all__
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        _ = us.cohort.anonymise


def test_a_verb_is_a_function_whatever_was_imported_before(tmp_path):
    """A module with the name of a verb would take its place once it is imported."""
    for command in ("build", "summarize", "prompt", "synthesize", "compare", "improve"):
        assert run("cohort", command, "--help", cwd=tmp_path).returncode == 0
    for name in NAMES:
        assert callable(getattr(us.cohort, name))


def test_a_cohort_shows_itself_and_no_row_of_real_learners(school, real):
    assert "simulated-" in school._repr_html_()
    assert "60 learners" in real._repr_html_()
    assert "learner-" not in real._repr_html_()


def test_a_plan_spends_nothing(real, ledger):
    found = us.cohort.plan(real, epsilon=3, population="class 7", ledger=ledger.path)
    assert (found.remaining, found.limit, found.refused) == (10, 10, "")
    assert "Nothing was spent." in found.lines()
    assert found.to_frame().columns[:2] == ["epsilon", "labels"]
    assert "layer" in found.plot().to_dict()
    assert "<table>" in found._repr_html_()
    assert not ledger.path.exists()
    assert (
        "WOULD BE REFUSED"
        in us.cohort.plan(real, epsilon=30, population="class 7", ledger=ledger.path).lines()[0]
    )


def test_a_summary_in_memory_is_charged(real, ledger):
    found = us.cohort.summarize(real, epsilon=3, population="class 7", ledger=ledger.path)
    assert found.summary.guarantee.epsilon == 3
    assert found.to_json()["spent"] == 3
    assert found.to_frame()["statistic"].to_list() == list(found.summary.statistics)
    assert "layer" in found.plot().to_dict()
    assert "Charged epsilon 3" in found._repr_html_()
    assert [(entry.kind, entry.epsilon) for entry in ledger.entries()] == [("cohort summarize", 3.0)]


def test_a_joined_cohort_is_charged_to_the_learners_of_each(real, ledger, tmp_path):
    parts = []
    for name in ("a", "b"):
        schema = replace(real.schema, data_set=name * 16)
        parts.append(replace(real, schema=schema, origin=Origin(tmp_path / f"{name}.csv")))
    first = us.cohort.summarize(parts[0], epsilon=8, population="one", ledger=ledger.path)
    assert first.charge.balance.epsilon == 8
    whole = type(real).joined(parts)
    with pytest.raises(us.RefusedError) as caught:
        us.cohort.summarize(whole, epsilon=8, population="both", ledger=ledger.path)
    assert caught.value.code == "budget"


def test_seeded_noise_leaves_no_guarantee(real, ledger):
    noise = seeded_noise(np.random.default_rng(1))
    assert not us.cohort.summarize(
        real, population="class 7", ledger=ledger.path, noise=noise
    ).summary.guarantee.formal


def test_the_prompt_of_a_summary(summarized, tmp_path):
    found = us.cohort.prompt(summarized.summary, out=tmp_path / "prompt.txt")
    assert (tmp_path / "prompt.txt").read_text(encoding="utf-8") == found.brief.text
    assert found.guarantee == summarized.summary.guarantee


def test_a_synthetic_cohort_in_memory(summarized):
    try:
        require_sandbox()
    except us.MissingError as error:
        pytest.skip(str(error))
    found = us.cohort.synthesize(summarized.summary, n_learners=20, per_panelist=60, seed=1)
    assert found.cohort.n_learners == found.to_frame().height == 20
    assert found.cohort.guarantee == summarized.summary.guarantee
    assert found.to_frame()["learner"].str.starts_with("synthetic-").all()
    assert found.to_json()["out"] is None
    assert "synthetic-" in found._repr_html_()
    assert "layer" in found.plot().to_dict()


def test_a_comparison_in_memory(school):
    found = us.cohort.compare(school, n_seeds=1, n_shadows=0, per_panelist=30)
    assert found.to_frame().height == len(found.methods)
    assert found.plan.delta == 1e-6
    assert "Internal" in found._repr_html_()
    assert "layer" in found.plot().to_dict()
    json.dumps(found.to_json())


def test_suggestions_in_memory(tmp_path):
    verdict = {"direction": 1, "significant": True}
    finding = {"name": "activity_and_outcome: evening", "synthetic": verdict, "real": verdict}
    (tmp_path / "feedback.json").write_text(json.dumps([{"question": "Evenings?", "findings": [finding]}]))
    found = us.cohort.improve(tmp_path / "feedback.json")
    assert found.to_frame().columns == ["statistic", "times"]
    assert "no epsilon covers" in found._repr_html_()
    assert "were not checked" in found.notes[0]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda cohort: us.cohort.summarize(cohort), "unknown-population"),
        (lambda cohort: us.cohort.summarize(cohort, epsilon=0), "usage"),
        (lambda cohort: us.cohort.summarize(cohort, out="summary.csv"), "usage"),
        (lambda cohort: us.cohort.summarize(cohort, learners=3), "no-such-setting"),
        (lambda cohort: us.cohort.summarize(cohort.select([0])), "too-few-learners"),
        (lambda cohort: us.cohort.compare(cohort, n_seeds=0), "usage"),
        (lambda cohort: us.cohort.compare(cohort, per_panelist=1), "usage"),
        (lambda cohort: us.cohort.compare(cohort.select([0, 1])), "data"),
        (
            lambda cohort: us.cohort.build("l", "s", "c.toml", "c.csv", term_start="x", cuts="odd"),
            "no-such-choice",
        ),
    ],
)
def test_what_the_library_refuses(real, tmp_path, monkeypatch, call, code):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(us.UnderstudyError) as error:
        call(real)
    assert error.value.code == code
    assert "--" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_simulated_learners_have_no_budget(school, tmp_path):
    school.to_polars().write_csv(tmp_path / "cohort.csv")
    (tmp_path / "cohort.toml").write_text(school.schema.to_toml())
    mark_simulated(tmp_path / "cohort.csv")
    found = us.cohort.summarize(us.cohort.read(tmp_path / "cohort.csv"), epsilon=40)
    assert "no budget was spent" in found.charge.sentence()
