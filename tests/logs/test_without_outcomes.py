"""Logs without outcomes: every verb takes them, and nothing about success is made up."""

import csv
import json

import numpy as np
import pytest

from tests.logs.generators.test_every_generator import QUICK
from understudy.errors import DataError, UsageError
from understudy.logs.audit import audit
from understudy.logs.expectation import Goal, expected_of, reach
from understudy.logs.generators.baselines import Drop
from understudy.logs.generators.registry import generator_names, parse_generator
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.inspect import inspect
from understudy.logs.reading import read_log
from understudy.logs.release.bundle import release
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.study import StudyOptions, study
from understudy.logs.utility import METRICS, Real, measure

OF_ROWS = {metric.name for metric in METRICS if metric.about == "rows"}


@pytest.fixture(scope="module")
def log():
    drawn = Classroom(n_learners=80, n_actions=10).simulate(np.random.default_rng(3))
    return drawn.without_outcomes().declare()


def written(path, *rows):
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_file_without_a_column_of_outcomes_is_read_without_them(tmp_path):
    path = written(tmp_path / "log.csv", "student,activity", "a,x", "a,y", "b,x")
    log = read_log(path)
    assert log.outcome is None
    assert log.to_polars().columns == ["learner", "action"]
    assert "The log is read without outcomes." in log.origin.notes


@pytest.mark.parametrize("name", ["corect", "x"])
def test_a_column_that_may_hold_outcomes_is_asked_about(tmp_path, name):
    path = written(tmp_path / "log.csv", f"student,activity,{name}", "a,x,0", "a,y,1", "b,x,1")
    with pytest.raises(DataError) as caught:
        read_log(path)
    assert caught.value.code == "no-such-column"
    assert "no_outcomes" in caught.value.settings
    assert read_log(path, no_outcomes=True).outcome is None
    assert read_log(path, outcome=name).outcome.tolist() == [0, 1, 1]


def test_a_column_of_outcomes_can_be_left_out(tmp_path):
    path = written(tmp_path / "log.csv", "student,activity,correct", "a,x,0", "a,y,what", "b,x,1")
    assert read_log(path, no_outcomes=True).outcome is None


@pytest.mark.parametrize("name", generator_names())
def test_every_generator_learns_from_it_and_invents_no_outcome(log, name):
    fitted = parse_generator(QUICK.get(name, name)).fit(log, np.random.default_rng(1))
    drawn = fitted.sample(rng=np.random.default_rng(2))
    assert drawn.outcome is None
    assert drawn.n_rows


def test_metrics_of_outcomes_do_not_appear(log):
    halves = log.select(np.arange(40)), log.select(np.arange(40, 80))
    found = measure(Real(*halves), halves[1])
    assert set(found) == OF_ROWS
    assert inspect(log).description.success_rate is None
    assert {share.points for share in inspect(log).uniqueness} == {"action"}


def test_an_audit_finds_members_and_leaves_out_what_needs_outcomes(log):
    members, outsiders = log.select(np.arange(40)), log.select(np.arange(40, 80))
    copied = Drop(0.2).fit(members).sample(rng=np.random.default_rng(0))
    found = audit(members, outsiders, copied)
    assert found.worst.auc > 0.9
    assert found.attribute is None
    assert not any("outcomes" in estimate.attack for estimate in found.risk.estimates)


def test_an_audit_goes_by_actions_where_one_log_lacks_outcomes():
    real = Classroom(n_learners=60, n_actions=10).simulate(np.random.default_rng(4))
    members, outsiders = real.select(np.arange(30)), real.select(np.arange(30, 60))
    mixed = audit(members, outsiders, members.without_outcomes())
    without = audit(*(each.without_outcomes() for each in (members, outsiders, members)))
    assert mixed.worst == without.worst


def test_no_forecast_of_difficulties(log):
    found = expected_of(log, 8.0)
    assert found.foreseen == ["shares", "steps"]
    assert found.to_json()["difficulties"] is None
    # What difficulties would have cost goes to the rest.
    with_outcomes = expected_of(log.with_failures(), 8.0)
    assert found.shares.noise < with_outcomes.shares.noise


def test_difficulties_are_refused_before_anything_is_spent(log, tmp_path):
    with pytest.raises(UsageError) as caught:
        release(log, tmp_path / "bundle", RunsDP(epsilon=8), ledger=tmp_path / "l", meant_for="difficulties")
    assert caught.value.code == "no-outcomes"
    assert not (tmp_path / "l").exists()
    with pytest.raises(UsageError):
        reach(log, Goal.parse("difficulties 0.3"))
    assert reach(log, Goal.parse("shares 0.3")).epsilon < 8


def test_a_release_has_no_outcomes_anywhere(log, tmp_path):
    released = release(log, tmp_path / "bundle", RunsDP(epsilon=8), ledger=tmp_path / "l")
    share = released.folder / "share"
    with open(share / "synthetic.csv") as file:
        assert next(csv.reader(file)) == ["learner", "action"]
    card = json.loads((share / "card.json").read_text())
    assert "outcome" not in card["what"]
    assert [column["column"] for column in card["columns"]] == ["learner", "action"]
    assert not any("success" in use["name"] or "difficult" in use["name"] for use in card["accuracy"])
    pages = (share / "card.html").read_text() + (released.folder / "keep" / "report.html").read_text()
    assert "succeeded" not in pages
    assert "how it went" not in pages
    assert "Success by attempt" not in pages


def test_a_study_plots_shares_where_there_are_no_difficulties(log, tmp_path):
    found = study(log, ["markov", "drop:0.5"], StudyOptions(1, 8), out=tmp_path / "study")
    rows = found.to_frame()
    assert rows["wrmse"].null_count() == rows.height
    assert rows["action_tv"].null_count() == 0
    page = (tmp_path / "study" / "report.html").read_text()
    assert "share of rows with another action" in page
