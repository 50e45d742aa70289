"""Inference of a trait from typing: cross-validated, with the selection of features inside the folds or not.

The thesis chose its features on all learners and cross-validated afterwards (section 4.4.3), so the test
folds had a say in what was learnt: with thousands of features, labels drawn by a coin look predictable.
`inside` chooses anew from every fold's training learners and is the figure to believe; `outside`
repeats the thesis and is too high.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, rankdata

from understudy.core.engine.tasks import growing_trees
from understudy.errors import DataError, MissingError, UsageError
from understudy.reproductions.keystroke_privacy.weka import (
    Codes,
    Cuts,
    Floats,
    Ints,
    mdl_cuts,
    select_features,
)

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


N_FOLDS = 10
LEVEL = 0.95


class Selection(StrEnum):
    """Where features are selected."""

    inside = "inside"  # from each fold's training learners only: honest
    outside = "outside"  # from all learners before the folds, as in the thesis: optimistic
    none = "none"  # all features are used


@dataclass(frozen=True)
class TraitEstimate:
    """How well one classifier tells the trait of learners that it was not trained on.

    `low` and `high` bound the accuracy over learners with 95 % confidence (Clopper and Pearson's
    bounds, read at the mean number of hits when folds are drawn more than once). They take learners as
    independent, though the folds share training learners: no unbiased variance of a cross-validation
    exists (Bengio and Grandvalet 2004), and for other courses of this size the bounds are too narrow
    when the trait is hard to tell (80 % instead of 95 % at an accuracy of 0.67, simulated).

    `majority` is the share of the largest class, `balanced_accuracy` the mean over classes of the share
    told right, `auc` the chance that a learner of a class is given a higher chance of it than another
    learner of the same fold (mean over classes; nan if no fold holds two classes). `n_selected` is the
    mean number of features in use.
    """

    classifier: str
    selection: Selection
    accuracy: float
    low: float
    high: float
    majority: float
    balanced_accuracy: float
    auc: float
    n_learners: int
    n_unlabelled: int
    n_classes: int
    n_features: int
    n_selected: float
    n_folds: int
    n_repeats: int

    @property
    def above_majority(self) -> bool:
        """Whether the data exclude that always naming the largest class does as well."""
        return self.low > self.majority

    @property
    def optimistic(self) -> bool:
        """Whether learners that were to be told had a say in the choice of features."""
        return self.selection is Selection.outside

    def to_json(self) -> dict[str, Any]:
        """The estimate for a machine."""
        result = {**vars(self), "above_majority": self.above_majority, "optimistic": self.optimistic}
        return {**result, "auc": None if np.isnan(self.auc) else self.auc}


@dataclass(frozen=True, eq=False)
class TraitInference:
    """All estimates on the same folds.

    `times_selected` counts for each feature in how many of `n_trainings` it was selected inside the
    folds; `selected_outside` are the features selected from all learners.
    """

    estimates: tuple[TraitEstimate, ...]
    times_selected: Ints
    n_trainings: int
    selected_outside: Ints

    def of(self, classifier: str, selection: Selection | str = Selection.inside) -> TraitEstimate:
        """The estimate of one classifier with one way of selecting features."""
        for estimate in self.estimates:
            if (estimate.classifier, estimate.selection) == (classifier, selection):
                return estimate
        raise UsageError(f"there is no estimate of '{classifier}' with features selected '{selection}'.")

    def to_json(self) -> dict[str, Any]:
        """The estimates for a machine."""
        return {"estimates": [estimate.to_json() for estimate in self.estimates]}


def infer_trait(
    profiles: Floats,
    labels: ArrayLike,
    rng: np.random.Generator,
    *,
    classifiers: Sequence[str] = tuple(CLASSIFIERS),
    selections: Sequence[Selection | str] = (Selection.inside, Selection.outside),
    n_folds: int = N_FOLDS,
    n_repeats: int = 1,
) -> TraitInference:
    """Stratified cross-validation of every classifier and way of selecting, on the same folds.

    `profiles` is learners x features without missing values; `labels` holds a class per learner, or
    -1, nan, None or "" for those whose class is not known: they are left out and counted. Bins are
    always learnt from training learners, also when features were selected outside. The same state of
    `rng` gives the same folds, so that coarsenings can be compared on them.
    """
    unknown = [name for name in classifiers if name not in CLASSIFIERS]
    if unknown:
        raise UsageError(
            f"there is no classifier '{unknown[0]}'.", hint=f"choose among {', '.join(CLASSIFIERS)}."
        )
    strange = [one for one in selections if one not in list(Selection)]
    if strange:
        raise UsageError(
            f"features cannot be selected '{strange[0]}'.", hint=f"choose among {', '.join(Selection)}."
        )
    chosen = [Selection(one) for one in selections]
    profiles = np.asarray(profiles, dtype=np.float64)
    codes = known_classes(labels)
    _check(profiles, codes, n_folds, n_repeats)
    n_unlabelled = int((codes < 0).sum())
    values, trait = profiles[codes >= 0], codes[codes >= 0]
    n_classes = int(trait.max()) + 1

    everything = np.arange(values.shape[1])
    selected_outside = everything[:0]
    if Selection.outside in chosen:
        selected_outside = select_features(mdl_cuts(values, trait).apply(values), trait)
    times_selected = np.zeros(values.shape[1], dtype=np.int64)
    tallies = {(name, one): _Tally(trait, n_classes) for name in classifiers for one in chosen}
    # All folds are drawn before any forest, whose draws depend on the features that it is given.
    for fold in [stratified_folds(trait, n_folds, rng) for _ in range(n_repeats)]:
        for number in range(n_folds):
            test = np.flatnonzero(fold == number)
            training = np.flatnonzero(fold != number)
            known = trait[training]
            cuts = mdl_cuts(values[training], known)
            for one in chosen:
                features = {Selection.outside: selected_outside, Selection.none: everything}.get(one)
                if features is None:
                    features = select_features(cuts.apply(values[training]), known)
                    times_selected[features] += 1
                seen, unseen = (_features(values[rows], cuts, features) for rows in (training, test))
                for name in classifiers:
                    chances = CLASSIFIERS[name](seen, known, n_classes, unseen, rng)
                    tallies[name, one].add(test, chances, len(features))
    estimates = []
    for (name, one), tally in tallies.items():
        accuracy = float(tally.hits.mean())
        low, high = accuracy_bounds(accuracy, len(trait))
        estimates.append(
            TraitEstimate(
                classifier=name,
                selection=one,
                accuracy=accuracy,
                low=low,
                high=high,
                majority=float(np.bincount(trait).max() / len(trait)),
                balanced_accuracy=tally.balanced_accuracy,
                auc=tally.auc,
                n_learners=len(trait),
                n_unlabelled=n_unlabelled,
                n_classes=n_classes,
                n_features=values.shape[1],
                n_selected=float(np.mean(tally.n_selected)),
                n_folds=n_folds,
                n_repeats=n_repeats,
            )
        )
    return TraitInference(tuple(estimates), times_selected, n_repeats * n_folds, selected_outside)


def known_classes(labels: ArrayLike) -> Ints:
    """Classes numbered from 0 in sorted order, -1 where a learner has none (-1, nan, None or "")."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise DataError(f"labels need one entry per learner; got an array of {given.ndim} dimensions.")
    if given.dtype.kind in "biuf":
        known = ~np.isnan(given) & (given >= 0) if given.dtype.kind == "f" else given >= 0
    else:
        known = np.array([one is not None and one != "" and one == one for one in given.tolist()], dtype=bool)
        given = given.astype(str)
    codes = np.full(len(given), -1, dtype=np.int64)
    codes[known] = np.unique(given[known], return_inverse=True)[1]
    return codes


def stratified_folds(labels: Ints, n_folds: int, rng: np.random.Generator) -> Ints:
    """A fold for each learner: sizes differ by at most one, and so does every class within them."""
    shuffled = rng.permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % n_folds
    return fold


def accuracy_bounds(accuracy: float, n_learners: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % bounds of a share of learners."""
    hits, tail = accuracy * n_learners, (1 - LEVEL) / 2
    low = 0.0 if hits <= 0 else float(beta.ppf(tail, hits, n_learners - hits + 1))
    high = 1.0 if hits >= n_learners else float(beta.ppf(1 - tail, hits + 1, n_learners - hits))
    return low, high


def _check(profiles: Floats, codes: Ints, n_folds: int, n_repeats: int) -> None:
    if profiles.ndim != 2 or len(profiles) != len(codes):
        raise DataError(
            f"there are {len(codes)} labels for profiles of shape {profiles.shape}.",
            hint="give one row of average latencies and one label per learner.",
        )
    if not np.isfinite(profiles).all():
        raise DataError(
            "profiles hold values that are no numbers.",
            hint="replace missing latencies by the learner's average speed, and leave out who typed nothing.",
        )
    if n_folds < 2 or n_repeats < 1:
        raise UsageError(
            f"asked for {n_folds} folds, drawn {n_repeats} times.", hint="ask for 2 folds or more."
        )
    n_labelled, n_classes = int((codes >= 0).sum()), int(codes.max(initial=-1)) + 1
    if n_labelled < n_folds:
        raise DataError(
            f"{n_folds}-fold cross-validation needs {n_folds} learners with a label; found {n_labelled}.",
            hint="give fewer folds, or more labels.",
        )
    if n_classes < 2:
        raise DataError(
            "inference of a trait needs two classes; all labelled learners have the same.",
            hint="check the column of labels.",
        )


def _features(values: Floats, cuts: Cuts, features: Ints) -> Features:
    used = cuts.of(features)
    return Features(values[:, features], used.apply(values[:, features]), used.n_bins)


class _Tally:
    """Hits and pairs of one classifier, gathered over folds and their repetitions."""

    def __init__(self, labels: Ints, n_classes: int) -> None:
        self._labels = labels
        self._n_classes = n_classes
        self._right = np.zeros(len(labels))
        self._times = np.zeros(len(labels))
        self._won = np.zeros(n_classes)
        self._pairs = np.zeros(n_classes)
        self.n_selected: list[int] = []

    def add(self, test: NDArray[np.intp], chances: Floats, n_selected: int) -> None:
        """What a fold's learners were given as chances of each class."""
        labels = self._labels[test]
        self._right[test] += chances.argmax(axis=1) == labels
        self._times[test] += 1
        for one in range(self._n_classes):
            own = labels == one
            n_own = int(own.sum())
            # Mann and Whitney's count of pairs, ties one half; only pairs of the same fold, since
            # chances from different trainings are on different scales.
            ranks = rankdata(chances[:, one])[own].sum()
            self._won[one] += ranks - n_own * (n_own + 1) / 2
            self._pairs[one] += n_own * (len(test) - n_own)
        self.n_selected.append(n_selected)

    @property
    def hits(self) -> Floats:
        """The share of times that each learner was told right."""
        return self._right / self._times

    @property
    def balanced_accuracy(self) -> float:
        """Mean over classes of the share told right."""
        hits = self.hits
        return float(np.mean([hits[self._labels == one].mean() for one in range(self._n_classes)]))

    @property
    def auc(self) -> float:
        """Mean over the classes that some fold lets compare."""
        compared = self._pairs > 0
        if not compared.any():
            return float("nan")
        return float((self._won[compared] / self._pairs[compared]).mean())
