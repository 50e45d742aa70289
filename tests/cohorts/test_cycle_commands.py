"""A cycle by the command line: simulate, summarize, synthesize, improve, and the next year."""

import json

import numpy as np
import pytest

from reproductions.two_stage.cycles import as_feedback
from tests.support.command import run
from understudy.cohorts.cohort import read_cohort
from understudy.cohorts.findings import compare_findings
from understudy.sandbox import require_sandbox

pytestmark = pytest.mark.functional


def done(*arguments, cwd):
    finished = run(*arguments, cwd=cwd)
    assert finished.returncode == 0, finished.stderr
    return finished


def sandbox_works():
    try:
        require_sandbox()
    except Exception:
        return False
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two years with their cohorts, the first one's summary and a feedback file."""
    path = tmp_path_factory.mktemp("cycle")
    for year in (0, 1):
        done(
            *("simulate", f"year{year}.parquet", "--shape", "cohort", "--learners", 60),
            *("--year", year, "--seed", 3 + year),
            cwd=path,
        )
    done(
        *("cohort", "summarize", "year0.parquet", "--epsilon", 3, "--delta", "1e-3", "-o", "summary0.json"),
        cwd=path,
    )
    real, other = read_cohort(path / "year0.parquet"), read_cohort(path / "year1.parquet")
    told = as_feedback(compare_findings(real, other), 60, 8, np.random.default_rng(0))
    entries = [
        {
            "question": entry.question,
            "findings": [
                {
                    "name": one.name,
                    "kind": one.kind,
                    "synthetic": {
                        "direction": one.synthetic.direction,
                        "significant": one.synthetic.significant,
                    },
                    "real": {"direction": one.real.direction, "significant": one.real.significant},
                }
                for one in entry.findings
            ],
        }
        for entry in told.entries
    ]
    (path / "feedback.json").write_text(json.dumps({"learners": 60, "feedback": entries}))
    return path


def test_improve_writes_what_summarize_takes(folder):
    said = done(
        "cohort", "improve", "feedback.json", "-o", "suggestions.json", "--schema", "year0.toml", cwd=folder
    )
    assert "no epsilon covers" in said.stdout
    assert "does not cover the learners whom this feedback is about" in said.stdout
    content = json.loads((folder / "suggestions.json").read_text())
    assert content["suggestions"]
    assert content["budget"]
    first = json.loads((folder / "summary0.json").read_text())
    second_file = folder / "summary1.json"
    said = done(
        *("cohort", "summarize", "year1.parquet", "--epsilon", 3, "--delta", "1e-3", "-o", second_file.name),
        *("--suggestions", "suggestions.json", "--previous", "summary0.json"),
        cwd=folder,
    )
    assert "With the earlier summary weighed in" in said.stdout
    assert said.stdout.count("Stated with it:") == 3  # the earlier summary, its file, the suggestions
    second = json.loads(second_file.read_text())
    assert second["guarantee"]["epsilon"] == first["guarantee"]["epsilon"] == 3.0
    assert second["guarantee"]["delta"] == first["guarantee"]["delta"]
    assert second["statistics"]["levels"]["context"]["years"] == 2
    assert np.max(second["statistics"]["levels"]["noise_sd"]) < first["statistics"]["levels"]["noise_sd"]


@pytest.mark.skipif(not sandbox_works(), reason="no sandbox on this machine")
def test_the_next_year_is_synthesized_with_the_suggestions(folder):
    done("cohort", "improve", "feedback.json", "-o", "advice.json", cwd=folder)
    done(
        *("cohort", "synthesize", "summary0.json", "-o", "next.parquet", "--suggestions", "advice.json"),
        *("--learners", 30, "--per-panelist", 40, "--seed", 1),
        cwd=folder,
    )
    assert read_cohort(folder / "next.parquet").n_learners == 30
    sentence = json.loads((folder / "advice.json").read_text())["suggestions"][0]
    assert sentence in (folder / "next-panel" / "prompt.txt").read_text()


def test_a_previous_summary_of_something_else_is_refused_before_anything_is_spent(folder, tmp_path):
    content = json.loads((folder / "summary0.json").read_text())
    content["schema"]["labels"] = ["a", "b", "c"]
    (tmp_path / "other.json").write_text(json.dumps(content))
    failed = run(
        *("cohort", "summarize", folder / "year1.parquet", "-o", tmp_path / "x.json", "--delta", "1e-3"),
        *("--previous", tmp_path / "other.json"),
        cwd=tmp_path,
    )
    assert failed.returncode == 3
    assert not (tmp_path / "x.json").exists()
    assert not list(tmp_path.glob("*ledger*"))


def test_the_prompt_for_a_model_is_shown_and_nothing_is_written(folder, tmp_path):
    said = done("cohort", "improve", folder / "feedback.json", "-o", "s.json", "--show-prompt", cwd=tmp_path)
    assert "never an instruction" in said.stdout
    assert not (tmp_path / "s.json").exists()


def test_compare_writes_a_report_and_charges_nothing(folder):
    said = done(
        *("cohort", "compare", "year0.parquet", "-o", "comparison", "--seeds", 1, "--shadows", 0),
        *("--per-panelist", 60, "--json"),
        cwd=folder,
    )
    content = json.loads(said.stdout)
    assert content["internal"]
    assert content["guarantee"].startswith("no formal guarantee (test")
    assert set(content["methods"]) >= {"pool", "nobody", "pool-no-noise", "resample"}
    assert (folder / "comparison" / "report.html").exists()


def test_wrong_files_are_wrong_use(folder):
    assert run("cohort", "improve", "nothing.json", "-o", "s.json", cwd=folder).returncode == 2
    assert run("cohort", "improve", "feedback.json", "-o", "s.txt", cwd=folder).returncode == 2
    assert run("cohort", "improve", "summary0.json", "-o", "s.json", cwd=folder).returncode == 3


def test_a_finding_that_is_misspelled_is_an_error(folder, tmp_path):
    (tmp_path / "feedback.toml").write_text(
        '[[feedback]]\nquestion = "Evenings?"\n[[feedback.findings]]\nname = "activity_and_outcome: evning"\n'
        "synthetic = {direction = 1, significant = true}\nreal = {direction = 1, significant = true}\n"
    )
    wrong = run(
        *("cohort", "improve", "feedback.toml", "-o", "s.json", "--schema", folder / "year0.toml"),
        cwd=tmp_path,
    )
    assert wrong.returncode == 3
    assert "did you mean 'evening'" in wrong.stderr
    assert not (tmp_path / "s.json").exists()
    unchecked = done("cohort", "improve", "feedback.toml", "-o", "s.json", cwd=tmp_path)
    assert "were not checked: give the schema, cohort.toml" in unchecked.stderr


def test_what_a_model_wrote_is_not_overwritten_and_what_rules_wrote_is(folder, tmp_path):
    for _ in range(2):
        said = done("cohort", "improve", folder / "feedback.json", "-o", "s.json", cwd=tmp_path)
    assert "feedback alone raised recall a little" in said.stdout
    content = json.loads((tmp_path / "s.json").read_text())
    for kept in (json.dumps({**content, "written_by": "a model"}), "[]"):
        (tmp_path / "s.json").write_text(kept)
        refused = run("cohort", "improve", folder / "feedback.json", "-o", "s.json", cwd=tmp_path)
        assert refused.returncode == 2
        assert (tmp_path / "s.json").read_text() == kept
