"""Who typed this? Attackers who learn from several windows of each known person how people vary.

A window is a stretch of one person's typing (a week, some hundred keys) with a profile of its own, coarse like the
release. What differs between windows of one person is noise; what stays, identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from understudy.core.engine.tasks import growing_trees
from understudy.core.extras import needs_extra
from understudy.errors import DataError
from understudy.keystrokes.attacks.profiles import whitening

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

N_TREES = 300
N_DRAWS = 200
MIN_SPREAD = 0.05  # of a feature within a person, as a share of its spread over all windows
N_STRANGERS = 10  # whom each window is shown beside, for every time beside its own person
BLOCK = 20_000  # pairs judged at a time
MIN_CHANCE = 0.1  # of all people together that the trees found in no leaf


@dataclass(frozen=True, eq=False, repr=False)
class PersonWindows:
    """Profiles of windows (window x feature), and the person of each: 0 to `n_people` - 1.

    Windows in which nothing was typed have no numbers, and are left out.
    """

    values: Floats
    person: Codes
    n_people: int

    def __post_init__(self) -> None:
        if len(self.values) != len(self.person):
            raise DataError(f"{len(self.values)} windows need as many owners; got {len(self.person)}.")
        if len(self.person) and not 0 <= self.person.min() <= self.person.max() < self.n_people:
            raise DataError("the owner of a window is outside the people.")
        typed = np.isfinite(self.values).all(axis=1)
        object.__setattr__(self, "values", self.values[typed])
        object.__setattr__(self, "person", self.person[typed])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many windows each person has."""
        return np.bincount(self.person, minlength=self.n_people)

    @property
    def means(self) -> Floats:
        """The mean window of each person."""
        return self.mean_of(self.values)

    def mean_of(self, scores: Floats) -> Floats:
        """The mean over a person's windows of scores (window x something); nan for a person without any."""
        total = np.zeros((self.n_people, scores.shape[1]))
        np.add.at(total, self.person, scores)
        size = self.sizes[:, None]
        return np.asarray(np.where(size > 0, total / np.maximum(size, 1), np.nan))


def within_mahalanobis(
    known: PersonWindows, unknown: PersonWindows, rng: np.random.Generator | None = None
) -> Floats:
    """An attacker who knows how much each person's typing varies, and in which directions.

    Differences of people's mean windows are measured in the pooled covariance of windows about their own
    person's mean, shrunk (Ledoit and Wolf 2004): the best distance there is when people differ normally with a
    common covariance (Fisher's discriminant). A digraph that is steady within people counts most. Nothing is drawn
    at random: `rng` is there because the other attackers need one.
    """
    whiten = _within_whitening(known)
    return np.asarray(cdist(unknown.means @ whiten, known.means @ whiten))


def cell_likelihood(
    known: PersonWindows,
    unknown: Floats,
    coarsen: Callable[[Floats], Floats],
    rng: np.random.Generator,
) -> Floats:
    """An attacker with the *fine* typing of the known people, and a coarse release of averages.

    Coarsening what they know, as all other attackers do, throws away how close each average is to the edge of
    its cell. This one asks instead with which chance next week's average of each known person falls into
    the released cell: they draw `N_DRAWS` weeks per person about their mean, as far as people's weeks
    stray, coarsen these, and count. The distance is the negative log-likelihood over the features.

    The windows are fine here, and `unknown` is coarse, a row per person; a window should be as long as what
    is released.
    """
    n_known, mean = known.n_people, known.means
    # The mean itself is uncertain: it comes from as many windows as there were.
    spread = np.sqrt(1.0 + 1.0 / np.maximum(known.sizes, 1))[:, None] * _stray(known)
    result = np.zeros((len(unknown), n_known))
    for j in range(mean.shape[1]):
        drawn = mean[:, [j]] + spread[:, [j]] * rng.standard_normal((n_known, N_DRAWS))
        drawn = np.round(coarsen(drawn), 6)
        cells, cell = np.unique(np.round(unknown[:, j], 6), return_inverse=True)
        place = np.minimum(np.searchsorted(cells, drawn), len(cells) - 1)
        inside = cells[place] == drawn
        row = np.repeat(np.arange(n_known), N_DRAWS).reshape(drawn.shape)
        count = np.zeros((n_known, len(cells)))
        np.add.at(count, (row[inside], place[inside]), 1.0)
        together = count.sum(axis=0) + 1.0
        chance = (count + 2.0 * together / together.sum()) / (N_DRAWS + 2.0)
        result -= np.log(chance).T[cell]
    return result


def forest(known: PersonWindows, unknown: PersonWindows, rng: np.random.Generator) -> Floats:
    """An attacker who trains a random forest to name the person of a window, without knowing how typing works.

    It learns from the known people's windows; each window of an unnamed person gets a chance per known person,
    and the logarithms are added over the windows (mean, so that the distance does not grow with their number).
    Thresholds are drawn at random too (Geurts, Ernst and Wehenkel 2006): with few windows of many people that finds
    as many of them as searching for the best thresholds, in less time.
    """
    model = _sklearn_ensemble().ExtraTreesClassifier(
        N_TREES, min_samples_leaf=2, random_state=int(rng.integers(2**31))
    )
    chance = np.zeros((len(unknown.values), known.n_people))
    with growing_trees():
        model.fit(known.values, known.person)
        chance[:, model.classes_] = model.predict_proba(unknown.values)
    return unknown.mean_of(-np.log(chance + MIN_CHANCE / known.n_people))


def pairs(known: PersonWindows, unknown: PersonWindows, rng: np.random.Generator) -> Floats:
    """An attacker who trains boosted trees to say whether two profiles are of the same person.

    It learns from each window beside the mean of its person's other windows, and beside the means of strangers:
    which differences matter, on which digraphs, and from where on. The lesson is one about people, so
    all of them teach it together, where the forest has a few windows of each.
    """
    whiten, mean, size = _within_whitening(known), known.means, known.sizes
    taught = np.flatnonzero(size[known.person] >= 2)
    present = np.flatnonzero(size > 0)
    if len(taught) == 0 or len(present) < 2:
        raise DataError(
            "training on pairs needs a known person with two windows, and another one.",
            hint="use shorter windows, or leave out this attack.",
        )
    teacher, n_own = known.person[taught], size[known.person[taught], None]
    others = (n_own * mean[teacher] - known.values[taught]) / (n_own - 1)
    some = np.repeat(taught, N_STRANGERS)
    stranger = present[rng.integers(len(present), size=len(some))]
    differs = stranger != known.person[some]
    left = known.values[np.concatenate([taught, some[differs]])]
    right = np.concatenate([others, mean[stranger[differs]]])
    model = _sklearn_ensemble().HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.1, max_leaf_nodes=8, random_state=int(rng.integers(2**31))
    )
    n_known = known.n_people
    result = np.empty((len(unknown.values), n_known))
    block = max(1, BLOCK // n_known)
    with _one_thread():
        model.fit(_differences(left, right, whiten), np.arange(len(left)) < len(taught))
        for start in range(0, len(result), block):
            part = unknown.values[start : start + block]
            shown = _differences(np.repeat(part, n_known, axis=0), np.tile(mean, (len(part), 1)), whiten)
            result[start : start + block] = -model.decision_function(shown).reshape(len(part), n_known)
    result[:, size == 0] = np.inf
    return unknown.mean_of(result)


def _differences(left: Floats, right: Floats, whiten: Floats) -> Floats:
    """What a judge of pairs looks at: every difference, and their sum in the units of `within_mahalanobis`."""
    difference = left - right
    return np.column_stack([np.abs(difference), np.linalg.norm(difference @ whiten, axis=1)])


def _stray(known: PersonWindows) -> Floats:
    """How far windows stray from their person's mean: pooled over people, per feature."""
    freedom = max(len(known.values) - int(np.sum(known.sizes > 0)), 1)
    stray = np.sqrt(np.sum((known.values - known.means[known.person]) ** 2, axis=0) / freedom)
    # Windows that all agree (one each, or very coarse ones) still leave some doubt.
    return np.asarray(np.maximum(stray, MIN_SPREAD * known.values.std(axis=0)))


def _within_whitening(known: PersonWindows) -> Floats:
    stray = _stray(known)
    scale = np.where(stray > 0, stray, 1.0)
    return whitening((known.values - known.means[known.person]) / scale) / scale[:, None]


def _one_thread() -> Any:
    """The boosted trees take all cores in small steps, and crawl where others work on these too."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped] # comes with scikit-learn

    return threadpool_limits(limits=1, user_api="openmp")


def _sklearn_ensemble() -> Any:
    with needs_extra("keystrokes", "training attackers"):
        from sklearn import ensemble  # type: ignore[import-untyped]
    return ensemble


TrainedAttack = Callable[[PersonWindows, PersonWindows, np.random.Generator], Floats]

TRAINED_ATTACKS: dict[str, TrainedAttack] = {
    "within-mahalanobis": within_mahalanobis,
    "forest": forest,
    "pairs": pairs,
}
