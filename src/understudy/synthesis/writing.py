"""Writes invented logs as csv or parquet, marked as what they are."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from understudy.errors import UsageError
from understudy.pages.writing import write_with


def check_suffix(path: Path) -> None:
    """Refuse a file name whose extension says neither csv nor parquet."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(
            f"asked to write {path.name}; a log is written as .csv or .parquet.",
            hint="choose one of these by the extension of -o.",
        )


def write_table(table: pl.DataFrame, path: Path, *, kind: str) -> None:
    """Write a log whole or not at all; `kind` ("synthetic", "simulated") goes into the metadata."""
    check_suffix(path)
    if path.suffix.lower() == ".csv":
        write_with(path, lambda temporary: table.write_csv(temporary))
    else:
        metadata = {"understudy": f"{kind} data: these learners do not exist"}
        write_with(path, lambda temporary: table.write_parquet(temporary, metadata=metadata))
