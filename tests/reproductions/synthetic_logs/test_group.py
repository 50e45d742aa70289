"""What a synthetic log tells about a sensitive group: the measure against closed forms, and small groups."""

import numpy as np
import pytest
from scipy.stats import norm

from reproductions.synthetic_logs import group
from understudy.logs.simulated.classroom import Classroom

SMALL = Classroom(n_learners=150, n_actions=10, shortest=10)


@pytest.mark.oracle
def test_normal_scores_give_the_aucs_that_follow_from_their_means():
    """The condition moves a score by 1, being in the log by another 0.5: Phi of the distance over sqrt(2)."""
    rng, n = np.random.default_rng(0), 30_000
    condition = np.arange(n) < n // 2
    member = np.arange(n) < n // 4
    luck = rng.permutation(condition) & condition
    found = group.told(rng.normal(condition + 0.5 * member), member, condition, luck)
    expected = {"members": 1.5, "same condition": 1.0, "in the log or not": 0.5, "luck": 0.0}
    for name, distance in expected.items():
        assert found[name] == pytest.approx(norm.cdf(distance / np.sqrt(2)), abs=0.015)


def test_learners_with_the_condition_fail_more_and_stay_less_and_others_are_as_before():
    log = Classroom(n_learners=400, n_actions=10).simulate(np.random.default_rng(1))
    condition = np.arange(400) % 2 == 0
    changed = group.with_condition(log, condition, np.random.default_rng(2))
    before, after = (each.select(np.flatnonzero(~condition)) for each in (log, changed))
    np.testing.assert_array_equal(before.action, after.action)
    np.testing.assert_array_equal(before.outcome, after.outcome)
    before, after = (each.select(np.flatnonzero(condition)) for each in (log, changed))
    assert after.outcome.mean() == pytest.approx((1 - group.FAILS) * before.outcome.mean(), abs=0.03)
    assert (after.lengths > 0).all()
    assert after.n_rows < 0.85 * before.n_rows


def test_a_group_that_differs_is_told_without_the_learner_and_real_rows_tell_membership():
    larger = Classroom(n_learners=900, n_actions=10, shortest=10)
    private = group.measure_once("markov-dp:epsilon=8", True, 0, larger)["tracing-outcomes"]
    alike = group.measure_once("markov-dp:epsilon=8", False, 0, larger)["tracing-outcomes"]
    assert private["same condition"] > 0.6 > alike["same condition"]
    rows = group.measure_once("drop:0", True, 0, SMALL)["lcs-outcomes"]
    assert rows["in the log or not"] > 0.9
    assert 0.3 < rows["luck"] < 0.7


def test_a_table_has_a_row_per_method_and_group(tmp_path, monkeypatch):
    rows = group.measure(["markov"], n_seeds=1, classroom=SMALL)
    monkeypatch.setattr(group, "TABLE", tmp_path / "group.csv")
    group.write_rows(group.TABLE, group.COLUMNS, rows)
    assert [line.split(" | ")[1] for line in group.table().splitlines()[2:]] == ["differs", "does not differ"]
