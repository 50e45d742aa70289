"""Exam responses with a row per answer: learner, item, correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from understudy.core.events.event_table import Draft, Request, interactions_of, used_columns
from understudy.core.files.columns import KNOWN_NAMES, Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.identifiers import Identifier
from understudy.core.files.mentions import identifiers_in_actions
from understudy.core.files.tables import Table
from understudy.core.files.withdrawals import Withdrawn
from understudy.core.files.words import counted
from understudy.errors import DataError
from understudy.exams.formats.cells import MISSING_WORDS
from understudy.exams.responses import NOT_ANSWERED, Attempt, Responses
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


# So few columns may be one student's own list rather than the sheet of a class.
