"""Learners who withdrew: their rows go before anything else is done with the log.

A name that is overlooked leaves a person in the data who asked to be left out. So names are
also found when case or leading zeros got lost, as long as one learner only can be meant, and
a list that removes nobody is an error.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from understudy.core.files.columns import KNOWN_NAMES, plain
from understudy.core.files.delimited import guess_separator, header_names, read_delimited
from understudy.core.files.notes import Count, CountingNote
from understudy.core.files.source import Guess, Text, decode, open_source
from understudy.errors import DataError

# What separates the names of a list without a header, unless names of learners hold it.
_MARKS = "\t;,"
_QUOTED = "put names that hold a comma, a semicolon or a tab in quotation marks."
_DIFFERENT = (
    "a name of the list is that of several learners but for case or leading zeros: write these names in both files "
    "so that they differ."
)


@dataclass(frozen=True, repr=False)
class LeftOut:
    """The rows of everybody else, the names that the list gives to people, and counts."""

    frame: pl.DataFrame
    names: pl.Series
    n_learners: int
    n_rows: int
    n_absent: int
    n_ambiguous: int
    guesses: tuple[Guess, ...] = ()
    """Where other learners' names decide whom the list means, or how it is split."""
    gone: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.String))
    """Whom it named, as the learner column writes them."""

    @property
    def note(self) -> str:
        """A sentence with counts, without names."""
        ending = " rows"
        if self.n_absent:
            ending += f"; {self.n_absent} names of the list are not in the log"
        if self.n_ambiguous:
            ending += (
                f"; {self.n_ambiguous} of these fit several learners but for case or leading zeros, "
                "who were left in"
            )
        who = " learners who withdrew were left out, with "
        return CountingNote(Count(self.n_learners), who, Count(self.n_rows), ending + ".")


@dataclass(frozen=True, repr=False)
class Withdrawn:
    """A list of learners who withdrew: a name per line, several by commas, or a table."""

    text: Text
    may_be_elsewhere: bool = False
    """Whether those who are listed may be in other tables only, so that one may lack all of them."""

    def leave_out(self, frame: pl.DataFrame, column: str) -> LeftOut:
        """Remove the rows of those who are listed.

        `frame` has the column `learner`, and may have `alias`, a second name by which the
        list can mean a learner. `column` is the learner column's name in the file.
        """
        known = _known(frame)
        names, people, guesses = self._names(column, known)
        exact = known.join(names.to_frame("name"), on="name", how="semi")
        rest = names.filter(~names.is_in(exact["name"].implode()))
        # One learner only, whatever the case and the zeros, or it is nobody's key.
        keys = known.group_by("key").agg(pl.col("learner").unique())
        alike = pl.DataFrame({"name": rest, "key": _key(rest)}).join(keys, on="key")
        listed = pl.col("key").is_in(_key(names).implode())
        if keys.filter(listed & (pl.col("learner").list.len() > 1)).height:
            guesses += (Guess("whom the list of those who withdrew means", hint=_DIFFERENT),)
        one = alike.filter(pl.col("learner").list.len() == 1)
        gone = pl.concat([exact["learner"], one["learner"].explode()]).drop_nulls().unique()
        if not len(gone) and not self.may_be_elsewhere:
            raise self.removes_nobody(column, f"{len(names)} ")
        leaves = frame["learner"].is_in(gone.implode()).fill_null(False)
        return LeftOut(
            frame.filter(~leaves),
            people,
            n_learners=len(gone),
            n_rows=int(leaves.sum()),
            n_absent=len(rest) - one.height,
            n_ambiguous=alike.height - one.height,
            guesses=guesses,
            gone=gone,
        )

    def settled(self, learners: pl.Series, column: str) -> Withdrawn:
        """The same list, for pieces of a log that has these learners: whom it means is settled by all of them."""
        return _SettledList(self.text, True, self.leave_out(learners.to_frame("learner"), column))

    def removes_nobody(self, column: str, how_many: str = "") -> DataError:
        """The error of a list in which no learner is named."""
        return DataError(
            f"{self.text.name}: the list of learners who withdrew removes nobody: none of its {how_many}names is "
            "that of one learner in the log.",
            hint=f"give one name per line, as column '{column}' writes it, and check that the list "
            "belongs to this log.",
        )

    def _names(self, column: str, known: pl.DataFrame) -> tuple[pl.Series, pl.Series, tuple[Guess, ...]]:
        """The entries of the list, those among them that are names, as far as can be seen, and what was guessed."""
        lines = [line.strip() for line in self.text.lines if line.strip()]
        headers = (plain(column), *KNOWN_NAMES["learner"])
        separator = guess_separator(lines[0])
        first = [plain(name) for name in header_names(lines[0], separator)]
        fitting = [first.index(name) for name in headers if name in first]
        if len(lines) > 1 and len(first) > 1 and fitting:
            table = read_delimited(self.text, separator)
            names = _entries(table.read({"learner": fitting[0]})["learner"].drop_nulls())
            return names, names, table.guesses
        in_log = set(known["key"])
        # Where learners' names hold commas, a comma ends no name.
        marks = [mark for mark in _MARKS if not known["name"].str.contains(mark, literal=True).any()]
        rows = [_split(line, marks) for line in lines]
        as_usual = rows == [_split(line, list(_MARKS)) for line in lines]
        guesses = () if as_usual else (Guess("how the list of those who withdrew is split", hint=_QUOTED),)
        if rows[0] and plain(rows[0][0]) in headers:
            rows[0] = rows[0][1:]
        names = _entries([name for row in rows for name in row])
        if len(rows) == 1 or len({len(row) for row in rows}) > 1:
            return names, names, guesses
        # A table without a header that fits: reasons and dates in it are nobody's names.
        columns = [_entries(list(fields)) for fields in zip(*rows, strict=True)]
        people = [fields for fields in columns if not in_log.isdisjoint(_key(fields))]
        return names, pl.concat(people) if people else names, guesses


@dataclass(frozen=True, repr=False)
class _SettledList(Withdrawn):
    """A list of which is known whom it means."""

    meant: LeftOut | None = None

    def leave_out(self, frame: pl.DataFrame, column: str) -> LeftOut:
        """See `Withdrawn.leave_out`."""
        assert self.meant is not None
        leaves = frame["learner"].is_in(self.meant.gone.implode()).fill_null(False)
        gone = frame["learner"].filter(leaves).unique()
        return replace(
            self.meant, frame=frame.filter(~leaves), n_learners=len(gone), n_rows=int(leaves.sum()), gone=gone
        )


def read_withdrawn(path: Path | str) -> Withdrawn:
    """The list of those who withdrew; what its lines mean is settled with the log at hand."""
    return Withdrawn(decode(open_source(path), latin=True))


def _known(frame: pl.DataFrame) -> pl.DataFrame:
    """Every name of a learner, with the learner and with the key that forgives case and zeros."""
    names = [
        frame.select(pl.col(role).alias("name"), "learner").unique()
        for role in ("learner", "alias")
        if role in frame.columns
    ]
    known = pl.concat(names).unique().drop_nulls()
    return known.with_columns(_key(known["name"]).alias("key"))


def _key(names: pl.Series) -> pl.Series:
    return names.str.normalize("NFC").str.to_lowercase().str.replace(r"^0+(\d+)$", "$1")


def _entries(values: list[str] | pl.Series) -> pl.Series:
    names = pl.Series(values, dtype=pl.String).str.strip_chars()
    return names.filter(names != "").unique(maintain_order=True)


def _split(line: str, marks: list[str]) -> list[str]:
    """The names on a line; those that hold the separator stand in quotation marks."""
    separator = next((mark for mark in marks if mark in line), "\x1f")
    try:
        parts = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        parts = line.split(separator)
    return [part.strip() for part in parts if part.strip()]
