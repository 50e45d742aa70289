"""What a release is worth: what a goal needs, and the gate before the charge."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.support.command import run
from understudy.core.privacy.balance import Balance
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import RefusedError, UsageError
from understudy.logs.declared.term import Term
from understudy.logs.expectation import (
    Goal,
    budget_split,
    check_worth,
    expectations,
    expected_of,
    reach,
    time_split,
    without_jumps,
)
from understudy.logs.generators.baselines import Drop
from understudy.logs.generators.expected_error import ExpectedError, likeness
from understudy.logs.generators.forecast import forecast
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.release.card import expected_errors, limits
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.simulated.term import plan_of


def classroom(n_learners, n_actions):
    log = Classroom(n_learners=n_learners, n_actions=n_actions).simulate(np.random.default_rng(0))
    return replace(log.declare(), simulated=False)


LARGE, SMALL = classroom(1200, 10), classroom(40, 200)


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("difficulties 0.3", Goal("difficulties", 0.3)),
        ("transitions within 0,2", Goal("steps", 0.2)),
        (" actions .1", Goal("shares", 0.1)),
    ],
)
def test_a_goal_is_a_word_and_a_number(text, goal):
    assert Goal.parse(text) == goal


@pytest.mark.parametrize("text", ["", "difficulties", "beauty 0.3", "steps -1", "steps nan", "steps a lot"])
def test_what_is_no_goal_is_refused(text):
    with pytest.raises(UsageError, match="is not a goal"):
        Goal.parse(text)


def test_a_goal_needs_an_epsilon_and_tells_what_is_left():
    found = reach(LARGE, Goal("difficulties", 0.4), Balance("these", 10.0, 0.0, 0.0, 0, 0))
    assert expected_of(LARGE, found.epsilon).difficulties.expected == pytest.approx(0.4, rel=0.02)
    assert str(found).startswith(f"difficulties within 0.4: epsilon {found.epsilon:.2g} is needed; ")
    assert "left" not in str(replace(found, remaining=float("inf")))
    assert "is needed, and 0.01 can still be asked for" in str(replace(found, remaining=0.01))


def test_a_goal_may_take_all_that_can_still_be_asked_for():
    """Gaussian noise composes to less than the sum: with 8 of 10 spent, more than 2 can be asked for."""
    spent = RunsDP(8.0).guarantee_for(LARGE)
    balance = Balance("these", 10.0, 0.0, 0.0, 0, 0).after(spent)
    remaining = balance.remaining(spent)
    assert remaining > 5
    needed = expected_of(LARGE, 4.0).difficulties.expected
    found = reach(LARGE, Goal("difficulties", needed), balance)
    assert found.epsilon == pytest.approx(4.0, rel=0.02)
    assert found.remaining == remaining
    assert f"; {found.left:.3g} could be asked for after it" in str(found)
    assert found.left == balance.after(RunsDP(found.epsilon).guarantee_for(LARGE)).remaining(spent)


def test_what_no_epsilon_reaches_needs_more_learners():
    found = reach(SMALL, Goal("steps", 0.2), Balance("these", 10.0, 0.0, 0.0, 0, 0))
    assert "not reachable with 40 learners; about " in str(found)
    assert found.to_json()["epsilon"] is None
    assert expected_of(SMALL, 8.0, int(found.learners)).steps.expected == pytest.approx(0.2, rel=0.05)


def test_noise_is_not_paid_for_unless_somebody_says_so():
    with pytest.raises(RefusedError, match=r"little but noise .* Nothing was spent") as refused:
        check_worth(SMALL, RunsDP(1.0), anyway=False)
    assert refused.value.code == "mostly-noise"
    assert set(refused.value.fields["noise"]) == {"shares", "difficulties", "steps"}
    (doubt,) = check_worth(SMALL, RunsDP(1.0), anyway=True)
    assert "little but noise" in str(doubt)
    # Simulated learners have nothing to lose, and without a guarantee nothing is foreseen.
    assert check_worth(replace(SMALL, simulated=True), RunsDP(1.0), anyway=False) == ()
    assert check_worth(SMALL, Drop(0.5), anyway=False) == ()
    assert check_worth(LARGE, RunsDP(8.0), "shares, difficulties steps", anyway=False) == ()


def test_a_forecast_follows_the_log_and_the_method():
    """Rows past the longest sequence are ignored, lengths are the log's own, names that are not told do not count."""
    usual = expected_of(LARGE, 2.0)
    short = expected_of(LARGE, 2.0, like=RunsDP(8.0, longest=10.0))
    rows = np.minimum(LARGE.lengths, 10).mean()
    assert short.shares == forecast(1200, 10, rows, 2.0).shares
    assert short.shares.noise > usual.shares.noise
    assert expected_of(LARGE, 2.0, like=RunsDP(8.0, delta=1e-9)).risk.delta == 1e-9
    assert expected_of(LARGE, 2.0, drawn=300).shares.chance == pytest.approx(2 * usual.shares.chance)
    even = replace(
        LARGE, offsets=np.arange(1201) * 20, action=LARGE.action[:24_000], outcome=LARGE.outcome[:24_000]
    )
    assert expected_of(even, 2.0).rows_factor < usual.rows_factor
    found = replace(SMALL, declared=False)
    assert expected_of(found, 8.0).shares.chance < expected_of(SMALL, 8.0).shares.chance
    assert expected_of(found, 8.0).risk.found < expected_of(SMALL, 8.0).risk.found


def test_no_release_is_called_fair_that_the_gate_calls_noise():
    """One rule for both; the card counts with the fewest rows that the original may have had."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        log = classroom(int(rng.integers(10, 60)), int(rng.integers(4, 20)))
        fitted = RunsDP(6.0).fit(log, rng, seeded_noise(rng))
        stated = expected_errors(fitted.sample(None, rng), fitted, RunsDP(6.0).guarantee_for(log))
        for use in expected_of(log, 6.0).mostly_noise_for:
            assert stated[use]["likeness"] == "mostly noise"


@pytest.mark.parametrize(
    ("error", "word"), [(0.05, "close"), (0.14, "fair"), (0.28, "rough"), (0.29, "mostly noise")]
)
def test_words_go_by_how_far_one_is_off_without_a_release(error, word):
    assert ExpectedError(error, 0.0, 0.43).to_json()["likeness"] == word
    assert likeness(error / 0.43, 1.0) == word


def test_it_counts_what_the_data_is_meant_for():
    middling = classroom(600, 100)
    assert expected_of(middling, 3.0).mostly_noise_for == ["steps"]
    (doubt,) = check_worth(middling, RunsDP(3.0), anyway=False)
    assert "which action follows which" in str(doubt)
    with pytest.raises(RefusedError, match="which action follows which"):
        check_worth(middling, RunsDP(3.0), "transitions", anyway=False)
    with pytest.raises(UsageError, match="no use 'beauty'"):
        check_worth(middling, RunsDP(3.0), "beauty", anyway=False)


def test_it_says_beforehand_where_steps_are_not_asked_for():
    log = Classroom(n_learners=100, n_actions=100).simulate(np.random.default_rng(0)).declare()
    forecasts = expectations(log, RunsDP(2.0))
    asked = {each.risk.epsilon: each.jumps_asked for each in forecasts}
    assert not asked[0.5]
    assert asked[8.0]
    last = max(epsilon for epsilon, jumps in asked.items() if not jumps)
    assert f"Up to epsilon {last:g} " in without_jumps(forecasts)
    rng = np.random.default_rng(0)
    for epsilon in (0.5, 8.0):
        fitted = RunsDP(epsilon).fit(log, rng, seeded_noise(rng))
        assert ("jumps 0" in fitted.transcript_) == asked[epsilon]
    assert without_jumps([each for each in forecasts if each.jumps_asked]) == ""


def test_times_and_columns_leave_less_for_all_else():
    log = Classroom(n_learners=300, timed=True).simulate(np.random.default_rng(0)).declare()
    plain, timed, method = replace(log, columns=(), term=None), replace(log, columns=()), RunsDP(8.0)
    off = [expected_of(each, 8.0).shares.noise for each in (plain, timed, log)]
    assert off[0] < off[1] < off[2]
    assert budget_split(plain, method) == time_split(plain) == {}
    split = budget_split(log, method)
    assert list(split) == ["actions and outcomes", "times", "columns"]
    assert sum(split.values()) == pytest.approx(1.0)
    # 300 learners: times have twice their usual share.
    assert split["times"] / split["actions and outcomes"] == pytest.approx(2 * 0.295)
    found = budget_split(replace(timed, term=Term()), method)
    assert found["finding the term"] / found["actions and outcomes"] == pytest.approx(2 * 0.06)
    assert sum(time_split(timed).values()) == pytest.approx(1.0)


def test_a_card_knows_what_times_took():
    log = Classroom(n_learners=300, timed=True).simulate(np.random.default_rng(0)).declare()
    timed = replace(log, columns=())
    fitted = RunsDP(8.0).fit(timed, np.random.default_rng(0), seeded_noise(np.random.default_rng(0)))
    assert fitted.detail_shares_ == RunsDP(8.0).divided(timed)
    claim = fitted.guarantee_for(timed)
    stated = expected_errors(fitted.sample(rng=np.random.default_rng(0)), fitted, claim)
    assert stated["shares"]["noise"] == pytest.approx(expected_of(timed, 8.0).shares.noise, rel=0.2)


def test_explain_and_card_say_how_far_times_and_columns_will_be_off(tmp_path):
    log = Classroom(n_learners=300, timed=True).simulate(np.random.default_rng(0)).declare()
    log.to_polars("s").write_csv(tmp_path / "log.csv")
    log.learners_to_polars("s").write_csv(tmp_path / "table.csv")
    (tmp_path / "plan.toml").write_text(plan_of(log, "table.csv"))
    asked = ("release", "log.csv", "--plan", "plan.toml", "--explain", "-o", "b", "--public-actions")
    printed = run(*asked, cwd=tmp_path).stdout
    assert "Expected errors of times" in printed
    assert "'final_score' by up to" in printed
    (at_8,) = [
        each
        for each in json.loads(run(*asked, "--json", cwd=tmp_path).stdout)["predictions"]
        if each["epsilon"] == 8.0
    ]
    rng = np.random.default_rng(0)
    fitted = RunsDP(8.0).fit(log, rng, seeded_noise(rng))
    synthetic = fitted.sample(rng=rng)
    stated = expected_errors(synthetic, fitted, fitted.guarantee_for(log))
    assert stated["times"] == at_8["times"]
    assert {name: column["most"] for name, column in stated["columns"].items()} == at_8["columns"]
    assert stated["columns"]["hint"]["given"] == ["action", "outcome"]
    first, second, third = limits(synthetic, keeps_rows=False)
    assert "not the learner" in first
    assert "neither times nor single actions" in second
    assert "favourite hours do not show" in third
    assert (
        limits(synthetic, keeps_rows=True)
        == limits(replace(log, term=None, columns=()), keeps_rows=False)
        == []
    )
