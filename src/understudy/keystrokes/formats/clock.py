"""How the times of a file of keystrokes are written: what each learner's rows show about it, and what follows for all.

Every time of a file has to be written in one way, or the file is refused. So nothing is guessed about numbers that
count from 1970 (which unit they are in shows on each of them), dates, or a unit that is declared or in the column's
name. What else is guessed from typing is said (`Clock.guessed`): with a guarantee it has to be declared.

What rows show is additive over learners: a large file is looked at in pieces, and the answer is that of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.times import states_instant, zones_in
from understudy.errors import DataError, UsageError
from understudy.keystrokes.formats.times import (
    FIRST,
    LAST,
    UNITS,
    WORDS,
    Clock,
    TimeColumn,
    numbers_in,
    unit_in_name,
)

# The usual time from key to key, in seconds: factors of a thousand, so one unit fits.
SHORTEST_USUAL_STEP, LONGEST_USUAL_STEP = 0.01, 10.0
# The usual time for which a key is down, in seconds.
SHORTEST_USUAL_HOLD, LONGEST_USUAL_HOLD = 0.005, 5.0
# A learner needs so many steps for their usual one to be compared with others'.
MIN_STEPS = 50
# The line of what is on no row.
_NEVER = np.iinfo(np.int64).max

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sizes:
    """How many numbers are of a usual size in each unit, from `s` to `ns`.

    In front of these stand those too small for any unit, behind them those too large. With the least and the largest
    of each class, the counts give the class of the median.
    """

    count: NDArray[np.int64]
    least: Floats
    largest: Floats

    @classmethod
    def of(cls, numbers: Floats, shortest: float, longest: float) -> Sizes:
        """The sizes of numbers that are usually from `shortest` to `longest` seconds."""
        ends = [numbers * factor / 1e9 < longest for factor in UNITS.values()]
        size = np.where(
            numbers * UNITS["s"] / 1e9 < shortest, 0, np.select(ends, range(1, 1 + len(ends)), 1 + len(ends))
        )
        count = np.bincount(size, minlength=len(UNITS) + 2)
        least, largest = np.full(len(count), np.inf), np.full(len(count), -np.inf)
        np.minimum.at(least, size, numbers)
        np.maximum.at(largest, size, numbers)
        return cls(count, least, largest)

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.count + other.count,
            np.minimum(self.least, other.least),
            np.maximum(self.largest, other.largest),
        )

    def unit(self, shortest: float, longest: float) -> str | None:
        """The unit in which the median is of a usual size."""
        n_numbers = int(self.count.sum())
        if not n_numbers:
            return None
        before, after = np.searchsorted(
            np.cumsum(self.count), [(n_numbers - 1) // 2, n_numbers // 2], side="right"
        )
        if before != after:
            middle = np.array([(self.largest[before] + self.least[after]) / 2])
            before = int(Sizes.of(middle, shortest, longest).count.argmax())
        return ["", *UNITS, ""][before] or None


@dataclass(frozen=True)
class Zones:
    """Which time zones dates state, and where the first one stands that is an instant, and one that is not."""

    instant: int = _NEVER
    local: int = _NEVER
    stated: frozenset[str | None] = frozenset()

    @classmethod
    def of(cls, values: pl.Series, lines: pl.Series) -> Zones:
        """Of dates, none of which is missing."""
        instant = states_instant(values)
        return cls(_first(instant, lines), _first(~instant, lines), zones_in(values.filter(~instant)))

    def __add__(self, other: Zones) -> Zones:
        return Zones(
            min(self.instant, other.instant), min(self.local, other.local), self.stated | other.stated
        )

    def check(self, column: TimeColumn) -> None:
        """Refuse times of several zones."""
        if (other := max(self.instant, self.local)) < _NEVER:
            raise column.wrong(
                "the times state a time zone on some rows only", other, "write all times in one way."
            )
        if len(self.stated) > 1:
            raise column.wrong(
                "the times mix time zones", min(self.instant, self.local), "write all times in one zone."
            )


@dataclass(frozen=True)
class _Dated:
    """How many numbers are dates of 2000 to 2100 in a unit; the first line of one that is, and of one that is not."""

    n_rows: int
    first: int
    first_other: int

    def __add__(self, other: _Dated) -> _Dated:
        return _Dated(
            self.n_rows + other.n_rows,
            min(self.first, other.first),
            min(self.first_other, other.first_other),
        )


@dataclass(frozen=True, eq=False)
class ClockFacts:
    """What the times of some learners show. Lines are those of the first row of a kind."""

    n_rows: int
    number: int
    other: int
    infinite: int
    dated: dict[str, _Dated]
    steps: Sizes
    usual: Floats
    """The usual step of each learner who has enough of them."""
    begin: NDArray[np.int64]
    """The first lines of these."""

    @classmethod
    def of(
        cls, values: pl.Series, learner: NDArray[np.int32], lines: pl.Series, unit: str | None
    ) -> ClockFacts:
        """Of times, none of which is missing, by learner. `unit` is declared, or the column's name states it."""
        nothing = pl.repeat(None, len(values), dtype=pl.Float64, eager=True)
        number = nothing if values.dtype.is_temporal() else numbers_in(values)[0]
        is_number = number.is_not_null()
        raw = number.fill_null(np.nan).to_numpy()
        finite = pl.Series(np.isfinite(raw))
        dated = {}
        for name, factor in UNITS.items():
            per_second = 10**9 // factor
            since_1970 = pl.Series((raw >= FIRST * per_second) & (raw <= LAST * per_second))
            dated[name] = _Dated(int(since_1970.sum()), _first(since_1970, lines), _first(~since_1970, lines))
        n_dated = max(found.n_rows for name, found in dated.items() if unit in (None, name))
        from_a_start = finite.all() and n_dated < len(values)
        step, who = _steps(raw, learner) if from_a_start else (np.zeros(0), np.zeros(0, np.int32))
        n_steps = np.bincount(who)
        ends = np.cumsum(n_steps)
        enough = np.flatnonzero(n_steps >= MIN_STEPS)
        usual = np.array([np.median(step[ends[at] - n_steps[at] : ends[at]]) for at in enough])
        begin = np.full(int(learner.max(initial=-1)) + 1, _NEVER)
        np.minimum.at(begin, learner, lines.to_numpy())
        return cls(
            len(values),
            _first(is_number, lines),
            _first(~is_number, lines),
            _first(is_number & ~finite, lines),
            dated,
            Sizes.of(step, SHORTEST_USUAL_STEP, LONGEST_USUAL_STEP),
            usual,
            begin[enough],
        )

    def __add__(self, other: ClockFacts) -> ClockFacts:
        return ClockFacts(
            self.n_rows + other.n_rows,
            min(self.number, other.number),
            min(self.other, other.other),
            min(self.infinite, other.infinite),
            {name: self.dated[name] + other.dated[name] for name in UNITS},
            self.steps + other.steps,
            np.concatenate([self.usual, other.usual]),
            np.concatenate([self.begin, other.begin]),
        )

    def clock(self, unit: str | None, column: TimeColumn) -> Clock:
        """How the times of a whole file are written. `unit` is declared; else the column's name may state it."""
        if self.number == _NEVER:
            if unit is not None:
                raise UsageError(
                    f"{column.file}: a unit was given, but the times are not numbers.",
                    hint="leave the unit out, or choose another column.",
                    settings=("unit", "time"),
                )
            return Clock("Times were read as dates.")
        if self.other < _NEVER:
            # The first row of the other kind than the first of all: a number among dates, or what is not a number.
            raise column.wrong(
                "some times are numbers and some are not",
                max(self.number, self.other),
                "write all times in one notation, in one unit.",
            )
        if self.infinite < _NEVER:
            raise column.wrong("times are not all finite numbers", self.infinite, "correct these rows.")
        how = "as was asked" if unit else "from their size"
        if unit is None and (named := unit_in_name(column.name)):
            unit, how = named, "as the column's name says"
        since_1970 = self._unit_since_1970(unit, column)
        if since_1970 is not None:
            return Clock(f"Times were read as {WORDS[since_1970]} since 1970 ({how}).", since_1970)
        guessed = unit is None
        if unit is None:
            unit, how = self._usual_unit(column), "from the usual step"
        self._refuse_two_units(column)
        note = f"Times were read as {WORDS[unit]} from a start of their own ({how})."
        return Clock(note, unit, since_start=True, guessed=guessed)

    def _unit_since_1970(self, unit: str | None, column: TimeColumn) -> str | None:
        """The unit in which the numbers are dates of 2000 to 2100; None if none of them is one."""
        found = [name for name in UNITS if self.dated[name].n_rows and unit in (None, name)]
        if len(found) > 1:
            # The line to look at is the first in another unit than the first time that has one.
            raise column.wrong(
                "the times are in mixed units: some look like "
                + " and some like ".join(WORDS[name] for name in found)
                + " since 1970",
                sorted(self.dated[name].first for name in found)[1],
                "write all times in one unit.",
            )
        if not found:
            return None
        since_1970 = self.dated[found[0]]
        if since_1970.n_rows < self.n_rows:
            raise column.wrong(
                f"most times are {WORDS[found[0]]} since 1970 and some are not: mixed units, or rows without a time"
                if since_1970.n_rows > 0.5 * self.n_rows
                else f"some times look like {WORDS[found[0]]} since 1970 and most do not: mixed units",
                since_1970.first_other,
                "write all times in one unit and count them from one moment; if they are counted from a start of "
                "their own, name the unit.",
                ("unit",),
            )
        return found[0]

    def _usual_unit(self, column: TimeColumn) -> str:
        unit = self.steps.unit(SHORTEST_USUAL_STEP, LONGEST_USUAL_STEP)
        if unit is None:
            raise DataError(
                f"{column.file}: the unit of the times cannot be inferred: they are not dates, and their steps are not "
                f"those of typing ({column.role} column).",
                hint="name the unit: ms, ns, us or s.",
                code="unknown-unit",
                settings=("unit",),
            )
        return unit

    def _refuse_two_units(self, column: TimeColumn) -> None:
        """Refuse learners whose usual step is a hundred times another's: files in two units were joined."""
        if len(self.usual) > 1 and self.usual.max() > 100 * self.usual.min():
            far = np.abs(np.log(self.usual / np.median(self.usual)))
            raise column.wrong(
                "the usual step of one learner is over a hundred times another's: the times are in mixed units",
                int(self.begin[far == far.max()].min()),
                "write all times in one unit.",
            )


def _first(rows: pl.Series, lines: pl.Series) -> int:
    """The line of the first of some rows."""
    return int(lines[int(rows.arg_max() or 0)]) if rows.any() else _NEVER


def _steps(values: Floats, learner: NDArray[np.int32]) -> tuple[Floats, NDArray[np.int32]]:
    """Steps forward from a learner's row to their next one, and whose they are."""
    order = np.argsort(learner, kind="stable")
    who, when = learner[order], values[order]
    step = np.diff(when)
    forward = (who[1:] == who[:-1]) & (step > 0)
    return step[forward], who[1:][forward]
