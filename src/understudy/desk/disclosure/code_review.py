"""Reads submitted code for the reviewer: what it imports, uses, picks out, and which methods depend on single learners.

The code is parsed and never run. This is an aid: code can be written so that no reading finds what it does. What
holds back results are the checks of what it returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from understudy.desk.domain.analysis import ENTRY
from understudy.desk.domain.policy import Policy
from understudy.sandbox.code_review import (
    UnparsableError,
    called_name,
    entries,
    imported_modules,
    nodes_in_order,
    parameters,
    parse,
)

LEARNER_COLUMN = "learner"
MOST_TEXT = 100
# What pandas offers to pick rows or groups.
_PICKS = {
    "query": "rows by a condition",
    "groupby": "groups",
    "drop": "rows or columns left out",
    "dropna": "rows with missing values left out",
    "drop_duplicates": "repeated rows left out",
    "head": "first rows",
    "tail": "last rows",
    "nlargest": "largest values",
    "nsmallest": "smallest values",
    "sample": "a random sample of rows",
    "isin": "rows with listed values",
    "between": "rows within limits",
    "where": "rows by a condition",
    "mask": "rows by a condition",
    "filter": "rows or groups by a condition",
    "xs": "a part by its label",
    "take": "rows by place",
}
_LINGAM = "its order of causes can turn when a single learner is left out; one answer may give away who is in the data"
_EXTREME = "an extreme is one learner's value"
_QUANTILE = "a quantile is the value of one or two learners; outer ones are close to extremes"
_PLAIN_FIT = "a least-squares fit follows learners with unusual values; a robust fit (RLM, HuberRegressor) does so less"
_NEIGHBOURS = "its predictions can rest on a handful of learners"
# Methods known to be sensitive to single learners (Ito et al. 2026, section IV-E, and by how they are defined).
_SENSITIVE = {
    "DirectLiNGAM": _LINGAM,
    "ICALiNGAM": _LINGAM,
    "VARLiNGAM": _LINGAM,
    "RESIT": _LINGAM,
    **dict.fromkeys(("max", "min", "idxmax", "idxmin", "argmax", "argmin", "amax", "amin", "ptp"), _EXTREME),
    **dict.fromkeys(("nanmax", "nanmin", "nlargest", "nsmallest", "cummax", "cummin"), _EXTREME),
    **dict.fromkeys(("quantile", "percentile", "nanpercentile", "nanquantile", "median"), _QUANTILE),
    "describe": "it returns the smallest and the largest value, which are single learners'",
    "mode": "the most frequent of rare values can be one learner's",
    **dict.fromkeys(("OLS", "ols", "LinearRegression", "lstsq", "polyfit"), _PLAIN_FIT),
    **dict.fromkeys(("KNeighborsClassifier", "KNeighborsRegressor", "NearestNeighbors"), _NEIGHBOURS),
    **dict.fromkeys(("DecisionTreeClassifier", "DecisionTreeRegressor", "LocalOutlierFactor"), _NEIGHBOURS),
    **dict.fromkeys(("SVC", "SVR"), "its support vectors are single learners"),
    "kurtosis": "fourth powers: one unusual learner can decide it",
    "skew": "third powers: one unusual learner can decide it",
}
_HIDES = {
    "exec": "runs text as code, which cannot be read here",
    "eval": "runs text as code, which cannot be read here",
    "compile": "runs text as code, which cannot be read here",
    "__import__": "imports by a text, which cannot be read here",
    "import_module": "imports by a text, which cannot be read here",
    "getattr": "reaches functions by a text, which cannot be read here",
    "globals": "reaches into its own module",
    "open": "opens a file",
    "hash": "a hash can stand for a whole record",
}
_CHANCE = {
    "random",
    "default_rng",
    "RandomState",
    "sample",
    "shuffle",
    "permutation",
    "bootstrap",
    "resample",
}


@dataclass(frozen=True)
class Passage:
    """A place in the code, and what a reviewer should know about it."""

    line: int
    code: str
    remark: str


@dataclass(frozen=True)
class CodeReading:
    """What a reviewer should know before reading the code."""

    imports: tuple[str, ...] = ()
    not_allowed: tuple[str, ...] = ()
    """Imports that the policy does not name."""
    columns: tuple[str, ...] = ()
    """Of the data, that the code names."""
    subsets: tuple[Passage, ...] = ()
    sensitive: tuple[Passage, ...] = ()
    """Methods known to be sensitive to single learners."""
    chance: tuple[int, ...] = ()
    """Lines that use random numbers."""
    warnings: tuple[Passage, ...] = ()
    """What an honest analysis seldom needs."""
    findings: tuple[str, ...] = ()
    """Why it cannot run: a syntax error, no entry."""

    def to_json(self) -> dict[str, Any]:
        """For the store and pages."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> CodeReading:
        """As `to_json` wrote it."""
        known: dict[str, Any] = {
            name: tuple(Passage(**part) if isinstance(part, dict) else part for part in content[name])
            for name in cls.__dataclass_fields__
        }
        return cls(**known)


def read_code(code: str, columns: Sequence[str], policy: Policy) -> CodeReading:
    """What the code imports, names, picks out and how robust it is, by its syntax alone."""
    if len(code.encode(errors="replace")) > policy.most_code_bytes:
        return CodeReading(findings=(f"the code is longer than {policy.most_code_bytes:,} bytes.",))
    try:
        tree = parse(code)
    except UnparsableError as error:
        if error.message:
            return CodeReading(findings=(f"line {error.line or 1} is not Python: {error.message}.",))
        return CodeReading(
            findings=(
                "the code cannot be parsed: it is nested too deeply, or holds bytes that are not text.",
            )
        )
    nodes = nodes_in_order(tree)
    # Texts that stand alone, such as docstrings, do nothing.
    idle = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    telling = [node for node in nodes if not (isinstance(node, ast.Constant) and id(node) in idle)]
    imports = tuple(sorted({name.partition(".")[0] or "." for name in imported_modules(nodes)}))
    not_allowed = tuple(name for name in imports if name not in policy.libraries)
    findings = list(_entry_findings(tree))
    if not_allowed:
        findings.append(f"the policy does not allow the import of {', '.join(not_allowed)}.")
    return CodeReading(
        imports,
        not_allowed,
        tuple(column for column in columns if any(_names(node, column) for node in telling)),
        _once(_subset(node) for node in nodes),
        _once(_sensitive(node) for node in nodes),
        tuple(sorted({node.lineno for node in nodes if _uses_chance(node)})),
        _once(_warning(node) for node in nodes),
        tuple(findings),
    )


def _entry_findings(tree: ast.Module) -> Iterator[str]:
    found = entries(tree, ENTRY)
    if not found:
        yield f"there is no `def {ENTRY}(data)`."
    elif "data" not in parameters(found[-1]) and found[-1].args.kwarg is None:
        yield f"`{ENTRY}` has no parameter `data`."


def _names(node: ast.AST, column: str) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        # A formula or a query names columns within a text.
        return column == node.value or column in _words(node.value)
    return isinstance(node, ast.Attribute) and node.attr == column


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


def _subset(node: ast.AST) -> Passage | None:
    if isinstance(node, ast.Subscript):
        if _is_condition(node.slice):
            return _passage(node, "rows by a condition")
        if isinstance(node.value, ast.Attribute) and node.value.attr in ("loc", "iloc", "at", "iat"):
            return _passage(node, "rows by label or place")
        if isinstance(node.slice, ast.Slice):
            return _passage(node, "a part by place")
    if isinstance(node, ast.Call) and (remark := _PICKS.get(called_name(node))):
        return _passage(node, _picked_columns(node) or remark)
    return None


def _picked_columns(node: ast.Call) -> str:
    """Which columns are picked, where a method that picks rows elsewhere picks columns here."""
    if called_name(node) != "filter":
        return ""
    given = {one.arg: one.value for one in node.keywords}
    if node.args:
        # `data.filter([...])` names columns; `groups.filter(function)` picks groups.
        return "columns by name" if isinstance(node.args[0], ast.List | ast.Tuple) else ""
    axis = given.get("axis")
    if isinstance(axis, ast.Constant) and axis.value in (0, "index"):
        return "rows by label"
    for name, words in (("like", "columns whose name contains"), ("regex", "columns whose name fits")):
        if name in given:
            return f"{words} {ast.unparse(given[name])}"[:MOST_TEXT]
    return "columns by name" if "items" in given else ""


def _is_condition(node: ast.AST) -> bool:
    if isinstance(node, ast.Tuple):
        return any(_is_condition(part) for part in node.elts)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert | ast.Not)
    if isinstance(node, ast.Call):
        return called_name(node) in ("isin", "between", "isna", "notna", "eq", "ne", "gt", "lt", "ge", "le")
    return isinstance(node, ast.Compare)


def _sensitive(node: ast.AST) -> Passage | None:
    if isinstance(node, ast.Call):
        name = called_name(node)
        if name in _SENSITIVE:
            return _passage(node, f"{name}: {_SENSITIVE[name]}.")
    if isinstance(node, ast.Constant) and node.value in (
        "max",
        "min",
        "median",
        "idxmax",
        "idxmin",
        "describe",
    ):
        return _passage(node, f"{node.value}: {_SENSITIVE[node.value]}.")  # in agg(["mean", "max"])
    return None


def _uses_chance(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _CHANCE
    if isinstance(node, ast.Name):
        return node.id in ("random", "rng")
    return isinstance(node, ast.keyword) and node.arg == "random_state"


def _warning(node: ast.AST) -> Passage | None:
    if isinstance(node, ast.Call) and (remark := _HIDES.get(called_name(node))):
        return _passage(node, f"{remark}.")
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        if any(_is_learner(side) for side in sides) and any(isinstance(side, ast.Constant) for side in sides):
            return _passage(node, "picks out learners by their number.")
        if any(_is_size(side) for side in sides) and any(_is_large_number(side) for side in sides):
            return _passage(
                node,
                "compares a number of rows or learners with a fixed one: does it look for the real data?",
            )
    if isinstance(node, ast.Attribute) and node.attr.startswith("__") and node.attr != "__name__":
        return _passage(node, "reaches into Python's own workings.")
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("learner-"):
        return _passage(node, "names a learner by their number.")
    return None


def _is_learner(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == LEARNER_COLUMN
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return bool(node.slice.value == LEARNER_COLUMN)
    return False


def _is_size(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) in ("len", "nunique", "count", "size")
    if isinstance(node, ast.Subscript):
        return _is_size(node.value)
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "size")


def _is_large_number(node: ast.AST) -> bool:
    # Guards such as `len(group) > 2` are ordinary.
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value > 30


def _passage(node: ast.expr, remark: str) -> Passage:
    try:
        text = " ".join(ast.unparse(node).split())
    except RecursionError:
        text = ""
    return Passage(node.lineno, text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…", remark)


def _once(found: Iterator[Passage | None]) -> tuple[Passage, ...]:
    return tuple(dict.fromkeys(one for one in found if one is not None))
