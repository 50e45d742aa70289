"""Several samples of each fit: the small version of Table 4."""

import numpy as np
import pytest

from reproductions.pages import rows_of
from reproductions.synthetic_logs.figures import ability_histogram, plan
from reproductions.synthetic_logs.samples import keep, keep_shares, measure_halves, real_half
from reproductions.synthetic_logs.speed import COLUMNS, timed
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.trial import Split

LOG = Classroom(n_learners=80, n_actions=8).simulate(np.random.default_rng(2)).declare()


def test_errors_and_attacks_of_several_samples(tmp_path):
    halves = [Split(LOG, seed) for seed in range(2)]
    whole, half, chain = measure_halves(halves, ["drop:0", "drop:0.5", "markov"], 3, attacked=["drop:0"])
    assert (whole["n_fits"], whole["n_samples"]) == (2, 6)
    assert whole["rmse_high"] == pytest.approx(0, abs=1e-9)
    assert whole["length_ks"] == 0.0
    assert 0 < half["rmse_low"] < half["rmse"] < half["rmse_high"]
    # Data released whole is found by the published attack, and was attacked on request only.
    assert whole["auc_lcs"] > 0.8
    assert "auc_lcs" not in chain
    keep(tmp_path / "table.csv", [whole, half])
    keep(tmp_path / "table.csv", [{**half, "rmse": 9.0}])
    assert [(row["method"], row["rmse"]) for row in rows_of(tmp_path / "table.csv")] == [
        ("drop:0", "0.000"),
        ("drop:0.5", "9.000"),
    ]
    keep_shares(tmp_path / "shares.csv", halves[0].real, [whole, chain])
    shares = rows_of(tmp_path / "shares.csv")
    assert [row["training"] for row in shares] == [row["drop:0"] for row in shares]
    assert sum(float(row["markov"]) for row in shares) == pytest.approx(1, abs=1e-3)


def test_constant_actions_are_judged_on_a_half_alone_where_there_is_no_other():
    """As in the authors' program."""
    rows = np.flatnonzero(LOG.action == 0)
    outcome = LOG.outcome.copy()
    outcome[rows] = 1
    half = real_half(type(LOG)(LOG.action, outcome, LOG.offsets, LOG.actions))
    assert half.difficulty_weights[0] == 0.0
    assert half.difficulty_weights.sum() == pytest.approx(1)
    assert "rmse" in measure_halves([half], ["drop:0.5"], 1)[0]


def test_every_step_from_file_to_file_is_timed():
    (row,) = timed("a log", LOG, ["markov"])
    assert len(row) == len(COLUMNS)
    assert row[:3] == ("a log", "markov", LOG.n_rows)


def test_figures_that_need_no_log():
    bars = ability_histogram(np.random.default_rng(1).normal(size=500))
    assert sum((high - low) * density for low, high, density in bars) == pytest.approx(1)
    assert "training half" in plan().description
