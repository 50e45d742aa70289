"""read_responses(): the file is opened, recognised as a sheet, a list or a log, and read without its names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from understudy.core.events.event_table import ReadOptions
from understudy.core.events.reading import check_format, read_events, sniff
from understudy.core.files.columns import Columns
from understudy.core.files.delimited import guess_separator, read_delimited, refuse_title, refuse_title_line
from understudy.core.files.simulated import is_simulated
from understudy.core.files.source import Source, decode, first_lines, open_source
from understudy.core.files.tables import ParquetTable, Table, read_parquet, read_workbook
from understudy.core.files.withdrawals import read_withdrawn
from understudy.errors import DataError, UsageError
from understudy.exams.formats.answer_list import looks_long, read_long, responses_of
from understudy.exams.formats.sheet import read_wide, typed_parquet
from understudy.exams.responses import Attempt, ExamOrigin, Responses

Layout = Literal["wide", "long"]

_TABLES = ("csv", "tsv", "excel", "parquet")
# Published formats that are tables all the same, for those who ask for a layout.
_ALSO_TABLES = {"assistments": "csv", "user-item-skill": "csv", "datashop": "tsv"}


def read_responses(
    path: Path | str,
    *,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008 (frozen)
    layout: Layout | None = None,
    pass_share: float = 0.5,
    attempt: Attempt | None = None,
    exclude: Path | str | None = None,
    items: Sequence[str] | Path | None = None,
    public_items: bool = False,
    rows_are_learners: bool = False,
    keep_names: bool = False,
) -> Responses:
    """The responses in a file; their `origin` says how they were read.

    Format and layout are found from the content unless they are given. In a sheet, points are
    correct from `pass_share` of the maximum in the header on. `attempt` says which of several
    answers of a learner to an item counts; in a log that is the first one by default, in a
    table of answers they are an error. Learners listed in the file `exclude` are removed before
    anything else.

    The items of a list or a log depend on the answers; `items`, names or a file with one per line, declares
    which there are, and `public_items` that those which occur are no secret. `rows_are_learners` declares that each
    row of a sheet is a learner although no column names them. `keep_names` is for the learners' own side: it
    keeps their names.
    """
    names = read_items(items) if isinstance(items, Path) else items
    found = _read(path, format, columns, layout, pass_share, attempt, exclude, keep_names)
    if rows_are_learners:
        found = replace(found, origin=replace(found.origin, named=True))
    if names is not None:
        return _with_items(found, names)
    return found.declare() if public_items else found


def read_items(path: Path) -> list[str]:
    """The public list of items in a file: a name per line."""
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}.",
            hint="give a file with one item's name per line.",
            code="no-such-file",
            settings=("items",),
        )
    names = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    names = [name for name in dict.fromkeys(names) if name]
    if not names:
        raise UsageError(f"{path} lists no item.", hint="give one item's name per line.", settings=("items",))
    return names


def _with_items(responses: Responses, names: Sequence[str]) -> Responses:
    unknown = [name for name in names if name not in responses.items]
    # A sheet's header is public; that nobody answered an item of a long file is not.
    if responses.origin.layout == "wide" and unknown:
        raise UsageError(
            f"{len(unknown)} of the listed items are in no column of the sheet, '{unknown[0]}' among them.",
            hint="write the items as in the header, without the points.",
            code="no-such-item",
            settings=("items",),
        )
    return responses.with_items(names)


def _read(
    path: Path | str,
    format: str | None,
    columns: Columns,
    layout: Layout | None,
    pass_share: float,
    attempt: Attempt | None,
    exclude: Path | str | None,
    keep_names: bool,
) -> Responses:
    _check_options(format, layout, pass_share, attempt)
    source = open_source(path)
    asked = format is not None
    if format is None:
        try:
            format, why = sniff(source)
        except DataError:
            refuse_title_line(source)
            raise
        if layout is not None:
            format = _ALSO_TABLES.get(format, format)
        note = f"Read as {format}: {why}."
    else:
        note = f"Read as {format}, as asked."
    if format not in _TABLES:
        _refuse_layout(format, layout)
        return _from_log(path, format if asked else None, columns, attempt, exclude, keep_names)
    table = _table(source, format, known=not asked)
    withdrawn = None if exclude is None else read_withdrawn(exclude)
    if layout is None:
        layout = "long" if looks_long(table.names, columns) else "wide"
    if layout == "long":
        found = read_long(table, columns, withdrawn, attempt, keep_names=keep_names)
    else:
        if attempt is not None:
            raise UsageError(
                f"the {attempt} attempt was asked for, but a sheet with one row per learner has one answer per item.",
                hint="leave the attempt out, or give a file with one row per answer.",
                settings=("attempts",),
            )
        sheet = typed_parquet(table, source) if isinstance(table, ParquetTable) else table
        found = read_wide(sheet, columns, withdrawn, pass_share, keep_names=keep_names)
    origin = replace(found.origin, path=Path(path), format=format, notes=(note, *found.origin.notes))
    return replace(found, origin=origin, simulated=is_simulated(Path(path)))


def _check_options(format: str | None, layout: str | None, pass_share: float, attempt: str | None) -> None:
    check_format(format)
    if layout not in (None, "wide", "long"):
        raise UsageError(
            f"there is no layout '{layout}'.", hint="wide has a row per learner, long a row per answer."
        )
    if attempt not in (None, "first", "last", "best"):
        raise UsageError(f"there is no attempt '{attempt}'.", hint="choose first, last or best.")
    if not 0 < pass_share <= 1:
        raise UsageError(
            f"an answer passes from a share above 0 and up to 1 of the points on, not from {pass_share:g}.",
            hint="half of the points are 0.5.",
            settings=("pass_share",),
        )


def _refuse_layout(format: str, layout: str | None) -> None:
    if layout is not None:
        raise UsageError(
            f"the layout {layout} was asked for, but a file of format {format} is a log of attempts.",
            hint="leave the layout out, or read the file as csv, tsv, excel or parquet.",
            settings=("format",),
        )


def _table(source: Source, format: str, *, known: bool) -> Table:
    """The table in a file; `known` is whether the separator was named already, as the reason for the format."""
    if format == "parquet":
        return read_parquet(source)
    if format == "excel":
        sheet = read_workbook(source)
        refuse_title(sheet)
        return sheet
    text = decode(source, latin=True)
    try:
        table = read_delimited(text, "\t" if format == "tsv" else guess_separator(first_lines(text, 1)[0]))
    except DataError:
        refuse_title_line(source)
        raise
    refuse_title(table)
    if known:
        table = replace(
            table, notes=tuple(note for note in table.notes if not note.startswith("Fields were separated"))
        )
    return table


def _from_log(
    path: Path | str,
    format: str | None,
    columns: Columns,
    attempt: Attempt | None,
    exclude: Path | str | None,
    keep_names: bool,
) -> Responses:
    options = ReadOptions(columns, None if exclude is None else read_withdrawn(exclude), single_rows=True)
    events, format = read_events(path, options, format)
    responses, repeats = responses_of(events, attempt or "first")
    origin = events.origin(Path(path), format, responses.items)
    notes = [*origin.notes, f"The items are the log's actions, from '{origin.columns['action']}'.", *repeats]
    if keep_names:
        notes.append("Learners of this format are known by their order in the file, not by their names.")
    found = ExamOrigin(**{**vars(origin), "notes": tuple(notes)}, layout="log")
    return replace(responses, origin=found, simulated=is_simulated(Path(path)))
