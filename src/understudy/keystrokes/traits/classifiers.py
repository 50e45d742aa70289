"""Classifiers of learners by their typing: the thesis's Bayes Net and random forest, and the majority.

Each is a function from learners with a label and learners without one to the chances of every class.
WEKA's Bayes Net, left at its defaults (K2 with one parent, begun as naive Bayes), *is* naive Bayes on
features cut by Fayyad and Irani with 1/2 added to every count; so it is here, under the plainer name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.core.engine.tasks import growing_trees
from understudy.errors import MissingError
from understudy.reproductions.keystroke_privacy.weka import Codes, Floats, Ints

N_TREES = 100
FEATURES_PER_SPLIT = 6
ADDED = 0.5  # to every count, as WEKA's SimpleEstimator does


@dataclass(frozen=True, eq=False)
class Features:
    """The features in use, learners x features: as milliseconds, and as bins out of `n_bins`."""

    values: Floats
    codes: Codes
    n_bins: Ints


Classifier = Callable[[Features, Ints, int, Features, np.random.Generator], Floats]


def majority(
    known: Features, labels: Ints, n_classes: int, unknown: Features, rng: np.random.Generator
) -> Floats:
    """Every class with its share among the known learners."""
    shares = np.bincount(labels, minlength=n_classes) / len(labels)
    return np.tile(shares, (len(unknown.values), 1))


def naive_bayes(
    known: Features, labels: Ints, n_classes: int, unknown: Features, rng: np.random.Generator
) -> Floats:
    """Naive Bayes on bins: P(c) prod_j P(bin_j | c), with `ADDED` on every count of either factor."""
    n_learners = np.bincount(labels, minlength=n_classes)
    prior = np.log(n_learners + ADDED) - np.log(len(labels) + ADDED * n_classes)
    n_features = len(known.n_bins)
    starts = np.concatenate([[0], np.cumsum(known.n_bins)])
    counts = np.zeros((n_classes, starts[-1]))
    cells = known.codes + starts[:-1]
    np.add.at(counts, (np.repeat(labels, n_features), cells.ravel()), 1.0)
    in_class = n_learners[:, None] + ADDED * np.repeat(known.n_bins, known.n_bins)
    logarithm = np.log(counts + ADDED) - np.log(in_class)
    score = prior + logarithm[:, unknown.codes + starts[:-1]].sum(axis=2).T
    chance = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def random_forest(
    known: Features, labels: Ints, n_classes: int, unknown: Features, rng: np.random.Generator
) -> Floats:
    """100 trees that choose each split among 6 random features (section 4.3), by scikit-learn."""
    if not known.values.shape[1]:
        return majority(known, labels, n_classes, unknown, rng)
    forest = load_forest()(
        N_TREES,
        max_features=min(FEATURES_PER_SPLIT, known.values.shape[1]),
        random_state=int(rng.integers(2**31)),
    )
    chances = np.zeros((len(unknown.values), n_classes))
    with growing_trees():
        forest.fit(known.values, labels)
        chances[:, forest.classes_] = forest.predict_proba(unknown.values)
    return chances


def load_forest() -> Any:
    """scikit-learn's forest, imported where it is used; without it the error names the command."""
    try:
        from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped]
    except ImportError:
        raise MissingError(
            "the random forest needs the extra `keystrokes`: pip install 'understudy[keystrokes]'."
        ) from None
    return RandomForestClassifier


CLASSIFIERS: dict[str, Classifier] = {
    "majority": majority,
    "naive-bayes": naive_bayes,
    "random-forest": random_forest,
}
