"""What the header of an exam sheet says: which columns are items, how many points they give, who the learner is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from understudy.core.files.columns import (
    FULL_NAMES,
    KNOWN_NAMES,
    STUDENT_NUMBERS,
    ColumnChooser,
    Columns,
    plain,
    reject_duplicates,
)
from understudy.core.files.outcomes import FALSE_WORDS, TRUE_WORDS
from understudy.errors import DataError, UsageError

Kind = Literal["learner", "item", "total", "other"]

_NUMBER = r"(?P<{}>\d+(?:[.,]\d+)?)"
_UNIT = r"(?:points?|pts?\.?|p\.?|marks?|punkte?|pkte?\.?|puntos?|punti)"
# "Q1 (15 points)", "Q1 [2 pts]", "Q1 (max. 3)", "Q1 (out of 15)", "Q. 1 /10.00". A number alone in brackets is
# the second version of a task as often as its points; and "1/2" is a task on fractions, hence the space or the
# decimals that a maximum behind a slash has in Moodle's exports.
_MAXIMUM = re.compile(
    rf"""\s*(?:
        [(\[]\s*(?:(?:max(?:imum|\.)?|out\ of|von|sur|/)\s*:?\s*{_NUMBER.format("named")}\s*{_UNIT}?
                  |{_NUMBER.format("counted")}\s*{_UNIT})\s*[)\]]
        |(?<=\s)/\s*{_NUMBER.format("spaced")}
        |/\s*(?P<decimal>\d+[.,]\d+)
    )\s*$""",
    re.IGNORECASE | re.VERBOSE,
)

# As `plain` writes them. These are sums of items, with or without a maximum.
_TOTALS = frozenset(
    (
        *("total", "totals", "totalscore", "totalpoints", "totalmarks", "totalgrade", "grandtotal", "sum"),
        *(
            "sumscore",
            "overall",
            "overallgrade",
            "overallscore",
            "grade",
            "finalgrade",
            "finalscore",
            "score",
        ),
        *("percent", "percentage", "coursetotal", "quiztotal", "testtotal", "examtotal", "points", "average"),
        *("gesamt", "summe", "gesamtpunkte", "gesamtpunktzahl", "punkte", "note", "bewertung", "prozent"),
        *("somme", "notefinale", "moyenne", "suma", "puntuación", "calificación", "nota", "%"),
    )
)
# Facts about people or attempts that are numbers, or may be: unless a maximum is given, they are no items.
_NOT_ITEMS = frozenset(
    (
        *KNOWN_NAMES["time"],
        *("firstname", "lastname", "surname", "givenname", "familyname", "middlename", "fullname", "name"),
        *("emailaddress", "email", "mail", "idnumber", "institution", "department", "city", "country"),
        *("state", "status", "started", "startedon", "completed", "timetaken", "duration", "attempt"),
        *("feedback", "comment", "comments", "rank", "row", "index", "id", "phone", "studentnumber"),
        *("age", "gender", "sex", "group", "class", "section", "school", "cohort", "course", "year"),
        *("semester", "term", "birthday", "dateofbirth", "birthyear", "nationality", "language"),
        *("vorname", "nachname", "emailadresse", "idnummer", "matrikelnummer", "begonnenam", "beendet"),
        *("verbrauchtezeit", "alter", "geschlecht", "gruppe", "klasse", "schule", "jahr", "kommentar"),
        *(
            "prénom",
            "prenom",
            "nom",
            "âge",
            "genre",
            "sexe",
            "groupe",
            "classe",
            "nombre",
            "apellidos",
            "edad",
        ),
    )
)
# Who a row belongs to: two rows of one address are one person, and a name is the last that identifies anybody.
_LEARNERS = (
    *(name for name in KNOWN_NAMES["learner"] if name not in (*STUDENT_NUMBERS, *FULL_NAMES)),
    *("idnumber", *STUDENT_NUMBERS, "idnummer", "id"),
    *("emailaddress", "email", "mail", "emailadresse", *FULL_NAMES, "name"),
)
_NUMBERED_ITEM = re.compile(
    r"^(?:q|qu|item|i|question|task|problem|exercise|ex|part|aufgabe|frage|es|t|p|a|f)\.?[\s_-]*\d",
    re.IGNORECASE,
)
_UNNAMED = re.compile(r"^(?:column \d+|unnamed: \d+)$", re.IGNORECASE)
# A letter alone may well be the name of an item.
_ANSWER = frozenset(
    word for word in (*TRUE_WORDS, *FALSE_WORDS, "", "-") if len(word) != 1 or not word.isalpha()
)


# The declared items, each with the points that it gives at most, if these are declared too.
Items = Mapping[str, float | None]


@dataclass(frozen=True, repr=False)
class Heading:
    """A column: `title` is its name without the `maximum`, `shown` what a message may call it."""

    position: int
    title: str
    shown: str
    kind: Kind
    maximum: float | None = None
    unnamed: bool = False

    @property
    def named(self) -> bool:
        """Whether a message may call it by its name."""
        return self.shown == f"column '{self.title}'"

    @property
    def numbered(self) -> bool:
        """Whether it is called as items are: Q1, Task 2."""
        return bool(_NUMBERED_ITEM.match(self.title))


@dataclass(frozen=True, repr=False)
class Header:
    """The columns of a sheet with one row per learner."""

    learner: Heading | None
    items: tuple[Heading, ...]
    others: tuple[Heading, ...]


def read_header(names: Sequence[str], columns: Columns, file: str, items: Items | None = None) -> Header:
    """What each column is, as far as the header shows; whether an item holds answers depends on its cells.

    Where the `items` are declared, no other column is one, and the points of an item may be declared with it.
    """
    reject_duplicates(names, file)
    if given := [role for role in ("action", "item", "outcome") if getattr(columns, role) is not None]:
        raise UsageError(
            f"a sheet with one row per learner has a column per item, but a column for the {given[0]} was given.",
            hint="leave it out, or give a file with one row per answer.",
            settings=(given[0],),
        )
    asked = ColumnChooser(names, file, vars(columns)).positions
    learner = asked.get("learner", _learner_among(names))
    parts = [_parse(name, file, position) for position, name in enumerate(names)]
    if items is not None:
        _refuse_unknown([title for title, _ in parts], items)
        parts = [(title, _agreed(title, maximum, items.get(title), file)) for title, maximum in parts]
    likely = [maximum is not None or _is_heading(title) for title, maximum in parts]
    trusted = sum(likely) > 1 or any(maximum is not None for _, maximum in parts)
    headings = []
    for position, (title, maximum) in enumerate(parts):
        kind: Kind = "item"
        if position == learner:
            kind = "learner"
        elif items is not None:
            kind = "item" if title in items else "other"
        elif plain(title) in _TOTALS:
            kind = "total"
        elif position in asked.values() or (maximum is None and _is_not_an_item(title)):
            kind = "other"
        elif _UNNAMED.match(names[position]):
            # Separators at the ends of lines, or one cell beside a table: what is in the cells must not decide.
            kind = "other"
        # In a file without a header the "names" are a learner's values, which no message may hold.
        named = (trusted or likely[position]) and not _is_value(title)
        shown = f"'{title}'" if named else str(position + 1)
        headings.append(
            Heading(position, title, f"column {shown}", kind, maximum, bool(_UNNAMED.match(names[position])))
        )
    return Header(
        None if learner is None else headings[learner],
        tuple(heading for heading in headings if heading.kind == "item"),
        tuple(heading for heading in headings if heading.kind in ("total", "other")),
    )


def _refuse_unknown(titles: Sequence[str], items: Items) -> None:
    if unknown := [name for name in items if name not in titles]:
        raise UsageError(
            f"{len(unknown)} of the listed items are in no column of the sheet, '{unknown[0]}' among them.",
            hint="write the items as in the header, without the points.",
            code="no-such-item",
            settings=("items",),
        )


def _agreed(title: str, written: float | None, declared: float | None, file: str) -> float | None:
    """The maximum that the header or the list of items gives, or both alike."""
    if written is not None and declared is not None and written != declared:
        raise UsageError(
            f"{file}: the header gives {written:g} points for item '{title}', the list of items {declared:g}.",
            hint="correct one of them.",
            code="two-maxima",
            settings=("items",),
        )
    return written if declared is None else declared


def _parse(name: str, file: str, position: int) -> tuple[str, float | None]:
    """A name without its maximum, white space collapsed; and the maximum."""
    name = " ".join(name.split())
    if not (found := _MAXIMUM.search(name)):
        return name, None
    number = next(digits for digits in found.groupdict().values() if digits is not None)
    maximum = float(number.replace(",", "."))
    if not 0 < maximum < float("inf"):
        raise DataError(
            f"{file}: the header of column {position + 1} gives a maximum that is not a positive number of points.",
            hint="write the points that can be reached, as in 'Q1 (15 points)', or remove the column.",
        )
    return name[: found.start()].strip() or f"column {position + 1}", maximum


def _learner_among(names: Sequence[str]) -> int | None:
    plains = [plain(name) for name in names]
    for name in _LEARNERS:
        if name in plains:
            return plains.index(name)
    # Statistics programs write the rows' names into a first column without a name.
    return 0 if names and _UNNAMED.match(names[0]) else None


def _is_not_an_item(title: str) -> bool:
    return plain(title) in _NOT_ITEMS or plain(title) in KNOWN_NAMES["learner"]


def _is_heading(title: str) -> bool:
    """Whether a name is one that a header has and a row of data hardly."""
    known = plain(title) in _TOTALS or _is_not_an_item(title) or plain(title) in _LEARNERS
    return known or bool(_NUMBERED_ITEM.match(title))


def _is_value(title: str) -> bool:
    return re.fullmatch(r"[\d.,:;/+\-\s%]*", title) is not None or bool(_UNNAMED.match(title))


def refuse_answers(items: Sequence[Heading], file: str) -> None:
    """Refuse a header that is a learner's row: the answers of the first learner would be the items' names."""
    if items and all(item.title.casefold() in _ANSWER or item.unnamed for item in items):
        raise DataError(
            f"{file}: the first line holds answers where the items' names should be.",
            hint="begin the file with a line of names, such as learner and one for each item.",
        )
