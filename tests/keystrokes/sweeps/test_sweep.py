"""The sweep: what it measures on a small simulated course, its advice, and that it can be resumed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from understudy.errors import DataError, UsageError
from understudy.keystrokes.simulate import TypingCourse
from understudy.keystrokes.sweeps.course import SweepOptions, prepare
from understudy.keystrokes.sweeps.report import LOOKS, compared_sizes, legend, together, write_results
from understudy.keystrokes.sweeps.results import (
    AVERAGES,
    BY_TEXT,
    EVENTS,
    IDENTIFICATION,
    MATCHED,
    PUBLISHED,
    STRONGEST,
    Row,
    advise,
    describe_dip,
    select,
)
from understudy.keystrokes.sweeps.sweep import run_sweep, sweep_tasks

OPTIONS = SweepOptions(largest=600.0, step=100.0, trained_step=300.0, guesses="1,5", min_characters=200)


@pytest.fixture(scope="module")
def course():
    keystrokes, experience = TypingCourse(
        n_learners=24, n_weeks=3, characters_per_week=900.0, habit=0.3, drift=0.05
    ).simulate(np.random.default_rng(1))
    return prepare(keystrokes, experience.astype(np.int32), OPTIONS)


@pytest.fixture(scope="module")
def rows(course):
    """Without labels: their inference takes most of the time, and one size shows it."""
    return run_sweep(replace(course, labels=None), OPTIONS)


def line(values, *, name=STRONGEST, highs=None, measure=IDENTIFICATION, baseline=0.05):
    return [
        Row(EVENTS, "round", 100.0 * i, measure, name, 10, value, value, high, baseline, 200)
        for i, (value, high) in enumerate(zip(values, highs or values, strict=True))
    ]


def one(rows, **wanted):
    (found,) = select(rows, **wanted)
    return found


def test_typing_as_it_was_names_nearly_everybody(rows):
    found = one(rows, level=AVERAGES, way="bucket", size=0.0, k=5, name=PUBLISHED)
    assert found.value > 0.9
    assert found.baseline == pytest.approx(5 / found.n_learners)


def test_coarse_averages_hide_and_coarse_events_do_not(rows):
    """The thesis coarsens averages; a release holds events, whose averages are fine again."""
    averages = one(rows, level=AVERAGES, way="bucket", size=300.0, k=5, name=PUBLISHED)
    events = one(rows, level=EVENTS, way="bucket", size=300.0, k=5, name=STRONGEST)
    assert averages.value < 0.5
    assert events.low > averages.value


def test_one_cell_for_everybody_leaves_guessing(rows):
    found = select(rows, level=AVERAGES, way="bucket", size=600.0, k=5, measure=IDENTIFICATION)
    assert all(row.value == pytest.approx(row.baseline) for row in found if row.name == PUBLISHED)


def test_both_ways_agree_where_nothing_is_coarse(rows):
    for name in (PUBLISHED, "manhattan"):
        values = {
            one(rows, level=AVERAGES, way=w, size=0.0, k=5, name=name).value for w in ("bucket", "round")
        }
        assert len(values) == 1


def test_inference_is_beside_its_majority(course):
    rows = sweep_tasks(course, OPTIONS)["averages bucket 0"]()
    (link,) = select(rows, measure="preserved", name="speed with the label")
    assert link.low <= link.value <= link.high
    found = select(rows, measure="inference")
    assert {row.name for row in found} == {"linear-discriminant", "random-forest"}
    assert len({row.baseline for row in found}) == 1


def test_the_text_alone_names_nobody_when_all_type_the_same_lines(rows):
    text = one(rows, measure=BY_TEXT, k=5)
    assert text.low < text.baseline < text.high


def test_advice_needs_everything_coarser_at_chance():
    rows = line([1.0, 0.05, 0.6, 0.05, 0.05], highs=[1.0, 0.09, 0.7, 0.09, 0.09])
    assert advise(rows, EVENTS, "round", 10).size == 300.0
    rows = line([1.0, 0.05, 0.6], highs=[1.0, 0.09, 0.7])
    found = advise(rows, EVENTS, "round", 10)
    assert found.size is None
    assert "Even at 200 ms" in found.because


def test_advice_looks_at_the_bound_and_not_at_the_rate():
    rows = line([1.0, 0.05, 0.05], highs=[1.0, 0.11, 0.09])
    assert advise(rows, EVENTS, "round", 10).size == 200.0


def test_advice_listens_to_every_attack_at_every_size():
    """Also to those that ran between the sizes of the trained ones, and to fewer guesses."""
    quiet = line([1.0, 0.05, 0.05, 0.05], highs=[1.0, 0.09, 0.09, 0.09])
    assert advise(quiet, EVENTS, "round", 10).size == 100.0
    loud = Row(EVENTS, "round", 150.0, IDENTIFICATION, PUBLISHED, 10, 0.9, 0.85, 0.95, 0.05, 200)
    assert advise([*quiet, loud], EVENTS, "round", 10).size == 200.0
    first = Row(EVENTS, "round", 250.0, IDENTIFICATION, STRONGEST, 1, 0.07, 0.04, 0.12, 0.005, 200)
    assert advise([*quiet, first], EVENTS, "round", 10).size == 300.0


def test_attackers_see_all_averages_that_usefulness_is_measured_on(rows):
    found = select(rows, level=AVERAGES, way="bucket", size=300.0, k=5, measure=IDENTIFICATION)
    names = {row.name for row in found}
    assert {"cell-likelihood", "cell-likelihood-many", "within-mahalanobis-many", "euclidean-many"} <= names


def test_everybody_is_matched_together_where_attackers_learn(rows):
    """Likelihoods name each person once; where only nearest profiles are tried, they do not run."""
    for level, size, expected in (
        (EVENTS, 300.0, {"histogram", "histogram-many", "forest"}),
        (AVERAGES, 300.0, {"cell-likelihood", "cell-likelihood-many", "forest"}),
        (AVERAGES, 100.0, set()),
    ):
        found = select(rows, level=level, way="bucket", size=size, k=5, measure=IDENTIFICATION)
        assert {row.name for row in found if row.name.endswith(MATCHED)} == {
            f"{n}{MATCHED}" for n in expected
        }
    as_typed, *coarse = together(rows, (1, 5))
    assert as_typed["size"] == 0.0
    assert [(line["way"], line["size"]) for line in coarse] == [
        *(("bucket", 300.0), ("bucket", 600.0), ("round", 300.0), ("round", 600.0))
    ]
    for line_of in (as_typed, *coarse):
        for single, joint in line_of["named"]:
            assert single.k == joint.k
            assert joint.name.endswith(MATCHED)
            assert not single.name.endswith(MATCHED)


def test_too_few_learners_for_an_advice_is_said():
    found = advise(line([1.0, 0.43], baseline=0.43), EVENTS, "round", 10)
    assert found.size is None
    assert "too few learners" in found.because


def test_a_dip_is_described_and_a_fall_is_not():
    dip = line([1.0, 0.8, 0.2, 0.7, 0.1], name=PUBLISHED)
    words = describe_dip(dip, EVENTS, "round", 10)
    assert words is not None
    assert "20.0 % at 200 ms" in words
    assert "70.0 % at 300 ms" in words
    assert describe_dip(line([1.0, 0.8, 0.5, 0.2], name=PUBLISHED), EVENTS, "round", 10) is None


@pytest.mark.usefixtures("small_forests")
def test_an_interrupted_sweep_goes_on(course, tmp_path):
    folder = tmp_path / "unfinished"
    without = replace(course, labels=None)
    small = replace(OPTIONS, largest=300.0)
    done = run_sweep(without, small, folder)
    kept = sorted(folder.glob("cells/*.json"))
    assert len(kept) == len(sweep_tasks(without, small))
    # A task that was done is taken as it is kept, and one that was lost is done again.
    told = json.loads(kept[0].read_text())
    told[0]["value"] = 0.123
    kept[0].write_text(json.dumps(told))
    kept[-1].unlink()
    again = run_sweep(without, small, folder)
    assert 0.123 in [row.value for row in again]
    assert len(again) == len(done)
    assert [row.value for row in again if row.value != 0.123] == pytest.approx(
        [one.value for one, row in zip(done, again, strict=True) if row.value != 0.123]
    )


@pytest.mark.usefixtures("small_forests")
def test_other_options_do_not_go_on_with_an_unfinished_sweep(course, tmp_path):
    folder = tmp_path / "unfinished"
    small = SweepOptions(largest=100.0, step=100.0, trained_step=100.0, guesses="1", min_characters=200)
    without = replace(course, labels=None)
    run_sweep(without, small, folder)
    with pytest.raises(UsageError, match="holds another sweep"):
        run_sweep(without, replace(small, seed=2), folder)
    with pytest.raises(UsageError, match="holds another sweep"):
        run_sweep(replace(course, labels=1 - course.labels), small, folder)


def test_fewer_learners_than_guesses_is_said():
    keystrokes, experience = TypingCourse(n_learners=6, n_weeks=2, characters_per_week=400.0).simulate(
        np.random.default_rng(1)
    )
    with pytest.raises(DataError, match="10 guesses"):
        prepare(keystrokes, experience.astype(np.int32), replace(OPTIONS, guesses="10"))


def test_one_week_only_is_said():
    keystrokes, _ = TypingCourse(n_learners=12, n_weeks=1, characters_per_week=400.0).simulate(
        np.random.default_rng(1)
    )
    with pytest.raises(DataError, match="two weeks"):
        prepare(keystrokes, None, OPTIONS)


def test_all_that_stands_in_the_way_is_said_at_once():
    keystrokes, _ = TypingCourse(n_learners=12, n_weeks=1, characters_per_week=400.0).simulate(
        np.random.default_rng(1)
    )
    one_sitting = replace(keystrokes, session=np.zeros_like(keystrokes.session))
    options = replace(OPTIONS, guesses="10", min_characters=2000)
    with pytest.raises(DataError) as caught:
        prepare(one_sitting, None, options)
    declare = caught.value.fields["declare"]
    assert (declare["split"], declare["session"]) == ("sessions", "COLUMN")
    assert int(declare["min_characters"]) < 2000
    # With what was advised, and sessions, nothing is left in the way.
    half = np.arange(keystrokes.n_rows) - np.searchsorted(keystrokes.learner, keystrokes.learner) >= 150
    two_sittings = replace(keystrokes, session=half.astype(keystrokes.session.dtype))
    prepare(
        two_sittings,
        None,
        replace(options, split="sessions", min_characters=int(declare["min_characters"])),
    )


@pytest.mark.usefixtures("small_forests")
def test_the_report_holds_every_figure_and_no_row(course, rows, tmp_path):
    write_results(tmp_path, rows, course, OPTIONS, "experience")
    page = (tmp_path / "report.html").read_text()
    assert "Simulated data" in page
    assert "Everybody together" in page
    assert "5 guesses, matched" in page
    for name, words in legend(course, 5, "experience"):
        assert f"<dt>{name}</dt><dd>{words}</dd>" in page
    # What was not tried is not promised.
    assert "events, 500 ms steps" not in compared_sizes(rows, 5)
    assert "events, 500 ms steps" not in page
    assert [name for name, _ in legend(replace(course, labels=None), 5, None)] == list(LOOKS)[:3]
    assert {path.stem for path in tmp_path.glob("*.svg")} == {
        "bucket-events",
        "round-events",
        "bucket-averages",
        "round-averages",
        "attacks",
    }
    assert "anonymous" not in page
    assert len((tmp_path / "results.csv").read_text().splitlines()) == len(rows) + 1
