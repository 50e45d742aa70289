"""Inference of a label from typing profiles: how well classifiers name the label of learners they never saw.

Whether that is a use or a harm depends on the label: for programming experience it is a finding, for
health or sex a risk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.core.attacks.intervals import exact_interval
from understudy.core.engine.tasks import growing_trees
from understudy.core.extras import needs_extra
from understudy.errors import DataError, UsageError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

N_FOLDS = 10
N_TREES = 100
FEATURES_PER_SPLIT = 6

# Makes an unfitted classifier, with scikit-learn's `fit` and `predict_proba`, from a seed.
Classifier = Callable[[int], Any]


def linear_discriminant(seed: int) -> Any:
    """Fisher's discriminant with Ledoit and Wolf's shrinkage, since there are more digraphs than learners."""
    from sklearn import discriminant_analysis, pipeline, preprocessing  # type: ignore[import-untyped]

    return pipeline.make_pipeline(
        preprocessing.StandardScaler(),
        discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    )


def random_forest(seed: int) -> Any:
    """100 trees that choose each split among 6 random features (Leinonen 2016, section 4.3)."""
    from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped]

    return RandomForestClassifier(N_TREES, max_features=FEATURES_PER_SPLIT, random_state=seed)


CLASSIFIERS: Mapping[str, Classifier] = {
    "linear-discriminant": linear_discriminant,
    "random-forest": random_forest,
}


@dataclass(frozen=True)
class TraitEstimate:
    """How well one classifier infers the label of learners that it was not trained on.

    `low` and `high` bound the accuracy over learners with 95 % confidence (Clopper and Pearson's bounds,
    at the mean number of hits when folds are drawn more than once). They take learners as independent,
    although folds share training learners: no unbiased variance of a cross-validation exists (Bengio and
    Grandvalet 2004), and as bounds for other courses of this size they are too narrow when the label is
    hard to infer (80 % instead of 95 % at an accuracy of 0.67, simulated).

    `majority` is the share of the largest class, `balanced_accuracy` the mean over classes of the share
    inferred correctly, `auc` the chance that a learner of a class is given a higher probability of it
    than another learner of the same fold (mean over classes; nan if no fold holds two classes).
    """

    classifier: str
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
    n_folds: int
    n_repeats: int

    @property
    def above_majority(self) -> bool:
        """Whether the data exclude that always naming the largest class does as well."""
        return self.low > self.majority

    def to_json(self) -> dict[str, Any]:
        """The estimate for a machine."""
        return {
            **vars(self),
            "above_majority": self.above_majority,
            "auc": None if np.isnan(self.auc) else self.auc,
        }


def infer_trait(
    profiles: Floats,
    labels: ArrayLike,
    rng: np.random.Generator,
    *,
    classifiers: Mapping[str, Classifier] = CLASSIFIERS,
    n_folds: int = N_FOLDS,
    n_repeats: int = 1,
) -> dict[str, TraitEstimate]:
    """An estimate for each classifier by stratified cross-validation, all on the same folds.

    `profiles` is learners x features without missing values; `labels` holds a class per learner, or -1,
    nan, None or "" for learners whose class is unknown: they are left out and counted. The same state
    of `rng` gives the same folds, so that coarsenings can be compared on them.
    """
    profiles = np.asarray(profiles, dtype=np.float64)
    codes = known_classes(labels)
    _check(profiles, codes, n_folds, n_repeats)
    values, trait = profiles[codes >= 0], codes[codes >= 0]
    sizes = np.bincount(trait)
    # A fold without a learner of even the largest class would not be stratified.
    n_folds = min(n_folds, int(sizes.max()))
    with needs_extra("keystrokes", "the inference of a label"):
        from sklearn.metrics import balanced_accuracy_score  # type: ignore[import-untyped]
        from sklearn.model_selection import (  # type: ignore[import-untyped]
            StratifiedKFold,
            cross_val_predict,
        )
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    seeds = rng.integers(2**31, size=(n_repeats, 2))
    repeats = [StratifiedKFold(n_folds, shuffle=True, random_state=int(fold)) for fold, _ in seeds]
    estimates = {}
    for name, classifier in classifiers.items():
        hits, balanced, areas = [], [], []
        for folds, (_, seed) in zip(repeats, seeds, strict=True):
            with growing_trees(), threadpool_limits(1):  # for matrices this small, threads only wait
                chances = cross_val_predict(
                    classifier(int(seed)), values, trait, cv=folds, method="predict_proba"
                )
                guesses = chances.argmax(axis=1)
                hits.append((guesses == trait).mean())
                balanced.append(balanced_accuracy_score(trait, guesses))
                areas.append(_area(trait, chances, [test for _, test in folds.split(values, trait)]))
        accuracy = float(np.mean(hits))
        low, high = exact_interval(accuracy, len(trait))
        estimates[name] = TraitEstimate(
            classifier=name,
            accuracy=accuracy,
            low=low,
            high=high,
            majority=float(sizes.max() / len(trait)),
            balanced_accuracy=float(np.mean(balanced)),
            auc=float(np.mean(areas)),
            n_learners=len(trait),
            n_unlabelled=int((codes < 0).sum()),
            n_classes=len(sizes),
            n_features=values.shape[1],
            n_folds=n_folds,
            n_repeats=n_repeats,
        )
    return estimates


def known_classes(labels: ArrayLike) -> Codes:
    """Classes numbered from 0 in sorted order, -1 where a learner has none (-1, nan, None or "")."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise DataError(f"labels need one entry per learner; got an array of {given.ndim} dimensions.")
    if given.dtype.kind in "biuf":
        known = ~np.isnan(given) & (given >= 0) if given.dtype.kind == "f" else given >= 0
    else:
        known = np.array(
            [label is not None and label != "" and label == label for label in given.tolist()], dtype=bool
        )
        given = given.astype(str)
    codes = np.full(len(given), -1, dtype=np.int64)
    codes[known] = np.unique(given[known], return_inverse=True)[1]
    return codes


def _area(trait: Codes, chances: Floats, tests: list[NDArray[np.intp]]) -> float:
    """The area under the curve, class against the rest: over pairs of learners of the same fold only.

    Probabilities from different trainings are on different scales.
    """
    from sklearn.metrics import roc_auc_score

    areas = []
    for label in range(chances.shape[1]):
        won = pairs = 0.0
        for test in tests:
            positive = trait[test] == label
            n_pairs = int(positive.sum()) * int((~positive).sum())
            if n_pairs:
                won += n_pairs * roc_auc_score(positive, chances[test, label])
                pairs += n_pairs
        if pairs:
            areas.append(won / pairs)
    return float(np.mean(areas)) if areas else float("nan")


def _check(profiles: Floats, codes: Codes, n_folds: int, n_repeats: int) -> None:
    if profiles.ndim != 2 or len(profiles) != len(codes):
        raise DataError(
            f"there are {len(codes)} labels for profiles of shape {profiles.shape}.",
            hint="give one row of average latencies and one label per learner.",
        )
    if not np.isfinite(profiles).all():
        raise DataError(
            "profiles hold values that are not numbers.",
            hint="replace missing latencies by the learner's average speed, and leave out learners who typed "
            "nothing.",
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
            "inference of a label needs two classes; all labelled learners have the same.",
            hint="check the column of labels.",
        )
    if n_labelled == n_classes:
        raise DataError(
            f"each of the {n_classes} learners has a label of their own, so none can be inferred from others.",
            hint="check the column of labels: it needs few classes.",
        )
