"""Inference of a trait: what folds may see, what is left out and counted, and what is refused."""

import builtins
import json

import numpy as np
import pytest

from understudy.errors import DataError, MissingError, UsageError
from understudy.keystrokes.traits import infer_trait
from understudy.keystrokes.traits.inference import accuracy_bounds, known_classes, stratified_folds

SIMPLE = ("majority", "naive-bayes")


def typing_of(n, n_features, effect, rng, share=0.5, n_telling=10):
    labels = (rng.random(n) < share).astype(int)
    logarithm = rng.normal(5.0, 0.2, size=(n, n_features))
    logarithm[:, :n_telling] -= effect * labels[:, None]
    return np.exp(logarithm), labels


def test_a_planted_trait_is_found_by_both_classifiers():
    profiles, labels = typing_of(120, 100, 0.25, np.random.default_rng(1))
    result = infer_trait(profiles, labels, np.random.default_rng(2))
    for name in ("naive-bayes", "random-forest"):
        estimate = result.of(name)
        assert estimate.above_majority
        assert estimate.accuracy > 0.8
        assert estimate.auc > 0.85
        assert not estimate.optimistic
        assert result.of(name, "outside").optimistic
    # What tells is chosen, in most folds, and little else.
    assert (result.times_selected[:10] >= 8).sum() >= 7
    assert result.times_selected[10:].mean() < 0.5
    assert result.n_trainings == 10
    majority = result.of("majority")
    assert majority.accuracy == pytest.approx(majority.majority, abs=0.02)
    assert majority.auc == pytest.approx(0.5)
    assert not majority.above_majority


def test_labels_of_a_coin_look_predictable_only_if_features_were_selected_outside():
    """The point of selecting inside: on 30 courses of chance alone the thesis's way sees a trait.

    Mean balanced accuracies have a standard error below 0.01, so 0.5 and 0.55 lie far apart.
    """
    inside, outside, alarms_inside, alarms_outside = [], [], 0, 0
    rng = np.random.default_rng(3)
    for _ in range(30):
        profiles, labels = typing_of(100, 1000, 0.0, rng)
        result = infer_trait(profiles, labels, rng, classifiers=["naive-bayes"])
        honest, optimistic = (result.of("naive-bayes", way) for way in ("inside", "outside"))
        inside.append(honest.balanced_accuracy)
        outside.append(optimistic.balanced_accuracy)
        alarms_inside += honest.above_majority
        alarms_outside += optimistic.above_majority
    assert np.mean(inside) == pytest.approx(0.5, abs=0.03)
    assert np.mean(outside) > np.mean(inside) + 0.04
    assert alarms_inside <= 3
    assert alarms_outside > alarms_inside


def test_learners_without_a_label_are_left_out_and_counted():
    profiles, labels = typing_of(60, 20, 0.5, np.random.default_rng(4))
    some = labels.astype(float)
    some[[3, 30]] = np.nan
    known = np.isfinite(some)
    result = infer_trait(profiles, some, np.random.default_rng(5), classifiers=SIMPLE)
    expected = infer_trait(profiles[known], labels[known], np.random.default_rng(5), classifiers=SIMPLE)
    assert result.of("naive-bayes").n_learners == 58
    assert result.of("naive-bayes").n_unlabelled == 2
    assert result.of("naive-bayes").accuracy == expected.of("naive-bayes").accuracy


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
    result = infer_trait(profiles, np.array(["a", "b", "c"])[labels], rng, n_folds=5, selections=["inside"])
    for name in ("naive-bayes", "random-forest"):
        assert result.of(name).n_classes == 3
        assert result.of(name).above_majority
        assert result.of(name).auc > 0.8


def test_a_class_of_one_learner_is_no_obstacle():
    rng = np.random.default_rng(7)
    labels = np.array([0] * 20 + [1] * 19 + [2])
    profiles = np.exp(rng.normal(5, 0.2, size=(40, 5)) - 0.6 * labels[:, None])
    result = infer_trait(profiles, labels, rng, selections=["inside", "none"])
    assert 0.0 < result.of("random-forest").balanced_accuracy < 0.7
    assert np.isfinite(result.of("naive-bayes", "none").auc)


def test_constant_latencies_leave_the_majority():
    labels = np.array([0] * 30 + [1] * 20)
    result = infer_trait(
        np.full((50, 8), 300.0), labels, np.random.default_rng(8), selections=["inside", "outside", "none"]
    )
    for estimate in result.estimates:
        assert estimate.accuracy == pytest.approx(0.6)
        assert estimate.balanced_accuracy == pytest.approx(0.5)
        assert estimate.auc == pytest.approx(0.5)
        assert not estimate.above_majority
    assert result.of("naive-bayes").n_selected == 0
    assert len(result.selected_outside) == 0


def test_two_coarse_values_are_enough_to_be_cut():
    # Latencies that fall on two values of the grid: the paper's price of a cut, log2(N - 1) bits
    # for its place, would be too high, though there is only one place.
    rng = np.random.default_rng(9)
    labels = np.repeat([0, 1], 60)
    profiles = 500.0 * (rng.random((120, 20)) < 0.35 + 0.3 * labels[:, None])
    assert infer_trait(profiles, labels, rng, classifiers=["naive-bayes"]).of("naive-bayes").above_majority


def test_the_same_generator_gives_the_same_folds_and_result():
    profiles, labels = typing_of(50, 30, 0.3, np.random.default_rng(10))
    first, second = (infer_trait(profiles, labels, np.random.default_rng(11), n_folds=3) for _ in range(2))
    assert first.to_json() == second.to_json()


def test_repetition_averages_hits_and_keeps_the_number_of_learners():
    profiles, labels = typing_of(50, 30, 0.3, np.random.default_rng(12))
    rng = np.random.default_rng(13)
    estimate = infer_trait(profiles, labels, rng, classifiers=["naive-bayes"], n_repeats=4).of("naive-bayes")
    assert estimate.n_repeats == 4
    assert (estimate.low, estimate.high) == accuracy_bounds(estimate.accuracy, 50)


def test_folds_are_of_one_size_and_so_are_classes_in_them():
    labels = np.array([0] * 37 + [1] * 14 + [2] * 3)
    fold = stratified_folds(labels, 10, np.random.default_rng(14))
    table = np.array([np.bincount(fold[labels == one], minlength=10) for one in range(3)])
    assert np.ptp(table.sum(axis=0)) <= 1
    assert (np.ptp(table, axis=1) <= 1).all()


def test_results_for_a_machine():
    profiles, labels = typing_of(40, 10, 0.5, np.random.default_rng(15))
    result = infer_trait(profiles, labels, np.random.default_rng(16), classifiers=SIMPLE)
    read = json.loads(json.dumps(result.to_json()))["estimates"]
    assert [(one["classifier"], one["selection"]) for one in read] == [
        (name, way) for name in SIMPLE for way in ("inside", "outside")
    ]
    assert read[1]["optimistic"]
    assert {"low", "high", "majority", "above_majority", "n_unlabelled"} <= set(read[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1] * 20}, "two classes"),
        ({"labels": [0, 1] + [-1] * 18}, "needs 10 learners with a label; found 2"),
        ({"labels": [0, 1] * 9}, "18 labels"),
        ({"profiles": np.full((20, 3), np.nan)}, "no numbers"),
        ({"labels": [-1] * 20}, "found 0"),
        ({"labels": [[0]] * 20}, "2 dimensions"),
    ],
)
def test_bad_data_is_refused(change, message):
    given = {"profiles": np.arange(60.0).reshape(20, 3), "labels": [0, 1] * 10, **change}
    with pytest.raises(DataError, match=message):
        infer_trait(given["profiles"], given["labels"], np.random.default_rng(0))


def test_wrong_use_is_refused():
    profiles, labels = typing_of(20, 3, 0.0, np.random.default_rng(17))
    with pytest.raises(UsageError, match="no classifier 'oracle'"):
        infer_trait(profiles, labels, np.random.default_rng(0), classifiers=["oracle"])
    with pytest.raises(UsageError, match="cannot be selected 'everywhere'"):
        infer_trait(profiles, labels, np.random.default_rng(0), selections=["everywhere"])
    with pytest.raises(UsageError, match="1 folds"):
        infer_trait(profiles, labels, np.random.default_rng(0), n_folds=1)
    result = infer_trait(profiles, labels, np.random.default_rng(0), classifiers=SIMPLE)
    with pytest.raises(UsageError, match="no estimate"):
        result.of("random-forest")


def test_a_missing_extra_names_the_command(monkeypatch):
    profiles, labels = typing_of(40, 10, 1.0, np.random.default_rng(18))
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert infer_trait(profiles, labels, np.random.default_rng(0), classifiers=SIMPLE).estimates
    with pytest.raises(MissingError, match=r"pip install 'understudy\[keystrokes\]'"):
        infer_trait(profiles, labels, np.random.default_rng(0))
