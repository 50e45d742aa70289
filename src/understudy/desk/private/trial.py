"""The front door on the researcher's own machine: ask, see what is to be expected, try it out on synthetic data.

An analysis is a function `analyze(ask)`. What it asks for is recorded before any data is there, so that the budget can
be split among all questions; it never sees an answer, nor a learner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.core.privacy.noise import seeded_noise
from understudy.desk.private.answers import Answer, Answers
from understudy.desk.private.mechanism import answer_privately
from understudy.desk.private.plan import Plan, propose
from understudy.desk.private.questions import (
    Compare,
    Correlation,
    Count,
    Histogram,
    Independence,
    Linear,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    Question,
    TestName,
    Variance,
)
from understudy.desk.private.schema import LEARNER, Schema, read_records
from understudy.errors import UsageError


class Ask:
    """Records questions. Every method returns its question, by which the answer is found later."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def count(self, *by: str) -> Question:
        """How many learners there are in each category, or in each combination of categories."""
        return self._ask(Count(by))

    def proportion(self, column: str, by: str | None = None) -> Question:
        """Shares of the categories of a column."""
        return self._ask(Proportion(column, by))

    def histogram(self, column: str, edges: Sequence[float] = ()) -> Question:
        """How many learners have numbers between edges."""
        return self._ask(Histogram(column, tuple(float(edge) for edge in edges)))

    def quantiles(self, column: str, at: Sequence[float] = (0.25, 0.5, 0.75)) -> Question:
        """Values below which given shares of the learners are."""
        return self._ask(Quantile(column, tuple(float(share) for share in at)))

    def median(self, column: str) -> Question:
        """The value below which half of the learners are."""
        return self.quantiles(column, (0.5,))

    def mean(self, column: str, by: str | None = None) -> Question:
        """The mean of a column, or of each group."""
        return self._ask(Mean(column, by))

    def variance(self, column: str, by: str | None = None) -> Question:
        """The variance of a column, or of each group."""
        return self._ask(Variance(column, by))

    def correlations(self, *columns: str) -> Question:
        """Pearson's correlations of columns with each other."""
        return self._ask(Correlation(columns))

    def linear(self, outcome: str, on: Sequence[str]) -> Question:
        """A linear regression."""
        return self._ask(Linear(outcome, tuple(on)))

    def logistic(self, outcome: str, on: Sequence[str], *, value: str = "yes") -> Question:
        """A logistic regression of whether the outcome has a value."""
        return self._ask(Logistic(outcome, tuple(on), value))

    def compare(
        self, column: str, by: str, *, test: TestName = "welch", groups: Sequence[str] = ()
    ) -> Question:
        """Whether means differ between groups: "t", "welch", "anova" or "welch-anova"."""
        return self._ask(Compare(column, by, test, tuple(groups)))

    def independence(self, column: str, by: str) -> Question:
        """Whether two columns of categories are independent: the chi-square test."""
        return self._ask(Independence(column, by))

    def _ask(self, question: Question) -> Question:
        self.questions.append(question)
        return question


Analysis = Callable[[Ask], Any]


def questions_of(analyze: Analysis) -> tuple[Question, ...]:
    """What an analysis asks for, each question once. No data is there."""
    ask = Ask()
    analyze(ask)
    if not ask.questions:
        raise UsageError(
            "the analysis asked for nothing.",
            hint='such as ask.mean("minutes", by="group").',
            code="questions",
        )
    return tuple(dict.fromkeys(ask.questions))


@dataclass(frozen=True)
class Trial:
    """What an analysis would show of learners who are not real, beside what is to be expected of real ones."""

    plan: Plan
    """Of the real learners: how many there are, and what is spent."""
    answers: Answers
    expected: tuple[Answer, ...]

    def __getitem__(self, which: int | Question) -> Answer:
        return self.answers[which]

    def lines(self) -> list[str]:
        """The trial for people."""
        found = []
        for answer, expected in zip(self.answers, self.expected, strict=True):
            found += answer.lines()
            found.append(
                f"  expected on {self.plan.n_learners:,} learners: intervals as wide as "
                f"{100 * expected.width:.0f} % of what is possible"
            )
        return [*found, f"epsilon {self.plan.epsilon:g} would be spent on all of them together."]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def expect(
    analyze: Analysis, schema: Schema, n_learners: int, epsilon: float, delta: float | None = None
) -> tuple[Answer, ...]:
    """How wide the intervals will be, from public numbers alone; the figures themselves mean nothing."""
    return propose(questions_of(analyze), schema, n_learners, epsilon, delta).predictions()


def try_out(
    analyze: Analysis,
    table: Any,
    schema: Schema,
    epsilon: float,
    *,
    delta: float | None = None,
    n_learners: int | None = None,
    learner: str | None = LEARNER,
    rng: np.random.Generator | None = None,
) -> Trial:
    """Answer an analysis from a synthetic table, as the desk would from the real one. Nothing is guaranteed.

    `n_learners` is how many real learners there are, by default as many as synthetic ones: widths are expected for
    that number.
    """
    questions, records = questions_of(analyze), read_records(table, schema, learner=learner)
    here = propose(questions, schema, records.n_learners, epsilon, delta)
    real = propose(questions, schema, n_learners or records.n_learners, epsilon, delta)
    noise = seeded_noise(np.random.default_rng(0) if rng is None else rng)
    return Trial(real, answer_privately(here, records, noise), real.predictions())
