"""A table of learners that belongs to a log: one row each, of which the declared columns are read.

The number of learners is public, and a learner is whoever is in the log or in its table. So a learner of the table who
did nothing has a place in the log, without rows, and one who is in the log alone has empty cells: nobody's rows change
what is read about others. Names of learners end with the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.core.events.event_table import EventTable
from understudy.core.events.further_columns import further_positions
from understudy.core.events.platforms.gradebooks import (
    looks_like_canvas_gradebook,
    looks_like_moodle_gradebook,
    tidy_canvas_gradebook,
    tidy_moodle_gradebook,
)
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import KNOWN_NAMES, ColumnChooser, plain, reject_duplicates
from understudy.core.files.delimited import table_in
from understudy.core.files.source import open_source
from understudy.core.files.suggestions import with_suggestions
from understudy.core.files.tables import MAGIC as PARQUET_MAGIC
from understudy.core.files.tables import Table, read_parquet
from understudy.core.files.words import counted
from understudy.core.files.workbooks import MAGICS as EXCEL_MAGICS
from understudy.core.files.workbooks import read_workbook
from understudy.errors import DataError

# Tables of platforms that need a word: whether a header is theirs, and the table with a learner in each row.
_TIDY: tuple[tuple[Callable[[Sequence[str]], bool], Callable[[Table], Table]], ...] = (
    (looks_like_moodle_gradebook, tidy_moodle_gradebook),
    (looks_like_canvas_gradebook, tidy_canvas_gradebook),
)


def open_table(path: Path | str, sheet: str | None = None) -> Table:
    """The table in a delimited file, a workbook or a Parquet file, tidied where a platform wrote it."""
    source = open_source(path)
    if source.data.startswith(PARQUET_MAGIC):
        table: Table = read_parquet(source)
    elif source.data.startswith(EXCEL_MAGICS):
        table = read_workbook(source, sheet)
    else:
        table = table_in(source)
    for looks_like, tidy in _TIDY:
        if looks_like(table.names):
            return tidy(table)
    return table


@dataclass(frozen=True, repr=False)
class LearnerTable:
    """An open table of learners, of which the declared columns are read."""

    table: Table

    @classmethod
    def open(cls, path: Path | str) -> LearnerTable:
        """The table in a file."""
        table = open_table(path)
        reject_duplicates(table.names, table.file)
        return cls(table)

    def has(self, name: str) -> bool:
        """Whether the table has a declared column."""
        return bool(further_positions(self.table.names, [name], self.table.file))

    def read(
        self, wanted: Sequence[str], options: ReadOptions, key: str | None, usual: str | None
    ) -> EventTable:
        """A row per learner: `learner`, `line` and the declared columns under their names in a table of events.

        `key` names the learner column; without it, it is that of the log's name (`usual`) or of a known one.
        """
        learner = self.learner_at(key, usual)
        rows = EventTable.from_table(
            self.table, {"learner": learner}, replace(options, further=tuple(wanted))
        )
        rows.settle_learners(options)
        repeated = rows.frame["learner"].is_duplicated()
        if repeated.any():
            n_learners = rows.frame.filter(repeated)["learner"].n_unique()
            raise DataError(
                f"{rows.file}: {counted(n_learners, 'learner')} with several rows, in a table that has one row for "
                "each.",
                hint="keep one row per learner; results, of which a learner has several, are a table of their own.",
                code="several-rows-of-a-learner",
                settings=("learners_key", "results"),
            )
        return rows

    def learner_at(self, key: str | None, usual: str | None) -> int:
        """The place of the column that names the learners; see `read`."""
        names = self.table.names
        if key is None and usual is not None and plain(usual) in map(plain, names):
            key = usual
        try:
            chooser = ColumnChooser(
                names,
                self.table.file,
                {"learner": key},
                {"learner": KNOWN_NAMES["learner"]},
                {"learner": "learners_key"},
            )
            chooser.require("learner")
        except DataError as error:
            raise with_suggestions(error, self.table, {"learner": "learners_key"}) from None
        return chooser.positions["learner"]
