"""The three-line format of knowledge tracing: a learner is a length, a line of skills, a line of 0 and 1."""

from __future__ import annotations

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.source import Text
from understudy.errors import DataError

_HINT = "each learner has three lines: the number of attempts, the skills, and 0 or 1 for each, by commas."


def looks_like_three_lines(lines: list[str]) -> bool:
    """Whether the first lines of a text are a length, skills and outcomes."""
    if len(lines) < 3 or not lines[0].strip(" \t,").isdecimal():
        return False
    outcomes = [value.strip() for value in lines[2].strip().rstrip(",").split(",")]
    return set(outcomes) <= {"0", "1"} and len(outcomes) == len(lines[1].strip().rstrip(",").split(","))


def read_three_line(text: Text, options: ReadOptions) -> EventTable:
    """One learner per three lines, numbered in the order of the file."""
    options.refuse_columns("three-line")
    lines = text.lines
    while lines and not lines[-1].strip() and len(lines) % 3:
        lines.pop()
    if len(lines) % 3:
        raise DataError(
            f"{text.name}: {len(lines)} lines are no multiple of three; the learner that begins on line "
            f"{len(lines) - len(lines) % 3 + 1} is incomplete.",
            hint=_HINT,
        )
    triples = pl.DataFrame(
        {
            "first_line": range(1, len(lines), 3),
            "length": pl.Series(lines[0::3], dtype=pl.String).str.strip_chars(" \t,"),
            "action": _values(lines[1::3]),
            "outcome": _values(lines[2::3]),
        }
    ).with_columns(pl.col("length").cast(pl.UInt32, strict=False))
    _check(triples, "length", triples["length"].is_null(), 0, "is not a number of attempts", text.name)
    for role, below in (("action", 1), ("outcome", 2)):
        unequal = triples[role].list.len() != triples["length"]
        _check(triples, role, unequal, below, "has not as many values as the length says", text.name)
    # Attempts in a row of their own; a learner without attempts has an empty one, which is dropped below.
    learners = triples.with_columns(
        learner=pl.int_range(1, pl.len() + 1).cast(pl.String), line=pl.col("first_line") + 2
    )
    attempts = learners.filter(pl.col("length") > 0).explode("action", "outcome")
    without = learners.filter(pl.col("length") == 0).select("learner", "line")
    rows = pl.concat([attempts.select("learner", "action", "outcome", "line"), without], how="diagonal")
    columns = {"learner": "learner", "action": "second line", "outcome": "third line"}
    events = EventTable(text.name, rows, columns, list(text.notes))
    events.notes.append("Learners have no names in this format; each three lines are one learner.")
    if options.withdrawn is not None:
        events.notes.append("A list of names of learners who withdrew means their number in the file.")
    events.tidy(options)
    events.drop(pl.col("action").is_null() & pl.col("outcome").is_null(), "of learners without an attempt")
    events.learners = events.learners.clear()  # numbers that we gave: no action can mean them
    return events


def _values(lines: list[str]) -> pl.Series:
    text = pl.Series(lines, dtype=pl.String).str.strip_chars().str.strip_chars_end(",")
    values = text.str.split(",")
    return pl.select(pl.when(text == "").then(pl.lit([], pl.List(pl.String))).otherwise(values)).to_series()


def _check(triples: pl.DataFrame, role: str, bad: pl.Series, below: int, what: str, file: str) -> None:
    if bad.any():
        line = triples["first_line"][int(bad.arg_max() or 0)] + below
        raise DataError(f"{file}: line {line} {what} ({int(bad.sum())} such learners).", hint=_HINT)
