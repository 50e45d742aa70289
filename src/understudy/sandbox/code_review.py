"""Parses code of researchers and language models, for the modules that review it; nothing here runs it.

What to look for is up to the caller: scripts of a panel, requests to a desk and trials at home each have their
own tables. Reading code never finds everything that it does: only the sandbox holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

Node = ast.expr | ast.stmt | ast.keyword


class UnparsableError(Exception):
    """Code that is not Python; `line` and `message` are empty where it is nested too deeply or is not text."""

    def __init__(self, line: int | None = None, message: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def parse(code: str) -> ast.Module:
    """The tree of the code."""
    try:
        return ast.parse(code)
    except SyntaxError as error:
        raise UnparsableError(error.lineno, error.msg) from None
    except (ValueError, RecursionError, MemoryError):
        raise UnparsableError from None


def nodes_in_order(tree: ast.Module) -> list[Node]:
    """Expressions, statements and keyword arguments in the order of the text."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, Node)]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def nodes_at(tree: ast.Module, line: int | None) -> list[Node]:
    """What stands in a line, or goes over it."""
    return [
        node
        for node in ast.walk(tree)
        if line and isinstance(node, Node) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]


def entries(tree: ast.Module, name: str) -> list[ast.FunctionDef]:
    """Functions of this name that the module itself defines."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]


def parameters(function: ast.FunctionDef) -> list[str]:
    """Names of a function's parameters, without those that take any number of arguments."""
    given = function.args
    return [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def imported_modules(nodes: Iterable[ast.AST]) -> list[str]:
    """Modules that import statements name; those relative to the module itself begin with a dot."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return found


def called_name(node: ast.AST) -> str:
    """The last part of the name that a call names, as `mean` in `data.x.mean()`; empty for anything else."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def written_texts(tree: ast.Module) -> set[str]:
    """All texts that are written out in the code, and names of keyword arguments, as in dict(mean=1.0)."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    return {text for text in texts | names if isinstance(text, str)}
