"""The simulated classroom with times: what it promises about times and columns, and that its rows stay as they were."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.simulated.term import plan_of


@pytest.fixture(scope="module")
def log() -> Interactions:
    return Classroom(n_learners=800, timed=True).simulate(np.random.default_rng(4))


def test_the_rows_are_those_of_the_classroom_without_times(log: Interactions) -> None:
    plain = Classroom(n_learners=800).simulate(np.random.default_rng(4))
    assert plain.time is None
    assert plain.term is None
    assert not plain.columns
    for name in ("action", "outcome", "offsets", "group"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(log, name))


def test_times_are_whole_seconds_of_the_declared_term_and_never_run_backwards(log: Interactions) -> None:
    assert log.time is not None
    assert log.term is not None
    assert log.has_times
    assert log.term.first == date(2024, 9, 2)
    assert log.term.n_days == 98
    days = log.time.astype("datetime64[D]")
    assert days.min() >= np.datetime64(log.term.first)
    assert days.max() <= np.datetime64(log.term.last)
    assert (log.time == log.time.astype("datetime64[s]")).all()
    inside = np.diff(log.learner) == 0
    assert (np.diff(log.time)[inside] >= np.timedelta64(0)).all()
    assert (np.diff(log.time)[inside] > np.timedelta64(0)).mean() > 0.999


def test_learners_begin_early_and_leave_over_the_weeks(log: Interactions) -> None:
    assert log.time is not None
    week = (log.time - np.datetime64("2024-09-02")) // np.timedelta64(7, "D")
    first, last = week[log.offsets[:-1]], week[log.offsets[1:] - 1]
    assert 0.6 < (first == 0).mean() < 0.8
    active = np.array([((first <= w) & (last >= w)).mean() for w in range(14)])
    assert (np.diff(active[1:]) < 0).all()
    assert active[1] > 0.6
    assert active[13] < 0.2


def test_gaps_depend_on_what_is_done(log: Interactions) -> None:
    assert log.time is not None
    gap = np.diff(log.time) / np.timedelta64(1, "s")
    inside = (np.diff(log.learner) == 0) & (gap < 1800)
    other, failed = np.diff(log.action) != 0, log.success[:-1] == 0
    assert np.median(gap[inside & other & ~failed]) > 1.3 * np.median(gap[inside & ~other & ~failed])
    assert np.median(gap[inside & ~other & failed]) > 1.1 * np.median(gap[inside & ~other & ~failed])


def test_learners_have_hours_of_their_own(log: Interactions) -> None:
    """Two halves of a learner's rows share hours of the week more than halves of different learners do."""
    assert log.time is not None
    hour = (log.time.astype("datetime64[h]").astype(int) + 72) % 168
    assert not np.isin(hour % 24, range(7)).any()
    session = (
        np.r_[True, np.diff(log.time) > np.timedelta64(30, "m")] | np.r_[True, np.diff(log.learner) != 0]
    )
    starts, learner = hour[session], log.learner[session]
    same = learner[:, None] == learner[None, :]
    alike = starts[:, None] == starts[None, :]
    others = alike[~same].mean()
    np.fill_diagonal(same, False)
    assert alike[same].mean() > 3 * others


def test_columns_say_something_about_learners_and_rows(log: Interactions) -> None:
    named = {column.declared.name: column.cells for column in log.columns}
    assert [*named] == ["school", "grade", "home_language", "final_score", "hint", "device"]
    assert [column.declared.of for column in log.columns] == ["learner"] * 4 + ["row"] * 2
    rate = np.bincount(log.learner, weights=log.success) / log.lengths
    score = named["final_score"]
    present = ~np.isnan(score)
    assert 0.02 < 1 - present.mean() < 0.3
    assert np.corrcoef(score[present], rate[present])[0, 1] > 0.4
    assert named["hint"][log.success == 0].mean() > 3 * named["hint"][log.success == 1].mean()
    assert np.bincount(named["device"]).min() > 0.1 * log.n_rows


def test_the_plan_beside_the_files_declares_all_of_them(tmp_path: Path, log: Interactions) -> None:
    log.to_polars().write_csv(tmp_path / "log.csv")
    log.learners_to_polars().write_csv(tmp_path / "learners.csv")
    (tmp_path / "plan.toml").write_text(plan_of(log, "learners.csv"))
    read = read_log(tmp_path / "log.csv", plan=tmp_path / "plan.toml")
    assert read.term == log.term
    np.testing.assert_array_equal(read.time, log.time)
    assert [c.declared for c in read.columns] == [c.declared for c in log.columns]
    for found, wanted in zip(read.columns, log.columns, strict=True):
        np.testing.assert_array_equal(found.cells, wanted.cells)
