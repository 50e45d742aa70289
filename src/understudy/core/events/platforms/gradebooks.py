"""Gradebooks of Moodle and Canvas: a row per learner and a column per task, as a table of learners.

They hold no events. What a platform adds is taken out: rows that are nobody's (the points possible, how grades are
posted, the test student), texts of teachers, marks for a missing grade. Each row is judged by its own cells. Columns
keep their names, so that a plan can declare them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from understudy.core.files.columns import plain
from understudy.core.files.tables import FrameTable, Table
from understudy.core.files.words import counted
from understudy.errors import DataError

# The last word of a column of Moodle, in brackets, as `plain` writes it; those of grades in points, and in percent.
_POINTS = ("real", "punkte", "brut", "brute", "punteggio", "echt")
_PERCENT = ("percentage", "prozentsatz", "prozent", "pourcentage", "porcentaje", "percentuale", "porcentagem")
_LETTER = ("letter", "note", "noten", "lettre", "letra", "letterale")
_FEEDBACK = ("feedback", "retroalimentación", "comentários", "informacjazwrotna")
_DOWNLOADED = ("lastdownloadedfromthiscourse", "derniertéléchargementdepuiscecours")
_FIRST_NAMES = ("firstname", "vorname", "prénom", "prenom", "nombre", "nome", "voornaam", "imię")
_LAST_NAMES = (
    *(
        "lastname",
        "surname",
        "nachname",
        "nom",
        "nomdefamille",
        "apellidos",
        "apellido",
        "cognome",
        "achternaam",
    ),
    *("apelido", "sobrenome", "nazwisko"),
)
_KIND = re.compile(r"\((?P<kind>[^()]*)\)$")
# Canvas: an assignment has its number behind it, and a total of all or of a group of assignments one of these words.
_ASSIGNMENT = re.compile(r"\(\d+\)$")
_TOTAL = re.compile(
    r"\b(?:current|final|override) (?P<kind>score|points|grade)(?: \([^()]*\))?$", re.IGNORECASE
)
_POINTS_POSSIBLE = "points possible"
_MISSING = ("", "-", "–", "n/a", "ex", "(read only)")
_NUMBER = r"^([+-]?\d+)(?:[.,](\d+))?\s*%?$"


@dataclass(frozen=True, repr=False)
class GradeTable(FrameTable):
    """A gradebook as a table of learners; `maxima` are those that its header or its row of points states."""

    maxima: Mapping[str, float] = field(default_factory=dict)


def looks_like_moodle_gradebook(names: Sequence[str]) -> bool:
    """Whether a header is that of Moodle's grade export: names of people, and grades of a kind in brackets."""
    plains = [plain(name) for name in names]
    people = any(name in _FIRST_NAMES for name in plains) and any(name in _LAST_NAMES for name in plains)
    return people and any(_kind(name) in (*_POINTS, *_PERCENT, *_LETTER) for name in names)


def looks_like_canvas_gradebook(names: Sequence[str]) -> bool:
    """Whether a header is that of Canvas's export of grades: learner, numbers, section, assignments."""
    plains = [plain(name) for name in names]
    people = plains[:1] == ["student"] or plains[:2] == ["lastname", "firstname"]
    grades = any(_ASSIGNMENT.search(name) or _TOTAL.search(name) for name in names)
    return people and {"id", "section"} <= set(plains) and grades


def refuse_gradebook(names: Sequence[str], file: str) -> None:
    """Refuse a gradebook where a log of events is wanted."""
    platform = (
        "Moodle"
        if looks_like_moodle_gradebook(names)
        else "Canvas"
        if looks_like_canvas_gradebook(names)
        else None
    )
    if platform is not None:
        raise DataError(
            f"{file}: this is a gradebook of {platform}, with a row per learner and a column per task, and not a log "
            "of events.",
            hint="`difficulties` reads points of tasks from such a sheet; beside a log of events it can be the table "
            "of learners.",
            code="gradebook",
            settings=("learners",),
            platform=platform,
        )


def tidy_moodle_gradebook(table: Table) -> GradeTable:
    """Grades as numbers, without the teachers' texts, and the full name by which Moodle's log knows a learner."""
    plains = [plain(name) for name in table.names]
    kinds = [_kind(name) for name in table.names]
    left_out = [at for at, kind in enumerate(kinds) if kind in _FEEDBACK or plains[at] in _DOWNLOADED]
    cells = table.read({str(at): at for at in range(len(table.names)) if at not in left_out})
    grades = {at for at, kind in enumerate(kinds) if kind in (*_POINTS, *_PERCENT, *_LETTER)}
    first = next(at for at, name in enumerate(plains) if name in _FIRST_NAMES)
    last = next(at for at, name in enumerate(plains) if name in _LAST_NAMES)
    full_name = pl.concat_str(_stripped(first), _stripped(last), separator=" ", ignore_nulls=True)
    maxima = {table.names[at]: 100.0 for at, kind in enumerate(kinds) if kind in _PERCENT}
    notes = (
        [f"{counted(len(left_out), 'column')} with feedback or times of a download left out."]
        if left_out
        else []
    )
    return _grade_table(table, cells.with_columns(full_name.alias("User full name")), grades, maxima, notes)


def tidy_canvas_gradebook(table: Table) -> GradeTable:
    """Grades as numbers with the points possible, without rows that are no learner's; the id is `user_id`."""
    plains = [plain(name) for name in table.names]
    cells = table.read({str(at): at for at in range(len(table.names))})
    grades = {at for at, name in enumerate(table.names) if _ASSIGNMENT.search(name) or _TOTAL.search(name)}
    number = _stripped(plains.index("id"))
    student = _stripped(0).str.to_lowercase().fill_null("")
    points = cells.filter(number.is_null() & (student == _POINTS_POSSIBLE))
    if points.height > 1:
        raise DataError(
            f"{table.file}: the points possible are on {points.height} rows.",
            hint="keep one of them.",
            code="points-possible-twice",
        )
    maxima = {name: 100.0 for name in table.names if _is_share(name)}
    if points.height:
        possible = points.select(_number(at).alias(str(at)).cast(pl.Float64) for at in sorted(grades)).row(0)
        stated = zip(sorted(grades), possible, strict=True)
        maxima |= {table.names[at]: maximum for at, maximum in stated if maximum is not None}
    if plains[0] == "student":
        tester = student == "student, test"
    else:
        tester = (student == "student") & (_stripped(1).str.to_lowercase() == "test")
    learners = cells.filter(number.is_not_null() & ~tester.fill_null(False))
    notes = [
        f"{counted(cells.height - learners.height, 'row')} of no learner left out: points possible, posting of grades, "
        "the test student."
    ]
    if learners.height == 0:
        raise DataError(f"{table.file}: the gradebook has no learner.", hint="check the export.")
    return _grade_table(table, learners, grades, maxima, notes, {plains.index("id"): "user_id"})


def _grade_table(
    table: Table,
    cells: pl.DataFrame,
    grades: Collection[int],
    maxima: Mapping[str, float],
    notes: Sequence[str],
    renamed: Mapping[int, str] | None = None,
) -> GradeTable:
    """The cells, named by position or, where they are new, by name; grades become numbers where they are some."""
    columns = [name for name in cells.columns if name != "line"]
    names = [
        (renamed or {}).get(int(column), table.names[int(column)]) if column.isdecimal() else column
        for column in columns
    ]
    frame = cells.select(
        _grade(int(column)).alias(column) if column.isdecimal() and int(column) in grades else pl.col(column)
        for column in columns
    )
    return GradeTable(
        table.file,
        tuple(names),
        frame,
        cells["line"],
        (*table.notes, *notes),
        table.guesses,
        table.place,
        maxima,
    )


def _kind(name: str) -> str:
    found = _KIND.search(name)
    return "" if found is None else plain(found["kind"])


def _is_share(name: str) -> bool:
    """Whether a total of Canvas is a percentage."""
    found = _TOTAL.search(name)
    return found is not None and found["kind"].lower() == "score"


def _stripped(at: int) -> pl.Expr:
    return pl.col(str(at)).cast(pl.String).str.strip_chars().replace("", None)


def _number(at: int) -> pl.Expr:
    """A number as Python writes it: with a point, and without the sign of percent; null if it is none."""
    text = pl.col(str(at)).cast(pl.String).str.strip_chars()
    parts = text.str.extract_groups(_NUMBER)
    whole, rest = parts.struct.field("1"), parts.struct.field("2")
    return pl.when(rest.is_null()).then(whole).otherwise(pl.concat_str(whole, pl.lit("."), rest))


def _grade(at: int) -> pl.Expr:
    """A grade as a number, else as it is (a letter), null where it is missing."""
    text = _stripped(at)
    return pl.when(~text.str.to_lowercase().is_in(_MISSING)).then(pl.coalesce(_number(at), text))
