"""`us.keystrokes`: its names, its verbs in memory, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import understudy as us
from tests.support.command import run
from understudy.core.files.simulated import mark_simulated
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import RefusedError
from understudy.keystrokes.formats.events import event_table
from understudy.keystrokes.simulate import EXPERIENCE, TypingCourse

NAMES = ["Keystrokes", "coarsen", "plan_statistics", "profile", "read", "scrub", "statistics", "sweep"]
DIGRAPHS = ["i n", "n t", "z q"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Events of a course and a label per learner."""
    folder = tmp_path_factory.mktemp("course")
    course = TypingCourse(n_learners=20, n_weeks=2, characters_per_week=900.0, habit=0.3)
    keystrokes, experience = course.simulate(np.random.default_rng(3))
    names = pl.Series([f"pupil {number}" for number in range(20)])
    table = event_table(keystrokes).with_columns(learner=names.gather(keystrokes.learner))
    table.write_csv(folder / "course.csv")
    labels = pl.Series("experience", EXPERIENCE).gather(experience)
    pl.DataFrame({"learner": names, "experience": labels}).write_csv(folder / "labels.csv")
    return folder


@pytest.fixture(scope="module")
def source(folder):
    return us.keystrokes.read(folder / "course.csv", labels=folder / "labels.csv")


@pytest.fixture
def ledger(tmp_path):
    return us.Ledger(tmp_path / "l.ledger")


def test_the_names():
    assert us.keystrokes.__all__ == dir(us.keystrokes) == NAMES
    assert all(getattr(us.keystrokes, name).__module__.startswith("understudy.keystrokes") for name in NAMES)
    assert "keystrokes" in us.__all__
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        _ = us.keystrokes.anonymise


def test_a_verb_is_a_function_whatever_was_imported_before(tmp_path):
    """A module with the name of a verb would take its place once it is imported."""
    for command in ("profile", "sweep", "coarsen", "statistics", "scrub"):
        assert run("keystrokes", command, "--help", cwd=tmp_path).returncode == 0
    for name in NAMES:
        assert callable(getattr(us.keystrokes, name))


def test_profiles_in_memory(source):
    found = us.keystrokes.profile(source, min_characters=200, digraphs=10)
    frame = found.to_frame()
    assert frame.height == found.profiles.n_owners == 20
    assert frame.columns[0] == "learner"
    assert "do not share" in " ".join(found.lines())
    assert "<table>" in found._repr_html_()
    coarse = us.keystrokes.profile(source, min_characters=200, digraphs=10, coarsen="bucket:200")
    assert not (coarse.profiles.values % 200).any()
    assert "who can still be identified" in " ".join(coarse.lines())


def test_coarse_events_in_memory(source, ledger):
    found = us.keystrokes.coarsen(source, bucket=300, keys="all", ledger=ledger.path)
    assert found.to_frame().columns == ["learner", "time_ms", "key"]
    assert found.to_json()["out"] is None
    assert "can be read" in found.warnings[0]
    assert "No formal guarantee" in found.page()
    assert "pupil" not in found.page() + found._repr_html_() + found.to_frame().write_csv()
    (entry,) = ledger.entries()
    assert (entry.kind, entry.epsilon) == ("keystrokes coarsen", None)


def test_statistics_in_memory(source, ledger):
    plan = us.keystrokes.plan_statistics(source, DIGRAPHS, groups="none,some", epsilon=4, ledger=ledger.path)
    assert "Nothing was spent" in plan.lines()[-1]
    assert not ledger.path.exists()
    settings = {"groups": "none,some", "epsilon": 4, "ledger": ledger.path}
    with pytest.raises(RefusedError, match="little but noise"):
        us.keystrokes.statistics(source, DIGRAPHS, **settings)
    assert not ledger.path.exists()
    found = us.keystrokes.statistics(source, DIGRAPHS, anyway=True, **settings)
    frame = found.to_frame()
    assert frame.columns == ["digraph", "group", "count", "mean_ms", "mean_noise_sd"]
    assert frame.height == 6
    assert frame.filter(digraph="z → q")["mean_ms"].null_count() == 2
    assert found.guarantee.epsilon == 4
    assert math.isclose(plan.to_json()["count_noise_sd"], found.to_json()["noise_sd"])
    assert [entry.epsilon for entry in ledger.entries()] == [4.0]
    assert "layer" in found.plot().to_dict()


def test_seeded_noise_leaves_no_guarantee(source, ledger):
    noise = seeded_noise(np.random.default_rng(1))
    found = us.keystrokes.statistics(
        source, DIGRAPHS, groups="none,some", epsilon=4, ledger=ledger.path, noise=noise, anyway=True
    )
    assert not found.guarantee.formal


@pytest.mark.usefixtures("small_forests")
def test_a_sweep_in_memory(source):
    found = us.keystrokes.sweep(
        source, largest=300, step=300, trained_step=300, guesses="5", min_characters=200
    )
    assert {"level", "way", "size", "value"} <= set(found.to_frame().columns)
    assert found.to_json()["report"] is None
    assert len(found.advice) == 4
    assert "Internal" in found._repr_html_()
    assert "layer" in found.plot().to_dict()


def test_a_program_is_scrubbed(tmp_path):
    (tmp_path / "hello.py").write_text("quixotl = 'x'\nprint('Anna Quixotl', quixotl)\n")
    found = us.keystrokes.scrub(tmp_path / "hello.py", tmp_path / "out.py")
    assert "quixotl" not in (tmp_path / "out.py").read_text().lower()
    assert found.to_frame()["count"].sum() > 0
    assert "No guarantee" in found.lines()[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda source: us.keystrokes.coarsen(source), "no coarsening was chosen"),
        (lambda source: us.keystrokes.coarsen(source, bucket=300, rare_keys=0), "at least 0 learners"),
        (lambda source: us.keystrokes.statistics(source, DIGRAPHS), "groups were not declared"),
        (
            lambda source: us.keystrokes.statistics(source, None, groups="none,some"),
            "would reveal something about its learners",
        ),
        (lambda source: us.keystrokes.sweep(source, guesses="many"), "whole numbers"),
        (lambda source: us.keystrokes.sweep(source, split="days"), "weeks, sessions"),
        (lambda source: us.keystrokes.profile(source, kinds="speed"), "trigraph"),
        (lambda source: us.keystrokes.profile(source, coarsen="noise:3"), "round:300"),
        (lambda source: us.keystrokes.profile(source, learners=3), "no setting 'learners'"),
    ],
)
def test_what_the_library_refuses(source, folder, call, words):
    before = sorted(folder.iterdir())
    with pytest.raises(us.UsageError, match=words) as error:
        call(source)
    assert "--" not in str(error.value)
    assert sorted(folder.iterdir()) == before


def test_simulated_learners_have_no_budget(folder, tmp_path):
    (tmp_path / "course.csv").write_bytes((folder / "course.csv").read_bytes())
    mark_simulated(tmp_path / "course.csv")
    source = us.keystrokes.read(tmp_path / "course.csv")
    found = us.keystrokes.statistics(source, DIGRAPHS, epsilon=40)
    assert "no budget was spent" in " ".join(found.lines())
