"""Code of others, parsed and never run."""

import ast

import pytest

from understudy.sandbox.code_review import (
    UnparsableError,
    called_name,
    entries,
    imported_modules,
    nodes_at,
    nodes_in_order,
    parameters,
    parse,
    written_texts,
)

CODE = """
import pandas as pd, scipy.stats
from .secrets import key
from . import other

def run(data, /, extra=1, *rest, least=2, **more):
    means = data.groupby("school").agg(mean=("points", "mean"))
    return {"mean": means.max(), "least": dict(low=least)}

class Hidden:
    def run(self):
        pass
"""


def test_a_syntax_error_has_its_line_and_pythons_message():
    with pytest.raises(UnparsableError) as caught:
        parse("x = 1\ny = = 2\n")
    assert caught.value.line == 2
    assert caught.value.message == "invalid syntax"


@pytest.mark.parametrize("code", ["x = '\0'", "(" * 5000 + ")" * 5000, "x" + ".a" * 200_000])
def test_what_the_parser_gives_up_on_is_one_error(code):
    with pytest.raises(UnparsableError):
        parse(code)


def test_only_the_functions_of_the_module_itself_are_entries():
    found = entries(parse(CODE), "run")
    assert [function.lineno for function in found] == [6]
    assert parameters(found[0]) == ["data", "extra", "least"]


def test_relative_imports_are_not_taken_for_libraries():
    assert imported_modules(nodes_in_order(parse(CODE))) == ["pandas", "scipy.stats", ".secrets", "."]


def test_nodes_come_in_the_order_of_the_text_and_by_line():
    nodes = nodes_in_order(parse(CODE))
    places = [(node.lineno, node.col_offset) for node in nodes]
    assert places == sorted(places)
    assert imported_modules(nodes_at(parse(CODE), 3)) == [".secrets"]
    assert nodes_at(parse(CODE), None) == []


def test_calls_are_named_by_the_last_part():
    calls = {called_name(node) for node in nodes_in_order(parse(CODE)) if isinstance(node, ast.Call)}
    assert calls == {"groupby", "agg", "max", "dict"}
    assert called_name(ast.parse("f()()", mode="eval").body) == ""


def test_written_texts_include_the_names_of_keyword_arguments():
    assert written_texts(parse(CODE)) == {"school", "mean", "points", "least", "low"}
