"""Checks of the form: names, texts, shape and size can carry a learner as well as numbers can.

What form the answer has must be known without the real data: from the trial on synthetic data, from the code as
it stands, or from texts that the custodian declared. What the answer says within that form may still depend on who
is there: texts that change when single learners are left out are held.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from understudy.desk.checks import Check
from understudy.desk.disclosure.influences import Influences
from understudy.desk.policies import Policy
from understudy.desk.results import Results, Table

MOST_NAMED = 20


def shape(
    influences: Influences,
    answer: Results,
    trial: Results,
    known: set[str],
    policy: Policy,
) -> Check:
    """Whether names, texts and numbers of rows are those of the trial, of the code or declared."""
    unknown = sum(1 for text in answer.texts if text not in known)
    if unknown:
        # Not quoted: the text itself may be a learner's.
        return Check(
            "shape",
            "fail",
            f"{unknown} names or texts of the answer are neither in the trial on synthetic data nor in the code nor "
            "declared: texts can carry a learner's value.",
        )
    if odd := list(_odd_values(answer.values, trial.values)):
        return Check(
            "shape",
            "fail",
            f"The answer has another shape than the trial on synthetic data: {odd[0]}. A shape can carry a learner's "
            "value.",
        )
    odd_tables = [
        one
        for name, table in answer.tables.items()
        for one in _odd_table(name, table, trial.tables.get(name))
    ]
    if odd_tables:
        return Check(
            "shape",
            "fail",
            f"The answer has another shape than the trial on synthetic data: {odd_tables[0]}. A shape can carry a "
            "learner's value.",
        )
    check = _who_changes_it(influences, policy)
    if check is not None:
        return check
    new_rows = [name for name, table in answer.tables.items() if _n_rows(trial, name) != len(table.rows)]
    if new_rows:
        return Check(
            "shape",
            "review",
            f"The table '{new_rows[0]}' has other rows than in the trial; all of their names were declared "
            "or are in the "
            "code.",
        )
    return Check(
        "shape", "pass", "Names, texts and numbers of rows are those of the trial on synthetic data."
    )


def known_texts(trial: Results, code: str, declared_texts: Sequence[str] = ()) -> set[str]:
    """What can be said without the real data."""
    return set(trial.texts) | literals(code) | set(declared_texts)


def shown_names(names: Sequence[str], answer: Results, known: set[str]) -> tuple[str, ...]:
    """Names for the reasons of checks: by its place where a number's name holds a text that is not known."""
    unknown = {text for text in answer.texts if text not in known}
    if not unknown:
        return tuple(names)
    return tuple(
        f"number {place} of the answer" if any(text in name for text in unknown) else name
        for place, name in enumerate(names, 1)
    )


def size(answer: Results, policy: Policy) -> Check:
    """Numbers and bytes in one answer."""
    n_numbers, n_bytes = len(answer.numbers), answer.n_bytes
    if n_numbers > policy.most_numbers:
        return Check(
            "size",
            "fail",
            f"The answer has {n_numbers:,} numbers; the policy allows {policy.most_numbers:,}.",
        )
    if n_bytes > policy.most_output_bytes:
        return Check(
            "size",
            "fail",
            f"The answer has {n_bytes:,} bytes; the policy allows {policy.most_output_bytes:,}.",
        )
    return Check("size", "pass", f"The answer has {n_numbers:,} numbers and {n_bytes:,} bytes.")


def literals(code: str) -> set[str]:
    """All texts that are written out in the code, and names of keyword arguments, as in dict(mean=1.0)."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
    return found


def _who_changes_it(influences: Influences, policy: Policy) -> Check | None:
    probes = influences.probes
    forms = probes.forms[1 : 1 + probes.n_blocks]
    n_other = int(((forms != 0) & (forms >= 0)).sum())
    if not n_other:
        return None
    who = f"when one of {n_other} learners is left out" if n_other > 1 else "when one learner is left out"
    if n_other < policy.minimum_learners:
        return Check(
            "shape",
            "fail",
            f"Names, texts or the number of entries change {who}: they tell about single learners.",
        )
    return Check(
        "shape",
        "review",
        f"Names, texts, their order or the number of entries depend on the data: they change {who}.",
    )


def _odd_values(value: Any, trial: Any, name: str = "result") -> Iterator[str]:
    """Where two values differ in shape; keys that are not in the trial are texts, and were looked at as such."""
    if isinstance(value, dict) and isinstance(trial, dict):
        for key, part in value.items():
            if key in trial:
                yield from _odd_values(part, trial[key], f"{name} / {key}" if name != "result" else key)
            elif isinstance(part, list | dict):
                yield f"'{key}' was not in the trial"
    elif isinstance(value, list) and isinstance(trial, list):
        if len(value) != len(trial):
            yield f"'{name}' has {len(value)} entries, and had {len(trial)}"
        for part, other in zip(value, trial, strict=False):
            yield from _odd_values(part, other, name)
    elif _what(value) != _what(trial) and None not in (value, trial):
        yield f"'{name}' is a {_what(value)}, and was a {_what(trial)}"


def _odd_table(name: str, table: Table, trial: Table | None) -> Iterator[str]:
    if trial is None:
        yield f"the table '{name}' was not in the trial"
        return
    if table.columns != trial.columns:
        yield f"the table '{name}' has other columns"
    keys = [tuple(cell for cell in row if isinstance(cell, str)) for row in table.rows]
    by_name = all(keys) and len(set(keys)) == len(keys)
    if len(table.rows) != len(trial.rows) and not by_name:
        yield f"the table '{name}' has {len(table.rows)} rows, and had {len(trial.rows)}"


def _n_rows(results: Results, name: str) -> int:
    return len(results.tables[name].rows) if name in results.tables else -1


def _what(value: Any) -> str:
    if isinstance(value, dict):
        return "dict"
    if isinstance(value, list):
        return "list"
    if isinstance(value, str):
        return "text"
    return "number"
