"""Writes invented logs as csv or parquet, marked as what they are."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from understudy.core.files.writing import write_with
from understudy.errors import UsageError
from understudy.logs.generators.synthesizer import Synthesizer


def check_suffix(path: Path) -> None:
    """Refuse a file name whose extension says neither csv nor parquet."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(
            f"asked to write {path.name}; a log is written as .csv or .parquet.",
            hint="choose one of these by the extension of -o.",
        )


def kind_of(synthesizer: Synthesizer) -> str:
    """What to call the rows that a method gives out."""
    if synthesizer.keeps_rows:
        return "rows of real learners under new numbers; no learner was invented"
    return "synthetic data: these learners do not exist"


def write_table(table: pl.DataFrame, path: Path, *, kind: str) -> None:
    """Write a log whole or not at all; `kind` goes into the metadata."""
    check_suffix(path)
    if path.suffix.lower() == ".csv":
        write_with(path, lambda temporary: table.write_csv(temporary))
    else:
        write_with(path, lambda temporary: table.write_parquet(temporary, metadata={"understudy": kind}))
