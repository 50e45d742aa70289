"""JSON as records: an object per line, an array of objects, or a record store's answer; also as a table."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from understudy.core.files.source import Guess, Text, first_lines, keeping_values_inside
from understudy.core.files.tables import FrameTable, sampled_rows
from understudy.errors import DataError

# Fields are known from the first objects; one that comes later only is nobody's column.
LOOKED_AT = 200
# No score and no count is as large.
LARGEST = 1e15

Record = dict[str, Any]


def load_records(text: Text) -> tuple[Iterator[tuple[int, Record]], str]:
    """The objects of a JSON text, each with a number, and what the number counts: "line" or "record".

    Lines are read one by one, so that a long file is never in memory as objects.
    """
    content = text.data.decode()
    if content.lstrip()[:1] == "{":
        lines = [(number, line) for number, line in enumerate(content.split("\n"), start=1) if line.strip()]
        # A first line that is whole JSON: lines it is, and a later line that is not is an error.
        if len(lines) > 1 and _object(lines[0][1]) is not None:
            values = ((number, _load(line, text.name, number)) for number, line in lines)
            return _objects(values, text.name, "line"), "line"
    whole = _load(content, text.name, None)
    if isinstance(whole, dict):
        # A learning record store answers with the statements under this key.
        whole = whole["statements"] if isinstance(whole.get("statements"), list) else [whole]
    if not isinstance(whole, list):
        raise DataError(
            f"{text.name}: the JSON is neither an object nor an array of objects.",
            hint="give one object per line, or an array of objects.",
        )
    return _objects(enumerate(whole, start=1), text.name, "record"), "record"


def load_lines(text: Text) -> Iterator[tuple[int, Record | None]]:
    """The object of each line that is not blank, with the line's number; None where a line holds no whole object.

    For logs that a program appends to: a line may be cut off, and concerns itself alone. What stands before the first
    brace of a line, such as the time and the name of a program, is left out.
    """
    for number, line in enumerate(text.data.split(b"\n"), start=1):
        if line.strip():
            yield number, _object(line[max(line.find(b"{"), 0) :].decode())


def begins_like_json(line: str) -> bool:
    """Whether the first line of a text is that of objects or arrays."""
    return line.lstrip().startswith(("{", "["))


def first_record(text: Text) -> Record | None:
    """The first whole object of a JSON text, to recognise a format by its fields; None if there is none."""
    for line in first_lines(text, LOOKED_AT):
        if (record := _object(line[max(line.find("{"), 0) :])) is not None:
            return record
    content = text.data.decode()
    begin = content.find("{")
    if begin < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(content, begin)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_of(value: Any) -> str | None:
    """A text that is not blank, without blanks around it; None for other values."""
    return value.strip() or None if isinstance(value, str) else None


def number_of(value: Any) -> float | None:
    """A finite number; None for other values, truth values among them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < LARGEST else None


def load_json(text: Text) -> Any:
    """The one value that a whole text holds."""
    return _load(text.data.decode(), text.name, None)


@dataclass(frozen=True, repr=False)
class JsonTable:
    """Objects as a table of which only the fields that are needed are read, as text."""

    file: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    _text: Text
    _in_lines: bool
    guesses: tuple[Guess, ...] = field(default=(), init=False)
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
        frame = self.read(every).drop("line").rename({name: str(at) for name, at in every.items()})
        return frame[sampled_rows(frame.height)]

    def all_alike(self) -> bool:
        """Whether every object has the same fields: then they are a header, and no row's own."""
        return all(record.keys() == set(self.names) for _, record in load_records(self._text)[0])

    def _parse(self, wanted: dict[str, Any]) -> pl.DataFrame | None:
        """All lines at once; None where something is wrong, which the slow way finds and names."""
        try:
            with keeping_values_inside("", hint=""):
                return pl.read_ndjson(io.BytesIO(self._text.data), schema=wanted)
        except DataError:
            return None

    def _object_by_object(self, wanted: dict[str, Any]) -> tuple[pl.DataFrame, pl.Series]:
        columns: dict[str, list[str | None]] = {name: [] for name in wanted}
        numbers = []
        for number, record in load_records(self._text)[0]:
            for name, values in columns.items():
                values.append(cell_text(record.get(name)))
            numbers.append(number)
        with keeping_values_inside(
            f"{self.file}: a field is not valid text.", hint="export the file again, as UTF-8."
        ):
            return pl.DataFrame(columns, schema=wanted), pl.Series(numbers, dtype=pl.Int64)


def json_table(text: Text) -> JsonTable:
    """The objects of a JSON text as a table; a wrong line is found when columns are read."""
    begin = [_object(line) for line in first_lines(text, LOOKED_AT)]
    in_lines = begin[0] is not None
    if not in_lines:
        # An array, one object over several lines, or no JSON at all.
        begin = [record for _, record in islice(load_records(text)[0], LOOKED_AT)]
    names = tuple(dict.fromkeys(name for record in begin if record for name in record))
    if not names:
        raise DataError(f"{text.name}: the objects have no fields.", hint="check the export.")
    return JsonTable(text.name, names, text.notes, text, in_lines)


def nested_fields(text: Text, parts: Sequence[str]) -> dict[str, dict[str, None]]:
    """The fields of objects within the first objects of JSON lines, by the parts of which they are fields."""
    fields: dict[str, dict[str, None]] = {part: {} for part in parts}
    for line in first_lines(text, LOOKED_AT):
        record = _object(line) or {}
        for part, names in fields.items():
            if isinstance(record.get(part), dict):
                names.update(dict.fromkeys(record[part]))
    return fields


def nested_records(text: Text, always: Mapping[str, Sequence[str]]) -> FrameTable:
    """The table of JSON lines whose objects hold objects, as "key", "value" and "meta": columns are "key.id".

    `always` are the parts, and of each the fields that are columns also where the first records lack them.
    """
    found = nested_fields(text, tuple(always))
    fields = {part: dict.fromkeys((*names, *found[part])) for part, names in always.items()}
    schema = {part: pl.Struct(dict.fromkeys(names, pl.String)) for part, names in fields.items()}
    frame, numbers = None, None
    with suppress(DataError), keeping_values_inside("", hint=""):
        frame = pl.read_ndjson(io.BytesIO(text.data), schema=schema)
        numbers = _line_numbers(text.data, frame.height)
    place = "line"
    if frame is None or numbers is None:
        # Something is wrong, or it is an array: record by record, with an error that names the place.
        frame, numbers, place = _nested_one_by_one(text, fields, schema)
    if not frame.height:
        raise DataError(f"{text.name}: the log is empty: there is no object.", hint="check the export.")
    names = tuple(f"{part}.{name}" for part, of_part in fields.items() for name in of_part)
    cells = frame.select(
        pl.col(part).struct.field(name).alias(f"{part}.{name}")
        for part, of_part in fields.items()
        for name in of_part
    )
    guess = Guess(
        "from the first records which fields all of them have",
        hint="take the same tables as csv or Parquet, whose columns are the same for all.",
    )
    return FrameTable(text.name, names, cells, numbers, text.notes, place=place, guesses=(guess,))


def _nested_one_by_one(
    text: Text, fields: Mapping[str, Mapping[str, None]], schema: Mapping[str, Any]
) -> tuple[pl.DataFrame, pl.Series, str]:
    records, place = load_records(text)
    rows: list[Record] = []
    numbers = []
    for number, record in records:
        row: Record = {}
        for part, names in fields.items():
            inner = record.get(part) or {}
            if not isinstance(inner, dict):
                raise DataError(
                    f"{text.name}: {place} {number} has a '{part}' that is not an object.",
                    hint="export the file again.",
                )
            row[part] = {name: cell_text(inner.get(name)) for name in names}
        rows.append(row)
        numbers.append(number)
    with keeping_values_inside(
        f"{text.name}: a field is not valid text.", hint="export the file again, as UTF-8."
    ):
        return pl.DataFrame(rows, schema=dict(schema)), pl.Series(numbers, dtype=pl.Int64), place


def _objects(values: Iterable[tuple[int, Any]], file: str, place: str) -> Iterator[tuple[int, Record]]:
    for number, value in values:
        if not isinstance(value, dict):
            raise DataError(
                f"{file}: {place} {number} is JSON, but not an object.",
                hint="give an object per line or an array of objects, with a name for each value.",
            )
        yield number, value


def _object(line: str) -> Record | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _load(content: str, file: str, line: int | None) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        place = line if line is not None else error.lineno
        raise DataError(
            f"{file}: the JSON breaks off or is wrong on line {place}, column {error.colno}.",
            hint="export the file again, with one object per line or as one array.",
        ) from None
    except (ValueError, RecursionError):
        raise DataError(
            f"{file}: the JSON{'' if line is None else f' on line {line}'} is nested too deeply "
            "or holds a number that is too long.",
            hint="records need neither; check the export.",
        ) from None


def cell_text(value: Any) -> str | None:
    """A value as the text of a cell: one that is not text as JSON writes it."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _line_numbers(data: bytes, n_objects: int) -> pl.Series | None:
    """The number of each object's line; None if objects and lines do not match one to one."""
    feeds = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    n_lines = len(feeds) + (not data.endswith(b"\n"))
    if n_lines == n_objects:
        return pl.int_range(1, n_objects + 1, eager=True)
    filled = [number for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    return pl.Series(filled, dtype=pl.Int64) if len(filled) == n_objects else None
