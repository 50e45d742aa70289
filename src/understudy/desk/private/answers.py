"""Answers: estimates with 95 % intervals, tests, and a sentence where an interval is too wide to be of use."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from understudy.core.privacy.guarantee import Guarantee
from understudy.desk.private.questions import Question

if TYPE_CHECKING:
    import polars as pl

# An interval is too wide where it leaves more than this of what was known beforehand.
MOST_OF_WHAT_IS_POSSIBLE = 0.5
# The width of an interval without ends, or with ends beyond what is possible.
_NOTHING_LEARNED = 2.0


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval, which holds the noise and, unless it is a count, the chance of sampling.

    A count is of the learners in the table; everything else is of the learners they stand for. `noise` is the
    standard deviation of the noise alone. `possible` is what was known of the figure beforehand.
    """

    of: str
    value: float
    low: float
    high: float
    noise: float
    possible: tuple[float, float]

    @property
    def width(self) -> float:
        """The width of the interval as a share of what was known beforehand."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return _NOTHING_LEARNED
        # Nothing was known beforehand of an intercept, which may lie far from all data.
        return min((self.high - self.low) / (self.possible[1] - self.possible[0]), _NOTHING_LEARNED)

    @property
    def too_wide(self) -> bool:
        """Whether the interval says little that was not known before."""
        return self.width > MOST_OF_WHAT_IS_POSSIBLE

    def to_json(self) -> dict[str, Any]:
        """The estimate for a machine; an interval without an end has null there."""
        return {
            "of": self.of,
            "value": _finite(self.value),
            "low": _finite(self.low),
            "high": _finite(self.high),
            "noise": _finite(self.noise),
        }

    def __str__(self) -> str:
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{self.of}: lost in the noise"
        return f"{self.of}: {_shown(self.value)} ({_shown(self.low)} to {_shown(self.high)})"


@dataclass(frozen=True)
class Test:
    """A test of a hypothesis: its p value is from simulations under the null hypothesis, the noise included."""

    __test__ = False  # not one of pytest's

    name: str
    statistic: float
    p_value: float

    def to_json(self) -> dict[str, Any]:
        """The test for a machine."""
        return {"name": self.name, "statistic": self.statistic, "p_value": self.p_value}

    def __str__(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return f"{self.name}: statistic {self.statistic:.3g}, {p}"


@dataclass(frozen=True)
class Enough:
    """What would make an answer's intervals narrow enough, by prediction; None where nothing would."""

    epsilon: float | None
    n_learners: int | None

    def __str__(self) -> str:
        ways = []
        if self.epsilon is not None:
            ways.append(f"epsilon {self.epsilon:g}")
        if self.n_learners is not None:
            ways.append(f"{self.n_learners:,} learners")
        if not ways:
            return "no epsilon up to 100 would be enough with so many learners."
        return f"about {' or '.join(ways)} would be enough."


@dataclass(frozen=True)
class Answer:
    """The answer to one question."""

    question: Question
    estimates: tuple[Estimate, ...]
    test: Test | None = None
    notes: tuple[str, ...] = ()
    enough: Enough | None = None

    @property
    def too_wide(self) -> tuple[Estimate, ...]:
        """Estimates whose intervals are too wide to be of use."""
        return tuple(estimate for estimate in self.estimates if estimate.too_wide)

    @property
    def width(self) -> float:
        """The mean width of its intervals as a share of what was known beforehand."""
        return math.fsum(estimate.width for estimate in self.estimates) / len(self.estimates)

    @property
    def warning(self) -> str:
        """The sentence on intervals that are too wide; empty where there are none."""
        if not self.too_wide:
            return ""
        n, n_all = len(self.too_wide), len(self.estimates)
        which = "The interval is" if n_all == 1 else f"{n} of {n_all} intervals are"
        enough = "" if self.enough is None else f": {self.enough}"
        return f"{which} too wide to be of use (more than half of what was possible before){enough or '.'}"

    def with_enough(self, enough: Enough) -> Answer:
        """The same answer with what would be enough."""
        return replace(self, enough=enough)

    def __getitem__(self, of: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.of == of:
                return estimate
        raise KeyError(of)

    def to_json(self) -> dict[str, Any]:
        """The answer for a machine."""
        return {
            "question": self.question.to_json(),
            "estimates": [
                {**estimate.to_json(), "too_wide": estimate.too_wide} for estimate in self.estimates
            ],
            "test": None if self.test is None else self.test.to_json(),
            "notes": list(self.notes),
            "warning": self.warning,
        }

    def lines(self) -> list[str]:
        """The answer for people."""
        found = [str(self.question), *(f"  {estimate}" for estimate in self.estimates)]
        if self.test is not None:
            found.append(f"  {self.test}")
        return found + [f"  {line}" for line in (*self.notes, self.warning) if line]


@dataclass(frozen=True)
class Answers:
    """The answers of one analysis, in the order in which they were asked for, and what is proved about all of them."""

    answers: tuple[Answer, ...]
    guarantee: Guarantee
    n_learners: int

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, which: int | Question) -> Answer:
        if isinstance(which, int):
            return self.answers[which]
        for answer in self.answers:
            if answer.question == which:
                return answer
        raise KeyError(str(which))

    def to_json(self) -> dict[str, Any]:
        """The answers for a machine."""
        return {
            "n_learners": self.n_learners,
            "guarantee": self.guarantee.to_json(),
            "answers": [answer.to_json() for answer in self.answers],
        }

    def to_frame(self) -> pl.DataFrame:
        """All estimates, a row each."""
        import polars as pl

        rows = [
            {"question": str(answer.question), **estimate.to_json(), "too_wide": estimate.too_wide}
            for answer in self.answers
            for estimate in answer.estimates
        ]
        numbers = ("value", "low", "high", "noise")
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(numbers, pl.Float64))

    def lines(self) -> list[str]:
        """The answers for people."""
        return [line for answer in self.answers for line in answer.lines()] + [str(self.guarantee)]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
