"""Tables in delimited text: csv and tsv, of which only the columns that are needed are read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.columns import count_known
from understudy.core.files.notes import Count, CountingNote
from understudy.core.files.source import (
    Guess,
    Source,
    Text,
    decode,
    first_lines,
    keeping_values_inside,
    line_in_file,
)
from understudy.core.files.tables import Table, sampled_rows
from understudy.errors import DataError

QUOTE, NEWLINE = ord('"'), ord("\n")
CHUNK = 1 << 24

Positions = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Structure:
    """The records of a text, blank ones left out; all have as many fields as the first."""

    starts: Positions
    ends: Positions  # behind the line feed
    lines: Positions
    n_fields: int
    quoted: bool
    n_blank: int
    spans_lines: bool
    """Whether a record below the first one has a line feed within quotation marks."""


def scan(data: bytes, separator: str, file: str, above: int = 1) -> Structure:
    """The structure of a text, or an error that names the first line that breaks it.

    Quotation marks that begin a field enclose it. Tab-separated exports rarely quote, so there each field
    is looked at by itself (see `_without_quotes`): a mark in one row must not decide how others are read.
    `above` is that of a block of a file (`source.Source`).
    """
    begins = re.search(rb'(?:^|[\n%s])"' % re.escape(separator).encode(), data) is not None
    return _scan(data, separator, file, above, quoted=begins and separator != "\t")


def _scan(data: bytes, separator: str, file: str, above: int, *, quoted: bool) -> Structure:
    if not data.endswith(b"\n"):
        data += b"\n"
    content = np.frombuffer(data, dtype=np.uint8)
    if quoted:
        _check_quotes(content, ord(separator), file, above)
    ends, fields, lines = [], [], []
    inside_before, line_before, open_separators = 0, 0, 0
    for begin in range(0, len(content), CHUNK):
        chunk = content[begin : begin + CHUNK]
        feeds = np.flatnonzero(chunk == NEWLINE)
        separators = np.flatnonzero(chunk == ord(separator))
        numbers = line_before + 1 + np.arange(len(feeds))
        line_before += len(feeds)
        if quoted:
            # An escaped quotation mark is two of them, so their parity alone says what lies inside.
            inside = (np.cumsum(chunk == QUOTE, dtype=np.uint8) + inside_before) & 1
            inside_before = int(inside[-1])
            outside = inside[feeds] == 0
            feeds, numbers = feeds[outside], numbers[outside]
            separators = separators[inside[separators] == 0]
        before = np.searchsorted(separators, feeds)
        counts = np.diff(before, prepend=0)
        if len(counts):
            counts[0] += open_separators
            open_separators = len(separators) - int(before[-1])
        else:
            open_separators += len(separators)
        ends.append(feeds + begin + 1)
        fields.append(counts + 1)
        lines.append(numbers)
    all_ends = np.concatenate(ends)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), all_ends[:-1]])
    # The line feed that ends a record has the number of the record's last line; its first one follows.
    first_lines = np.concatenate([np.ones(1, dtype=np.int64), np.concatenate(lines)[:-1] + 1])
    filled = all_ends - starts > 1
    spans = np.concatenate(lines) > first_lines
    first_lines[1:] += above - 1
    n_fields = np.concatenate(fields)[filled]
    if not len(n_fields):
        raise DataError(f"{file}: the file is empty.", hint="check the export.")
    ragged = n_fields != n_fields[0]
    if ragged.any():
        first = int(ragged.argmax())
        raise DataError(
            f"{file}: line {first_lines[filled][first]} has {n_fields[first]} fields where the first line "
            f"has {n_fields[0]} ({int(ragged.sum())} such lines).",
            hint="a field that holds the separator or a line break has to stand in quotation marks.",
        )
    return Structure(
        starts[filled],
        all_ends[filled],
        first_lines[filled],
        int(n_fields[0]),
        quoted,
        int((~filled).sum()),
        bool(spans[filled][1:].any()),
    )


def _check_quotes(content: NDArray[np.uint8], separator: int, file: str, above: int) -> None:
    """Refuse quotation marks that neither begin nor end a field: what they enclose is anybody's guess."""
    quotes = np.flatnonzero(content == QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    previous = content[np.maximum(opening - 1, 0)]
    stray_opening = opening[(opening > 0) & ~np.isin(previous, (separator, NEWLINE, QUOTE))]
    # The text ends with a line feed, so there is always a next byte.
    stray_closing = closing[~np.isin(content[closing + 1], (separator, NEWLINE, QUOTE))]
    stray = np.concatenate([stray_opening, stray_closing])
    if len(stray):
        line = line_in_file(1 + int((content[: stray.min()] == NEWLINE).sum()), above)
        raise DataError(
            f"{file}: a quotation mark on line {line} stands inside a field.",
            hint="enclose the field in quotation marks and double those inside it.",
        )
    if len(opening) > len(closing):
        line = line_in_file(1 + int((content[: opening[-1]] == NEWLINE).sum()), above)
        raise DataError(
            f"{file}: the quotation mark that opens on line {line} is never closed.",
            hint="the file may be cut short; close the field or export again.",
        )


SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
_BROKEN = "the rows cannot be separated"


@dataclass(frozen=True, repr=False)
class DelimitedTable:
    """A delimited text that has been checked for its structure and is read column by column."""

    file: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    _data: bytes
    _structure: Structure
    _separator: str
    _n_header: int = 1
    place: str = field(default="line", init=False)

    @property
    def guesses(self) -> tuple[Guess, ...]:
        """See `Table.guesses`.

        A quotation mark that one learner's row leaves open ends with one of the same learner further down, and all
        rows between them are within it. Where every record is a line, each line is read by itself.
        """
        if not self._structure.spans_lines:
            return ()
        hint = "write each row on one line, without line breaks in its cells; or give a workbook or a Parquet file."
        return (Guess("that a cell goes on over several lines", hint=hint),)

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        structure = self._structure
        if structure.n_blank:
            keep = np.zeros(len(self._data) + 1, dtype=np.int8)
            np.add.at(keep, structure.starts[self._n_header :], 1)
            np.add.at(keep, np.minimum(structure.ends[self._n_header :], len(self._data)), -1)
            mask = np.cumsum(keep[:-1], dtype=np.int8).astype(bool)
            body = np.frombuffer(self._data, dtype=np.uint8)[mask].tobytes()
        else:
            body = self._data[structure.starts[self._n_header] :]
        frame = self._parse(body, sorted(set(positions.values())))
        if frame.height != len(structure.lines) - self._n_header:
            raise DataError(f"{self.file}: {_BROKEN}.", hint="save the file as csv again, in UTF-8.")
        return frame.select(
            *(pl.col(str(at)).alias(role) for role, at in positions.items()),
            pl.Series("line", structure.lines[self._n_header :]),
        )

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`."""
        n_rows = len(self._structure.starts) - self._n_header
        rows = sampled_rows(n_rows) + self._n_header
        starts, ends = self._structure.starts, self._structure.ends
        body = b"".join(self._data[starts[row] : ends[row]] for row in rows)
        return self._parse(body, range(len(self.names)))

    def _parse(self, body: bytes, positions: Sequence[int]) -> pl.DataFrame:
        with keeping_values_inside(f"{self.file}: {_BROKEN}.", hint="save the file as csv again, in UTF-8."):
            frame = pl.read_csv(
                body,
                has_header=False,
                separator=self._separator,
                quote_char='"' if self._structure.quoted else None,
                schema={str(at): pl.String for at in range(len(self.names))},
                columns=list(positions),
            )
        return frame.with_columns(_without_quotes(pl.all())) if self._separator == "\t" else frame


def _without_quotes(field: pl.Expr) -> pl.Expr:
    """What a field of a tab-separated row holds: quotation marks around the whole of it enclose it."""
    enclosed = field.str.contains(r'^".*"$')
    inner = field.str.slice(1, field.str.len_chars() - 2).str.replace_all('""', '"', literal=True)
    return pl.when(enclosed).then(inner).otherwise(field)


def read_delimited(text: Text, separator: str, *, header: bool = True) -> DelimitedTable:
    """A table from a text whose first line holds the columns' names; without such a line they are numbers from 1 on."""
    structure = scan(text.data, separator, text.name, text.above)
    if header and len(structure.starts) < 2:
        raise DataError(
            f"{text.name}: the log is empty: there is a header but no row.", hint="check the export."
        )
    first = text.data[structure.starts[0] : structure.ends[0]].decode()
    names = _header(first, separator, structure.quoted, text.name)
    if not header:
        names = tuple(str(number) for number in range(1, structure.n_fields + 1))
    if len(names) < 2:
        raise DataError(
            f"{text.name}: every line has one field only.",
            hint="fields are separated by commas, tabs, semicolons or vertical bars.",
        )
    notes = list(text.notes)
    if separator not in ",\t":
        notes.append(f"Fields were separated by {SEPARATORS[separator]}.")
    if not structure.quoted and b'"' in text.data:
        notes.append("Quotation marks do not enclose fields in this file and were read as they are.")
    if structure.n_blank:
        notes.append(CountingNote(Count(structure.n_blank), " blank lines were skipped."))
    return DelimitedTable(text.name, names, tuple(notes), text.data, structure, separator, int(header))


def table_in(source: Source, separator: str | None = None, *, header: bool = True) -> DelimitedTable:
    """The table in a file of text; an error says if the header stands below a title."""
    text = decode(source, latin=True)
    if not header:
        return read_delimited(text, separator or guess_separator(first_lines(text, 1)[0]), header=False)
    try:
        table = read_delimited(text, separator or guess_separator(first_lines(text, 1)[0]))
    except DataError:
        refuse_title_line(source)
        raise
    _refuse_title(table)
    return table


def guess_separator(first_line: str) -> str:
    """The separator under which the line looks most like a header: known names first, then fields."""

    def score(separator: str) -> tuple[int, int]:
        names = _split(first_line, separator, quoted=True)
        return count_known(names) if len(names) > 1 else 0, len(names)

    return max(SEPARATORS, key=score)


def header_names(first_line: str, separator: str) -> tuple[str, ...]:
    """The columns' names on a first line, for recognising formats."""
    return tuple(name.strip() for name in _split(first_line, separator, quoted=True))


def _header(header: str, separator: str, quoted: bool, file: str) -> tuple[str, ...]:
    names = _split(header, separator, quoted or separator == "\t")
    if not names:
        raise DataError(f"{file}: the first line is no header.", hint="begin with the columns' names.")
    return tuple(name.strip() or f"column {position}" for position, name in enumerate(names, start=1))


def _split(header: str, separator: str, quoted: bool) -> list[str]:
    if not quoted:
        return header.rstrip("\n").split(separator)
    try:
        return next(csv.reader(io.StringIO(header.rstrip("\n"), newline=""), delimiter=separator), [])
    except csv.Error:
        return []


_LINES = 20
_UNNAMED = re.compile(r"column \d+")


def _refuse_title(table: Table) -> None:
    """Refuse a table whose first line has one name only, while some line below it is filled."""
    named = sum(not _UNNAMED.fullmatch(name) for name in table.names)
    # Two columns are too few: statistics programs leave the name of the rows' names empty.
    if named != 1 or len(table.names) < 3:
        return
    frame = table.read({str(at): at for at in range(len(table.names))}).head(_LINES)
    cells = pl.exclude("line").cast(pl.String, strict=False).str.strip_chars().fill_null("")
    filled = frame.select(pl.sum_horizontal(cells != "")).to_series()
    if (filled >= 3).any():
        raise _title(table.file, table.place, int(frame["line"][int((filled >= 3).arg_max() or 0)]))


def refuse_title_line(source: Source) -> None:
    """Refuse a text whose first line is one field, while a line below it has several."""
    if b"\0" in source.data[:4096]:
        return
    lines = decode(source, latin=True).data[: 1 << 16].decode(errors="ignore").split("\n")[:_LINES]
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not filled or filled[0][1].lstrip().startswith(("{", "[")) or _n_filled(filled[0][1]) != 1:
        return
    for number, line in filled[1:]:
        if _n_filled(line) > 1:
            raise _title(source.name, "line", number, filled[0][0])


def _n_filled(line: str) -> int:
    return sum(bool(field.strip(' "\r')) for field in line.split(guess_separator(line)))


def _title(file: str, place: str, header: int, title: int = 1) -> DataError:
    return DataError(
        f"{file}: {place} {title} looks like a title; the header seems to be on {place} {header}.",
        hint="remove the lines above the header.",
    )
