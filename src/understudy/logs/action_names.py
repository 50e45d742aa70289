"""Public names of actions: a list, or a table of the course with chapters and positions."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from understudy.core.files.source import decode, open_source
from understudy.errors import DataError, UsageError


def read_names(path: Path) -> tuple[list[str], list[int] | None]:
    """The names of actions in a file, each once; and where it is a table of the course, their chapters, in its order.

    A table has a first line with `action` and one of `chapter` and `position`, between commas, semicolons or tabs.
    Chapters are in the order in which they first appear, actions of a chapter by position.
    """
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}.", hint="give a file with one name per line.", code="no-such-file"
        )
    text = decode(open_source(path), latin=True).data.decode()
    first = text.split("\n", 1)[0].strip().lower()
    mark = next((mark for mark in ",;\t" if "action" in first.split(mark)), ",")
    titles = [title.strip() for title in first.split(mark)]
    if "action" not in titles or not {"chapter", "position"} & set(titles):
        names = [line.strip() for line in text.splitlines()]
        return [name for name in dict.fromkeys(names) if name], None
    rows = list(csv.DictReader(text.splitlines()[1:], titles, delimiter=mark))
    course: dict[str, tuple[int, float]] = {}
    chapters: dict[str, int] = {}
    for number, row in enumerate(rows, 2):
        name = (row["action"] or "").strip()
        chapter = chapters.setdefault((row.get("chapter") or "").strip(), len(chapters))
        position = (row.get("position") or "").strip().replace(",", ".")
        try:
            place = float(position) if "position" in titles else float(number)
        except ValueError:
            place = math.nan
        if not name or name in course or not math.isfinite(place):
            raise DataError(
                f"{path.name}, line {number}: "
                + (
                    "there is no action."
                    if not name
                    else "the action is there twice, or its position is no number."
                ),
                hint="give every action one line, with a number for its position.",
                code="bad-course",
                settings=("actions_file",),
            )
        course[name] = (chapter, place)
    ordered = sorted(course, key=lambda name: course[name])
    return ordered, [course[name][0] for name in ordered]
