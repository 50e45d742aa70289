"""How declared columns are drawn: cells as codes of public bins, shares of codes by what predicts them, and the draw.

Post-processing, which costs no privacy: everything here sees noisy counts with the standard deviation of their noise,
or synthetic walks, and never a learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct

from understudy.core.privacy.spending import SpentError
from understudy.errors import DataError
from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.interactions import IntArray, Interactions, totals
from understudy.logs.models.denoising import to_simplex

Floats = NDArray[np.float64]

# A number that can take so many values has one bin for each of them; others have about as many bins.
MOST_VALUES = 64
# Where bins of a number end, as shares of what lies between its bounds: evenly, and ever closer towards the bounds,
# where many numbers crowd (durations, scores) or are cut.
_FRACTIONS = np.unique(
    np.concatenate([np.arange(33) / 32, 0.5 ** np.arange(6, 13), 1.0 - 0.5 ** np.arange(6, 11)])
)
# Categories whose noisy count lies below so many standard deviations of its noise are taken to be absent.
ABSENT = 2.0
# How far the share of one half of some bins departs from the half of their width, before anything is seen.
SPLIT_SPREAD = 0.3
# How strong relations are before anything is seen, as a share of the strongest there can be: of a column to what
# predicts it, and of what two predictors tell together beyond what each tells alone.
USUAL_RELATION, USUAL_INTERACTION = 0.3, 0.1
# Rounds until shares agree with those of both predictors.
N_RAKINGS = 100
# Classes of walks: rows by half powers of two, and success rates of equal width.
N_ROW_CLASSES, N_RATE_CLASSES = 32, 24


@dataclass(frozen=True)
class Coding:
    """Codes of the cells of a declared column, by what is public about it alone; the last code is a missing cell."""

    declared: Declared

    @cached_property
    def step(self) -> float:
        """Numbers are multiples of it: the declared one, a second, or a number with four digits or five."""
        if self.declared.step is not None:
            return self.declared.step
        if self.declared.kind is Kind.time:
            return 1.0
        return float(10.0 ** (np.floor(np.log10(self._high - self._low)) - 4))

    @property
    def _low(self) -> float:
        assert self.declared.low is not None
        return self.declared.low

    @property
    def _high(self) -> float:
        assert self.declared.high is not None
        return self.declared.high

    @cached_property
    def _places(self) -> tuple[int, int]:
        """The smallest multiple of the step and how many there are."""
        first, last = np.ceil(self._low / self.step - 1e-9), np.floor(self._high / self.step + 1e-9)
        if not max(abs(first), abs(last)) < 2**53:
            # Bounds that were found come from noisy counts: then the charge stays.
            kind = SpentError if self.declared.found else DataError
            raise kind(
                f"column '{self.declared.name}' is declared with a step that is too small for its bounds.",
                hint="declare a larger step, or none.",
                code="bad-declaration",
            )
        return int(first), max(int(last - first) + 1, 1)

    @cached_property
    def cuts(self) -> IntArray:
        """Where bins begin and the last one ends, counted in multiples of the step from the smallest."""
        _, n = self._places
        if n <= MOST_VALUES:
            return np.arange(n + 1)
        return np.unique(np.round(_FRACTIONS * n).astype(np.int64))

    @property
    def ordered(self) -> bool:
        """Whether codes that are near each other are alike."""
        return not self.declared.coded

    @property
    def n_codes(self) -> int:
        """Codes, that of a missing cell included."""
        return (len(self.declared.names) if self.declared.coded else len(self.cuts) - 1) + 1

    @property
    def widths(self) -> Floats:
        """How much lies in each bin, the last code left out."""
        return np.ones(self.n_codes - 1) if self.declared.coded else np.diff(self.cuts).astype(np.float64)

    def codes(self, column: Column) -> IntArray:
        """The code of each cell."""
        cells = column.cells
        if self.declared.coded:
            known: IntArray = np.where((cells < 0) | (cells >= self.n_codes - 1), self.n_codes - 1, cells)
            return known.astype(np.int64)
        first, n = self._places
        missing = np.isnan(cells)
        place = (
            np.round(np.clip(np.where(missing, self._low, cells), self._low, self._high) / self.step) - first
        )
        code = np.searchsorted(self.cuts, np.clip(place, 0, n - 1).astype(np.int64), side="right") - 1
        coded: IntArray = np.where(missing, self.n_codes - 1, code)
        return coded

    def cells(self, codes: IntArray, rng: np.random.Generator) -> Column:
        """A cell for each code: within a bin, every multiple of the step is equally likely."""
        missing = codes == self.n_codes - 1
        if self.declared.coded:
            return Column(self.declared, np.where(missing, -1, codes))
        first, _ = self._places
        known = np.where(missing, 0, codes)
        place = rng.integers(self.cuts[known], self.cuts[known + 1])
        digits = max(0, 3 - int(np.floor(np.log10(self.step))))
        number = np.clip(np.round((first + place) * self.step, digits), self._low, self._high)
        return Column(self.declared, np.where(missing, np.nan, number))


def row_classes(log: Interactions) -> IntArray:
    """Learners by how many rows they have, in half powers of two."""
    half_powers = np.floor(2.0 * np.log2(np.maximum(log.lengths, 1))).astype(np.int64)
    return np.minimum(half_powers, N_ROW_CLASSES - 1)


def success_classes(log: Interactions) -> IntArray:
    """Learners by how often they succeed, drawn to one half by a success and a failure: few rows say little."""
    rate = (totals(log.learner, log.success, log.n_learners) + 1.0) / (log.lengths + 2.0)
    return np.minimum((N_RATE_CLASSES * rate).astype(np.int64), N_RATE_CLASSES - 1)


def contexts(log: Interactions) -> IntArray:
    """What a row's columns depend on: its action and outcome as one number."""
    return log.code.astype(np.int64)


def margin(noisy: Floats, sigma: float, coding: Coding) -> Floats:
    """Shares of codes out of noisy counts: categories that noise hides are absent, bins follow their neighbours."""
    counts = noisy.copy()
    hidden = noisy < ABSENT * sigma
    if coding.ordered or coding.declared.kind is Kind.flag:
        # A missing cell is a category beside the bins of a number, and beside no and yes, of which neither is absent
        # because noise hides it.
        hidden[:-1] = False
    if coding.ordered:
        counts[:-1] = smoothed(noisy[:-1], sigma, coding.widths)
    counts[hidden] = 0.0
    if counts.max(initial=0.0) <= 0.0:
        counts = np.append(coding.widths, 0.0)
    shares = to_simplex(counts, max(float(counts.sum()), 1e-9))
    shares /= shares.sum()
    return shares


def smoothed(noisy: Floats, sigma: float, widths: Floats) -> Floats:
    """Counts of bins that lie beside each other, each half of them drawn to what its width lets expect.

    From above: how many of the counts lie in the lower half of the bins is believed as far as it departs from the share
    of their width by more than noise does; then the same within each half. Their sum stays.
    """
    counts = np.zeros(len(noisy))
    parts = [(0, len(noisy), max(float(noisy.sum()), 0.0))]
    while parts:
        begin, end, total = parts.pop()
        if end - begin == 1:
            counts[begin] = total
            continue
        middle = (begin + end) // 2
        lower, upper = float(noisy[begin:middle].sum()), float(noisy[middle:end].sum())
        width = float(widths[begin:middle].sum() / widths[begin:end].sum())
        departure = (1.0 - width) * lower - width * upper
        noise = sigma**2 * ((1.0 - width) ** 2 * (middle - begin) + width**2 * (end - middle))
        signal = (SPLIT_SPREAD * total) ** 2
        known = signal / (signal + noise) if signal > 0 else 0.0
        left = min(max(width * total + known * departure, 0.0), total)
        parts += [(begin, middle, left), (middle, end, total - left)]
    return counts


def backed_off(noisy: Floats, sigma: float | Floats, guess: Floats) -> Floats:
    """Shares of codes in each context (a row), out of noisy counts, drawn to a guess as far as they are noise.

    Shares p of a context with n rows depart from the guess g with the variance t^2 g (1 - g), the same t for all: what
    the counts depart by has that variance times n^2, and the noise's. Its sum over all counts gives t; a departure is
    then believed by n^2 t^2 g (1 - g) / (n^2 t^2 g (1 - g) + sigma^2). `sigma` is one number, or one per code.
    """
    guess = np.broadcast_to(guess, noisy.shape)
    n = np.maximum(noisy.sum(axis=1, keepdims=True), 0.0)
    departure = noisy - n * guess
    usual = n**2 * guess * (1.0 - guess)
    spread = max(float((departure**2 - sigma**2).sum()), 0.0) / max(float(usual.sum()), 1e-12)
    known = spread * usual / (spread * usual + sigma**2)
    shares = np.maximum(guess + known * departure / np.maximum(n, 1e-12), 0.0)
    # What is absent altogether is absent in every context.
    shares = np.where(guess > 0.0, shares, 0.0)
    sums = shares.sum(axis=1, keepdims=True)
    backed: Floats = np.where(sums > 0.0, shares / np.where(sums > 0.0, sums, 1.0), guess)
    return backed


def shaped(
    noisy: Floats, sigma: float, guess: Floats, axes: Sequence[Axis], usual: float = USUAL_RELATION
) -> Floats:
    """Shares of codes (the last axis) in each combination of classes, out of noisy counts: a guess and what stands out.

    What counts depart from the guess by is written in waves along ordered axes, from the longest on: a trend over all
    classes is then one number, with the noise of one count, where in the counts it would hide in all of them. A
    relation as strong as can be has the number n / sqrt(m) for n learners and m cells. Before anything is seen, a
    number is about `usual` times that, and less the faster and the more differently its waves turn: so it is where
    one side follows the other. It is believed as far as the noise lets that be seen.
    """
    guess = np.broadcast_to(guess, noisy.shape)
    n = np.maximum(noisy.sum(axis=-1, keepdims=True), 0.0)
    waves = _turned(noisy - n * guess, [axis.waves() for axis in axes])
    spread = usual * float(n.sum()) / np.sqrt(noisy.size) / _unlikely(axes)
    known = spread**2 / (spread**2 + sigma**2)
    departure = _turned(known * waves, [axis.waves().T for axis in axes])
    # Few learners of a class are no more than the noise of their number.
    n = np.maximum(n, max(2.0 * sigma * np.sqrt(noisy.shape[-1]), 1e-12))
    shares = np.where(guess > 0.0, np.maximum(guess + departure / n, 0.0), 0.0)
    sums = shares.sum(axis=-1, keepdims=True)
    formed: Floats = np.where(sums > 0.0, shares / np.where(sums > 0.0, sums, 1.0), guess)
    return formed


def _unlikely(axes: Sequence[Axis]) -> Floats:
    """By what a wave's usual size is divided: its highest frequency, times one and how far its frequencies differ."""
    turns = np.meshgrid(*(axis.frequencies() for axis in axes if axis.ordered), indexing="ij")
    shape = [axis.n if axis.ordered else 1 for axis in axes]
    if not turns:
        return np.ones(shape)
    highest, lowest = np.max(turns, axis=0), np.min(turns, axis=0)
    divisor: Floats = (highest * (1.0 + highest - lowest)).reshape(shape)
    return divisor


@dataclass(frozen=True)
class Axis:
    """The classes along one side of a table: in an order or not, the last of them perhaps what is missing."""

    n: int
    ordered: bool
    has_missing: bool

    def waves(self) -> Floats:
        """An orthonormal basis: cosines of growing frequency over what is in an order, single classes elsewhere."""
        basis = np.eye(self.n)
        n = self.n - self.has_missing
        if self.ordered and n > 1:
            basis[:n, :n] = dct(np.eye(n), axis=0, norm="ortho").T
        return basis

    def frequencies(self) -> Floats:
        """How often each wave turns; 1 for what does not."""
        turns = np.ones(self.n)
        n = self.n - self.has_missing
        if self.ordered:
            turns[:n] = np.maximum(np.arange(n), 1.0)
        return turns


def _turned(table: Floats, bases: Sequence[Floats]) -> Floats:
    """The table in other bases, one per axis: columns of a basis are its vectors."""
    for axis, basis in enumerate(bases):
        table = np.moveaxis(np.tensordot(table, basis, axes=(axis, 0)), -1, axis)
    return table


def raked(weight: Floats, first: Floats, second: Floats, overall: Floats) -> Floats:
    """Shares of codes by two predictors, each by a factor of its own, such that each predictor has its shares.

    `weight` is how many learners have each combination (iterative proportional fitting).
    """
    table = weight[:, :, None] * overall
    by_first = weight.sum(axis=1)[:, None] * first
    by_second = weight.sum(axis=0)[:, None] * second
    for _ in range(N_RAKINGS):
        table = table * (by_first / np.maximum(table.sum(axis=1), 1e-12))[:, None, :]
        table = table * (by_second / np.maximum(table.sum(axis=0), 1e-12))[None, :, :]
        table = table * (weight / np.maximum(table.sum(axis=2), 1e-12))[:, :, None]
    sums = table.sum(axis=2, keepdims=True)
    return np.where(sums > 1e-12, table / np.maximum(sums, 1e-12), overall)


@dataclass(frozen=True)
class Groups:
    """Codes put together: the group of each code, and how groups lie beside each other."""

    of_code: IntArray
    axis: Axis

    @property
    def n(self) -> int:
        """Number of groups."""
        return self.axis.n

    @classmethod
    def of(cls, shares: Floats, n_groups: int, *, ordered: bool) -> Groups:
        """Of about equal shares where codes are in an order, otherwise the largest alone.

        The last code, of missing cells, is a group by itself where it has a share; elsewhere it goes with the first.
        """
        n_codes = len(shares) - 1
        if n_codes <= n_groups:
            group = np.arange(n_codes)
        elif ordered:
            known = shares[:-1] / max(float(shares[:-1].sum()), 1e-12)
            # Where the middle of a bin lies among all.
            middle = np.cumsum(known) - known / 2
            group = np.minimum((n_groups * middle).astype(np.int64), n_groups - 1)
            group = np.unique(group, return_inverse=True)[1]
        else:
            group = np.full(n_codes, n_groups - 1)
            group[np.argsort(-shares[:-1], kind="stable")[: n_groups - 1]] = np.arange(n_groups - 1)
        has_missing = bool(shares[-1] > 0.0)
        of_code = np.append(group, group.max() + 1 if has_missing else 0)
        return cls(of_code, Axis(int(of_code.max()) + 1, ordered, has_missing))

    @classmethod
    def alone(cls, n_codes: int) -> Groups:
        """Every code by itself."""
        return cls(np.arange(n_codes), Axis(n_codes, ordered=False, has_missing=False))

    @cached_property
    def _belongs(self) -> Floats:
        belongs: Floats = (self.of_code[:, None] == np.arange(self.n)).astype(np.float64)
        return belongs

    @property
    def sizes(self) -> Floats:
        """How many codes each group has."""
        sizes: Floats = self._belongs.sum(axis=0)
        return sizes

    def summed(self, counts: Floats) -> Floats:
        """Counts of codes (the last axis) added up by group."""
        table: Floats = counts @ self._belongs
        return table

    def within(self, shares: Floats) -> Floats:
        """The share of each code within its group: a row per group; evenly where none of its codes has a share."""
        own = self._belongs.T * shares
        own = np.where(own.sum(axis=1, keepdims=True) > 0.0, own, self._belongs.T)
        chances: Floats = own / own.sum(axis=1, keepdims=True)
        return chances


def even_draw(context: IntArray, shares: Floats, rng: np.random.Generator) -> IntArray:
    """A code for each row or learner by the shares of its context, as close to these as so many can be.

    Within a context, numbers that are spread evenly over [0, 1) are dealt in random order.
    """
    n_contexts, n_codes = shares.shape
    order = rng.permutation(len(context))
    order = order[np.argsort(context[order], kind="stable")]
    n = np.bincount(context, minlength=n_contexts)
    rank = np.arange(len(context)) - np.repeat(np.cumsum(n) - n, n)
    point = (rank + rng.random(len(context))) / np.repeat(n, n)
    upper = np.cumsum(shares, axis=1)
    upper[:, -1] = 1.0
    # One long list: context c has the numbers from c to c + 1. The last code of a context that any row can have ends
    # at the next whole number, so rounding cannot lead into the next context.
    ends = (upper.clip(max=1.0) + np.arange(n_contexts)[:, None]).ravel()
    place = np.searchsorted(ends, context[order] + point.clip(max=1.0 - 1e-9), side="right")
    codes = np.empty(len(context), dtype=np.int64)
    codes[order] = np.clip(place - context[order] * n_codes, 0, n_codes - 1)
    return codes


@dataclass(frozen=True)
class RowColumn:
    """A column of rows: groups of its codes by action and outcome, and codes within a group."""

    coding: Coding
    shares: Floats
    """A row per action and outcome (`contexts`), a column per group."""
    within: Floats
    given: tuple[str, ...] = ()
    """What it depends on: the action, the outcome."""

    def draw(self, walks: Interactions, rng: np.random.Generator) -> Column:
        """Cells for synthetic rows."""
        group = even_draw(contexts(walks), self.shares, rng)
        codes = even_draw(group, self.within, rng)
        codes[~self.coding.declared.has_values(walks.actions)[walks.action]] = self.coding.n_codes - 1
        return self.coding.cells(codes, rng)


@dataclass(frozen=True)
class Predictor:
    """What a column of learners is given: classes of walks, or an earlier column."""

    name: str
    groups: Groups


@dataclass(frozen=True)
class LearnerColumn:
    """A column of learners: groups of its codes by what predicts them, and codes within a group."""

    coding: Coding
    given: tuple[Predictor, ...]
    shares: Floats
    """A row per combination of what predicts it (`combined`), a column per group."""
    within: Floats

    def draw(self, known: dict[str, IntArray], rng: np.random.Generator) -> IntArray:
        """Codes for synthetic learners, of whom the codes of all predictors are known."""
        group = even_draw(combined(self.given, known), self.shares, rng)
        return even_draw(group, self.within, rng)


def combined(given: tuple[Predictor, ...], known: dict[str, IntArray]) -> IntArray:
    """The groups of all predictors as one number per learner; 0 where there are none."""
    number = np.zeros(len(next(iter(known.values()))), dtype=np.int64)
    for predictor in given:
        number = number * predictor.groups.n + predictor.groups.of_code[known[predictor.name]]
    return number
