"""Reads a panelist's script before anybody runs it: an aid to the reviewer, not a boundary.

Python cannot be fenced in by looking at it. What stops a hostile script is the sandbox, which
holds nothing but the private summary anyway; these checks catch honest mistakes early and keep
scripts so plain that a person can read them. A finding is a kind and a line: both may be sent back
to whoever wrote the script.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from understudy.cohorts.panel.findings import (
    ALLOWED_IMPORTS,
    ENTRY,
    LONGEST_SCRIPT,
    PARAMETERS,
    Finding,
)

_FORBIDDEN_NAMES = frozenset(
    {
        *("eval", "exec", "compile", "open", "input", "print", "getattr", "setattr", "delattr", "hasattr"),
        *("globals", "locals", "vars", "dir", "breakpoint", "help", "memoryview", "exit", "quit"),
    }
)
_FORBIDDEN_ATTRIBUTES = frozenset(
    {
        *("open", "system", "popen", "eval", "query", "exec", "compile", "fromfile", "tofile", "memmap"),
        *("genfromtxt", "fromregex", "DataSource", "load", "loads", "loadtxt", "save", "savez", "savetxt"),
        *("savez_compressed", "dump", "dumps", "ctypeslib", "ctypes", "f2py", "distutils", "testing"),
        *("lib", "io", "os", "sys", "subprocess", "socket", "builtins", "importlib", "inspect", "modules"),
        *("environ", "pickle", "marshal", "compat", "util", "errors", "plotting", "types", "functools"),
    }
)
# Frames turn into arrays and other frames; every other `to_...` writes something.
_HARMLESS_TO = ("to_numpy", "to_list", "to_dict", "to_frame", "to_series", "to_records", "to_flat_index")
_TYPES_OF_RNG = ("Generator", "BitGenerator")
_CLOCKS = ("now", "today", "utcnow")


def check_script(source: str) -> tuple[Finding, ...]:
    """All that a reviewer should see, in the order of the lines; empty when there is nothing."""
    if len(source) > LONGEST_SCRIPT:
        return (Finding("TooLong"),)
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        return (Finding("SyntaxError", line),)
    try:
        found = {*_structure(tree), *_contents(tree)}
    except RecursionError:
        return (Finding("SyntaxError"),)
    return tuple(sorted(found, key=lambda one: (one.line or 0, one.kind)))


def _structure(tree: ast.Module) -> Iterator[Finding]:
    entries = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == ENTRY]
    if len(entries) != 1:
        yield Finding("WrongEntry", entries[1].lineno if entries else None)
    for entry in entries:
        names = entry.args
        given = tuple(one.arg for one in names.posonlyargs + names.args)
        if given != PARAMETERS or names.vararg or names.kwarg or names.kwonlyargs:
            yield Finding("WrongEntry", entry.lineno)
    yield from _at_import(tree.body)


def _at_import(body: list[ast.stmt]) -> Iterator[Finding]:
    """What runs when a module or a class is made, and is more than definitions and constants."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.ClassDef):
            if statement.bases or statement.keywords:
                yield Finding("ForbiddenStatement", statement.lineno)
            yield from _at_import(statement.body)
            continue
        docstring = (
            place == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
        plain = isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Pass)
        if not (docstring or plain or _is_constant(statement)):
            yield Finding("ForbiddenStatement", statement.lineno)


def _is_constant(statement: ast.stmt) -> bool:
    """Names that are declared, or assigned something computed without a call."""
    value: ast.expr | None
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, ast.AnnAssign):
        targets, value = [statement.target], statement.value
    else:
        return False
    calls = (ast.Call, ast.Await, ast.NamedExpr, ast.Lambda, ast.GeneratorExp, ast.ListComp)
    names = all(isinstance(one, ast.Name) and one.id != ENTRY for one in targets)
    return names and (value is None or not any(isinstance(one, calls) for one in ast.walk(value)))


def _contents(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        line = getattr(node, "lineno", None)
        for kind in _kinds(node):
            yield Finding(kind, line)


def _kinds(node: ast.AST) -> Iterator[str]:
    """What is wrong with a node by itself."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        if not _import_allowed(node):
            yield "ForbiddenImport"
        of_random = isinstance(node, ast.ImportFrom) and node.module == "numpy.random"
        if of_random and any(one.name not in _TYPES_OF_RNG for one in node.names):
            yield "OtherRandomness"
    elif isinstance(node, ast.Name):
        if node.id in _FORBIDDEN_NAMES or node.id.startswith("__"):
            yield "ForbiddenName"
        # Different in every process, outside of the sandbox.
        if node.id in ("hash", "id") and isinstance(node.ctx, ast.Load):
            yield "OtherRandomness"
    elif isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id == "self" and not node.attr.startswith("__")
        if _attribute_forbidden(node.attr.lstrip("_") if own else node.attr):
            yield "ForbiddenAttribute"
        if _other_randomness(node):
            yield "OtherRandomness"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and "__" in node.value:
            yield "ForbiddenString"
    elif isinstance(node, ast.Call):
        drawn = isinstance(node.func, ast.Attribute) and node.func.attr == "rvs"
        if drawn and not any(keyword.arg == "random_state" for keyword in node.keywords):
            yield "OtherRandomness"
    elif isinstance(node, ast.FunctionDef):
        defaults = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
        special = node.name.startswith("__") and node.name not in ("__init__", "__post_init__")
        if (
            special
            or not all(map(_decorator_allowed, node.decorator_list))
            or any(isinstance(part, ast.Call) for one in defaults for part in ast.walk(one))
        ):
            yield "ForbiddenStatement"
    elif isinstance(node, ast.ClassDef):
        if not all(map(_decorator_allowed, node.decorator_list)):
            yield "ForbiddenStatement"
    elif isinstance(node, ast.Global | ast.AsyncFunctionDef | ast.Await):
        yield "ForbiddenStatement"


def _decorator_allowed(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        if node.args or not all(isinstance(one.value, ast.Constant) for one in node.keywords):
            return False
        node = node.func
    return isinstance(node, ast.Name) and node.id in ("dataclass", "property", "staticmethod", "classmethod")


def _import_allowed(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        modules = [one.name for one in node.names]
    elif node.level or node.module is None:
        return False
    elif node.module == "__future__":
        return True
    else:
        # What is taken out of a module may be a module, or a reader of files.
        modules = [f"{node.module}.{one.name}" for one in node.names]
    parts = [name.split(".") for name in modules]
    return all(one[0] in ALLOWED_IMPORTS and not any(map(_attribute_forbidden, one[1:])) for one in parts)


def _attribute_forbidden(name: str) -> bool:
    return (
        name.startswith(("_", "read_", "*"))
        or name in _FORBIDDEN_ATTRIBUTES
        or (name.startswith("to_") and name not in _HARMLESS_TO)
    )


def _other_randomness(node: ast.Attribute) -> bool:
    """`np.random.something`, but for the type of rng; and clocks, which are chance as well."""
    inner = node.value
    return (
        isinstance(inner, ast.Attribute)
        and inner.attr == "random"
        and isinstance(inner.value, ast.Name)
        and inner.value.id in ("np", "numpy")
        and node.attr not in _TYPES_OF_RNG
    ) or node.attr in ("default_rng", "RandomState", *_CLOCKS)
