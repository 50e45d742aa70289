"""Practice and leaving: by hand on a few learners, and a small version of the table with its figure."""

import numpy as np
import pytest

from reproductions.pages import rows_of, write_rows
from reproductions.synthetic_logs import practice
from understudy.logs.interactions import Interactions
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.trial import Split
from understudy.logs.utility import Real


def test_gain_and_leaving_by_hand():
    """Two learners fail once and succeed from then on, the first of them leaves after that."""
    log = Interactions.from_sequences(
        [[0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]],
        [[0, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]],
        actions=["a", "b"],
    )
    found = practice.figures_of(Real(log, log), log)
    assert [found[name] for name in practice.ATTEMPTS] == pytest.approx([1 / 3, 1, 1, 1, 1, 1])
    assert found["gain"] == pytest.approx(2 / 3)
    # Of nine successes that a row follows one is followed by another action, of two failures none.
    assert (found["leaving_success"], found["leaving_failure"]) == (pytest.approx(1 / 9), 0)
    assert found["curve_gap"] == 0


def test_the_table_and_its_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(practice, "TABLE", tmp_path / "practice.csv")
    log = Classroom(n_learners=300, n_actions=8, shortest=20).simulate(np.random.default_rng(1)).declare()
    half = Split(log, 0).real
    write_rows(practice.TABLE, practice.COLUMNS, practice.measure_half(half, ["drop:0", "markov"], 2))
    training, other, whole, chain = rows_of(practice.TABLE)
    # The training half released whole is the training half; the other half is what predictions are tested on.
    assert [whole[name] for name in practice.MEASURED] == [training[name] for name in practice.MEASURED]
    assert (whole["n_samples"], other["prediction_auc"]) == ("2", "")
    # A chain leaves whatever the outcome was.
    assert float(chain["leaving_success"]) == pytest.approx(float(chain["leaving_failure"]), abs=0.05)
    assert float(chain["gain_low"]) <= float(chain["gain"]) <= float(chain["gain_high"])
    text = practice.table(rows_of(practice.TABLE))
    assert [line.split(" | ")[0] for line in text.splitlines()[2:]] == [
        "| training half",
        "| other half",
        "| `drop:0`",
        "| `markov`",
    ]
    assert f"1, markov: {float(chain['success_1']):.3f}" in practice.figure().description


def test_learned_outcomes_grow_and_end_an_action_and_those_of_the_rasch_model_do_not():
    """Learners who fail at first, succeed at last, and go on to the other action after six attempts."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    walks = [6 * [first] + 6 * [1 - first] for first in (0, 1) for _ in range(100)]
    outcomes = (rng.random((200, 12)) < np.tile([0.2, 0.3, 0.5, 0.7, 0.8, 0.9], 2)).astype(int).tolist()
    log = Interactions.from_sequences(walks, outcomes, actions=["a", "b"]).declare()
    methods = ["gru:units=16", "gru:units=16:outcomes=learned"]
    rows = practice.measure_half(Split(log, 0).real, methods, 2)
    real, _, rasch, learned = (dict(zip(practice.COLUMNS, row, strict=True)) for row in rows)
    gain, by_rasch, by_network = (float(row["gain"]) for row in (real, rasch, learned))
    assert by_rasch < gain / 3 < 2 * gain / 3 < by_network
    assert float(learned["curve_gap"]) < float(rasch["curve_gap"])
    ahead = [float(row["leaving_success"]) - float(row["leaving_failure"]) for row in (real, rasch, learned)]
    assert ahead[1] < ahead[0] / 2 < ahead[2]
    assert float(learned["prediction_auc"]) > float(rasch["prediction_auc"])


def test_the_measured_table_is_what_the_page_claims():
    rows = {
        row["log"]: {name: float(value or "nan") for name, value in row.items() if name != "log"}
        for row in rows_of(practice.TABLE)
    }
    real, chain, runs, rasch, learned = (
        rows[name] for name in (practice.TRAINING, "markov", "runs", "gru", practice.LEARNED)
    )
    assert chain["gain_low"] < 0 < chain["gain_high"]
    assert chain["leaving_success"] == pytest.approx(chain["leaving_failure"], abs=0.01)
    assert rasch["gain_high"] < 0 < learned["gain_low"]
    assert all(row["leaving_success"] > 1.5 * row["leaving_failure"] for row in (real, runs, rasch, learned))
    assert 0.4 < learned["gain"] / real["gain"] < 0.6
    assert real["prediction_auc"] - learned["prediction_auc"] < 0.005
    for column in ("curve_gap", "leaving_success", "leaving_failure"):
        wanted = real[column]
        away = {name: abs(row[column] - wanted) for name, row in rows.items() if name in practice.METHODS}
        assert min(away, key=away.get) == "runs"
