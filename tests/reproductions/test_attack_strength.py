"""The tables of docs/explanation/attacks.md are those that were measured; the measurement itself, small."""

import numpy as np
import pytest

from reproductions.attack_strength import tables
from reproductions.keystroke_privacy.together import matched_rows, statistics_rows
from reproductions.pages import ROOT
from understudy.keystrokes.simulate import TypingCourse
from understudy.keystrokes.sweeps.course import SweepOptions

OPTIONS = SweepOptions(guesses="1,5", step=300.0, trained_step=300.0, largest=300.0, min_characters=200)


def test_the_page_shows_what_was_measured():
    page = (ROOT / "docs" / "explanation" / "attacks.md").read_text(encoding="utf-8")
    for table in tables():
        assert table in page


@pytest.fixture(scope="module")
def typed():
    course = TypingCourse(n_learners=12, n_weeks=2, characters_per_week=500.0)
    return course.simulate(np.random.default_rng(1))[0]


def test_likelihoods_are_measured_one_by_one_and_matched(typed):
    rows = list(matched_rows("simulated", typed, OPTIONS, ["events bucket 300"]))
    assert {(row["attack"], row["k"]) for row in rows} == {
        (attack, k) for attack in ("histogram", "histogram-many", "forest") for k in (1, 5)
    }
    for row in rows:
        assert row["low"] <= row["matched"] <= row["high"]
        assert row["chance"] == pytest.approx(row["k"] / 12, abs=1e-3)


def test_statistics_are_attacked_at_two_prices(typed):
    cheap, dear = statistics_rows("simulated", typed, OPTIONS, n_halves=2)
    assert (cheap["epsilon"], dear["epsilon"]) == (2.0, 8.0)
    assert cheap["proved"] < dear["proved"]
    assert cheap["n_learners"] == 12
