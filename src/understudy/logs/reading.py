"""Read a log: the events of a file as Interactions."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from understudy.core.engine.engine import scratch_parent
from understudy.core.engine.progress import task
from understudy.core.events.event_table import EventTable, no_row_left, refuse_single_rows
from understudy.core.events.further_columns import further
from understudy.core.events.learner_table import LearnerTable
from understudy.core.events.pieces import EventPieces, lines_of_learners
from understudy.core.events.read_options import ReadOptions, RowOptions
from understudy.core.events.reading import formats, read_events, read_events_in_pieces
from understudy.core.files.columns import Columns, named_columns
from understudy.core.files.databases.addresses import DatabaseAddress, database_address
from understudy.core.files.notes import Count, CountingNote
from understudy.core.files.origin import Origin
from understudy.core.files.outcomes import PassMark
from understudy.core.files.people.withdrawals import read_withdrawn
from understudy.core.files.simulated import is_simulated
from understudy.core.files.storage.scratch import Scratch
from understudy.core.files.suggestions import LEAST_SIMILAR_TO_ASKED
from understudy.core.files.words import counted
from understudy.core.options import settled
from understudy.errors import DataError, UsageError
from understudy.logs.declared.columns import OUTCOME, Declared
from understudy.logs.declared.companions import (
    learner_columns,
    note_learners,
    open_learners,
    read_results,
    with_results,
)
from understudy.logs.declared.course import read_course
from understudy.logs.declared.plan_file import PATHS, read_log_plan
from understudy.logs.declared.term import Term, TermOptions
from understudy.logs.frames import interactions_from_frame
from understudy.logs.interactions import Interactions
from understudy.logs.large.assembly import StoredPiece, assemble

# How finely formats write times, in seconds, where all of their files do it alike.
_RESOLUTIONS = {"moodle": 60.0}


@dataclass(frozen=True)
class LogOptions(Columns, RowOptions, TermOptions):
    """How a log is read from a file."""

    plan: Annotated[
        Path | None,
        "A file (understudy.toml) whose part [log] declares columns and times. A table named after the command may "
        "have what one would type, file and out included; what is typed wins.",
    ] = None
    format: Annotated[
        str | None,
        f"Format of the file, when it is not recognised: {', '.join(formats())}.",
    ] = None
    sheet: Annotated[
        str | None,
        "Sheet of a workbook, by name or number, and the table's rows if it does not fill it: Results!4:120.",
    ] = None
    no_header: Annotated[
        bool,
        "The file has no line with the columns' names (csv or tsv): columns are named by their numbers, from 1 on.",
    ] = False
    pass_from: Annotated[
        float | str | None,
        "Number from which on an outcome is a success: points, a grade or a percentage (50); up to 1 a share (0.5). "
        "Where a low number is good, as for grades from 1 to 6, the one up to which it is: '<=4'.",
    ] = None
    exclude: Annotated[Path | None, "File that lists learners who withdrew; they are left out."] = None
    no_outcomes: Annotated[bool, "The log has no outcomes: no column is taken for one."] = False
    empty_outcomes: Annotated[
        bool,
        "Rows may lack an outcome: it is then a column of rows that may be empty, without difficulties.",
    ] = False
    keep_skills: Annotated[bool, "One row per skill of an item, where a format has several, not merged."] = (
        False
    )
    platform_voids: Annotated[
        bool,
        "Only the platform voids statements (xapi): those that another actor than their own voided are left out too.",
    ] = False
    verbs: Annotated[
        bool,
        "Actions also say what was done, as in 'played Video 3', where a format states it (xapi, caliper, edx).",
    ] = False
    language: Annotated[
        str, "Language in which actions are named, where a format has names in several (xapi): en, de-AT."
    ] = "en"
    public_actions: Annotated[bool, "The names of the actions are public, as those of a curriculum are."] = (
        False
    )
    actions_file: Annotated[
        Path | None,
        "File with the public names of actions, one per line; others are pooled. Or a table (csv) with a column action "
        "and chapter, position or both: then the order of the course is public too; or outcome (yes or no): then it is "
        "public which of them have one.",
    ] = None
    learners: Annotated[
        Path | None,
        "Table of the same learners, one row each (group, grade, final score): csv, xlsx or parquet. Columns of it "
        "that a plan declares are joined by learner.",
    ] = None
    learners_key: Annotated[
        str | None,
        "Column by which that table names the learners, if it is called otherwise than in the log.",
    ] = None
    active_only: Annotated[
        bool, "Leave learners of that table out who have no row in the log; otherwise they count as well."
    ] = False
    results: Annotated[
        Path | None,
        "Table of the same learners' results, several rows each (a test, whether it was passed, when): they are rows "
        "of the log as well.",
    ] = None
    results_columns: Annotated[
        Mapping[str, str] | str | None,
        "Columns of the results, if they are called otherwise than in the log: learner=id,action=test,outcome=passed.",
    ] = None
    single_rows: Annotated[bool, "Admit a log in which no learner has two rows."] = False


def read_log(
    path: Path | str,
    options: LogOptions = LogOptions(),  # noqa: B008 (frozen)
    **settings: Any,
) -> Interactions:
    """The log in a file; its `origin` says how it was read.

    The settings of `LogOptions` may be given as keywords. The format is found from the content unless it is
    named. Rows of learners who withdrew are removed before anything else.
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(
            f"a log is read from a file, and {type(path).__name__} is no path.",
            hint="make a log of a data frame with Interactions.from_frame.",
            code="not-a-path",
        )
    found = database_address(path) or Path(path)
    return read_planned_log(found, *planned(settled(options, settings)))


def planned(options: LogOptions) -> tuple[LogOptions, tuple[Declared, ...]]:
    """The options as their plan completes them, and the columns that it declares."""
    if options.plan is None:
        return options, ()
    plan = read_log_plan(options.plan)
    filled = plan.fill(options)
    for name in PATHS:
        file = plan.settings.get(name)
        if file is not None and getattr(filled, name) == file and not Path(file).exists():
            raise UsageError(
                f"{options.plan.name}: there is no file '{file}', which the plan names as `{name}`.",
                hint="write its path as seen from the plan's folder, or leave it out of the plan.",
                code="no-such-file",
                settings=(name, "plan"),
            )
    return filled, plan.columns


def read_planned_log(
    path: Path | DatabaseAddress, options: LogOptions, declared: Sequence[Declared]
) -> Interactions:
    """See `read_log`; the plan was read before."""
    table = None
    if options.learners is not None:
        table = open_learners(options.learners)
    in_table = [column for column in declared if column.of == "learner" and table and table.has(column.name)]
    in_log = [column for column in declared if column not in in_table]
    wanted = _read_options(options, in_log)
    if options.learners is None and options.results is None:
        with Scratch(scratch_parent()) as scratch, scratch.filling():
            pieces = read_events_in_pieces(path, wanted, options.format, scratch.folder)
            if pieces is not None:
                return _in_pieces(path, pieces, options, in_log, scratch)
    with task("Reading"):
        events, format = read_events(path, wanted, options.format)
    term = _included_term(options, events, format)
    if options.results is not None:
        own = named_columns(options.results_columns or {})
        with_results(events, read_results(options.results, wanted, events, own), included=term is not None)
    elif options.results_columns:
        raise UsageError(
            "columns of results were named, and no results were given.",
            hint="give the file with the results, or leave its columns out.",
            code="no-results",
            settings=("results", "results_columns"),
        )
    outcome = _outcome_column(events)
    in_log, declared = [*outcome, *in_log], [*outcome, *declared]
    _require_columns(events, in_log, table)
    rows = None
    if table is not None:
        names = [column.name for column in in_table]
        rows = table.read(names, wanted, options.learners_key, events.columns["learner"])
        events.notes += note_learners(rows, events, active_only=options.active_only)
        if options.active_only:
            rows.keep_learners(events.everyone)
        events.add_learners(rows)
        events.n_left_out += rows.n_left_out
    if wanted.withdrawn is not None and not events.n_withdrawn:
        raise wanted.withdrawn.removes_nobody(events.columns["learner"])
    log = _interactions(events, in_log, term, options)
    read = [] if rows is None else learner_columns(rows, in_table, events.everyone, options.rows())
    events.notes += [*log.origin.notes, *(note for column in read for note in column.notes)]
    by_name = {column.declared.name: column for column in (*log.columns, *(each.column for each in read))}
    beside = tuple(Path(file) for file in (options.learners, options.results) if file is not None)
    log = replace(
        log,
        columns=tuple(by_name[column.name] for column in declared),
        origin=replace(_origin(path, events, format, log.actions), beside=beside),
        simulated=_is_simulated(path) and all(map(is_simulated, beside)),
    )
    return _with_public_names(log, options)


def _in_pieces(
    path: Path | DatabaseAddress,
    pieces: EventPieces,
    options: LogOptions,
    declared: Sequence[Declared],
    scratch: Scratch,
) -> Interactions:
    """The log of a large table, some learners at a time; all of its rows are in files in the end."""

    def read(events: EventTable, wanted: ReadOptions) -> StoredPiece:
        first = lines_of_learners(events)
        events.settle(wanted)
        columns = [*_outcome_column(events), *declared]
        _require_columns(events, columns, None)
        log = _interactions(events, columns, _included_term(options, events, pieces.format), options)
        events.notes += log.origin.notes
        return StoredPiece.write(log, events, first, scratch.folder())

    whole, stored = pieces.collect(read)
    log = assemble(stored, scratch.folder())
    if not log.n_rows:
        raise no_row_left(whole.file)
    if not options.single_rows:
        refuse_single_rows(whole, log.n_rows, int((log.lengths > 0).sum()))
    log = replace(log, origin=_origin(path, whole, pieces.format, log.actions), simulated=_is_simulated(path))
    return _with_public_names(log, options)


def _origin(path: Path | DatabaseAddress, events: EventTable, format: str, names: tuple[str, ...]) -> Origin:
    if isinstance(path, DatabaseAddress):
        return replace(events.origin(path.file, format, names), database=path.name)
    return events.origin(path, format, names)


def _is_simulated(path: Path | DatabaseAddress) -> bool:
    file = path.file if isinstance(path, DatabaseAddress) else path
    return file is not None and is_simulated(file)


def _with_public_names(log: Interactions, options: LogOptions) -> Interactions:
    if options.actions_file is not None:
        return log.with_course(read_course(options.actions_file))
    if any(column.declared.is_outcome for column in log.columns):
        note = (
            "If it is public which actions have an outcome, say so in a table of actions (`actions_file`): outcomes "
            "are closer then."
        )
        log = replace(log, origin=replace(log.origin, notes=(*log.origin.notes, note)))
    return log.declare() if options.public_actions else log


def _outcome_column(events: EventTable) -> list[Declared]:
    """The outcome as a column of rows, where it may be empty."""
    empty = further("outcome") in events.frame.columns
    return [OUTCOME] if empty else []


def _read_options(options: LogOptions, declared: Sequence[Declared]) -> ReadOptions:
    columns = Columns(**{role: getattr(options, role) for role in Columns.__dataclass_fields__})
    withdrawn = None if options.exclude is None else read_withdrawn(options.exclude)
    if withdrawn is not None and (options.learners is not None or options.results is not None):
        withdrawn = replace(withdrawn, may_be_elsewhere=True)
    return ReadOptions(
        columns,
        withdrawn,
        "keep" if options.keep_skills else "merge",
        options.single_rows,
        _rows(options),
        PassMark.of(options.pass_from),
        options.sheet,
        "left out" if options.no_outcomes else "wanted",
        options.verbs,
        options.language,
        options.no_header,
        empty_outcomes=options.empty_outcomes,
        platform_voids=options.platform_voids,
        further=tuple(column.name for column in declared),
    )


def _interactions(
    events: EventTable, declared: Sequence[Declared], term: Term | None, options: LogOptions
) -> Interactions:
    """The log of events, with learners of whom no row is left behind the others; notes say what is not in it."""
    _note_what_is_left_out(events, term, options)
    if term is not None and term.declared:
        _note_times_outside(events, term)
    roles = {
        role: role if role in events.columns else None
        for role in ("learner", "action", "outcome", "time", "item", "group")
    }
    columns = {further(column.name): column for column in declared}
    try:
        log = interactions_from_frame(
            events.frame, roles, 2, True, options.rows(), columns, term, may_be_empty=events.partial
        )
    except DataError as error:
        raise error.about(events.file) from None
    silent = events.without_rows
    groups = silent["group"].fill_null("unknown").to_list() if roles["group"] else []
    return log.with_learners(silent.height, groups)


def _rows(options: LogOptions) -> RowOptions:
    """How rows are read; days without a year count from the first day of the declared term."""
    first = None if options.term is None else options.declared_term().first
    rows = options.rows()
    return rows if first is None or rows.first_day is not None else replace(rows, first_day=str(first))


def _included_term(options: LogOptions, events: EventTable, format: str) -> Term | None:
    """The term of a log whose times are included: a column was named for them, or a term declared."""
    if options.time_for_order:
        if options.declares_term:
            raise UsageError(
                "a term was declared for times that only put the rows in order.",
                hint="leave one of them out.",
                code="term-without-times",
                settings=("term", "resolution", "session_minutes", "time_for_order"),
            )
        return None
    if "time" not in events.columns:
        if options.declares_term:
            raise UsageError(
                f"{events.file}: a term was declared, but the log has no times.",
                hint="name the column with the times, or leave the term out.",
                code="term-without-times",
                settings=("time", "term"),
            )
        return None
    if options.time is None and not options.declares_term:
        return None
    return options.declared_term(usual_resolution(format))


def usual_resolution(format: str) -> float:
    """How finely a format writes times, in seconds."""
    return _RESOLUTIONS.get(format, 1.0)


def _require_columns(events: EventTable, declared: Sequence[Declared], table: LearnerTable | None) -> None:
    """Refuse a log without a column that was declared, and say where one like it is."""
    missing = [column for column in declared if further(column.name) not in events.frame.columns]
    if not missing:
        return
    name = missing[0].name
    of_learners = () if table is None else tuple(table.table.names)
    if table is not None and missing[0].of == "row" and table.has(name):
        raise DataError(
            f"{events.file}: column '{name}' is declared of rows, and is in the table of learners {table.table.file}.",
            hint='declare it with of = "learner".',
            code="no-declared-column",
            settings=("plan",),
            column=name,
        )
    near = difflib.get_close_matches(name, [*events.names, *of_learners], 1, LEAST_SIMILAR_TO_ASKED)
    raise DataError(
        f"{events.file}: column '{name}' is declared, and is not there.",
        hint=(f"did you mean '{near[0]}'? If not, " if near else "")
        + "write its name as it stands in the file's first line, give the table that has it, or leave it out of the "
        "plan.",
        code="no-declared-column",
        settings=("plan", "learners"),
        column=name,
    )


def _note_times_outside(events: EventTable, term: Term) -> None:
    """Say how many rows lie outside the declared days: generators move their times to the ends of the term."""
    day = events.frame["time"].cast(pl.Date)
    if n_outside := int((~day.is_between(term.first, term.last)).sum()):
        events.notes.append(
            CountingNote(
                "Outside the declared term: ",
                Count(n_outside, "row"),
                ". Their times count as those of its first or last day.",
            )
        )


def _note_what_is_left_out(events: EventTable, term: Term | None, options: LogOptions) -> None:
    """Say once what is in the file and left out, and how to include it."""
    if "time" in events.columns and term is None and not options.time_for_order:
        events.notes.append(
            f"The times in column '{events.columns['time']}' are left out; to include them, name the column: "
            "`time`."
        )
    if events.n_left_out:
        times = "" if "time" in events.columns else "To include times, name their column: `time`. "
        events.notes.append(
            f"Left out: {counted(events.n_left_out, 'further column')}. {times}To include some, declare them in a "
            "plan (`plan`), which `describe` drafts."
        )
