"""Plan files: drafted from a command, printed as a page to sign, run; nothing is spent before it is run."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from tests.support.command import run
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.spending import Account, Spending
from understudy.logs.reading import read_log
from understudy.logs.simulated.classroom import Classroom

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
    same = run(*plan, "--method", "markov", cwd=elsewhere)
    assert (same.returncode, "in place of" in same.stderr) == (0, False)
    other = run(*plan, "--accept-risk", "agreed", cwd=elsewhere)
    assert other.returncode == 0
    assert "These options override the plan: --accept-risk." in other.stderr
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
    page = (room / "plan.html").read_text()
    assert "It would be refused." in page
    assert "does not allow epsilon 8: 0 of 1 is spent; epsilon 1 would fit." in page


@pytest.mark.parametrize(
    ("released", "spending", "said"),
    [
        ("8c secret", ("--population", "8c secret"), "does not allow epsilon 8: 8 of 10 is spent"),
        ("8c secret", (), "does not allow epsilon 8"),
        ("copy", ("--population", "9d"), "knows these learners, or many of them, under another name"),
        (
            "copy",
            ("--population", "9d", "--other-learners", "--reason", "another school"),
            "same file: another school",
        ),
    ],
)
def test_a_plan_page_names_no_other_release_and_no_other_population(room, released, spending, said):
    """It may leave the house with its signatures; what is in the way is for the custodian."""
    file = room / "log.csv"
    if released == "copy":
        file = room / "copy-secret.csv"
        file.write_bytes((room / "log.csv").read_bytes())
    account = Account.open(
        Spending(population=None if released == "copy" else released), read_log(file).origin, simulated=False
    )
    with account.charge("release", "m", Guarantee(8.0)) as charge:
        pass
    asked = ("release", "log.csv", "-o", "b", "-m", "markov-dp:epsilon=8", "--public-actions", *spending)
    assert run(*asked, "--plan-page", "plan.html", cwd=room).returncode == 0
    page = (room / "plan.html").read_text()
    assert said in page
    assert charge.card not in page
    if "8c secret" not in spending:
        assert "secret" not in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[release]\npopulaton = 'x'", "did you mean 'population'?"),
        ("[release]\npublic-actions = true", "did you mean 'public_actions'?"),
        ("[release]\nactions = 'names.txt'", "did you mean 'actions_file'?"),
        ("[release]\nfor = 'steps'", "did you mean 'meant_for'?"),
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


def test_everything_that_is_decided_beforehand_is_in_a_plan(room):
    """Population, ledger, columns, method, risk, policy; grades and public names as they were declared."""
    (room / "books").mkdir()
    (room / "names.txt").write_text("a\n")
    (room / "grades.csv").write_text(
        "wer,was,Note\n" + "".join(f"p{n // 3},a,{1 + n % 6}\n" for n in range(60))
    )
    settings = {
        "population": "7b",
        "ledger": "books/l.ledger",
        "learner": "wer",
        "action": "was",
        "outcome": "Note",
        "pass_from": "<=4",
        "actions_file": "names.txt",
        "risk": "5 in 100",
        "meant_for": "shares",
        "custodian": "Example School",
    }
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    for long, short in (("pass-from", "pass"), ("actions-file", "actions"), ("meant-for", "for")):
        options = [option.replace(f"--{long}=", f"--{short}=") for option in options]
    drafted = run("release", "grades.csv", "-o", "b", *options, "--write-plan", "plan.toml", cwd=room)
    assert drafted.returncode == 0, drafted.stderr
    table = tomllib.loads((room / "plan.toml").read_text())["release"]
    assert table.items() >= settings.items()
    page = run("release", "--plan", room / "plan.toml", "--plan-page", room / "p.html", cwd=room.parent)
    assert page.returncode == 0, page.stderr
    assert "is a success up to 4, as declared" in page.stderr
    assert "books/l.ledger" in (room / "p.html").read_text()
    assert not (room / "books" / "l.ledger").exists()


def test_a_plan_that_is_there_is_not_overwritten(room):
    (room / "understudy.toml").write_text("mine")
    assert run(*COMMAND, "--write-plan", "understudy.toml", cwd=room).returncode == 2
    assert (room / "understudy.toml").read_text() == "mine"


def test_a_plan_keeps_how_dates_are_read(room):
    (room / "log.csv").write_text(
        "learner,action,date,correct\na,x,01/09/2024,1\na,y,02/09/2024,0\nb,x,03/09/2024,1\n"
    )
    asked = ("release", "log.csv", "-o", "b", "--public-actions", "--date-order", "day-first")
    drafted = run(*asked, "--write-plan", "understudy.toml", cwd=room)
    assert drafted.returncode == 0, drafted.stderr
    assert tomllib.loads((room / "understudy.toml").read_text())["release"]["date_order"] == "day-first"
    assert run("release", "--plan", "understudy.toml", "--plan-page", "p.html", cwd=room).returncode == 0


def test_a_plan_that_is_not_there_says_how_to_draft_one(room):
    refused = run("release", "--plan", "nope.toml", cwd=room)
    assert refused.returncode == 2
    assert (
        "check its path; a plan is drafted from the command that you would type (--write-plan)"
        in refused.stderr
    )


def test_a_time_that_only_orders_the_rows_is_not_declared_by_a_drafted_plan(room):
    """To name the time is to tell it."""
    text = (room / "log.csv").read_text().splitlines()
    timed = [f"{text[0]},time", *(f"{line},2024-05-01 10:00" for line in text[1:])]
    (room / "log.csv").write_text("\n".join(timed))
    drafted = run(*COMMAND, "--write-plan", "understudy.toml", cwd=room)
    assert drafted.returncode == 0, drafted.stderr
    assert "time" not in tomllib.loads((room / "understudy.toml").read_text())["release"]
    assert "--time time" not in drafted.stderr
    assert "name the column: --time." in drafted.stderr


def test_one_file_has_the_log_and_the_release(room):
    """Every command that reads a log takes what the plan says about it."""
    (room / "understudy.toml").write_text(
        '[release]\nout = "bundle"\nmethod = "markov-dp"\nsimulated = true\nfile = "log.csv"\n'
        '[log]\nlearner = "learner"\npublic_actions = true\n'
    )
    assert run("inspect", "log.csv", "--plan", "understudy.toml", cwd=room).returncode == 0
    page = run("release", "--plan", "understudy.toml", "--plan-page", "plan.html", cwd=room)
    assert page.returncode == 0, page.stderr
    assert "declared to be public" in (room / "plan.html").read_text()
    (room / "understudy.toml").write_text('[log]\nlearner = "pupil"\n')
    refused = run("inspect", "log.csv", "--plan", "understudy.toml", cwd=room)
    assert (refused.returncode, "'pupil'" in refused.stderr) == (3, True)
    declared = '[log]\n[[log.columns]]\nname = "x"\nof = "row"\nkind = "yes/no"\n'
    (room / "understudy.toml").write_text(declared)
    text = (room / "log.csv").read_text().splitlines()
    (room / "log.csv").write_text("\n".join([f"{text[0]},x", *(f"{line},1" for line in text[1:])]))
    twice = run(*COMMAND, "--plan", "understudy.toml", "--write-plan", "other.toml", cwd=room)
    assert (twice.returncode, "add the table [release]" in twice.stderr) == (2, True)
