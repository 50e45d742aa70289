"""Points that students give to `ability`: a sheet with the exam's columns, or the two columns of one student."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from understudy.core.files.columns import KNOWN_NAMES, plain
from understudy.core.files.delimited import guess_separator
from understudy.core.files.outcomes import MISSING_WORDS, ROUNDING
from understudy.core.files.source import decode, open_source
from understudy.errors import DataError
from understudy.exams.formats.own_answers import Answers
from understudy.exams.formats.reading import ResponseOptions, responses_in
from understudy.exams.responses import NOT_ANSWERED, Points, Responses, item_spelling

_BINARY = (".xlsx", ".xls", ".parquet")
_ITEMS = (*KNOWN_NAMES["item"], *KNOWN_NAMES["action"])
_POINTS = ("points", "score", "punkte", "puntos", "marks", *KNOWN_NAMES["outcome"])


def read_points(path: Path, exam: Mapping[str, Points]) -> Answers:
    """The points in a file, with the names of the students; how items give points is that of the exam."""
    source = open_source(path)
    if path.suffix.lower() not in _BINARY and b"\0" not in source.data[:4096]:
        text = decode(source, latin=True)
        lines = [line for line in text.lines if line.strip()]
        separator = guess_separator(lines[0]) if lines else ","
        try:
            rows = [
                [cell.strip() for cell in row]
                for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=separator)
            ]
        except csv.Error:
            rows = []
        header = [plain(name) for name in rows[0]] if rows else []
        if len(header) == 2 and header[0] in _ITEMS and header[1] in _POINTS:
            return _own(rows[1:], exam, path.name)
    unit = next((item.unit for item in exam.values() if item != Points()), 1.0)
    maxima = {name: None if item == Points() else item.maximum for name, item in exam.items()}
    return Answers.of(responses_in(path, ResponseOptions(points=unit), maxima, keep_names=True))


def _own(rows: list[list[str]], exam: Mapping[str, Points], file: str) -> Answers:
    """One student's own points: a line per item."""
    known = {item_spelling(name): name for name in exam}
    steps: dict[str, int] = {}
    for number, row in enumerate(rows, 2):
        name = " ".join(row[0].split()) if row else ""
        if len(row) != 2 or name in steps:
            raise DataError(
                f"{file}: line {number} does not have one item and its points, or names an item again.",
                hint="write an item and its points on each line, once each.",
            )
        steps[name] = _steps(
            row[1], exam.get(known.get(item_spelling(name), ""), Points()), f"{file}: line {number}"
        )
    if not steps:
        raise DataError(f"{file}: there is a header but no answer.", hint="write a line per item.")
    points = tuple(exam.get(known.get(item_spelling(name), ""), Points()) for name in steps)
    matrix = np.array([list(steps.values())], dtype=np.int8)
    note = "Read as the points of one student: a line per item."
    return Answers(Responses(matrix, tuple(steps), declared=True, points=points), ("you",), (note,))


def _steps(cell: str, item: Points, place: str) -> int:
    if cell.casefold() in MISSING_WORDS:
        return NOT_ANSWERED
    try:
        steps = float(cell.replace(",", ".")) / item.unit
    except ValueError:
        steps = -1.0
    nearest = round(steps) if abs(steps) <= item.steps + 1 else -1
    if not 0 <= nearest <= item.steps or abs(steps - nearest) > ROUNDING * item.steps:
        raise DataError(
            f"{place} does not hold points from 0 to {item.maximum:g} in steps of {item.unit:g}.",
            hint="write the points as they were given, and leave the cell empty for what was not answered.",
        )
    return nearest
