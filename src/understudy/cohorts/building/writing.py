"""Writes a cohort and, beside it, its schema; a cohort of real learners only for its owner's eyes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from understudy.cohorts.cohort import Cohort, Schema
from understudy.core.files.writing import write_text
from understudy.core.files.writing_part import check_suffix, write_table
from understudy.errors import UnderstudyError, UsageError

REAL = "a cohort of real learners under numbers: keep it inside"
REAL_PREFIX = "learner-"


def schema_path(path: Path) -> Path:
    """Where the schema of a cohort lies."""
    return path.with_suffix(".toml")


def write_cohort(
    cohort: Cohort, path: Path, *, kind: str, prefix: str | None = None, real: bool = False
) -> None:
    """Write the schema, and the table, csv or parquet by its extension, each whole or not at all.

    The schema comes first: it may hold cuts that were paid for, and the table can be made again
    from it. One that is there already and says the same is left as it is, with its comments. With
    `real` nobody but the owner may read the table, from its first byte on.
    """
    check_suffix(path)
    place = schema_path(path)
    if not says(place, cohort):
        with _owner_only() if cohort.schema.cuts_source == "data" else contextlib.nullcontext():
            write_text(place, cohort.schema.to_toml())
    with _owner_only() if real else contextlib.nullcontext():
        write_table(cohort.to_frame(prefix or (REAL_PREFIX if real else None)), path, kind=kind)


def check_replaceable(path: Path, prefixes: tuple[str, ...]) -> None:
    """Refuse to write over a table, unless it is one that the same command makes again at no cost.

    It is known by its learners, whose names have one of the prefixes.
    """
    if path.exists() and not (_first_learner(path) or "").startswith(prefixes):
        raise UsageError(
            f"asked to write {path}, which is there already and is not what this command makes.",
            hint="choose another name, or move the old file away.",
        )


def check_schema_beside(path: Path, schema: Schema) -> None:
    """Refuse to write over a declaration that says something else: it was written by hand, or paid for."""
    place = schema_path(path)
    if place.exists() and not _declares(place, schema):
        raise UsageError(
            f"asked to write {place}, which is there already and says something else.",
            hint="choose another name, or move the old file away.",
        )


def _first_learner(path: Path) -> str | None:
    import polars as pl

    try:
        frame = pl.scan_parquet(path) if path.suffix.lower() == ".parquet" else pl.scan_csv(path)
        return str(frame.select("learner").head(1).collect().item())
    except (pl.exceptions.PolarsError, OSError, ValueError):
        return None


def says(place: Path, cohort: Cohort) -> bool:
    """Whether a file declares the cohort's schema."""
    return _declares(place, cohort.schema)


def _declares(place: Path, schema: Schema) -> bool:
    try:
        return Schema.read(place) == schema
    except UnderstudyError:
        return False


@contextlib.contextmanager
def _owner_only() -> Iterator[None]:
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
