"""What an analysis gave: named numbers, texts and tables, flattened so that two answers can be compared.

Results are written by code that nobody here wrote. Their form was checked by the sandbox; nothing here
believes what they say about learners.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.sandbox.jobs import Outcome

Floats = NDArray[np.float64]

# Between the parts of a name.
STEP = " / "
N_ROWS = "number of rows"


@dataclass(frozen=True)
class Table:
    """A frame that was returned; cells are numbers, texts or missing (None)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """The table for a file or a page."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class Results:
    """What one run of an analysis gave, as plain values.

    `values` is what is not a table: numbers, texts, lists and dicts of them. Missing numbers (NaN, infinite) are
    None. `numbers` names every number: the way to it through dicts and lists, or table, column and row; a row is
    named by its texts where they tell rows apart, by its place otherwise. How many rows a table has is a number too.
    """

    values: Any = None
    tables: Mapping[str, Table] = field(default_factory=dict)

    @classmethod
    def of(cls, outcome: Outcome) -> Results:
        """Of a run that ended well."""
        tables = {name: _table(content) for name, content in outcome.tables.items()}
        return cls(_plain(outcome.values), tables)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Results:
        """As `to_json` wrote it."""
        return cls(
            content["values"],
            {
                name: Table(tuple(table["columns"]), tuple(tuple(row) for row in table["rows"]))
                for name, table in content["tables"].items()
            },
        )

    def to_json(self) -> dict[str, Any]:
        """For the store, a page or a certificate."""
        return {
            "values": self.values,
            "tables": {name: table.to_json() for name, table in self.tables.items()},
        }

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Every number by its name; NaN for one that is missing."""
        return {name: value for name, value in self._cells() if isinstance(value, float)}

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """All texts in order: names of values, tables and columns, and texts among the cells."""
        return tuple(_texts(self.values)) + tuple(
            text
            for name, table in self.tables.items()
            for text in (name, *table.columns, *(cell for row in table.rows for cell in row))
            if isinstance(text, str)
        )

    @property
    def n_bytes(self) -> int:
        """Size as JSON."""
        return len(json.dumps(self.to_json()).encode())

    def vector(self, names: Iterable[str]) -> Floats:
        """The numbers of these names in order; NaN where there is none."""
        return np.array([self.numbers.get(name, math.nan) for name in names])

    def changed(self, change: Callable[[str, float], float]) -> Results:
        """The same results with every number replaced by `change(name, number)`; missing ones stay missing."""

        def new(name: str, value: Any) -> Any:
            if value is None or isinstance(value, str | bool):
                return value
            changed = change(name, float(value))
            return int(changed) if isinstance(value, int) and changed == int(changed) else changed

        return Results(
            _walked(self.values, (), new),
            {name: _walked_table(name, table, new) for name, table in self.tables.items()},
        )

    def _cells(self) -> Iterator[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []

        def note(name: str, value: Any) -> Any:
            if value is None or isinstance(value, bool | int | float):
                found.append((name, math.nan if value is None else float(value)))
            return value

        _walked(self.values, (), note)
        for name, table in self.tables.items():
            found.append((STEP.join((name, N_ROWS)), float(len(table.rows))))
            _walked_table(name, table, note)
        return iter(found)


def _walked(value: Any, way: tuple[str, ...], visit: Callable[[str, Any], Any]) -> Any:
    if isinstance(value, dict):
        return {name: _walked(part, (*way, name), visit) for name, part in value.items()}
    if isinstance(value, list):
        return [_walked(part, (*way, str(place)), visit) for place, part in enumerate(value, 1)]
    return visit(STEP.join(way) or "result", value)


def _walked_table(name: str, table: Table, visit: Callable[[str, Any], Any]) -> Table:
    rows = [
        tuple(
            visit(STEP.join((name, column, key)), cell)
            for column, cell in zip(table.columns, row, strict=True)
        )
        for key, row in zip(_row_names(table), table.rows, strict=True)
    ]
    return Table(table.columns, tuple(rows))


def _row_names(table: Table) -> list[str]:
    named = [", ".join(cell for cell in row if isinstance(cell, str)) for row in table.rows]
    if all(named) and len(set(named)) == len(named):
        return named
    return [f"row {place}" for place in range(1, len(table.rows) + 1)]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        # Half of a pair of surrogates is no text that could be written to a file or a page.
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return float(value) if abs(value) < 1e300 else None
    return value


def _table(content: bytes) -> Table:
    import polars as pl

    frame = pl.read_ipc_stream(io.BytesIO(content))
    frame = frame.with_columns(pl.selectors.temporal().cast(pl.String))
    return Table(tuple(frame.columns), tuple(tuple(_plain(cell) for cell in row) for row in frame.rows()))
