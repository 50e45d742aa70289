"""The trial at home: runs an analysis as a desk will, and explains why it gave nothing.

A desk says no more than the type of an error and its line. Here no data is real, so more can be said.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from understudy.core.engine import progress
from understudy.desk.disclosure.examination import Examination, examine
from understudy.desk.disclosure.probing import MOST_BLOCKS, N_TRIPLES, probe
from understudy.desk.disclosure.replacement import plan_replacements
from understudy.desk.domain.analysis import (
    ENTRY,
    Analysis,
    Answer,
    Failure,
    RunsJobs,
    asks_privately,
    of_a_trial,
)
from understudy.desk.domain.learners import LEARNER, LearnerTable, learner_table, read_table
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.errors import UsageError
from understudy.sandbox.code_review import UnparsableError, imported_modules, nodes_at, parse

if TYPE_CHECKING:
    from understudy.desk.private import Answers, Plan, Schema

_MOST_NAMED = 12


def unusable(code: str, name: str) -> tuple[str, str] | None:
    """Why a file cannot be run at all, and what to do: found without running it."""
    try:
        tree = parse(code)
    except UnparsableError as error:
        if error.message:
            return (
                f"line {error.line or 1} of {name} is not Python: {error.message}.",
                "correct that line, or the one before.",
            )
        return f"{name} cannot be read as Python.", "save it as plain text, and nest less."
    if ENTRY in _defined(tree):
        return None
    others = _named(sorted(_defined(tree)))
    return (
        f"There is no function {ENTRY}(data) in this file (it defines: {others or 'nothing'}).",
        f"put the analysis into def {ENTRY}(data), and end it with return {{...}}.",
    )


def explained(
    failure: Failure, code: str, name: str, columns: Sequence[str], policy: Policy
) -> tuple[str, str]:
    """What went wrong, and what to do."""
    if failure.words:
        return f"the questions of {name} are not taken.", failure.words
    if failure.status == "time":
        return (
            f"{name} took longer than {policy.run_seconds:g} second{'s' * (policy.run_seconds != 1)}, which is what a "
            "desk allows for one run.",
            "it is run some thousand times; make it faster.",
        )
    if failure.status == "empty":
        return f"{ENTRY} returned nothing.", "end it with return {...}."
    nodes = nodes_at(parse(code), failure.error_line)
    if missing := _missing_column(nodes, columns, failure.error_type):
        close = difflib.get_close_matches(missing, columns, n=3)
        return (
            f"line {failure.error_line} of {name} asks for the column '{missing}', which the table does not have.",
            f"did you mean {_named(close)}?" if close else f"it has: {_named(columns)}.",
        )
    if failure.error_type in ("ImportError", "ModuleNotFoundError"):
        modules = _named(imported_modules(nodes)) or "something"
        return (
            f"line {failure.error_line} of {name} imports {modules}, which a desk does not have.",
            f"use what is there: {', '.join(policy.libraries)}.",
        )
    if failure.error_type in ("PermissionError", "FileNotFoundError", "OSError", "ConnectionError"):
        return (
            f"line {failure.error_line} of {name} reads a file or the network ({failure.error_type}); an analysis has "
            "neither.",
            f"all data comes as the parameter of {ENTRY}(data).",
        )
    if asks_privately(code):
        return (
            f"{name} asked nothing: {failure}.",
            "it runs without any data; help(understudy.desk.private.Ask) lists what can be asked.",
        )
    return (
        f"{name} gave no result: {failure}.",
        "at a desk, errors show no more than this. The data is synthetic: to see all of it, call "
        f"{ENTRY}(pandas.read_parquet(...)) in your own Python.",
    )


def _defined(tree: ast.Module) -> set[str]:
    """Names that a file gives to something, whatever it is."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.If | ast.Try | ast.With):
            found |= {
                one.id
                for one in ast.walk(node)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            }
            found |= {one.name for one in ast.walk(node) if isinstance(one, ast.FunctionDef)}
        elif isinstance(node, ast.ImportFrom) and any(
            (one.asname or one.name) == ENTRY for one in node.names
        ):
            found.add(ENTRY)
    return found


def _missing_column(nodes: Sequence[ast.AST], columns: Sequence[str], error_type: str) -> str | None:
    """The column that a line asks for and the table lacks, if that is what the error is about."""
    if error_type == "AttributeError":
        asked = [
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "data"
        ]
        # Only what looks like a column: it may as well be a method that there is not.
        asked = [one for one in asked if difflib.get_close_matches(one, columns, cutoff=0.8)]
    elif error_type == "KeyError":
        # What stands in brackets first; then what is an argument, as in groupby("x").
        parts: list[ast.expr] = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
        for node in nodes:
            if isinstance(node, ast.Call):
                parts += [*node.args, *(keyword.value for keyword in node.keywords)]
        texts = [one.value for part in parts for one in ast.walk(part) if isinstance(one, ast.Constant)]
        asked = [text for text in texts if isinstance(text, str)]
    else:
        return None
    return next((one for one in asked if one not in columns), None)


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# Checks that take longer than this are left to the desk.
MOST_SECONDS = 300.0
# A sandbox runs so many at once.
_AT_ONCE = 2


@dataclass(frozen=True)
class Tried:
    """What the code gave on the synthetic table, and what the checks would say if that table were the real one."""

    answer: Answer
    seconds: float
    """Of one run."""
    n_runs: int
    """Of a desk, for the checks and the price."""
    examination: Examination | None = None
    """None without an answer, and if the runs for it would take too long here."""

    @property
    def desk_minutes(self) -> float:
        """About how long a desk will need."""
        return self.n_runs * self.seconds / _AT_ONCE / 60


def try_privately(
    code: str, table: LearnerTable, schema: Schema, sandbox: RunsJobs
) -> tuple[Plan, Answers] | Failure:
    """What code asks for, and the answers from the synthetic table, as the desk's trial gives them."""
    # Imported where it is used: it takes a second.
    from understudy.desk.private import propose
    from understudy.desk.private.recording import answer_trial, not_taken, record

    asked = record(code, sandbox)
    if isinstance(asked, Failure):
        return asked
    try:
        plan = propose(asked.questions, schema, table.n_learners, asked.epsilon)
    except UsageError as error:
        return not_taken(error)
    return plan, answer_trial(plan, code, table)


def synthetic_table(path: Path, learner: str = LEARNER) -> LearnerTable:
    """The synthetic table of a file."""
    return learner_table(read_table(path, path.name), np.random.default_rng(0), learner=learner)


def try_out(code: str, table: LearnerTable, policy: Policy, sandbox: RunsJobs) -> Tried:
    """Run the code as the desk's trial does; if that was quick, without each synthetic learner, for the checks."""
    plan = plan_replacements(code, table, table, policy, np.random.default_rng(0))
    n_checks = 1 + min(table.n_learners, MOST_BLOCKS) + 4 * N_TRIPLES + plan.n_runs
    begun = monotonic()
    first = of_a_trial(Analysis.seeded(code).answer(sandbox, table.whole()))
    tried = Tried(first, monotonic() - begun, n_checks + policy.n_shadows)
    if isinstance(first, Failure) or n_checks * tried.seconds / _AT_ONCE > MOST_SECONDS:
        return tried
    with progress.task("Running without single learners", n_checks) as task:
        answer, probes = probe(
            Analysis.seeded(code), table, sandbox, np.random.default_rng(0), lambda *_: task.advance(), plan
        )
    if not isinstance(answer, Results) or probes is None:
        return Tried(answer, tried.seconds, tried.n_runs)
    found = examine(
        answer,
        probes,
        answer,
        code,
        policy,
        n_learners=table.n_learners,
        declared_texts=table.texts,
    )
    return Tried(answer, tried.seconds, tried.n_runs, found)
