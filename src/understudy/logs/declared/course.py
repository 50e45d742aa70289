"""The course: public names of actions, their order, and which of them have an outcome, as a custodian lists them."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from understudy.core.files.outcomes import PassMark, read_outcomes
from understudy.core.files.source import decode, open_source
from understudy.errors import DataError, UsageError


@dataclass(frozen=True)
class Course:
    """What a custodian lists about actions: their names, perhaps in order with chapters, and which have outcomes."""

    actions: tuple[str, ...]
    chapters: tuple[int, ...] | None = None
    with_outcome: tuple[str, ...] | None = None


def read_course(path: Path) -> Course:
    """The names of actions in a file, each once; or what a table says about them.

    A table has a first line with `action` and one of `chapter`, `position` and `outcome`, between commas, semicolons or
    tabs. Chapters are in the order in which they first appear, actions of a chapter by position; `outcome` says whether
    attempts at an action have one.
    """
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}.", hint="give a file with one name per line.", code="no-such-file"
        )
    text = decode(open_source(path), latin=True).data.decode()
    first = text.split("\n", 1)[0].strip().lower()
    mark = next((mark for mark in ",;\t" if "action" in first.split(mark)), ",")
    titles = [title.strip() for title in first.split(mark)]
    if "action" not in titles or not {"chapter", "position", "outcome"} & set(titles):
        names = [line.strip() for line in text.splitlines()]
        return Course(tuple(name for name in dict.fromkeys(names) if name))
    rows = list(csv.DictReader(text.splitlines()[1:], titles, delimiter=mark))
    course: dict[str, tuple[int, float]] = {}
    chapters: dict[str, int] = {}
    graded: list[str] = []
    for number, row in enumerate(rows, 2):
        name = (row["action"] or "").strip()
        chapter = chapters.setdefault((row.get("chapter") or "").strip(), len(chapters))
        position = (row.get("position") or "").strip().replace(",", ".")
        try:
            place = float(position) if "position" in titles else float(number)
        except ValueError:
            place = math.nan
        outcome = read_outcomes(pl.Series([row.get("outcome") or ""]), PassMark())[0]
        unclear = "outcome" in titles and outcome is None
        if not name or name in course or not math.isfinite(place) or unclear:
            raise DataError(
                f"{path.name}, line {number}: "
                + (
                    "there is no action."
                    if not name
                    else "whether the action has an outcome is not said."
                    if unclear
                    else "the action is there twice, or its position is not a number."
                ),
                hint="give every action one line, with a number for its position, and yes or no for its outcome.",
                code="bad-course",
                settings=("actions_file",),
            )
        course[name] = (chapter, place)
        graded += [name] if outcome else []
    ordered = sorted(course, key=lambda name: course[name])
    in_order = {"chapter", "position"} & set(titles)
    return Course(
        tuple(ordered),
        tuple(course[name][0] for name in ordered) if in_order else None,
        tuple(graded) if "outcome" in titles else None,
    )
