"""What an analysis gave: named numbers, texts and tables, flattened so that two answers can be compared.

Results are written by code of researchers. Their form was checked by the sandbox; nothing here
believes what they say about learners.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from understudy.sandbox.jobs import Outcome

Floats = NDArray[np.float64]

# Between the parts of a name.
STEP = " / "
N_ROWS = "number of rows"
COLUMNS = "columns"


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
    named by its first text or by all of them where they distinguish rows, by its place otherwise. How many rows a
    table has is a number too. `form` is everything else that an answer says, apart from its order.
    """

    values: Any = None
    tables: Mapping[str, Table] = field(default_factory=dict)

    @classmethod
    def of(cls, outcome: Outcome) -> Results:
        """The results of a run that ended well."""
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

    @cached_property
    def form(self) -> dict[str, str]:
        """The form without the numbers: where each text is, what is a number, what is empty; tables row by row."""
        return dict(self._form())

    @cached_property
    def text_cells(self) -> tuple[str, ...]:
        """Names of all texts that are values or cells, in order, as numbers are named."""
        found: list[str] = []

        def note(name: str, value: Any) -> Any:
            if isinstance(value, str):
                found.append(name)
            return value

        self._visited(note)
        return tuple(found)

    @property
    def is_ambiguous(self) -> bool:
        """Whether two numbers or texts have one name, so that only one of them would be measured."""
        cells = [STEP.join((name, N_ROWS)) for name in self.tables]

        def note(name: str, value: Any) -> Any:
            cells.append(name)
            return value

        self._visited(note)
        return len(set(cells)) < len(cells) or len(self.form) < len(self._form())

    @property
    def n_bytes(self) -> int:
        """Size as JSON."""
        return len(json.dumps(self.to_json()).encode())

    def vector(self, names: Iterable[str]) -> Floats:
        """The numbers of these names in order; NaN where there is none."""
        return np.array([self.numbers.get(name, math.nan) for name in names])

    def changed(self, change: Callable[[str, float], float]) -> Results:
        """The same results with every number replaced by `change(name, number)`; missing ones stay missing.

        Whole numbers become whole: 3 and 3.0 would be two ways to say the same.
        """

        def new(name: str, value: Any) -> Any:
            if value is None or isinstance(value, str | bool | dict | list):
                return value
            changed = change(name, float(value))
            return int(changed) if changed.is_integer() and abs(changed) < 2**53 else changed

        return Results(
            _walked(self.values, (), new),
            {name: _walked_table(name, table, new) for name, table in self.tables.items()},
        )

    def ordered_like(self, trial: Results) -> Results:
        """The same results in an order that reveals nothing: the trial's, then what it does not have, sorted.

        Keys, tables and rows that their texts distinguish are put in order; lists keep theirs. Whether a yes or no is
        written as a number is the trial's choice too.
        """
        return Results(
            _ordered(self.values, trial.values),
            {
                name: _ordered_table(self.tables[name], trial.tables.get(name))
                for name in _in_order(self.tables, trial.tables)
            },
        )

    def _visited(self, visit: Callable[[str, Any], Any]) -> None:
        _walked(self.values, (), visit)
        for name, table in self.tables.items():
            _walked_table(name, table, visit)

    def _form(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []

        def note(name: str, value: Any) -> Any:
            found.append((name, _form_of(value)))
            return value

        _walked(self.values, (), note)
        for name, table in self.tables.items():
            found.append((STEP.join((name, COLUMNS)), json.dumps(table.columns)))
            for key, row in zip(_row_names(table), table.rows, strict=True):
                found.append((STEP.join((name, key)), "row " + json.dumps([_form_of(cell) for cell in row])))
        return found

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
    if isinstance(value, dict) and value:
        return {name: _walked(part, (*way, name), visit) for name, part in value.items()}
    if isinstance(value, list) and value:
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
    texts = [[cell for cell in row if isinstance(cell, str)] for row in table.rows]
    if all(texts):
        for named in ([row[0] for row in texts], [", ".join(row) for row in texts]):
            if all(named) and len(set(named)) == len(named):
                return named
    return [f"row {place}" for place in range(1, len(table.rows) + 1)]


def _form_of(value: Any) -> str:
    if isinstance(value, str):
        return "text " + value
    if isinstance(value, dict | list):
        return "empty " + type(value).__name__
    return "number"


def _in_order(names: Iterable[str], trial: Iterable[str]) -> list[str]:
    places = {name: place for place, name in enumerate(trial)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def _ordered(value: Any, trial: Any) -> Any:
    if isinstance(value, dict):
        known = trial if isinstance(trial, dict) else {}
        return {name: _ordered(value[name], known.get(name)) for name in _in_order(value, known)}
    if isinstance(value, list):
        known_list = trial if isinstance(trial, list) else []
        others = known_list[: len(value)] + [None] * (len(value) - len(known_list))
        return [_ordered(part, other) for part, other in zip(value, others, strict=True)]
    return _written_like(value, trial)


def _ordered_table(table: Table, trial: Table | None) -> Table:
    columns = {} if trial is None else dict(zip(trial.columns, zip(*trial.rows, strict=True), strict=False))
    samples = [
        next((cell for cell in columns.get(name, ()) if cell is not None), None) for name in table.columns
    ]
    names = _row_names(table)
    rows = dict(zip(names, table.rows, strict=True))
    if not all(name == f"row {place}" for place, name in enumerate(names, 1)):
        names = _in_order(names, () if trial is None else _row_names(trial))
    return Table(
        table.columns,
        tuple(
            tuple(_written_like(cell, sample) for cell, sample in zip(rows[name], samples, strict=True))
            for name in names
        ),
    )


def _written_like(value: Any, sample: Any) -> Any:
    if isinstance(value, bool):
        return value if isinstance(sample, bool) else int(value)
    return bool(value) if isinstance(sample, bool) and value in (0, 1) else value


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


CheckVerdict = Literal["pass", "review", "fail"]
_ORDER: tuple[CheckVerdict, ...] = ("pass", "review", "fail")
# Numbers that a check names at most.
MOST_NAMED = 20


@dataclass(frozen=True)
class Check:
    """One check of a held output. For reviewers: reasons and numbers depend on the data."""

    name: str
    """A short name that a policy file uses, such as `learners` or `differencing`."""
    verdict: CheckVerdict
    reason: str
    """One or two sentences in plain words, without any learner's value."""
    numbers: tuple[str, ...] = ()
    """Names of the results it is about, the worst first."""

    @classmethod
    def about(cls, name: str, numbers: Sequence[str] = ()) -> UndecidedCheck:
        """A check that is still to be decided, about numbers of these names."""
        return UndecidedCheck(name, numbers)

    def to_json(self) -> dict[str, Any]:
        """For the store and pages."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Check:
        """As `to_json` wrote it."""
        return cls(**{**content, "numbers": tuple(content["numbers"])})


@dataclass(frozen=True)
class UndecidedCheck:
    """A check before its verdict; the numbers it is about are given by their places, or by names."""

    name: str
    numbers: Sequence[str] = ()

    def passes(self, reason: str, about: Iterable[int | str] = ()) -> Check:
        """The check has no objection to a release."""
        return Check(self.name, "pass", reason, self._named(about))

    def asks(self, reason: str, about: Iterable[int | str] = ()) -> Check:
        """A reviewer has to look at it, and to write a reason for a release."""
        return Check(self.name, "review", reason, self._named(about))

    def fails(self, reason: str, about: Iterable[int | str] = ()) -> Check:
        """The output is held back."""
        return Check(self.name, "fail", reason, self._named(about))

    def _named(self, about: Iterable[int | str]) -> tuple[str, ...]:
        names = [place if isinstance(place, str) else self.numbers[place] for place in about]
        return tuple(dict.fromkeys(names))[:MOST_NAMED]


def worst(checks: Sequence[Check]) -> CheckVerdict:
    """The verdict of all together."""
    return max((check.verdict for check in checks), key=_ORDER.index, default="pass")
