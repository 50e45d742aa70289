"""Duolingo's SLAM 2018 files: a token per line under the header of its exercise, label 1 for a mistake."""

from __future__ import annotations

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.source import Text
from understudy.errors import DataError

_FIELDS = 7
_USER = r"^#.*?\buser:(\S+)"


def looks_like_slam(lines: list[str]) -> bool:
    """Whether the first lines of a text are the header of an exercise."""
    headers = [line for line in lines if line.strip()][:2]
    return any(line.startswith("#") and "user:" in line for line in headers)


def read_slam(text: Text, options: ReadOptions) -> EventTable:
    """One row per token; the action is the token in lower case, the outcome whether it was right."""
    options.refuse_columns("slam")
    lines = pl.Series("text", text.lines, dtype=pl.String).str.strip_chars()
    rows = pl.DataFrame({"text": lines, "line": pl.int_range(1, len(lines) + 1, eager=True)})
    rows = rows.with_columns(
        header=pl.col("text").str.starts_with("#"), learner=pl.col("text").str.extract(_USER).forward_fill()
    )
    users = rows["learner"].drop_nulls().unique(maintain_order=True)
    rows = rows.filter(~pl.col("header") & (pl.col("text") != ""))
    if rows.height == 0:
        raise DataError(f"{text.name}: the log is empty: there is no token.", hint="check the download.")
    _require(rows, rows["learner"].is_not_null(), "comes before any line with 'user:'", text.name)
    # Cheaper than splitting: the label is the only field that is needed besides the token.
    n_fields = rows["text"].str.count_matches(r"\S+")
    if (n_fields == _FIELDS - 1).all():
        raise DataError(
            f"{text.name}: the tokens have no labels; this is a test file without outcomes.",
            hint="read the training file, or a test file joined with its key.",
        )
    _require(rows, n_fields == _FIELDS, f"has not the {_FIELDS} fields of a labelled token", text.name)
    label = rows["text"].str.extract(r"\s([01])$")
    _require(rows, label.is_not_null(), "has a label other than 0 and 1", text.name)
    frame = rows.select(
        "learner",
        pl.col("text").str.extract(r"^\S+\s+(\S+)").str.to_lowercase().alias("action"),
        (1 - label.cast(pl.Int8)).cast(pl.Int8).alias("outcome"),
        "line",
    )
    columns = {"learner": "user", "action": "token", "outcome": "label"}
    without_tokens = pl.DataFrame({"learner": users}).join(frame, on="learner", how="anti")
    frame = pl.concat([frame, without_tokens], how="diagonal")
    events = EventTable(text.name, frame, columns, list(text.notes))
    events.notes.append(
        "Label 1 means a mistake, so the outcome is 1 minus the label; tokens are in lower case."
    )
    events.tidy(options)
    events.drop(pl.col("action").is_null() & pl.col("line").is_null(), "of learners without a token")
    return events


def _require(rows: pl.DataFrame, good: pl.Series, what: str, file: str) -> None:
    bad = ~good
    if bad.any():
        line = rows["line"][int(bad.arg_max() or 0)]
        raise DataError(
            f"{file}: line {line} {what} ({int(bad.sum())} such lines).",
            hint="a line holds id, token, part of speech, morphology, dependency, head and label.",
        )
