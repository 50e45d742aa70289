"""Who may be named in a text: a list of names and numbers that the custodian gives, and addresses.

Names are compared without case and accents, whole and by their parts, in either spelling of an
umlaut. A part of four letters or more is found inside of a word, a shorter one only as a word.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from understudy.core.files.people.identifiers import EMAIL
from understudy.core.files.source import decode, open_source
from understudy.errors import DataError
from understudy.keystrokes.program_text.tokens import WORD

MIN_INSIDE, MIN_WORD, MIN_DIGITS = 4, 2, 4
# Letters that Unicode does not take apart.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i", "ħ": "h", "ŧ": "t"}
)
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "æ": "ae"})
_ESCAPE = re.compile(r"\\(?:u+([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8}))")
_HEADERS = frozenset(
    ("name", "names", "first", "last", "firstname", "lastname", "surname", "studentnumber", "number", "email")
)

Span = tuple[int, int]


def fold(text: str) -> tuple[str, list[int]]:
    """The text without case, accents and invisible characters, and where each character came from.

    The second list has one entry more: the length of the text. Escapes such as `\\u00fc` count
    as the letter that they stand for.
    """
    folded, places, at = [], [], 0
    while at < len(text):
        step, character = 1, text[at]
        if character == "\\" and (escape := _ESCAPE.match(text, at)):
            step = escape.end() - at
            code = int(escape[1] or escape[2] or escape[3], 16)
            character = chr(code) if code < 0x110000 else " "
        if character.isascii():
            plain = character.lower()
        else:
            plain = unicodedata.normalize("NFKD", character).casefold().translate(_PLAIN)
            plain = unicodedata.normalize("NFKD", plain)
            plain = "".join(c for c in plain if unicodedata.category(c) not in ("Mn", "Mc", "Me", "Cf"))
        folded.append(plain)
        places.extend([at] * len(plain))
        at += step
    return "".join(folded), [*places, len(text)]


@dataclass(frozen=True, repr=False)
class People:
    """What names the people: words found anywhere, words found on their own, digits."""

    anywhere: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    wholes: frozenset[tuple[str, ...]] = frozenset()  # parts that name a person only together

    @classmethod
    def of(cls, entries: Iterable[str]) -> People:
        """People by their names, logins, addresses and student numbers, an entry each."""
        anywhere, words, numbers = set(), set(), set()
        for entry in entries:
            composed = unicodedata.normalize("NFC", entry).lower().split("@")[0].split("+")[0]
            for spelling in {composed, composed.translate(_UMLAUTS)}:
                parts = [part for part in re.split(r"[\W_]+", fold(spelling)[0]) if part]
                for form in (*parts, "".join(parts), "".join(reversed(parts))):
                    if form.isdigit():
                        if len(form) >= MIN_DIGITS:
                            numbers.add(form)
                        continue
                    forms = [form, re.sub(r"([aou])e|aa", lambda m: m[1] or "a", form)]
                    for one in forms if len(forms[1]) >= MIN_INSIDE else forms[:1]:
                        if len(one) >= MIN_INSIDE:
                            anywhere.add(one)
                        elif len(one) >= MIN_WORD:
                            words.add(one)
        return cls(frozenset(anywhere), frozenset(words), frozenset(numbers))

    @classmethod
    def of_ids(cls, ids: Iterable[str]) -> People:
        """People by the names that a table has for them, each as a whole: `s-17` does not make every s a name."""
        entries = {part for entry in ids for part in (entry.lower(), entry.lower().split("@")[0])}
        found = {tuple(re.findall(r"[^\W\d_]+|\d+", fold(entry)[0])) for entry in entries}
        digits = {"".join(parts) for parts in found if all(map(str.isdigit, parts))}
        wholes = {
            parts for parts in found if len("".join(parts)) >= MIN_INSIDE and not all(map(str.isdigit, parts))
        }
        return cls(
            numbers=frozenset(one for one in digits if len(one) > MIN_DIGITS), wholes=frozenset(wholes)
        )

    def __or__(self, other: People) -> People:
        return People(
            self.anywhere | other.anywhere,
            self.words | other.words,
            self.numbers | other.numbers,
            self.wholes | other.wholes,
        )

    def __bool__(self) -> bool:
        return bool(self.anywhere or self.words or self.numbers or self.wholes)

    @cached_property
    def _letters(self) -> re.Pattern[str] | None:
        """Longest first, so that a name is not cut by another name in it."""
        words = sorted(self.anywhere, key=lambda word: (-len(word), word))
        return re.compile("|".join(map(re.escape, words))) if words else None

    @cached_property
    def _whole(self) -> re.Pattern[str] | None:
        """The parts of a name with anything but letters and digits between: `a.b`, `a_b`, `ab`."""
        wholes = sorted(self.wholes, key=lambda parts: (-len("".join(parts)), parts))
        forms = [r"[\W_]*".join(map(re.escape, parts)) for parts in wholes]
        return re.compile("|".join(forms)) if forms else None

    @cached_property
    def _digits(self) -> re.Pattern[str] | None:
        numbers = sorted(self.numbers, key=lambda number: (-len(number), number))
        # Digits may be grouped; a leading zero may be lost.
        forms = [r"[ _.\-]?".join(number.lstrip("0") or number) for number in numbers]
        return re.compile("|".join(forms)) if forms else None

    def mentions(self, text: str) -> list[Span]:
        """Where the text names a person, as spans of the text in order, overlaps merged."""
        if not self:
            return []
        folded, places = fold(text)
        spans = []
        for pattern in (self._letters, self._whole, self._digits):
            if pattern is not None:
                spans += [match.span() for match in pattern.finditer(folded)]
        found = [(places[start], _end(places, end)) for start, end in spans]
        if self.words:
            found += [
                (start, end) for start, end in _single_words(text) if fold(text[start:end])[0] in self.words
            ]
        return merged(found)

    def across(self, text: str) -> list[Span]:
        """Where parts name a person together, whatever is between them."""
        return People(wholes=self.wholes).mentions(text) if self.wholes else []

    def is_named(self, text: str) -> bool:
        """Whether the text names a person."""
        return bool(self.mentions(text))


def _end(places: list[int], end: int) -> int:
    """The end in the text of what ends at `end` in the folded text, marks that follow included."""
    return places[bisect_right(places, places[end - 1])]


def _single_words(text: str) -> list[Span]:
    """Words as people read them: `helloMax_2` has three."""
    found = []
    for run in WORD.finditer(text):
        start = run.start()
        for at in range(run.start(), run.end() + 1):
            if at == run.end() or text[at] in "_$" or not text[at].isalpha():
                # Marks and invisible characters belong to the letter before.
                if at < run.end() and not text[at].isdigit() and text[at] not in "_$":
                    continue
                found.append((start, at))
                start = at + 1
            elif at > start and text[at].isupper() and not text[at - 1].isupper():
                found.append((start, at))
                start = at
    # `MAXValue` has a word that ends before its last capital; both readings are kept.
    found += [
        (start, at - 1)
        for start, end in found
        for at in range(start + 2, end)
        if text[start:at].isupper() and text[at].islower()
    ]
    return [(start, end) for start, end in found if end > start]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that overlap made one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


class Addresses:
    """E-mail addresses, web addresses and user names in paths, known by their form."""

    _FORMS = (
        ("emails", re.compile(EMAIL), 0),
        # Everything behind the scheme: hosts and paths name people alike.
        ("urls", re.compile(r"(?i)\b(?:https?|ftp|ssh|git|svn|file)://([^\s\"'<>`]+)"), 1),
        ("urls", re.compile(r"(?i)\bwww\.([^\s\"'<>`]+)"), 1),
        (
            "paths",
            re.compile(
                r"(?i)(?:/home|/users|[\\/]+Users|[\\/]+Documents and Settings)[\\/]+([^\\/\s\"':;,)]+)"
            ),
            1,
        ),
        ("paths", re.compile(r"(?<![\w~])~([A-Za-z][\w.-]+)(?=/)"), 1),
    )

    @classmethod
    def in_text(cls, text: str) -> list[tuple[int, int, str]]:
        """The place of each and its kind; of two that overlap the first found counts."""
        found: list[tuple[int, int, str]] = []
        for kind, form, group in cls._FORMS:
            for match in form.finditer(text):
                start, end = match.span(group)
                if not any(start < other[1] and other[0] < end for other in found):
                    found.append((start, end, kind))
        return sorted(found)


def read_people(path: Path) -> People:
    """The custodian's list: a person a line, or a table of names and numbers without more.

    A line's fields are separated by commas, semicolons or tabs; every field names the person.
    """
    text = decode(open_source(path), latin=True)
    lines = [line.strip() for line in text.lines if line.strip()]
    rows = [[field.strip(' "') for field in re.split(r"[,;\t]", line)] for line in lines]
    if rows and {re.sub(r"[\W_]+", "", field.lower()) for field in rows[0]} <= _HEADERS:
        rows = rows[1:]
    people = People.of(entry for row in rows for entry in (*row, " ".join(row)))
    if not people:
        raise DataError(
            f"{path.name}: the list names nobody: no line holds a name of two letters or a number of "
            f"{MIN_DIGITS} digits.",
            hint="give one person per line: names, or names and student number separated by commas.",
        )
    return people
