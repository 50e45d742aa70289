"""Read a log: open the file, find its format, take the columns that are needed and forget the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import polars as pl

from understudy.core.events.assistments import draft_assistments, looks_like_assistments
from understudy.core.events.datashop import draft_datashop, looks_like_datashop
from understudy.core.events.event_table import Draft, Request, interactions_of, used_columns
from understudy.core.events.slam import draft_slam, looks_like_slam
from understudy.core.events.three_line import draft_three_line, looks_like_three_lines
from understudy.core.events.xapi import draft_xapi
from understudy.core.files.columns import Columns, choose_columns, plain, reject_duplicates
from understudy.core.files.delimited import SEPARATORS, guess_separator, header_names, read_delimited
from understudy.core.files.identifiers import Identifier
from understudy.core.files.mentions import identifiers_in_actions
from understudy.core.files.source import Source, Text, decode, open_source
from understudy.core.files.tables import MAGIC as PARQUET_MAGIC
from understudy.core.files.tables import MAGICS as EXCEL_MAGICS
from understudy.core.files.tables import Table, read_parquet, read_workbook
from understudy.core.files.withdrawals import read_withdrawn
from understudy.errors import DataError, UsageError
from understudy.logs.interactions import Interactions

# In these files an item trains a skill, and the skill is what is learned.
USER_ITEM_SKILL = Columns(learner="user", action="skill", outcome="correct", item="item")


def draft_table(table: Table, request: Request, *, defaults: Columns | None = None) -> Draft:
    """The rows of a table with one attempt per row."""
    reject_duplicates(table.names, table.file)
    positions = choose_columns(table.names, request.columns, table.file, defaults=defaults or Columns())
    columns = used_columns(table.names, positions)
    draft = Draft(table.file, table.read(positions), columns, list(table.notes), table.place)
    draft.find_people(table)
    draft.tidy(request)
    return draft


def sniff(source: Source) -> tuple[str, str]:
    """A format's name and the reason for it, which reads on from "Read as csv:"."""
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
    if lines[0].lstrip().startswith(("{", "[")):
        return "xapi", "it begins like JSON"
    if looks_like_slam(lines):
        return "slam", "it begins with the header of an exercise"
    if looks_like_three_lines(lines):
        return "three-line", "it begins with a length, a line of skills and a line of outcomes"
    separator = guess_separator(lines[0])
    names = header_names(lines[0], separator)
    if separator == "\t" and looks_like_datashop(names):
        return "datashop", "its header has the columns of a DataShop export"
    if looks_like_assistments(names):
        return "assistments", "its header has order_id, user_id, correct and a skill"
    if {"user", "item", "skill", "correct"} <= {plain(name) for name in names}:
        return "user-item-skill", "its header has user, item, skill and correct"
    if len(names) > 1:
        return ("tsv" if separator == "\t" else "csv"), f"its first line has {SEPARATORS[separator]}"
    raise DataError(
        f"{source.name}: the content is in no format that the reader knows.",
        hint="a log begins with a line of column names, by commas or tabs; other formats: see --format.",
    )


def first_lines(text: Text, n_lines: int) -> list[str]:
    """The first lines that are not blank, without decoding the whole text."""
    lines: list[str] = []
    begin = 0
    while len(lines) < n_lines and begin < len(text.data):
        end = text.data.find(b"\n", begin)
        end = len(text.data) if end < 0 else end
        line = text.data[begin:end].decode()
        if line.strip():
            lines.append(line)
        begin = end + 1
    return lines


@dataclass(frozen=True, repr=False)
class LogFile:
    """A log, and what people should know about how it was read.

    `columns` maps a role to the column used for it; `notes` are sentences with counts, on
    what was dropped, merged or assumed; `identifiers` are columns that identify people.
    `n_withdrawn` learners were left out because a list says so; `n_absent` names of that
    list are not in the log.
    """

    interactions: Interactions
    format: str
    columns: Mapping[str, str]
    notes: tuple[str, ...]
    identifiers: tuple[Identifier, ...]
    n_withdrawn: int = 0
    n_absent: int = 0

    def __repr__(self) -> str:
        return f"<LogFile: {self.format}, {self.interactions!r}>"


def read_log(
    path: Path | str,
    *,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008 (frozen)
    exclude: Path | str | None = None,
    skills: Literal["merge", "keep"] = "merge",
    single_rows: bool = False,
) -> LogFile:
    """The log in a file.

    The format is found from the content unless `format` names it. Rows of learners listed
    in the file `exclude` are removed before anything else. `skills` says whether the skills
    of one attempt become one action or rows of their own, in formats that have several.
    `single_rows` admits a log in which no learner has two rows.
    """
    if format is not None and format not in _READERS:
        raise UsageError(
            f"there is no format '{format}'.", hint="the formats are " + ", ".join(formats()) + "."
        )
    if skills not in ("merge", "keep"):
        raise UsageError(f"skills are to 'merge' or to 'keep', not to '{skills}'.", hint="choose one.")
    source = open_source(path)
    request = Request(columns, None if exclude is None else read_withdrawn(exclude), skills, single_rows)
    if format is None:
        format, why = sniff(source)
        note = f"Read as {format}: {why}."
    else:
        note = f"Read as {format}, as asked."
    draft = _READERS[format](source, request)
    interactions = interactions_of(draft, request)
    # People's names live in the draft only, and end with this function.
    actions = pl.Series(interactions.actions, dtype=pl.String)
    mentioned = identifiers_in_actions(draft.columns["action"], actions, draft.learners, draft.people)
    known = {(found.column, found.kind, found.role) for found in mentioned}
    by_column = [f for f in draft.identifiers if (f.column, f.kind, f.role) not in known]
    return LogFile(
        interactions,
        format,
        MappingProxyType(dict(draft.columns)),
        (note, *draft.notes),
        (*by_column, *mentioned),
        n_withdrawn=draft.n_withdrawn,
        n_absent=draft.n_absent,
    )


def formats() -> tuple[str, ...]:
    """The names of the formats that can be read."""
    return tuple(sorted(_READERS))


def _delimited(source: Source, separator: str | None = None) -> Table:
    text = decode(source, latin=True)
    if separator is None:
        separator = guess_separator(first_lines(text, 1)[0])
    return read_delimited(text, separator)


def _text(source: Source) -> Text:
    return decode(source, latin=False)


_READERS: dict[str, Callable[[Source, Request], Draft]] = {
    "assistments": lambda source, request: draft_assistments(_delimited(source), request),
    "csv": lambda source, request: draft_table(_delimited(source), request),
    "datashop": lambda source, request: draft_datashop(_delimited(source, "\t"), request),
    "excel": lambda source, request: draft_table(read_workbook(source), request),
    "parquet": lambda source, request: draft_table(read_parquet(source), request),
    "slam": lambda source, request: draft_slam(_text(source), request),
    "three-line": lambda source, request: draft_three_line(_text(source), request),
    "tsv": lambda source, request: draft_table(_delimited(source, "\t"), request),
    "user-item-skill": lambda source, request: draft_table(
        _delimited(source), request, defaults=USER_ITEM_SKILL
    ),
    "xapi": lambda source, request: draft_xapi(_text(source), request),
}
