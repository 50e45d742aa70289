"""Judges what a script gave back: the schema's columns, the right number of rows, values within bounds.

A finding is one of a fixed list of kinds. It says nothing about a value, since it is sent back
to whoever wrote the script.
"""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Schema
from understudy.cohorts.panel.findings import Finding

# A value may pass its bound by rounding; the cohort cuts it to the bound.
_ROUNDING = 1e-6
# Fewer different rows than this share are copies of a few learners, not a group.
_LEAST_DIFFERENT = 0.1


def read_table(content: bytes, schema: Schema, n_rows: int) -> NDArray[np.float64] | Finding:
    """The values (rows by the schema's columns) of a table in Arrow's format, or what is wrong with it."""
    import polars as pl

    try:
        read = pl.read_ipc if content.startswith(b"ARROW1") else pl.read_ipc_stream
        frame = read(io.BytesIO(content))
    # polars panics on some damaged files, and its panic is not an Exception.
    except (Exception, pl.exceptions.PanicException):
        return Finding("NoTable")
    columns = schema.columns()
    # A label or a running number that came along does no harm; anything else is not what was asked.
    extra = (
        set(frame.columns) - set(columns) - {schema.label, "label", "learner", "index", "__index_level_0__"}
    )
    if extra or set(columns) - set(frame.columns):
        return Finding("WrongColumns")
    if frame.height != n_rows:
        return Finding("WrongNumberOfRows")
    chosen = frame.select(columns)
    if not all(kind.is_numeric() for kind in chosen.dtypes):
        return Finding("NotANumber")
    values = chosen.cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
    if not np.isfinite(values).all():
        return Finding("NotANumber")
    highs = np.repeat(schema.highs, schema.n_weeks)
    if values.size and (values.min() < -_ROUNDING or (values > highs * (1 + _ROUNDING)).any()):
        return Finding("OutOfBounds")
    values = np.asarray(np.clip(values, 0.0, highs), dtype=np.float64)
    if n_rows > 1 and len(np.unique(values, axis=0)) < max(2, _LEAST_DIFFERENT * n_rows):
        return Finding("Constant")
    return values
