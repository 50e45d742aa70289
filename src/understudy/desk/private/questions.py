"""Questions: what may be asked, each a frozen value of names and numbers and nothing else.

A question has no code in it, so that it can be written to a file, read by another program, and answered by one that
does not trust whoever asked. `check` says whether it fits a schema; nothing here looks at data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from understudy.core.files.documents import ContractError, checked, contract
from understudy.desk.private.schema import Schema, nearest
from understudy.errors import UsageError

# More than this is a mistake, and would be nothing but noise.
MOST_QUESTIONS = 200
MOST_CELLS_OF_A_TABLE = 10_000
MOST_COLUMNS = 40

TestName = Literal["t", "welch", "anova", "welch-anova"]


@dataclass(frozen=True)
class Question(ABC):
    """The base of all questions; `ask` is the kind's name in JSON."""

    ask: ClassVar[str]
    __pydantic_config__: ClassVar[Any] = contract()

    def to_json(self) -> dict[str, Any]:
        """The question for a machine."""
        values = {key.name: getattr(self, key.name) for key in fields(self)}
        return {"ask": self.ask} | {
            name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
        }

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Raise a `UsageError` unless the schema has what is asked for."""

    def __str__(self) -> str:
        given = [
            f"{key.name} {value if not isinstance(value, tuple) else ', '.join(map(str, value))}"
            for key in fields(self)
            if (value := getattr(self, key.name)) not in (None, ())
        ]
        return f"{self.ask}: {'; '.join(given)}"


@dataclass(frozen=True)
class Count(Question):
    """How many learners there are in each combination of categories of some columns."""

    by: tuple[str, ...]
    ask: ClassVar[str] = "count"

    def check(self, schema: Schema) -> None:
        """The columns hold categories, and their combinations are not too many."""
        _distinct(self.by)
        _small_table(schema, self.by)


@dataclass(frozen=True)
class Proportion(Question):
    """The share of each category of a column, of all learners or of each group."""

    column: str
    by: str | None = None
    ask: ClassVar[str] = "proportion"

    def check(self, schema: Schema) -> None:
        """Both columns hold categories."""
        _distinct((self.column, self.by))
        _small_table(schema, tuple(name for name in (self.column, self.by) if name is not None))


@dataclass(frozen=True)
class Histogram(Question):
    """How many learners have numbers between declared edges; without any, in ten equal bins."""

    column: str
    edges: tuple[float, ...] = ()
    ask: ClassVar[str] = "histogram"

    def check(self, schema: Schema) -> None:
        """Edges rise within the bounds of the column."""
        low, high = schema.number(self.column)
        inside = all(low <= edge <= high for edge in self.edges)
        rising = all(one < other for one, other in zip(self.edges, self.edges[1:], strict=False))
        if not (inside and rising and len(self.edges) <= 1000):
            raise UsageError(
                f"the edges for '{self.column}' do not rise from {low:g} to {high:g}.",
                hint="give edges within the bounds, from low to high.",
                code="bad-edges",
            )


@dataclass(frozen=True)
class Quantile(Question):
    """Values below which given shares of the learners are."""

    column: str
    at: tuple[float, ...] = (0.25, 0.5, 0.75)
    ask: ClassVar[str] = "quantile"

    def check(self, schema: Schema) -> None:
        """Shares lie between 0 and 1."""
        schema.number(self.column)
        if not self.at or not all(0 < share < 1 for share in self.at):
            raise UsageError(
                "quantiles are asked at shares between 0 and 1.",
                hint="such as 0.5 for the median.",
                code="bad-share",
            )


@dataclass(frozen=True)
class Mean(Question):
    """The mean of a column, of all learners or of each group."""

    column: str
    by: str | None = None
    ask: ClassVar[str] = "mean"

    def check(self, schema: Schema) -> None:
        """Numbers, by categories."""
        _numbers_by(schema, self.column, self.by)


@dataclass(frozen=True)
class Variance(Question):
    """The variance of a column, of all learners or of each group."""

    column: str
    by: str | None = None
    ask: ClassVar[str] = "variance"

    def check(self, schema: Schema) -> None:
        """Numbers, by categories."""
        _numbers_by(schema, self.column, self.by)


@dataclass(frozen=True)
class Correlation(Question):
    """Pearson's correlations of some columns with each other."""

    columns: tuple[str, ...]
    ask: ClassVar[str] = "correlation"

    def check(self, schema: Schema) -> None:
        """Two columns of numbers or more."""
        _distinct(self.columns)
        for name in self.columns:
            schema.number(name)
        if not 2 <= len(self.columns) <= MOST_COLUMNS:
            raise UsageError(
                f"correlations are asked of 2 to {MOST_COLUMNS} columns.", hint="name them.", code="columns"
            )


@dataclass(frozen=True)
class Linear(Question):
    """A linear regression of a column on others; of categories the first is the reference."""

    outcome: str
    on: tuple[str, ...]
    ask: ClassVar[str] = "linear"

    def check(self, schema: Schema) -> None:
        """The outcome holds numbers."""
        schema.number(self.outcome)
        _predictors(schema, self.outcome, self.on)


@dataclass(frozen=True)
class Logistic(Question):
    """A logistic regression of whether a column is yes, or has one category, on others."""

    outcome: str
    on: tuple[str, ...]
    value: str = "yes"
    ask: ClassVar[str] = "logistic"

    def check(self, schema: Schema) -> None:
        """The outcome has the category that counts."""
        known = schema.categories(self.outcome)
        if self.value not in known:
            raise UsageError(
                f"column '{self.outcome}' has no category '{self.value}'.",
                hint=nearest(known, self.value),
                code="no-such-category",
            )
        _predictors(schema, self.outcome, self.on)


@dataclass(frozen=True)
class Compare(Question):
    """Whether means of a column differ between groups: t, Welch's t, ANOVA or Welch's ANOVA."""

    column: str
    by: str
    test: TestName = "welch"
    groups: tuple[str, ...] = ()
    """Which groups are compared; all of them by default."""
    ask: ClassVar[str] = "compare"

    def check(self, schema: Schema) -> None:
        """Two groups for t and Welch, two or more for an ANOVA."""
        _numbers_by(schema, self.column, self.by)
        known, chosen = schema.categories(self.by), self.compared(schema)
        if unknown := [name for name in chosen if name not in known]:
            raise UsageError(
                f"column '{self.by}' has no category '{unknown[0]}'.",
                hint=nearest(known, unknown[0]),
                code="no-such-category",
            )
        _distinct(chosen)
        if len(chosen) < 2 or (self.test in ("t", "welch") and len(chosen) > 2):
            raise UsageError(
                f"{len(chosen)} groups were given to the test '{self.test}'.",
                hint="name two groups, or ask for an anova of two or more.",
                code="groups",
            )

    def compared(self, schema: Schema) -> tuple[str, ...]:
        """The groups that are compared."""
        return self.groups or schema.categories(self.by)


@dataclass(frozen=True)
class Independence(Question):
    """Whether two columns of categories are independent: the chi-square test."""

    column: str
    by: str
    ask: ClassVar[str] = "independence"

    def check(self, schema: Schema) -> None:
        """Two columns of categories with two or more each."""
        _distinct((self.column, self.by))
        _small_table(schema, (self.column, self.by))
        if min(len(schema.categories(name)) for name in (self.column, self.by)) < 2:
            raise UsageError(
                "a test of independence needs two categories on either side.",
                hint="ask for a proportion.",
                code="groups",
            )


KINDS: dict[str, type[Question]] = {
    kind.ask: kind
    for kind in (
        Count,
        Proportion,
        Histogram,
        Quantile,
        Mean,
        Variance,
        Correlation,
        Linear,
        Logistic,
        Compare,
        Independence,
    )
}


def read_question(content: Any, source: str = "the question") -> Question:
    """A question that `to_json` wrote; anything else is refused."""
    if not isinstance(content, dict) or not isinstance(content.get("ask"), str):
        raise ContractError(f"{source} has no `ask`.", hint=f"it is one of: {', '.join(KINDS)}.", key="ask")
    kind = KINDS.get(content["ask"])
    if kind is None:
        raise ContractError(
            f"{source} asks for what is not known here.", hint=f"known are: {', '.join(KINDS)}.", key="ask"
        )
    return checked({key: value for key, value in content.items() if key != "ask"}, kind, source)


def read_questions(content: Any, source: str = "the questions") -> tuple[Question, ...]:
    """A list of questions."""
    if not isinstance(content, list) or not 1 <= len(content) <= MOST_QUESTIONS:
        raise ContractError(
            f"{source} are not a list of 1 to {MOST_QUESTIONS}.", hint="ask less, or something."
        )
    return tuple(read_question(one, f"{source}, number {place}") for place, one in enumerate(content, 1))


def _distinct(names: tuple[str | None, ...]) -> None:
    if not names or len(set(names)) < len(names):
        raise UsageError("a question names each column once.", hint="name other columns.", code="columns")


def _small_table(schema: Schema, columns: tuple[str, ...]) -> None:
    n_cells = math.prod(len(schema.categories(name)) + 2 for name in columns)
    if n_cells > MOST_CELLS_OF_A_TABLE:
        raise UsageError(
            f"{', '.join(columns)} make a table of {n_cells:,} cells; {MOST_CELLS_OF_A_TABLE:,} is the most.",
            hint="ask about fewer columns at once.",
            code="too-many-cells",
        )


def _numbers_by(schema: Schema, column: str, by: str | None) -> None:
    schema.number(column)
    if by is not None:
        _distinct((column, by))
        schema.categories(by)


def _predictors(schema: Schema, outcome: str, on: tuple[str, ...]) -> None:
    _distinct((outcome, *on))
    for name in on:
        schema.column(name)
    if not 1 <= len(on) <= MOST_COLUMNS:
        raise UsageError(
            f"a regression has 1 to {MOST_COLUMNS} predictors.", hint="name them.", code="columns"
        )
