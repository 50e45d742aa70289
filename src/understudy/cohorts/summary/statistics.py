"""What a private summary can hold: each statistic a sum over learners of a bounded vector.

Nothing here draws noise. A statistic defines what one learner adds, looking at that learner only (and
at noisy numbers that were released before), and how far the sum moves when one learner is replaced.

Notation: x is a learner's value of a feature (window of the day) in a week, a = 1 where x > 0 and 0
elsewhere, l = log(1 + x) / log(1 + bound), which is between 0 and 1; F features, T weeks, n learners.

Sensitivity. Let v be the vector of the learner who is replaced and w that of the new one, each cut to
L2 norm C by scaling it down. The sum moves by w - v, and n is public. Groups (labels) are places in the
vector, so a learner who changes group is covered: v and w then have different places.

- "non-negative" (no entry below 0): |w - v|^2 = |w|^2 + |v|^2 - 2 <v, w> <= 2 C^2: sqrt(2) C.
- "signed": |w - v| <= |w| + |v| <= 2 C.
- "products" (v = u u', w = z z' for vectors u, z of squared norm at most C): the inner product of u u'
  and z z' is <u, z>^2 >= 0 and their norms are |u|^2, |z|^2 <= C, so as for "non-negative": sqrt(2) C.

All of them are on an integer lattice: vectors are cut to norm C and then rounded towards zero, entry by
entry, which makes no entry larger and changes no sign, so the bounds hold for the integers. For
"products" the vector u is rounded, and its products are exact integers (findings, section 6).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.summary_file import Statistic

Floats = NDArray[np.float64]
Kind = Literal["non-negative", "signed", "products"]

# Lattice steps within the norm C: what rounding loses is far below the noise. For products, steps
# within the norm of u; their products have its square.
_STEPS = 2**20
_ROOT_STEPS = 2**12
# Floating point never makes a cut vector a little too long.
_ROUND_DOWN = 1 - 1e-9

# Bins of the sketch of positive values, on the scale of l: one up to 0.2, then equal ones.
_SKETCH_EDGES = np.concatenate([[0.0], np.linspace(0.2, 1.0, 11)])

Earlier = Mapping[str, Statistic]


@dataclass(frozen=True, eq=False)
class Measure:
    """One statistic of a schema, ready to be measured.

    `vectors` gives what each learner adds, learners by cells (for products: the vector u). `norm` is C.
    """

    name: str
    meaning: str
    axes: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    kind: Kind
    norm: float
    vectors: Callable[[Cohort], Floats]
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the statistic."""
        return tuple(len(names) for names in self.names)

    @property
    def n_cells(self) -> int:
        """How many noisy integers it takes."""
        return math.prod(self.shape)

    @property
    def sensitivity(self) -> float:
        """L2 distance by which the sum moves when one learner is replaced, in its own units."""
        return (2.0 if self.kind == "signed" else math.sqrt(2.0)) * self.norm

    @property
    def step(self) -> float:
        """What one step of the lattice is worth."""
        return self.norm / (_ROOT_STEPS**2 if self.kind == "products" else _STEPS)

    def lattice(self, cohort: Cohort) -> NDArray[np.int64]:
        """The sum over learners, without noise, in steps of the lattice."""
        rows = self._rows(cohort)
        total = rows.T @ rows if self.kind == "products" else rows.sum(axis=0)
        return np.asarray(total, dtype=np.int64).reshape(self.shape)

    def _rows(self, cohort: Cohort) -> NDArray[np.int64]:
        vectors = np.asarray(self.vectors(cohort), dtype=np.float64).reshape(cohort.n_learners, -1)
        if self.kind == "non-negative":
            vectors = np.maximum(vectors, 0.0)
        bound, steps = (math.sqrt(self.norm), _ROOT_STEPS) if self.kind == "products" else (self.norm, _STEPS)
        scaled = _cut(vectors, bound) * (steps * _ROUND_DOWN / bound)
        rows: NDArray[np.int64] = np.trunc(scaled).astype(np.int64)
        return rows

    def learner_cells(self, cohort: Cohort) -> Floats:
        """What each learner adds, in its own units: learners x cells. A matrix of products gives its upper half."""
        rows = self._rows(cohort).astype(np.float64)
        if self.kind == "products":
            i, j = np.triu_indices(rows.shape[1])
            rows = rows[:, i] * rows[:, j]
        return np.asarray(rows * self.step)

    def cells(self, values: Floats) -> Floats:
        """The released values, in the order of `learner_cells`."""
        return values[np.triu_indices(len(values))] if self.kind == "products" else values.ravel()

    def cell_noise(self, sigma: float) -> Floats:
        """The noise of each of them where `sigma` was drawn; see `statistic`."""
        if self.kind != "products":
            return np.full(self.n_cells, sigma)
        i, j = np.triu_indices(self.shape[0])
        return np.asarray(np.where(i == j, sigma, sigma / math.sqrt(2.0)))

    def statistic(self, noisy: NDArray[np.int64], sigma: float) -> Statistic:
        """The released form of a noisy sum whose noise has the standard deviation `sigma` in its own units.

        The two halves of a matrix of products have independent noise and the same meaning: their mean is
        released.
        """
        values = noisy.astype(np.float64) * self.step
        sd: float | Floats = sigma
        if self.kind == "products":
            values = (values + values.T) / 2.0
            sd = np.full(values.shape, sigma / math.sqrt(2.0))
            np.fill_diagonal(sd, sigma)
        return Statistic(values, sd, self.axes, self.meaning, self.names, self.context)


def _cut(vectors: Floats, bound: float) -> Floats:
    """Rows that are longer than `bound`, scaled down to it."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors * np.minimum(1.0, bound / np.maximum(length, 1e-300)), dtype=np.float64)


def log_share(cohort: Cohort) -> Floats:
    """l, learners by features by weeks."""
    bounds = np.log1p(cohort.schema.highs)[None, :, None]
    return np.asarray(np.log1p(cohort.values) / bounds, dtype=np.float64)


def _active(cohort: Cohort) -> Floats:
    return (cohort.values > 0).astype(np.float64)


def _by_label(cohort: Cohort, vectors: Floats) -> Floats:
    """Each learner's vector in the places of their label."""
    n, n_labels = cohort.n_learners, cohort.schema.n_labels
    placed = np.zeros((n, n_labels, *vectors.shape[1:]))
    placed[np.arange(n), cohort.label] = vectors
    return placed


def _features(schema: Schema) -> tuple[str, ...]:
    return tuple(feature.name for feature in schema.features)


def _weeks(schema: Schema) -> tuple[str, ...]:
    return tuple(str(week) for week in range(1, schema.n_weeks + 1))


def labels(schema: Schema, earlier: Earlier) -> Measure:
    """How many learners have each label. Non-negative with one 1: C = 1, which cuts no learner."""
    return Measure(
        "labels",
        "number of learners with each label",
        (schema.label,),
        (schema.labels,),
        "non-negative",
        1.0,
        lambda cohort: _by_label(cohort, np.ones(cohort.n_learners)),
    )


def zeros(schema: Schema, earlier: Earlier) -> Measure:
    """Share of weeks without activity, by label and feature (Ito, Hsu and Ogata 2026, section IV-B2).

    Non-negative; F entries of at most 1 in the places of one label: C = sqrt(F), which cuts no learner.
    """
    return Measure(
        "zeros",
        "sum over learners of the share of weeks with the value 0",
        (schema.label, "feature"),
        (schema.labels, _features(schema)),
        "non-negative",
        math.sqrt(schema.n_features),
        lambda cohort: _by_label(cohort, 1.0 - _active(cohort).mean(axis=2)),
    )


_MIDDLE = (0.5, 0.3)


def levels(schema: Schema, earlier: Earlier) -> Measure:
    """Active weeks and size of the values for each feature, less a public middle that keeps norms small.

    Signed, C = 0.6 sqrt(F): cut only beyond 0.6 on average from the middle (0.5, 0.3), as with more than
    an hour a week in every window where the bound is ten hours.
    """
    middle = np.array(_MIDDLE)

    def vectors(cohort: Cohort) -> Floats:
        means = np.stack([_active(cohort).mean(axis=2), log_share(cohort).mean(axis=2)], axis=2)
        return np.asarray(means - middle, dtype=np.float64)

    return Measure(
        "levels",
        "sum over learners of: share of active weeks less 0.5; mean over all weeks of l less 0.3, where "
        "l = log(1 + value) / log(1 + bound)",
        ("feature", "what"),
        (_features(schema), ("active", "l")),
        "signed",
        0.6 * math.sqrt(schema.n_features),
        vectors,
        {"middle": list(_MIDDLE)},
    )


def minutes_by_label(schema: Schema, earlier: Earlier) -> Measure:
    """Sums of l and of its square by label and feature: means and spread. Non-negative, C = 0.6 sqrt(F).

    A learner with l = 0.5 in every week has sqrt(0.25 + 0.06) = 0.56 for each feature.
    """

    def vectors(cohort: Cohort) -> Floats:
        share = log_share(cohort)
        return _by_label(cohort, np.stack([share.mean(axis=2), (share**2).mean(axis=2)], axis=2))

    return Measure(
        "minutes_by_label",
        "sum over learners of the means over all weeks of l and of l squared, l = log(1 + value) / log(1 + bound)",
        (schema.label, "feature", "what"),
        (schema.labels, _features(schema), ("l", "l squared")),
        "non-negative",
        0.6 * math.sqrt(schema.n_features),
        vectors,
    )


def sketch(schema: Schema, earlier: Earlier) -> Measure:
    """Histogram of positive values over public bins, for each feature. Non-negative, C = 0.4 sqrt(F).

    A learner's shares of weeks in the bins of a feature add up to at most 1, so their norm is at most 1;
    a learner who is active half of the weeks and varies over three bins has 0.3.
    """
    edges = _SKETCH_EDGES
    highs = schema.highs

    def vectors(cohort: Cohort) -> Floats:
        place = np.clip(np.searchsorted(edges, log_share(cohort), side="left") - 1, -1, len(edges) - 2)
        return np.stack([(place == code).mean(axis=2) for code in range(len(edges) - 1)], axis=2)

    return Measure(
        "sketch",
        "sum over learners of the share of weeks with a value in the bin (above its first edge, up to its last)",
        ("feature", "bin"),
        (_features(schema), tuple(f"l {a:.2f} to {b:.2f}" for a, b in itertools.pairwise(edges))),
        "non-negative",
        0.4 * math.sqrt(schema.n_features),
        vectors,
        {
            "edges_l": [round(float(edge), 6) for edge in edges],
            "edges": [[round(float(edge), 2) for edge in np.expm1(edges * np.log1p(high))] for high in highs],
        },
    )


def rhythm(schema: Schema, earlier: Earlier) -> Measure:
    """How active each week is, all features together, less the learner's own mean. Signed, C = 0.25 sqrt(T).

    Shares between 0 and 1 are at most 0.5 from their mean on average (in the root mean square).
    """

    def vectors(cohort: Cohort) -> Floats:
        week = _active(cohort).mean(axis=1)
        return np.asarray(week - week.mean(axis=1, keepdims=True), dtype=np.float64)

    return Measure(
        "rhythm",
        "sum over learners of the share of features that are active in the week, less the learner's mean "
        "of it over the weeks",
        ("week",),
        (_weeks(schema),),
        "signed",
        0.25 * math.sqrt(schema.n_weeks),
        vectors,
    )


def rhythm_by_feature(schema: Schema, earlier: Earlier) -> Measure:
    """The weekly profile of every feature: how many learners are active. Non-negative, C = 0.7 sqrt(F T).

    F T entries of 0 or 1, of which about half are 1.
    """
    return Measure(
        "rhythm_by_feature",
        "number of learners who are active in the week",
        ("feature", "week"),
        (_features(schema), _weeks(schema)),
        "non-negative",
        0.7 * math.sqrt(schema.n_features * schema.n_weeks),
        _active,
    )


# Deviations of l from a learner's mean are small: this makes their products comparable with those of a.
_MINUTES_SCALE = 16.0


def persistence(schema: Schema, earlier: Earlier) -> Measure:
    """What neighbouring weeks of a learner have in common, beyond their mean. Signed, C = 0.5 sqrt(F).

    For activity: 4 (a_t - mean a)(a_t+1 - mean a), averaged over weeks, at most 1. For values: the same
    with l of active weeks and factor 16, where both weeks are active.
    """

    def vectors(cohort: Cohort) -> Floats:
        active = _active(cohort)
        off = active - active.mean(axis=2, keepdims=True)
        activity = 4.0 * (off[:, :, 1:] * off[:, :, :-1]).mean(axis=2)
        own = _own_deviation(cohort)
        minutes = _MINUTES_SCALE * (own[:, :, 1:] * own[:, :, :-1]).mean(axis=2)
        return np.stack([activity, minutes], axis=2)

    return Measure(
        "persistence",
        "sum over learners of the mean over neighbouring weeks of: 4 times the product of the deviations of "
        "activity (0 or 1) from the learner's mean; 16 times the product of the deviations of l from the "
        "learner's mean of active weeks, where both weeks are active",
        ("feature", "what"),
        (_features(schema), ("active", "l")),
        "signed",
        0.5 * math.sqrt(schema.n_features),
        vectors,
    )


def spread(schema: Schema, earlier: Earlier) -> Measure:
    """How much a learner's own positive values vary. Non-negative, C = 0.25 sqrt(F).

    16 times the sum of squared deviations of l from the learner's mean of active weeks, over T.
    """
    return Measure(
        "spread",
        "sum over learners of 16 times the sum of squared deviations of l from the learner's mean of active "
        "weeks, divided by the number of weeks",
        ("feature",),
        (_features(schema),),
        "non-negative",
        0.25 * math.sqrt(schema.n_features),
        lambda cohort: _MINUTES_SCALE * (_own_deviation(cohort) ** 2).mean(axis=2),
    )


def _own_deviation(cohort: Cohort) -> Floats:
    """l less the learner's mean of active weeks; 0 where not active."""
    active, share = _active(cohort), log_share(cohort)
    mean = share.sum(axis=2) / np.maximum(active.sum(axis=2), 1.0)
    return np.asarray((share - mean[:, :, None]) * active, dtype=np.float64)


# Of the vector whose products are released: the constant, and the label from -1 to 1.
_CONSTANT = 1.2
LABEL_FACTOR = 1.8
# Weeks by which a learner's mean of l is shrunk, so that one week counts little.
_PRIOR_WEEKS = 2.0


def habits(schema: Schema, earlier: Earlier) -> Measure:
    """Products of learners' own habits with each other and with the label: second moments and label effects.

    u = (1.2, z, 1.8 y): z_a = (share of active weeks - centre) / scale and z_l = (mean of l of active
    weeks - centre, shrunk by two weeks) / scale for each feature, y the label from -1 to 1. Centres and
    scales come from `levels` where that was released before, from public guesses otherwise, and are in
    the context. z is cut to squared norm 2 F (scaled features have about 1 each), so |u|^2 <= C =
    2 F + 1.2^2 + 1.8^2. One matrix holds what would else be paid for apart: with the label as long as
    z the entries of z y have the noise of 2 sqrt(2 F), as if they were released alone.
    """
    return habits_around(schema, *_centres(schema, earlier))


def habits_of(cohort: Cohort) -> Measure:
    """`habits` centred by the learners themselves: for whoever knows them, never for a release."""
    exact = levels(cohort.schema, {})
    found = replace(
        exact.statistic(exact.lattice(cohort), 1.0),
        context={**exact.context, "n_learners": cohort.n_learners},
    )
    return habits(cohort.schema, {"levels": found})


def habits_around(schema: Schema, centre_a: Floats, centre_l: Floats) -> Measure:
    """`habits` with these centres of the shares of active weeks and of l."""
    n_features, most = schema.n_features, 2.0 * schema.n_features
    scale_a = np.maximum(0.55 * np.sqrt(centre_a * (1.0 - centre_a)), 0.1)
    scale_l = np.full(n_features, 0.08)
    code = 2.0 * np.arange(schema.n_labels) / (schema.n_labels - 1) - 1.0

    def vectors(cohort: Cohort) -> Floats:
        active, share = _active(cohort), log_share(cohort)
        weeks = active.sum(axis=2)
        z_a = (active.mean(axis=2) - centre_a) / scale_a
        z_l = (share.sum(axis=2) - weeks * centre_l) / (weeks + _PRIOR_WEEKS) / scale_l
        z = _cut(np.concatenate([z_a, z_l], axis=1), math.sqrt(most))
        ones = np.full((cohort.n_learners, 1), _CONSTANT)
        return np.concatenate([ones, z, LABEL_FACTOR * code[cohort.label][:, None]], axis=1)

    names = (
        "constant",
        *(f"active {name}" for name in _features(schema)),
        *(f"l {name}" for name in _features(schema)),
        schema.label,
    )
    return Measure(
        "habits",
        "sum over learners of the products of: the constant 1.2; share of active weeks, (share - centre_active)"
        " / scale_active; size of values, sum over active weeks of (l - centre_l) / (active weeks + 2) / "
        "scale_l; 1.8 times the label from -1 (lowest) to 1 (highest)",
        ("habit", "habit"),
        (names, names),
        "products",
        most + _CONSTANT**2 + LABEL_FACTOR**2,
        vectors,
        {
            "constant": _CONSTANT,
            "label_factor": LABEL_FACTOR,
            "label_codes": code.tolist(),
            "prior_weeks": _PRIOR_WEEKS,
            "squared_norm_of_habits": most,
            "centre_active": centre_a.tolist(),
            "scale_active": scale_a.tolist(),
            "centre_l": centre_l.tolist(),
            "scale_l": scale_l.tolist(),
        },
    )


def _centres(schema: Schema, earlier: Earlier) -> tuple[Floats, Floats]:
    """Where to expect a learner's share of active weeks and l of active weeks: noisy levels, shrunk."""
    n = schema.n_features
    active, share = np.full(n, _MIDDLE[0]), np.full(n, _MIDDLE[1])
    if "levels" in earlier:
        found = earlier["levels"]
        n_learners = float(found.context["n_learners"])
        active = active + found.values[:, 0] / n_learners
        share = share + found.values[:, 1] / n_learners
    active = np.clip(active, 0.05, 0.95)
    # Two weeks of 0.45 beside the learner's: a feature with next to no activity gets no wild centre.
    size = (np.maximum(share, 0.0) + 0.1 * 0.45) / (active + 0.1)
    return np.round(active, 6), np.round(np.clip(size, 0.15, 0.85), 6)


# In the order in which they are measured: `habits` uses the result of `levels`.
MEASURES: dict[str, Callable[[Schema, Earlier], Measure]] = {
    "labels": labels,
    "levels": levels,
    "zeros": zeros,
    "minutes_by_label": minutes_by_label,
    "sketch": sketch,
    "rhythm": rhythm,
    "rhythm_by_feature": rhythm_by_feature,
    "persistence": persistence,
    "spread": spread,
    "habits": habits,
}
