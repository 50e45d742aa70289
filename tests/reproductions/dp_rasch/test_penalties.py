"""The study of the penalty: a small version, its measures by hand, and its figure."""

import numpy as np
import pytest

from reproductions.dp_rasch.measure import PARTS
from reproductions.dp_rasch.penalties import (
    MEASURES,
    SWEPT,
    WAYS,
    PenaltyPlan,
    draw_sweep,
    measure_choice,
    measure_sweep,
)
from understudy.exams.estimators.choice import PENALTIES
from understudy.exams.estimators.joint import fit_joint
from understudy.exams.simulate import Exam

SMALL = PenaltyPlan(
    repetitions=2, sweep_sizes=(40,), choice_sizes=(60,), epsilons=(5.0,), choice_epsilons=(5.0,), n_items=6
)


@pytest.fixture(scope="module")
def sweep():
    return measure_sweep(SMALL)


def test_every_penalty_is_measured_for_every_method(sweep):
    for method, epsilon in (("joint", None), ("objective", 5.0), ("statistics", 5.0)):
        for measure in MEASURES:
            rows = [
                row for row in sweep if (row.method, row.epsilon, row.measure) == (method, epsilon, measure)
            ]
            assert [float(row.what) for row in rows] == list(SWEPT)
            assert all(row.low <= row.mean <= row.high for row in rows)


def test_the_penalty_hardly_matters_without_noise_and_matters_for_noisy_difficulties():
    """12 classes of 120 with epsilon 5: the correlations of difficulties with penalty 0.01 and 1.

    Over 50 classes they are 0.99 and 0.99 without noise and 0.83 and 0.98 with objective perturbation.
    """
    plan = PenaltyPlan(repetitions=12, sweep_sizes=(120,), epsilons=(5.0,))
    found = {
        (row.method, row.what): row.mean for row in measure_sweep(plan) if row.measure == "difficulties_true"
    }
    assert abs(found["joint", "1"] - found["joint", "0.01"]) < 0.02
    assert found["objective", "1"] - found["objective", "0.01"] > 0.05
    assert found["statistics", "1"] - found["statistics", "0.01"] > 0.05


def test_every_way_to_a_penalty_is_measured_and_none_beats_hindsight():
    rows = measure_choice(SMALL)
    for method in ("objective", "statistics"):
        found = {(row.what, row.measure): row.mean for row in rows if row.method == method}
        assert {what for what, _ in found} == set(WAYS)
        for way in ("chosen privately", "from public data", "public data, by errors", "at random"):
            assert min(PENALTIES) <= found[way, "penalty"] <= max(PENALTIES)
        for way in ("fixed at 0.02", "fixed at 1", "from public data", "at random"):
            assert (
                found[way, "probabilities_true"] <= found["best in hindsight", "probabilities_true"] + 1e-12
            )
            assert found[way, "misclassification"] >= found["best in hindsight", "misclassification"] - 1e-12


def test_without_noise_the_sweep_is_the_joint_fit(sweep):
    """The same classes again, by hand."""
    from reproductions.dp_rasch.trials import child

    values = []
    for repetition in range(2):
        sitting = Exam(40, 6).simulate(child(1, 101, 40, repetition))
        correct = sitting.responses.correct
        fit = fit_joint(correct.sum(axis=1), correct.sum(axis=0), penalty=0.3)
        values.append(np.corrcoef(fit.difficulty, sitting.difficulty)[0, 1])
    (row,) = [r for r in sweep if (r.method, r.what, r.measure) == ("joint", "0.3", "difficulties_true")]
    assert row.mean == pytest.approx(np.mean(values), abs=1e-9)


def test_the_sweep_is_drawn(sweep):
    figure = draw_sweep(sweep, n_learners=40)
    assert "epsilon 5" in figure.svg()
    assert "lambda" in figure.svg()
    assert "Correlation with the truth by penalty" in figure.description
    assert "penalties" in PARTS
