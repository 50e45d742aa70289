"""Folders of files that belong together, as data sets are published: found by the names of the files inside.

Which files there are is no learner's value where they are tables of a course. Where each learner has a file, its name
is the learner's: messages count such files instead of naming them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from understudy.core.files.columns import ColumnChooser, plain
from understudy.core.files.delimited import DelimitedTable, table_in
from understudy.core.files.source import Source, open_source
from understudy.errors import DataError, UsageError


@dataclass(frozen=True, repr=False)
class Folder:
    """A folder and the files in it and below, in the order of their paths."""

    path: Path
    files: tuple[Path, ...]

    @property
    def name(self) -> str:
        """The name by which messages call it."""
        return self.path.resolve().name

    def named(self, name: str) -> list[Path]:
        """The files of this name, in whatever capitals, perhaps compressed."""
        wanted = {name.lower(), f"{name.lower()}.gz"}
        return [file for file in self.files if file.name.lower() in wanted]

    def beginning(self, start: str) -> list[Path]:
        """The tables whose names begin so."""
        ends = (".csv", ".csv.gz")
        return [
            file
            for file in self.files
            if file.name.lower().startswith(start.lower()) and file.name.lower().endswith(ends)
        ]

    def table(self, found: Sequence[Path], what: str) -> DelimitedTable:
        """The one table among the files that were found; `what` says what it holds."""
        if len(found) != 1:
            raise DataError(
                f"{self.name}: the folder has {len(found) or 'no'} files with {what}, where one is needed.",
                hint="give a folder with the files of one data set.",
                code="no-such-table",
            )
        source = open_source(found[0])
        return table_in(Source(str(found[0].relative_to(self.path)), source.data))

    def columns(self, found: Sequence[Path], what: str, *names: str) -> pl.DataFrame:
        """Columns of a table that is about things, not learners: one row for each value of the first column."""
        table = self.table(found, what)
        frame = columns_of(table, names, names).drop("line")
        return frame.drop_nulls(names[0]).unique(names[0], keep="first", maintain_order=True)


def columns_of(table: DelimitedTable, names: Sequence[str], needed: Sequence[str]) -> pl.DataFrame:
    """Columns of a table by the names that a data set gives them, as far as they are there, and `line`."""
    chooser = ColumnChooser(table.names, table.file, known={name: (plain(name),) for name in names})
    chooser.require(*needed)
    for name in names:
        chooser.allow(name)
    return table.read(chooser.positions).with_columns(pl.col(list(chooser.positions)).str.strip_chars())


def open_folder(path: Path) -> Folder:
    """The files in a folder; hidden ones and hidden folders are left out."""
    files: list[Path] = []

    def refuse(error: OSError) -> None:
        raise UsageError(f"'{path}' cannot be opened.", hint="check who may read the folder.") from None

    for place, folders, names in os.walk(path, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += [Path(place, name) for name in names if not name.startswith(".")]
    return Folder(path, tuple(sorted(files)))
