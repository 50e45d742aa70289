"""A panel in the sandbox: good, failing, refusing and hostile panelists, and what each leaves."""

import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

from tests.cohorts.support.chat_server import GOOD_SCRIPT, ChatServer, Reply, fenced
from tests.cohorts.support.hostile_script import hostile
from understudy.cohorts import offline
from understudy.cohorts.panel.panel import (
    LIMITS,
    Answer,
    EmptyPanelError,
    PanelistError,
    WrittenPanelist,
    run_panel,
)
from understudy.cohorts.panel.providers import ModelPanelist
from understudy.cohorts.panel.report import save_panel
from understudy.cohorts.panel.scripts import Tokens, extract_code
from understudy.cohorts.simulate import School
from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.core.privacy.noise import os_noise
from understudy.errors import MissingError, UsageError
from understudy.sandbox import Limits, Sandbox, require_sandbox

MARKER = "canary7f3a9"


@pytest.fixture(scope="module")
def sandbox():
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(str(error))
    with Sandbox(LIMITS, workers=1) as opened:
        yield opened


class Scripted:
    """A panelist that gives the answers it was told to, and keeps what it was sent."""

    provider, model, reads_brief = "fake", "fake-1", True

    def __init__(self, name, *answers):
        self.name, self.answers, self.sent = name, list(answers), []

    def write(self, conversation):
        self.sent.append(conversation)
        answer = self.answers[len(self.sent) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return Answer(answer, self.model, Tokens(10, 5), 0.5, "2026-11-16T00:00:00+00:00")


def run(summary, panelists, sandbox, **more):
    settings = {"rng": np.random.default_rng(1), "n_learners": 30, "n_each": 40, **more}
    return run_panel(summary, panelists, sandbox, **settings)


def one_script(body):
    head = "import numpy as np\nimport pandas as pd\n\n\ndef generate(n, label, summary, rng):\n"
    return fenced(head + "".join(f"    {line}\n" for line in body.splitlines()))


def test_the_offline_panel_gives_a_cohort_of_the_schema(summary, sandbox):
    panelists = [WrittenPanelist(name, text, "offline") for name, text in offline.scripts().items()]
    result = run(summary, panelists, sandbox)
    assert result.cohort.n_learners == 30
    assert result.cohort.schema == summary.schema
    assert sum(result.report.drawn.values()) == 30
    assert [one.status for one in result.report.panelists] == ["used"] * 3
    assert [one.n_rows for one in result.report.panelists] == [120] * 3
    assert result.report.cost == 0.0
    assert all(script.prompt_hash == "" for script in result.scripts)
    again = run(summary, panelists, sandbox)
    assert np.array_equal(result.cohort.values, again.cohort.values)
    assert np.array_equal(result.cohort.label, again.cohort.label)
    other = run(summary, panelists, sandbox, rng=np.random.default_rng(2))
    assert not np.array_equal(result.cohort.values, other.cohort.values)


def test_a_panelist_gets_the_brief_and_nothing_else(summary, sandbox):
    one = Scripted("one", fenced(GOOD_SCRIPT))
    result = run(summary, [one], sandbox)
    assert one.sent == [(result.brief.text,)]
    (script,) = result.scripts
    assert script.source == GOOD_SCRIPT
    assert script.prompt_hash == result.brief.prompt_hash
    assert (script.model, script.tokens, script.cost) == ("fake-1", Tokens(10, 5), 0.5)


def test_suggestions_are_stated_with_what_the_panel_makes(sandbox):
    cohort = School(n_learners=60).simulate(0, np.random.default_rng(5))
    private = noisy_summary(cohort, propose(cohort.schema, 60, 3.0, 1e-3), os_noise())
    ours = WrittenPanelist("copula", offline.scripts()["copula"], "offline")
    told = run(private, [Scripted("one", fenced(GOOD_SCRIPT)), ours], sandbox, suggestions=["more weekends"])
    assert told.guarantee == private.guarantee.with_caveats(caveats.FEEDBACK)
    assert {one.author: one.provenance().get("suggestions") for one in told.scripts} == {
        "one": ["more weekends"],
        "copula": None,
    }
    plain = run(private, [Scripted("one", fenced(GOOD_SCRIPT))], sandbox)
    assert plain.guarantee == private.guarantee
    assert "suggestions" not in plain.scripts[0].provenance()


def test_what_a_script_gives_depends_on_nobody_else(summary, sandbox):
    silent = Scripted("two", PanelistError("no connection"))
    alone = run(summary, [Scripted("one", fenced(GOOD_SCRIPT)), silent], sandbox)
    late = run(
        summary, [Scripted("one", "nothing", fenced(GOOD_SCRIPT)), Scripted("two", "no", "no")], sandbox
    )
    assert np.array_equal(alone.cohort.values, late.cohort.values)


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ("I cannot help with that.", "NoScript"),
        (fenced("def generate(:\n"), "SyntaxError in line 1"),
        (fenced("import os\n" + GOOD_SCRIPT), "ForbiddenImport in line 1"),
        (one_script("return summary['planted']"), "KeyError in line 6"),
        (one_script("raise ValueError(str(summary))"), "ValueError in line 6"),
        (one_script("return 3"), "NoTable"),
        (one_script("return {'a': pd.DataFrame({'planted': [1.0]})}"), "NoTable"),
        (one_script("return pd.DataFrame({'planted': [1.0] * n})"), "WrongColumns"),
        (
            one_script("c = summary['schema']['columns']\nreturn pd.DataFrame(np.zeros((n, 68)), columns=c)"),
            "Constant",
        ),
        (
            one_script(
                "c = summary['schema']['columns']\nreturn pd.DataFrame(rng.random((n, 68)) * 700, columns=c)"
            ),
            "OutOfBounds",
        ),
        (
            one_script(
                "c = summary['schema']['columns']\nreturn pd.DataFrame(rng.random((n + 1, 68)), columns=c)"
            ),
            "WrongNumberOfRows",
        ),
    ],
)
def test_a_script_that_fails_goes_back_once_and_is_then_dropped(summary, sandbox, answer, failure):
    one = Scripted("one", answer, answer)
    result = run(summary, [one, Scripted("two", fenced(GOOD_SCRIPT))], sandbox)
    first, second = result.report.panelists
    assert (first.status, first.attempts, first.failures) == ("dropped", 2, (failure, failure))
    assert (first.tokens, first.cost, first.n_rows) == (Tokens(20, 10), 1.0, 0)
    assert second.status == "used"
    prompt, said, request = one.sent[1]
    assert (prompt, said) == (result.brief.text, answer)
    # Kind and line, and a rule of ours that is the same for everybody.
    assert request.startswith(f"Your script was not accepted: {failure}. The rule: ")
    assert "planted" not in request


def test_a_repaired_script_is_used(summary, sandbox):
    result = run(summary, [Scripted("one", "no script", fenced(GOOD_SCRIPT))], sandbox)
    (one,) = result.report.panelists
    assert (one.status, one.attempts, one.failures) == ("repaired", 2, ("NoScript",))


def test_chance_from_elsewhere_is_found(summary, sandbox):
    trick = "c = summary['schema']['columns']\nreturn pd.DataFrame(np.random.default_rng().random((n, 68)), columns=c)"
    for checks, failure in ((True, "OtherRandomness in line 7"), (False, "NotDeterministic")):
        with pytest.raises(EmptyPanelError) as caught:
            run(summary, [Scripted("one", *[one_script(trick)] * 2)], sandbox, static_checks=checks)
        assert caught.value.report.panelists[0].failures == (failure, failure)


TABLE = "c = summary['schema']['columns']\nt = rng.random((n, 68))\n"
NOISE = "t[0] = np.random.default_rng().random(68)\n"


@pytest.mark.parametrize(
    "body",
    [
        # For the last label only, and for many rows only: the small first run looks the same twice.
        f"{TABLE}if label == 'high':\n    {NOISE}return pd.DataFrame(t, columns=c)",
        f"{TABLE}if n > 50:\n    {NOISE}return pd.DataFrame(t, columns=c)",
    ],
)
def test_chance_that_comes_in_late_is_found(summary, body):
    with Sandbox(LIMITS, workers=2) as two, pytest.raises(EmptyPanelError) as caught:
        run(summary, [Scripted("one", *[one_script(body)] * 2)], two, n_each=60, static_checks=False)
    assert caught.value.report.panelists[0].failures == ("NotDeterministic",) * 2


def test_the_same_seed_gives_the_same_table_in_another_process(summary):
    """Also for chance that the static checks refuse: global generators, and the order of a set of texts."""
    body = (
        "import random\nc = summary['schema']['columns']\nt = np.random.random((n, 68)) + random.random()\n"
        "t[0] = [ord(one[0]) for one in set(c)]\n"
        "return pd.DataFrame(t, columns=c).sample(frac=1.0)"
    )
    # Open at the same time, so that they do not share a process.
    with Sandbox(LIMITS, workers=1) as first, Sandbox(LIMITS, workers=1) as second:
        assert first._workers[0] is not second._workers[0]
        cohorts = [
            run(summary, [Scripted("one", one_script(body))], one, static_checks=False).cohort
            for one in (first, second)
        ]
    assert np.array_equal(cohorts[0].values, cohorts[1].values)


def test_a_small_pool_grows_to_what_is_drawn(summary, sandbox):
    result = run(summary, [Scripted("one", fenced(GOOD_SCRIPT))], sandbox, n_learners=90, n_each=2)
    assert result.cohort.n_learners == 90
    assert result.report.n_each == max(result.report.drawn.values()) > 2


def test_endless_and_greedy_scripts_are_ended(summary, sandbox):
    with Sandbox(Limits(wall_seconds=2.0, cpu_seconds=2, memory_bytes=300 * 2**20), workers=1) as small:
        for body, failure in (
            ("while True:\n    pass", "TimedOut"),
            ("return np.ones((n, 10**8))", "TooMuchMemory"),
        ):
            with pytest.raises(EmptyPanelError) as caught:
                run(summary, [WrittenPanelist("one", extract_code(one_script(body)), "manual")], small)
            (found,) = caught.value.report.panelists[0].failures
            assert found in (failure, "MemoryError in line 6")


def test_nobody_usable_is_an_error_with_all_that_is_known(summary, sandbox):
    panelists = [Scripted("one", PanelistError("HTTP 500")), WrittenPanelist("two", "x = 1\n", "manual")]
    with pytest.raises(EmptyPanelError, match="one: HTTP 500; two: WrongEntry") as caught:
        run(summary, panelists, sandbox)
    assert [one.attempts for one in caught.value.report.panelists] == [1, 1]
    assert [script.author for script in caught.value.scripts] == ["two"]


def test_a_fault_of_ours_is_not_taken_for_a_panelists(summary, sandbox):
    with pytest.raises(ZeroDivisionError):
        run(summary, [Scripted("one", ZeroDivisionError())], sandbox)


def test_impossible_requests_are_refused_before_anybody_is_asked(summary, sandbox):
    one = Scripted("one", fenced(GOOD_SCRIPT))
    for panelists, more in (([], {}), ([one, one], {}), ([one], {"n_learners": 10_000})):
        with pytest.raises(UsageError):
            run(summary, panelists, sandbox, **more)
    assert one.sent == []


def test_panelists_of_every_character_at_a_server(summary, sandbox):
    replies = {
        "good": [Reply(fenced(GOOD_SCRIPT))],
        "shaky": [Reply(status=500), Reply(fenced(GOOD_SCRIPT))],
        "down": [Reply(status=500)],
        "slow": [Reply(fenced(GOOD_SCRIPT), delay=10.0)],
        "refusing": [Reply("I am sorry, I cannot help with that.")],
        "blocked": [Reply(refusal=True)],
        "garbage": [Reply("\x00\ufffd" * 50 + "\n```python\n}{\n```")],
        "broken": [Reply(body=b"<html>")],
        "learning": [Reply("Sure!"), Reply(fenced(GOOD_SCRIPT))],
    }
    with ChatServer(replies) as server:
        panelists = [
            ModelPanelist(
                name,
                "openai",
                name,
                base_url=server.url + "/v1",
                timeout=0.5 if name == "slow" else 120.0,
                pause=0.01,
            )
            for name in replies
        ]
        result = run(summary, panelists, sandbox)
        sent = {name: [request.texts for request in server.of(name)] for name in replies}
    found = {one.name: one for one in result.report.panelists}
    assert {name: one.status for name, one in found.items()} == {
        "good": "used",
        "shaky": "used",
        "down": "dropped",
        "slow": "dropped",
        "refusing": "dropped",
        "blocked": "dropped",
        "garbage": "dropped",
        "broken": "dropped",
        "learning": "repaired",
    }
    assert found["down"].failures == ("HTTP 500",)
    assert found["slow"].failures == ("no answer within 0.5 seconds",)
    assert found["refusing"].failures == ("NoScript", "NoScript")
    assert found["garbage"].failures == ("SyntaxError in line 1", "SyntaxError in line 1")
    assert found["good"].tokens == Tokens(1000, 200)
    assert found["good"].cost is None
    assert found["learning"].tokens == Tokens(2000, 400)
    assert result.report.cost is None
    assert all(texts[0] == result.brief.text for requests in sent.values() for texts in requests)
    assert result.cohort.n_learners == 30


@pytest.fixture
def listener():
    """A port that a hostile script may try to reach, and what arrived there."""
    arrived = []
    server = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            arrived.append(connection.recv(100))
            connection.close()

    threading.Thread(target=accept, daemon=True).start()
    yield server.getsockname()[1], arrived
    server.close()


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A learner's record where a script might look for it."""
    secret = tmp_path / "learners.csv"
    secret.write_text(f"learner,score\n{MARKER},3\n")
    secret.chmod(0o644)
    monkeypatch.setenv("PLANTED", MARKER)
    return secret


def everything_in(folder):
    return b"".join(
        path.name.encode() + path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    )


def test_the_hostile_script_is_one(planted, listener, tmp_path):
    """The control: where nothing holds it, it finds the secret and carries it away by every road."""
    port, _ = listener
    script = hostile("table", marker=MARKER, paths=[planted], port=port, folder=tmp_path, patterns=())
    done = subprocess.run(
        [sys.executable, "-c", script + "\nos._exit(10 * len(loot) + len(escapes))"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 10 * 2 + 4
    assert MARKER in done.stdout
    assert MARKER in done.stderr
    assert {"by-a-shell", "by-python"} <= {path.name for path in tmp_path.iterdir()}
    assert MARKER.encode() in (tmp_path / "by-python").read_bytes()


@pytest.mark.parametrize("mode", ["table", "error", "columns", "descriptors"])
def test_a_hostile_script_is_stopped_by_the_checks(summary, sandbox, planted, listener, tmp_path, mode):
    port, arrived = listener
    script = hostile(mode, marker=MARKER, paths=[planted], port=port, folder=tmp_path)
    one = Scripted("one", fenced(script), fenced(script))
    with pytest.raises(EmptyPanelError) as caught:
        run(summary, [one], sandbox)
    assert all("Forbidden" in failure for failure in caught.value.report.panelists[0].failures)
    assert arrived == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["learners.csv"]


@pytest.mark.parametrize("mode", ["table", "error", "columns", "descriptors"])
def test_a_hostile_script_gets_nothing_out_of_the_sandbox(
    summary, sandbox, planted, listener, tmp_path, mode, capfd, caplog
):
    """The static checks are switched off: the sandbox alone has to hold."""
    port, arrived = listener
    script = hostile(mode, marker=MARKER, paths=[planted], port=port, folder=tmp_path)
    one = Scripted("one", fenced(script), fenced(script))
    good = Scripted("two", fenced(GOOD_SCRIPT))
    result = run(summary, [one, good], sandbox, static_checks=False)
    hostile_report, good_report = result.report.panelists
    assert good_report.status == "used"
    expected = {
        "table": ("used", ()),
        # Its error's own name is not passed on.
        "error": ("dropped", ("Exception", "Exception")),
        "columns": ("dropped", ("WrongColumns", "WrongColumns")),
        # What it writes into the pipe of its result makes that no result.
        "descriptors": ("dropped", ("Error", "Error")),
    }[mode]
    kinds = tuple(failure.partition(" in line")[0] for failure in hostile_report.failures)
    assert (hostile_report.status, kinds) in (expected, ("dropped", ("Stopped", "Stopped")))
    for sent in one.sent[1:]:
        assert MARKER not in sent[2]
    if hostile_report.status == "used":
        pool = run(summary, [Scripted("one", fenced(script))], sandbox, static_checks=False).cohort
        assert not pool.values[:, 0, 0].any(), "the script found the secret"
        assert not pool.values[:, 0, 1].any(), "the script got out"
    assert arrived == []
    # The folder without the script itself, whose text names the marker because the test put it there.
    out = tmp_path / "out"
    out.mkdir()
    others = [one for one in result.scripts if one.author != "one"]
    save_panel(out / "panel", result.brief, others, result.report, {})
    result.cohort.to_polars().write_csv(out / "synthetic.csv")
    assert MARKER.encode() not in everything_in(out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["learners.csv", "out"]
    printed = capfd.readouterr()
    assert MARKER not in printed.out + printed.err + caplog.text
