"""Suggestions for columns that were not found: by similar names and by content, as a question to the user.

Nothing is read by a suggestion: the error says what was seen, by positions, and which settings would declare it.
A column's name is told only where the first row is a header for sure; otherwise it may be a learner's value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from types import MappingProxyType

import polars as pl

from understudy.core.files.columns import KNOWN_NAMES, plain
from understudy.core.files.outcomes import PassMark, is_missing, read_outcomes, seem_low_grades, words_of
from understudy.core.files.tables import ParquetTable, Table
from understudy.core.files.times import read_each_time
from understudy.errors import DataError

# How much of two names is alike, from 0 to 1: "studnt" is a "student", "date" is no "rate". What a user typed is meant
# to be some column, so that less is enough there.
LEAST_SIMILAR, LEAST_SIMILAR_TO_ASKED = 0.8, 0.6
_SHORTEST_PART = 4
# In this order: what an outcome or a time is can be seen, and a learner repeats in blocks.
_EASIEST_FIRST = ("outcome", "time", "learner", "action")
# What names of numbers say that are points, grades or percentages; parts of plain names.
_SCORES = (
    "score",
    "grade",
    "point",
    "mark",
    "percent",
    "punkt",
    "prozent",
    "note",
    "zensur",
    "nota",
    "%",
    "result",
    "outcome",
)


def with_suggestions(
    error: DataError,
    table: Table,
    settings: Mapping[str, str] = MappingProxyType({}),
    mark: PassMark = PassMark(),  # noqa: B008 (frozen)
) -> DataError:
    """The same error with what the columns look like, and in `declare` the settings that would name them.

    `settings` maps a role to its parameter if that has another name; `mark` is what was declared about numbers.
    """
    lacking: Sequence[str] = error.fields.get("roles", ())
    if not lacking:
        return error
    looked = _Look(table, set(error.fields["taken"]))
    asked = error.fields.get("column")
    found: dict[str, tuple[int, str]] = {}
    # Times put rows in order, so that a command is better with them; they are not missed where there are none.
    wanted = lacking if asked else [role for role in _EASIEST_FIRST if role in (*lacking, "time")]
    for role in wanted:
        place = looked.by_name(asked or role, () if asked else KNOWN_NAMES[role])
        if place is not None:
            found[role] = place, "a similar name"
        elif asked is None and (seen := looked.by_content(role)) is not None:
            found[role] = seen
        if role in found:
            looked.taken.add(found[role][0])
    hint = error.hint
    if found:
        places = sorted((place, role, why) for role, (place, why) in found.items())
        words = [
            f"column {place + 1} is the {settings.get(role, role)} ({why})" for place, role, why in places
        ]
        hint = f"perhaps {', '.join(words)}; {hint}"
        if looked.seems_headless:
            hint = f"the first line seems to hold data: write the columns' names above it; perhaps {', '.join(words)}."
    names = {settings.get(role, role): table.names[place] for role, (place, _) in found.items()}
    if "outcome" in found and found["outcome"][1] in (_NUMBERS, _LOW_GRADES) and mark.points is None:
        names[mark.setting] = mark.to_fill_in(found["outcome"][1] == _LOW_GRADES)
    whole = looked.has_header and set(lacking) <= set(found)
    return type(error)(
        error.message,
        hint=hint,
        code=error.code,
        settings=error.settings,
        **error.fields,
        **({"declare": names} if whole else {}),
    )


_WORDS = "words for right and wrong"
_NUMBERS = "numbers, which need one from which on they are a success"
_LOW_GRADES = (
    "numbers like grades from 1 to 6, which need one up to which they are a success if 1 is the best"
)


class _Look:
    """A look at a table's columns; `taken` are those that have a role."""

    def __init__(self, table: Table, taken: set[int]) -> None:
        self.taken = taken
        self._names = table.names
        sample = table.sample()
        self._cells = {int(name): sample[name].drop_nulls() for name in sample.columns}
        self._cells = {at: cells.filter(~is_missing(cells)) for at, cells in self._cells.items()}
        self._kinds = {at: _kind(cells) for at, cells in self._cells.items()}
        self.seems_headless = False
        self.has_header = isinstance(table, ParquetTable) or self._looks_headed(table)

    def by_name(self, asked: str, known: Sequence[str]) -> int | None:
        """The column whose name is most like the one that was asked for, or like a known one."""
        if not self.has_header:
            return None
        wanted = (plain(asked), *known)
        scores = {at: max(_likeness(plain(self._names[at]), name) for name in wanted) for at in self._free()}
        best = max(scores, key=lambda at: scores[at], default=None)
        least = LEAST_SIMILAR if known else LEAST_SIMILAR_TO_ASKED
        return best if best is not None and scores[best] >= least else None

    def by_content(self, role: str) -> tuple[int, str] | None:
        """A column that looks like the role's, and why."""
        free = self._free()
        if role == "outcome":
            two = [at for at in free if self._kinds[at] in ("0 and 1", _WORDS)]
            if len(two) == 1:
                return two[0], f"it holds only {self._kinds[two[0]]}"
            numbers = [
                at
                for at in free
                if self._kinds[at] == "numbers"
                and self.has_header
                and any(part in plain(self._names[at]) for part in _SCORES)
            ]
            if two or len(numbers) != 1:
                return None
            low = seem_low_grades(self._cells[numbers[0]], self._names[numbers[0]])
            return numbers[0], _LOW_GRADES if low else _NUMBERS
        if role == "time":
            times = [at for at in free if self._kinds[at] == "times"]
            return (times[0], "it holds times") if len(times) == 1 else None
        repeating = [at for at in free if self._kinds[at] in ("text", "numbers") and self._repeats(at)]
        if not repeating:
            return None
        if role == "learner":
            best = max(repeating, key=lambda at: (self._run(at), -at))
            return best, "it repeats its values row after row"
        if len(repeating) > 1 and any(self._kinds[at] == "text" for at in repeating):
            repeating = [at for at in repeating if self._kinds[at] == "text"]
        return (repeating[0], "it repeats its values") if len(repeating) == 1 else None

    def _free(self) -> list[int]:
        return [at for at in self._cells if at not in self.taken and len(self._cells[at])]

    def _repeats(self, at: int) -> bool:
        return 1 < self._cells[at].n_unique() <= len(self._cells[at]) / 1.5

    def _run(self, at: int) -> float:
        """How many rows a value stays, on average."""
        cells = self._cells[at]
        return len(cells) / max(1, cells.rle_id().n_unique())

    def _looks_headed(self, table: Table) -> bool:
        """Whether the first row is a header for sure: no name is like its cells, or is one of them."""
        typed = [at for at, kind in self._kinds.items() if kind != "text" and len(self._cells[at])]
        alike = [at for at in typed if self._name_is_like_cells(at)]
        self.seems_headless = bool(alike)
        if not typed or alike:
            return False
        frame = table.read({str(at): at for at in self._cells}).drop("line")
        return not any(
            (frame[str(at)].cast(pl.String, strict=False).str.strip_chars() == self._names[at]).any()
            for at in self._cells
        )

    def _name_is_like_cells(self, at: int) -> bool:
        """Whether a column's name could be a cell of it; one that is a word for right, as "réussi", has to be there."""
        name = pl.Series([self._names[at]])
        if _kind(name) == _WORDS:
            return bool(words_of(self._cells[at]).is_in(words_of(name).implode()).any())
        return _kind(name) != "text"


def _kind(cells: pl.Series) -> str:
    if not len(cells):
        return "text"
    if read_outcomes(cells).is_not_null().all():
        return "0 and 1" if cells.str.strip_chars().is_in(["0", "1"]).all() else _WORDS
    if not read_each_time(cells).null_count():
        return "times"
    return "numbers" if read_outcomes(cells, PassMark(0, 0)).is_not_null().all() else "text"


def _likeness(name: str, known: str) -> float:
    if min(len(name), len(known)) >= _SHORTEST_PART and (known in name or name in known):
        return 1.0
    return SequenceMatcher(None, name, known).ratio()
