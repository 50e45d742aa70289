"""Quizzes that a learning platform exports: a row per attempt becomes a sheet with a row per learner.

What the columns are follows from the header alone. Which attempt of a learner counts follows from that learner's rows
alone. So replacing one learner changes one row of the sheet, if no two learners share what names them. E-mail
addresses and ids are compared without capitals and a spreadsheet's zeros. Names may be shared: a repeated name is an
error, unless the user declares which attempt counts, and thereby that rows of one name are attempts of one learner.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from understudy.core.files.people.learner_ids import folded_names
from understudy.core.files.tables import FrameTable, Table
from understudy.core.files.words import counted
from understudy.errors import DataError
from understudy.exams.responses import Attempt

# The exam is the first time that a learner meets the questions; later attempts may know the answers.
DEFAULT_ATTEMPT: Attempt = "first"
_NOTHING = ("", "-", "–")


@dataclass(frozen=True)
class Question:
    """A question: its title in the sheet, with the maximum if it has points, and its column.

    `right` is the column of the right answer where the cells are answers, which are compared with it.
    """

    title: str
    position: int
    right: int | None = None


@dataclass(frozen=True)
class Quiz:
    """The columns of a quiz report, by position.

    `learner` are the columns that together name a learner; the first one of the sheet holds them. A row that has
    nothing in any of `filled` is no attempt, but an average below them. `attempt` numbers the attempts, `total` is what
    they reached. `unique` says whether no two learners have the same in `learner`, as is so for ids but not for names.
    """

    kind: str
    learner: tuple[int, ...]
    questions: tuple[Question, ...]
    filled: tuple[int, ...] = ()
    attempt: int | None = None
    total: int | None = None
    notes: tuple[str, ...] = ()
    unique: bool = True

    def sheet(self, table: Table, attempt: Attempt | None) -> FrameTable:
        """The table with one row per learner: who it is, and the questions; nothing else of it is kept."""
        frame = _texts(table, self._positions())
        notes = [*table.notes, f"{self.kind}: {self._about(table)}", *self.notes]
        if self.filled:
            empty = pl.all_horizontal(pl.col(str(at)).is_null() for at in self.filled)
            n_rows, frame = frame.height, frame.filter(~empty)
            if n_below := n_rows - frame.height:
                notes.append(
                    f"{counted(n_below, 'row')} of averages below the learners {_was(n_below)} left out."
                )
        frame = frame.with_columns(self._learner(), *(_cell(question) for question in self.questions))
        if not self.unique and attempt is None:
            self._refuse_same_names(frame, table)
        n_rows, frame = frame.height, self._one_each(frame, attempt or DEFAULT_ATTEMPT)
        if n_more := n_rows - frame.height:
            which = "" if attempt else "; `attempts` chooses another: last, or best"
            notes.append(
                f"{counted(n_more, 'further attempt')} {'does' if n_more == 1 else 'do'} not count: the "
                f"{attempt or DEFAULT_ATTEMPT} one of each learner does{which}."
            )
        named = " and ".join(table.names[at] for at in self.learner)
        names = (named, *(question.title for question in self.questions))
        cells = frame.select("learner", *(f"q{question.position}" for question in self.questions))
        return FrameTable(table.file, names, cells, frame["line"], tuple(notes), table.guesses, table.place)

    def _positions(self) -> list[int]:
        right = [question.right for question in self.questions]
        single = [at for at in (self.attempt, self.total, *right) if at is not None]
        return sorted(
            {*self.learner, *self.filled, *single, *(question.position for question in self.questions)}
        )

    def _about(self, table: Table) -> str:
        whom = " and ".join(f"'{table.names[at]}'" for at in self.learner)
        return f"the learner is in {whom}; {counted(len(self.questions), 'question')} by the header."

    def _refuse_same_names(self, frame: pl.DataFrame, table: Table) -> None:
        """Which of two people a row is of would depend on the other one's rows."""
        names = folded_names(frame["learner"])
        again = names.is_not_null() & ~names.is_first_distinct()
        if again.any():
            lines = frame["line"].filter(again)
            whom = " and ".join(f"'{table.names[at]}'" for at in self.learner)
            raise DataError(
                f"{table.file}: {whom} hold a name for a second time on {table.place} {lines[0]} "
                f"({counted(len(lines), 'such row')}), and no column has e-mail addresses: two learners may share a "
                "name.",
                hint="export the quiz with e-mail addresses; or, if rows of the same name are attempts of one learner, "
                "declare which of them counts: first, last or best.",
                code="not-one-row-each",
                settings=("attempts",),
            )

    def _learner(self) -> pl.Expr:
        if len(self.learner) == 1:
            return pl.col(str(self.learner[0])).alias("learner")
        parts = pl.concat_str([pl.col(str(at)).fill_null("") for at in self.learner], separator=" ")
        return pl.when(parts.str.strip_chars() == "").then(None).otherwise(parts).alias("learner")

    def _one_each(self, frame: pl.DataFrame, attempt: Attempt) -> pl.DataFrame:
        """One attempt of each learner; one without any answer only if there is no other."""
        answered = pl.any_horizontal(
            pl.col(f"q{question.position}").is_not_null() for question in self.questions
        )
        order = _number(self.attempt) if self.attempt is not None else pl.lit(0.0)
        reached = _number(self.total) if attempt == "best" and self.total is not None else pl.lit(0.0)
        latest = -1.0 if attempt == "last" else 1.0
        return (
            frame.with_row_index("_row")
            .with_columns(
                pl.when(pl.col("learner").is_null())
                .then(pl.lit("row ") + pl.col("_row").cast(pl.String))
                .otherwise(pl.lit("learner ") + folded_names(pl.col("learner")))
                .alias("_who")
            )
            .with_columns(
                pl.col("_row").min().over("_who").alias("_first"),
                (~answered).alias("_empty"),
                (-reached).alias("_reached"),
                (latest * order).alias("_order"),
                (latest * pl.col("_row").cast(pl.Float64)).alias("_place"),
            )
            .sort("_first", "_empty", "_reached", "_order", "_place", maintain_order=True)
            .unique("_who", keep="first", maintain_order=True)
        )


def _texts(table: Table, positions: list[int]) -> pl.DataFrame:
    """These columns as text; what says nothing is null."""
    frame = table.read({str(at): at for at in positions})
    texts = [pl.col(str(at)).cast(pl.String, strict=False).str.strip_chars() for at in positions]
    return frame.with_columns(
        pl.when(text.is_in(_NOTHING)).then(None).otherwise(text).alias(str(at))
        for at, text in zip(positions, texts, strict=True)
    )


def _cell(question: Question) -> pl.Expr:
    given = pl.col(str(question.position))
    if question.right is None:
        return given.alias(f"q{question.position}")
    same = _folded(given) == _folded(pl.col(str(question.right)))
    return (
        pl.when(given.is_null())
        .then(None)
        .when(same.fill_null(False))
        .then(pl.lit("1"))
        .otherwise(pl.lit("0"))
        .alias(f"q{question.position}")
    )


def _folded(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars(" .")


def _number(position: int | None) -> pl.Expr:
    text = pl.col(str(position)).str.replace(",", ".", literal=True)
    return text.cast(pl.Float64, strict=False).fill_nan(None).fill_null(-1.0)


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
