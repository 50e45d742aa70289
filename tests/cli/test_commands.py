"""The command line as a person meets it: help, results, errors, exit codes."""

import csv
import gzip
import json
import re
import signal
import subprocess
import sys
import threading

import polars as pl
import pytest

from tests.support.command import run
from understudy.cli import terminal

pytestmark = pytest.mark.functional

VERBS = (
    "inspect",
    "synthesize",
    "audit",
    "study",
    "release",
    "difficulties",
    "ability",
    "page",
    "ledger",
    "simulate",
)


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with the log of a small simulated classroom."""
    folder = tmp_path_factory.mktemp("room")
    done = run("simulate", "classroom.csv", "--learners", 120, "--actions", 12, cwd=folder)
    assert done.returncode == 0, done.stderr
    # The same as a custodian's file: other names, and nothing that says simulated.
    log = pl.read_csv(folder / "classroom.csv")
    real = log.with_columns(learner="pupil-" + pl.col("learner").str.slice(-3)).rename(
        {"action": "skill", "outcome": "correct"}
    )
    real.write_csv(folder / "log.csv")
    return folder


def test_help_names_every_verb(tmp_path):
    text = run("--help", cwd=tmp_path).stdout
    for verb in VERBS:
        assert re.search(rf"^  {verb}\b", text, re.MULTILINE)
    for part in (
        "Logs of learners' actions:",
        "Exams:",
        "Exit codes: 0 done;",
        "4 refused by a budget or a policy",
    ):
        assert part in " ".join(text.split())


@pytest.mark.parametrize("width", [60, 160])
def test_help_is_as_wide_as_the_terminal(tmp_path, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERMINAL_WIDTH", str(width))
    lines = run("release", "--help", cwd=tmp_path).stdout.splitlines()
    assert width - 30 < max(map(len, lines)) <= width


def test_a_log_without_a_terminal_shows_life_unless_it_is_to_be_quiet(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(terminal.TerminalProgress, "LINE_EVERY", 0.01)
    told = threading.Event()
    monkeypatch.setattr(terminal.typer, "echo", lambda text, **_: (lines.append(text), told.set()))
    lines = []
    with terminal.TerminalProgress().task("Fitting", 3) as task:
        task.advance()
        assert told.wait(10)
    assert lines[0] == "Fitting: 0 of 3" or re.fullmatch(r"Fitting: 1 of 3, about \d+ s left", lines[0])
    lines.clear()
    for quiet, variable in ((True, ""), (False, "true"), (False, "1")):
        monkeypatch.setenv("CI", variable)
        told.clear()
        with terminal.TerminalProgress(quiet=quiet).task("Fitting", 3) as task:
            task.advance()
            assert not told.wait(0.1)
    assert lines == []


def test_a_line_that_says_nothing_new_is_not_printed_again(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(terminal.TerminalProgress, "LINE_EVERY", 0.001)
    lines, told = [], threading.Event()
    monkeypatch.setattr(terminal.typer, "echo", lambda text, **_: (lines.append(text), told.set()))
    with terminal.TerminalProgress().task("Fitting", 3) as task:
        assert told.wait(10)
        told.clear()
        assert not told.wait(0.1)
        task.advance()
        assert told.wait(10)
    assert [line.split(",")[0] for line in lines] == ["Fitting: 0 of 3", "Fitting: 1 of 3"]


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (80, "80 s"), (600, "10 min"), (9000, "2.5 h")])
def test_a_time_to_wait_is_no_finer_than_it_is_known(seconds, words):
    assert terminal.duration(seconds) == words


@pytest.mark.parametrize(
    ("typed", "meant"), [(["relaese"], "release"), (["cohort", "bild"], "build"), (["leger", "x"], "ledger")]
)
def test_a_command_that_is_not_there_suggests_one(tmp_path, typed, meant):
    done = run(*typed, "--json", cwd=tmp_path)
    assert done.returncode == 2
    message = json.loads(done.stderr)["error"]["message"]
    assert message == f"No such command '{typed[-1 if meant == 'build' else 0]}'. Did you mean '{meant}'?"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example_and_json(verb, tmp_path):
    done = run(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"Example: understudy {verb}" in " ".join(done.stdout.split())
    assert "--json" in done.stdout


def test_help_imports_nothing_heavy(tmp_path):
    heavy = ("numpy", "polars", "scipy", "numba", "altair", "jinja2")
    code = (
        f"import sys; import understudy.cli.app; print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


def test_commands_of_exams_start_without_what_only_some_fits_need(tmp_path):
    code = (
        "import sys; import understudy.cli.exams; "
        "print([name for name in ('scipy.optimize', 'scipy.interpolate', 'scipy.stats') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


def test_inspect_prints_a_table_a_page_and_json(room, tmp_path):
    done = run("inspect", room / "log.csv", "--html", tmp_path / "page.html", cwd=tmp_path)
    assert done.returncode == 0
    assert "singled out" in done.stdout
    assert "<svg" in (tmp_path / "page.html").read_text()
    assert "As a page with a picture: --html" in run("inspect", room / "log.csv", cwd=tmp_path).stdout
    facts = json.loads(run("inspect", room / "log.csv", "--json", cwd=tmp_path).stdout)
    assert facts["n_learners"] == 120
    assert len(facts["uniqueness"]) == 16
    assert not facts["simulated"]
    assert json.loads(run("inspect", room / "classroom.csv", "--json", cwd=tmp_path).stdout)["simulated"]


@pytest.mark.parametrize("out", ["synthetic.csv", "synthetic.parquet"])
def test_synthesize_writes_by_extension_and_states_the_guarantee(room, tmp_path, out):
    ledger = tmp_path / "l"
    done = run(
        "synthesize",
        room / "log.csv",
        "-o",
        out,
        "-m",
        "markov",
        "--n-learners",
        7,
        "--ledger",
        ledger,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "no formal guarantee" in done.stdout
    frame = pl.read_csv(tmp_path / out) if out.endswith("csv") else pl.read_parquet(tmp_path / out)
    assert frame.columns == ["learner", "action", "outcome"]
    assert frame["learner"].n_unique() == 7
    assert len(
        json.loads(run("ledger", room / "log.csv", "--ledger", ledger, "--json", cwd=tmp_path).stdout)[
            "entries"
        ]
    )


def test_without_a_seed_no_two_files_are_the_same(room, tmp_path):
    for name in ("a.csv", "b.csv"):
        run("synthesize", room / "classroom.csv", "-o", name, "-m", "markov", cwd=tmp_path)
    assert (tmp_path / "a.csv").read_text() != (tmp_path / "b.csv").read_text()


@pytest.mark.parametrize("verb", ["synthesize", "inspect"])
def test_the_data_itself_is_never_written_over(room, tmp_path, verb):
    log = tmp_path / "log.csv"
    log.write_bytes((room / "classroom.csv").read_bytes())
    options = ["-o", "log.csv", "-m", "markov"] if verb == "synthesize" else ["--html", "log.csv"]
    done = run(verb, "log.csv", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert "the data itself" in done.stderr
    assert log.read_bytes() == (room / "classroom.csv").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_stopped_release_leaves_nothing_behind(room, tmp_path, number):
    log = tmp_path / "log.csv"
    log.write_bytes((room / "classroom.csv").read_bytes())
    # Stops while the bundle is being written: the report is the last and slowest part.
    code = (
        "import os, signal, understudy.logs.release.bundle as b\n"
        f"b.report_page = lambda *a, **k: os.kill(os.getpid(), {int(number)}) or __import__('time').sleep(30)\n"
        "import sys; sys.argv = ['understudy', *'release log.csv -o out -m drop:0 --accept-risk t'.split()]\n"
        "from understudy.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode in (130, 143)
    # Writing had begun, and whoever stops it may have looked: the charge stays, and a person is told so.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "understudy.ledger"]
    if number == signal.SIGINT:
        assert "stays in the ledger" in done.stderr
        assert "writing had begun" in done.stderr


def test_a_polite_kill_inside_a_callback_of_python_is_not_lost(tmp_path):
    """Python drops what is raised inside a weak reference's callback, as imports have them."""
    code = (
        "import os, signal, sys, time, weakref\n"
        "from understudy.cli import main\n"
        "def killed(reference):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(0)\n"
        "def run(arguments):\n"
        "    thing = {1}\n"
        "    reference = weakref.ref(thing, killed)\n"
        "    del thing\n"
        "    time.sleep(30)\n"
        "sys.modules['understudy.cli.app'].run = run\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (143, "")


def test_what_a_killed_release_left_is_removed_by_the_next(tmp_path):
    from understudy.core.files.writing import new_folder

    stale = tmp_path / ".out-unfinished-99999999-abc"
    stale.mkdir()
    with new_folder(tmp_path / "out"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_same_seed_gives_the_same_file(room, tmp_path):
    for name in ("a.csv", "b.csv"):
        run("synthesize", room / "classroom.csv", "-o", name, "-m", "markov", "--seed", 4, cwd=tmp_path)
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_study_writes_what_the_design_lists(room, tmp_path):
    (tmp_path / "log.csv").write_bytes((room / "log.csv").read_bytes())
    done = run(
        "study",
        "log.csv",
        "-m",
        "drop:0.5",
        "-m",
        "markov",
        "--seeds",
        1,
        "--shadows",
        8,
        "-o",
        "out",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "out/results.csv", newline="") as file:
        methods = [row["method"] for row in csv.DictReader(file)]
    assert methods == ["drop:0.5", "markov"]
    for name in ("tradeoff.svg", "tradeoff.png", "report.html"):
        assert (tmp_path / "out" / name).exists()
    assert ">stays inside</text>" in (tmp_path / "out" / "tradeoff.svg").read_text()
    assert not (tmp_path / "understudy.ledger").exists()


def test_release_is_refused_then_accepted_and_listed(room, tmp_path):
    log = tmp_path / "log.csv"
    log.write_bytes((room / "log.csv").read_bytes())
    refused = run("release", log, "-o", "bundle", "-m", "drop:0", cwd=tmp_path)
    assert refused.returncode == 4
    assert "--accept-risk" in refused.stderr
    assert not (tmp_path / "bundle").exists()
    done = run(
        "release",
        log,
        "-o",
        "bundle",
        "-m",
        "markov",
        "--accept-risk",
        "pilot",
        "--group",
        "school",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["guarantee"]["formal"] is False
    entries = json.loads(run("ledger", log, "--json", cwd=tmp_path).stdout)["entries"]
    assert [entry["kind"] for entry in entries] == ["release"]
    assert entries[0]["card"] == result["id"]
    again = run("release", log, "-o", "bundle", "-m", "markov", "--accept-risk", "pilot", cwd=tmp_path)
    assert again.returncode == 2
    assert "not empty" in again.stderr


def test_the_risk_that_was_asked_for_is_repeated(room, tmp_path):
    log = tmp_path / "log.csv"
    log.write_bytes((room / "log.csv").read_bytes())
    run("simulate", "exam.csv", "--shape", "exam", cwd=tmp_path)
    for asked in (
        ("synthesize", log, "-o", "synthetic.csv", "-m", "markov-dp", "--public-actions"),
        ("difficulties", "exam.csv", "-o", "difficulties.json"),
    ):
        done = run(*asked, "--risk", "5 in 100", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Asked for: at most 5 in 100 members found. Epsilon" in done.stderr


@pytest.mark.usefixtures("quick_releases")
@pytest.mark.parametrize("public", [("--public-actions",), ()])
def test_the_card_states_what_was_explained(tmp_path, public):
    """It uses the synthetic log's own numbers, which leave, so figures differ as these do: a little."""
    asked = ("release", "log.csv", "-o", "bundle", *public, "--json", "--n-learners", "500")
    run("simulate", "log.csv", "--learners", "1500", "--actions", "8", "--seed", "4", cwd=tmp_path)
    explained = json.loads(run(*asked, "--explain", cwd=tmp_path).stdout)["predictions"]
    (foreseen,) = [row for row in explained if row["epsilon"] == 8]
    done = run(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    card = json.loads((tmp_path / "bundle/share/card.json").read_text())
    stated = card["expected"]
    for use in ("shares", "difficulties", "steps"):
        for figure in ("expected", "low", "high", "noise", "chance"):
            assert stated[use][figure] == pytest.approx(foreseen[use][figure], rel=0.1, abs=0.01), use
    assert stated["rows_factor"] == pytest.approx(foreseen["rows_factor"], rel=0.1)
    assert f"'at_most': {foreseen['found']}," in str(card["protection"])


def test_the_default_release_is_private_and_charged_once(room, tmp_path):
    log = tmp_path / "log.csv"
    log.write_bytes((room / "log.csv").read_bytes())
    explained = run("release", log, "-o", "bundle", "--explain", "--json", cwd=tmp_path)
    assert json.loads(explained.stdout)["spent"] == 0
    predictions = json.loads(explained.stdout)["predictions"]
    assert {0.02, 0.05, 0.1, 0.2} <= {row["found"] for row in predictions}
    assert {"epsilon", "delta", "mu", "guessed", "singled_out", "rows_factor"} <= predictions[0].keys()
    # The figure stays inside like the rest, and no bundle was made.
    assert {path.name for path in tmp_path.glob("bundle*")} == {
        "bundle-explained.svg",
        "bundle-explained.png",
    }
    assert ">stays inside</text>" in (tmp_path / "bundle-explained.svg").read_text()
    asked = run("release", log, "-o", "bundle", "--explain", "--json", "--risk", "4 in 100", cwd=tmp_path)
    usual = {row["epsilon"] for row in predictions}
    (extra,) = {row["epsilon"] for row in json.loads(asked.stdout)["predictions"]} - usual
    assert 2 < extra < 3.2
    wrong = run("release", log, "-o", "bundle", "--explain", "--risk", "4 of 100", cwd=tmp_path)
    assert wrong.returncode == 2
    assert not (tmp_path / "understudy.ledger").exists()
    done = run("release", log, "-o", "bundle", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guarantee"]["epsilon"] == 8
    again = run("release", log, "-o", "second", cwd=tmp_path)
    assert again.returncode == 4
    assert "8 of 10 is spent" in again.stderr
    assert not (tmp_path / "second").exists()
    listed = tmp_path / "names.txt"
    listed.write_text("\n".join(pl.read_csv(log)["skill"].unique().sort().head(5)) + "\n")
    asked = ("synthesize", log, "-o", "s.csv", "-m", "markov-dp:epsilon=0.5", "--actions", listed)
    noise = run(*asked, cwd=tmp_path)
    assert noise.returncode == 4
    assert "little but noise is to be expected" in noise.stderr
    small = run(*asked, "--for", "shares", cwd=tmp_path)
    assert small.returncode == 0, small.stderr
    assert set(pl.read_csv(tmp_path / "s.csv")["action"]) <= {
        *listed.read_text().split("\n"),
        "other actions",
    }
    wrong = run("ledger", tmp_path / "bundle", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "holds no ledger" in wrong.stderr


def test_those_who_withdrew_are_left_out(room, tmp_path):
    names = pl.read_csv(room / "log.csv")["learner"].unique().sort()
    (tmp_path / "out.csv").write_text("learner\n" + "\n".join(names.head(20)) + "\nnobody-we-know\n")
    done = run("inspect", room / "log.csv", "--exclude", tmp_path / "out.csv", "--json", cwd=tmp_path)
    facts = json.loads(done.stdout)
    assert facts["n_learners"] == 100
    assert "nobody-we-know" not in done.stdout + done.stderr


def test_audit_judges_any_three_files(room, tmp_path):
    log = pl.read_csv(room / "log.csv")
    names = log["learner"].unique(maintain_order=True)
    half = log["learner"].is_in(names.head(60).implode())
    log.filter(half).write_csv(tmp_path / "members.csv")
    log.filter(~half).write_csv(tmp_path / "outsiders.csv")
    done = run(
        "audit",
        "--members",
        "members.csv",
        "--outsiders",
        "outsiders.csv",
        "--synthetic",
        "members.csv",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["risk"]["auc_worst"] > 0.95


BAD_FILES = {
    "absent.csv": (None, 2),
    "empty.csv": (b"", 3),
    "header.csv": (b"learner,action,outcome\n", 3),
    "columns.csv": (b"a,b\n1,2\n", 3),
    "outcome.csv": (b"learner,action,outcome\n1,x,7\n1,y,0\n2,x,1\n", 3),
    "rubbish.csv": (bytes(range(256)) * 20, 3),
    "truncated.csv.gz": (gzip.compress(b"learner,action,outcome\n" + b"1,x,1\n" * 9999)[:-20], 3),
    "unique.csv": (b"learner,action,outcome\n1,x,1\n2,x,0\n3,y,1\n", 3),
    "ragged.csv": (b"learner,action,outcome\n1,x,1\n1,x\n2,y,0\n", 3),
    "mail.csv": (b"learner,action,outcome\n1,ada@example.org,1\n1,x,0\n2,bob@example.org,0\n2,x,1\n", 3),
}


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("verb", ["synthesize", "release"])
def test_bad_files_are_explained_and_leave_nothing_behind(tmp_path, name, verb):
    content, code = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = run(verb, name, "-o", "out.csv" if verb == "synthesize" else "out", "-m", "markov", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("Error:") or "\nError:" in done.stderr
    assert "Hint:" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {name}


@pytest.mark.parametrize(
    "arguments",
    [
        ["synthesize", "log.csv", "-o", "x.csv", "-m", "nosuch"],
        ["synthesize", "log.csv", "-o", "x.csv", "-m", "drop:2"],
        ["synthesize", "log.csv", "-o", "x.docx", "-m", "markov"],
        ["synthesize", "log.csv", "-o", "nowhere/x.csv", "-m", "markov"],
        ["study", "log.csv", "-m", "markov", "--seeds", "0", "-o", "x"],
        ["study", "log.csv", "-m", "markov", "-o", "nowhere/x"],
        ["inspect", "log.csv", "--format", "nosuch"],
        ["nosuch"],
        ["release", "log.csv"],
    ],
)
def test_wrong_use_is_exit_code_2_with_a_sentence(room, tmp_path, arguments):
    (tmp_path / "log.csv").write_bytes((room / "classroom.csv").read_bytes())
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip()
    assert not list(tmp_path.glob("x*"))


def test_an_unforeseen_error_says_where_and_never_what(tmp_path, monkeypatch):
    code = (
        "import understudy.cli.logs as c\n"
        "def boom(*a, **k): raise ValueError('CANARY-ada-lovelace')\n"
        "c.read_log = boom\n"
        "import sys; sys.argv = ['understudy', 'inspect', 'x.csv']\n"
        "from understudy.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "ValueError" in done.stderr
    assert "CANARY" not in done.stdout + done.stderr


def test_with_json_errors_are_json_too(tmp_path):
    done = run("release", "absent.csv", "-o", "out", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    error = json.loads(done.stderr)["error"]
    assert (error["exit_code"], error["code"]) == (2, "no-such-file")
    done = run("release", "absent.csv", "--nosuch", "--json", cwd=tmp_path)
    assert json.loads(done.stderr)["error"]["exit_code"] == done.returncode == 2


def test_an_error_names_the_options_that_would_help(tmp_path):
    (tmp_path / "log.csv").write_text("learner,action,outcome\n1,x,7\n1,y,0\n2,x,1\n")
    done = run("inspect", "log.csv", cwd=tmp_path)
    assert "or choose another column (--outcome, --pass, --set-aside)." in done.stderr
    assert "Run next: understudy inspect log.csv --pass NUMBER\n" in done.stderr


def commands():
    from understudy.cli.app import COMMANDS

    for section in COMMANDS.values():
        for name, (module, sentence) in section.items():
            yield pytest.param(name, module, sentence, id=name)


@pytest.mark.parametrize(("name", "module", "sentence"), list(commands()))
def test_the_list_of_commands_says_what_each_says_itself(name, module, sentence):
    import importlib

    import typer.main

    group = typer.main.get_group(importlib.import_module(module).app)
    if name in group.commands:
        assert " ".join(group.commands[name].help.split("\n\n")[0].split()) == sentence


@pytest.mark.parametrize(
    ("file", "content", "command"),
    [
        (
            "log.csv",
            "user,skill,correct\na,x,1\na,y,0\nb,x,1\n",
            ("synthesize", "-m", "markov", "-o", "o.csv"),
        ),
        (
            "exam.csv",
            "user,task,correct\na,x,1\na,y,0\nb,x,1\n",
            ("difficulties", "--epsilon", "1", "--public-items", "-o", "o.json"),
        ),
        (
            "typing.csv",
            "user,time_ms,letter\na,0,i\na,90,n\n",
            ("keystrokes", "coarsen", "--bucket", "300", "-o", "o.csv"),
        ),
    ],
)
def test_what_was_recognised_is_said_with_the_options_that_declare_it(tmp_path, file, content, command):
    (tmp_path / file).write_text(content)
    n_words = 2 if command[0] == "keystrokes" else 1
    call = (*command[:n_words], file, *command[n_words:])
    found = run(*call, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    declared = re.search(r"^Recognised; to declare it: (.*)$", found.stderr, re.MULTILINE)[1].split()
    assert {"--format", "--learner", "user"} <= set(declared)
    for path in tmp_path.glob("o.*"):
        path.unlink()
    again = run(*call, *declared, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "Recognised" not in again.stderr
