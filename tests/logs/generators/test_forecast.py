"""Forecasts: monotone where they have to be, the other way round the same, and true on a few logs."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from reproductions.detail_forecasts import drawn_log, measured
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.declared.term import Term
from understudy.logs.generators.detail_forecast import TIME_USES
from understudy.logs.generators.detail_split import detail_shares
from understudy.logs.generators.forecast import USES, forecast, needed_epsilon, needed_learners
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.utility import Comparison, Real, action_tv, transition_tv, wrmse_centred

MEASURES = {"shares": action_tv, "difficulties": wrmse_centred, "steps": transition_tv}


@pytest.mark.parametrize("use", USES)
def test_more_learners_and_more_epsilon_are_off_by_less(use):
    by_epsilon = [forecast(300, 40, 30, epsilon).of(use).expected for epsilon in (0.5, 1, 2, 4, 8)]
    by_learners = [forecast(n, 40, 30, 2.0).of(use).expected for n in (30, 100, 1000, 10_000)]
    by_actions = [forecast(300, m, 30, 2.0).of(use).expected for m in (5, 50, 500)]
    # With long sequences and little budget next to nothing of a learner's rows is kept.
    of_long = [forecast(330, 1200, 575, epsilon).of(use).expected for epsilon in (0.5, 2, 4, 5, 6, 8)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert of_long == sorted(of_long, reverse=True)
    assert by_learners == sorted(by_learners, reverse=True)
    assert by_actions == sorted(by_actions)


@pytest.mark.parametrize("use", USES)
def test_the_other_way_round_gives_the_same_error(use):
    wanted = forecast(2000, 40, 30, 3.0).of(use).expected
    found = needed_epsilon(use, wanted, lambda epsilon: forecast(2000, 40, 30, epsilon), 50.0)
    assert found == pytest.approx(3.0, rel=0.02)
    assert needed_epsilon(use, 1e-6, lambda epsilon: forecast(2000, 40, 30, epsilon), 50.0) == np.inf
    learners = needed_learners(use, wanted, lambda n: forecast(n, 40, 30, 3.0))
    # With 1,500 learners and more there are other rounds, so the error has a small step there.
    assert learners == pytest.approx(2000, rel=0.1)


def test_noise_and_chance_are_told_apart():
    error = forecast(100_000, 20, 50, 8.0).shares
    small = forecast(50, 400, 10, 0.5)
    assert error.noise < 0.05 > error.chance
    assert set(small.mostly_noise_for) == set(USES)
    assert forecast(100_000, 20, 50, 8.0).mostly_noise_for == []
    few = forecast(1000, 40, 30, 8.0, drawn=10)
    assert few.shares.noise == forecast(1000, 40, 30, 8.0).shares.noise
    assert few.shares.chance > forecast(1000, 40, 30, 8.0).shares.chance
    # What is pooled is at no action that it should be at.
    assert forecast(1000, 40, 30, 8.0, pooled=0.5).shares.noise > 0.5


def test_forecasts_come_true_on_a_few_logs():
    """A small version of `python -m reproductions.forecasts`, which has hundreds."""
    rng = np.random.default_rng(8)
    inside, n = 0, 0
    for n_learners, n_actions, epsilon in ((60, 8, 8.0), (400, 30, 2.0), (1600, 60, 1.0), (200, 300, 4.0)):
        log = Classroom(n_learners=n_learners, n_actions=n_actions).simulate(rng).declare()
        foreseen = forecast(n_learners, n_actions, log.n_rows / n_learners, epsilon)
        synthetic = RunsDP(epsilon).fit(log, rng, seeded_noise(rng)).sample(None, rng)
        comparison = Comparison(Real(log, log), synthetic)
        for use, measure in MEASURES.items():
            inside += foreseen.of(use).low <= measure(comparison) <= foreseen.of(use).high
            n += 1
    assert inside >= n - 2


def test_errors_of_times_and_columns_fall_with_learners_and_budget():
    log = Classroom(n_learners=40, timed=True).simulate(np.random.default_rng(0)).declare()
    columns = [column.declared for column in log.columns]
    shares = detail_shares(log, inf, 40)
    foreseen = [
        forecast(n, 40, 30, epsilon, details=shares, columns=columns)
        for n, epsilon in ((40, 0.5), (40, 8.0), (400, 8.0), (40_000, 8.0))
    ]
    for use in TIME_USES:
        off = [each.times[use].expected for each in foreseen]
        assert off == sorted(off, reverse=True)
        assert foreseen[0].times[use].mostly_noise
        assert foreseen[-1].times[use].to_json()["likeness"] == "close"
    for column in columns:
        off = [each.columns[column.name] for each in foreseen]
        assert off == sorted(off, reverse=True)
        assert off[-1] < 0.05
    assert len(foreseen[0].noisy_details) == len(TIME_USES) + len(columns)
    assert foreseen[-1].noisy_details == []
    plain = forecast(400, 40, 30, 8.0)
    assert (plain.times, plain.columns) == ({}, {})
    # Days that are found leave less for all else, and are off by months.
    found = forecast(
        4000, 40, 30, 8.0, details=detail_shares(replace(log, term=Term()), inf, 40), columns=columns
    )
    declared = forecast(4000, 40, 30, 8.0, details=shares, columns=columns)
    assert found.times["dropout"].noise > declared.times["dropout"].noise


def test_forecasts_of_details_come_true_on_a_few_logs():
    """A small version of `python -m reproductions.detail_forecasts`, in which nine of ten come true and more."""
    inside, n = 0, 0
    for seed in range(6):
        rng = np.random.default_rng((100, seed))
        log, epsilon = drawn_log(rng), float(rng.uniform(1.0, 8.0))
        for *_, low, _, high, found in measured(log, epsilon, "runs-dp", rng):
            inside += float(low) <= float(found) <= float(high)
            n += 1
    assert n > 40
    assert inside >= 0.85 * n
