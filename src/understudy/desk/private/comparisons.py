"""Tests: t, Welch, ANOVA and chi-square from noisy sums, with p values that know of the noise.

The null hypothesis is simulated: learners drawn with equal means, or with independent columns, the same noise added to
their sums, and the same statistic computed from them. A p value is the share of simulations with a statistic at least
as large. The simulations have a fixed seed, so that a p value follows from the released sums alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from understudy.desk.private.answers import Answer, Estimate, Test
from understudy.desk.private.from_cells import share_estimates
from understudy.desk.private.from_moments import Group, left_out_note
from understudy.desk.private.intervals import clipped, difference_interval
from understudy.desk.private.measurements import Noisy
from understudy.desk.private.questions import Compare, Independence
from understudy.desk.private.schema import Floats, Schema

N_SIMULATIONS = 9_999
# Cells that are simulated at once: tables of thousands of cells would not fit into memory together.
_MOST_AT_ONCE = 2_000_000
_SEED = 21
_NAMES = {
    "t": "Student's t",
    "welch": "Welch's t",
    "anova": "one-way ANOVA, F",
    "welch-anova": "ANOVA of unequal variances",
}


@dataclass(frozen=True, eq=False)
class _Groups:
    """Noisy numbers of learners, sums and sums of squares of groups (the last axis), and the noise of each kind."""

    n: Floats
    total: Floats
    squares: Floats
    n_sd: Floats
    total_sd: Floats
    squares_sd: Floats
    pooled: bool

    @classmethod
    def of(cls, groups: list[Group], *, pooled: bool) -> _Groups:
        """The groups of an answer; `pooled` says that they have one variance."""

        def column(name: str) -> Floats:
            return np.array([getattr(group, name) for group in groups], dtype=np.float64)

        return cls(
            column("n"),
            column("total"),
            column("squares"),
            column("n_sd"),
            column("total_sd"),
            column("squares_sd"),
            pooled,
        )

    def means(self) -> Floats:
        """Means within what is possible; the middle for groups that are lost in the noise."""
        return np.asarray(np.where(self.known, np.clip(self.total / self._n, -1.0, 1.0), 0.0))

    @property
    def known(self) -> Floats:
        """Groups that stand out of the noise of their size."""
        return np.asarray(self.n > np.maximum(2.0, 2.0 * self.n_sd))

    @property
    def _n(self) -> Floats:
        return np.maximum(self.n, 2.0)

    def noise_variances(self) -> Floats:
        """Variance of the noise in each mean."""
        return np.asarray((self.total_sd**2 + (self.means() * self.n_sd) ** 2) / self._n**2)

    def variances(self) -> Floats:
        """Variances within groups, equal for all groups where they are pooled."""
        mean = self.means()
        raw = (self.squares / self._n - mean**2 + self.noise_variances()) * self._n / (self._n - 1.0)
        found = np.clip(raw, 1e-9, np.maximum(1.0 - mean**2, 1e-9))
        if not self.pooled:
            return np.asarray(found)
        weight = np.where(self.known, self._n - 1.0, 1e-9)
        pooled = (found * weight).sum(axis=-1, keepdims=True) / weight.sum(axis=-1, keepdims=True)
        return np.broadcast_to(pooled, found.shape)

    def statistics(self) -> Floats:
        """(m_1 - m_2) / se of two groups, or the weighted sum of squares between groups over its degrees of freedom."""
        error = self.variances() / self._n + self.noise_variances()
        weight = np.where(self.known, 1.0 / error, 0.0)
        mean, total = self.means(), np.maximum(weight.sum(axis=-1, keepdims=True), 1e-300)
        grand = (weight * mean).sum(axis=-1, keepdims=True) / total
        between = (weight * (mean - grand) ** 2).sum(axis=-1) / (mean.shape[-1] - 1)
        return np.asarray(between)

    def under_null(self, rng: np.random.Generator, n_simulations: int) -> _Groups:
        """Simulations of groups of these sizes that all have one mean.

        Variances are known up to their own noise, so each simulation has others, as likely as these by that noise.
        """
        shape = (n_simulations, self.n.shape[-1])
        n = np.maximum(np.rint(self.n), 2.0)
        mean = float((n * self.means()).sum() / n.sum())
        drawn = replace(self, squares=self.squares + self.squares_sd * rng.normal(size=shape))
        variance = drawn.variances()
        total = n * mean + np.sqrt(n * variance) * rng.normal(size=shape)
        squares = total**2 / n + variance * rng.chisquare(np.broadcast_to(n - 1.0, shape))

        def noisy(values: Floats, sd: Floats) -> Floats:
            return np.asarray(values + sd * rng.normal(size=shape))

        return replace(
            self,
            n=noisy(n, self.n_sd),
            total=noisy(total, self.total_sd),
            squares=noisy(squares, self.squares_sd),
        )


def compare_answer(question: Compare, noisy: Noisy, schema: Schema, *, tested: bool) -> Answer:
    """Means of the groups, the difference of two, and the test; without `tested` the test is left out."""
    places = [schema.categories(question.by).index(name) for name in question.compared(schema)]
    groups = [Group.of(noisy, place) for place in places]
    low, high = schema.number(question.column)
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    ends = [group.mean_interval() for group in groups]
    values = [clipped(group.mean, end) for group, end in zip(groups, ends, strict=True)]
    found = [
        Estimate(
            f"{question.column}, {question.by} = {name}",
            middle + half * value,
            middle + half * end[0],
            middle + half * end[1],
            half * group.mean_noise,
            (low, high),
        )
        for name, group, value, end in zip(question.compared(schema), groups, values, ends, strict=True)
    ]
    if len(groups) == 2:
        one, other = ((value, *end) for value, end in zip(values, ends, strict=True))
        gap = difference_interval(one, other)
        name = " minus ".join(question.compared(schema))
        noise = math.hypot(*(group.mean_noise for group in groups))
        found.insert(
            0,
            Estimate(
                f"{question.column}, {name}",
                half * (one[0] - other[0]),
                half * clipped(gap[0], (-2.0, 2.0)),
                half * clipped(gap[1], (-2.0, 2.0)),
                half * noise,
                (-half, half),
            ),
        )
    test = _equal_means(question, groups) if tested else None
    return Answer(question, tuple(found), test, left_out_note((question.column,), question.by, schema))


def _equal_means(question: Compare, groups: list[Group]) -> Test:
    sums = _Groups.of(groups, pooled=question.test in ("t", "anova"))
    statistic = float(sums.statistics())
    rng = np.random.default_rng(_SEED)
    simulated = _simulated(lambda n: sums.under_null(rng, n).statistics(), len(groups))
    p_value = _share_as_large(simulated, statistic)
    if question.test in ("t", "welch"):
        means = sums.means()
        statistic = math.copysign(math.sqrt(statistic), means[0] - means[1])
    return Test(_NAMES[question.test], statistic, p_value)


def independence_answer(
    question: Independence, noisy: Noisy, schema: Schema, n: int, *, tested: bool
) -> Answer:
    """Shares of each group, and the chi-square test over the declared categories."""
    found = share_estimates(question.column, question.by, noisy, schema, n)
    n_rows, n_columns = (len(schema.categories(name)) for name in (question.by, question.column))
    counts, sd = noisy.values[:n_rows, :n_columns], float(noisy.sd.flat[0])
    test = _independent(counts, sd) if tested else None
    note = f"Learners without a declared category of '{question.column}' or '{question.by}' are left out of the test."
    return Answer(question, found, test, (note,))


def _independent(counts: Floats, sd: float) -> Test:
    """Pearson's chi-square, the noise of a cell added to what is expected in it (after Gaboardi et al. 2016)."""
    rng = np.random.default_rng(_SEED)
    statistic = float(_chi_square(counts, sd))
    n = max(round(float(counts.sum())), 1)
    expected = _expected(counts)
    chances = (expected / expected.sum()).ravel()

    def under_null(n_simulations: int) -> Floats:
        drawn = rng.multinomial(n, chances, size=n_simulations).reshape(-1, *counts.shape)
        return _chi_square(drawn + sd * rng.normal(size=drawn.shape), sd)

    return Test("chi-square", statistic, _share_as_large(_simulated(under_null, counts.size), statistic))


def _simulated(statistics: Callable[[int], Floats], n_cells: int) -> Floats:
    """The statistics of all simulations; `statistics(n)` gives those of n."""
    size = max(_MOST_AT_ONCE // n_cells, 1)
    starts = range(0, N_SIMULATIONS, size)
    return np.concatenate([statistics(min(size, N_SIMULATIONS - start)) for start in starts])


def _expected(counts: Floats) -> Floats:
    """What independence lets expect, from noisy margins; no margin is below a thousandth of all."""
    total = np.maximum(counts.sum(axis=(-2, -1), keepdims=True), 1.0)
    rows = np.maximum(counts.sum(axis=-1, keepdims=True), 1e-3 * total)
    columns = np.maximum(counts.sum(axis=-2, keepdims=True), 1e-3 * total)
    return np.asarray(rows * columns / total)


def _chi_square(counts: Floats, sd: float) -> Floats:
    expected = _expected(counts)
    return np.asarray(((counts - expected) ** 2 / (expected + sd**2)).sum(axis=(-2, -1)))


def _share_as_large(simulated: Floats, statistic: float) -> float:
    # The statistic itself is one that the null hypothesis could have given: no p value is 0.
    as_large = int((simulated >= statistic * (1.0 - 1e-12)).sum())
    return (1.0 + as_large) / (1.0 + len(simulated))
