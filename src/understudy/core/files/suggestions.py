"""Suggestions for columns that were not found: by their names first, then by content, as a question to the user.

Nothing is read by a suggestion: the error says what was seen, by positions, and which settings would declare it.
A column's name is told only where the first row is a header for sure; otherwise it may be a learner's value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from types import MappingProxyType

import polars as pl

from understudy.core.files.columns import KNOWN_NAMES, plain
from understudy.core.files.outcomes import (
    TRUE_WORDS,
    PassMark,
    is_missing,
    read_outcomes,
    seem_low_grades,
    words_of,
)
from understudy.core.files.people.identifiers import KINDS_OF_LEARNERS, identifies_one_person
from understudy.core.files.tables import ParquetTable, Table
from understudy.core.files.times import DateOrder, read_each_time
from understudy.errors import DataError

# How much of two names is alike, from 0 to 1: "studnt" is a "student". What a user typed is meant to be some column, so
# that less is enough there.
LEAST_SIMILAR, LEAST_SIMILAR_TO_ASKED = 0.8, 0.6
# A part of a name that was typed has so many letters, and a name that is only similar to a known one.
_SHORTEST_PART, _SHORTEST_SIMILAR = 4, 5
# Words around the one that says what a column is: "Name des Schülers", "student no".
_FILLERS = frozenset(
    (
        *("the", "of", "id", "ids", "name", "nr", "no", "num", "number", "nummer", "code", "key", "kürzel"),
        *("der", "die", "das", "des", "le", "la", "les", "de", "du", "el", "los", "del", "numéro", "número"),
    )
)
# In this order: what an outcome or a time is can be seen, and a learner repeats in blocks.
_EASIEST_FIRST = ("outcome", "time", "learner", "action")
# Rows in a row with one value, on average, from which on a column may be sorted by its values.
_SHORTEST_BLOCK = 2
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
    others = () if looked.has_time else ("time",)
    wanted = lacking if asked else [role for role in _EASIEST_FIRST if role in (*lacking, *others)]
    # By name first, whatever the role: a column that is called like an action is not a learner by its content.
    for look in (looked.by_asked,) if asked else (looked.by_name, looked.by_content):
        for role in wanted:
            if role not in found and (seen := look(asked or role)) is not None:
                found[role] = seen
                looked.taken.add(seen[0])
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
        suggested=sorted(found),
        **({"undecided": ["outcome"]} if "outcome" in lacking and looked.has_several_outcomes else {}),
        **({"declare": names} if whole else {}),
    )


WORDS = "words for right and wrong"
_NUMBERS = "numbers, which need one from which on they are a success"
_LOW_GRADES = (
    "numbers like grades from 1 to 6, which need one up to which they are a success if 1 is the best"
)


class _Look:
    """A look at a table's columns; `taken` are those that have a role."""

    def __init__(self, table: Table, taken: set[int]) -> None:
        self.taken = taken
        self._table = table
        self._names = table.names
        sample = table.sample()
        self._cells = {int(name): sample[name].drop_nulls() for name in sample.columns}
        self._cells = {at: cells.filter(~is_missing(cells)) for at, cells in self._cells.items()}
        self._kinds = {at: kind_of(cells) for at, cells in self._cells.items()}
        self.seems_headless = False
        self.has_header = isinstance(table, ParquetTable) or self._looks_headed()

    @property
    def has_time(self) -> bool:
        """Whether a column has the times already."""
        return any(plain(self._names[at]) in KNOWN_NAMES["time"] for at in self.taken)

    def by_asked(self, asked: str) -> tuple[int, str] | None:
        """The column whose name is most like the one that was asked for."""
        return self._most_alike(
            {at: _likeness(plain(self._names[at]), plain(asked)) for at in self._free()},
            LEAST_SIMILAR_TO_ASKED,
        )

    def by_name(self, role: str) -> tuple[int, str] | None:
        """The column with a name that is most like a known one of the role; for a learner, what identifies people."""
        scores = {
            at: max(_similarity(_core(self._names[at]), known) for known in KNOWN_NAMES[role])
            for at in self._free()
        }
        found = self._most_alike(scores, LEAST_SIMILAR)
        if found is None and role == "learner" and self.has_header:
            kinds = {at: identifies_one_person(self._names[at], self._cells[at]) for at in self._free()}
            # Of several kinds the one that is the surest; of a kind, the first column.
            for kind in KINDS_OF_LEARNERS:
                if at := [at for at in kinds if kinds[at] == kind]:
                    return at[0], f"it seems to hold a person's {kind}"
        return found

    def _most_alike(self, scores: Mapping[int, float], least: float) -> tuple[int, str] | None:
        best = max(scores, key=lambda at: scores[at], default=None)
        if not self.has_header or best is None or scores[best] < least:
            return None
        return best, "its name" if scores[best] == 1 and least == LEAST_SIMILAR else "a similar name"

    def by_content(self, role: str) -> tuple[int, str] | None:
        """A column that looks like the role's, and why."""
        free = self._free()
        if role == "outcome":
            two = self._of_two_values()
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
        if role == "learner":
            # A file that is sorted by learners has each of them in one block. What is called otherwise is not one, and
            # where columns of different blocks could be meant, none is.
            blocks = {at: self._blocks(at) for at in free if not self._is_called_otherwise(at)}
            sizes = {n_blocks for n_blocks in blocks.values() if n_blocks}
            if len(sizes) != 1:
                return None
            return next(at for at in blocks if blocks[at]), "it repeats its values row after row"
        repeating = [at for at in free if self._kinds[at] in ("text", "numbers") and self._repeats(at)]
        if len(repeating) > 1 and any(self._kinds[at] == "text" for at in repeating):
            repeating = [at for at in repeating if self._kinds[at] == "text"]
        return (repeating[0], "it repeats its values") if len(repeating) == 1 else None

    @property
    def has_several_outcomes(self) -> bool:
        """Whether more than one column could hold outcomes, so that none is suggested."""
        return len(self._of_two_values()) > 1

    def _of_two_values(self) -> list[int]:
        return [at for at in self._free() if self._kinds[at] in ("0 and 1", WORDS)]

    def _free(self) -> list[int]:
        return [at for at in self._cells if at not in self.taken and len(self._cells[at])]

    def _repeats(self, at: int) -> bool:
        return 1 < self._cells[at].n_unique() <= len(self._cells[at]) / 1.5

    def _blocks(self, at: int) -> int:
        """The number of blocks of a column that is sorted by its values; 0 for other columns."""
        if self._kinds[at] not in ("text", "numbers"):
            return 0
        cells = self._whole[str(at)]
        n_blocks = cells.rle_id().n_unique()
        sorted_by_it = 1 < n_blocks == cells.n_unique() <= len(cells) / _SHORTEST_BLOCK
        return n_blocks if sorted_by_it else 0

    def _is_called_otherwise(self, at: int) -> bool:
        """Whether the name says that a column is something other than a learner: an action, an event, points."""
        if not self.has_header:
            return False
        name, core = plain(self._names[at]), _core(self._names[at])
        others = (known for role, names in KNOWN_NAMES.items() if role != "learner" for known in names)
        return any(_similarity(core, known) >= LEAST_SIMILAR for known in others) or any(
            part in name for part in _SCORES
        )

    @cached_property
    def _whole(self) -> pl.DataFrame:
        """All rows as text: of a sample, the next one may be another learner's."""
        frame = self._table.read({str(at): at for at in self._cells}).drop("line")
        return frame.select(pl.all().cast(pl.String, strict=False).str.strip_chars())

    def _looks_headed(self) -> bool:
        """Whether the first row is a header for sure: no name is like its cells, or is one of them."""
        typed = [at for at, kind in self._kinds.items() if kind != "text" and len(self._cells[at])]
        self.seems_headless = any(self._is_like_its_cells(at) for at in typed)
        if not typed or self.seems_headless:
            return False
        return not any((self._whole[str(at)] == self._names[at]).any() for at in self._cells)

    def _is_like_its_cells(self, at: int) -> bool:
        """Whether a name could be a cell of its column."""
        name = self._names[at].strip().casefold()
        if name != "ok" and (kind := kind_of(pl.Series([name]))) != WORDS:
            return kind != "text"
        if self._kinds[at] != WORDS:
            return name.isdigit()
        # "Richtig" above ja and nein is a name: nobody writes two words for right. Above falsch alone it may be a
        # learner's outcome.
        words = set(words_of(self._cells[at]))
        return name in words or not words & set(TRUE_WORDS)


def kind_of(cells: pl.Series) -> str:
    """What cells look like: 0 and 1, words for right and wrong, times, numbers or text."""
    if not len(cells):
        return "text"
    if read_outcomes(cells).is_not_null().all():
        return "0 and 1" if cells.str.strip_chars().is_in(["0", "1"]).all() else WORDS
    if _are_times(cells):
        return "times"
    return "numbers" if read_outcomes(cells, PassMark(0, 0)).is_not_null().all() else "text"


def _are_times(cells: pl.Series) -> bool:
    """Whether every cell is a time, in one order of day and month."""
    times = read_each_time(cells)
    # Most columns of text end here: the order changes nothing but how a date in numbers is read.
    if not cells.filter(times.is_null()).str.contains(r"^\s*\d{1,2}[./-]\d").all():
        return False
    return not times.null_count() or any(
        not read_each_time(cells, order=order).null_count() for order in DateOrder
    )


def _likeness(name: str, asked: str) -> float:
    if min(len(name), len(asked)) >= _SHORTEST_PART and (asked in name or name in asked):
        return 1.0
    return SequenceMatcher(None, name, asked).ratio()


def _core(name: str) -> str:
    """What a name is about, without the words around it."""
    words = (word.casefold() for word in re.findall(r"[^\W\d_]+|\d+", name))
    return "".join(word for word in words if word not in _FILLERS)


def _similarity(core: str, known: str) -> float:
    """How similar a name is to a known one; a part of it is not enough, since a candidate is not a date."""
    if core == known:
        return 1.0
    if min(len(core), len(known)) < _SHORTEST_SIMILAR or core[0] != known[0]:
        return 0.0
    return SequenceMatcher(None, core, known).ratio()
