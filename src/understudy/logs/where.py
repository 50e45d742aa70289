"""Which synthetic learners are wanted: conditions on their declared columns, and how many of each.

`group=B` wants learners of one group; `group=B and score>=50` of those some; `group=A:100, group=B:50` so many of each.
Texts with commas, colons, signs or the word "and" stand in quotation marks.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.words import counted
from understudy.errors import UsageError
from understudy.logs.declared.columns import MISSING, Column, Declared, Kind
from understudy.logs.interactions import Interactions

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_SIGN = re.compile("|".join(_COMPARISONS))
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


@dataclass(frozen=True)
class Condition:
    """What a column of learners has to be."""

    column: str
    sign: str
    value: str

    def check(self, declared: Sequence[Declared]) -> None:
        """Refuse a condition that no learner can fulfil, by what is declared alone."""
        found = next((each for each in declared if each.name == self.column), None)
        if found is None or found.of != "learner":
            of_learners = [each.name for each in declared if each.of == "learner"]
            raise _bad(
                f"'{self.column}' is not a declared column of learners; "
                + (f"there are {', '.join(map(repr, of_learners))}." if of_learners else "there are none.")
            )
        if self.value == MISSING and MISSING not in found.names:
            if self.sign not in ("=", "!="):
                raise _bad(f"column '{self.column}' cannot be {self.sign} {MISSING}.")
        elif found.coded:
            if self.sign not in ("=", "!="):
                raise _bad(f"the categories of '{self.column}' have no order, so {self.sign} says nothing.")
            # Categories that are to be found are not known before a fit.
            if self.value not in found.names and not found.found:
                raise _bad(
                    f"column '{self.column}' cannot be '{self.value}': it has {', '.join(map(repr, found.names))}."
                )
        else:
            self._check_bounds(found, self._number(found))

    def _check_bounds(self, found: Declared, value: float) -> None:
        """Refuse what lies beyond declared bounds; those that are to be found are not known before a fit."""
        if found.bounds is None:
            return
        low, high = found.bounds
        possible = {
            "=": low <= value <= high,
            ">=": value <= high,
            ">": value < high,
            "<=": value >= low,
            "<": value > low,
        }
        if not possible.get(self.sign, True):
            raise _bad(
                f"column '{self.column}' cannot be {self.sign} {self.value}: it lies between {low:g} and {high:g}."
            )

    def matches(self, column: Column) -> NDArray[np.bool_]:
        """Which learners fulfil it; a missing cell fulfils nothing but being missing."""
        declared, cells = column.declared, column.cells
        missing = column.missing
        if self.value == MISSING and MISSING not in declared.names:
            wanted: NDArray[np.bool_] = missing if self.sign == "=" else ~missing
            return wanted
        if declared.coded:
            names = list(declared.names)
            value = float(names.index(self.value)) if self.value in names else np.nan
        else:
            value = self._number(declared)
        fulfilled: NDArray[np.bool_] = ~missing & _COMPARISONS[self.sign](cells, value)
        return fulfilled

    def _number(self, declared: Declared) -> float:
        try:
            if declared.kind is Kind.time:
                moment = datetime.fromisoformat(self.value)
                return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
            return float(self.value)
        except ValueError:
            form = "a time such as 2024-05-31" if declared.kind is Kind.time else "a number"
            raise _bad(
                f"column '{self.column}' is compared with '{self.value}', which is not {form}."
            ) from None

    def __str__(self) -> str:
        return f"{self.column}{self.sign}{self.value}"


@dataclass(frozen=True)
class Wanted:
    """Learners who fulfil all of some conditions, and how many of them; None for as many as are drawn otherwise."""

    conditions: tuple[Condition, ...]
    n_learners: int | None = None

    def matches(self, log: Interactions) -> NDArray[np.bool_]:
        """Which learners of a log fulfil all conditions."""
        columns = {column.declared.name: column for column in log.learner_columns}
        every = np.ones(log.n_learners, dtype=bool)
        for condition in self.conditions:
            every &= condition.matches(columns[condition.column])
        return every

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


@dataclass(frozen=True)
class Where:
    """All that is wanted, in the order in which it was asked for."""

    wanted: tuple[Wanted, ...]

    @classmethod
    def parse(cls, text: str) -> Where:
        """From words such as `group=A:100, group=B:50`."""
        wanted = tuple(_wanted(part) for part in _split(text, ","))
        if len(wanted) > 1 and any(each.n_learners is None for each in wanted):
            raise _bad(
                "where several kinds of learners are wanted, each needs its number, as in group=A:100, group=B:50."
            )
        return cls(wanted)

    def check(self, declared: Sequence[Declared], n_learners: int | None) -> None:
        """Refuse what cannot be had, by what is declared alone."""
        for each in self.wanted:
            for condition in each.conditions:
                condition.check(declared)
        if n_learners is not None and self.wanted[0].n_learners is not None:
            raise UsageError(
                f"{counted(n_learners, 'learner')} and a number of each kind were asked for.",
                hint="give one of them.",
                code="bad-where",
                settings=("where", "n_learners"),
            )


def _wanted(text: str) -> Wanted:
    parts = _split(text, ":")
    if len(parts) > 2 or (len(parts) == 2 and not parts[1].strip().isdecimal()):
        raise _bad(f"'{text.strip()}' ends in no whole number after its colon.")
    n_learners = int(parts[1]) if len(parts) == 2 else None
    if n_learners == 0:
        raise _bad(f"'{text.strip()}' wants no learner.")
    return Wanted(tuple(_condition(part) for part in _split(parts[0], r"\band\b")), n_learners)


def _condition(text: str) -> Condition:
    sign = _SIGN.search(_masked(text))
    name, value = (_plain(text[: sign.start()]), _plain(text[sign.end() :])) if sign else ("", "")
    if sign is None or not name or not value:
        raise _bad(f"'{text.strip()}' is no condition such as group=B or score>=50.")
    return Condition(name, sign.group(), value)


def _split(text: str, pattern: str) -> list[str]:
    """Text between separators that do not stand in quotation marks."""
    places = [match.span() for match in re.finditer(pattern, _masked(text))]
    begins, ends = [0, *(end for _, end in places)], [*(begin for begin, _ in places), len(text)]
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _masked(text: str) -> str:
    return _QUOTED.sub(lambda quoted: "\0" * len(quoted.group()), text)


def _plain(text: str) -> str:
    text = text.strip()
    return text[1:-1] if _QUOTED.fullmatch(text) else text


def _bad(message: str) -> UsageError:
    return UsageError(
        message,
        hint="write conditions as group=B, score>=50 or group=B and score>=50; numbers as group=A:100, group=B:50.",
        code="bad-where",
        settings=("where",),
    )
