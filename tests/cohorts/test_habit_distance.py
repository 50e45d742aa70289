"""AJS against scipy, its bounds, and its interval over seeds."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.habit_distance import (
    DIMENSIONS,
    ajs,
    descriptions,
    divergences,
    jensen_shannon,
)
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.simulate import School
from understudy.errors import DataError

SCHEMA = Schema(features=(Feature("day", 10.0), Feature("night", 40.0)), n_weeks=4, labels=("low", "high"))


def cohort_of(values, labels, schema=SCHEMA):
    return Cohort(np.asarray(values, dtype=float), np.asarray(labels, dtype=np.int8), schema)


def test_jensen_shannon_is_that_of_scipy():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 9, size=(2, 50, 20)).astype(float) + np.eye(20)[3]
    expected = [jensenshannon(p, q, base=2) ** 2 for p, q in zip(first, second, strict=True)]
    assert jensen_shannon(first, second) == pytest.approx(expected, abs=1e-12)


def test_divergences_are_those_of_histograms_over_the_declared_bounds():
    rng = np.random.default_rng(2)
    real, synthetic = (
        cohort_of(rng.uniform(0, [[[10.0], [40.0]]], size=(30, 2, 4)), rng.integers(0, 2, 30))
        for _ in range(2)
    )
    result = divergences(real, synthetic)
    for label in range(2):
        for window, high in enumerate([10.0, 40.0]):
            for place, name in enumerate(DIMENSIONS):
                upper = {"sd": high / 2, "variance": high**2 / 4}.get(name, high)
                first, second = (
                    np.histogram(
                        descriptions(c)[c.label == label, window, place], bins=20, range=(0.0, upper)
                    )[0]
                    for c in (real, synthetic)
                )
                assert result.values[label, window, place] == pytest.approx(
                    jensenshannon(first, second, base=2) ** 2
                )
    assert result.ajs == ajs(real, synthetic) == pytest.approx(result.values.mean())


def test_the_six_numbers():
    numbers = descriptions(cohort_of([[[0, 0, 4, 8], [1, 1, 1, 1]]], [0]))
    assert numbers[0, 0] == pytest.approx([2.0, 3.0, np.sqrt(11.0), 11.0, 8.0, np.sqrt(20.0)])
    assert numbers[0, 1] == pytest.approx([1.0, 1.0, 0.0, 0.0, 1.0, 1.0])


def test_the_bounds_are_reached_and_not_passed():
    extreme = descriptions(cohort_of([[[0, 0, 10, 10], [0, 40, 0, 40]]], [1]))
    assert extreme[0, 0, 2:4].tolist() == [5.0, 25.0]
    assert ajs(cohort_of([[[0, 0, 10, 10], [0, 40, 0, 40]]], [1]), cohort_of([[[10] * 4, [40] * 4]], [1])) > 0


def test_a_cohort_lies_at_0_from_itself_and_at_1_from_one_that_shares_nothing():
    zero, full = (
        cohort_of(np.zeros((4, 2, 4)), [0, 0, 1, 1]),
        cohort_of(np.full((4, 2, 4), 40.0), [0, 0, 1, 1]),
    )
    assert ajs(zero, zero) == 0.0
    # The spread over the weeks is 0 in both: two of six dimensions agree.
    assert ajs(zero, full) == pytest.approx(4 / 6)


def test_a_label_without_synthetic_learners_counts_1_and_one_without_real_learners_not():
    both = cohort_of(np.zeros((4, 2, 4)), [0, 0, 1, 1])
    one = both.of_label(0)
    assert ajs(both, one) == 0.5
    assert ajs(one, both) == 0.0
    assert divergences(one, both).labels == ("low",)


def test_cohorts_of_different_schemas_and_empty_ones_are_refused():
    other = Schema(features=(Feature("day", 10.0),), n_weeks=4, labels=("low", "high"))
    with pytest.raises(DataError, match="different features"):
        ajs(cohort_of(np.zeros((1, 2, 4)), [0]), cohort_of(np.zeros((1, 1, 4)), [0], other))
    with pytest.raises(DataError, match="no learners"):
        ajs(cohort_of(np.zeros((0, 2, 4)), []), cohort_of(np.zeros((1, 2, 4)), [0]))


def test_another_year_lies_further_than_another_class_of_the_same_year():
    school = School()
    real, same, later = (
        school.simulate(year, np.random.default_rng(seed)) for year, seed in [(0, 1), (0, 2), (6, 3)]
    )
    assert ajs(real, same) < ajs(real, later)


def test_json_names_every_axis():
    real = School(n_learners=30).simulate(0, np.random.default_rng(0))
    content = divergences(real, real).to_json()
    assert content["ajs"] == 0.0
    assert list(content["by_label"]) == ["low", "average", "high"]
    assert list(content["by_window"]) == ["morning", "afternoon", "evening", "overnight"]
    assert tuple(content["by_dimension"]) == DIMENSIONS
