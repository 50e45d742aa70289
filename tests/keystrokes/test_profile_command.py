"""`keystrokes profile` and `sweep` as a person runs them."""

from __future__ import annotations

import csv
import json

import pytest

from tests.support.command import run

pytestmark = pytest.mark.functional

CANARY = "Zebulon-Quirke"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("typing")
    made = run("simulate", "course.csv", "--shape", "typing", "--learners", "24", cwd=place)
    assert made.returncode == 0, made.stderr
    return place


def test_profiles_are_written_without_names(folder, tmp_path):
    done = run("keystrokes", "profile", folder / "course.csv", "-o", "profiles.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["internal"]
    assert len(told["features"]) == 25
    with (tmp_path / "profiles.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["learner"] for row in rows] == [str(i + 1) for i in range(told["n_learners"])]
    assert "simulated-" not in (tmp_path / "profiles.csv").read_text()
    assert (tmp_path / "profiles.csv").stat().st_mode & 0o077 == 0


def test_profiles_of_other_kinds(folder, tmp_path):
    done = run(
        *("keystrokes", "profile", folder / "course.csv", "-o", "p.csv", "--kinds", "trigraph,key,hold"),
        *("--digraphs", "40", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert {name[0] for name in json.loads(done.stdout)["features"]} >= {"→", "↓"}


def test_nobody_typed_enough_is_said(folder, tmp_path):
    done = run(
        "keystrokes",
        "profile",
        folder / "course.csv",
        "-o",
        "p.csv",
        "--min-characters",
        "900000",
        cwd=tmp_path,
    )
    assert done.returncode == 3
    assert "--min-characters" in done.stderr
    assert not (tmp_path / "p.csv").exists()


def test_an_unknown_kind_is_said_before_the_file_is_read(tmp_path):
    done = run("keystrokes", "profile", "absent.csv", "-o", "p.csv", "--kinds", "speed", cwd=tmp_path)
    assert done.returncode == 2
    assert "trigraph" in done.stderr


@pytest.mark.usefixtures("small_forests")
def test_a_sweep_writes_table_figures_and_advice(folder, tmp_path):
    done = run(
        *("keystrokes", "sweep", folder / "course.csv", "--labels", folder / "course-labels.csv"),
        *("--largest", "300", "--step", "150", "--trained-step", "300", "--guesses", "1,5"),
        *("-o", "sweep", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["internal"]
    assert {(one["level"], one["way"]) for one in told["advice"]} == {
        (level, way) for level in ("events", "averages") for way in ("bucket", "round")
    }
    sweep = tmp_path / "sweep"
    assert {path.name for path in sweep.iterdir()} >= {
        "results.csv",
        "advice.json",
        "report.html",
        "bucket-events.svg",
        "bucket-events.png",
    }
    assert sweep.stat().st_mode & 0o077 == 0
    assert not list(tmp_path.glob(".sweep-unfinished*"))
    with (sweep / "results.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    typed = [
        row for row in rows if row["name"] == "strongest" and float(row["size"]) == 0 and row["k"] == "5"
    ]
    assert all(float(row["value"]) > 0.8 for row in typed)
    again = run("keystrokes", "sweep", folder / "course.csv", "-o", "sweep", cwd=tmp_path)
    assert again.returncode == 2
    assert "there already" in again.stderr


def test_a_clock_of_whole_seconds_has_no_rhythm(tmp_path):
    (tmp_path / "slow.csv").write_text(
        "learner,time,key\n" + "".join(f"a,2024-03-01T10:{i // 60:02}:{i % 60:02},x\n" for i in range(400))
    )
    done = run("keystrokes", "sweep", "slow.csv", "-o", "sweep", cwd=tmp_path)
    assert done.returncode == 3
    assert "clock" in done.stderr


def test_one_learner_is_too_few_and_no_name_is_told(tmp_path):
    (tmp_path / "one.csv").write_text(
        "learner,time_ms,key,week\n"
        + "".join(f"{CANARY},{i * 137 + i % 7},{'ab'[i % 2]},{i // 300}\n" for i in range(600))
    )
    done = run("keystrokes", "sweep", "one.csv", "-o", "sweep", "--min-characters", "100", cwd=tmp_path)
    assert done.returncode == 3
    assert "here is 1 learner." in done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_guesses_that_are_no_numbers(tmp_path):
    done = run("keystrokes", "sweep", "absent.csv", "-o", "sweep", "--guesses", "many", cwd=tmp_path)
    assert done.returncode == 2
    assert "such as 1,5,10 (--guesses)" in done.stderr
