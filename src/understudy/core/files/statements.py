"""JSON text to a list of statements, whether they stand in lines, in an array or in a store's answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from understudy.core.files.columns import counted
from understudy.core.files.source import Text
from understudy.errors import DataError


def load_statements(text: Text) -> tuple[Iterable[tuple[int, Any]], str]:
    """The statements, each with a number, and what the number counts: "line" or "statement".

    Lines are read one by one, so that a long file is never in memory as objects.
    """
    content = text.data.decode()
    begin = content.lstrip()[:1]
    if begin == "{":
        lines = [(number, line) for number, line in enumerate(content.split("\n"), start=1) if line.strip()]
        # A first line that is whole JSON: lines it is, and a later line that is not is an error.
        if len(lines) > 1 and _is_json(lines[0][1]):
            return ((number, _load(line, text.name, number)) for number, line in lines), "line"
    whole = _load(content, text.name, None)
    if isinstance(whole, dict):
        # A learning record store answers with the statements under this key.
        whole = whole["statements"] if isinstance(whole.get("statements"), list) else [whole]
    if not isinstance(whole, list):
        raise DataError(
            f"{text.name}: the JSON is neither an object nor an array of statements.",
            hint="give one statement per line, or an array of statements.",
        )
    return enumerate(whole, start=1), "statement"


VOIDED = "http://adlnet.gov/expapi/verbs/voided"


class Voiding:
    """Which statements others take back, found while the statements go by.

    A voiding statement (xAPI 2.3.2) may come before or after the one that it names. It is nobody's
    activity itself, and cannot be voided.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, list[int]] = {}
        self._taken_back: set[str] = set()

    def keeps(self, statement: dict[str, Any], number: int) -> bool:
        """Note the statement; False if it is a voiding one, of which nothing else is to be read."""
        verb, target = statement.get("verb"), statement.get("object")
        if isinstance(verb, dict) and verb.get("id") == VOIDED:
            if isinstance(target, dict) and isinstance(target.get("id"), str):
                self._taken_back.add(target["id"].strip().lower())
            return False
        if isinstance(statement.get("id"), str):
            self._numbers.setdefault(statement["id"].strip().lower(), []).append(number)
        return True

    def voided(self) -> list[int]:
        """The numbers of the statements that were taken back; complete when all have gone by."""
        return [number for one in self._taken_back for number in self._numbers.get(one, ())]

    def notes(self) -> list[str]:
        """A sentence with a count, if there is anything to say."""
        n_voided = len(self.voided())
        return [f"{counted(n_voided, 'voided statement')} left out."] if n_voided else []


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _load(content: str, file: str, line: int | None) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        place = line if line is not None else error.lineno
        raise DataError(
            f"{file}: the JSON breaks off or is wrong on line {place}, column {error.colno}.",
            hint="export the statements again, one per line or as one array.",
        ) from None
    except (ValueError, RecursionError):
        raise DataError(
            f"{file}: the JSON{'' if line is None else f' on line {line}'} is nested too deeply "
            "or holds a number that is too long.",
            hint="an xAPI statement needs neither; check the export.",
        ) from None
