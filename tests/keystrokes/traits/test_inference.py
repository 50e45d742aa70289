"""Inference of a label from typing: what folds may see, what is left out and counted, and what is refused."""

import json
import sys

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from understudy.core.attacks.intervals import exact_interval
from understudy.errors import DataError, MissingError, UsageError
from understudy.keystrokes.traits.inference import (
    CLASSIFIERS,
    infer_trait,
    known_classes,
    linear_discriminant,
)

LINEAR = {"linear-discriminant": linear_discriminant}
MAJORITY = {"majority": lambda seed: DummyClassifier(strategy="prior")}


def typing_of(n, n_features, effect, rng, share=0.5, n_telling=10):
    labels = (rng.random(n) < share).astype(int)
    logarithm = rng.normal(5.0, 0.2, size=(n, n_features))
    logarithm[:, :n_telling] -= effect * labels[:, None]
    return np.exp(logarithm), labels


def test_a_planted_label_is_found_by_every_classifier():
    profiles, labels = typing_of(120, 100, 0.25, np.random.default_rng(1))
    result = infer_trait(profiles, labels, np.random.default_rng(2), classifiers={**CLASSIFIERS, **MAJORITY})
    for name in CLASSIFIERS:
        estimate = result[name]
        assert estimate.above_majority
        assert estimate.accuracy > 0.8
        assert estimate.auc > 0.85
    majority = result["majority"]
    assert majority.accuracy == pytest.approx(majority.majority, abs=0.02)
    assert majority.auc == pytest.approx(0.5)
    assert not majority.above_majority


def test_labels_of_a_coin_are_not_predictable():
    """On 30 courses of chance alone; the mean balanced accuracy has a standard error below 0.01."""
    balanced, alarms = [], 0
    rng = np.random.default_rng(3)
    for _ in range(30):
        (estimate,) = infer_trait(*typing_of(100, 150, 0.0, rng), rng, classifiers=LINEAR).values()
        balanced.append(estimate.balanced_accuracy)
        alarms += estimate.above_majority
    assert np.mean(balanced) == pytest.approx(0.5, abs=0.03)
    assert alarms <= 3


def test_constant_latencies_leave_the_majority():
    labels = np.array([0] * 30 + [1] * 20)
    for estimate in infer_trait(np.full((50, 8), 300.0), labels, np.random.default_rng(8)).values():
        assert estimate.accuracy == pytest.approx(0.6)
        assert estimate.balanced_accuracy == pytest.approx(0.5)
        assert estimate.auc == pytest.approx(0.5)
        assert not estimate.above_majority


def test_two_coarse_values_are_enough():
    rng = np.random.default_rng(9)
    labels = np.repeat([0, 1], 60)
    profiles = 500.0 * (rng.random((120, 20)) < 0.35 + 0.3 * labels[:, None])
    assert infer_trait(profiles, labels, rng, classifiers=LINEAR)["linear-discriminant"].above_majority


def test_small_classes_get_fewer_folds():
    rng = np.random.default_rng(14)
    (estimate,) = infer_trait(
        rng.normal(size=(20, 3)), np.repeat(range(5), 4), rng, classifiers=LINEAR
    ).values()
    assert (estimate.n_folds, estimate.n_classes) == (4, 5)


def test_results_for_a_machine():
    profiles, labels = typing_of(40, 10, 0.5, np.random.default_rng(15))
    result = infer_trait(profiles, labels, np.random.default_rng(16), classifiers={**LINEAR, **MAJORITY})
    read = [json.loads(json.dumps(estimate.to_json())) for estimate in result.values()]
    assert [estimate["classifier"] for estimate in read] == ["linear-discriminant", "majority"]
    assert {"low", "high", "majority", "above_majority", "n_unlabelled"} <= set(read[0])


def test_wrong_use_is_refused():
    profiles, labels = typing_of(20, 3, 0.0, np.random.default_rng(17))
    with pytest.raises(UsageError, match="1 folds"):
        infer_trait(profiles, labels, np.random.default_rng(0), n_folds=1)


def test_a_missing_extra_names_the_command(monkeypatch):
    profiles, labels = typing_of(40, 10, 1.0, np.random.default_rng(18))
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(MissingError, match=r"pip install -e '\.\[keystrokes\]'"):
        infer_trait(profiles, labels, np.random.default_rng(0))


@pytest.mark.oracle
def test_the_area_is_the_mean_over_folds_of_equal_size():
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1], 30)
    values = rng.normal(size=(60, 1)) + labels[:, None]
    # One feature: the order of probabilities is the order of values, so the area can be had by hand.
    (estimate,) = infer_trait(
        values, labels, np.random.default_rng(1), classifiers=LINEAR, n_folds=2
    ).values()
    seed = np.random.default_rng(1).integers(2**31, size=(1, 2))[0, 0]
    folds = StratifiedKFold(2, shuffle=True, random_state=int(seed)).split(values, labels)
    areas = [roc_auc_score(labels[test], values[test, 0]) for _, test in folds]
    assert estimate.auc == pytest.approx(np.mean(areas))


def test_learners_without_a_label_are_left_out_and_counted():
    profiles, labels = typing_of(60, 20, 0.5, np.random.default_rng(4))
    some = labels.astype(float)
    some[[3, 30]] = np.nan
    known = np.isfinite(some)
    result = infer_trait(profiles, some, np.random.default_rng(5), classifiers=LINEAR)
    expected = infer_trait(profiles[known], labels[known], np.random.default_rng(5), classifiers=LINEAR)
    assert result["linear-discriminant"].n_learners == 58
    assert result["linear-discriminant"].n_unlabelled == 2
    assert result["linear-discriminant"].accuracy == expected["linear-discriminant"].accuracy


@pytest.mark.parametrize(
    "labels",
    [
        [1, 0, -1, 1],
        [1.0, 0.0, np.nan, 1.0],
        ["some", "none", "", "some"],
        np.array(["some", "none", None, "some"], dtype=object),
    ],
)
def test_classes_are_numbered_and_missing_ones_marked(labels):
    assert known_classes(labels).tolist() == [1, 0, -1, 1]


def test_more_than_two_classes():
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 3, 90)
    profiles = np.exp(rng.normal(5, 0.2, size=(90, 30)) - 0.4 * labels[:, None] * (np.arange(30) < 5))
    result = infer_trait(profiles, np.array(["a", "b", "c"])[labels], rng, n_folds=5)
    for name in CLASSIFIERS:
        assert result[name].n_classes == 3
        assert result[name].above_majority
        assert result[name].auc > 0.8


def test_a_class_of_one_learner_is_no_obstacle():
    rng = np.random.default_rng(7)
    labels = np.array([0] * 20 + [1] * 19 + [2])
    profiles = np.exp(rng.normal(5, 0.2, size=(40, 5)) - 0.6 * labels[:, None])
    result = infer_trait(profiles, labels, rng)
    assert 0.0 < result["random-forest"].balanced_accuracy < 0.7
    assert np.isfinite(result["linear-discriminant"].auc)


def test_the_same_generator_gives_the_same_folds_and_result():
    profiles, labels = typing_of(50, 30, 0.3, np.random.default_rng(10))
    first, second = (infer_trait(profiles, labels, np.random.default_rng(11), n_folds=3) for _ in range(2))
    assert first == second


def test_repetition_averages_hits_and_keeps_the_number_of_learners():
    profiles, labels = typing_of(50, 30, 0.3, np.random.default_rng(12))
    rng = np.random.default_rng(13)
    (estimate,) = infer_trait(profiles, labels, rng, classifiers=LINEAR, n_repeats=4).values()
    assert estimate.n_repeats == 4
    assert (estimate.low, estimate.high) == exact_interval(estimate.accuracy, 50)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1] * 20}, "two classes"),
        ({"labels": [0, 1] + [-1] * 18}, "needs 10 learners with a label; found 2"),
        ({"labels": [0, 1] * 9}, "18 labels"),
        ({"profiles": np.full((20, 3), np.nan)}, "not numbers"),
        ({"labels": [-1] * 20}, "found 0"),
        ({"labels": [[0]] * 20}, "2 dimensions"),
        ({"labels": range(20)}, "a label of their own"),
    ],
)
def test_bad_data_is_refused(change, message):
    given = {"profiles": np.arange(60.0).reshape(20, 3), "labels": [0, 1] * 10, **change}
    with pytest.raises(DataError, match=message):
        infer_trait(given["profiles"], given["labels"], np.random.default_rng(0))
