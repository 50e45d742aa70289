"""`understudy cohort prompt` and `cohort synthesize`, run as a person runs them."""

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.cohorts.support.chat_server import GOOD_SCRIPT, ChatServer, Reply, fenced
from tests.cohorts.support.hostile_script import hostile
from tests.support.command import run
from understudy.cohorts.cohort import read_cohort
from understudy.errors import MissingError
from understudy.sandbox import require_sandbox

pytestmark = pytest.mark.functional

MARKER = "canary5c1e8"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a private summary and, beside it, a file that no command here may open."""
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("school")
    assert (
        run("simulate", "cohort.parquet", "--shape", "cohort", "--learners", "60", cwd=folder).returncode == 0
    )
    done = run("cohort", "summarize", "cohort.parquet", "-o", "summary.json", "--delta", "1e-3", cwd=folder)
    assert done.returncode == 0, done.stderr
    # From here on there is only the summary.
    (folder / "cohort.parquet").unlink()
    (folder / "learners.csv").write_text(f"learner,score\n{MARKER},3\n")
    return folder


def synthesize(folder, *arguments):
    return run("cohort", "synthesize", "summary.json", "--per-panelist", "150", *arguments, cwd=folder)


def write_panel(path, server, *names, **more):
    entries = [
        f'[[panelist]]\nname = "{name}"\nprovider = "openai"\nmodel = "{name}"\nbase_url = "{server.url}/v1"\n'
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
        for name in names
    ]
    path.write_text("\n".join(entries))
    return path


def test_the_offline_panel_needs_no_key_and_no_network(folder):
    done = synthesize(folder, "-o", "offline.parquet", "--learners", "50", "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert "offline.parquet: 50 synthetic learners" in done.stdout
    assert "Guarantee of the summary, which the cohort keeps: epsilon 3, delta 1.00e-03" in done.stdout
    cohort = read_cohort(folder / "offline.parquet")
    assert cohort.n_learners == 50
    frame = pl.read_parquet(folder / "offline.parquet")
    assert frame["learner"].str.starts_with("synthetic-").all()
    names = sorted(path.name for path in (folder / "offline-panel").iterdir())
    scripts = ["copula", "habit_chain", "zero_inflated"]
    assert names == sorted(
        ["prompt.txt", "report.json", *(f"{one}.{kind}" for one in scripts for kind in ("py", "json"))]
    )
    again = synthesize(folder, "-o", "again.parquet", "--learners", "50", "--seed", "1", "--json")
    assert again.returncode == 0, again.stderr
    content = json.loads(again.stdout)
    assert content["guarantee"]["epsilon"] == 3.0
    assert [one["status"] for one in content["report"]["panelists"]] == ["used"] * 3
    assert pl.read_parquet(folder / "again.parquet").equals(frame)
    assert json.loads((folder / "again-panel/report.json").read_text())["seed"] == 1


def test_what_prompt_prints_is_what_the_server_gets_byte_for_byte(folder, monkeypatch):
    (folder / "suggestions.txt").write_text("synthetic data should better match heavy tails, naïvely\n")
    advice = ("--suggestions", "suggestions.txt")
    shown = run("cohort", "prompt", "summary.json", *advice, cwd=folder)
    assert shown.returncode == 0
    with ChatServer(
        {"first": [Reply(fenced(GOOD_SCRIPT))], "second": [Reply(fenced(GOOD_SCRIPT))]}
    ) as server:
        write_panel(folder / "panel.toml", server, "first", "second", key_env="PANEL_KEY")
        missing = synthesize(folder, "-o", "asked.parquet", "--panel", "panel.toml", *advice)
        assert missing.returncode == 5
        assert "PANEL_KEY" in missing.stderr
        assert server.requests == []
        monkeypatch.setenv("PANEL_KEY", "planted-key")
        done = synthesize(folder, "-o", "asked.parquet", "--panel", "panel.toml", *advice)
        assert done.returncode == 0, done.stderr
        requests = list(server.requests)
    assert [request.texts for request in requests] == [[shown.stdout]] * 2
    for request in requests:
        assert set(json.loads(request.body)) == {"model", "messages", "stream"}
        assert json.loads(request.body)["messages"] == [{"role": "user", "content": shown.stdout}]
    assert (folder / "asked-panel/prompt.txt").read_text(encoding="utf-8") == shown.stdout
    assert "Together: 2,000 tokens read, 400 written, price not known" in done.stdout
    assert f"first: the prompt goes to first at {server.url}/v1" in done.stderr
    assert "match heavy tails, naïvely" in shown.stdout
    everything = (
        done.stdout
        + done.stderr
        + "".join(path.read_text(encoding="utf-8") for path in (folder / "asked-panel").iterdir())
    )
    assert "planted-key" not in everything
    provenance = json.loads((folder / "asked-panel/first.json").read_text())
    assert (provenance["model"], provenance["status"]) == ("first", "used")
    # No epsilon covers the learners of the suggestions: said by everything that leaves, and on the screen.
    assert provenance["suggestions"] == ["synthetic data should better match heavy tails, naïvely"]
    assert "no epsilon covers" in shown.stderr
    for name in ("asked.toml", "asked-card.html", "asked-card.json", "asked-panel/report.json"):
        assert "no epsilon covers" in (folder / name).read_text(encoding="utf-8")
    assert "no epsilon covers" in " ".join(done.stdout.split())


def test_by_hand_export_the_prompt_and_import_the_script(folder):
    shown = run("cohort", "prompt", "summary.json", cwd=folder)
    assert run("cohort", "prompt", "summary.json", "-o", "prompt.txt", cwd=folder).returncode == 0
    assert (folder / "prompt.txt").read_text(encoding="utf-8") == shown.stdout
    (folder / "advice.txt").write_text("more weekends\n")
    told = run(
        "cohort", "prompt", "summary.json", "-o", "told.txt", "--suggestions", "advice.txt", cwd=folder
    )
    assert "no epsilon covers" in told.stderr
    assert "--script FILE.py --suggestions advice.txt" in told.stderr
    (folder / "my chat.py").write_text(fenced(GOOD_SCRIPT))
    done = synthesize(folder, "-o", "manual.csv", "--script", "my chat.py", "--learners", "20")
    assert done.returncode == 0, done.stderr
    assert read_cohort(folder / "manual.csv").n_learners == 20
    assert (folder / "manual-panel/my-chat.py").read_text() == GOOD_SCRIPT


def test_nobody_usable_leaves_scripts_and_report_and_no_cohort(folder):
    with ChatServer({"down": [Reply(status=500)], "refusing": [Reply("I cannot.")]}) as server:
        write_panel(folder / "bad.toml", server, "down", "refusing", retries=0)
        done = synthesize(folder, "-o", "none.parquet", "--panel", "bad.toml")
    assert done.returncode == 3
    assert "down: HTTP 500; refusing: NoScript" in done.stderr
    assert not (folder / "none.parquet").exists()
    assert "none-panel-failed-1/" in done.stderr
    assert not (folder / "none-panel").exists()
    report = json.loads((folder / "none-panel-failed-1/report.json").read_text())
    assert [one["status"] for one in report["panelists"]] == ["dropped", "dropped"]


def test_a_wrong_script_is_said_in_words_for_the_chat_and_a_corrected_one_is_taken(folder):
    wrong = GOOD_SCRIPT.replace("return pd.DataFrame(", "return -1.0 - pd.DataFrame(")
    assert wrong != GOOD_SCRIPT
    (folder / "chat.py").write_text(wrong)
    asked = ("-o", "again-and-again.csv", "--script", "chat.py", "--learners", "20")
    for number in (1, 2):
        done = synthesize(folder, *asked)
        assert done.returncode == 3
        assert f"again-and-again-panel-failed-{number}/" in done.stderr
        assert (
            "To paste back to the chat that wrote chat: Your script was not accepted: OutOfBounds"
            in done.stderr
        )
        assert "every value has to lie between 0 and the feature's bound" in done.stderr
    (folder / "chat.py").write_text(GOOD_SCRIPT)
    done = synthesize(folder, *asked)
    assert done.returncode == 0, done.stderr
    assert (folder / "again-and-again-panel/chat.py").exists()


def test_a_dropped_script_beside_a_good_one_is_said_too(folder):
    (folder / "good.py").write_text(GOOD_SCRIPT)
    (folder / "bad.py").write_text(GOOD_SCRIPT + "\nimport os\n")
    scripts = ("--script", "good.py", "--script", "bad.py")
    done = synthesize(folder, "-o", "both.csv", *scripts, "--learners", "20")
    assert done.returncode == 0, done.stderr
    assert (
        "To paste back to the chat that wrote bad: Your script was not accepted: ForbiddenImport"
        in done.stdout
    )


def test_what_may_leave_says_that_it_is_synthetic_and_carries_its_guarantee(folder):
    done = synthesize(folder, "-o", "out.parquet", "--learners", "40")
    assert done.returncode == 0, done.stderr
    files = ["out.parquet", "out.toml", "out-card.html", "out-card.json"]
    assert f"To share: {', '.join(files)}" in done.stdout
    assert "To keep inside: out-panel/" in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines()), done.stdout
    schema = read_cohort(folder / "out.parquet").schema
    assert schema.title.startswith("Synthetic: ")
    assert "these learners do not exist" in schema.context
    assert "epsilon 3, delta 1.00e-03" in schema.context
    card = json.loads((folder / "out-card.json").read_text())
    assert card["guarantee"]["epsilon"] == 3.0
    assert card["files"] == files
    assert card["provenance"]["simulated"] is True
    # The noise was drawn for 60 learners: shares cannot be exact.
    assert all(0.0 < line["noise"] < 1.0 for line in card["expected"])
    page = (folder / "out-card.html").read_text()
    assert "Formal guarantee: epsilon 3, delta 1.00e-03" in page
    assert "none of these programs saw a record" in page
    for word in ("anonymous", "cannot be re-identified", "safe "):
        assert word not in page.lower()


def test_a_real_cohort_and_its_schema_are_not_written_over(folder):
    run("simulate", "here.csv", "--shape", "cohort", "--learners", "20", cwd=folder)
    before = {name: (folder / name).read_bytes() for name in ("here.csv", "here.toml")}
    for out in ("here.csv", "here.parquet"):
        done = synthesize(folder, "-o", out)
        assert done.returncode == 2
        assert "is there already" in done.stderr
    assert before == {name: (folder / name).read_bytes() for name in before}


def test_the_prompt_for_machines(folder):
    shown = run("cohort", "prompt", "summary.json", cwd=folder).stdout
    content = json.loads(run("cohort", "prompt", "summary.json", "--json", cwd=folder).stdout)
    assert content["prompt"] == shown
    assert len(content["sha256"]) == 64
    done = run("cohort", "prompt", "summary.json", "-o", "written.txt", "--json", cwd=folder)
    assert json.loads(done.stdout)["out"] == "written.txt"


def test_a_person_at_a_terminal_sees_at_once_that_it_works(folder):
    """The bar is on the error stream, and only on a terminal."""
    ours, theirs = pty.openpty()
    code = "from understudy.cli import main; main()"
    arguments = ("cohort", "synthesize", "absent.json", "-o", "seen.csv")
    with subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=folder, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):
            while part := os.read(ours, 1024):
                said += part
        os.close(ours)
    assert process.returncode == 2
    # Before the summary was looked for.
    assert b"Starting the sandbox" in said


def test_what_is_missing_for_the_sandbox_is_named_with_the_command_that_installs_it(monkeypatch):
    from understudy.cohorts.synthesis import panel_sandbox

    def missing():
        raise MissingError("one of them is missing.", code="no-seccomp")

    monkeypatch.setattr("understudy.cohorts.synthesis.require_sandbox", missing)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingError) as raised:
        panel_sandbox()
    assert "apt-get install bubblewrap libseccomp2" in raised.value.hint
    assert f"{sys.executable} -m pip install -e '.[sandbox]'" in raised.value.hint


def test_make_setup_installs_what_the_readme_needs(tmp_path):
    root = Path(__file__).parents[3]
    done = subprocess.run(
        ["make", "-n", "setup", f"VENV={tmp_path}/venv"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "--editable '.[sandbox,keystrokes,desk]'" in done.stdout
    assert ".ci/sandbox" in done.stdout
    assert "sudo apt-get install bubblewrap libseccomp2" in done.stdout


@pytest.mark.parametrize("mode", ["table", "error"])
def test_a_hostile_script_is_dropped_and_the_rest_goes_on(folder, mode, monkeypatch):
    monkeypatch.setenv("PLANTED", MARKER)
    before = {path.name for path in folder.iterdir()}
    script = hostile(mode, marker=MARKER, paths=[folder / "learners.csv"], port=9, folder=folder)
    with ChatServer({"hostile": [Reply(fenced(script))], "good": [Reply(fenced(GOOD_SCRIPT))]}) as server:
        write_panel(folder / f"{mode}-asked.toml", server, "hostile", "good")
        done = synthesize(folder, "-o", f"{mode}.parquet", "--panel", f"{mode}-asked.toml", "--json")
        sent = [request.body for request in server.of("hostile")]
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["report"]["panelists"]
    assert [one["status"] for one in report] == ["dropped", "used"]
    assert MARKER not in done.stdout + done.stderr
    assert MARKER.encode() not in sent[0]
    new = {path.name for path in folder.iterdir()} - before
    cards = {f"{mode}-card.html", f"{mode}-card.json"}
    assert new == {f"{mode}-asked.toml", f"{mode}.toml", f"{mode}.parquet", f"{mode}-panel", *cards}
    for path in (folder / f"{mode}-panel").iterdir():
        if path.name != "hostile.py":
            assert MARKER not in path.read_text(encoding="utf-8")
    assert MARKER.encode() not in (folder / f"{mode}.parquet").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "-o synthetic.parquet"),
        (("-o", "x.xlsx"), 2, ".csv or .parquet"),
        (("-o", "absent/x.parquet"), 2, "no folder"),
        (("-o", "x.parquet", "--panel", "absent.toml"), 2, "no file"),
        (("-o", "x.parquet", "--script", "absent.py"), 2, "no file"),
        (("-o", "x.parquet", "--learners", "100000"), 2, "--per-panelist"),
        (("-o", "x.parquet", "--suggestions", "absent.txt"), 2, "no file"),
        (("-o", "x.parquet", "--panel", "key.toml"), 3, "secret"),
        (("-o", "x.parquet", "--panel", "who.toml"), 2, "no offline panelist 'nobody'"),
    ],
)
def test_wrong_use_is_a_sentence(folder, arguments, code, words):
    (folder / "key.toml").write_text(
        '[[panelist]]\nname = "a"\nprovider = "openai"\napi_key = "sk-planted"\n'
    )
    (folder / "who.toml").write_text('[[panelist]]\nname = "nobody"\nprovider = "offline"\n')
    done = synthesize(folder, *arguments)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert "planted" not in done.stderr
    assert not (folder / "x.parquet").exists()


def test_a_cohort_is_not_taken_for_a_summary(folder):
    run("simulate", "real.parquet", "--shape", "cohort", "--learners", "20", cwd=folder)
    for name in ("real.parquet", "learners.csv", "real.toml"):
        for command in (("prompt", name), ("synthesize", name, "-o", "from-a-cohort.csv")):
            done = run("cohort", *command, cwd=folder)
            assert done.returncode == 3, done.stdout
            assert MARKER not in done.stderr + done.stdout


def test_an_old_result_is_not_overwritten_by_halves(folder):
    os.makedirs(folder / "kept-panel", exist_ok=True)
    (folder / "kept-panel/note.txt").write_text("mine")
    done = synthesize(folder, "-o", "kept.parquet")
    assert done.returncode == 2
    assert "is there already" in done.stderr


def test_few_rows_per_panelist_are_enough_for_any_noise(folder):
    """What the noisy label shares ask for is made; the report says how many rows that were."""
    done = run(
        *("cohort", "synthesize", "summary.json", "-o", "few.csv", "--learners", "90", "--per-panelist", "2"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert read_cohort(folder / "few.csv").n_learners == 90
    report = json.loads((folder / "few-panel/report.json").read_text())
    assert report["rows_per_panelist_and_label"] == max(report["drawn"].values())
