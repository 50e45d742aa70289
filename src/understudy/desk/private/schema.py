"""The public schema of a table of learners, and the table as it says: numbers within bounds, codes of categories.

Bounds, categories and which columns are complete are declared by the custodian and known to everybody. A guarantee
rests on them, so none of them is ever read off the data, and how a learner's cell is read depends on that cell alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.cohorts.schema import Schema as CohortSchema
from understudy.core.files.documents import ContractError, checked, contract, read_toml
from understudy.core.files.frames import as_polars
from understudy.errors import DataError, UsageError
from understudy.logs.declared.columns import Declared, Kind
from understudy.logs.declared.plan_file import ColumnTable

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

LEARNER = "learner"
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0")


@dataclass(frozen=True)
class Schema:
    """What is public about a table with one row per learner.

    `complete` are the columns in which every learner has a value. There a cell without one is taken as the middle
    of the bounds, or as "other"; in all other columns learners without a value are left out of a question, and how
    many are left is then not public.
    """

    columns: tuple[Declared, ...]
    complete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names) or not names:
            raise ContractError(
                "a schema has a column or more, each of them once.", hint="see `columns`.", key="columns"
            )
        if unknown := [name for name in self.complete if name not in names]:
            raise ContractError(
                f"'{unknown[0]}' is complete and not declared.", hint="declare it.", key="complete"
            )
        if wrong := [column.name for column in self.columns if column.found or column.of != "learner"]:
            raise ContractError(
                f"column '{wrong[0]}' is of rows, or to be found privately.",
                hint="declare columns of learners with their bounds or categories.",
                key="columns",
            )

    @classmethod
    def read(cls, path: Path | str) -> Schema:
        """The schema in a TOML file: `[[columns]]` as in the plan of a log, and `complete`."""
        return read_toml(Path(path), _File, hint="declare the columns of the table.").schema()

    @classmethod
    def from_json(cls, content: Any, source: str = "the schema") -> Schema:
        """The schema that `to_json` wrote."""
        return checked(content, _File, source).schema()

    def to_json(self) -> dict[str, Any]:
        """The schema for a machine; it is public as a whole."""
        columns = []
        for column in self.columns:
            form: dict[str, Any] = {"name": column.name, "of": column.of, "kind": column.kind.value}
            if column.kind is Kind.category:
                form["values"] = list(column.values)
            elif column.kind is not Kind.flag:
                form |= {"low": column.low, "high": column.high}
            columns.append(form | ({"unit": column.unit} if column.unit else {}))
        return {"columns": columns, "complete": list(self.complete)}

    @classmethod
    def of_cohort(cls, cohort: CohortSchema) -> Schema:
        """The schema of a cohort's table: its features week by week, and the label. All of it is complete."""
        features = [feature for feature in cohort.features for _ in range(cohort.n_weeks)]
        numbers = [
            Declared(name, Kind.number, "learner", low=0.0, high=feature.high, unit=feature.unit)
            for name, feature in zip(cohort.columns(), features, strict=True)
        ]
        label = Declared(cohort.label, Kind.category, "learner", values=cohort.labels)
        return cls((*numbers, label), (*cohort.columns(), cohort.label))

    def column(self, name: str) -> Declared:
        """The column of this name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise UsageError(
            f"there is no column '{name}'.",
            hint=nearest([column.name for column in self.columns], name),
            code="no-such-column",
        )

    def number(self, name: str) -> tuple[float, float]:
        """The bounds of a column of numbers; yes and no are 1 and 0."""
        column = self.column(name)
        if column.kind is Kind.flag:
            return 0.0, 1.0
        if column.bounds is None:
            raise UsageError(
                f"column '{name}' holds categories, where numbers are needed.",
                hint="ask for shares or counts of it.",
                code="wrong-kind",
            )
        return column.bounds

    def categories(self, name: str) -> tuple[str, ...]:
        """The declared categories of a column, without what stands for all others."""
        column = self.column(name)
        if not column.coded:
            raise UsageError(
                f"column '{name}' holds numbers, where categories are needed.",
                hint="a histogram or quantiles describe numbers.",
                code="wrong-kind",
            )
        return column.values if column.kind is Kind.category else column.names

    def is_number(self, name: str) -> bool:
        """Whether a column enters a model as one number: numbers, and yes or no."""
        return self.column(name).kind is not Kind.category


@dataclass(frozen=True)
class _File:
    columns: tuple[ColumnTable, ...]
    complete: tuple[str, ...] = ()

    __pydantic_config__: ClassVar[Any] = contract()

    def schema(self) -> Schema:
        return Schema(tuple(column.declared() for column in self.columns), self.complete)


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """The learners' cells by the schema: numbers from -1 to 1 (nan if missing), codes of categories (-1 if missing).

    The code behind the last declared category is that of every other value.
    """

    schema: Schema
    n_learners: int
    numbers: dict[str, Floats] = field(default_factory=dict)
    codes: dict[str, Codes] = field(default_factory=dict)


def read_records(frame: Any, schema: Schema, *, learner: str | None = LEARNER) -> Records:
    """The records of a frame of any library with one row per learner.

    A table in which a learner has several rows is refused: the bound of what one learner adds holds for a row. With
    None in place of the column of learners the caller declares that every row is another learner.
    """
    rows = as_polars(frame)
    wanted = [*([] if learner is None else [learner]), *(column.name for column in schema.columns)]
    if missing := [name for name in wanted if name not in rows.columns]:
        raise DataError(
            f"the table has no column '{missing[0]}'.",
            hint="give the table that the schema is about, with its column of learners.",
            code="no-such-column",
        )
    if rows.height == 0:
        raise DataError("the table has no learners.", hint="give a table with one row per learner.")
    if learner is not None and rows[learner].n_unique() < rows.height:
        raise DataError(
            f"the table has {rows.height} rows and {rows[learner].n_unique()} learners.",
            hint="bring it to one row per learner first, such as sums or means of a learner's rows.",
            code="several-rows",
        )
    records = Records(schema, rows.height)
    for column in schema.columns:
        complete, cells = column.name in schema.complete, rows[column.name]
        if column.kind is not Kind.category:
            records.numbers[column.name] = _scaled(cells, schema.number(column.name), column.kind, complete)
        if column.coded:
            records.codes[column.name] = _codes(cells, column, complete)
    return records


def _scaled(cells: pl.Series, bounds: tuple[float, float], kind: Kind, complete: bool) -> Floats:
    """Numbers cut to their bounds, which become -1 and 1."""
    if kind is Kind.flag:
        values = _flags(cells)
    elif cells.dtype.is_temporal():
        values = cells.cast(pl.Datetime("us"), strict=False).dt.epoch("us").to_numpy() / 1e6
    else:
        values = _numbers(cells).fill_null(np.nan).to_numpy()
    low, high = bounds
    # Of a huge number nobody is told that it is there, not even by a warning.
    with np.errstate(all="ignore"):
        scaled = np.clip((2.0 * values - low - high) / (high - low), -1.0, 1.0)
    return np.where(np.isnan(scaled), 0.0, scaled) if complete else scaled


def _numbers(cells: pl.Series) -> pl.Series:
    """Cells as numbers, null where there is none; true and false are 1 and 0.

    A csv file's column of true and false is one of text as soon as one learner has something else there: each cell is
    read alike in both.
    """
    if cells.dtype == pl.String:
        texts = cells.str.strip_chars().str.to_lowercase()
        cells = texts.replace(["true", "false"], ["1", "0"])
    return cells.cast(pl.Float64, strict=False)


def _codes(cells: pl.Series, column: Declared, complete: bool) -> Codes:
    if column.kind is Kind.flag:
        flags = _flags(cells)
        return np.where(np.isnan(flags), -1, flags).astype(np.int64)
    known = {_canonical(value): code for code, value in enumerate(column.values)}
    other = len(column.values)
    texts = [None if cell is None else _canonical(str(cell)) for cell in cells.to_list()]
    missing = other if complete else -1
    return np.array([missing if not text else known.get(text, other) for text in texts], dtype=np.int64)


def _flags(cells: pl.Series) -> Floats:
    values = {**dict.fromkeys(_YES, 1.0), **dict.fromkeys(_NO, 0.0)}
    return np.array(
        [np.nan if cell is None else values.get(_canonical(str(cell)), np.nan) for cell in cells.to_list()]
    )


def _canonical(text: str) -> str:
    """One spelling of a category, whatever the types of the table's columns are.

    A table's reader gives a whole column one type, which one learner's cell can change: 1 is "1", 1.0 is "1", and so
    is "01". Each cell is brought to the same text, so that no learner decides how another's category is read.
    """
    text = text.strip().casefold()
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else repr(number)


def nearest(names: Sequence[str], wanted: str) -> str:
    """A hint that names what was probably meant, or all there is."""
    near = difflib.get_close_matches(wanted, names, 1)
    return f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(names)}."
