"""Questions are names and numbers: JSON and back, and nothing else is read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.desk.support.private_tables import SCHEMA, analyze
from understudy.desk import private
from understudy.desk.private.questions import (
    KINDS,
    Compare,
    Correlation,
    Count,
    Histogram,
    Linear,
    Logistic,
    Mean,
    Quantile,
    read_question,
    read_questions,
)
from understudy.errors import UnderstudyError, UsageError

NAMES = some.text(max_size=12)
TUPLES = some.lists(NAMES, max_size=4).map(tuple)
NUMBERS = some.lists(some.floats(allow_nan=False, allow_infinity=False), max_size=4).map(tuple)
OPTIONAL = some.none() | NAMES
QUESTIONS = some.one_of(
    some.builds(Count, TUPLES),
    some.builds(KINDS["proportion"], NAMES, OPTIONAL),
    some.builds(Histogram, NAMES, NUMBERS),
    some.builds(Quantile, NAMES, NUMBERS),
    some.builds(Mean, NAMES, OPTIONAL),
    some.builds(KINDS["variance"], NAMES, OPTIONAL),
    some.builds(Correlation, TUPLES),
    some.builds(Linear, NAMES, TUPLES),
    some.builds(Logistic, NAMES, TUPLES, NAMES),
    some.builds(Compare, NAMES, NAMES, some.sampled_from(["t", "welch", "anova", "welch-anova"]), TUPLES),
    some.builds(KINDS["independence"], NAMES, NAMES),
)
JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(QUESTIONS)
@settings(max_examples=200, deadline=None)
def test_a_question_comes_back_from_json(question):
    assert read_question(json.loads(json.dumps(question.to_json()))) == question


@given(
    question=QUESTIONS,
    key=some.sampled_from(["ask", "column", "by", "on", "more", "edges", "test"]),
    value=JSON,
)
@settings(max_examples=200, deadline=None)
def test_a_broken_question_is_a_question_or_an_error_of_ours(question, key, value):
    try:
        found = read_question(question.to_json() | {key: value})
    except UnderstudyError:
        return
    assert read_question(found.to_json()) == found


@given(QUESTIONS)
@settings(max_examples=200, deadline=None)
def test_a_question_fits_a_schema_or_an_error_says_why(question):
    try:
        question.check(SCHEMA)
    except UsageError:
        return
    private.propose([question], SCHEMA, 100, 1.0).predictions()


def test_kinds_are_those_of_the_front_door():
    asked = {question.ask for question in private.questions_of(analyze)}
    assert asked == set(KINDS)


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (Mean("minuts"), "no-such-column"),
        (Mean("school"), "wrong-kind"),
        (Mean("minutes", by="grade"), "wrong-kind"),
        (Histogram("minutes", (0.0, 700.0)), "bad-edges"),
        (Histogram("minutes", (300.0, 100.0)), "bad-edges"),
        (Quantile("minutes", (1.0,)), "bad-share"),
        (Correlation(("minutes",)), "columns"),
        (Linear("grade", ("grade",)), "columns"),
        (Logistic("school", ("minutes",)), "no-such-category"),
        (Compare("grade", "school"), "groups"),
        (Compare("grade", "school", "welch", ("north", "east")), "no-such-category"),
        (Count(("school",) * 2), "columns"),
    ],
)
def test_what_does_not_fit_the_schema_is_named(question, code):
    with pytest.raises(UsageError) as caught:
        question.check(SCHEMA)
    assert caught.value.code == code
    assert caught.value.hint


def test_lists_of_questions_are_bounded():
    assert read_questions([{"ask": "mean", "column": "grade"}]) == (Mean("grade"),)
    for content in ([], {}, [{"ask": "mean", "column": "grade"}] * 201, [{"ask": "sum"}]):
        with pytest.raises(UnderstudyError):
            read_questions(content)
