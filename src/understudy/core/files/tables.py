"""A table whose columns are read one by one: what csv, tsv, Parquet and Excel files have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from understudy.core.files.source import keeping_values_inside

# What a content check looks at: enough for a share, little enough to be quick with hundreds of columns.
SAMPLE_ROWS = 2000


class Table(Protocol):
    """Columns that are read only when asked for, and the place in the file where each row stands."""

    @property
    def file(self) -> str:
        """The file's name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the order of the file."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be assumed to read the file."""

    @property
    def place(self) -> str:
        """What a row's number counts: "line" or "row"."""

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """The columns at these positions, under the given names, and `line`."""

    def sample(self) -> pl.DataFrame:
        """Some rows of every column as text, columns named by their position."""


@dataclass(frozen=True, repr=False)
class FrameTable:
    """A table that a library has typed already: Parquet and Excel."""

    file: str
    names: tuple[str, ...]
    frame: pl.DataFrame
    rows: pl.Series
    notes: tuple[str, ...] = ()
    place: str = "row"

    def read(self, positions: Mapping[str, int]) -> pl.DataFrame:
        """See `Table.read`."""
        columns = {role: _as_text(self.frame.to_series(at), self.file) for role, at in positions.items()}
        return pl.DataFrame({**columns, "line": self.rows})

    def sample(self) -> pl.DataFrame:
        """See `Table.sample`."""
        some = self.frame.gather_every(max(1, -(-self.frame.height // SAMPLE_ROWS)))
        texts = {}
        for position, name in enumerate(some.columns):
            if not some[name].dtype.is_nested() and some[name].dtype != pl.Binary:
                texts[str(position)] = _as_text(some[name], self.file)
        return pl.DataFrame(texts).cast(pl.String)


def rows_from(first: int, frame: pl.DataFrame) -> pl.Series:
    """The numbers of a frame's rows, of which the first one stands on row `first` of the file."""
    return pl.int_range(first, first + frame.height, eager=True)


def _as_text(values: pl.Series, file: str) -> pl.Series:
    """Numbers and names as text; times keep their type. A whole number is written without a point.

    Excel and pandas turn whole numbers into 1.0 when a cell of the column is empty.
    """
    with keeping_values_inside(
        f"{file}: a column of type {values.dtype.base_type()} cannot be read as text.",
        hint="keep one plain value per cell.",
    ):
        if values.dtype.is_temporal():
            return values
        if values.dtype.is_float():
            whole = values.cast(pl.Int64, strict=False)
            if (whole.cast(values.dtype) == values).fill_null(True).all():
                values = whole
        return values.cast(pl.String)
