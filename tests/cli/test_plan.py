"""Plan files: drafted from a command, printed as a page to sign, run; nothing is spent before it is run."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from tests.support.command import run
from understudy.core.privacy.ledger import Ledger
from understudy.logs.simulate import Classroom

pytestmark = pytest.mark.functional

COMMAND = (
    *(
        "release",
        "log.csv",
        "-o",
        "bundle",
        "-m",
        "markov",
        "--accept-risk",
        "a pilot",
        "--population",
        '7b "A"',
    ),
    *("--publish-figures", "--seed", "3"),
)


@pytest.fixture
def room(tmp_path):
    log = Classroom(n_learners=24, n_actions=5).simulate(np.random.default_rng(3))
    log.to_polars("pupil-").write_csv(tmp_path / "log.csv")
    return tmp_path


def test_a_plan_is_drafted_read_and_run_as_the_command_would_be(room, tmp_path_factory, monkeypatch):
    calls = []
    monkeypatch.setattr("understudy.cli.logs.release_log", lambda *given: calls.append(given))
    monkeypatch.setattr("understudy.cli.logs.show", lambda *given: None)
    drafted = run(*COMMAND, "--write-plan", "understudy.toml", cwd=room)
    assert drafted.returncode == 0, drafted.stderr
    assert "Nothing was spent." in drafted.stdout
    assert sorted(path.name for path in room.iterdir()) == ["log.csv", "understudy.toml"]
    table = tomllib.loads((room / "understudy.toml").read_text())["release"]
    assert table == {
        "file": "log.csv",
        "out": "bundle",
        "method": "markov",
        "format": "csv",
        "learner": "learner",
        "action": "action",
        "outcome": "outcome",
        "population": '7b "A"',
        "accept_risk": "a pilot",
        "publish_figures": True,
    }
    # From another folder: paths are those of the plan. What is typed wins, and a seed is in no plan.
    assert run(*COMMAND, cwd=room).returncode == 0
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    plan = ("release", "--plan", room / "understudy.toml", "--seed", 3)
    assert run(*plan, cwd=elsewhere).returncode == 0
    assert run(*plan, "--accept-risk", "agreed", cwd=elsewhere).returncode == 0
    (typed, planned, changed) = calls
    assert planned[0].origin.path == room / "log.csv"
    assert (planned[1], planned[2:]) == (room / "bundle", typed[2:])
    assert changed[3] == replace(typed[3], accept_risk="agreed")


@pytest.mark.parametrize("method", ["markov-dp:epsilon=4", "markov"])
def test_a_plan_that_was_not_run_is_a_page_and_costs_nothing(room, method):
    asked = (
        "release",
        "log.csv",
        "-o",
        "bundle",
        "-m",
        method,
        "--public-actions",
        "--plan-page",
        "plan.html",
    )
    assert run(*asked, cwd=room).returncode == 0
    page = (room / "plan.html").read_text()
    for part in ("not carried out", "learners of the file log.csv", "Data-protection officer", "signature"):
        assert part in page
    assert ("This costs epsilon 4 of 10" in page) is (method != "markov")
    assert "pupil-" not in page
    assert sorted(path.name for path in room.iterdir()) == ["log.csv", "plan.html"]


def test_a_plan_that_the_ledger_would_refuse_says_so(room):
    Ledger(room / "understudy.ledger").set_limit("learners of this folder", 1.0)
    asked = (
        "release",
        "log.csv",
        "-o",
        "b",
        "-m",
        "markov-dp",
        "--public-actions",
        "--plan-page",
        "plan.html",
    )
    assert run(*asked, cwd=room).returncode == 0
    assert "It would be refused." in (room / "plan.html").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[release]\npopulaton = 'x'", "did you mean 'population'?"),
        ("[release]\nyes = true", "not an option of it"),
        ("[release]\nseed = 3", "not an option of it"),
        ("[synthesize]\nrisk = 'x'", "has no table [release]"),
        ("[release", "is not TOML"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused(room, content, said):
    (room / "understudy.toml").write_text(content)
    refused = run("release", "--plan", "understudy.toml", cwd=room)
    assert refused.returncode == 3
    assert said in refused.stderr


def test_a_plan_that_is_there_is_not_overwritten(room):
    (room / "understudy.toml").write_text("mine")
    assert run(*COMMAND, "--write-plan", "understudy.toml", cwd=room).returncode == 2
    assert (room / "understudy.toml").read_text() == "mine"
