"""`python -m reproductions.dp_rasch` as a person runs it."""

import contextlib
import csv
import io
import json
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from reproductions.command import run as run_app
from reproductions.dp_rasch import __main__ as command
from reproductions.dp_rasch import audit
from reproductions.dp_rasch.__main__ import app
from reproductions.dp_rasch.study import DifficultyPlan
from understudy.exams.simulate import Exam

pytestmark = pytest.mark.functional

CANARY = "Quetzalcoatl"


def run(*arguments, cwd):
    """Run the command in a folder, on classes of two sizes instead of five; a traceback is always a bug."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd):
        patch.setattr(command, "DifficultyPlan", partial(DifficultyPlan, sizes=(40, 80), epsilons=(1.0, 5.0)))
        patch.setattr(sys, "argv", ["reproductions.dp_rasch", *map(str, arguments)])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                run_app(app)
            except SystemExit as end:
                code = end.code or 0
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with a small exam whose students have names."""
    folder = tmp_path_factory.mktemp("room")
    correct = Exam(n_learners=24, n_items=5).simulate(np.random.default_rng(1)).responses.correct
    with open(folder / "exam.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["student", *(f"Q{i + 1}" for i in range(5))])
        for n, row in enumerate(correct):
            writer.writerow([f"{CANARY}{n}", *row])
    return folder


@pytest.fixture(scope="module")
def done(room):
    options = ("--repetitions", 2, "--bootstrap", 2, "--data", "exam.csv")
    return run("study", "-o", "study", *options, cwd=room)


def test_a_study_prints_tables_and_says_what_it_is(done):
    assert done.returncode == 0, done.stderr
    assert "not private" in done.stdout
    assert "Internal: computed from real learners" in done.stdout
    assert "Guarantee: no formal guarantee (test)." in done.stdout
    assert "study/report.html" in done.stdout


def test_results_are_tidy(done, room):
    with open(room / "study" / "results.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("experiment", "data", "method", "epsilon", "n_learners"),
        *("measure", "mean", "low", "high", "repetitions", "sd"),
    ]
    assert {row["experiment"] for row in rows} == {"1", "2", "3"}
    assert {row["data"] for row in rows} == {"simulated", "exam"}
    assert {row["n_learners"] for row in rows if row["data"] == "exam"} == {"8", "16", "24"}
    assert {row["repetitions"] for row in rows} == {"2"}


def test_no_student_is_in_anything_that_comes_out(done, room):
    assert CANARY not in done.stdout + done.stderr
    for path in (room / "study").rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path.name


def test_machines_get_json(room):
    options = ("--repetitions", 2, "--seed", 3, "--json")
    done = run("study", "-o", "simulated", *options, cwd=room)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["guarantee"] == "no formal guarantee (test)"
    assert not told["internal"]
    assert {row["experiment"] for row in told["results"]} == {1, 2}
    page = (room / "simulated" / "report.html").read_text(encoding="utf-8")
    assert "Simulated data" in page


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("-o", "new", "--repetitions", 1), 2, "an interval takes 2 at least"),
        (("-o", "nowhere/new"), 2, "no folder nowhere"),
        (
            ("-o", "new", "--data", "exam.csv", "--data", "exam.csv"),
            2,
            "two files of --data are called 'exam'",
        ),
        (("-o", "new", "--data", "absent.csv"), 2, "absent.csv"),
    ],
)
def test_wrong_use_is_told_before_the_work(room, options, code, words):
    done = run("study", *options, cwd=room)
    assert done.returncode == code
    assert words in done.stderr
    assert "Hint:" in done.stderr
    assert not (room / "new").exists()


def test_a_folder_with_something_in_it_is_refused(done, room):
    again = run("study", "-o", "study", cwd=room)
    assert again.returncode == 2
    assert "not empty" in again.stderr


def test_the_audit_prints_claims_and_what_was_found(monkeypatch):
    findings = [
        audit.Finding("a published one", "3 items", 1.0, 6.5, audit.BREAKS, "a story"),
        audit.Finding("an infinite one", "any class", 1.0, float("inf"), audit.BREAKS, "a story"),
        audit.Finding("ours", "5 items", 1.0, 0.9, audit.HOLDS, "a story"),
    ]

    def run_audit(progress=None):
        if progress:
            progress("a mechanism")
        return findings

    monkeypatch.setattr(audit, "run_audit", run_audit)
    result = CliRunner().invoke(app, ["audit"])
    assert result.exit_code == 0
    for words in ("6.50", "inf", "0.90", "breaks its claim", "holds as far as shown"):
        assert words in result.output
    told = json.loads(CliRunner().invoke(app, ["audit", "--json"]).stdout)
    assert [finding["found"] for finding in told["findings"]] == [6.5, None, 0.9]


@pytest.mark.parametrize("verb", ["study", "audit"])
def test_help_has_an_example_and_json(verb, tmp_path):
    done = run(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"Example: python -m reproductions.dp_rasch {verb}" in " ".join(done.stdout.split())
    assert "--json" in done.stdout
