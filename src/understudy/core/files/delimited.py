"""Tables in delimited text: csv and tsv, of which only the columns that are needed are read."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from understudy.core.files.columns import count_known
from understudy.core.files.source import Text, keeping_values_inside
from understudy.core.files.structure import Structure, scan
from understudy.core.files.tables import SAMPLE_ROWS
from understudy.errors import DataError

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
_BROKEN = "the rows cannot be told apart"


@dataclass(frozen=True, repr=False)
class DelimitedTable:
    """A delimited text that has been checked for its structure and is read column by column."""

    file: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    _data: bytes
    _structure: Structure
    _separator: str
    place: str = field(default="line", init=False)

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        structure = self._structure
        if structure.n_blank:
            keep = np.zeros(len(self._data) + 1, dtype=np.int8)
            np.add.at(keep, structure.starts[1:], 1)
            np.add.at(keep, np.minimum(structure.ends[1:], len(self._data)), -1)
            mask = np.cumsum(keep[:-1], dtype=np.int8).astype(bool)
            body = np.frombuffer(self._data, dtype=np.uint8)[mask].tobytes()
        else:
            body = self._data[structure.starts[1] :]
        frame = self._parse(body, sorted(set(positions.values())))
        if frame.height != len(structure.lines) - 1:
            raise DataError(f"{self.file}: {_BROKEN}.", hint="save the file as csv again, in UTF-8.")
        return frame.select(
            *(pl.col(str(at)).alias(role) for role, at in positions.items()),
            pl.Series("line", structure.lines[1:]),
        )

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`."""
        n_rows = len(self._structure.starts) - 1
        rows = range(1, n_rows + 1, max(1, -(-n_rows // SAMPLE_ROWS)))
        starts, ends = self._structure.starts, self._structure.ends
        body = b"".join(self._data[starts[row] : ends[row]] for row in rows)
        return self._parse(body, range(len(self.names)))

    def _parse(self, body: bytes, positions: Sequence[int]) -> pl.DataFrame:
        with keeping_values_inside(f"{self.file}: {_BROKEN}.", hint="save the file as csv again, in UTF-8."):
            return pl.read_csv(
                body,
                has_header=False,
                separator=self._separator,
                quote_char='"' if self._structure.quoted else None,
                schema={str(at): pl.String for at in range(len(self.names))},
                columns=list(positions),
            )


def read_delimited(text: Text, separator: str) -> DelimitedTable:
    """A table from a text whose first line holds the columns' names."""
    structure = scan(text.data, separator, text.name)
    if len(structure.starts) < 2:
        raise DataError(
            f"{text.name}: the log is empty: there is a header but no row.", hint="check the export."
        )
    header = text.data[structure.starts[0] : structure.ends[0]].decode()
    names = _header(header, separator, structure.quoted, text.name)
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
        notes.append(f"{structure.n_blank} blank lines were skipped.")
    return DelimitedTable(text.name, names, tuple(notes), text.data, structure, separator)


def guess_separator(first_line: str) -> str:
    """The separator under which the line looks most like a header: known names first, then fields."""

    def score(separator: str) -> tuple[int, int]:
        names = _split(first_line, separator, quoted=True)
        return count_known(names) if len(names) > 1 else 0, len(names)

    return max(SEPARATORS, key=score)


def header_names(first_line: str, separator: str) -> tuple[str, ...]:
    """The columns' names on a first line, for telling formats apart."""
    return tuple(name.strip() for name in _split(first_line, separator, quoted=True))


def _header(header: str, separator: str, quoted: bool, file: str) -> tuple[str, ...]:
    names = _split(header, separator, quoted)
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
