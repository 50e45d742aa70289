"""Private questions as plain sentences: what reviewers, researchers and readers of a certificate read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

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
    Variance,
)
from understudy.desk.private.schema import Schema

_TESTS = {
    "t": "Student's t test",
    "welch": "Welch's t test",
    "anova": "analysis of variance",
    "welch-anova": "Welch's analysis of variance",
}


@singledispatch
def in_words(question: Question, schema: Schema) -> str:
    """What a question asks for, in a sentence."""
    return f"{str(question).capitalize()}."


@in_words.register
def _(question: Count, schema: Schema) -> str:
    each = "category" if len(question.by) == 1 else "combination"
    return f"How many learners are there in each {each} of {_and(question.by)}?"


@in_words.register
def _(question: Proportion, schema: Schema) -> str:
    return f"What share of learners has each category of {question.column}{_by(question.by)}?"


@in_words.register
def _(question: Histogram, schema: Schema) -> str:
    bins = (
        f"the edges {', '.join(f'{edge:g}' for edge in question.edges)}"
        if question.edges
        else "ten equal bins"
    )
    return f"How many learners have a {question.column} within {bins}?"


@in_words.register
def _(question: Quantile, schema: Schema) -> str:
    if question.at == (0.5,):
        return f"What is the median of {question.column}?"
    shares = _and([f"{100 * share:g} %" for share in question.at])
    return f"Below which values of {question.column} are {shares} of the learners?"


@in_words.register
def _(question: Mean | Variance, schema: Schema) -> str:
    low, high = schema.number(question.column)
    cut = f"(cut to {low:g} to {high:g})"
    return f"What is the {question.ask} of {question.column} {cut}{_by(question.by)}?"


@in_words.register
def _(question: Correlation, schema: Schema) -> str:
    return f"How do {_and(question.columns)} correlate (Pearson)?"


@in_words.register
def _(question: Linear, schema: Schema) -> str:
    return f"How does {question.outcome} depend on {_and(question.on)} (linear regression)?"


@in_words.register
def _(question: Logistic, schema: Schema) -> str:
    outcome = f"whether {question.outcome} is '{question.value}'"
    return f"How does {outcome} depend on {_and(question.on)} (logistic regression)?"


@in_words.register
def _(question: Compare, schema: Schema) -> str:
    groups = f"{question.by} {_and(question.compared(schema))}"
    return f"Does the mean of {question.column} differ between {groups} ({_TESTS[question.test]})?"


@in_words.register
def _(question: Independence, schema: Schema) -> str:
    return f"Are {question.column} and {question.by} independent (chi-square test)?"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _by(group: str | None) -> str:
    return "" if group is None else f" in each group of {group}"
