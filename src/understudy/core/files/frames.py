"""Data frames of any library, as polars frames."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import polars as pl

from understudy.errors import DataError


def as_polars(frame: Any) -> pl.DataFrame:
    """A polars frame from a frame of polars, pandas, pyarrow or any library that narwhals knows."""
    if isinstance(frame, pl.DataFrame):
        return frame
    try:
        polars: pl.DataFrame = nw.from_native(frame).lazy().collect(backend="polars").to_native()
        return polars
    except TypeError:
        raise DataError(
            f"a record is made from a data frame, not from {type(frame).__name__}.",
            hint="pass a pandas or polars frame, or read a file with the wing's own reader.",
            code="not-a-frame",
        ) from None
