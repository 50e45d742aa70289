"""Exam responses with a row per answer: learner, item, correct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.people_in_text import without_people
from understudy.core.events.pieces import lines_of_learners, read_pieces
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import KNOWN_NAMES, Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.notes import Count, CountingNote
from understudy.core.files.outcomes import is_missing
from understudy.core.files.streams import Stream
from understudy.core.files.suggestions import with_suggestions
from understudy.core.files.tables import Table
from understudy.core.names import natural_order
from understudy.errors import DataError
from understudy.exams.formats.answer_pieces import Answers, check_size, collect_answers
from understudy.exams.responses import NOT_ANSWERED, Attempt, ExamOrigin, Responses

_BEHIND_ALL = np.iinfo(np.int64).max


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
    events = _events(table, options, attempt)
    answers = _answers_of(events, options, attempt)
    return _responses(events, answers, keep_names)


def read_long_in_pieces(
    stream: Stream,
    options: ReadOptions,
    attempt: Attempt | None,
    folder: Callable[[], Path],
    *,
    keep_names: bool,
) -> Responses:
    """The same of a large table, some learners at a time; `folder()` makes room for what is kept meanwhile."""
    pieces = read_pieces(stream, "", (), partial(_events, attempt=attempt), options, folder())
    whole, answers = collect_answers(pieces, partial(_answers_of, attempt=attempt), folder)
    return _responses(whole, answers, keep_names)


def _events(table: Table, options: ReadOptions, attempt: Attempt | None) -> EventTable:
    reject_duplicates(table.names, table.file)
    positions = _choose(table, options, ordered=attempt in ("first", "last"))
    return EventTable.from_table(table, positions, options)


def _answers_of(events: EventTable, options: ReadOptions, attempt: Attempt | None) -> Answers:
    """Settle the events, and take from them the answers of all learners and items, with or without one."""
    events.leave_people_out("action", without_people)
    learners = lines_of_learners(events)
    items = natural_order(events.frame["action"].drop_nulls().unique().to_list())
    _drop_missing(events)
    if attempt is None:
        _refuse_repeated(events)
    events.settle(options)
    answered = _count_attempts(events, attempt or "first")
    check_size(learners.height, len(items), events.file)
    return _among_all(answered, learners, items)


def _responses(events: EventTable, answers: Answers, keep_names: bool) -> Responses:
    roles = "learner '{learner}', item '{action}', outcome '{outcome}'".format(**events.columns)
    events.notes = [f"Each row is an answer: {roles}.", *events.notes]
    origin = ExamOrigin(
        **vars(events.origin(Path(events.file), "", answers.items)),
        layout="long",
        learners=tuple(answers.learners) if keep_names else (),
    )
    return Responses(answers.correct, answers.items, origin=origin)


def settle_log(events: EventTable, options: ReadOptions, attempt: Attempt) -> Answers:
    """Settle the events of a log, and take the answers from them."""
    events.settle(options)
    return answers_of_log(events, attempt)


def answers_of_log(events: EventTable, attempt: Attempt) -> Answers:
    """One answer per learner and action of settled events.

    Learners of whom no answer could be read stand behind the others: their number is public.
    """
    answered = _count_attempts(events, attempt)
    silent = events.without_rows["learner"]
    nothing = np.full((len(silent), len(answered.items)), NOT_ANSWERED, dtype=np.int8)
    return replace(
        answered,
        correct=np.concatenate([answered.correct, nothing]),
        learners=pl.concat([answered.learners, silent]),
        lines=np.concatenate([answered.lines, np.full(len(silent), _BEHIND_ALL)]),
    )


def _count_attempts(events: EventTable, attempt: Attempt) -> Answers:
    """One answer per learner and action of settled events, and a note on the attempts that do not count."""
    frame = events.frame
    check_size(frame["learner"].n_unique(), frame["action"].n_unique(), events.file)
    responses = Responses.from_events(frame, attempt)
    if n_repeats := frame.height - (responses.correct.size - responses.n_missing):
        which = f"; the {attempt} one at each item counts."
        events.notes.append(CountingNote("Left out: ", Count(n_repeats, "repeated attempt"), which))
    learners = lines_of_learners(events)
    return Answers(
        responses.correct, learners["learner"], responses.items, learners["line"].to_numpy(), frame.height
    )


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
        events.notes.append(
            CountingNote("Taken as not answered: ", Count(n_missing, "row"), " without an outcome.")
        )


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


def _among_all(answered: Answers, learners: pl.DataFrame, items: tuple[str, ...]) -> Answers:
    """The answers with those learners and items, too, of whom the file knows no answer; `learners` with their lines."""
    names, lines = learners["learner"], learners["line"].to_numpy()
    if (len(names), items) == (len(answered.learners), answered.items) and (lines == answered.lines).all():
        return answered
    matrix = np.full((len(names), len(items)), NOT_ANSWERED, dtype=np.int8)
    # Learners stand in the order in which they were first met, which leaving rows out may change.
    rows = answered.learners.to_frame().join(
        names.to_frame().with_row_index("row"), "learner", "left", maintain_order="left"
    )
    answered.write_to(matrix, rows["row"].cast(pl.Int64).to_numpy(), items)
    return replace(answered, correct=matrix, learners=names, items=items, lines=lines)
