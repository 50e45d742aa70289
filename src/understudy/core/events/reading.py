"""Read a file of events: open it, find its format, take the columns that are needed and forget the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from understudy.core.engine.engine import scratch_parent
from understudy.core.events.event_table import EventTable
from understudy.core.events.folders import Folder, open_folder
from understudy.core.events.log_columns import read_log_columns
from understudy.core.events.pieces import EventPieces, read_pieces
from understudy.core.events.platforms.assistments import looks_like_assistments, read_assistments
from understudy.core.events.platforms.caliper import looks_like_caliper, read_caliper
from understudy.core.events.platforms.canvas import (
    canvas_records,
    fields_in,
    looks_like_page_views,
    looks_like_submissions,
    looks_like_web_logs,
    read_page_views,
    read_submissions,
    read_web_logs,
    refuse_other_tables,
)
from understudy.core.events.platforms.datashop import looks_like_datashop, read_datashop
from understudy.core.events.platforms.ednet import looks_like_ednet, read_ednet
from understudy.core.events.platforms.edx import begins_like_edx, looks_like_edx, read_edx
from understudy.core.events.platforms.eedi import folder_of_eedi, looks_like_eedi, read_eedi, read_eedi_folder
from understudy.core.events.platforms.gradebooks import refuse_gradebook
from understudy.core.events.platforms.junyi import looks_like_junyi, read_junyi
from understudy.core.events.platforms.moodle import are_rows, looks_like_moodle, moodle_records, read_moodle
from understudy.core.events.platforms.oulad import looks_like_oulad, read_oulad
from understudy.core.events.platforms.slam import looks_like_slam, read_slam
from understudy.core.events.platforms.three_line import looks_like_three_lines, read_three_line
from understudy.core.events.platforms.xapi import read_xapi
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import Columns, plain
from understudy.core.files.databases.addresses import DatabaseAddress
from understudy.core.files.databases.streams import DatabaseStream, open_database_stream
from understudy.core.files.delimited import (
    SEPARATORS,
    guess_separator,
    header_names,
    refuse_title_line,
    table_in,
)
from understudy.core.files.json_records import begins_like_json, first_record
from understudy.core.files.source import Guess, Source, Text, decode, first_lines, open_source
from understudy.core.files.streams import Stream, begin_of_text, open_parquet, open_text
from understudy.core.files.tables import MAGIC as PARQUET_MAGIC
from understudy.core.files.tables import FrameTable, Table, read_parquet
from understudy.core.files.workbooks import MAGICS as EXCEL_MAGICS
from understudy.core.files.workbooks import read_workbook
from understudy.errors import DataError, UsageError

# What these files begin with is a learner's.
_WITHOUT_HEADER = ("caliper", "edx", "slam", "three-line", "xapi")
# In these formats an event says what was done, beside what it was done with.
_WITH_VERBS = ("caliper", "edx", "xapi")
# In these files an item trains a skill, and the skill is what is learned.
USER_ITEM_SKILL = Columns(learner="user", action="skill", outcome="correct", item="item")
# Without a header the format says what separates fields.
_SEPARATORS = {"csv": ",", "tsv": "\t"}
DATABASE = "database"
# Tables whose readers look at each learner's rows alone, so that a large one can be read in pieces.
_IN_PIECES = ("csv", DATABASE, "parquet", "tsv", "user-item-skill")
# Any table; its header may show that it is of a platform.
_PLAIN_TABLES = ("csv", DATABASE, "excel", "parquet", "tsv")


def read_table(table: Table, options: ReadOptions, *, defaults: Columns | None = None) -> EventTable:
    """The rows of a table with one attempt per row."""
    return read_log_columns(table, options, defaults)


def sniff(source: Source) -> tuple[str, str]:
    """A format's name and the reason for it, which reads on from "Read as csv:".

    Of a workbook or a Parquet file only that: whose table is in it is known when it is read.
    """
    if source.data.startswith(PARQUET_MAGIC):
        return "parquet", "it begins like a Parquet file"
    if source.data.startswith(EXCEL_MAGICS):
        if source.data.startswith(b"PK") and b"xl/" not in source.data:
            raise DataError(
                f"{source.name}: this is a zip archive and no Excel workbook.",
                hint="unpack it and give the file inside.",
            )
        return "excel", "it begins like an Excel workbook"
    text = decode(source, latin=True)
    lines = first_lines(text, 3)
    if begins_like_json(lines[0]) or begins_like_edx(lines[0]):
        return _sniff_json(text)
    if looks_like_slam(lines):
        return "slam", "it begins with the header of an exercise"
    if looks_like_three_lines(lines):
        return "three-line", "it begins with a length, a line of skills and a line of outcomes"
    separator = guess_separator(lines[0])
    names = header_names(lines[0], separator)
    if found := _sniff_header(names, tabs=separator == "\t"):
        return found
    if len(names) > 1:
        return ("tsv" if separator == "\t" else "csv"), f"its first line has {SEPARATORS[separator]}"
    refuse_title_line(source)
    raise DataError(
        f"{source.name}: the content is in no format that the reader knows.",
        hint="a log begins with a line of column names, by commas or tabs; for other formats, name the format.",
        code="unknown-format",
        settings=("format",),
    )


def _sniff_header(names: Sequence[str], *, tabs: bool = True) -> tuple[str, str] | None:
    """The format of a platform's table, by the names of its columns."""
    if tabs and looks_like_datashop(names):
        return "datashop", "its header has the columns of a DataShop export"
    if looks_like_moodle(names):
        return "moodle", "its header has the columns of a Moodle log"
    if looks_like_page_views(names):
        return "canvas-page-views", "its header has the columns of Canvas's page views"
    if looks_like_web_logs(names):
        return "canvas-web-logs", "it has the fields of Canvas's web_logs"
    if looks_like_submissions(names):
        return "canvas-submissions", "it has the fields of Canvas's submissions"
    if looks_like_assistments(names):
        return "assistments", "its header has the columns of ASSISTments data"
    if looks_like_eedi(names):
        return "eedi", "its header has the columns of Eedi's answers"
    if looks_like_junyi(names):
        return "junyi", "its header has the columns of Junyi Academy's log"
    if {"user", "item", "skill", "correct"} <= {plain(name) for name in names}:
        return "user-item-skill", "its header has user, item, skill and correct"
    return None


def _sniff_json(text: Text) -> tuple[str, str]:
    """The format of records, by the names of the first one's fields."""
    record = first_record(text) or {}
    if {"key", "meta"} <= record.keys():
        fields = fields_in(text)
        refuse_other_tables(fields, text.name)
        return _sniff_header(fields) or ("xapi", "it begins like JSON")
    if looks_like_moodle(tuple(record)) or are_rows(text):
        return "moodle", "its records are those of a Moodle log"
    if looks_like_edx(record):
        return "edx", "it begins with an event of an edX tracking log"
    if looks_like_caliper(record):
        return "caliper", "it begins with a Caliper envelope or event"
    return "xapi", "it begins like JSON"


def read_events(
    path: Path | str | DatabaseAddress,
    options: ReadOptions = ReadOptions(),  # noqa: B008 (frozen)
    format: str | None = None,
) -> tuple[EventTable, str]:
    """The events in a file or a folder, checked, and the name of its format.

    The format is found from the content unless `format` names it. People's names live in the table only:
    a wing that makes its record of it lets go of them.
    """
    check_format(format)
    if isinstance(path, DatabaseAddress):
        return _read_database(path, options, format)
    if Path(path).is_dir():
        return _read_folder(open_folder(Path(path)), options, format)
    if format in _OF_FOLDERS and format not in _OF_TABLES:
        raise UsageError(
            f"the format {format} is a folder of files, and '{Path(path).name}' is none.",
            hint="give the folder, or name another format.",
            code="not-a-folder",
            settings=("format",),
        )
    if format == DATABASE:
        raise UsageError(
            f"the format {DATABASE} is that of an address, and '{Path(path).name}' is a file.",
            hint="name another format, or give an address such as duckdb:school.db?table=events.",
            code="unknown-format",
            settings=("format",),
        )
    source = open_source(path)
    asked, why = format is not None, ""
    guesses: tuple[Guess, ...] = ()
    if options.no_header:
        format, why, guesses = _without_header(source, format)
    if format is None:
        format, why = sniff(source)
        if format in _WITHOUT_HEADER:
            what = f"from a learner's rows that the format is {format}"
            guesses = (Guess(what, ("format",), declare={"format": format}),)
    refuse_sheet(options.sheet, "excel" if source.data.startswith(EXCEL_MAGICS) else format)
    _refuse_verbs(options, format)
    if format in _OF_TABLES:
        table = _table(source, format, options, guessed=not asked)
        if not asked and format in ("excel", "parquet"):
            format, why = _sniff_header(table.names) or (format, why)
        if not asked and options.columns.action is None:
            refuse_gradebook(table.names, source.name)
            refuse_other_tables(table.names, source.name)
        events = _OF_TABLES[format](table, options)
    else:
        events = _OF_TEXTS[format](decode(source, latin=False), options)
    events.guesses += guesses
    events.settle(options)
    events.notes.insert(0, _read_as(format, "" if asked else why))
    return events, format


def _read_database(
    address: DatabaseAddress, options: ReadOptions, format: str | None
) -> tuple[EventTable, str]:
    """The events of a table or a query of a database."""
    asked = format is not None
    stream, format, why = _stream_of(address, format)
    refuse_sheet(options.sheet, format)
    _refuse_verbs(options, format)
    stream.head()  # says so if there is no row
    frame = pl.concat(stream.blocks(range(len(stream.names))))
    table = FrameTable(stream.file, stream.names, frame.drop("line"), frame["line"])
    events = _OF_TABLES[format](table, options)
    stream.require_order(has_times="time" in events.columns)
    events.settle(options)
    events.notes.insert(0, _read_as(format, "" if asked else why))
    return events, format


def _stream_of(address: DatabaseAddress, format: str | None) -> tuple[DatabaseStream, str, str]:
    stream = open_database_stream(address, scratch_parent())
    why = f"it is a table of {address.kind}"
    if format is None:
        format, why = _sniff_header(stream.names) or (DATABASE, why)
    if format not in _OF_TABLES:
        raise UsageError(
            f"{address.name}: the format {format} is one of files.",
            hint="leave the format out.",
            code="unknown-format",
            settings=("format",),
        )
    return stream, format, why


def read_events_in_pieces(
    path: Path | DatabaseAddress, options: ReadOptions, format: str | None, folder: Callable[[], Path]
) -> EventPieces | None:
    """The events of a large table, some learners at a time; None where the file is small or has to be read whole.

    Its rows are kept in `folder()` for as long as pieces are read.
    """
    check_format(format)
    if options.no_header or options.sheet is not None or options.verbs:
        return None
    found = _large_table(path, format)
    if found is None:
        return None
    stream, found_format, why = found
    if format is None and options.columns.action is None:
        refuse_gradebook(stream.names, stream.file)
        refuse_other_tables(stream.names, stream.file)
    note = _read_as(found_format, "" if format else why)
    return read_pieces(stream, found_format, [note], _OF_TABLES[found_format], options, folder())


def _large_table(path: Path | DatabaseAddress, format: str | None) -> tuple[Stream, str, str] | None:
    """A table that is read in pieces, its format, and the reason for it; those of databases are of any size."""
    if isinstance(path, DatabaseAddress):
        stream, found_format, why = _stream_of(path, format)
        return (stream, found_format, why) if found_format in _IN_PIECES else None
    if format == DATABASE:
        return None
    if is_data_set(path):
        return None
    if (parquet := open_parquet(path)) is not None:
        why = "the folder has Parquet files" if path.is_dir() else "it begins like a Parquet file"
        found = (format, "") if format else _sniff_header(parquet.names) or ("parquet", why)
        return (parquet, *found) if found[0] in _IN_PIECES else None
    if (begin := begin_of_text(path)) is None:
        return None
    found = (format, "") if format else sniff(begin)
    if found[0] not in _IN_PIECES or found[0] == "parquet":
        return None
    return (open_text(path, begin, "\t" if found[0] == "tsv" else None), *found)


def is_data_set(path: Path) -> bool:
    """Whether a folder is a data set that is known by the names of its files."""
    return path.is_dir() and any(looks_like(open_folder(path)) for looks_like, _ in _OF_FOLDERS.values())


def _without_header(source: Source, format: str | None) -> tuple[str, str, tuple[Guess, ...]]:
    """The format of a table whose first line is a row; what separates its fields is then a learner's to show."""
    if format is not None:
        if format not in _SEPARATORS:
            raise UsageError(
                f"a file without a header was declared, but the format {format} is known by its own names.",
                hint="such a file is csv (by commas) or tsv (by tabs).",
                code="no-header-there",
                settings=("no_header", "format"),
            )
        return format, "", ()
    if source.data.startswith((PARQUET_MAGIC, *EXCEL_MAGICS)):
        raise UsageError(
            f"{source.name}: a file without a header was declared, but this is a workbook or a Parquet file.",
            hint="give such a table as csv.",
            code="no-header-there",
            settings=("no_header",),
        )
    separator = guess_separator(first_lines(decode(source, latin=True), 1)[0])
    found = "tsv" if separator == "\t" else "csv"
    guess = Guess("from the first row what separates the fields", ("format",), declare={"format": found})
    if separator not in _SEPARATORS.values():
        guess = Guess("from the first row what separates the fields", hint="save the file with commas.")
    return found, f"its first line has {SEPARATORS[separator]}", (guess,)


def _read_folder(folder: Folder, options: ReadOptions, format: str | None) -> tuple[EventTable, str]:
    asked = format is not None
    if format is None:
        format = next((name for name, (looks_like, _) in _OF_FOLDERS.items() if looks_like(folder)), None)
    if format not in _OF_FOLDERS:
        raise UsageError(
            f"'{folder.path}' is a folder, and no data set that the reader knows by the files inside."
            if format is None
            else f"'{folder.path}' is a folder, and the format {format} is one of single files.",
            hint=f"give one file; folders are read of {', '.join(_OF_FOLDERS)}.",
            code="unknown-folder",
            settings=("format",),
        )
    refuse_sheet(options.sheet, format)
    _refuse_verbs(options, format)
    events = _OF_FOLDERS[format][1](folder, options)
    events.settle(options)
    why = "as asked" if asked else "by the names of the files in the folder"
    events.notes.insert(0, f"Read as {format}, {why}.")
    return events, format


def _read_as(format: str, why: str) -> str:
    """The note on the format of a file, and why it is that one; nothing if it was asked for."""
    return f"Read as {format}: {why}." if why else f"Read as {format}, as asked."


def _refuse_verbs(options: ReadOptions, format: str) -> None:
    if options.verbs and format not in _WITH_VERBS:
        raise UsageError(
            f"actions were to say what was done, but a file of format {format} has no verbs.",
            hint="leave that out.",
            code="no-verbs",
            settings=("verbs",),
        )


def table_of(path: Path | str, format: str, sheet: str | None = None) -> Table | None:
    """The table in a file of a format, with all of its columns; None for formats that have no columns."""
    if format not in _OF_TABLES or Path(path).is_dir():
        return None
    return _table(open_source(path), format, ReadOptions(sheet=sheet))


def check_format(format: str | None) -> None:
    """Refuse the name of a format that does not exist."""
    if format is not None and format not in formats():
        raise UsageError(
            f"there is no format '{format}'.",
            hint="the formats are " + ", ".join(formats()) + ".",
            code="no-such-format",
            settings=("format",),
        )


def refuse_sheet(sheet: str | None, format: str) -> None:
    """Refuse the name of a sheet where the file is not a workbook."""
    if sheet is not None and format != "excel":
        raise UsageError(
            f"a sheet was named, but a file of format {format} has none.",
            hint="leave the sheet out.",
            code="no-sheets",
            settings=("sheet",),
        )


def formats() -> tuple[str, ...]:
    """The names of the formats that can be read."""
    return tuple(sorted({*_OF_TABLES, *_OF_TEXTS, *_OF_FOLDERS}))


def _table(source: Source, format: str, options: ReadOptions, *, guessed: bool = False) -> Table:
    """The table in a file; one of a platform may be in a workbook or a Parquet file too."""
    anywhere = format not in _PLAIN_TABLES
    if format == "parquet" or (anywhere and source.data.startswith(PARQUET_MAGIC)):
        table = read_parquet(source)
        return table.flat() if {"key", "value", "meta"} <= set(table.names) else table
    if format == "excel" or (anywhere and source.data.startswith(EXCEL_MAGICS)):
        return read_workbook(source, options.sheet)
    if format in _IN_JSON and begins_like_json(first_lines(decode(source, latin=False), 1)[0]):
        return _IN_JSON[format](decode(source, latin=False))
    if options.no_header:
        first = first_lines(decode(source, latin=True), 1)[0]
        return table_in(source, guess_separator(first) if guessed else _SEPARATORS[format], header=False)
    return table_in(source, "\t" if format in ("datashop", "tsv") else None)


# Platforms that export the same table also as JSON.
_IN_JSON: dict[str, Callable[[Text], Table]] = {
    "canvas-submissions": canvas_records,
    "canvas-web-logs": canvas_records,
    "moodle": moodle_records,
}
_OF_TABLES: dict[str, Callable[[Table, ReadOptions], EventTable]] = {
    **dict.fromkeys(_PLAIN_TABLES, read_table),
    "assistments": read_assistments,
    "canvas-page-views": read_page_views,
    "canvas-submissions": read_submissions,
    "canvas-web-logs": read_web_logs,
    "datashop": read_datashop,
    "eedi": read_eedi,
    "junyi": read_junyi,
    "moodle": read_moodle,
    "user-item-skill": lambda table, options: read_table(table, options, defaults=USER_ITEM_SKILL),
}
_OF_TEXTS: dict[str, Callable[[Text, ReadOptions], EventTable]] = {
    "caliper": read_caliper,
    "edx": read_edx,
    "slam": read_slam,
    "three-line": read_three_line,
    "xapi": read_xapi,
}
# Whether a folder is of this format by the names of its files, and how it is read.
_OF_FOLDERS: dict[str, tuple[Callable[[Folder], bool], Callable[[Folder, ReadOptions], EventTable]]] = {
    "oulad": (looks_like_oulad, read_oulad),
    "eedi": (folder_of_eedi, read_eedi_folder),
    "ednet": (looks_like_ednet, read_ednet),
}
