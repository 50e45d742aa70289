"""The desk by its commands, as custodians and researchers type them."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import typer.main
from sqlalchemy import text, update
from typer.testing import CliRunner

from tests.desk.support.fixtures import POLICY, InProcess, fill, school_frame, write_real
from tests.support.command import run
from understudy.cli.app import app
from understudy.cli.desk import app as desk_commands
from understudy.cohorts.simulate import SCHEMA
from understudy.desk.domain.people import Role
from understudy.desk.domain.policy import Policy
from understudy.desk.private import Schema
from understudy.desk.researcher.client import DeskClient
from understudy.desk.service import Desk, accounts, feedback, tokens
from understudy.desk.store.settings import Settings
from understudy.desk.store.tables import EventRow, ReleaseRow
from understudy.errors import DataError, MissingError, RefusedError, UsageError
from understudy.sandbox import require_sandbox

pytestmark = pytest.mark.functional

COMMAND = [sys.executable, "-c", "from understudy.cli import main; main()"]


def invoked(*arguments, given=None):
    """The command in this process: its result, or the error that becomes a sentence."""
    done = CliRunner().invoke(app, [str(one) for one in arguments], input=given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done


def as_json(*arguments, given=None):
    return json.loads(invoked(*arguments, "--json", given=given).stdout)


def needs_sandbox():
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(error.message)


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "data").mkdir()
    write_real(school_frame(1), tmp_path / "data" / "real.parquet")
    school_frame(2).write_parquet(tmp_path / "data" / "synthetic.parquet")
    return tmp_path / "data" / "real.parquet", tmp_path / "data" / "synthetic.parquet"


PRIVATE_START = """EPSILON = 1.0


def analyze(ask):
    ask.mean("evening_01")
"""


@pytest.fixture
def answered(tmp_path):
    """A desk with a released request."""
    made = fill(tmp_path)
    made.name = made.released()
    yield made
    made.desk.close()


# --- init ----------------------------------------------------------------------------------------


def test_three_questions_leave_a_desk_that_works(tmp_path, tables):
    folder = tmp_path / "desk"
    done = invoked("desk", "init", folder, given=f"Our desk\nme@school.example\n{tables[0]}\n{tables[1]}\n")
    assert f"Researchers can download: {tables[1]}. Nobody can download: {tables[0]}." in done.output
    assert "No private summary was given" in done.output
    assert folder.stat().st_mode & 0o077 == 0
    (link,) = re.findall(r"http://127\.0\.0\.1:8765/invitation/(\S+)", done.output)
    desk = Desk.open(folder)
    person = accounts.accept(desk, link, "walnut-kettle-orchard")
    desk.close()
    assert (person.name, person.role) == ("me", Role.CUSTODIAN)
    assert str(tables[0].parent) not in json.dumps(as_json("desk", "data", "list", "--desk", folder))
    (data,) = as_json("desk", "data", "list", "--desk", folder)
    assert (data["learners"], data["requests"], data["simulated"]) == (36, 0, True)
    assert Policy.read(folder / "policy.toml") == Policy()
    with pytest.raises(UsageError, match="already"):
        invoked("desk", "init", folder, given="a\nb@c.example\n\n")


def test_every_line_of_the_policy_is_explained(tmp_path):
    chosen = Policy(minimum_learners=20, may_override=("extremes",))
    (tmp_path / "policy.toml").write_text(chosen.to_toml())
    assert Policy.read(tmp_path / "policy.toml") == chosen
    assert Policy.from_json(chosen.to_json()) == chosen
    lines = chosen.to_toml().splitlines()
    for name in vars(chosen):
        place = next(place for place, line in enumerate(lines) if line.startswith(f"{name} = "))
        assert lines[place - 1].startswith("# ")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("minimum_learners = 0", "line 1: `minimum_learners` is not above 0"),
        ("minimum_learners = 1.5", "`minimum_learners` is not a whole number"),
        ("advantage_limit = 1.5", "`advantage_limit` is above 1"),
        ("libraries = [1]", "`libraries`"),
        ("run_seconds = true", "`run_seconds` is not a number"),
        ("mu_limits = 1", "unknown key 'mu_limits'"),
        ("mu_limit = ", "line 1, column 12, in `mu_limit`, has no value"),
        ("mu_limit = [", "is not TOML"),
    ],
)
def test_a_policy_that_is_not_one_is_refused_with_its_line(tmp_path, line, words):
    (tmp_path / "policy.toml").write_text(line + "\n")
    with pytest.raises(DataError, match=words):
        Policy.read(tmp_path / "policy.toml")


@pytest.mark.parametrize("line", ['titel = "A"', "title = 1", '[mail]\nhots = "a"', "mail = 1"])
def test_settings_that_are_none_are_refused_with_their_line(tmp_path, line):
    Settings.write(tmp_path / "desk", "A")
    (tmp_path / "desk" / "desk.toml").write_text(line + "\n")
    with pytest.raises(DataError, match=r"desk.toml, line \d"):
        Settings.read(tmp_path / "desk")


@pytest.mark.parametrize(
    ("options", "given", "words"),
    [
        ([], "", "a question was not answered"),
        (["--title", "A", "--email", "me@school.example"], "no-such.csv\n", "no file no-such.csv"),
        (["--title", "A", "--email", "no address", "--no-data"], "", "not an e-mail address"),
        (["--title", "A", "--email", "me@school.example", "--real", "nowhere.csv"], "", "only one was given"),
    ],
)
def test_init_without_answers_says_what_to_give_and_leaves_nothing(tmp_path, options, given, words):
    with pytest.raises(UsageError, match=words):
        invoked("desk", "init", tmp_path / "desk", *options, given=given)
    assert not (tmp_path / "desk").exists()
    # The same folder can be tried again.
    invoked("desk", "init", tmp_path / "desk", "--title", "A", "--email", "me@school.example", "--no-data")


def test_a_wrong_answer_is_asked_again_at_a_terminal(tmp_path, tables, monkeypatch):
    from understudy.cli.desk import setup

    monkeypatch.setattr(setup, "at_a_terminal", lambda: True)
    real, synthetic = tables
    (synthetic.parent / "notes.txt").write_text("no table")
    answers = ["Our desk", "nobody", "me@school.example", "nowhere.csv", f"'{real}'"]
    answers += [real.parent / "notes.txt", real, synthetic]
    done = invoked("desk", "init", tmp_path / "desk", given="".join(f"{one}\n" for one in answers))
    for words in (
        "not an e-mail address",
        "no file nowhere.csv",
        "notes.txt is not a table",
        "the real table itself",
    ):
        assert words in done.output
    assert as_json("desk", "data", "list", "--desk", tmp_path / "desk")[0]["learners"] == 36


def test_init_that_is_stopped_leaves_nothing(tmp_path, tables, monkeypatch):
    from understudy.cli.desk import setup
    from understudy.desk.service import data_sets

    # Ctrl-C at a question (an end of the input looks the same), and later.
    monkeypatch.setattr(setup, "at_a_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("Our desk\n"))
    asked = run("desk", "init", tmp_path / "desk", cwd=tmp_path)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(data_sets, "register", interrupt)
    options = ["--title", "A", "--email", "me@school.example", "--real", tables[0], "--synthetic", tables[1]]
    later = run("desk", "init", tmp_path / "desk", *options, cwd=tmp_path)
    for done in (asked, later):
        assert done.returncode == 130
        assert "Stopped." in done.stderr
        assert "Nothing was made." in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"data"}


# --- people and data -----------------------------------------------------------------------------


def test_people_by_command(tmp_path):
    folder = tmp_path / "desk"
    invoked("desk", "init", folder, "--title", "A", "--email", "me@school.example", "--no-data")
    at = ("--desk", folder)
    link = as_json("desk", "user", "add", "ada@uni.example", "--name", "Ada", *at)["invitation"]
    with pytest.raises(UsageError, match="no role"):
        invoked("desk", "user", "add", "b@uni.example", "--role", "king", *at)
    invoked("desk", "user", "remove", "ada@uni.example", *at)
    listed = {one["email"]: one for one in as_json("desk", "user", "list", *at)}
    assert listed["ada@uni.example"] == {
        "name": "Ada",
        "email": "ada@uni.example",
        "role": "researcher",
        "active": False,
        "invited": True,
    }
    assert "invited" in invoked("desk", "user", "list", *at).output
    again = as_json("desk", "user", "reset", "ada@uni.example", *at)["invitation"]
    assert again != link
    desk = Desk.open(folder)
    with pytest.raises(UsageError):
        accounts.invited(desk, link.rsplit("/", 1)[1])
    assert accounts.accept(desk, again.rsplit("/", 1)[1], "walnut-kettle-orchard").name == "Ada"
    desk.close()
    with pytest.raises(RefusedError, match="there is an account") as error:
        invoked("desk", "user", "add", "Ada@uni.example", *at)
    assert "desk user reset Ada@uni.example" in error.value.hint
    with pytest.raises(UsageError, match="no account"):
        invoked("desk", "user", "reset", "eve@uni.example", *at)


def test_data_by_command(tmp_path, tables):
    folder = tmp_path / "desk"
    invoked("desk", "init", folder, "--title", "A", "--email", "me@school.example", "--no-data")
    at = ("--desk", folder)
    name = as_json("desk", "data", "add", *tables, "--title", "Autumn", *at)["name"]
    (tmp_path / "new.toml").write_text("minimum_learners = 17\n")
    assert (
        as_json("desk", "data", "policy", name, "--file", tmp_path / "new.toml", *at)["minimum_learners"]
        == 17
    )
    assert "minimum_learners = 17" in invoked("desk", "data", "policy", name, *at).output
    # A learner's name comes by the standard input or a file, and is not repeated.
    learner = school_frame(1)["learner"][0]
    done = invoked("desk", "data", "withdraw-learner", name, *at, given=f"{learner}\n")
    assert learner not in done.output
    assert "35 learners" in done.output
    (tmp_path / "who.txt").write_text("nobody of this name")
    with pytest.raises(UsageError, match="no learner") as error:
        invoked("desk", "data", "withdraw-learner", name, "--learner-file", tmp_path / "who.txt", *at)
    assert "nobody of this name" not in str(error.value)
    with pytest.raises(UsageError, match="one learner"):
        invoked("desk", "data", "withdraw-learner", name, *at, given="a\nb\n")
    invoked("desk", "data", "close", name, *at)
    assert as_json("desk", "data", "list", *at)[0]["closed"] is True
    assert "closed" in invoked("desk", "data", "list", *at).output
    with pytest.raises(UsageError, match="is not a table"):
        invoked("desk", "data", "add", tmp_path / "new.toml", tables[1], "--title", "Another", *at)
    invoked("desk", "data", "remove", name, *at)
    assert as_json("desk", "data", "list", *at) == []


def declared(folder):
    path = folder / "cohort.toml"
    path.write_text(SCHEMA.to_toml())
    return path


def test_a_schema_by_command(tmp_path, tables):
    invoked("desk", "init", tmp_path / "desk", "--title", "T", "--email", "c@school.example", "--no-data")
    at = ("--desk", tmp_path / "desk")
    later = as_json("desk", "data", "add", *tables, "--title", "Later", *at)["name"]
    assert "no public schema" in invoked("desk", "data", "schema", later, *at).stdout
    first = as_json("desk", "data", "add", *tables, "--title", "A", "--schema", declared(tmp_path), *at)[
        "name"
    ]
    shown = invoked("desk", "data", "schema", later, "--file", declared(tmp_path), *at).stdout
    assert "0 to 600" in shown
    assert "low, average, high" in shown
    assert as_json("desk", "data", "schema", first, *at) == as_json("desk", "data", "schema", later, *at)
    with pytest.raises(UsageError, match="no file"):
        invoked("desk", "data", "schema", later, "--file", tmp_path / "none.toml", *at)


@pytest.fixture
def quick_sandbox(monkeypatch):
    monkeypatch.setattr("understudy.sandbox.Sandbox", InProcess)


def test_private_questions_are_tried_at_home(tmp_path, tables, quick_sandbox):
    code = tmp_path / "private.py"
    invoked("desk", "template", "--private", "-o", code)
    with pytest.raises(UsageError, match="public bounds"):
        invoked("desk", "try", code, tables[1])
    tried = invoked("desk", "try", code, tables[1], "--schema", declared(tmp_path)).stdout
    assert "What is the mean of evening_01" in tried
    assert "too wide to be of use" in tried
    assert "All of it would cost epsilon 1" in tried
    given = as_json("desk", "try", code, tables[1], "--schema", declared(tmp_path))
    assert given["epsilon"] == 1.0
    assert len(given["answers"][0]["estimates"]) == 3
    # As a desk serves it.
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(Schema.of_cohort(SCHEMA).to_json()))
    assert as_json("desk", "try", code, tables[1], "--schema", schema) == given
    code.write_text(PRIVATE_START.replace("evening_01", "evening"))
    with pytest.raises(DataError, match="not taken") as caught:
        invoked("desk", "try", code, tables[1], "--schema", declared(tmp_path))
    code.write_text(PRIVATE_START.replace("ask.mean", "ask.maximum"))
    with pytest.raises(DataError, match="AttributeError in line 5") as missing:
        invoked("desk", "try", code, tables[1], "--schema", declared(tmp_path))
    assert "help(" in missing.value.hint
    assert "no column 'evening'. Did you mean 'evening_0" in caught.value.hint


def test_the_certificate_of_private_answers_by_command(tmp_path):
    made = fill(tmp_path, schema=True)
    with made.desk.database.reading() as session:
        made.answered(PRIVATE_START)
        document = session.query(ReleaseRow).one().document
    made.desk.close()
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(document))
    said = invoked("desk", "certificate", path).stdout
    assert (
        "Guaranteed: epsilon 1, delta 1.00e-06 for a learner with all their rows (replace one learner" in said
    )
    assert "1. What is the mean of evening_01" in said
    assert "not a guarantee" not in said


@pytest.mark.parametrize("words", ["data list", "user list", "verify", "status", "work", "serve"])
def test_without_a_desk_a_sentence(tmp_path, words):
    with pytest.raises(UsageError, match="there is no desk") as error:
        invoked("desk", *words.split(), "--desk", tmp_path / "nowhere")
    assert "desk init" in error.value.hint


# --- verifying -----------------------------------------------------------------------------------


def test_verify_and_what_it_finds(answered):
    folder = answered.desk.settings.folder
    found = as_json("desk", "verify", "--desk", folder)
    assert found["n_releases"] == 1
    assert found["n_events"] > 5
    assert as_json("desk", "verify", "--known", found["newest"], "--desk", folder) == found
    with pytest.raises(UsageError, match="this is not a hash"):
        invoked("desk", "verify", "--known", "abc", "--desk", folder)
    with pytest.raises(DataError, match="kept elsewhere"):
        invoked("desk", "verify", "--known", "f" * 64, "--desk", folder)
    ledger = folder / "understudy.ledger"
    ledger.rename(folder / "gone.ledger")
    with pytest.raises(DataError, match="0 times in the ledger"):
        invoked("desk", "verify", "--desk", folder)
    (folder / "gone.ledger").rename(ledger)
    with answered.desk.database.writing() as session:
        session.execute(update(ReleaseRow).values(certificate="0" * 16))
    with pytest.raises(DataError, match="0 times in the ledger"):
        invoked("desk", "verify", "--desk", folder)
    with answered.desk.database.writing() as session:
        # Who can write the database's schema can do this; the chain is for them.
        session.execute(text("DROP TRIGGER events_no_update"))
        session.execute(update(EventRow).where(EventRow.action == "approve").values(who="somebody else"))
    with pytest.raises(DataError, match="the log is broken"):
        invoked("desk", "verify", "--desk", folder)


def test_a_certificate_can_be_checked_by_anybody(answered, tmp_path):
    from understudy.desk.domain.certificate import public_key

    with answered.desk.database.reading() as session:
        document = session.query(ReleaseRow).one().document
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(document))
    key = public_key(answered.desk.settings.secret)
    assert as_json("desk", "certificate", path, "--key", key)["key_given"] is True
    told = invoked("desk", "certificate", path)
    assert "How many minutes in the evening?" in told.output
    assert "anyone can sign" in told.output
    assert "These learners are simulated" in told.output
    assert f"Hash of the code that was run: {document['code_hash']}" in told.output
    assert re.search(r"^mean minutes: [\d.]+$", told.output, re.MULTILINE)
    assert re.search(
        r"Measured price of this answer \(upper end.*\): mu [\d.]+, advantage [\d.]+\.", told.output
    )
    assert "not a guarantee" in told.output
    with pytest.raises(UsageError, match="this is not a key"):
        invoked("desk", "certificate", path, "--key", "abc")
    with pytest.raises(DataError, match="changed"):
        invoked("desk", "certificate", path, "--key", "11" * 32)
    path.write_text(json.dumps({**document, "question": "Another one?"}))
    with pytest.raises(DataError, match="changed"):
        invoked("desk", "certificate", path)
    for content in ("[]", "{", "{}"):
        path.write_text(content)
        with pytest.raises(DataError):
            invoked("desk", "certificate", path)


def test_backup_and_restore_by_command(answered, tmp_path):
    folder = answered.desk.settings.folder
    before = as_json("desk", "verify", "--desk", folder)
    invoked("desk", "backup", tmp_path / "backup.tar.gz", "--desk", folder)
    invoked("desk", "restore", tmp_path / "backup.tar.gz", "--desk", tmp_path / "again")
    assert as_json("desk", "verify", "--desk", tmp_path / "again") == before
    with pytest.raises(UsageError, match="exists already") as error:
        invoked("desk", "backup", tmp_path / "backup.tar.gz", "--desk", folder)
    assert "-o" not in error.value.hint


def test_status_from_inside_counts_and_tells_nothing_else(answered):
    folder = answered.desk.settings.folder
    told = as_json("desk", "status", "--desk", folder)
    assert told["states"]["released"] == 1
    assert sum(told["states"].values()) == 1
    assert "1  released" in invoked("desk", "status", "--desk", folder).output
    with pytest.raises(UsageError, match="only to its owner"):
        invoked("desk", "status", answered.name, "--desk", folder)


def test_data_with_requests_stays(answered):
    with pytest.raises(RefusedError, match="requests about this"):
        invoked("desk", "data", "remove", answered.data_set, "--desk", answered.desk.settings.folder)


def test_feedback_needs_something_to_compare(answered, tmp_path):
    folder = answered.desk.settings.folder
    arguments = ("desk", "feedback", answered.data_set, "--desk", folder, "-o")
    with pytest.raises(UsageError, match="anything to compare"):
        invoked(*arguments, tmp_path / "feedback.json")
    with pytest.raises(UsageError, match="json"):
        invoked(*arguments, tmp_path / "feedback.toml")
    feedback.report(answered.desk, answered.researcher, answered.name, 1.0, "As expected.")
    with pytest.raises(UsageError, match="anything to compare"):
        # Nothing was said of the synthetic data, and there is no test in the answer.
        invoked(*arguments, tmp_path / "feedback.json")


# --- researchers ---------------------------------------------------------------------------------


@pytest.mark.sandbox
def test_try_shows_what_the_desk_will_see(tmp_path):
    """The template as it is printed, by the sandbox, on synthetic learners."""
    needs_sandbox()
    from understudy.cohorts.simulate import School

    School(30).simulate(0, np.random.default_rng(3)).to_polars().write_parquet(tmp_path / "synthetic.parquet")
    invoked("desk", "template", "-o", tmp_path / "analysis.py")
    told = as_json("desk", "try", tmp_path / "analysis.py", tmp_path / "synthetic.parquet")
    assert set(told["results"]["values"]["evening and achievement"]) == {"rho", "p"}
    assert told["reading"]["imports"] == ["scipy"]
    assert {check["name"] for check in told["checks"]} >= {"learners", "dominance", "digits"}
    (tmp_path / "broken.py").write_text("def analyze(data):\n    return data['secret column'].mean()\n")
    with pytest.raises(DataError, match=r"line 2 of broken.py asks for the column 'secret column'"):
        invoked("desk", "try", tmp_path / "broken.py", tmp_path / "synthetic.parquet")
    # Of many runs only the first is waited for.
    (tmp_path / "slow.py").write_text(
        "import time\n\n\ndef analyze(data):\n    time.sleep(60)\n    return 1\n"
    )
    (tmp_path / "policy.toml").write_text("run_seconds = 1\n")
    with pytest.raises(DataError, match=r"slow.py took longer than 1 second, which is what a desk allows"):
        invoked(
            "desk",
            "try",
            tmp_path / "slow.py",
            tmp_path / "synthetic.parquet",
            "--policy",
            tmp_path / "policy.toml",
        )


@pytest.mark.parametrize(
    ("code", "words", "hint"),
    [
        ("def analyse(data):\n    return 1\n", "no function analyze.* defines: analyse", "def analyze"),
        (
            "def analyze(data):\n    return (1\n",
            "line 2 of a.py is not Python: '\\(' was never closed",
            "correct",
        ),
        ("def analyze(data):\n    data['evening_01'].mean()\n", "analyze returned nothing", "return {...}"),
        ("def analyze(data):\n    return {}\n", "analyze returned nothing", "return {...}"),
        ("def analyze(data):\n    return data['evening_1'].mean()\n", "column 'evening_1'", "evening_01"),
        ("def analyze(data):\n    return data.evening_1.mean()\n", "column 'evening_1'", "evening_01"),
        ("def analyze(data):\n    return data.groupby('form').mean()\n", "column 'form'", "it has: learner"),
        ("import no_such_library\n\ndef analyze(data):\n    return 1\n", "imports no_such_library", "pandas"),
        (
            "def analyze(data):\n    return open('/nowhere').read()\n",
            "line 2 of a.py reads a file",
            "parameter",
        ),
        ("def analyze(data):\n    return 1 / 0\n", "ZeroDivisionError in line 2", "own Python"),
    ],
)
def test_what_is_wrong_at_home_is_said_in_words(tmp_path, monkeypatch, code, words, hint):
    from understudy import sandbox

    monkeypatch.setattr(sandbox, "Sandbox", InProcess)
    school_frame(2).write_csv(tmp_path / "synthetic.csv")
    (tmp_path / "a.py").write_text(code)
    with pytest.raises(DataError, match=words) as error:
        invoked("desk", "try", tmp_path / "a.py", tmp_path / "synthetic.csv")
    assert hint in error.value.hint


def test_an_answer_that_holds_nothing_fails_its_trial(tmp_path):
    made = fill(tmp_path)
    name = made.submitted("def analyze(data):\n    data['evening_01'].mean()\n")
    made.work()
    assert made.state(name) == "returned"
    made.desk.close()


def test_checks_that_would_take_long_are_left_to_the_desk(tmp_path, monkeypatch):
    from understudy import sandbox
    from understudy.desk.researcher import local_trial

    monkeypatch.setattr(sandbox, "Sandbox", InProcess)
    monkeypatch.setattr(local_trial, "MOST_SECONDS", 0.0)
    school_frame(2).write_csv(tmp_path / "synthetic.csv")
    (tmp_path / "a.py").write_text("def analyze(data):\n    return {'mean': data['evening_01'].mean()}\n")
    told = invoked("desk", "try", tmp_path / "a.py", tmp_path / "synthetic.csv").output
    assert "too long to make the checks here" in told
    assert "mean: " in told


def test_results_are_printed_as_a_person_reads_them(tmp_path, monkeypatch):
    """In this process, since the sandbox is not what this is about."""
    from understudy import sandbox

    monkeypatch.setattr(sandbox, "Sandbox", InProcess)
    school_frame(2).write_csv(tmp_path / "synthetic.csv")
    (tmp_path / "analysis.py").write_text(
        "import pandas as pd\n\n\ndef analyze(data):\n"
        "    late = data[data['evening_01'] > 60]\n"
        "    by = data.groupby('achievement')['evening_01'].mean().reset_index()\n"
        "    return {'largest': data['evening_01'].max(), 'late': {'learners': len(late)}, 'by group': by}\n"
    )
    told = invoked("desk", "try", tmp_path / "analysis.py", tmp_path / "synthetic.csv").output
    assert re.search(r"^late / learners: \d+$", told, re.MULTILINE)
    assert "by group" in told
    assert "line 5, picks" in told
    assert "line 7, depends on single learners" in told
    assert re.search(r"^  (review|fail) +extremes", told, re.MULTILINE)
    assert "This would be held" in told
    # The largest as it is, and as it would leave.
    assert re.search(r"^largest: [\d.]+ \([\d.]+\)$", told, re.MULTILINE)


def test_a_token_is_not_sent_in_the_clear_nor_forgotten(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text("def analyze(data):\n    return 1\n")
    ask = ("desk", "submit", tmp_path / "a.py", "--data", "x", "--question", "Is it so?", "--url")
    monkeypatch.delenv("UNDERSTUDY_TOKEN", raising=False)
    with pytest.raises(UsageError, match="no token"):
        invoked(*ask, "https://desk.example")
    monkeypatch.setenv("UNDERSTUDY_TOKEN", "desk_secret")
    with pytest.raises(RefusedError, match="plain http"):
        invoked(*ask, "http://desk.example")
    with pytest.raises(UsageError, match="not the address"):
        invoked(*ask, "desk.example")
    with pytest.raises(MissingError, match="does not answer") as error:
        invoked(*ask, "http://127.0.0.1:9")
    assert "desk_secret" not in str(error.value)


# --- serving -------------------------------------------------------------------------------------


def test_pages_are_not_served_to_others_in_the_clear(tmp_path):
    invoked("desk", "init", tmp_path / "desk", "--title", "A", "--email", "me@school.example", "--no-data")
    for host in ("0.0.0.0", "192.168.1.2", "::", "school.example"):
        with pytest.raises(RefusedError, match="plain http"):
            invoked("desk", "serve", "--desk", tmp_path / "desk", "--host", host)


def test_a_port_that_is_taken_is_said_first(tmp_path):
    import socket

    invoked("desk", "init", tmp_path / "desk", "--title", "A", "--email", "me@school.example", "--no-data")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(
            app, ["desk", "serve", "--desk", str(tmp_path / "desk"), "--port", str(port)]
        )
    assert isinstance(done.exception, UsageError)
    assert f"another program listens at 127.0.0.1:{port} already" in str(done.exception)
    assert done.output == ""


@pytest.mark.sandbox
def test_from_a_submission_to_a_review_by_commands(tmp_path):
    """Web and worker together, by real processes; Ctrl-C ends both."""
    needs_sandbox()
    made = fill(tmp_path, policy=replace(POLICY, private_without_review=True), schema=True)
    folder = made.desk.settings.folder
    (tmp_path / "questions.py").write_text(PRIVATE_START)
    token = tokens.make_token(made.desk, made.researcher, "a test")
    (tmp_path / "token").write_text(token + "\n")
    (tmp_path / "analysis.py").write_text(
        "def analyze(data):\n    return {'mean': data['evening_01'].mean()}\n"
    )
    port = _free_port()
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen(
            [*COMMAND, "desk", "serve", "--desk", str(folder), "--port", str(port)],
            stderr=log,
            stdout=log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    url = f"http://127.0.0.1:{port}"
    access = ("--url", url, "--token-file", tmp_path / "token")
    try:
        name = _patiently(
            lambda: as_json(
                "desk", "submit", tmp_path / "analysis.py", "--data", "a SCHOOL",
                "--question", "How many minutes on average?", "--shown", "About twenty.", *access,
            )
        )["name"]  # fmt: skip
        _patiently(lambda: _state_is("in review", as_json("desk", "status", name, *access)))
        assert "in review" in invoked("desk", "status", *access).output
        # Private questions: by the policy of this desk nobody has to read them.
        private = as_json(
            "desk", "submit", tmp_path / "questions.py", "--data", "a school",
            "--question", "How many minutes on average, with a guarantee?", *access,
        )["name"]  # fmt: skip
        _patiently(lambda: _state_is("released", as_json("desk", "status", private, *access)))
        said = invoked("desk", "status", private, *access).output
        assert "1. What is the mean of evening_01 (cut to 0 to 600)?" in said
        with DeskClient(url, token) as client:
            assert client.schema("A school")["columns"][-1]["values"] == ["low", "average", "high"]
            assert client.request(private)["private"]["answers"][0]["estimates"]
        with pytest.raises(UsageError, match="no data set"):
            invoked(
                "desk",
                "submit",
                tmp_path / "analysis.py",
                "--data",
                "0" * 16,
                "--question",
                "Is it so?",
                *access,
            )
        (tmp_path / "wrong").write_text("desk_wrong")
        with pytest.raises(UsageError, match="does not know this token"):
            invoked("desk", "status", "--url", url, "--token-file", tmp_path / "wrong")
        worker, _ = _children(server.pid)
        os.kill(worker, signal.SIGKILL)
        workers = _patiently(lambda: _others(_children(server.pid), worker))
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(600)
    assert not any(_lives(one) for one in workers)
    assert token not in (tmp_path / "log").read_text()
    assert "Traceback" not in (tmp_path / "log").read_text()
    made.desk.close()


def _free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _patiently(ask, seconds=600):
    """Until it works: processes start when they start."""
    end = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except (MissingError, AssertionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.3)


def _others(found, gone):
    """A worker that was killed is followed by another."""
    assert len(found) == 2
    assert gone not in found
    return found


def _state_is(state, told):
    assert told["state"] == state
    return told


def _children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry))
    return found


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# --- all of them ---------------------------------------------------------------------------------


def _commands(group, before=()):
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from _commands(command, (*before, name))
        else:
            yield (*before, name), command.help


def test_every_command_has_an_example_that_begins_with_its_name():
    found = dict(_commands(typer.main.get_group(desk_commands)))
    assert len(found) >= 22
    for words, text_of_help in found.items():
        (example,) = re.findall(r"^\s*Example: (.*)$", text_of_help, re.MULTILINE)
        assert example.startswith("understudy desk " + " ".join(words)), words


def test_help_comes_without_the_heavy_libraries():
    code = (
        "import sys; sys.argv = ['understudy', 'desk', 'init', '--help']\n"
        "from understudy.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'sqlalchemy', 'fastapi', 'numpy', 'polars', 'httpx2', 'uvicorn', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_synthetic_table_decides_what_is_seen(tmp_path):
    """A column that only the real table has is not offered to anybody."""
    real = school_frame(1).with_columns(pl.lit("x").alias("diagnosis"))
    made = fill(tmp_path, real=real)
    (data,) = as_json("desk", "data", "list", "--desk", made.desk.settings.folder)
    assert "diagnosis" not in data["columns"]
    made.desk.close()
