"""One method after the other: what cannot be run is skipped with a message, and pages show it."""

import subprocess
import sys

import numpy as np
import pytest

from reproductions.head_to_head import environments, measure, page, trials
from reproductions.head_to_head.environments import Environment
from reproductions.head_to_head.figures import HEIGHT, LINE, NAMES_AT, apart, measured, places
from reproductions.head_to_head.methods import NOTHING, PEERS, Method, sources_of
from reproductions.head_to_head.trials import run, try_method
from reproductions.pages import rows_of, write_rows
from understudy.errors import DataError, MissingError
from understudy.logs.simulated.classroom import Classroom

COPY = ("-c", "import shutil, sys; shutil.copy(*sys.argv[1:])", "{train}", "{out}")
NOWHERE = Environment("nowhere", ("no-such-package",))
LOG = Classroom(n_learners=40, n_actions=6, longest=30)


@pytest.fixture(autouse=True)
def no_environments(monkeypatch, tmp_path):
    """No test makes an environment: pip always fails, as without a network."""
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path / "peers"))

    def create(place, **_):
        (place / "bin").mkdir(parents=True, exist_ok=True)

    def fail(words, **_):
        return subprocess.CompletedProcess(words, 1, "", "no network")

    monkeypatch.setattr(environments.venv, "create", create)
    monkeypatch.setattr(environments.subprocess, "run", fail)


def test_an_environment_that_cannot_be_made_is_said():
    with pytest.raises(MissingError) as raised:
        NOWHERE.python()
    assert raised.value.code == "no-environment"
    assert "nowhere" in raised.value.message


def test_an_environment_is_made_once(monkeypatch):
    done = []
    monkeypatch.setattr(
        environments.subprocess,
        "run",
        lambda words, **_: done.append(words[3]) or subprocess.CompletedProcess(words, 0, "", ""),
    )
    made = Environment("made", ("a",), removed=("b",))
    assert made.python() == made.python() == environments.folder() / "made" / "bin" / "python"
    assert done == ["install", "uninstall"]


def test_a_method_that_copies_its_rows_is_perfect_and_found_out():
    log = LOG.simulate(np.random.default_rng(1)).declare()
    row = try_method(log, Method("copy", NOTHING, COPY), 0)
    assert row["action_tv"] == row["transition_tv"] == row["wrmse"] == 0
    assert row["auc"] > 0.8
    assert row["trained_learners"] == 20
    assert row["seconds"] > 0
    assert row["megabytes"] > 1
    # The scores of others need their environments.
    assert "sdv_quality" not in row


def test_a_program_that_fails_or_takes_too_long_says_nothing_of_its_input():
    for code, seconds, words in (
        ("print('Ada'); 1 / 0", 60, "ended with 1"),
        ("while True: pass", 1, "not finished in .* of processor time"),
    ):
        with pytest.raises(DataError, match=words) as raised:
            run([sys.executable, "-c", code], seconds)
        assert "Ada" not in str(raised.value)


def test_the_memory_of_a_program_is_its_own():
    held = np.ones(2**26)  # 512 MB
    printed, cost = run([sys.executable, "-c", "print(1)"])
    assert printed == "1\n"
    assert cost.seconds > 0
    assert 1 < cost.megabytes < 0.25 * held.nbytes / 2**20


def test_a_program_that_waits_is_ended_by_the_clock(monkeypatch):
    monkeypatch.setattr(trials, "MOST_WAITING", 0.05)
    with pytest.raises(DataError, match="by the clock"):
        run([sys.executable, "-c", "import time; time.sleep(600)"], 60)


@pytest.fixture
def results(monkeypatch, tmp_path):
    """A table of results with one small log and two methods, of which one does not install."""
    monkeypatch.setattr(measure, "RESULTS", tmp_path / "results.csv")
    monkeypatch.setattr(measure.os, "nice", lambda _: 19)
    logs = {"classroom": lambda: LOG.simulate(np.random.default_rng(1)), "absent": no_log}
    monkeypatch.setattr(measure, "LOGS", logs)
    methods = (Method("copy", NOTHING, COPY), Method("absent", NOTHING, COPY, NOWHERE))
    monkeypatch.setattr(measure, "PEERS", {"both": methods})
    return tmp_path / "results.csv"


def no_log():
    raise MissingError("there is no such log.", hint="")


def test_methods_are_measured_on_three_halves_and_skipped_with_a_message(results, capsys):
    measure.measure_methods("both")
    said = capsys.readouterr().out
    assert "skipped: the environment of nowhere cannot be made" in said
    assert "absent: skipped: there is no such log." in said
    *copied, absent = rows_of(results)
    assert [(row["method"], row["seed"], row["problem"]) for row in copied] == [
        ("copy", str(seed), "") for seed in range(3)
    ]
    assert copied[0]["action_tv"] == "0.0000"
    assert (absent["method"], absent["action_tv"]) == ("absent", "")
    assert "nowhere" in absent["problem"]


def test_a_run_goes_on_where_it_ended_and_keeps_what_cannot_be_measured_again(results, monkeypatch, capsys):
    measure.measure_methods("both")
    measure.keep({"log": "classroom", "method": "absent", "seed": 0, "problem": "", "action_tv": 0.1})
    before = rows_of(results)
    monkeypatch.setattr(measure, "try_method", lambda *_: pytest.fail("it was measured before"))
    measure.measure_methods("both")
    assert capsys.readouterr().out.count("measured before") == 3
    assert rows_of(results) == before


def test_a_changed_method_is_measured_again_and_a_slow_one_once(results, monkeypatch):
    measure.measure_methods("both")
    changed = Method("copy", NOTHING, COPY, most_steps=3)
    monkeypatch.setattr(measure, "PEERS", {"both": (changed,)})
    monkeypatch.setattr(measure, "FAST_SECONDS", 0.0)
    measure.measure_methods("both")
    copied, absent = rows_of(results)
    assert copied["made_by"] == changed.fingerprint() != absent["made_by"]


def test_a_changed_program_that_makes_the_same_log_is_not_attacked_again(results, monkeypatch):
    measure.measure_methods("both")
    before = [row for row in rows_of(results) if row["method"] == "copy"]
    same = Method("copy", NOTHING, (COPY[0], COPY[1] + "  # again", *COPY[2:]))
    monkeypatch.setattr(measure, "PEERS", {"both": (same,)})
    monkeypatch.setattr(trials, "_attacked", None)
    measure.measure_methods("both")
    after = [row for row in rows_of(results) if row["method"] == "copy"]
    assert len(after) == len(before) == measure.N_HALVES
    assert {row["made_by"] for row in after} == {same.fingerprint()} != {before[0]["made_by"]}
    cost = {"seconds", "megabytes", "made_by"}
    assert [{k: v for k, v in row.items() if k not in cost} for row in after] == [
        {k: v for k, v in row.items() if k not in cost} for row in before
    ]


def test_the_page_shows_what_was_measured_and_what_was_not(monkeypatch, tmp_path):
    header = ("log", "problem", "method", "seed", "wrmse_centred", "action_tv", "sdv_quality")
    ours, peer, absent = "runs-dp:epsilon=8", "opendp MST, per row", "SDV PAR"
    rows = [
        ("classroom", "", ours, 0, 0.20, 0.10, 0.9),
        ("classroom", "", ours, 1, 0.30, 0.20, 0.9),
        ("classroom", "", peer, 0, 0.40, 0.05, 0.9),
        ("classroom", "it is not there.", absent, 0, "", "", ""),
    ]
    write_rows(tmp_path / "results.csv", header, rows)
    monkeypatch.setattr(page, "TABLES", tmp_path)
    found = page.means("classroom")
    assert found[ours]["wrmse_centred"] == pytest.approx(0.25)
    assert found[ours]["halves"] == 2
    table = page.utility_table(found)
    assert f"| `{ours}` | a learner | **0.250** | 0.150 |" in table
    assert f"| `{peer}` | a row | 0.400 | **0.050** |" in table
    assert "| it is not there. |" in table
    best = page.best_table("classroom")
    assert "|  | ours, covers a learner | others, covers a row | others, covers nothing |" in best
    assert f"| 0.250 (`{ours}`) | 0.400 (`{peer}`) | – |" in best
    # The peer that is better covers a row alone.
    monkeypatch.setattr(page, "LOGS", {"classroom": "the classroom"})
    assert page.better_at_equal_cover() == "- On the classroom: none."
    assert page.better("classroom") == (
        "- actions: total variation (ours: 0.150): `opendp MST, per row` by 0.100 (0.050)."
    )


def test_the_page_says_what_is_missing(monkeypatch, tmp_path):
    header = ("log", "problem", "method", "seed", "action_tv", "seconds", *(c.name for c in page.UTILITY[:1]))
    rows = [
        ("classroom", "", "runs", 0, 0.10, 5, 0.2),
        ("classroom", "", "runs", 1, 0.13, 5, 0.2),
        ("classroom", "", "gru", 0, 0.10, 500, 0.2),
        ("classroom", "not finished in 12 minutes.", "SDV PAR", 0, "", "", ""),
    ]
    names = [column.name for column in page.UTILITY if column.name not in header]
    write_rows(tmp_path / "results.csv", (*header, *names), [(*row, *[""] * len(names)) for row in rows])
    monkeypatch.setattr(page, "TABLES", tmp_path)
    monkeypatch.setattr(page, "LOGS", {"classroom": "the classroom"})
    monkeypatch.setattr(page, "METHODS", dict.fromkeys(("runs", "gru", "SDV PAR", "markov")))
    assert [page.halves(row) for row in page.means("classroom").values() if "seconds" in row] == [
        "2 of 3",
        "1",
    ]
    assert page.unfinished() == (
        "- On the classroom: `SDV PAR`: not finished in 12 minutes; not measured: `markov`; 1 of 3 rows lack halves."
    )
    # Ranges of 0.03 and 0, of the one method with two halves.
    assert page.halves_differ() == "by 0.015 on the classroom"


def test_points_on_both_sides_have_their_names_in_a_column_apart():
    points = [{"name": str(auc), "auc": auc, "error": 0.1} for auc in (0.51, 0.52, 0.7, 0.71)]
    named = places(points, [0.05, 1.0])
    assert [name["at"] for name in named] == pytest.approx([NAMES_AT, NAMES_AT, 0.72, 0.72])
    pixels = [HEIGHT * np.log(name["level"] / 0.05) / np.log(20) for name in named]
    assert np.diff(pixels)[::2] == pytest.approx(LINE)


def test_names_in_the_picture_stand_apart_and_within_it():
    crowded = apart([10.0, 11.0, 12.0, 200.0, HEIGHT, HEIGHT])
    assert np.diff(crowded).min() >= LINE
    assert crowded[0] >= 0
    assert crowded[-1] <= HEIGHT
    assert crowded[3] == 200.0
    assert {point["covers"] for point in measured("assistments")} == {"a learner", "a row", "nothing"}


def test_what_decides_about_a_generator_is_found_by_its_imports():
    stems = {
        method.label: {path.stem for path in sources_of(method.label)}
        for part in ("ours", "privtrace")
        for method in PEERS[part]
    }
    assert {"runs_dp", "markov_dp", "private_sums", "denoising", "calibration"} <= stems["runs-dp:epsilon=8"]
    # Imported where it is used, since it needs torch.
    assert "recurrent" in stems["gru"]
    assert "runs_dp" not in stems["markov"] | stems["gru"] | stems["markov-dp:epsilon=8"]
    assert "privtrace" in stems["privtrace:8"]


def test_a_check_that_was_not_run_is_shown_as_such(monkeypatch, tmp_path):
    claims = tmp_path / "claims.csv"
    facts = [("opendp", "problem", "no network."), ("privtrace", "counts_moved", 1.0)]
    write_rows(claims, ("peer", "fact", "value"), [*facts, ("privtrace", "laplace_scale", 0.3125)])
    monkeypatch.setattr(page, "CLAIMS", claims)
    table = page.claims_table()
    assert "not checked: no network." in table
    assert "moves each sum by 1 in L1, behind Laplace noise of scale 0.312" in table
