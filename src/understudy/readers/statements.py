"""JSON text to a list of statements, whether they stand in lines, in an array or in a store's answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from understudy.errors import DataError
from understudy.readers.source import Text


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
