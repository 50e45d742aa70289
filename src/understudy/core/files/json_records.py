"""JSON with an object per key event or snapshot, in lines or in an array, as a table of named fields."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from understudy.core.files.source import Text, first_lines, keeping_values_inside
from understudy.core.files.statements import load_statements
from understudy.core.files.tables import SAMPLE_ROWS
from understudy.errors import DataError

# Fields are known from the first objects; one that comes later only is nobody's column.
LOOKED_AT = 200


@dataclass(frozen=True, repr=False)
class LinesTable:
    """Objects of which only the fields that are needed are read, as text."""

    file: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    _text: Text
    _in_lines: bool
    place: str = field(default="line", init=False)

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        wanted = {self.names[at]: pl.String for at in positions.values()}
        frame = self._parse(wanted) if self._in_lines else None
        numbers = None if frame is None else _line_numbers(self._text.data, frame.height)
        if frame is None or numbers is None:
            frame, numbers = self._object_by_object(wanted)
        if not frame.height:
            raise DataError(f"{self.file}: the log is empty: there is no object.", hint="check the export.")
        return frame.select(
            *(pl.col(self.names[at]).alias(role) for role, at in positions.items()), numbers.alias("line")
        )

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`."""
        every = {name: at for at, name in enumerate(self.names)}
        return (
            self.read(every)
            .drop("line")
            .head(SAMPLE_ROWS)
            .rename({name: str(at) for name, at in every.items()})
        )

    def _parse(self, wanted: dict[str, Any]) -> pl.DataFrame | None:
        """All lines at once; None where something is wrong, which the slow way finds and names."""
        try:
            with keeping_values_inside("", hint=""):
                return pl.read_ndjson(io.BytesIO(self._text.data), schema=wanted)
        except DataError:
            return None

    def _object_by_object(self, wanted: dict[str, Any]) -> tuple[pl.DataFrame, pl.Series]:
        objects, place = load_statements(self._text)
        columns: dict[str, list[str | None]] = {name: [] for name in wanted}
        numbers = []
        for number, one in objects:
            if not isinstance(one, dict):
                raise _no_object(self.file, place, number)
            for name, values in columns.items():
                values.append(_as_text(one.get(name)))
            numbers.append(number)
        with keeping_values_inside(
            f"{self.file}: a field is not valid text.", hint="export the file again, as UTF-8."
        ):
            return pl.DataFrame(columns, schema=wanted), pl.Series(numbers, dtype=pl.Int64)


def read_lines(text: Text) -> LinesTable:
    """The objects of a JSON text; a wrong line is found when columns are read."""
    begin = [(number, _object(line)) for number, line in enumerate(first_lines(text, LOOKED_AT), start=1)]
    in_lines = begin[0][1] is not None
    if not in_lines:
        # An array, one object over several lines, or no JSON at all.
        objects, place = load_statements(text)
        begin = list(islice(objects, LOOKED_AT))
        for number, one in begin:
            if not isinstance(one, dict):
                raise _no_object(text.name, place, number)
    names = tuple(dict.fromkeys(name for _, one in begin if one for name in one))
    if not names:
        raise DataError(f"{text.name}: the objects have no fields.", hint="check the export.")
    return LinesTable(text.name, names, text.notes, text, in_lines)


def _object(line: str) -> dict[str, Any] | None:
    try:
        one = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return one if isinstance(one, dict) else None


def _no_object(file: str, place: str, number: int) -> DataError:
    return DataError(
        f"{file}: {place} {number} is JSON, but no object.",
        hint="give an object per line, with the learner, the time and the key.",
    )


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _line_numbers(data: bytes, n_objects: int) -> pl.Series | None:
    """The number of each object's line; None if objects and lines do not match one to one."""
    feeds = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    n_lines = len(feeds) + (not data.endswith(b"\n"))
    if n_lines == n_objects:
        return pl.int_range(1, n_objects + 1, eager=True)
    filled = [number for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    return pl.Series(filled, dtype=pl.Int64) if len(filled) == n_objects else None
