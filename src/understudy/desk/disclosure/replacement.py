"""Plans runs in which a learner is replaced by another from the range of the data, to see what one learner decides.

A statement about one learner that happens to be "no" is a constant: nothing moves it, whoever is left out. Only data
in which it would be "yes" show what it is. Which data that is, nobody knows, so the plan tries what could matter:

- each learner in turn as another one: drawn from the real or the synthetic learners, on the other side of the middle
  in every column, with the lowest value in every column, and with the highest;
- all learners in another order, with other numbers: a statement about "learner 17" is then one about somebody else;
- learners who have a value that the code itself writes out, in each column that it fits: a statement about a value
  needs the value;
- several learners at once with a value that the code compares a column with, and none where a few have it or are on
  one side of it: "at least two have it", "somebody is above it";
- a learner with a missing value, one with more or fewer rows, and learners with any other number that the code writes,
  out of the range: an honest analysis may be surprised by these, so less is concluded from them (`Kind`).

The range of a column is that of the real and the synthetic learners together. A column with few values takes no others,
unless the code compares it with one: a new group would change any table of groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from understudy.desk.disclosure.written_values import Value, WrittenValues, written_values
from understudy.desk.domain.learners import LearnerTable
from understudy.desk.domain.policy import Policy

if TYPE_CHECKING:
    import polars as pl

# Up to so many learners are replaced one by one; beyond it in so many groups.
MOST_GROUPS = 120
# Runs with all learners in another order.
N_ORDERS = 20
# Values that the code compares a column with: one by one (two runs each), and in several columns together.
MOST_COMPARED = 40
N_TOGETHER = 20
# Runs with other values that it writes, several at once, and with values that it compares with as sums of columns.
MOST_PACKED = 40
MOST_SUMMED = 40
# Runs with other numbers of rows, of which none is above so many times the largest that is there.
MOST_SIZES = 40
LARGEST_SIZE = 10
# Runs with values that it writes for something else than this column, out of its range.
MOST_FAR = 40
# A column with at most so many values takes no others; fractions are measured, and fewer are by chance.
MOST_LEVELS = 20
MOST_LEVELS_OF_FRACTIONS = 6
# How far beyond the range the ends lie, as a share of it: so that the end is there once, and not shared.
BEYOND = 0.01
# From a value to just above or below it, as a share of the range.
JUST = 1e-3


# What new learners are like. "usual": from the range of the data, or with a value that the code compares a column with.
# The others have what an honest analysis need not be ready for: a missing value ("missing": in code that asks for
# missing values; "gap": in other code), another number of rows, a value from far out that the code does not compare.
Kind = Literal["usual", "missing", "gap", "rows", "far"]


@dataclass(frozen=True, eq=False, repr=False)
class Replacement:
    """Rows that take the place of learners' own."""

    rows: dict[int, pl.DataFrame]
    natural: bool
    """Whether the new learners are like those who are there: of an honest statistic they move no more than those do."""
    kind: Kind = "usual"


@dataclass(frozen=True, eq=False, repr=False)
class ReplacementPlan:
    """All runs with replaced learners, and those with all learners in another order."""

    replacements: tuple[Replacement, ...]
    orders: tuple[NDArray[np.int64], ...]
    complete: bool
    """Whether all values that the code writes are tried."""

    @property
    def n_runs(self) -> int:
        """How many runs it takes."""
        return len(self.replacements) + len(self.orders)


def plan_replacements(
    code: str, table: LearnerTable, synthetic: LearnerTable, policy: Policy, rng: np.random.Generator
) -> ReplacementPlan:
    """The replacements for this code on this table; the same `rng` gives the same ones."""
    if table.n_learners < 2:
        return ReplacementPlan((), (), complete=False)
    written = written_values(code, table.rows.columns)
    ranges = [_range_of(table.rows, synthetic.rows, name) for name in table.rows.columns]
    groups = np.array_split(rng.permutation(table.n_learners), min(table.n_learners, MOST_GROUPS))
    donors = _Donors(table, synthetic, rng)
    plan = [
        Replacement({int(learner): rows(int(learner)) for learner in group}, natural)
        for rows, natural, part in (
            (donors.real, True, groups[::2]),
            (donors.synthetic, False, groups[1::2]),
            (donors.opposite, False, groups),
            (lambda learner: _at_the_end(table.rows_of(learner), ranges, 0), False, groups),
            (lambda learner: _at_the_end(table.rows_of(learner), ranges, -1), False, groups),
        )
        for group in part
    ]
    compared = [(one, value) for one in ranges for value in one.compared(written)]
    plan += _compared_values(table, compared, policy, rng)
    plan += _compared_together(table, compared, policy, rng)
    plan += _emptied_sides(table, compared, policy, rng)
    plan += _packed_values(
        table, [(one, value) for one in ranges for value in one.fitting(written)], policy, rng
    )
    plan += islice(_summed_values(table, ranges, written.in_comparisons, rng), MOST_SUMMED)
    plan += _missing_values(table, "missing" if written.asks_for_missing else "gap", rng)
    plan += _other_sizes(table, written, rng)
    far = list(_far_values(ranges, written))
    plan += _far_learners(table, far, policy, rng)
    n_far = sum(len(replacement.rows) for replacement in plan if replacement.kind == "far")
    orders = tuple(rng.permutation(table.n_learners) for _ in range(N_ORDERS))
    complete = written.complete and len(compared) <= MOST_COMPARED and n_far == len(far)
    return ReplacementPlan(tuple(plan), orders, complete)


@dataclass(frozen=True)
class _Range:
    """The values that a column takes: of few values all, of others the ends."""

    name: str
    dtype: pl.DataType
    levels: tuple[Any, ...] = ()
    low: Any = None
    high: Any = None

    @property
    def numeric(self) -> bool:
        return bool(self.dtype.is_integer() or self.dtype.is_float())

    @property
    def ends(self) -> tuple[Any, Any] | None:
        """The lowest and highest value, for a number just beyond what is there; None where nothing is known."""
        if self.levels:
            return self.levels[0], self.levels[-1]
        if self.low is None:
            return None
        if not self.numeric:
            return self.low, self.high
        step = max(BEYOND * (self.high - self.low), 1.0 if self.dtype.is_integer() else 0.0)
        return self._as_typed(self.low - step if self.low < 0 else max(0, self.low - step)), self._as_typed(
            self.high + step
        )

    def just_around(self, value: Value) -> Iterator[Value]:
        """The value, and values just below and above where there may be others than those that are there."""
        yield value
        if self.numeric and self.low is not None and value not in self.levels and not isinstance(value, str):
            step = 1.0 if self.dtype.is_integer() else JUST * (self.high - self.low)
            # Minutes and counts do not go below 0.
            yield from (near for near in (value - step, value + step) if near >= min(self.low, 0))

    def compared(self, written: WrittenValues) -> Iterator[Any]:
        """Values that the code compares this column with, in or out of its range."""
        values = [value for column, value in written.compared if column == self.name]
        if self.dtype.is_temporal():
            yield from dict.fromkeys(time for value in values for time in self._times(value))
        else:
            values = [value for value in values if self._is_kind(value)]
            yield from dict.fromkeys(
                self._as_typed(near) for value in values for near in self.just_around(value)
            )

    def fitting(self, written: WrittenValues) -> Iterator[Any]:
        """Values of the code that this column could have."""
        values = [value for value in written.values if self._is_kind(value) and self.holds(value)]
        yield from dict.fromkeys(self._as_typed(near) for value in values for near in self.just_around(value))

    def far(self, values: Sequence[Value]) -> Iterator[Any]:
        """For each value: it, and just around it, as far as that is a number out of the range."""
        if self.numeric and not self.levels and self.low is not None:
            near = [near for value in values if self._is_kind(value) for near in self.just_around(value)]
            yield from dict.fromkeys(self._as_typed(value) for value in near if not self.holds(value))

    def _times(self, value: Value) -> Iterator[date]:
        """Times that a text is, with those just around; or times with this minute, hour, day, month or year."""
        if not isinstance(self.low, date):
            return
        exact = isinstance(self.low, datetime)
        if isinstance(value, str):
            try:
                time = datetime.fromisoformat(value)
            except ValueError:
                return
            step = timedelta(seconds=1) if exact else timedelta(days=1)
            for near in (time, time - step, time + step):
                yield near.replace(tzinfo=self.low.tzinfo) if isinstance(self.low, datetime) else near.date()
        elif value == int(value) and 0 <= value < 10_000:
            for part in ("microsecond", "second", "minute", "hour", "day", "month", "year")[
                0 if exact else 4 :
            ]:
                with suppress(ValueError):
                    yield self.low.replace(**{part: int(value)})
            # The days of a week, from 0 and from 1.
            yield from (
                day
                for n in range(7)
                if value in ((day := self.low + timedelta(days=n)).weekday(), day.isoweekday())
            )

    def _is_kind(self, value: Value) -> bool:
        if isinstance(value, str):
            return self.dtype.is_(_string())
        # Of whole numbers those that fit into a column of 32 bits.
        return self.numeric and (not self.dtype.is_integer() or abs(value) < 2**31)

    def holds(self, value: Any) -> bool:
        """Whether the value is in the range."""
        if self.levels:
            return value in self.levels
        return self.numeric and self.low is not None and self.low <= value <= self.high

    def _as_typed(self, value: Any) -> Any:
        return math.floor(value) if self.dtype.is_integer() else value


def _string() -> Any:
    import polars as pl

    return pl.String()


def takes_few_values(column: pl.Series) -> bool:
    """Whether a column takes a few values and no others: labels, grades, answers to a question."""
    levels = column.drop_nulls().unique().to_list()
    fractions = column.dtype.is_float() and not all(float(value).is_integer() for value in levels)
    return len(levels) <= (MOST_LEVELS_OF_FRACTIONS if fractions else MOST_LEVELS)


def _range_of(real: pl.DataFrame, synthetic: pl.DataFrame, name: str) -> _Range:
    import polars as pl

    column = real[name]
    dtype = column.dtype
    both = pl.concat([column, synthetic[name].cast(dtype, strict=False)]).drop_nulls()
    if dtype.is_float():
        both = both.filter(both.is_finite())
    if dtype.is_nested() or both.is_empty():
        return _Range(name, dtype)
    levels = both.unique().sort().to_list()
    if takes_few_values(both):
        return _Range(name, dtype, tuple(levels), levels[0], levels[-1])
    # Of many texts none is lowest.
    return _Range(name, dtype) if dtype == pl.String else _Range(name, dtype, (), levels[0], levels[-1])


def _at_the_end(rows: pl.DataFrame, ranges: Iterable[_Range], end: int) -> pl.DataFrame:
    return _with_values(rows, [(one, one.ends[end]) for one in ranges if one.ends is not None])


def _with_values(rows: pl.DataFrame, values: Sequence[tuple[_Range, Any]]) -> pl.DataFrame:
    import polars as pl

    return rows.with_columns(
        pl.lit(value).cast(one.dtype, strict=False).alias(one.name) for one, value in values
    )


class _Donors:
    """Learners who take the place of another: made of what is there, so that code cannot see that they are new."""

    def __init__(self, table: LearnerTable, synthetic: LearnerTable, rng: np.random.Generator) -> None:
        import polars as pl

        self._table, self._rng = table, rng
        same = [pl.col(name).cast(dtype, strict=False) for name, dtype in table.rows.schema.items()]
        self._synthetic = LearnerTable(synthetic.rows.select(same), synthetic.starts)
        self._columns = [name for name, dtype in table.rows.schema.items() if not dtype.is_nested()]
        # A text is as good as its place in the alphabet here: what counts is that it is another one.
        ranks = table.rows.select(pl.col(name).rank("dense").cast(pl.Float64) for name in self._columns)
        number = pl.Series(" learner", np.repeat(np.arange(table.n_learners), np.diff(table.starts)))
        means = ranks.with_columns(number).group_by(" learner", maintain_order=True).mean().drop(" learner")
        values = means.fill_null(0.0).to_numpy()
        # On which side of the middle a learner is, in each column: what a threshold would tell.
        self._sides = np.sign(values - np.median(values, axis=0))

    def real(self, learner: int) -> pl.DataFrame:
        """The rows of another learner."""
        other = int(self._rng.integers(self._table.n_learners - 1))
        return self._table.rows_of(other + (other >= learner))

    def synthetic(self, _: int) -> pl.DataFrame:
        """The rows of a synthetic learner."""
        return self._synthetic.rows_of(int(self._rng.integers(self._synthetic.n_learners)))

    def opposite(self, learner: int) -> pl.DataFrame:
        """In each column the values of a learner on the other side of the middle, each of another one."""
        rows = self._table.rows_of(learner)
        unlike = self._sides != self._sides[learner]
        columns = []
        for place, name in enumerate(self._columns):
            if len(others := np.flatnonzero(unlike[:, place])):
                values = self._table.rows_of(int(self._rng.choice(others)))[name]
                columns.append(values[np.arange(rows.height) % len(values)])
        return rows.with_columns(columns)


def _several(table: LearnerTable, policy: Policy, rng: np.random.Generator) -> list[int]:
    """Learners who get a value together: fewer than the policy asks for behind a number; how many is a secret."""
    most = max(1, min(policy.minimum_learners - 1, table.n_learners // 3))
    n = int(rng.integers((most + 1) // 2, most + 1))
    return [int(learner) for learner in rng.choice(table.n_learners, size=n, replace=False)]


def _compared_values(
    table: LearnerTable, pairs: Sequence[tuple[_Range, Any]], policy: Policy, rng: np.random.Generator
) -> Iterator[Replacement]:
    """Each value for one learner, and for several."""
    for one, value in pairs[:MOST_COMPARED]:
        several = _several(table, policy, rng)
        # Beyond the range one is far from all others already, and several would change any statistic.
        for learners in (several[:1], several) if one.holds(value) else (several[:1],):
            rows = {learner: _with_values(table.rows_of(learner), [(one, value)]) for learner in learners}
            yield Replacement(rows, natural=len(learners) == 1 and one.holds(value))


def _compared_together(
    table: LearnerTable, pairs: Sequence[tuple[_Range, Any]], policy: Policy, rng: np.random.Generator
) -> Iterator[Replacement]:
    """In every column that the code compares with something one of these values: "failed, and worked late"."""
    columns: dict[str, list[tuple[_Range, Any]]] = {}
    for one, value in pairs:
        columns.setdefault(one.name, []).append((one, value))
    if len(columns) < 2:
        return
    for _ in range(N_TOGETHER):
        rows = {
            learner: _with_values(
                table.rows_of(learner),
                [values[int(rng.integers(len(values)))] for values in columns.values()],
            )
            for learner in _several(table, policy, rng)
        }
        yield Replacement(rows, natural=False)


def _emptied_sides(
    table: LearnerTable, pairs: Sequence[tuple[_Range, Any]], policy: Policy, rng: np.random.Generator
) -> Iterator[Replacement]:
    """All learners on one side of a compared value, if they are few, as others on the other side."""
    import polars as pl

    learner = np.repeat(np.arange(table.n_learners), np.diff(table.starts))
    for one, value in pairs[:MOST_COMPARED]:
        if not one.numeric or not one.holds(value):
            continue
        column = table.rows[one.name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for beyond in (column >= value, column <= value):
            few, others = np.unique(learner[beyond]), np.setdiff1d(learner, learner[beyond])
            if 1 < len(few) < policy.minimum_learners and len(others):
                rows = {int(place): table.rows_of(int(rng.choice(others))) for place in few}
                yield Replacement(rows, natural=False)


def _packed_values(
    table: LearnerTable, pairs: Sequence[tuple[_Range, Any]], policy: Policy, rng: np.random.Generator
) -> Iterator[Replacement]:
    """Other values, a different one for each of several learners."""
    waiting = [pairs[place] for place in rng.permutation(len(pairs))]
    for _ in range(MOST_PACKED):
        learners = _several(table, policy, rng)[: len(waiting)]
        if not learners:
            return
        rows = {learner: _with_values(table.rows_of(learner), [waiting.pop()]) for learner in learners}
        yield Replacement(rows, natural=False)


def _missing_values(table: LearnerTable, kind: Kind, rng: np.random.Generator) -> Iterator[Replacement]:
    """For each column a learner who has nothing there."""
    import polars as pl

    for name in table.rows.columns:
        learner = int(rng.integers(table.n_learners))
        rows = table.rows_of(learner)
        nothing = pl.lit(None).cast(table.rows.schema[name]).alias(name)
        yield Replacement({learner: rows.with_columns(nothing)}, natural=False, kind=kind)


def _other_sizes(
    table: LearnerTable, written: WrittenValues, rng: np.random.Generator
) -> Iterator[Replacement]:
    """A learner with one row, with more than anybody, and with as many as the code writes, one less and one more."""
    largest = int(np.diff(table.starts).max())
    if largest == 1:
        return
    numbers = [int(value) for value in written.values if not isinstance(value, str) and value == int(value)]
    sizes = dict.fromkeys([1, largest + 1, *(near for n in numbers for near in (n - 1, n, n + 1))])
    for size in [size for size in sizes if 1 <= size <= LARGEST_SIZE * largest][:MOST_SIZES]:
        learner = int(rng.integers(table.n_learners))
        rows = table.rows_of(learner)
        yield Replacement({learner: rows[np.arange(size) % rows.height]}, natural=False, kind="rows")


def _far_values(ranges: Sequence[_Range], written: WrittenValues) -> Iterator[list[tuple[_Range, Any]]]:
    """Of each value that the code writes: the columns that it names, or all, with this value if it is out of range."""
    of_columns = [
        (one, list(one.far([value for value in written.values if not isinstance(value, str)])))
        for one in ranges
        if one.name in written.named or not any(one.name in written.named and one.numeric for one in ranges)
    ]
    for place in range(max((len(values) for _, values in of_columns), default=0)):
        yield [(one, values[place]) for one, values in of_columns if place < len(values)]


def _far_learners(
    table: LearnerTable,
    given: Sequence[list[tuple[_Range, Any]]],
    policy: Policy,
    rng: np.random.Generator,
) -> Iterator[Replacement]:
    waiting = list(given)
    for _ in range(MOST_FAR):
        learners = _several(table, policy, rng)[: len(waiting)]
        if not learners:
            return
        rows = {learner: _with_values(table.rows_of(learner), waiting.pop()) for learner in learners}
        yield Replacement(rows, natural=False, kind="far")


def _summed_values(
    table: LearnerTable, ranges: Sequence[_Range], values: Iterable[Value], rng: np.random.Generator
) -> Iterator[Replacement]:
    """Values as the sum of columns that go together, for one learner, and as their mean."""
    numbers = [value for value in values if not isinstance(value, str)]
    for family in _families(ranges):
        for value in numbers:
            part = math.floor(value / len(family))
            rest = value - part * (len(family) - 1)
            for parts in ([rest, *[part] * (len(family) - 1)], [value] * len(family)):
                given = list(zip(family, parts, strict=True))
                if all(one.holds(each) for one, each in given):
                    learner = int(rng.integers(table.n_learners))
                    yield Replacement({learner: _with_values(table.rows_of(learner), given)}, natural=False)


def _families(ranges: Sequence[_Range]) -> list[list[_Range]]:
    """Columns that code may add up: those whose names begin alike (`evening_01`), all of them, those that end alike."""
    numbers = [one for one in ranges if one.numeric and not one.levels and one.low is not None]
    starts: dict[str, list[_Range]] = {}
    ends: dict[str, list[_Range]] = {}
    for one in numbers:
        start = one.name.rstrip("0123456789")
        starts.setdefault(start, []).append(one)
        ends.setdefault(one.name[len(start) :], []).append(one)
    return [family for family in (*starts.values(), numbers, *ends.values()) if len(family) > 1]
