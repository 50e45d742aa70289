"""Learners who withdrew: their rows go before anything else is done with the log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from understudy.errors import DataError
from understudy.readers.columns import KNOWN_NAMES, plain
from understudy.readers.delimited import guess_separator, header_names, read_delimited
from understudy.readers.source import Text, decode, open_source


@dataclass(frozen=True, repr=False)
class Withdrawn:
    """The names of learners who withdrew, as the list gives them."""

    names: frozenset[str]
    header: str | None = None  # a first line that may be a name or the name of the column

    def leave_out(self, frame: pl.DataFrame, column: str) -> tuple[pl.DataFrame, str]:
        """The rows of everybody else, and a sentence with counts.

        `frame` has the column `learner`, and may have `alias`, a second name by which the
        list can mean a learner. `column` is the learner column's name in the file.
        """
        names = set(self.names)
        if self.header is not None and plain(self.header) not in {plain(column), *KNOWN_NAMES["learner"]}:
            names.add(self.header)
        listed = pl.Series(sorted(names), dtype=pl.String)
        gone = frame["learner"].is_in(listed).fill_null(False)
        found = set(frame["learner"].filter(gone).unique())
        n_learners = len(found)
        if "alias" in frame.columns:
            by_alias = frame["alias"].is_in(listed).fill_null(False)
            found |= set(frame["alias"].filter(by_alias).unique())
            gone = gone | by_alias
            n_learners = frame["learner"].filter(gone).n_unique()
        absent = len(names - found)
        note = f"{n_learners} learners who withdrew were left out, with {int(gone.sum())} rows"
        note += f"; {absent} names of the list are not in the log." if absent else "."
        return frame.filter(~gone), note


def read_withdrawn(path: Path | str) -> Withdrawn:
    """The list of those who withdrew: a name per line, or a table with a learner column."""
    text = decode(open_source(path), latin=True)
    lines = [line.strip() for line in text.lines if line.strip()]
    if not lines:
        raise DataError(f"{text.name}: the list of learners who withdrew is empty.", hint="check the file.")
    separator = guess_separator(lines[0])
    if len(lines) > 1 and len(header_names(lines[0], separator)) > 1:
        return Withdrawn(frozenset(_from_table(text, separator)))
    first, *others = (line.removeprefix('"').removesuffix('"').replace('""', '"') for line in lines)
    return Withdrawn(frozenset(others), header=first)


def _from_table(text: Text, separator: str) -> list[str]:
    table = read_delimited(text, separator)
    plains = [plain(name) for name in table.names]
    positions = [plains.index(name) for name in KNOWN_NAMES["learner"] if name in plains]
    if not positions:
        raise DataError(
            f"{text.name}: found no column for the learner among {len(plains)} columns.",
            hint="give a list with one name per line, or call the column 'learner'.",
        )
    return [
        name.strip() for name in table.read({"learner": positions[0]})["learner"] if name and name.strip()
    ]
