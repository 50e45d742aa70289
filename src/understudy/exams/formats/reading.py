"""read_responses(): the file is opened, recognised as a sheet, a list or a log, and read without its names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from understudy.core.engine.engine import scratch_parent
from understudy.core.events.read_options import ReadOptions, RowOptions
from understudy.core.events.reading import (
    check_format,
    read_events,
    read_events_in_pieces,
    refuse_sheet,
    sniff,
)
from understudy.core.files.columns import Columns
from understudy.core.files.outcomes import PassMark, has_direction
from understudy.core.files.people.withdrawals import Withdrawn, read_withdrawn
from understudy.core.files.simulated import is_simulated
from understudy.core.files.storage.scratch import Scratch
from understudy.core.files.suggestions import with_suggestions
from understudy.core.files.tables import ParquetTable, Sheet
from understudy.core.options import settled
from understudy.errors import DataError, UsageError
from understudy.exams.formats.answer_list import (
    answers_of_log,
    looks_long,
    read_long,
    read_long_in_pieces,
    settle_log,
)
from understudy.exams.formats.answer_pieces import collect_answers
from understudy.exams.formats.canvas_quiz import canvas_quiz
from understudy.exams.formats.exam_file import ExamFile, large_sheet
from understudy.exams.formats.grouping import Grouping, refuse_groups
from understudy.exams.formats.item_list import ItemList, read_items
from understudy.exams.formats.moodle_quiz import moodle_quiz
from understudy.exams.formats.quiz import Quiz
from understudy.exams.formats.sheet import USUAL_SHARE, read_wide, typed_parquet
from understudy.exams.formats.sheet_header import Items
from understudy.exams.responses import Attempt, ExamOrigin, Responses

Layout = Literal["wide", "long"]

_TABLES = ("csv", "tsv", "excel", "parquet")
# Published formats that are tables all the same, for those who ask for a layout.
_ALSO_TABLES = {
    "assistments": "csv",
    "eedi": "csv",
    "junyi": "csv",
    "user-item-skill": "csv",
    "datashop": "tsv",
}


@dataclass(frozen=True)
class ResponseOptions(RowOptions):
    """How responses are read from a file; wrong choices are refused before it is opened."""

    learner: Annotated[str | None, "Column that names the learner."] = None
    item: Annotated[str | None, "Column that names the item of a long file."] = None
    outcome: Annotated[str | None, "Column with the outcome, 0 or 1."] = None
    time: Annotated[str | None, "Column with the time of an answer, when rows are not in order."] = None
    format: Annotated[str | None, "Format of the file, when it is not recognised."] = None
    sheet: Annotated[
        str | None,
        "Sheet of a workbook, by name or number, and the table's rows if it does not fill it: Results!4:120.",
    ] = None
    layout: Annotated[
        Layout | None, "A row per learner (wide) or per answer (long), when it is not recognised."
    ] = None
    pass_share: Annotated[
        float | str,
        "Share of an item's points from which on it counts as correct. Or, where answers are grades or points without "
        "a maximum, the number up to which ('<=4') or from which on ('>=50') they do.",
    ] = USUAL_SHARE
    points: Annotated[
        float | str | None,
        "Count the points of a sheet instead of right and wrong (partial credit): the step in which they are given, "
        "such as 1 or 0.5. The maxima come from the header or the list of items.",
    ] = None
    attempts: Annotated[
        Attempt | None,
        "Which of several attempts at an item counts, first, last or best (default: the first one of a log or a quiz; "
        "an error elsewhere).",
    ] = None
    exclude: Annotated[Path | None, "File that lists learners who withdrew; they are left out."] = None
    items: Annotated[
        Path | str | Sequence[str] | None,
        "File with the public list of items, one per line; answers to others are left out. Or a table (csv) with the "
        "column item and with points, where a sheet's header does not give the maximum of points, or choices, from how "
        "many answers one chooses (empty: the answer is written), or both.",
    ] = None
    public_items: Annotated[bool, "The items of a long file or a log are public."] = False
    rows_are_learners: Annotated[
        bool, "No column of the sheet names the learners: each row is one of them."
    ] = False

    def __post_init__(self) -> None:
        check_format(self.format)
        if self.layout not in (None, "wide", "long"):
            raise UsageError(
                f"there is no layout '{self.layout}'.",
                hint="wide has a row per learner, long a row per answer.",
            )
        if self.attempts not in (None, "first", "last", "best"):
            raise UsageError(f"there is no attempt '{self.attempts}'.", hint="choose first, last or best.")
        if self.mark.share is None or not (self.mark.points is not None or 0 < self.mark.share <= 1):
            raise UsageError(
                f"an answer passes from a share above 0 and up to 1 of the points on, not from {self.pass_share}.",
                hint="half of the points, or 50 %, are 0.5; a number of points is written '>=50', and a grade of which "
                "1 is the best '<=4'.",
                settings=("pass_share",),
            )
        if self.step is not None and not 0.01 <= self.step <= 1000:
            raise UsageError(
                f"points in steps of {self.points} were asked for.",
                hint="a step is a number from 0.01 to 1000: 1, or 0.5 where halves are given.",
                settings=("points",),
            )
        if self.step is not None and (self.mark.points is not None or self.mark.share != USUAL_SHARE):
            raise UsageError(
                f"points count as they are, but the mark '{self.pass_share}' makes right and wrong of them.",
                hint="leave one of them out.",
                settings=("points", "pass_share"),
            )

    @property
    def step(self) -> float | None:
        """The step of the points, as people type it: 0.5 or 0,5; not a number if it is none."""
        if self.points is None:
            return None
        try:
            return float(str(self.points).replace(",", "."))
        except ValueError:
            return math.nan

    @property
    def mark(self) -> PassMark:
        """The numbers from which on an answer is right: a share of the points, unless a direction is written."""
        mark = PassMark.of(self.pass_share, "pass_share")
        if has_direction(self.pass_share):
            return mark
        return PassMark(share=mark.points, setting="pass_share")

    @property
    def columns(self) -> Columns:
        """The columns that were named."""
        return Columns(learner=self.learner, item=self.item, outcome=self.outcome, time=self.time)

    def for_answers(self, withdrawn: Withdrawn | None) -> ReadOptions:
        """How rows with one answer each are read; a percentage is a share of the points."""
        return ReadOptions(
            self.columns, withdrawn, single_rows=True, rows=self.rows(), mark=self.mark, sheet=self.sheet
        )

    def withdrawn(self) -> Withdrawn | None:
        """The learners who are left out."""
        return None if self.exclude is None else read_withdrawn(self.exclude)


def read_responses(
    path: Path | str,
    options: ResponseOptions = ResponseOptions(),  # noqa: B008 (frozen)
    *,
    keep_names: bool = False,
    group: str | None = None,
    groups: str | Sequence[str] = (),
    **settings: Any,
) -> Responses:
    """The responses in a file; their `origin` says how they were read.

    The settings of `ResponseOptions` may be given as keywords. Format and layout are found from the content
    unless they are given. Learners who withdrew are removed before anything else. The items of a list or a log
    depend on the answers, unless `items` (a file, or the names) or `public_items` declares them. `keep_names` is
    for the learners' own side: it keeps their names. `group` is the column of a sheet that says in which of the
    declared `groups` a learner is ("A,B", or their names), for `compare_groups`.
    """
    options, path = settled(options, settings), Path(path)
    grouping = Grouping.of(group, groups)
    if options.items is None:
        return responses_in(path, options, None, keep_names, grouping)
    listed = (
        read_items(Path(options.items))
        if isinstance(options.items, Path | str)
        else ItemList(dict.fromkeys(options.items))
    )
    return replace(responses_in(path, options, listed.points, keep_names, grouping), guesses=listed.guesses)


def responses_in(
    path: Path,
    options: ResponseOptions,
    listed: Items | None,
    keep_names: bool,
    grouping: Grouping | None = None,
) -> Responses:
    """The responses in a file to `listed` items, each with the points that it gives at most if that is known."""
    found = _read(path, options, listed, keep_names, grouping)
    if options.mark.points is not None:
        found = replace(found, origin=replace(found.origin, pass_share=str(options.mark)))
    if options.rows_are_learners:
        found = replace(found, origin=replace(found.origin, named=True))
    if listed is not None:
        return found.with_items(list(listed))
    return found.declare() if options.public_items else found


def _read(
    path: Path, options: ResponseOptions, items: Items | None, keep_names: bool, grouping: Grouping | None
) -> Responses:
    with Scratch(scratch_parent()) as scratch:
        return _read_with(scratch, path, options, items, keep_names, grouping)


def _read_with(
    scratch: Scratch,
    path: Path,
    options: ResponseOptions,
    items: Items | None,
    keep_names: bool,
    grouping: Grouping | None,
) -> Responses:
    """See `responses_in`; what does not fit into memory is kept in temporary files."""
    format, layout = options.format, options.layout
    file = ExamFile.open(path)
    if file is None:
        _refuse_layout("of a folder", layout)
        _refuse_points(options, "a folder of files")
        refuse_groups(grouping, "a folder of files")
        return _from_log(path, options, keep_names, scratch)
    if format is None:
        format, why = sniff(file.source)
        if layout is not None:
            format = _ALSO_TABLES.get(format, format)
        note = f"Read as {format}: {'the folder has Parquet files' if path.is_dir() else why}."
    else:
        note = f"Read as {format}, as asked."
    if format not in _TABLES:
        _refuse_layout(format, layout)
        _refuse_points(options, f"a log of format {format}")
        refuse_groups(grouping, f"a log of format {format}")
        return _from_log(path, options, keep_names, scratch)
    refuse_sheet(options.sheet, format)
    stream = file.stream(format)
    table = file.table(format, options.sheet) if stream is None else stream.head()
    withdrawn = options.withdrawn()
    quiz = None if layout == "long" or options.learner is not None else _quiz(table.names)
    if quiz is not None:
        refuse_groups(grouping, "the export of a quiz")
        # Read whole: a learner may have several rows in it.
        whole, stream = file.table(format, options.sheet) if stream is not None else table, None
        layout, table = "wide", quiz.sheet(whole, options.attempts)
    if layout is None:
        layout = "long" if looks_long(table.names, options.columns) else "wide"
    if layout == "long":
        _refuse_points(options, "a list with one row per answer")
        refuse_groups(grouping, "a list with one row per answer")
        wanted = options.for_answers(withdrawn)
        if stream is None:
            found = read_long(table, wanted, options.attempts, keep_names=keep_names)
        else:
            found = read_long_in_pieces(
                stream, wanted, options.attempts, scratch.folder, keep_names=keep_names
            )
    else:
        if options.rows() != RowOptions():
            raise UsageError(
                "it was declared how rows of answers are read, but a sheet with one row per learner has none.",
                hint="leave that out.",
                settings=tuple(RowOptions.__dataclass_fields__),
            )
        if options.attempts is not None and quiz is None:
            raise UsageError(
                f"the {options.attempts} attempt was asked for, but a sheet with one row per learner has one answer "
                "per item.",
                hint="leave the attempt out, or give a file with one row per answer.",
                settings=("attempts",),
            )
        sheet: Sheet = table
        if stream is not None:
            sheet = large_sheet(stream, scratch.folder())
        elif isinstance(table, ParquetTable):
            sheet = typed_parquet(table, file.source)
        try:
            found = read_wide(
                sheet,
                options.columns if quiz is None else replace(options.columns, learner=table.names[0]),
                withdrawn,
                options.mark,
                items,
                keep_names=keep_names,
                step=options.step,
                grouping=grouping,
            )
        except DataError as error:
            raise with_suggestions(error, table, {"action": "item"}, options.mark) from None
    notes = found.origin.notes
    if options.format is None:
        # The reason for the format is what separates the fields.
        notes = tuple(each for each in notes if not each.startswith("Fields were separated"))
    origin = replace(found.origin, path=path, format=format, notes=(note, *notes))
    if quiz is not None:
        # A note says which column it is; to declare it would be to read the file as any other sheet.
        columns = {role: name for role, name in origin.columns.items() if role != "learner"}
        origin = replace(origin, columns=columns)
    return replace(found, origin=origin, simulated=is_simulated(path))


def _quiz(names: Sequence[str]) -> Quiz | None:
    """The export of a quiz, by its header."""
    return moodle_quiz(names) or canvas_quiz(names)


def _refuse_points(options: ResponseOptions, found: str) -> None:
    if options.points is not None:
        raise UsageError(
            f"points were asked for, but this is {found}.",
            hint="points count in a sheet with one row per learner; leave them out here.",
            code="points-need-a-sheet",
            settings=("points",),
        )


def _refuse_layout(format: str, layout: str | None) -> None:
    if layout is not None:
        raise UsageError(
            f"the layout {layout} was asked for, but a file of format {format} is a log of attempts.",
            hint="leave the layout out, or read the file as csv, tsv, excel or parquet.",
            settings=("format",),
        )


def _from_log(path: Path, options: ResponseOptions, keep_names: bool, scratch: Scratch) -> Responses:
    wanted = options.for_answers(options.withdrawn())
    attempt = options.attempts or "first"
    pieces = read_events_in_pieces(path, wanted, options.format, scratch.folder)
    if pieces is None:
        events, format = read_events(path, wanted, options.format)
        answers = answers_of_log(events, attempt)
    else:
        format = pieces.format
        events, answers = collect_answers(pieces, partial(settle_log, attempt=attempt), scratch.folder)
    origin = events.origin(path, format, answers.items)
    notes = [*origin.notes, f"The items are the log's actions, from '{origin.columns['action']}'."]
    if keep_names:
        notes.append("Learners of this format are known by their order in the file, not by their names.")
    found = ExamOrigin(**{**vars(origin), "notes": tuple(notes)}, layout="log")
    return Responses(answers.correct, answers.items, origin=found, simulated=is_simulated(path))
