"""The thesis's inference: what selection outside the folds pretends, and what WEKA's parts do in it."""

import numpy as np
import pytest

from reproductions.keystroke_privacy.traits import (
    THESIS_CLASSIFIERS,
    Selected,
    infer_as_thesis,
)

BAYES = {"naive-bayes": THESIS_CLASSIFIERS["naive-bayes"]}


def typing_of(n, n_features, effect, rng, share=0.5, n_telling=10):
    labels = (rng.random(n) < share).astype(int)
    logarithm = rng.normal(5.0, 0.2, size=(n, n_features))
    logarithm[:, :n_telling] -= effect * labels[:, None]
    return np.exp(logarithm), labels


def test_a_planted_trait_is_found_by_both_classifiers():
    profiles, labels = typing_of(120, 100, 0.25, np.random.default_rng(1))
    result = infer_as_thesis(profiles, labels, np.random.default_rng(2))
    for name in ("naive-bayes", "random-forest"):
        for way in ("", ", selected inside", ", selected outside"):
            assert result[name + way].above_majority
        assert result[f"{name}, selected inside"].accuracy > 0.8
        assert result[f"{name}, selected inside"].auc > 0.85


def test_what_differs_is_selected_and_little_else():
    profiles, labels = typing_of(120, 100, 0.25, np.random.default_rng(1))
    times_selected = np.zeros(100)
    for fold in range(10):
        known = np.arange(120) % 10 != fold
        selected = Selected(THESIS_CLASSIFIERS["naive-bayes"](0)).fit(profiles[known], labels[known])
        times_selected[selected.features_] += 1
    assert (times_selected[:10] >= 8).sum() >= 7
    assert times_selected[10:].mean() < 0.5


def test_labels_of_a_coin_look_predictable_only_if_features_were_selected_outside():
    """The point of selecting inside: on 30 courses of chance alone the thesis's way sees a trait.

    Mean balanced accuracies have a standard error below 0.01, so 0.5 and 0.55 lie far apart.
    """
    inside, outside, alarms_inside, alarms_outside = [], [], 0, 0
    rng = np.random.default_rng(3)
    for _ in range(30):
        result = infer_as_thesis(*typing_of(100, 1000, 0.0, rng), rng, classifiers=BAYES, n_folds=5)
        honest, optimistic = (result[f"naive-bayes, selected {way}"] for way in ("inside", "outside"))
        inside.append(honest.balanced_accuracy)
        outside.append(optimistic.balanced_accuracy)
        alarms_inside += honest.above_majority
        alarms_outside += optimistic.above_majority
    assert np.mean(inside) == pytest.approx(0.5, abs=0.03)
    assert np.mean(outside) > np.mean(inside) + 0.04
    assert alarms_inside <= 3
    assert alarms_outside > alarms_inside


def test_constant_latencies_leave_the_majority():
    labels = np.array([0] * 30 + [1] * 20)
    result = infer_as_thesis(np.full((50, 8), 300.0), labels, np.random.default_rng(8))
    for estimate in result.values():
        assert estimate.accuracy == pytest.approx(0.6)
        assert estimate.balanced_accuracy == pytest.approx(0.5)
        assert estimate.auc == pytest.approx(0.5)
        assert not estimate.above_majority


def test_two_coarse_values_are_enough_to_be_cut():
    # Latencies that fall on two values of the grid: the paper's price of a cut, log2(N - 1) bits
    # for its place, would be too high, though there is only one place.
    rng = np.random.default_rng(9)
    labels = np.repeat([0, 1], 60)
    profiles = 500.0 * (rng.random((120, 20)) < 0.35 + 0.3 * labels[:, None])
    found = infer_as_thesis(profiles, labels, rng, classifiers=BAYES)
    assert found["naive-bayes, selected inside"].above_majority
