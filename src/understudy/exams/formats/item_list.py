"""read_items(): the public list of items, with the points and the choices that are declared for them."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from understudy.core.files.source import decode, open_source
from understudy.errors import UsageError
from understudy.exams.formats.sheet_header import Items

# More choices than an item has; what is meant is something else.
_MOST_CHOICES = 1000
# What the columns of a table may be called.
_COLUMNS = {
    "item": frozenset(
        (
            *("item", "task", "question", "exercise", "aufgabe", "frage", "exercice", "tâche"),
            *("pregunta", "ejercicio", "tarea", "ítem"),
        )
    ),
    "points": frozenset(
        (
            *(
                "points",
                "marks",
                "max points",
                "maximum",
                "punkte",
                "punktzahl",
                "max. punkte",
                "maximalpunktzahl",
            ),
            *("point", "barème", "puntos", "puntuación"),
        )
    ),
    "choices": frozenset(
        (
            *("choices", "options", "auswahl", "antwortmöglichkeiten", "auswahlmöglichkeiten", "optionen"),
            *("choix", "opciones", "alternativas"),
        )
    ),
}


@dataclass(frozen=True)
class ItemList:
    """Items by name with the points that can be reached (None: right or wrong).

    `guesses` are the chances of a right answer without knowing it, one per item; None where choices were not declared.
    """

    points: Items
    guesses: tuple[float, ...] | None = None


def read_items(path: Path) -> ItemList:
    """The list in a file: a name per line, or a table with `item` and with `points`, `choices` or both."""
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}.",
            hint="give a file with one item's name per line.",
            code="no-such-file",
            settings=("items",),
        )
    lines = [line.strip() for line in decode(open_source(path), latin=True).lines]
    first = lines[0].casefold() if lines else ""
    mark = next((mark for mark in ",;\t" if _is_table(_fields(first, mark))), None)
    if mark is None:
        _refuse_other_table(lines, path)
        found = ItemList({name: None for name in lines if name})
    else:
        titles = _fields(first, mark)
        rows = list(csv.DictReader(lines[1:], titles, delimiter=mark))
        names = [(row["item"] or "").strip() for row in rows]
        points = [_points(row.get("points"), path, number) for number, row in enumerate(rows, 2)]
        guesses = [_guess(row.get("choices"), path, number) for number, row in enumerate(rows, 2)]
        if len(set(names)) < len(rows) or "" in names:
            raise UsageError(
                f"{path.name}: a line has no item, or an item is there twice.",
                hint="give every item one line.",
                code="bad-items",
                settings=("items",),
            )
        found = ItemList(
            dict(zip(names, points, strict=True)), tuple(guesses) if "choices" in titles else None
        )
    if not found.points:
        raise UsageError(f"{path} lists no item.", hint="give one item's name per line.", settings=("items",))
    return found


def _fields(line: str, mark: str) -> list[str]:
    """The titles in a line, each of the known columns under its own name, once."""
    titles = [field.strip(' "') for field in line.split(mark)]
    for name, words in _COLUMNS.items():
        if (
            name not in titles
            and (place := next((at for at, title in enumerate(titles) if title in words), -1)) >= 0
        ):
            titles[place] = name
    return titles


def _refuse_other_table(lines: list[str], path: Path) -> None:
    """Refuse a table by other names: its lines would be taken for the names of items."""
    filled = [line for line in lines if line]
    for mark in ";\t,":
        rows = [line.split(mark) for line in filled]
        numbers = [_is_number(row[-1]) for row in rows]
        if len(rows) > 1 and all(len(row) > 1 for row in rows) and all(numbers[1:]) and not numbers[0]:
            raise UsageError(
                f"{path.name} looks like a table, but its first line does not name the columns of a table of items.",
                hint="call the columns item and points, or item and choices; a list has one item's name per line.",
                code="bad-items",
                settings=("items",),
            )


def _is_number(text: str) -> bool:
    return text.strip().replace(",", ".", 1).replace(".", "", 1).isdigit()


def _is_table(titles: list[str]) -> bool:
    return "item" in titles and ("points" in titles or "choices" in titles)


def _points(written: str | None, path: Path, number: int) -> float | None:
    """The points of an item; none where the cell is empty, as for an item of 0 and 1."""
    text = (written or "").strip().replace(",", ".")
    try:
        points = float(text) if text else None
    except ValueError:
        points = 0.0
    if points is not None and not 0 < points < math.inf:
        raise UsageError(
            f"{path.name}, line {number}: the points of an item are a number above 0.",
            hint="write the points that can be reached, or leave the cell empty for an item of 0 and 1.",
            code="bad-items",
            settings=("items",),
        )
    return points


def _guess(written: str | None, path: Path, number: int) -> float:
    """One of so many choices; 0 where the answer is written, and so the cell empty or 0."""
    text = (written or "").strip()
    choices = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else -1 if text else 0
    if choices and not 2 <= choices <= _MOST_CHOICES:
        raise UsageError(
            f"{path.name}, line {number}: the choices of an item are a number from 2 on.",
            hint="write how many answers there are to choose from, or leave the cell empty where answers are written.",
            code="bad-items",
            settings=("items",),
        )
    return 1.0 / choices if choices else 0.0
