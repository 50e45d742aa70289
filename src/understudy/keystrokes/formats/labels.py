"""Labels of learners: a table with a row per learner, joined by name before the names are forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.columns import ColumnChooser
from understudy.core.files.delimited import guess_separator, read_delimited
from understudy.core.files.source import Guess, decode, first_lines, open_source
from understudy.core.files.tables import MAGIC as PARQUET_MAGIC
from understudy.core.files.tables import Table, read_parquet
from understudy.core.files.words import counted
from understudy.core.names import natural_order
from understudy.errors import DataError

MAX_LABELS = 20


@dataclass(frozen=True, repr=False)
class Labels:
    """Who has which label; codes into `names`, which holds every label of the file."""

    learner: pl.Series
    code: NDArray[np.int32]
    names: tuple[str, ...]
    file: str
    notes: tuple[str, ...]
    column: str
    guesses: tuple[Guess, ...] = ()

    def of(self, learners: pl.Series) -> tuple[NDArray[np.int32], list[str]]:
        """The label of each learner (-1: not known), and sentences with counts."""
        place = dict(zip(self.learner, self.code, strict=True))
        found = np.array([place.get(name, -1) for name in learners], dtype=np.int32)
        n_unknown = int((found < 0).sum())
        if n_unknown == len(found):
            raise DataError(
                f"{self.file}: none of {len(place)} labelled learners is one of {len(found)} learners who typed.",
                hint="both files have to write learners in the same way; choose the column that names them.",
                settings=("learner",),
            )
        notes = list(self.notes)
        if n_unknown:
            notes.append(f"{counted(n_unknown, 'learner')} without a label.")
        return found, notes


def read_labels(path: Path, learner: str | None, label: str | None) -> Labels:
    """The labels of a table: the named column, or the only one beside the learner."""
    table = _table(path)
    # The events' name for the column may differ from the one here.
    asked = {"learner": learner if learner in table.names else None, "label": label}
    chooser = ColumnChooser(table.names, table.file, asked)
    chooser.require("learner")
    if label is None:
        others = [at for at in range(len(table.names)) if at != chooser.positions["learner"]]
        if len(others) != 1:
            raise DataError(
                f"{table.file}: {len(others)} columns could be the label.",
                hint="name one.",
                code="ambiguous-column",
                settings=("label",),
            )
        chooser.positions["label"] = others[0]
    frame = table.read(chooser.positions).with_columns(
        pl.col("learner", "label").cast(pl.String).str.strip_chars().replace("", None)
    )
    frame = frame.drop_nulls(["learner", "label"])
    # Twice the same is once; twice something else is an error on a line.
    twice = frame.filter(pl.col("label").n_unique().over("learner") > 1)
    if twice.height:
        raise DataError(
            f"{table.file}: a learner has two labels (again on {table.place} {twice['line'][1]}, label column).",
            hint="keep one row per learner.",
        )
    frame = frame.unique("learner", keep="first", maintain_order=True)
    names = natural_order(frame["label"].unique().to_list())
    if not 2 <= len(names) <= MAX_LABELS:
        raise DataError(
            f"{table.file}: the label column holds {len(names)} different values; "
            f"a label parts learners into 2 to {MAX_LABELS} groups.",
            hint="choose another column, or put its values into groups.",
            settings=("label",),
        )
    code = {name: at for at, name in enumerate(names)}
    codes = np.array([code[one] for one in frame["label"]], dtype=np.int32)
    notes, column = tuple(chooser.notes), chooser.columns["label"]
    return Labels(frame["learner"], codes, tuple(names), table.file, notes, column, table.guesses)


def _table(path: Path) -> Table:
    source = open_source(path)
    if source.data.startswith(PARQUET_MAGIC):
        return read_parquet(source)
    text = decode(source, latin=True)
    return read_delimited(text, guess_separator(first_lines(text, 1)[0]))
