"""Exam responses with a row per answer: learner, item, correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from understudy.core.events.event_table import EventTable, ReadOptions
from understudy.core.files.columns import KNOWN_NAMES, Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.outcomes import is_missing
from understudy.core.files.suggestions import with_suggestions
from understudy.core.files.tables import Table
from understudy.core.files.words import counted
from understudy.core.names import natural_order
from understudy.errors import DataError
from understudy.exams.responses import NOT_ANSWERED, Attempt, ExamOrigin, Responses

# The matrix has a byte per learner and item, answered or not.
_MOST_CELLS = 4_000_000_000


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


def read_long(table: Table, options: ReadOptions, attempt: Attempt | None, *, keep_names: bool) -> Responses:
    """The responses in a table; a repeated answer is an error unless `attempt` says which one counts."""
    reject_duplicates(table.names, table.file)
    positions = _choose(table, options, ordered=attempt in ("first", "last"))
    events = EventTable.from_table(table, positions, options)
    learners = events.frame["learner"].drop_nulls().unique(maintain_order=True)
    items = natural_order(events.frame["action"].drop_nulls().unique().to_list())
    _drop_missing(events)
    if attempt is None:
        _refuse_repeated(events)
    events.settle(options)
    present = events.frame["learner"].unique(maintain_order=True)
    answered, notes = responses_of(events, attempt or "first")
    responses = _among_all(answered, present, learners, items, table.file)
    roles = "learner '{learner}', item '{action}', outcome '{outcome}'".format(**events.columns)
    events.notes = [f"Each row is an answer: {roles}.", *events.notes, *notes]
    origin = ExamOrigin(
        **vars(events.origin(Path(table.file), "", items)),
        layout="long",
        learners=tuple(learners) if keep_names else (),
    )
    return replace(responses, origin=origin)


def responses_of(events: EventTable, attempt: Attempt) -> tuple[Responses, tuple[str, ...]]:
    """One response per learner and action of settled events, and a note on the attempts that do not count."""
    frame = events.frame
    _check_size(frame["learner"].n_unique(), frame["action"].n_unique(), events.file)
    responses = Responses.from_events(frame, attempt)
    n_repeats = frame.height - (responses.correct.size - responses.n_missing)
    do_not = "does not" if n_repeats == 1 else "do not"
    which = f"{counted(n_repeats, 'repeated attempt')} {do_not} count: the {attempt} one at each item does."
    return responses, (which,) if n_repeats else ()


def with_silent_learners(responses: Responses, events: EventTable) -> Responses:
    """The responses with a row for each learner of whom no answer could be read: the number of learners is public."""
    nothing = np.full((events.without_rows.height, responses.n_items), NOT_ANSWERED, dtype=np.int8)
    return replace(responses, correct=np.concatenate([responses.correct, nothing]))


def _choose(table: Table, options: ReadOptions, *, ordered: bool) -> dict[str, int]:
    """The columns by role; of an item and a skill, the item is what was answered."""
    columns = options.columns
    by_name = {plain(name): name for name in reversed(table.names)}
    item = next((by_name[name] for name in KNOWN_NAMES["item"] if name in by_name), None)
    asked = Columns(
        learner=columns.learner,
        action=columns.item or columns.action,
        outcome=columns.outcome,
        time=columns.time,
    )
    try:
        positions = choose_columns(table.names, asked, table.file, defaults=Columns(action=item))
    except DataError as error:
        raise with_suggestions(error, table, {"action": "item"}, options.mark) from None
    # The order matters only where one of several attempts is chosen by it.
    wanted = ("learner", "action", "outcome", *(("time",) if ordered else ()))
    return {role: positions[role] for role in wanted if role in positions}


def _drop_missing(events: EventTable) -> None:
    missing = is_missing(events.frame["outcome"])
    if n_missing := int(missing.sum()):
        events.frame = events.frame.filter(~missing)
        rows, count = ("row", "counts") if n_missing == 1 else ("rows", "count")
        events.notes.append(f"{n_missing} {rows} without an outcome {count} as not answered.")


def _refuse_repeated(events: EventTable) -> None:
    repeated = ~events.frame.select(pl.struct("learner", "action").is_first_distinct()).to_series()
    if repeated.any():
        raise DataError(
            f"{events.file}: column '{events.columns['action']}' names an item for a second time for the same "
            f"learner {events.at(repeated)}.",
            hint="say which of several answers counts: first, last or best.",
            code="repeated-answer",
            settings=("attempts",),
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
    return Responses(matrix, items)


def _check_size(n_learners: int, n_items: int, file: str) -> None:
    if n_learners * n_items > _MOST_CELLS:
        raise DataError(
            f"{file}: {counted(n_learners, 'learner')} and {counted(n_items, 'item')} are more "
            "than a matrix of responses can hold.",
            hint="check which column names the item, or give the exam's part of the file only.",
            settings=("item",),
        )


# So few columns may be one student's own list rather than the sheet of a class.
