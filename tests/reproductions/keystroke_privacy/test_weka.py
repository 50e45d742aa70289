"""Supervised cuts, symmetrical uncertainty, naive Bayes and selection against independent computations."""

from itertools import chain, combinations

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score
from sklearn.naive_bayes import CategoricalNB

from reproductions.keystroke_privacy.traits import bin_chances, count_bins
from reproductions.keystroke_privacy.weka import (
    mdl_cuts,
    merit,
    select_features,
    symmetrical_uncertainty,
)

pytestmark = pytest.mark.oracle


def bits(labels):
    return entropy(np.bincount(labels), base=2)


def cuts_by_hand(values, labels):
    """Fayyad and Irani's recursion, written from the paper with m distinct places."""
    places = (np.unique(values)[1:] + np.unique(values)[:-1]) / 2
    if not len(places):
        return []
    n = len(values)

    def left_over(cut):
        below = values <= cut
        return below.mean() * bits(labels[below]) + (~below).mean() * bits(labels[~below])

    after = np.array([left_over(cut) for cut in places])
    cut = places[np.flatnonzero(after <= after.min() + 1e-12)[0]]
    below = values <= cut
    k, k1, k2 = (len(np.unique(part)) for part in (labels, labels[below], labels[~below]))
    delta = np.log2(3**k - 2) - (k * bits(labels) - k1 * bits(labels[below]) - k2 * bits(labels[~below]))
    gain = bits(labels) - after.min()
    if gain <= (np.log2(len(places)) + delta) / n + 1e-12:
        return []
    return sorted(
        [cut, *cuts_by_hand(values[below], labels[below]), *cuts_by_hand(values[~below], labels[~below])]
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("grid", [0.0, 0.5])  # all values differ, or few do
def test_cuts_are_those_of_the_recursion_written_by_hand(n_classes, grid):
    rng = np.random.default_rng(n_classes)
    labels = rng.integers(0, n_classes, 60)
    # Effects from none to strong, so that there are features with no, one and several cuts.
    values = rng.normal(size=(60, 20)) + np.linspace(0, 5, 20) * labels[:, None]
    values = np.round(values / grid) * grid if grid else values
    cuts = mdl_cuts(values, labels)
    found = [cuts.points[cuts.starts[j] : cuts.starts[j + 1]] for j in range(20)]
    expected = [cuts_by_hand(column, labels) for column in values.T]
    assert [len(one) for one in found] == [len(one) for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other)
    assert {len(one) for one in found} >= {0, 1, n_classes - 1}


def test_bins_count_the_cuts_below():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 200)
    values = rng.normal(size=(200, 10)) + 3 * labels[:, None]
    cuts = mdl_cuts(values, labels)
    new = rng.normal(3, 4, size=(50, 10))
    expected = [
        np.searchsorted(cuts.points[cuts.starts[j] : cuts.starts[j + 1]], new[:, j]) for j in range(10)
    ]
    assert (cuts.apply(new) == np.array(expected).T).all()
    assert (cuts.of(np.array([7, 2])).apply(new[:, [7, 2]]) == cuts.apply(new)[:, [7, 2]]).all()


def test_symmetrical_uncertainty_is_that_of_mutual_information():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, [1, 2, 3, 4, 5], size=(80, 5)).astype(np.int32)
    codes[:, 4] = codes[:, 3] % 3
    for j in range(5):
        expected = []
        for i in range(5):
            both = bits(codes[:, i]) + bits(codes[:, j])
            shared = mutual_info_score(codes[:, i], codes[:, j]) / np.log(2)
            expected.append(2 * shared / both if both > 0 else 0.0)
        assert symmetrical_uncertainty(codes[:, j], codes) == pytest.approx(expected, abs=1e-12)


def test_the_merit_is_halls_formula():
    class_correlations = np.array([0.4, 0.3, 0.2])
    between = np.array([[1.0, 0.1, 0.2], [0.1, 1.0, 0.6], [0.2, 0.6, 1.0]])
    expected = 3 * 0.3 / np.sqrt(3 + 3 * 2 * 0.3)
    assert merit(class_correlations, between) == pytest.approx(expected)
    assert merit(class_correlations[:1], between[:1, :1]) == pytest.approx(0.4)


def test_best_first_search_finds_the_best_of_all_subsets():
    rng = np.random.default_rng(5)
    best = 0
    for _ in range(40):
        labels = rng.integers(0, 2, 120)
        shared = rng.normal(size=(120, 2))
        values = rng.normal(size=(120, 8)) + shared[:, rng.integers(0, 2, 8)] * rng.uniform(0, 2, 8)
        values += labels[:, None] * rng.uniform(0, 1.5, 8)
        codes = mdl_cuts(values, labels).apply(values)
        with_class = symmetrical_uncertainty(labels.astype(np.int32), codes)
        between = np.array([symmetrical_uncertainty(codes[:, j], codes) for j in range(8)])
        subsets = chain.from_iterable(combinations(range(8), k) for k in range(9))
        merits = {one: merit(with_class[list(one)], between[np.ix_(one, one)]) for one in subsets}
        found = merits[tuple(select_features(codes, labels).tolist())]
        assert found >= 0.98 * max(merits.values())
        best += found >= max(merits.values()) - 1e-5
    assert best >= 38


def chances(codes, n_bins, labels, new):
    prior, bins = count_bins(codes, n_bins, labels, labels.max() + 1)
    return bin_chances(prior, bins, new + np.concatenate([[0], np.cumsum(n_bins)[:-1]]))


def test_naive_bayes_is_scikit_learns_where_classes_are_equal():
    # Its prior is not smoothed, so that it agrees exactly only for classes of equal size.
    rng = np.random.default_rng(6)
    labels = np.repeat([0, 1, 2], 40)
    n_bins = np.array([2, 3, 1, 4])
    codes = rng.integers(0, n_bins, size=(120, 4)).astype(np.int32)
    new = rng.integers(0, n_bins, size=(30, 4)).astype(np.int32)
    model = CategoricalNB(alpha=0.5, min_categories=n_bins).fit(codes, labels)
    ours = chances(codes, n_bins, labels, new)
    assert ours == pytest.approx(model.predict_proba(new))


def test_naive_bayes_by_hand():
    # Three learners of class 0, one of class 1; one feature of two bins.
    labels, codes = np.array([0, 0, 0, 1]), np.array([[0], [0], [1], [1]], dtype=np.int32)
    n_bins = np.array([2])
    found = chances(codes, n_bins, labels, codes)
    of_bin_1 = np.array([3.5 / 5 * 1.5 / 4, 1.5 / 5 * 1.5 / 2])
    assert found[3] == pytest.approx(of_bin_1 / of_bin_1.sum())
