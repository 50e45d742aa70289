"""Values that submitted code writes out: numbers and texts with which it may compare what a learner has.

The code is parsed and never run. A value that code computes from its data, or hides behind a hash, is not found.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.sandbox.code_review import UnparsableError, called_name, parse

Value = float | str

# Of values past these some are left out, and a person is asked.
MOST_VALUES = 200
# Longer texts are no labels.
MOST_LETTERS = 100
# Operations on constants are worked out as deep as this, and powers and shifts up to these sizes.
MOST_NESTED = 10
MOST_POWER = 64
LARGEST = 10**18
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
    *("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "clip", "maximum", "minimum"),
    *("startswith", "endswith", "contains", "match", "fullmatch", "search", "find", "count"),
}
# Words of code that asks for missing values. Other code may well fail on one, and says nothing by it.
_MISSING = {
    *("isna", "isnull", "notna", "notnull", "is_null", "is_not_null", "isnan", "is_nan", "hasnans"),
    *("dropna", "fillna", "skipna", "nan_policy", "count", "isfinite", "null_count", "first_valid_index"),
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
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
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
    named: tuple[str, ...] = ()
    """Columns that the code names."""
    asks_for_missing: bool = False
    """Whether it may ask for missing values."""
    complete: bool = True
    """Whether these are all values."""


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
    return WrittenValues(
        tuple(pairs)[:MOST_VALUES],
        tuple(tested)[:MOST_VALUES],
        tuple(values)[:MOST_VALUES],
        named=tuple(dict.fromkeys(name for node in nodes for name in reader.named(node))),
        asks_for_missing=any(_word(node) in _MISSING for node in nodes),
        complete=len(pairs) <= MOST_VALUES and len(values) <= MOST_VALUES,
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

    def named(self, node: ast.AST) -> Iterator[str]:
        """The column that a node names. In a condition that is written as a text, it is a name."""
        if isinstance(word := _word(node), str) and word in self._columns:
            yield word

    def _named(self, tree: ast.AST) -> Iterator[str]:
        for node in ast.walk(tree):
            yield from self.named(node)
            if isinstance(node, ast.Name):
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


def _word(node: ast.AST) -> Any:
    """What a node is called, or the text that it is."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.keyword):
        return node.arg
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _value(node: ast.AST) -> Iterator[Value]:
    """The number or text that an expression of constants is; a text that reads as a number is both."""
    value = _constant(node)
    if not isinstance(value, str):
        if value is not None:
            yield float(value)
        return
    yield value
    try:
        read = float(value)
    except ValueError:
        return
    if math.isfinite(read):
        yield read


def _constant(node: ast.AST, depth: int = 0) -> int | float | str | None:
    """What an expression of constants is; None if it is none, or too large or long."""
    value: Any = None
    if depth > MOST_NESTED:
        return None
    if isinstance(node, ast.Constant):
        value = None if isinstance(node.value, bool) else node.value
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
        inner = _constant(node.operand, depth + 1)
        if inner is not None:
            value = _worked_out(_SIGNS[type(node.op)], inner)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _constant(node.left, depth + 1), _constant(node.right, depth + 1)
        if left is None or right is None:
            return None
        if isinstance(left, str) or isinstance(right, str):
            # Texts are put together, and not repeated or filled in.
            allowed = isinstance(node.op, ast.Add)
        else:
            grows = isinstance(node.op, ast.Pow | ast.LShift)
            allowed = not grows or (abs(left) <= LARGEST and abs(right) <= MOST_POWER)
        if allowed:
            value = _worked_out(_ARITHMETIC[type(node.op)], left, right)
    if isinstance(value, str):
        return value if len(value) <= MOST_LETTERS else None
    # Numbers that no column has are not followed further: what is worked out stays small.
    return value if isinstance(value, int | float) and abs(value) < 1e300 else None


def _worked_out(operation: Callable[..., Any], *values: Any) -> Any:
    try:
        return operation(*values)
    except (ArithmeticError, TypeError, ValueError):
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
