"""Exam responses with a row per answer: learner, item, correct."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from understudy.core.events.event_table import Draft, Request, interactions_of, used_columns
from understudy.core.files.columns import KNOWN_NAMES, Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.delimited import guess_separator
from understudy.core.files.identifiers import Identifier
from understudy.core.files.mentions import identifiers_in_actions
from understudy.core.files.source import Text, decode, open_source
from understudy.core.files.tables import Table
from understudy.core.files.withdrawals import Withdrawn
from understudy.core.files.words import counted
from understudy.errors import DataError
from understudy.exams.formats.cells import MISSING_WORDS
from understudy.exams.formats.reading import read_responses
from understudy.exams.responses import NOT_ANSWERED, Attempt, Responses
from understudy.logs.frames import FALSE_WORDS, TRUE_WORDS
from understudy.logs.interactions import SIMULATED_PREFIX, Interactions, natural_order

# The matrix has a byte per learner and item, answered or not.
_MOST_CELLS = 4_000_000_000


@dataclass(frozen=True, repr=False)
class LongTable:
    """What was read from a table of answers, with the names of its learners."""

    responses: Responses
    learners: pl.Series
    notes: tuple[str, ...]
    identifiers: tuple[Identifier, ...]
    n_withdrawn: int
    n_absent: int


def looks_long(names: Sequence[str], columns: Columns) -> bool:
    """Whether a table has a row per answer: a learner, an item and an outcome have columns of their own."""
    plains = {plain(name) for name in names}

    def has(role: str, *given: str | None) -> bool:
        return any(name is not None for name in given) or not plains.isdisjoint(KNOWN_NAMES[role])

    return (
        has("learner", columns.learner)
        and has("action", columns.item, columns.action)
        and has("outcome", columns.outcome)
    )


def read_long(
    table: Table, columns: Columns, withdrawn: Withdrawn | None, attempt: Attempt | None
) -> LongTable:
    """The responses in a table; a repeated answer is an error unless `attempt` says which one counts."""
    reject_duplicates(table.names, table.file)
    positions = _choose(table, columns, ordered=attempt in ("first", "last"))
    draft = Draft(
        table.file,
        table.read(positions),
        used_columns(table.names, positions),
        list(table.notes),
        table.place,
    )
    request = Request(columns, withdrawn, single_rows=True)
    draft.find_people(table)
    draft.tidy(request)
    learners = draft.frame["learner"].drop_nulls().unique(maintain_order=True)
    items = natural_order(draft.frame["action"].drop_nulls().unique().to_list())
    _drop_missing(draft)
    if attempt is None:
        _refuse_repeated(draft)
    log = interactions_of(draft, request)
    present = draft.frame["learner"].unique(maintain_order=True)
    answered, notes = responses_of(log, attempt or "first", table.file)
    responses = _among_all(answered, present, learners, items, table.file)
    found = identifiers_in_actions(
        draft.columns["action"], pl.Series(items, dtype=pl.String), draft.learners, draft.people
    )
    known = {(identifier.column, identifier.kind, identifier.role) for identifier in found}
    by_column = [one for one in draft.identifiers if (one.column, one.kind, one.role) not in known]
    roles = "learner '{learner}', item '{action}', outcome '{outcome}'".format(**draft.columns)
    return LongTable(
        responses,
        learners,
        (f"Each row is an answer: {roles}.", *draft.notes, *notes),
        (*by_column, *found),
        draft.n_withdrawn,
        draft.n_absent,
    )


def responses_of(log: Interactions, attempt: Attempt, file: str) -> tuple[Responses, tuple[str, ...]]:
    """One response per learner and item of a log, and a note on the attempts that do not count."""
    _check_size(log.n_learners, log.n_actions, file)
    responses = Responses.from_log(log, attempt)
    n_repeats = log.n_rows - (responses.correct.size - responses.n_missing)
    do_not = "does not" if n_repeats == 1 else "do not"
    which = f"{counted(n_repeats, 'repeated attempt')} {do_not} count: the {attempt} one at each item does."
    return responses, (which,) if n_repeats else ()


def _choose(table: Table, columns: Columns, *, ordered: bool) -> dict[str, int]:
    """The columns by role; of an item and a skill, the item is what was answered."""
    by_name = {plain(name): name for name in reversed(table.names)}
    item = next((by_name[name] for name in KNOWN_NAMES["item"] if name in by_name), None)
    asked = Columns(
        learner=columns.learner,
        action=columns.item or columns.action,
        outcome=columns.outcome,
        time=columns.time,
    )
    positions = choose_columns(table.names, asked, table.file, defaults=Columns(action=item))
    # The order matters only where one of several attempts is chosen by it.
    wanted = ("learner", "action", "outcome", *(("time",) if ordered else ()))
    return {role: positions[role] for role in wanted if role in positions}


def _drop_missing(draft: Draft) -> None:
    word = pl.col("outcome").cast(pl.String).str.strip_chars().str.to_lowercase()
    missing = draft.frame.select(word.is_null() | word.is_in(MISSING_WORDS)).to_series()
    if n_missing := int(missing.sum()):
        draft.frame = draft.frame.filter(~missing)
        rows, count = ("row", "counts") if n_missing == 1 else ("rows", "count")
        draft.notes.append(f"{n_missing} {rows} without an outcome {count} as not answered.")


def _refuse_repeated(draft: Draft) -> None:
    repeated = ~draft.frame.select(pl.struct("learner", "action").is_first_distinct()).to_series()
    if repeated.any():
        raise DataError(
            f"{draft.file}: column '{draft.columns['action']}' names an item for a second time for the same "
            f"learner {draft.at(repeated)}.",
            hint="--attempts first, last or best says which of several answers counts.",
        )


def _among_all(
    answered: Responses, present: pl.Series, learners: pl.Series, items: tuple[str, ...], file: str
) -> Responses:
    """The responses with those learners and items, too, of whom the file knows no answer."""
    _check_size(len(learners), len(items), file)
    matrix = answered.correct
    if (len(learners), len(items)) != matrix.shape:
        place = {name: column for column, name in enumerate(items)}
        rows = learners.is_in(present.implode()).arg_true().to_numpy()
        matrix = np.full((len(learners), len(items)), NOT_ANSWERED, dtype=np.int8)
        # Learners stand in the order in which they were first met, which leaving rows out may change.
        order = pl.DataFrame({"name": present}).with_row_index("row")
        order = pl.DataFrame({"name": learners.gather(rows)}).join(order, on="name", maintain_order="left")
        places = np.array([place[name] for name in answered.items], dtype=np.int64)
        matrix[np.ix_(rows, places)] = answered.correct[order["row"]]
    simulated = bool(learners.str.starts_with(SIMULATED_PREFIX).all())
    return Responses(matrix, items, simulated=simulated)


def _check_size(n_learners: int, n_items: int, file: str) -> None:
    if n_learners * n_items > _MOST_CELLS:
        raise DataError(
            f"{file}: {counted(n_learners, 'learner')} and {counted(n_items, 'item')} are more "
            "than a matrix of responses can hold.",
            hint="check which column names the item (--item), or give the exam's part of the file only.",
        )


_BINARY = (".xlsx", ".xls", ".parquet")

# So few columns may be one student's own list rather than the sheet of a class.
_NARROW = 3
_OWN = "one student's own answers are two columns named item,correct, with 1 or 0 on a line per item"


@dataclass(frozen=True, repr=False)
class Answers:
    """Responses with what to call each student: their name in the file, or their place in it.

    `layout` is "own" for the two columns of one student, else that of the `ResponsesFile`.
    """

    responses: Responses
    students: tuple[str, ...]
    notes: tuple[str, ...] = ()
    layout: str = "own"

    @property
    def lists_blanks(self) -> bool:
        """Whether a blank is written down: in a list of answers, what is not listed may not have been asked."""
        return self.layout in ("own", "wide")


def read_answers(path: Path, pass_share: float = 0.5) -> Answers:
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
        raise DataError(error.message, hint=f"{_OWN}. For a class: {error.hint}") from None
    n_students, notes = found.responses.n_learners, list(found.notes)
    students = found.learners or tuple(str(k + 1) for k in range(n_students))
    if not found.learners and n_students == 1:
        students = ("you",)
    elif not found.named:
        notes.append("No column names the student: each row was taken for one student.")
    return Answers(found.responses, students, tuple(notes), found.layout)


def _two_columns(text: Text, rows: list[tuple[int, list[str]]]) -> Answers | None:
    """A file of item and outcome without a learner: one student's own. None if it is not such a file."""
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
    """The rows with their line numbers; a file that is no table has one row without a field."""
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
