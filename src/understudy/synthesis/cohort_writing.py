"""Writes a cohort and, beside it, its schema; a cohort of real learners only for its owner's eyes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from understudy.pages.writing import write_text
from understudy.records.cohort import Cohort
from understudy.synthesis.writing import check_suffix, write_table

REAL = "a cohort of real learners under numbers: keep it inside"
REAL_PREFIX = "learner-"


def schema_path(path: Path) -> Path:
    """Where the schema of a cohort lies."""
    return path.with_suffix(".toml")


def write_cohort(
    cohort: Cohort, path: Path, *, kind: str, prefix: str | None = None, real: bool = False
) -> None:
    """Write the table, csv or parquet by its extension, and the schema, each whole or not at all.

    A schema that is there already and says the same is left as it is, with its comments. With
    `real` nobody but the owner may read the table, from its first byte on.
    """
    check_suffix(path)
    with _owner_only() if real else contextlib.nullcontext():
        write_table(cohort.to_frame(prefix or (REAL_PREFIX if real else None)), path, kind=kind)
    place = schema_path(path)
    if not says(place, cohort):
        with _owner_only() if cohort.schema.cuts_source == "data" else contextlib.nullcontext():
            write_text(place, cohort.schema.to_toml())


def says(place: Path, cohort: Cohort) -> bool:
    """Whether a file declares the cohort's schema."""
    from understudy.errors import UnderstudyError

    try:
        return type(cohort.schema).read(place) == cohort.schema
    except UnderstudyError:
        return False


@contextlib.contextmanager
def _owner_only() -> Iterator[None]:
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
