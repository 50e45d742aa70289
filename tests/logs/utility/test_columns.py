"""Metrics of declared columns against plain counting."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp

from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.utility import Real, measure
from understudy.logs.utility.columns import column_distances, pair_distances

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def logs():
    rng = np.random.default_rng(5)
    room = Classroom(n_learners=80, n_actions=6, timed=True)
    return tuple(room.simulate(rng) for _ in range(3))


def total_variation(a, b):
    first, second = Counter(a), Counter(b)
    return sum(abs(first[k] / len(a) - second[k] / len(b)) for k in first | second) / 2


def named(log, name):
    return next(column for column in log.columns if column.declared.name == name)


def values(log, name):
    """Cells as a reader of the files would see them, scores in classes of ten points."""
    frame = log.to_polars() if name in ("hint", "device", "action", "outcome") else log.learners_to_polars()
    cells = frame[name].to_list()
    if name == "final_score":
        return [None if cell is None else min(cell // 10, 9) for cell in cells]
    return cells


def test_distances_of_columns(logs):
    training, _, synthetic = logs
    found = column_distances(training, synthetic)
    assert [*found] == ["school", "grade", "home_language", "final_score", "hint", "device"]
    for name in ("school", "grade", "home_language", "hint", "device"):
        wanted = total_variation(values(training, name), values(synthetic, name))
        assert found[name] == pytest.approx(wanted), name
    scores = [named(log, "final_score").cells for log in (training, synthetic)]
    missing = abs(np.isnan(scores[0]).mean() - np.isnan(scores[1]).mean())
    wanted = max(ks_2samp(*(cells[~np.isnan(cells)] for cells in scores)).statistic, missing)
    assert found["final_score"] == pytest.approx(wanted)


def test_distances_of_pairs(logs):
    training, held_out, synthetic = logs
    found = pair_distances(training, synthetic)
    for pair in (
        ("school", "grade"),
        ("home_language", "final_score"),
        ("hint", "device"),
        ("hint", "action"),
        ("device", "outcome"),
    ):
        cells = [
            list(zip(*(values(log, name) for name in pair), strict=True)) for log in (training, synthetic)
        ]
        name = tuple(f"({part})" if part in ("action", "outcome") else part for part in pair)
        assert found[name] == pytest.approx(total_variation(*cells)), pair
    # What no column is part of is measured elsewhere.
    assert ("(action)", "(outcome)") not in found
    assert ("school", "(successes)") in found
    all_metrics = measure(Real(training, held_out), synthetic)
    assert all_metrics["column_pair_tv"] == max(found.values())
    assert all_metrics["column_tv"] == max(column_distances(training, synthetic).values())


def test_only_columns_of_both_logs_are_compared(logs):
    training, held_out, synthetic = logs
    fewer = replace(synthetic, columns=synthetic.columns[:1])
    assert [*column_distances(training, fewer)] == ["school"]
    none = replace(synthetic, columns=())
    assert not {"column_tv", "column_pair_tv"} & measure(Real(training, held_out), none).keys()


def test_categories_are_compared_by_their_names(logs):
    """A generator that found categories itself may list them in another order, or not all of them."""
    training, _, _ = logs
    school = named(training, "school")
    names = ("west", "north")
    code = np.array([1, 2, 0, 2])[school.cells]
    found = Column(Declared("school", Kind.category, "learner", values=names), code)
    wanted = np.mean(school.cells == school.declared.values.index("south"))
    assert column_distances(training, replace(training, columns=(found,)))["school"] == pytest.approx(wanted)


def test_the_same_log_and_an_empty_one(logs):
    training, held_out, _ = logs
    real = Real(training, held_out)
    same, empty = measure(real, training), measure(real, training.select(np.empty(0, dtype=int)))
    for name in ("column_tv", "column_pair_tv"):
        assert same[name] == 0.0
        assert empty[name] == pytest.approx(1.0)
