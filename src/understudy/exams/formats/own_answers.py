"""Answers that students give to `ability`: a sheet, a list, or the two columns of one student."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.core.files.columns import KNOWN_NAMES, plain
from understudy.core.files.delimited import guess_separator
from understudy.core.files.outcomes import FALSE_WORDS, MISSING_WORDS, TRUE_WORDS
from understudy.core.files.source import Text, decode, open_source
from understudy.errors import DataError
from understudy.exams.formats.reading import read_responses
from understudy.exams.responses import NOT_ANSWERED, Responses

_BINARY = (".xlsx", ".xls", ".parquet")

# So few columns may be one student's own list rather than the sheet of a class.
_NARROW = 3
_OWN = "one student's own answers are two columns named item,correct, with 1 or 0 on a line per item"


@dataclass(frozen=True, repr=False)
class Answers:
    """Responses with what to call each student: their name in the file, or their place in it.

    `layout` is "own" for the two columns of one student, else that of the `ExamOrigin`.
    """

    responses: Responses
    students: tuple[str, ...]
    notes: tuple[str, ...] = ()
    layout: str = "own"

    @classmethod
    def of(cls, responses: Responses) -> Answers:
        """The students of some responses: by name, by number, or as `you`."""
        origin, n_students = responses.origin, responses.n_learners
        students, notes = origin.learners or tuple(str(k + 1) for k in range(n_students)), origin.notes
        if not origin.learners and n_students == 1:
            students = ("you",)
        elif not origin.named:
            notes = (*notes, "No column names the student: each row was taken for one student.")
        return cls(responses, students, notes, origin.layout)

    @property
    def lists_blanks(self) -> bool:
        """Whether a blank is written down: in a list of answers, what is not listed may not have been asked."""
        return self.layout in ("own", "wide")


def read_answers(path: Path, pass_share: float | str = 0.5) -> Answers:
    """The answers in a file, with the names of the students: this is their own side."""
    source = open_source(path)
    narrow = False
    if path.suffix.lower() not in _BINARY and b"\0" not in source.data[:4096]:
        text = decode(source, latin=True)
        first = next((line for line in text.lines if line.strip()), "")
        rows = _rows(text, guess_separator(first))
        own = _two_columns(text, rows)
        if own is not None:
            return own
        narrow = len(rows[0][1]) <= _NARROW
    try:
        found = read_responses(path, keep_names=True, pass_share=pass_share)
    except DataError as error:
        if not narrow:
            raise
        hint = f"{_OWN}. For a class: {error.hint}"
        raise DataError(error.message, hint=hint, code=error.code, settings=error.settings) from None
    return Answers.of(found)


def _two_columns(text: Text, rows: list[tuple[int, list[str]]]) -> Answers | None:
    """A file of item and outcome without a learner: one student's own. None for another file."""
    header = [plain(name) for name in rows[0][1]]
    roles = [
        "item" if name in (*KNOWN_NAMES["item"], *KNOWN_NAMES["action"]) else "outcome"
        for name in header
        if name in (*KNOWN_NAMES["item"], *KNOWN_NAMES["action"], *KNOWN_NAMES["outcome"])
    ]
    if len(header) != 2 or sorted(roles) != ["item", "outcome"]:
        return None
    item, outcome = roles.index("item"), roles.index("outcome")
    answers: dict[str, int] = {}
    for line, row in rows[1:]:
        if len(row) != 2:
            raise DataError(
                f"{text.name}: line {line} has {len(row)} fields, the header has 2.",
                hint="write an item and its outcome on each line; quote names that hold the separator.",
            )
        name, answer = " ".join(row[item].split()), _answer(row[outcome])
        if answer is None:
            raise DataError(
                f"{text.name}: line {line} holds an outcome that is neither right nor wrong.",
                hint="write 1 for right and 0 for wrong, and leave it empty for what was not answered.",
            )
        if name in answers:
            raise DataError(
                f"{text.name}: line {line} names an item for a second time.", hint="keep one line per item."
            )
        answers[name] = answer
    if not answers:
        raise DataError(f"{text.name}: there is a header but no answer.", hint="write a line per item.")
    matrix = np.array([list(answers.values())], dtype=np.int8)
    note = "Read as the answers of one student: a line per item."
    return Answers(Responses(matrix, tuple(answers), declared=True), ("you",), (*text.notes, note))


def _rows(text: Text, separator: str) -> list[tuple[int, list[str]]]:
    """The rows with their line numbers; a file that is not a table has one row without a field."""
    reader = csv.reader(io.StringIO(text.data.decode(), newline=""), delimiter=separator)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except csv.Error:
        rows = []
    return rows or [(1, [])]


def _answer(cell: str) -> int | None:
    word = cell.casefold()
    if word in MISSING_WORDS:
        return NOT_ANSWERED
    return 1 if word in TRUE_WORDS else 0 if word in FALSE_WORDS else None
