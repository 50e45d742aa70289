"""Measurements: sums over learners, what one learner adds to them, and how far replacing a learner moves them.

Questions are answered from measurements, and questions that need the same one share it. Nothing here draws noise.
A learner's vector depends on that learner's cells and on what is public, or was released with noise before. Let v be
the vector of the learner who is replaced and w that of the new one; the sum moves by w - v.

- `Cells`: one 1 in a list of cells. |w - v| <= sqrt(2).
- `Moments`: the matrix z z' in the place of the learner's group, |z|^2 <= C. The inner product of z z' and y y' is
  (z.y)^2 >= 0 in the same place and 0 in different ones, and their norms are |z|^2 and |y|^2, so
  |w - v|^2 = |w|^2 + |v|^2 - 2 <v, w> <= 2 C^2: sqrt(2) C. A learner who is left out adds zeros, which is covered.
- `Slopes`: gradients (y - p) x, see `Slopes.gradient_diameter`; and curvatures x x' p (1 - p) as for `Moments`.

All are on an integer lattice: vectors are cut to their norm and rounded towards zero, which makes none of them longer;
of products the vector z is rounded, and its products are exact integers. The difference of two rounded gradients is
off by less than 1 in each cell, which is part of their sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from understudy.desk.private.schema import Codes, Floats, Records, Schema

# Lattice steps within the norm of a vector, and of z where products are summed: products have its square.
STEPS = 2**20
ROOT_STEPS = 2**14
# Floating point never makes a vector a little too long.
_ROUND_DOWN = 1 - 1e-9
# Pieces in which the maximum of a function is bounded.
_PIECES = 2000


@dataclass(frozen=True, eq=False, repr=False)
class LatticeSum:
    """A sum over learners in lattice steps, without noise.

    `sensitivity` is how far replacing one learner moves it, `step` what a lattice step is worth.
    """

    values: NDArray[np.int64]
    sensitivity: float
    step: float


@dataclass(frozen=True, eq=False)
class Noisy:
    """What was released of a sum, and the standard deviation of the noise of each entry (0 where it is public)."""

    values: Floats
    sd: Floats


@dataclass(frozen=True)
class Axis:
    """A column by its categories, or a column of numbers between edges."""

    column: str
    edges: tuple[float, ...] = ()

    def names(self, schema: Schema) -> tuple[str, ...]:
        """The cells along this axis; the last ones are of whatever else there is."""
        if not self.edges:
            return (*schema.categories(self.column), *self._others(schema))
        bins = tuple(f"{low:g} to {high:g}" for low, high in zip(self.edges, self.edges[1:], strict=False))
        return (*bins, *self._others(schema))

    def _others(self, schema: Schema) -> tuple[str, ...]:
        column = schema.column(self.column)
        other = ("other",) if not self.edges and column.values else ()
        return (*other, *(() if self.column in schema.complete else ("missing",)))

    def codes(self, records: Records) -> Codes:
        """The cell of each learner."""
        names = self.names(records.schema)
        if not self.edges:
            codes = records.codes[self.column]
        else:
            low, high = records.schema.number(self.column)
            scaled = (2.0 * np.array(self.edges) - low - high) / (high - low)
            numbers = records.numbers[self.column]
            codes = np.clip(np.searchsorted(scaled, numbers, side="right") - 1, 0, len(self.edges) - 2)
            codes = np.where(np.isnan(numbers), -1, codes)
        # A cell that is missing where the schema says that none is: yes or no that is neither counts as no.
        missing = len(names) - 1 if names[-1] == "missing" else 0
        return np.where(codes < 0, missing, codes).astype(np.int64)


@dataclass(frozen=True)
class Cells:
    """How many learners there are in each cell of a table; how many there are in all is public."""

    axes: tuple[Axis, ...]

    def shape(self, schema: Schema) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(len(axis.names(schema)) for axis in self.axes)

    def n_cells(self, schema: Schema) -> int:
        """Noisy integers that it takes."""
        return math.prod(self.shape(schema))

    def noise_sd(self, rho: float) -> float:
        """The noise of a cell."""
        return math.sqrt(2.0) / math.sqrt(2.0 * rho)

    def sums(self, records: Records) -> LatticeSum:
        """The counts."""
        shape = self.shape(records.schema)
        place = np.ravel_multi_index([axis.codes(records) for axis in self.axes], shape)
        counts = np.bincount(place, minlength=math.prod(shape)).reshape(shape)
        return LatticeSum(counts.astype(np.int64) * STEPS, math.sqrt(2.0) * STEPS, 1.0 / STEPS)

    def released(self, values: Floats, schema: Schema, n_learners: int, rho: float) -> Noisy:
        """The noisy counts."""
        return Noisy(values, np.full(values.shape, self.noise_sd(rho)))

    def assumed(self, schema: Schema, n_learners: int, spread: float) -> Floats:
        """Equal counts in all cells but those of other and missing values."""
        known = [
            np.array([name not in ("other", "missing") for name in axis.names(schema)]) for axis in self.axes
        ]
        filled = np.ones(())
        for axis in known:
            filled = np.multiply.outer(filled, axis.astype(np.float64))
        return np.asarray(filled * (n_learners / filled.sum()))


@dataclass(frozen=True)
class Features:
    """The numbers x of a learner: 1, each number from -1 to 1, a 0 or 1 for each category but the first."""

    numbers: tuple[str, ...]
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, schema: Schema, columns: tuple[str, ...]) -> Features:
        """Features of these columns, in one order whatever the order of the question is."""
        numbers = tuple(sorted(name for name in columns if schema.is_number(name)))
        return cls(numbers, tuple(sorted(name for name in columns if not schema.is_number(name))))

    @property
    def norm(self) -> int:
        """The most that the squares of all but the first can add up to: one for each column."""
        return len(self.numbers) + len(self.categories)

    def names(self, schema: Schema) -> list[tuple[str, str]]:
        """Column and category of each feature but the first."""
        dummies = [(name, value) for name in self.categories for value in schema.categories(name)[1:]]
        return [*((name, "") for name in self.numbers), *dummies]

    def matrix(self, records: Records, constant: float) -> Floats:
        """x of each learner, its 1 replaced by `constant`; zeros for learners who lack a value."""
        n = records.n_learners
        parts = [np.full((n, 1), constant), *(records.numbers[name][:, None] for name in self.numbers)]
        kept = np.ones(n, dtype=bool)
        for name in self.categories:
            codes, n_codes = records.codes[name], len(records.schema.categories(name))
            parts.append((codes[:, None] == np.arange(1, n_codes)).astype(np.float64))
            kept &= (codes >= 0) & (codes < n_codes)
        found = np.concatenate(parts, axis=1)
        kept &= ~np.isnan(found).any(axis=1)
        return np.where(kept[:, None], found, 0.0)

    def counted(self, schema: Schema) -> bool:
        """Whether all learners have these features, so that their number is public."""
        return not self.categories and all(name in schema.complete for name in self.numbers)

    def assumed(self, schema: Schema, spread: float) -> Floats:
        """The mean of x x' before anything is known: numbers around the middle, categories equally frequent."""
        mean = np.concatenate(
            [[1.0], np.zeros(len(self.numbers)), *(self._even(schema, name) for name in self.categories)]
        )
        second = np.outer(mean, mean)
        place = 1
        for _ in self.numbers:
            second[place, place] = spread**2
            place += 1
        for name in self.categories:
            share = self._even(schema, name)
            second[place : place + len(share), place : place + len(share)] = np.diag(share)
            place += len(share)
        return second

    def impossible(self, schema: Schema) -> NDArray[np.bool_]:
        """Products that are 0 for every learner: two categories of one column."""
        owner = ["", *(name for name, _ in self.names(schema))]
        same = np.array([[one == other for other in owner] for one in owner])
        return np.asarray(same & ~np.eye(len(owner), dtype=bool))

    def _even(self, schema: Schema, name: str) -> Floats:
        n = len(schema.categories(name))
        return np.full(n - 1, 1.0 / n)


@dataclass(frozen=True)
class Moments:
    """Sums of x x' over the learners, or over those of each group.

    z is x with sqrt(d) in the place of its 1, d the number of columns: then first moments have as much noise as if
    they had been asked for alone (2 sqrt(d)), and counts and second moments come with them.
    """

    features: Features
    by: str | None = None

    def shape(self, schema: Schema) -> tuple[int, ...]:
        """Groups, features, features."""
        n_groups = 1 if self.by is None else len(schema.categories(self.by))
        n_features = 1 + len(self.features.names(schema))
        return n_groups, n_features, n_features

    def n_cells(self, schema: Schema) -> int:
        """Noisy integers that it takes."""
        return math.prod(self.shape(schema))

    @property
    def norm(self) -> float:
        """The most that the squares of z add up to."""
        return 2.0 * self.features.norm

    def sums(self, records: Records) -> LatticeSum:
        """The sums of z z'."""
        z = lattice(
            self.features.matrix(records, math.sqrt(self.features.norm)), math.sqrt(self.norm), ROOT_STEPS
        )
        if self.by is None:
            total = (z.T @ z)[None]
        else:
            codes = records.codes[self.by]
            groups = range(len(records.schema.categories(self.by)))
            total = np.stack([z[codes == group].T @ z[codes == group] for group in groups])
        return LatticeSum(total, math.sqrt(2.0) * ROOT_STEPS**2, self.norm / ROOT_STEPS**2)

    def released(self, values: Floats, schema: Schema, n_learners: int, rho: float) -> Noisy:
        """The noisy sums of x x', both halves of a matrix averaged; what is public is put in."""
        sd = np.full(values.shape, math.sqrt(2.0) * self.norm / math.sqrt(2.0 * rho))
        values, sd = (values + values.transpose(0, 2, 1)) / 2.0, sd / math.sqrt(2.0)
        diagonal = np.arange(values.shape[1])
        sd[:, diagonal, diagonal] *= math.sqrt(2.0)
        # From z to x.
        scale = np.ones(values.shape[1])
        scale[0] = 1.0 / math.sqrt(self.features.norm)
        values, sd = values * np.outer(scale, scale), sd * np.outer(scale, scale)
        impossible = self.features.impossible(schema)
        values[:, impossible] = 0.0
        sd[:, impossible] = 0.0
        if self.by is None and self.features.counted(schema):
            values[0, 0, 0], sd[0, 0, 0] = n_learners, 0.0
        return Noisy(values, sd)

    def assumed(self, schema: Schema, n_learners: int, spread: float) -> Floats:
        """Sums of x x' of groups of equal size."""
        n_groups = self.shape(schema)[0]
        second = self.features.assumed(schema, spread)
        return np.broadcast_to(second * (n_learners / n_groups), self.shape(schema)).copy()


@dataclass(frozen=True)
class Slopes:
    """Gradient and curvature of the likelihood of a logistic regression, at coefficients that are given."""

    outcome: str
    value: str
    features: Features

    def n_cells(self, schema: Schema) -> int:
        """Noisy integers that one round takes."""
        n_features = 1 + len(self.features.names(schema))
        return n_features * (1 + n_features)

    @property
    def norm(self) -> float:
        """The most that the squares of x add up to."""
        return 1.0 + self.features.norm

    def largest_residual(self, coefficients: Floats) -> float:
        """The most that an outcome can be off: |y - p| <= expit(|b_0| + |b_1| + ...), as features are within 1."""
        return float(expit(np.abs(coefficients).sum()))

    def gradient_diameter(self, coefficients: Floats) -> float:
        """How far the gradients of two learners, r x with r = y - p, can be apart at these coefficients.

        Let R^2 = 1 + d bound |x|^2, d columns of which k are numbers, and e bound |r|.
        (1) Residuals of one sign: x_1.x_2 >= 1 - k, so the squared distance is at most
        2 e^2 R^2 + 2 e^2 (k - 1) = 2 e^2 (d + k), or 2 e^2 R^2 if k = 0.
        (2) Residuals a > 0 and -c < 0: with D = x_2 - x_1 it is |a x_1 + c x_2|^2 <= (a + c)^2 R^2 - a c |D|^2, where
        a = expit(-s_1) and c = expit(s_2) for the linear predictors s_i. If s_2 <= s_1 then a + c <= 1: R^2.
        Otherwise let s_2 - s_1 = 2 h; then |D| >= 2 h / |b|, b the coefficients but for the first. With
        w = a c the sum a + c is 1 + (1 - e^(-2h)) w, so for given h the bound is a convex function of w, and largest
        where w is 0, which gives R^2, or where it is largest, at s_1 = -s_2 = -h: 4 expit(h)^2 (R^2 - h^2 / |b|^2).
        The maximum over h is bounded piece by piece: the first factor grows with h, the second one falls.
        (3) A learner who lacks a value has 0, which is e R from the others.
        """
        e, n_numbers = self.largest_residual(coefficients), len(self.features.numbers)
        one_sign = 2.0 * e**2 * (self.norm + max(n_numbers - 1, 0))
        length = float(np.linalg.norm(coefficients[1:]))
        opposite = 0.0
        if length > 0:
            h = np.linspace(0.0, length * math.sqrt(self.norm), _PIECES + 1)
            pieces = 4.0 * expit(h[1:]) ** 2 * (self.norm - (h[:-1] / length) ** 2)
            opposite = float(pieces.max())
        return math.sqrt(max(self.norm, one_sign, opposite)) / _ROUND_DOWN

    def gradient(self, records: Records, coefficients: Floats) -> LatticeSum:
        """The sum of (y - p) x."""
        x, y = self._learners(records)
        bound = self.largest_residual(coefficients) * math.sqrt(self.norm)
        vectors = lattice((y - chances(x, coefficients))[:, None] * x, bound, STEPS)
        sensitivity = self.gradient_diameter(coefficients) * STEPS / bound + math.sqrt(len(coefficients))
        return LatticeSum(vectors.sum(axis=0), sensitivity, bound / STEPS)

    def curvature(self, records: Records, coefficients: Floats) -> LatticeSum:
        """The sum of p (1 - p) x x'; p (1 - p) is at most 1/4."""
        x, _ = self._learners(records)
        p = chances(x, coefficients)
        norm = self.norm / 4.0
        z = lattice(np.sqrt(p * (1.0 - p))[:, None] * x, math.sqrt(norm), ROOT_STEPS)
        return LatticeSum(z.T @ z, math.sqrt(2.0) * ROOT_STEPS**2, norm / ROOT_STEPS**2)

    def _learners(self, records: Records) -> tuple[Floats, Floats]:
        """x and y; a learner who lacks a value has zeros, and adds nothing."""
        x, codes = self.features.matrix(records, 1.0), records.codes[self.outcome]
        x = np.where((codes >= 0)[:, None], x, 0.0)
        success = records.schema.categories(self.outcome).index(self.value)
        return x, (codes == success).astype(np.float64)


Measurement = Cells | Moments | Slopes


def chances(x: Floats, coefficients: Floats) -> Floats:
    """The chance p of each learner, to the last bit by that learner's row alone.

    A product of matrices is not: it computes the last rows otherwise than the first, and a last bit, after rounding to
    the lattice, would move all learners who have it when the order of learners changes.
    """
    return np.asarray(expit((x * coefficients).sum(axis=1)))


def lattice(vectors: Floats, bound: float, steps: int) -> NDArray[np.int64]:
    """Rows cut to the norm `bound` by scaling them down, in steps of bound / `steps`, rounded towards zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    cut = vectors * np.minimum(1.0, bound / np.maximum(length, 1e-300))
    rows: NDArray[np.int64] = np.trunc(cut * (steps * _ROUND_DOWN / bound)).astype(np.int64)
    return rows
