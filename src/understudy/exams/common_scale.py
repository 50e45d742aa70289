"""Which releases can be put on one scale: the same model of answers, and enough items in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DataError, RefusedError
from understudy.exams.released_file import Difficulties

# With fewer, a difference between items cannot be distinguished from one between schools.
FEWEST_COMMON = 3


def check_comparable(schools: dict[str, Difficulties]) -> list[str]:
    """Refuse releases that have no common scale; return notes on what to read with care."""
    _refuse_twice(schools)
    for name, school in schools.items():
        if not any(item.standard_error is not None for item in school.items):
            raise RefusedError(
                f"the difficulties of {name} have no standard errors (method {school.provenance.get('method')}), so "
                "they cannot be weighed against others.",
                hint="release them with an epsilon, or fit them by the method marginal.",
                code="no-standard-errors",
            )
        if not isinstance(school.provenance.get("learners"), int) or school.provenance["learners"] < 2:
            raise DataError(
                f"the file of {name} does not say how many learners it is about.", code="damaged-file"
            )
        if any(item.credits or item.discrimination != 1.0 for item in school.items):
            raise RefusedError(
                f"{name} has items with points, or with discriminations of their own.",
                hint="only items that are right or wrong, and distinguish learners alike, can be combined.",
                code="other-model",
            )
    _refuse_other_models(schools)
    return _notes(schools)


def _refuse_twice(schools: dict[str, Difficulties]) -> None:
    seen: dict[str, str] = {}
    for name, school in schools.items():
        # Two releases do not agree in every digit, with noise.
        marks = [*school.own_cards, repr([(item.name, item.difficulty) for item in school.items])]
        if (mark := next((mark for mark in marks if mark in seen), None)) is not None:
            raise RefusedError(
                f"{seen[mark]} and {name} hold the same release: its learners would count twice.",
                hint="give each release once, and a combined file without its parts.",
                code="same-release",
            )
        seen |= dict.fromkeys(marks, name)


# What must be the same for one item to be one thing, in words.
_DECLARED = {
    "discrimination_spread": "how much items differ in discrimination",
    "pass_share": "from which points on an answer is right",
    "model": "the model of answers",
}


def _refuse_other_models(schools: dict[str, Difficulties]) -> None:
    first: dict[tuple[str, str], tuple[str, Any]] = {}
    for name, school in schools.items():
        declared = {("", key): school.provenance.get(key) for key in _DECLARED}
        declared |= {("guess", item.name): item.guess for item in school.items}
        for (kind, key), value in declared.items():
            if value is None:
                continue
            other, earlier = first.setdefault((kind, key), (name, value))
            if earlier != value:
                what = f"the chance of guessing '{key}'" if kind else _DECLARED[key]
                raise RefusedError(
                    f"{what} was declared as {earlier} in {other} and as {value} in {name}, so their difficulties mean "
                    "different things.",
                    hint="release both with the same declaration.",
                    code="other-model",
                )


def _notes(schools: dict[str, Difficulties]) -> list[str]:
    notes = []
    missing = {school.provenance.get("missing") for school in schools.values()}
    if len(missing) > 1:
        notes.append(
            "Missing answers count as wrong in some files and as not asked in others: where many are missing, items "
            "look harder in the former."
        )
    if without := [name for name, school in schools.items() if school.provenance.get("totals") is None]:
        notes.append(
            f"Without noisy totals in their files, the standard errors of these are taken as they are: "
            f"{', '.join(without)}."
        )
    return notes


def refuse_unlinked(names: list[str], common: NDArray[np.bool_]) -> None:
    """Each school must share enough items with the others, and common items must link all schools."""
    few = {name: int(n) for name, n in zip(names, common.sum(axis=0), strict=True) if n < FEWEST_COMMON}
    if few:
        which = ", ".join(f"{name} has {n}" for name, n in few.items())
        raise RefusedError(
            f"a common scale needs {FEWEST_COMMON} items in common, with the same names and with more signal than "
            f"noise; {which}.",
            hint="give common items the same name in every school.",
            code="few-common-items",
        )
    linked = common.T.astype(np.int64) @ common.astype(np.int64) > 0
    reached = {0}
    while new := {int(other) for school in reached for other in np.flatnonzero(linked[school])} - reached:
        reached |= new
    if len(reached) < len(names):
        apart = [name for place, name in enumerate(names) if place not in reached]
        raise RefusedError(
            f"no common items link {', '.join(apart)} with {names[0]}.",
            hint="combine them in two files, or add a school that shares items with both.",
            code="not-linked",
        )
