"""Where the records of a delimited text begin and how many fields they have, before anything parses them.

A parser that meets a ragged row either fills it up silently or quotes it in its error.
This scan does neither: it knows lines and counts only. It runs on arrays, chunk by chunk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def scan(data: bytes, separator: str, file: str) -> Structure:
    """The structure of a text, or an error that names the first line that breaks it.

    Quotation marks that begin a field enclose it. If no field begins with one, or if they
    enclose nothing consistently in a tab-separated export, as those rarely quote, they are
    ordinary characters.
    """
    if not re.search(rb'(?:^|[\n%s])"' % re.escape(separator).encode(), data):
        return _scan(data, separator, file, quoted=False)
    try:
        return _scan(data, separator, file, quoted=True)
    except DataError as error:
        if separator != "\t":
            raise
        try:
            return _scan(data, separator, file, quoted=False)
        except DataError:
            raise error from None


def _scan(data: bytes, separator: str, file: str, *, quoted: bool) -> Structure:
    if not data.endswith(b"\n"):
        data += b"\n"
    content = np.frombuffer(data, dtype=np.uint8)
    if quoted:
        _check_quotes(content, ord(separator), file)
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
        starts[filled], all_ends[filled], first_lines[filled], int(n_fields[0]), quoted, int((~filled).sum())
    )


def _check_quotes(content: NDArray[np.uint8], separator: int, file: str) -> None:
    """Refuse quotation marks that neither begin nor end a field: what they enclose is anybody's guess."""
    quotes = np.flatnonzero(content == QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    previous = content[np.maximum(opening - 1, 0)]
    stray_opening = opening[(opening > 0) & ~np.isin(previous, (separator, NEWLINE, QUOTE))]
    # The text ends with a line feed, so there is always a next byte.
    stray_closing = closing[~np.isin(content[closing + 1], (separator, NEWLINE, QUOTE))]
    stray = np.concatenate([stray_opening, stray_closing])
    if len(stray):
        line = 1 + int((content[: stray.min()] == NEWLINE).sum())
        raise DataError(
            f"{file}: a quotation mark on line {line} stands inside a field.",
            hint="enclose the field in quotation marks and double those inside it.",
        )
    if len(opening) > len(closing):
        line = 1 + int((content[: opening[-1]] == NEWLINE).sum())
        raise DataError(
            f"{file}: the quotation mark that opens on line {line} is never closed.",
            hint="the file may be cut short; close the field or export again.",
        )
