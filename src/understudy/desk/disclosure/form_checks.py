"""Checks of the form of an answer: names, texts, shape and size can carry a learner's value as well as numbers can.

The form of the answer has to be known without the real data: from the trial on synthetic data, from the code, or
from texts that the custodian declared. What the answer states within that form may still depend on the learners:
a label such as "significant", the names of chosen variables, a group that the trial did not have. A text is worth
as much as a number, and cannot be rounded. So texts that depend on a few learners are held back, and only a few
texts may depend on the data at all, each the same without most of the learners. Orders do not leave:
`Results.ordered_like`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.words import counted
from understudy.desk.disclosure.influences import Influences
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, Results, Table
from understudy.sandbox.code_review import UnparsableError, parse, written_texts

# Texts, rows and names that depend on the data: so many may leave if a person agrees, and always fewer than the
# policy's least number of learners. One for each of so many learners would be a list of them.
MAX_DEPENDING_ENTRIES = 5


def shape(
    influences: Influences,
    answer: Results,
    trial: Results,
    known: set[str],
    policy: Policy,
) -> Check:
    """Whether names, texts and numbers of rows are those of the trial, of the code or declared."""
    check = Check.about("shape")
    if answer.is_ambiguous:
        return check.fails(
            "Two entries of the answer have the same name, so that not all could be measured.",
        )
    unknown = sum(1 for text in answer.texts if text not in known)
    if unknown:
        # Not quoted: the text itself may be a learner's.
        return check.fails(
            f"{unknown} names or texts of the answer are neither in the trial on synthetic data nor in the code nor "
            "declared: texts can carry a learner's value.",
        )
    different = list(_different_values(answer.values, trial.values))
    for name, table in answer.tables.items():
        different += _different_table(name, table, trial.tables.get(name))
    if different:
        return check.fails(
            f"The answer has another shape than the trial on synthetic data: {different[0]}. A shape can carry a "
            "learner's value.",
        )
    return _depending(influences, answer, trial, policy) or check.passes(
        "Names, texts and numbers of rows are those of the trial on synthetic data."
    )


def known_texts(trial: Results, code: str, declared_texts: Sequence[str] = ()) -> set[str]:
    """Texts that are known without the real data."""
    return set(trial.texts) | _texts_of(code) | set(declared_texts)


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
    """Numbers, texts and bytes in one answer."""
    check = Check.about("size")
    n_numbers, n_texts, n_bytes = len(answer.numbers), len(answer.text_cells), answer.n_bytes
    rows = " (how many rows a table has counts as one)" if answer.tables else ""
    if n_numbers > policy.most_numbers:
        return check.fails(
            f"The answer has {n_numbers:,} numbers{rows}; the policy allows {policy.most_numbers:,}.",
        )
    if n_texts > policy.most_numbers:
        return check.fails(
            f"The answer has {n_texts:,} texts; the policy allows as many as numbers, {policy.most_numbers:,}.",
        )
    if n_bytes > policy.most_output_bytes:
        return check.fails(
            f"The answer has {n_bytes:,} bytes; the policy allows {policy.most_output_bytes:,}.",
        )
    return check.passes(
        f"The answer has {counted(n_numbers, 'number')}{rows} and {n_bytes:,} bytes.",
    )


def _texts_of(code: str) -> set[str]:
    try:
        return written_texts(parse(code))
    except UnparsableError:
        return set()


def _depending(influences: Influences, answer: Results, trial: Results, policy: Policy) -> Check | None:
    """Decides about the parts of the form that depend on the data: different in the trial, or without a learner."""
    check, probes, least = Check.about("shape"), influences.probes, policy.minimum_learners
    unlike = {name for name, _ in answer.form.items() ^ trial.form.items()}
    n_depending = len(unlike.union(probes.entries))
    if not n_depending:
        return None
    n_behind = _n_behind(influences)
    few = n_behind[(n_behind > 0) & (n_behind < least)]
    if len(few):
        return check.fails(
            f"{len(few)} texts, rows or names of the answer change when one of fewer than {least} learners is left out "
            f"(of {few.min()}, at the least): they give single learners away.",
        )
    alone = probes.differs[1 : 1 + probes.n_blocks]
    if probes.entries and (n_full_only := int((alone.sum(axis=0) > len(alone) / 2).sum())):
        return check.fails(
            f"{n_full_only} texts, rows or names differ between runs with all learners and without most of them: they "
            "are not a finding, but what the code gives when it sees all learners, or chance.",
        )
    most = min(MAX_DEPENDING_ENTRIES, least - 1)
    if n_depending > most:
        return check.fails(
            f"{n_depending} texts, rows or names depend on the data: they are different in the trial, or change "
            f"when a learner is left out. More than {most} could spell out learners one by one.",
        )
    changing = f", and {len(probes.entries)} change when a learner is left out" if probes.entries else ""
    return check.asks(
        f"{n_depending} texts, rows or names depend on the data: {len(unlike)} are different in the trial"
        f"{changing}. See in the code that they are about all learners.",
    )


def _n_behind(influences: Influences) -> NDArray[np.int64]:
    """How many learners change each entry: on their own or, where none does, as two or three of them."""
    probes = influences.probes
    one, two = 1 + probes.n_blocks, 1 + probes.n_blocks + len(probes.pairs)
    found = []
    for differs in probes.differs.T:
        alone = int(differs[1:one].sum())
        pairs, triples = probes.pairs[differs[one:two]], probes.triples[differs[two:]]
        found.append(alone or len(np.unique(pairs)) or len(np.unique(triples)))
    return np.array(found, dtype=np.int64)


def _different_values(value: Any, trial: Any, name: str = "result") -> Iterator[str]:
    """Where two values differ in shape; keys that are not in the trial are texts, and were looked at as such."""
    if isinstance(value, dict) and isinstance(trial, dict):
        for key, part in value.items():
            if key in trial:
                yield from _different_values(part, trial[key], f"{name} / {key}" if name != "result" else key)
            elif isinstance(part, list | dict):
                yield f"'{key}' was not in the trial"
    elif isinstance(value, list) and isinstance(trial, list):
        if len(value) != len(trial):
            yield f"'{name}' has {len(value)} entries, and had {len(trial)}"
        for part, other in zip(value, trial, strict=False):
            yield from _different_values(part, other, name)
    elif _kind_of(value) != _kind_of(trial) and None not in (value, trial):
        yield f"'{name}' is a {_kind_of(value)}, and was a {_kind_of(trial)}"


def _different_table(name: str, table: Table, trial: Table | None) -> Iterator[str]:
    if trial is None:
        yield f"the table '{name}' was not in the trial"
        return
    if table.columns != trial.columns:
        yield f"the table '{name}' has other columns"
    keys = [tuple(cell for cell in row if isinstance(cell, str)) for row in table.rows]
    by_name = all(keys) and len(set(keys)) == len(keys)
    if len(table.rows) != len(trial.rows) and not by_name:
        yield f"the table '{name}' has {len(table.rows)} rows, and had {len(trial.rows)}"


def _kind_of(value: Any) -> str:
    if isinstance(value, dict):
        return "dict"
    if isinstance(value, list):
        return "list"
    if isinstance(value, str):
        return "text"
    return "number"
