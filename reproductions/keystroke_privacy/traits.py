"""Inference of programming experience as the thesis did it: WEKA's selection of features, and its Bayes net.

The thesis (Leinonen 2016, section 4.4.3) selected its features on all learners and cross-validated afterwards,
so the learners of the test folds had a say in what was learnt: with thousands of features, labels drawn
by a coin look predictable. `inside` selects anew from every fold's training learners and is the figure to
believe; `outside` repeats the thesis and is too high.

WEKA's Bayes net at its defaults (K2 with at most one parent, started as naive Bayes, 1/2 added to every
count) is naive Bayes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]

from reproductions.keystroke_privacy.weka import Codes, Floats, Ints, mdl_cuts, select_features
from understudy.keystrokes.traits.inference import (
    TraitEstimate,
    infer_trait,
    known_classes,
    random_forest,
)

ADDED = 0.5  # to every count, as WEKA's SimpleEstimator does

# How the name of an estimate says where its features were selected.
INSIDE, OUTSIDE = ", selected inside", ", selected outside"


class _Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn's cross-validation asks of a classifier with probabilities."""

    classes_: NDArray[Any]

    def predict_proba(self, values: Floats) -> Floats:
        raise NotImplementedError

    def predict(self, values: Floats) -> NDArray[Any]:
        """The most probable class of each learner."""
        return np.asarray(self.classes_[self.predict_proba(values).argmax(axis=1)])


class NaiveBayes(_Classifier):
    """Naive Bayes on bins that pay for their description: P(c) prod_j P(bin_j | c), `ADDED` on every count."""

    def fit(self, values: Floats, labels: Ints) -> NaiveBayes:
        """Learn bins from the labels, and count."""
        self.classes_, classes = np.unique(labels, return_inverse=True)
        self.cuts_ = mdl_cuts(values, classes)
        self.prior_, self.bins_ = count_bins(
            self.cuts_.apply(values), self.cuts_.n_bins, classes, len(self.classes_)
        )
        return self

    def predict_proba(self, values: Floats) -> Floats:
        """The probability of each class, a row per learner."""
        codes = self.cuts_.apply(values) + np.concatenate([[0], np.cumsum(self.cuts_.n_bins)[:-1]])
        return bin_chances(self.prior_, self.bins_, codes.astype(np.int64))


def count_bins(codes: Codes, n_bins: Ints, classes: Ints, n_classes: int) -> tuple[Floats, Floats]:
    """Logarithms of P(c), and of P(bin | c) as a row per class and a column per bin of each feature in turn."""
    n_learners = np.bincount(classes, minlength=n_classes)
    prior = np.log(n_learners + ADDED) - np.log(len(classes) + ADDED * n_classes)
    starts = np.concatenate([[0], np.cumsum(n_bins)])
    counts = np.zeros((n_classes, starts[-1]))
    np.add.at(counts, (np.repeat(classes, len(n_bins)), (codes + starts[:-1]).ravel()), 1.0)
    in_class = n_learners[:, None] + ADDED * np.repeat(n_bins, n_bins)
    return prior, np.log(counts + ADDED) - np.log(in_class)


def bin_chances(prior: Floats, bins: Floats, columns: Ints) -> Floats:
    """Probabilities of the classes for learners whose bins are these columns of `bins`."""
    score = prior + bins[:, columns].sum(axis=2).T
    chance = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


class Selected(_Classifier):
    """A classifier on features selected by WEKA's correlation-based search from the learners it is trained on."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, values: Floats, labels: Ints) -> Selected:
        """Select, then train; without any feature every class keeps its share."""
        self.classes_, classes = np.unique(labels, return_inverse=True)
        self.features_ = select_features(mdl_cuts(values, classes).apply(values), classes)
        self.shares_ = np.bincount(classes) / len(classes)
        if len(self.features_):
            self.classifier.fit(values[:, self.features_], labels)
        return self

    def predict_proba(self, values: Floats) -> Floats:
        """The probability of each class, a row per learner."""
        if not len(self.features_):
            return np.tile(self.shares_, (len(values), 1))
        return np.asarray(self.classifier.predict_proba(values[:, self.features_]))


Maker = Callable[[int], Any]

THESIS_CLASSIFIERS: Mapping[str, Maker] = {
    "naive-bayes": lambda seed: NaiveBayes(),
    "random-forest": random_forest,
}


def infer_as_thesis(
    profiles: Floats,
    labels: Any,
    rng: np.random.Generator,
    *,
    classifiers: Mapping[str, Maker] = THESIS_CLASSIFIERS,
    n_folds: int = 10,
    n_repeats: int = 1,
) -> dict[str, TraitEstimate]:
    """Estimates with all features, with features selected inside the folds, and outside of them."""
    profiles, codes = np.asarray(profiles, dtype=np.float64), known_classes(labels)
    values, trait = profiles[codes >= 0], codes[codes >= 0]
    inside = {
        name + INSIDE: (lambda seed, make=make: Selected(make(seed))) for name, make in classifiers.items()
    }
    state = rng.bit_generator.state
    infer = partial(infer_trait, labels=codes, rng=rng, n_folds=n_folds, n_repeats=n_repeats)
    found = infer(profiles, classifiers={**classifiers, **inside})
    rng.bit_generator.state = state  # the same folds
    chosen = select_features(mdl_cuts(values, trait).apply(values), trait)
    # Without a feature to look at, a constant leaves every class its share.
    outside = profiles[:, chosen] if len(chosen) else np.zeros((len(profiles), 1))
    found |= infer(outside, classifiers={name + OUTSIDE: make for name, make in classifiers.items()})
    return found
