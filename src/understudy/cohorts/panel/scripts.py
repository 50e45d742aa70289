"""Scripts that generate learners: their provenance, what is wrong with them, and the tables they give."""

from __future__ import annotations

import ast
import builtins
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.schema import Schema
from understudy.errors import DataError, UsageError
from understudy.sandbox.code_review import UnparsableError, called_name, entries, parameters, parse

ENTRY = "generate"
PARAMETERS = ("n", "label", "summary", "rng")
ALLOWED_IMPORTS = ("numpy", "pandas", "scipy", "math", "typing", "dataclasses")
LONGEST_SCRIPT = 100_000

# What each kind of fault asks of the author.
RULES = {
    # Found by reading the answer.
    "NoScript": "the answer has to hold the script in one fenced block that begins with ```python",
    "TooLong": f"the script has to be shorter than {LONGEST_SCRIPT:,} characters",
    "SyntaxError": "the script has to be valid Python 3.11",
    "WrongEntry": f"there has to be one function {ENTRY}({', '.join(PARAMETERS)}) and no other of this name",
    "ForbiddenImport": f"only {', '.join(ALLOWED_IMPORTS)} may be imported",
    "ForbiddenName": "names that reach files, other programs or the interpreter itself are not allowed",
    "ForbiddenAttribute": "attributes that begin with an underscore, or read and write files, are not allowed",
    "ForbiddenString": "strings may not name attributes with two underscores",
    "ForbiddenStatement": "outside functions only a docstring, imports, constants without calls and plain classes "
    "are allowed; no decorators but dataclass and property, no global statements, no special methods",
    "OtherRandomness": "all chance has to come from the argument rng (scipy: random_state=rng)",
    # Found by running the script.
    "TimedOut": "1,000 rows have to take less than 10 seconds",
    "TooMuchMemory": "1,000 rows have to take less than 500 MB",
    "Stopped": "the script did something that the sandbox does not allow",
    # Found in the table.
    "NoTable": "generate has to return a pandas.DataFrame",
    "WrongColumns": "the table has to have exactly the columns of the schema, each once",
    "WrongNumberOfRows": "the table has to have exactly n rows",
    "NotANumber": "every value has to be a finite number",
    "OutOfBounds": "every value has to lie between 0 and the feature's bound",
    "Constant": "the rows have to differ from each other",
    "NotDeterministic": "the same rng state has to give the same table",
}

# Errors that Python and the allowed libraries define; a script may call its own error anything.
_KNOWN_ERRORS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
) | {"LinAlgError", "AxisError", "InvalidIndexError", "MergeError", "EmptyDataError"}


@dataclass(frozen=True)
class ScriptFault:
    """One thing that is wrong with a script, and in which line (None: in no line of its own)."""

    kind: str
    line: int | None = None

    @classmethod
    def of_error(cls, error_type: str | None, line: int | None) -> ScriptFault:
        """The error that a script ended with; a name that is not known is not repeated."""
        return cls(error_type if error_type in _KNOWN_ERRORS and error_type else "Error", line)

    @property
    def advice(self) -> str:
        """What the author has to change."""
        return RULES.get(self.kind, "the script has to run without an error")

    def __str__(self) -> str:
        return self.kind if self.line is None else f"{self.kind} in line {self.line}"


def repair_request(fault: ScriptFault) -> str:
    """The message to a panelist whose script failed: kind and line, never the script's own output."""
    where = "" if fault.line is None else f" in line {fault.line}"
    return (
        f"Your script was not accepted: {fault.kind}{where}. The rule: {fault.advice}.\n"
        "No more can be shown. Answer with the whole corrected script in one fenced Python block.\n"
    )


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?P<language>[A-Za-z0-9+_-]*)[^\n]*\n(?P<code>.*?)^[ \t]*```[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_PYTHON = ("", "python", "py", "python3")
_ENTRY_LINE = re.compile(r"^def generate\b", re.MULTILINE)
# A line that a program has and a letter has not.
_PROGRAM_LINE = re.compile(r"^(?:import \w|from [\w.]+ import |def \w|class \w|\w+ = )", re.MULTILINE)


@dataclass(frozen=True)
class Tokens:
    """How much a panelist read and wrote."""

    read: int = 0
    written: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.read + other.read, self.written + other.written)


NO_TOKENS = Tokens()


@dataclass(frozen=True)
class Script:
    """A generator as a script, with its provenance.

    `author` is the panelist's name in this panel, `model` the model as it names itself, `prompt_hash` the
    SHA-256 of the exact text it was given (empty when we did not give it one), `cost` in US dollars
    (None: no price is known). `suggestions` from validation were in that text: no epsilon covers them.
    """

    source: str
    author: str
    model: str
    prompt_hash: str
    written_at: str
    tokens: Tokens = NO_TOKENS
    cost: float | None = None
    suggestions: tuple[str, ...] = ()

    def provenance(self) -> dict[str, Any]:
        """Everything but the source, for the file beside it."""
        return {
            "author": self.author,
            "model": self.model,
            "prompt_sha256": self.prompt_hash or None,
            "written_at": self.written_at or None,
            "tokens_read": self.tokens.read,
            "tokens_written": self.tokens.written,
            "cost_usd": self.cost,
            **({"suggestions": list(self.suggestions)} if self.suggestions else {}),
        }


def extract_code(answer: str) -> str | None:
    """The script in a chat's answer: the last fenced block of Python that defines the entry.

    An answer that is a script and nothing else is taken as it is; None when there is neither.
    """
    answer = answer.replace("\r\n", "\n")
    blocks = [match["code"] for match in _FENCE.finditer(answer) if match["language"].lower() in _PYTHON]
    for code in reversed(blocks):
        if _ENTRY_LINE.search(code):
            return code.strip("\n") + "\n"
    if blocks:
        return blocks[-1].strip("\n") + "\n"
    if "```" not in answer and _ENTRY_LINE.search(answer):
        return answer.strip("\n") + "\n"
    return None


def read_script(path: Path) -> str:
    """The script in a file that a person saved from a chat: the code alone, or the whole answer."""
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}.", hint="save the script that the chat gave, then name it."
        )
    if path.stat().st_size > 4 * LONGEST_SCRIPT:
        raise UsageError(
            f"{path.name} is too long for a script.",
            hint=f"a script has at most {LONGEST_SCRIPT:,} characters.",
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path.name} is not text in UTF-8.", hint="save it as plain text.") from None
    text = text.replace("\r\n", "\n")
    code = extract_code(text)
    if code is not None or ("```" not in text and _PROGRAM_LINE.search(text)):
        _refuse_syntax(path, text, code or text)
    if code is None:
        raise UsageError(
            f"{path.name} holds no function generate(n, label, summary, rng).",
            hint="ask the chat for the script in one fenced block, and save that.",
        )
    return code


def _refuse_syntax(path: Path, text: str, code: str) -> None:
    """Say in which line of the file Python stops understanding; the chat knows the line of its own block."""
    try:
        parse(code)
    except UnparsableError as error:
        if not error.message:
            # Found again by the check of every script, which names it.
            return
        line = error.line or 1
        before = text[: max(text.find(code.strip("\n")), 0)].count("\n")
        raise DataError(
            f"{path.name}: syntax error, line {before + line}.",
            hint="to paste back to the chat: " + repair_request(ScriptFault("SyntaxError", line)).strip(),
        ) from None


def check_names(names: Sequence[str]) -> None:
    """Panelists' names become file names: plain, and different even where case does not count."""
    for name in names:
        # `prompt` and `report` are the folder's own files.
        if not NAME.fullmatch(name) or name.lower() in ("prompt", "report"):
            raise UsageError(
                f"a panelist is called {json.dumps(name)[:80]}.",
                hint="names are letters, digits, - and _, up to 64, and not prompt or report.",
            )
    lowered = [name.lower() for name in names]
    for name in lowered:
        if lowered.count(name) > 1:
            raise UsageError(f"two panelists are called '{name}'.", hint="give each its own name.")


# A value may pass its bound by rounding; the cohort cuts it to the bound.
_ROUNDING = 1e-6
# Fewer different rows than this share are copies of a few learners, not a group.
_LEAST_DIFFERENT = 0.1


def read_table(content: bytes, schema: Schema, n_rows: int) -> NDArray[np.float64] | ScriptFault:
    """The values (rows by the schema's columns) of a table in Arrow's format, or what is wrong with it."""
    import polars as pl

    try:
        read = pl.read_ipc if content.startswith(b"ARROW1") else pl.read_ipc_stream
        frame = read(io.BytesIO(content))
    # polars panics on some damaged files, and its panic is not an Exception.
    except (Exception, pl.exceptions.PanicException):
        return ScriptFault("NoTable")
    columns = schema.columns()
    # A label or a running number that came along does no harm; anything else is not what was asked.
    extra = (
        set(frame.columns) - set(columns) - {schema.label, "label", "learner", "index", "__index_level_0__"}
    )
    if extra or set(columns) - set(frame.columns):
        return ScriptFault("WrongColumns")
    if frame.height != n_rows:
        return ScriptFault("WrongNumberOfRows")
    chosen = frame.select(columns)
    if not all(kind.is_numeric() for kind in chosen.dtypes):
        return ScriptFault("NotANumber")
    values = chosen.cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
    if not np.isfinite(values).all():
        return ScriptFault("NotANumber")
    highs = np.repeat(schema.highs, schema.n_weeks)
    if values.size and (values.min() < -_ROUNDING or (values > highs * (1 + _ROUNDING)).any()):
        return ScriptFault("OutOfBounds")
    values = np.asarray(np.clip(values, 0.0, highs), dtype=np.float64)
    if n_rows > 1 and len(np.unique(values, axis=0)) < max(2, _LEAST_DIFFERENT * n_rows):
        return ScriptFault("Constant")
    return values


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


def check_script(source: str) -> tuple[ScriptFault, ...]:
    """All faults that a reviewer should see, in the order of the lines."""
    if len(source) > LONGEST_SCRIPT:
        return (ScriptFault("TooLong"),)
    try:
        tree = parse(source)
    except UnparsableError as error:
        return (ScriptFault("SyntaxError", error.line),)
    try:
        found = {*_structure(tree), *_contents(tree)}
    except RecursionError:
        return (ScriptFault("SyntaxError"),)
    return tuple(sorted(found, key=lambda fault: (fault.line or 0, fault.kind)))


def _structure(tree: ast.Module) -> Iterator[ScriptFault]:
    found = entries(tree, ENTRY)
    if len(found) != 1:
        yield ScriptFault("WrongEntry", found[1].lineno if found else None)
    for entry in found:
        names = entry.args
        if tuple(parameters(entry)) != PARAMETERS or names.vararg or names.kwarg or names.kwonlyargs:
            yield ScriptFault("WrongEntry", entry.lineno)
    yield from _at_import(tree.body)


def _at_import(body: list[ast.stmt]) -> Iterator[ScriptFault]:
    """What runs when a module or a class is made, and is more than definitions and constants."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.ClassDef):
            if statement.bases or statement.keywords:
                yield ScriptFault("ForbiddenStatement", statement.lineno)
            yield from _at_import(statement.body)
            continue
        docstring = (
            place == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
        plain = isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Pass)
        if not (docstring or plain or _is_constant(statement)):
            yield ScriptFault("ForbiddenStatement", statement.lineno)


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
    names = all(isinstance(target, ast.Name) and target.id != ENTRY for target in targets)
    return names and (value is None or not any(isinstance(part, calls) for part in ast.walk(value)))


def _contents(tree: ast.Module) -> Iterator[ScriptFault]:
    for node in ast.walk(tree):
        line = getattr(node, "lineno", None)
        for kind in _kinds(node):
            yield ScriptFault(kind, line)


def _kinds(node: ast.AST) -> Iterator[str]:
    """What is wrong with a node by itself."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        if not _import_allowed(node):
            yield "ForbiddenImport"
        of_random = isinstance(node, ast.ImportFrom) and node.module == "numpy.random"
        if of_random and any(alias.name not in _TYPES_OF_RNG for alias in node.names):
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
        drawn = isinstance(node.func, ast.Attribute) and called_name(node) == "rvs"
        if drawn and not any(keyword.arg == "random_state" for keyword in node.keywords):
            yield "OtherRandomness"
    elif isinstance(node, ast.FunctionDef):
        defaults = [
            *node.args.defaults,
            *(default for default in node.args.kw_defaults if default is not None),
        ]
        special = node.name.startswith("__") and node.name not in ("__init__", "__post_init__")
        if (
            special
            or not all(map(_decorator_allowed, node.decorator_list))
            or any(isinstance(part, ast.Call) for default in defaults for part in ast.walk(default))
        ):
            yield "ForbiddenStatement"
    elif isinstance(node, ast.ClassDef):
        if not all(map(_decorator_allowed, node.decorator_list)):
            yield "ForbiddenStatement"
    elif isinstance(node, ast.Global | ast.AsyncFunctionDef | ast.Await):
        yield "ForbiddenStatement"


def _decorator_allowed(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        if node.args or not all(isinstance(keyword.value, ast.Constant) for keyword in node.keywords):
            return False
        node = node.func
    return isinstance(node, ast.Name) and node.id in ("dataclass", "property", "staticmethod", "classmethod")


def _import_allowed(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif node.level or node.module is None:
        return False
    elif node.module == "__future__":
        return True
    else:
        # What is taken out of a module may be a module, or a reader of files.
        modules = [f"{node.module}.{alias.name}" for alias in node.names]
    parts = [name.split(".") for name in modules]
    return all(part[0] in ALLOWED_IMPORTS and not any(map(_attribute_forbidden, part[1:])) for part in parts)


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
