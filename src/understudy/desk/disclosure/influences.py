"""What the probes show about each number: who moves it, how far, and what kind of statistic it behaves like.

Notation: T is a number of the full answer, T_i the same without learner i, T_ij without i and j. The step
T - T_i is the learner's influence. A total is additive (T_ij = T - (T - T_i) - (T - T_j), steps add up to T), a
mean over k learners is (mean of T_i is T, steps shrink by (k - 1) / (k - 2)): their single contributions
can be worked out exactly, and the classical rules of dominance apply to them as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from understudy.desk.disclosure.probing import Probes
from understudy.desk.domain.results import Floats

# From so many pairs on there is a middle.
MIN_PREDICTIONS = 4
# So many of the predictions are within what is called their scatter. With a half, a number that jumps for a third of
# all runs would not scatter at all.
WITHIN = 80
# Between the largest and the smallest value that a number takes without a learner: from here on ratios are compared.
ORDERS = 3.0


@dataclass(frozen=True, eq=False)
class LeaveOutPrediction:
    """Of each number (d,); NaN where too few pairs have it."""

    values: Floats
    """The middle of what pairs predict."""
    scatter: Floats
    """How far most predictions are from their middle."""
    lowest: Floats
    highest: Floats
    spread: Floats
    """Standard deviation of all predictions."""
    deeper: Floats
    """How far the answers without one learner are from the middle of what triples predict for them."""
    bend: Floats
    """How far most of them are from what is predicted: the error of prediction itself."""

    @property
    def error(self) -> Floats:
        """(d,) by how much a prediction may be off, for an honest statistic; 0 where none is known."""
        return np.fmax(np.fmax(self.scatter, self.bend), 0.0)


def predict_from_leave_outs(probes: Probes) -> LeaveOutPrediction:
    """All predictions of the probes."""
    d = len(probes.names)
    if not d or not len(probes.triples):
        # Texts alone, or too few learners.
        return LeaveOutPrediction(*(np.full(d, np.nan) for _ in range(7)))
    ratios = _by_ratio(probes)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two, three = (
            np.where(ratios, np.log(values), values)
            for values in (probes.without_one, probes.without_two, probes.without_three)
        )
    every = one[probes.pairs].sum(axis=1) - two
    q = len(probes.triples)
    first, second, third = two[:q], two[q : 2 * q], two[2 * q :]
    below = np.stack([first + second, first + third, second + third], axis=1) - three[:, None, :]
    missed = (one[probes.triples] - below).reshape(3 * q, d)
    enough = (~np.isnan(every)).sum(axis=0) >= MIN_PREDICTIONS
    deep_enough = (~np.isnan(missed)).sum(axis=0) >= MIN_PREDICTIONS
    middle, scatter, lowest, highest, spread, deeper, bend = (np.full(d, np.nan) for _ in range(7))
    seen, seen_deep = every[:, enough], missed[:, deep_enough]
    middle[enough] = np.nanmedian(seen, axis=0)
    scatter[enough] = np.nanpercentile(np.abs(seen - middle[enough]), WITHIN, axis=0)
    lowest[enough], highest[enough] = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
    spread[enough] = np.nanstd(seen, axis=0)
    deeper[deep_enough] = np.nanmedian(seen_deep, axis=0)
    bend[deep_enough] = np.nanpercentile(np.abs(seen_deep), WITHIN, axis=0)
    with np.errstate(over="ignore"):
        values, lowest, highest = (np.where(ratios, np.exp(one), one) for one in (middle, lowest, highest))
        scatter, spread, deeper, bend = (
            np.where(ratios, values * np.expm1(one), one) for one in (scatter, spread, deeper, bend)
        )
    return LeaveOutPrediction(values, scatter, lowest, highest, spread, deeper, bend)


def _by_ratio(probes: Probes) -> NDArray[np.bool_]:
    """(d,) what is above 0 in every run, by several times as much in one as in another. The full run does not say."""
    if not len(probes.pairs):
        return np.zeros(len(probes.names), dtype=bool)
    runs = np.concatenate([probes.without_one, probes.without_two, probes.without_three])
    least, most = np.fmin.reduce(runs, axis=0), np.fmax.reduce(runs, axis=0)
    return np.asarray((least > 0) & (most > ORDERS * least))


Flags = NDArray[np.bool_]
Kind = Literal["constant", "total", "mean", "other"]

# Two runs on the same rows may differ by the order of sums. Nothing smaller than this leaves the desk either.
NOISE = 1e-9
TINY = 1e-12
# A p value may be as small as this and still say something.
NOTHING = 1e-200
# A learner whose influence is less than this share of the largest is a decoy, not one behind the number.
LEAST_SHARE = 1e-3
EXACT = 1e-6
# A quantile is what it is without a learner below, without a learner above, or without one of its two neighbours.
MOST_STEPS = 4


def beyond_noise(values: Floats, others: Floats) -> Flags:
    """Whether numbers differ by more than two runs on the same rows do; where either is missing they do not."""
    size = np.fmax(np.abs(values), np.abs(others))
    steps = np.nan_to_num(values - others, nan=0.0, posinf=0.0, neginf=0.0)
    return np.asarray(np.abs(steps) > NOTHING + NOISE * np.nan_to_num(size))


class Influences:
    """Which learners (rows, or blocks of them) move which number (columns), and how far.

    `shown` is what checks call the numbers, where a name itself may carry a learner's value.
    """

    def __init__(self, probes: Probes, shown: tuple[str, ...] | None = None) -> None:
        self.probes = probes
        self.names = probes.names
        self.shown = shown or probes.names
        self.n_learners = probes.n_learners
        self._distinct: dict[int, NDArray[np.int64]] = {}

    @cached_property
    def steps(self) -> Floats:
        """(m, d) T - T_i; 0 where either is missing."""
        return np.nan_to_num(self.probes.full - self.probes.without_one, nan=0.0, posinf=0.0, neginf=0.0)

    @cached_property
    def by_ratio(self) -> Flags:
        """(d,) numbers that go through orders of magnitude, such as p values."""
        full, one = self.probes.full, self.probes.without_one
        with np.errstate(all="ignore"):
            least, most = (
                np.fmin.reduce(one, axis=0, initial=np.inf),
                np.fmax.reduce(one, axis=0, initial=-np.inf),
            )
            return np.asarray(
                (full > 0) & (least > 0) & (np.fmax(most, full) > ORDERS * np.fmin(least, full))
            )

    @cached_property
    def sized(self) -> Floats:
        """(m, d) steps, as ratios (logarithms) for numbers that go through orders of magnitude."""
        with np.errstate(all="ignore"):
            logs = np.log(self.probes.full) - np.log(self.probes.without_one)
        logs = np.nan_to_num(logs, nan=0.0, posinf=0.0, neginf=0.0)
        return np.asarray(np.where(self.by_ratio, logs, self.steps))

    @cached_property
    def gone(self) -> Flags:
        """(m, d) a number that is missing without this learner, or only then not; failed runs do not count."""
        flips = np.isnan(self.probes.full)[None, :] != np.isnan(self.probes.without_one)
        return np.asarray(flips & ~self.probes.failed[:, None])

    @cached_property
    def moved(self) -> Flags:
        """(m, d) whether the number is another one without this learner, beyond the noise of floats."""
        return np.asarray(beyond_noise(self.probes.full[None, :], self.probes.without_one) | self.gone)

    @cached_property
    def support(self) -> NDArray[np.int64]:
        """(d,) how many learners (at least: blocks) move each number, decoys not counted."""
        size = np.abs(self.sized)
        counted = self.gone | (self.moved & (size >= LEAST_SHARE * size.max(axis=0, initial=0.0)))
        n_moved, n_counted = self.moved.sum(axis=0), counted.sum(axis=0)
        # On an honest number a learner may happen to have next to no influence. Decoys are most of those who move it.
        return np.asarray(np.where(2 * n_counted >= n_moved, n_moved, n_counted))

    @cached_property
    def standard_error(self) -> Floats:
        """(d,) jackknife standard error: square root of (m - 1) / m times the sum of squares around the mean."""
        values = self.probes.without_one
        there = ~np.isnan(values)
        n = np.maximum(there.sum(axis=0), 1)
        mean = np.where(there, values, 0.0).sum(axis=0) / n
        squares = (np.where(there, values - mean, 0.0) ** 2).sum(axis=0)
        return np.asarray(np.sqrt(squares * (n - 1) / n))

    @cached_property
    def predicted(self) -> LeaveOutPrediction:
        """What answers without two and three learners predict."""
        return predict_from_leave_outs(self.probes)

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """(d,) what kind of statistic each number behaves like."""
        return tuple(self._kind(j) for j in range(len(self.names)))

    def contributions(self, j: int) -> Floats | None:
        """What each learner behind a total or a mean gave to it (a mean counts as the total of k values)."""
        movers = self.moved[:, j]
        if self.kinds[j] == "total":
            return np.asarray(self.steps[movers, j])
        if self.kinds[j] == "mean":
            return np.asarray(self.probes.full[j] + (movers.sum() - 1) * self.steps[movers, j])
        return None

    def distinct(self, j: int) -> NDArray[np.int64]:
        """How many learners share each of the values that the number takes when one of its learners is left out."""
        if j not in self._distinct:
            self._distinct[j] = self._counted(j)
        return self._distinct[j]

    def counts_learners(self, j: int) -> bool:
        """Whether a number is a total into which each learner who moves it counts as one."""
        parts = self.contributions(j) if self.kinds[j] == "total" else None
        return parts is not None and bool((np.abs(parts - parts[0]) < EXACT * np.abs(parts[0])).all())

    def in_steps(self, j: int) -> bool:
        """Whether a number that is neither a total nor a mean takes a few values only, as a quantile does."""
        return self.kinds[j] == "other" and 0 < len(self.distinct(j)) <= MOST_STEPS

    def _counted(self, j: int) -> NDArray[np.int64]:
        values = np.sort(self.probes.without_one[self.moved[:, j], j])
        values = values[~np.isnan(values)]
        if not len(values):
            return np.empty(0, dtype=np.int64)
        size = np.abs(self.steps[:, j]).max()
        new = np.diff(values) > NOTHING + NOISE * np.abs(values[1:]) + EXACT * size
        return np.diff(np.concatenate([[0], np.flatnonzero(new) + 1, [len(values)]]))

    def _kind(self, j: int) -> Kind:
        movers = np.flatnonzero(self.moved[:, j])
        if not len(movers):
            return "constant"
        if self.gone[:, j].any() or np.isnan(self.probes.full[j]) or self.probes.failed.any():
            return "other"
        full, steps = self.probes.full[j], self.steps[:, j]
        size = np.abs(steps).max()
        adds_up = abs(steps.sum() - full) <= EXACT * (abs(full) + size)
        # A constant may be added to a total, as in degrees of freedom: then only pairs show that it is one.
        n_both = (self._both(j) & ~np.isnan(self.probes.without_two[:, j])).sum()
        if (adds_up or n_both >= 3) and self._additive(j, 1.0, size):
            return "total"
        k = len(movers)
        if k > 2 and abs(steps.sum()) <= EXACT * k * size and self._additive(j, (k - 1) / (k - 2), size):
            return "mean"
        return "other"

    def _additive(self, j: int, growth: float, size: float) -> bool:
        """Whether two left out at once act as the sum of both, times `growth` if both have a part."""
        expected = self.steps[self.probes.pairs, j].sum(axis=1) * np.where(self._both(j), growth, 1.0)
        found = self.probes.full[j] - self.probes.without_two[:, j]
        there = ~np.isnan(found)
        noise = EXACT * size + NOISE * abs(self.probes.full[j])
        return bool((np.abs(found - expected)[there] <= noise).all())

    def _both(self, j: int) -> Flags:
        """Pairs of which both have a part in the number."""
        return np.asarray(self.moved[self.probes.pairs, j].all(axis=1))
