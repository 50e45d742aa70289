"""Values that submitted code writes out: numbers and texts with which it may compare what a learner has.

The code is parsed and never run. A value that code computes from its data, or hides behind a hash, is not found.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from understudy.sandbox.code_review import UnparsableError, called_name, parse

Value = float | str

# Of values past these some are left out, and a person is asked.
MOST_VALUES = 200
# Longer texts are no labels.
MOST_LETTERS = 100
# Sums and products of constants are worked out as deep as this.
MOST_NESTED = 10
# Names that stand for names that stand for a column: so many steps are followed.
N_STEPS = 3
_COMPARING_CALLS = {
    "eq",
    "ne",
    "gt",
    "lt",
    "ge",
    "le",
    "isin",
    "between",
    "equals",
    "isclose",
    "query",
    "eval",
}
_KEEPING_CALLS = {
    *(
        "abs",
        "array",
        "asarray",
        "astype",
        "copy",
        "dropna",
        "enumerate",
        "fillna",
        "float",
        "int",
        "items",
        "list",
    ),
    *("round", "sorted", "sort_values", "str", "to_dict", "to_list", "to_numpy", "tolist", "tuple", "zip"),
}
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class WrittenValues:
    """What the code writes out."""

    compared: tuple[tuple[str, Value], ...] = ()
    """A column, and a value that the code compares it with."""
    in_comparisons: tuple[Value, ...] = ()
    """Values that the code compares with something, whatever it is."""
    values: tuple[Value, ...] = ()
    """All values, whatever they are for."""
    complete: bool = True
    """Whether these are all."""


def written_values(code: str, columns: Sequence[str]) -> WrittenValues:
    """The values in the text of the code, and which of them are compared with which column."""
    try:
        tree = parse(code)
    except UnparsableError:
        return WrittenValues(complete=False)
    nodes = [*ast.walk(tree), *(node for text in _conditions(tree) for node in ast.walk(text))]
    reader = _Reader(nodes, frozenset(columns))
    pairs = dict.fromkeys(pair for node in nodes for pair in reader.compared(node))
    tested = dict.fromkeys(value for node in nodes for value in reader.tested(node))
    values = dict.fromkeys(value for node in nodes for value in reader.values(node))
    complete = len(pairs) <= MOST_VALUES and len(values) <= MOST_VALUES
    return WrittenValues(
        tuple(pairs)[:MOST_VALUES], tuple(tested)[:MOST_VALUES], tuple(values)[:MOST_VALUES], complete
    )


class _Reader:
    """Follows names to the columns and values that were assigned to them."""

    def __init__(self, nodes: Sequence[ast.AST], columns: frozenset[str]) -> None:
        self._columns = columns
        self._docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        self._columns_of: dict[str, set[str]] = {}
        self._values_of: dict[str, set[Value]] = {}
        assigned = [(target, value) for node in nodes for target, value in _assigned(node)]
        for _ in range(N_STEPS):
            for target, value in assigned:
                if _keeps_values(value):
                    self._columns_of.setdefault(target, set()).update(self._named(value))
                self._values_of.setdefault(target, set()).update(self._written(value))

    def compared(self, node: ast.AST) -> Iterator[tuple[str, Value]]:
        """Columns and values of one comparison."""
        columns = dict.fromkeys(name for side in _sides(node) for name in self._named(side))
        yield from ((column, value) for column in columns for value in self.tested(node))

    def tested(self, node: ast.AST) -> Iterator[Value]:
        """Values of one comparison."""
        yield from (v for side in _sides(node) for v in self._written(side) if v not in self._columns)

    def values(self, node: ast.AST) -> Iterator[Value]:
        """The value of a node that is one; names of columns are not counted."""
        if id(node) not in self._docstrings:
            yield from (value for value in _value(node) if value not in self._columns)

    def _named(self, tree: ast.AST) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in self._columns:
                yield node.attr
            elif isinstance(node, ast.Constant) and node.value in self._columns:
                yield str(node.value)
            elif isinstance(node, ast.Name):
                # In a condition that is written as a text, a column is a name.
                yield from {node.id} & self._columns
                yield from self._columns_of.get(node.id, ())

    def _written(self, tree: ast.AST) -> Iterator[Value]:
        for node in ast.walk(tree):
            yield from _value(node)
            if isinstance(node, ast.Name):
                yield from self._values_of.get(node.id, ())


def _keeps_values(node: ast.AST) -> bool:
    """Whether an expression holds the values of its columns, and not a statistic of them such as a p value."""
    calls = [called_name(part) for part in ast.walk(node) if isinstance(part, ast.Call)]
    return all(name in _KEEPING_CALLS for name in calls)


def _sides(node: ast.AST) -> list[ast.AST]:
    """What a comparison compares; nothing for other nodes."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and called_name(node) in _COMPARING_CALLS:
        return [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
    return []


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    targets: list[ast.AST] = []
    if isinstance(node, ast.Assign):
        targets, value = [*node.targets], node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value is not None:
        targets, value = [node.target], node.value
    elif isinstance(node, ast.For | ast.comprehension):
        targets, value = [node.target], node.iter
    for target in targets:
        yield from ((name.id, value) for name in ast.walk(target) if isinstance(name, ast.Name))


def _value(node: ast.AST) -> Iterator[Value]:
    """The number or text that an expression of constants is; a text that reads as a number is both."""
    number = _number(node)
    if number is not None:
        yield number
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= MOST_LETTERS:
        yield node.value
        try:
            read = float(node.value)
        except ValueError:
            return
        if math.isfinite(read):
            yield read


def _number(node: ast.AST, depth: int = 0) -> float | None:
    if depth > MOST_NESTED:
        return None
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if abs(value) < 1e300 else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, depth + 1)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _number(node.left, depth + 1), _number(node.right, depth + 1)
        if left is None or right is None:
            return None
        try:
            found = _ARITHMETIC[type(node.op)](left, right)
        except ArithmeticError:
            return None
        return found if math.isfinite(found) else None
    return None


def _conditions(tree: ast.AST) -> Iterator[ast.AST]:
    """Texts that are conditions, as in `query("minutes == 326")`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.replace("`", "").replace("@", "").strip()
            if len(text) <= 10 * MOST_LETTERS and any(sign in text for sign in "<>="):
                try:
                    yield ast.parse(text, mode="eval")
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    continue
