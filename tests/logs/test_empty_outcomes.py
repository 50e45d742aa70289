"""Rows without an outcome: kept if that is declared, with the outcome as a column that may be empty."""

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError
from understudy.logs.generators.baselines import Drop
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.reading import read_log


@pytest.fixture
def path(tmp_path):
    """Every other action is a video, which has no outcome."""
    rows = [
        f"s{n},{'video' if k % 2 else 'quiz'},{'' if k % 2 else k % 4 // 2}"
        for n in range(600)
        for k in range(8)
    ]
    (tmp_path / "log.csv").write_text("\n".join(["learner,action,outcome", *rows]))
    return tmp_path / "log.csv"


def test_they_are_refused_unless_it_is_declared(path):
    with pytest.raises(DataError) as refused:
        read_log(path)
    assert refused.value.code == "empty-cells"
    assert "empty_outcomes" in refused.value.settings
    log = read_log(path, empty_outcomes=True)
    assert log.n_rows == 4800
    assert log.outcome is None
    assert log.to_polars()["outcome"].to_list()[:4] == ["no", None, "yes", None]


def test_a_file_that_was_written_is_read_again(path):
    log = read_log(path, empty_outcomes=True)
    log.to_polars().write_csv(path)
    again = read_log(path, empty_outcomes=True)
    assert again.to_polars().equals(log.to_polars())


@pytest.mark.parametrize("generator", [Drop(0.0), MarkovDP(epsilon=8)])
def test_generators_know_which_actions_have_none(path, generator):
    log = read_log(path, empty_outcomes=True, public_actions=True)
    rng = np.random.default_rng(3)
    frame = generator.fit(log, rng, seeded_noise(rng)).sample(None, rng).to_polars()
    videos, quizzes = (frame.filter(frame["action"] == action)["outcome"] for action in ("video", "quiz"))
    assert videos.is_null().mean() > 0.9
    assert quizzes.is_null().mean() < 0.1


def test_results_have_outcomes_where_events_have_none(tmp_path):
    (tmp_path / "log.csv").write_text("learner,action\na,page\na,forum\nb,page\nb,page\n")
    (tmp_path / "results.csv").write_text("learner,task,passed\na,test,1\nb,test,0\n")
    log = read_log(tmp_path / "log.csv", results=tmp_path / "results.csv", empty_outcomes=True)
    assert log.to_polars()["outcome"].to_list() == [None, None, "yes", None, None, "no"]


@pytest.mark.parametrize("generator", [MarkovDP(epsilon=8), RunsDP(epsilon=8)])
def test_with_few_learners_outcomes_are_still_there(tmp_path, generator):
    """120 learners of whom two of five rows are problems, among eighteen pages without an outcome."""
    rng = np.random.default_rng(5)
    rows = []
    for learner in range(120):
        for _ in range(int(rng.integers(10, 60))):
            problem = rng.random() < 0.4
            action = f"problem {rng.integers(12)}" if problem else f"page {rng.integers(18)}"
            rows.append(f"s{learner},{action},{int(rng.random() < 0.7) if problem else ''}")
    (tmp_path / "log.csv").write_text("\n".join(["learner,action,outcome", *rows]))
    log = read_log(tmp_path / "log.csv", empty_outcomes=True, public_actions=True)
    # As much of the budget as outcomes have elsewhere.
    assert sum(generator.divided(log).values()) == pytest.approx(0.4)
    frame = generator.fit(log, rng, seeded_noise(rng)).sample(None, rng).to_polars()
    problems = frame.filter(frame["action"].str.starts_with("problem"))["outcome"]
    assert problems.is_null().mean() < 0.35
    assert (problems.drop_nulls() == "yes").mean() == pytest.approx(0.7, abs=0.12)
