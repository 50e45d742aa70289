"""Lists of scores: a score per learner, and how they are matched with the learners of an activity log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.cohorts.building.activity import Activity
from understudy.core.files.columns import KNOWN_NAMES, STUDENT_NUMBERS, ColumnChooser, plain
from understudy.core.files.delimited import guess_separator, read_delimited
from understudy.core.files.source import decode, first_lines, open_source, refuse_guesses
from understudy.core.files.tables import MAGIC as PARQUET_MAGIC
from understudy.core.files.tables import Table, read_parquet
from understudy.core.files.words import counted
from understudy.core.files.workbooks import MAGICS as EXCEL_MAGICS
from understudy.core.files.workbooks import read_workbook
from understudy.errors import DataError, UsageError

_SCORES = (
    *("score", "grade", "finalgrade", "finalscore", "overall", "total", "coursetotal", "mark", "marks"),
    *("points", "exam", "result", "note", "punkte", "punktzahl", "nota", "calificacion", "calificación"),
)
_KNOWN = {
    # The names of Moodle's log before numbers that it does not have.
    "learner": (
        *(name for name in KNOWN_NAMES["learner"] if name not in STUDENT_NUMBERS),
        *("name", "idnumber", "email", "emailaddress", *STUDENT_NUMBERS),
    ),
    "score": _SCORES,
}
# What a grade book writes where there is no score.
_NONE = ("", "-", "–", "na", "n/a", "null", "none", "nan")


class Match(Enum):
    """How names in a log and in a list of scores are compared."""

    name = "name"
    number = "number"


@dataclass(frozen=True, repr=False)
class Scores:
    """A score per learner, and the learners who are listed without one; no message holds a name."""

    names: pl.Series
    values: NDArray[np.float64]
    unscored: pl.Series
    notes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Scores: {len(self.values)} learners>"

    @property
    def n_without(self) -> int:
        """Number of learners in the list who have no score."""
        return len(self.unscored)


def read_scores(path: Path | str, *, learner: str | None = None, score: str | None = None) -> Scores:
    """The scores in a csv, tsv, Excel or Parquet file; a learner without one is left out and counted."""
    table = _table(path)
    # These are known names of columns, so not a learner's.
    fitting = [column for column in table.names if plain(column) in _SCORES]
    if score is None and len(fitting) > 1:
        raise UsageError(
            f"{table.file}: {len(fitting)} columns could be the score: "
            + ", ".join(f"'{column}'" for column in fitting)
            + ".",
            hint=f"choose one, for example '{fitting[0]}'.",
            settings=("score",),
        )
    chooser = ColumnChooser(
        table.names, table.file, {"learner": learner, "score": score}, _KNOWN, {"learner": "scores_learner"}
    )
    chooser.require("learner", "score")
    notes = [*table.notes, *chooser.notes]
    frame = table.read(chooser.positions).with_columns(
        pl.col("learner").cast(pl.String).str.strip_chars().replace("", None)
    )
    text = frame["score"].cast(pl.String).str.strip_chars()
    # 12,5 is a decimal comma; 85 % is 85.
    number = text.str.replace(r"\s*%$", "").str.replace(r"^(-?\d+),(\d+)$", "$1.$2")
    values = number.cast(pl.Float64, strict=False)
    absent = text.is_null() | text.str.to_lowercase().is_in(_NONE)
    wrong = ~absent & ~values.is_finite().fill_null(False)
    if wrong.any():
        where = f"on {table.place} {frame['line'][int(wrong.arg_max() or 0)]}"
        where += f" ({counted(int(wrong.sum()), 'such row')})"
        raise DataError(
            f"{table.file}: column '{chooser.columns['score']}' holds something other than a number {where}."
            if score is not None
            else f"{table.file}: a score is not a number {where}.",
            hint="choose another column, or leave the cell empty where there is no score.",
            settings=("score",),
        )
    nameless = frame["learner"].is_null()
    if nameless.any():
        notes.append(f"{table.file}: {counted(int(nameless.sum()), 'row')} without a learner dropped.")
    scored = frame.with_columns(values.alias("value")).filter(~nameless)
    listed = scored["learner"].unique(maintain_order=True)
    scored = scored.filter(~absent.filter(~nameless))
    n_scored = scored.height
    scored = scored.unique(["learner", "value"], keep="first", maintain_order=True)
    if n_twice := n_scored - scored.height:
        notes.append(
            f"{table.file}: {counted(n_twice, 'row')} with the name and the score of another taken for the same "
            "learner."
        )
    several = scored["learner"].is_duplicated()
    if several.any():
        raise DataError(
            f"{table.file}: {counted(scored.filter(several)['learner'].n_unique(), 'learner')} with several scores "
            f"(first on {table.place} {scored['line'][int(several.arg_max() or 0)]}).",
            hint="keep one score for each learner.",
        )
    if not scored.height:
        raise DataError(
            f"{table.file}: there is no score.", hint="choose another column.", settings=("score",)
        )
    return Scores(
        scored["learner"],
        scored["value"].to_numpy(),
        listed.filter(~listed.is_in(scored["learner"].to_list())),
        tuple(notes),
        tuple(f"{table.place} {line} of {table.file}" for line in scored["line"]),
        {"scores_learner": chooser.columns["learner"], "score": chooser.columns["score"]},
    )


@dataclass(frozen=True, repr=False)
class Matched:
    """For each score the position of its learner in the log, or -1, and counts of the others.

    `n_not_listed` counts the learners of the log who are not in the list, with or without a score.
    `ambiguous` are the scores, among those with -1, whose names fit several learners, or share one.
    """

    position: NDArray[np.int64]
    n_without_events: int
    n_not_listed: int
    ambiguous: tuple[int, ...] = ()


def match_scores(activity: Activity, scores: Scores, match: Match = Match.name) -> Matched:
    """Find the learners of the scores in the log.

    Names that are the same come first; then those that are but for case, spaces and leading
    zeros (`Match.number`: but for everything around one number), where only one learner on
    either side can be meant.
    """
    position = np.full(len(scores.values), -1, dtype=np.int64)
    codes = pl.int_range(activity.n_learners, eager=True)
    known = pl.DataFrame(
        {"name": pl.concat([activity.names, activity.aliases]), "code": pl.concat([codes, codes])}
    ).drop_nulls()
    ambiguous: list[int] = []
    for exact in (True, False):
        open_rows = np.flatnonzero(position < 0)
        free = known.filter(~pl.col("code").is_in(position[position >= 0].tolist()))
        wanted = pl.DataFrame({"name": scores.names, "row": pl.int_range(len(position), eager=True)})
        wanted = wanted.filter(pl.col("row").is_in(open_rows.tolist()))
        if not exact:
            free = free.with_columns(_key(free["name"], match).alias("name"))
            wanted = wanted.with_columns(_key(wanted["name"], match).alias("name"))
        pairs = wanted.drop_nulls().join(free.drop_nulls(), on="name").select("row", "code").unique()
        alone = ~(pairs["row"].is_duplicated() | pairs["code"].is_duplicated())
        ambiguous = pairs.filter(~alone)["row"].unique().sort().to_list()
        sure = pairs.filter(alone)
        position[sure["row"].to_numpy()] = sure["code"].to_numpy()
    found = int((position >= 0).sum())
    if not found:
        _refuse_without_numbers(activity, scores, match)
        raise DataError(
            f"none of {len(position)} learners with a score is one of {activity.n_learners} learners in the log.",
            hint="choose other columns, or match names by the number in them.",
            settings=("learner", "scores_learner", "match"),
        )
    left = known.filter(~pl.col("code").is_in(position[position >= 0].tolist()))
    listed = left["name"].is_in(scores.unscored.to_list()) | _key(left["name"], match).is_in(
        _key(scores.unscored, match).drop_nulls().to_list()
    )
    n_unscored = left.filter(listed.fill_null(False))["code"].n_unique()
    return Matched(
        position, len(position) - found, activity.n_learners - found - n_unscored, tuple(ambiguous)
    )


def _refuse_without_numbers(activity: Activity, scores: Scores, match: Match) -> None:
    """By number only names with one number in them can be the same."""
    if match is not Match.number:
        return
    sides = (("the log", activity.names), ("the list of scores", scores.names))
    lacking = [side for side, names in sides if not _key(names, match).drop_nulls().len()]
    if lacking:
        raise DataError(
            f"no name of {' or of '.join(lacking)} has exactly one number in it, by which names were to be matched.",
            hint="match them as they are, or choose other columns.",
            settings=("match", "learner", "scores_learner"),
        )


def _key(names: pl.Series, match: Match) -> pl.Series:
    if match is Match.number:
        has_one_number = names.str.count_matches(r"\d+") == 1
        digits = names.str.extract(r"(\d+)").str.replace(r"^0+(\d)", "$1")
        return pl.select(pl.when(has_one_number).then(digits).alias("name")).to_series()
    return (
        names.str.normalize("NFKC")
        .str.to_lowercase()
        .str.replace_all(r"\s+", " ")
        .str.strip_chars()
        .str.replace(r"^mailto:", "")
        .str.replace(r"^0+(\d+)$", "$1")
    )


def _table(path: Path | str) -> Table:
    source = open_source(path)
    if source.data.startswith(PARQUET_MAGIC):
        return read_parquet(source)
    if source.data.startswith(EXCEL_MAGICS):
        return read_workbook(source, look=False)
    text = decode(source, latin=True)
    if len(first_lines(text, 2)) < 2:
        raise DataError(
            f"{source.name}: the list of scores is empty: it has one line, and that is the header.",
            hint="check the export: below the columns' names there is a row for each learner.",
        )
    table = read_delimited(text, guess_separator(first_lines(text, 1)[0]))
    refuse_guesses(table.guesses)
    return table
