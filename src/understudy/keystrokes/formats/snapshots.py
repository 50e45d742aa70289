"""Source-code snapshots: texts in the order of time, of which neighbours are compared.

A character that one text has more than the text before was typed, one that it has less was taken
back. Whatever else changed was pasted, completed or replaced: it is not a key press, and none follows it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from understudy.core.files.tables import Table
from understudy.core.files.times import read_each_time
from understudy.keystrokes.formats.chain import is_unordered
from understudy.keystrokes.formats.rows import (
    FIRST_TEXT,
    REASONS,
    UNCHANGED,
    KeystrokeColumns,
    Reason,
    Rows,
)

BACKSPACE = "Backspace"
FIRST, SAME, TYPED, TAKEN_BACK, MORE = range(5)


def read_snapshots(table: Table, columns: KeystrokeColumns) -> Rows:
    """The key presses between the snapshots of a table."""
    chooser = columns.chooser(table, "text")
    chooser.require("learner", "time", "text")
    for role in ("session", "week", "document"):
        chooser.allow(role)
    rows = Rows.of(table, chooser)
    compare_texts(rows)
    return rows


def compare_texts(rows: Rows) -> None:
    """Replace the column `text` by `key` and `reason`; rows without a change go.

    Texts are compared within a learner's document, in the order of the file unless that is plainly not
    the order of time. An empty cell is a text.
    """
    frame = rows.frame.with_columns(pl.col("text").fill_null(""), pl.col("learner").cast(pl.String))
    document = [name for name in ("learner", "document") if name in frame.columns]
    frame = _in_order(frame, document, rows.notes)
    frame = frame.with_row_index("place").with_columns(
        pl.col("place").shift(1).over(document).cast(pl.Int64).fill_null(-1).alias("before")
    )
    encoded = [text.encode() for text in frame["text"]]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    content = np.frombuffer(b"".join(encoded) + b"\n", dtype=np.uint8)
    change, begin, length = _changes(content, starts, frame["before"].to_numpy())
    keys: list[str | None] = [
        content[b : b + n].tobytes().decode(errors="replace")
        if c == TYPED
        else BACKSPACE
        if c == TAKEN_BACK
        else None
        for c, b, n in zip(change.tolist(), begin.tolist(), length.tolist(), strict=True)
    ]
    several = np.where(change == MORE, REASONS.index(Reason.several), 0).astype(np.uint8)
    marked = pl.col("reason") if "reason" in frame.columns else pl.lit(0, pl.UInt8)
    frame = frame.drop("text", "place", "before", "document", strict=False).with_columns(
        pl.Series("key", keys, dtype=pl.String),
        pl.when(marked > 0).then(marked).otherwise(pl.Series(several)).alias("reason"),
    )
    # A row that changes nothing is not a key press; nor is the text that a learner was given.
    for code, what in ((FIRST, FIRST_TEXT), (SAME, UNCHANGED)):
        if number := int((change == code).sum()):
            rows.left_out[what] += number
    rows.frame = frame.filter(pl.Series((change != FIRST) & (change != SAME)))


def _in_order(frame: pl.DataFrame, document: Sequence[str], notes: list[str]) -> pl.DataFrame:
    """A learner's rows by time if many of them go back; a few are a clock's fault, and the file knows better."""
    number = frame["time"].cast(pl.String).cast(pl.Float64, strict=False)
    moment = read_each_time(frame["time"]).cast(pl.Int64).cast(pl.Float64)
    back = (pl.col("when") < pl.col("when").shift(1).over(document)).fill_null(False)
    unordered = is_unordered(back.sum().over("learner"), pl.len().over("learner"))
    frame = (
        frame.with_columns(pl.select(pl.coalesce(number, moment)).to_series().alias("when"))
        .with_row_index("place")
        .with_columns(unordered.alias("unordered"), pl.col("place").min().over("learner").alias("first"))
    )
    if frame["unordered"].any():
        notes.append("The texts were not in the order of time and were sorted.")
        place = pl.when("unordered").then("when").otherwise(pl.col("place").cast(pl.Float64))
        frame = frame.sort("first", place, maintain_order=True)
    return frame.drop("when", "place", "unordered", "first")


@njit(cache=True)
def _changes(  # type: ignore[no-untyped-def]
    content: NDArray[np.uint8], starts: NDArray[np.int64], before: NDArray[np.int64]
):
    """What happened to each text since the one before, and the place of the typed character."""
    n_texts = len(before)
    change = np.zeros(n_texts, dtype=np.int8)
    begin = np.zeros(n_texts, dtype=np.int64)
    length = np.zeros(n_texts, dtype=np.int64)
    for r in range(n_texts):
        if before[r] < 0:
            change[r] = FIRST
            continue
        old, new = starts[before[r]], starts[r]
        n_old, n_new = starts[before[r] + 1] - old, starts[r + 1] - new
        shorter = min(n_old, n_new)
        longer, n_longer = (new, n_new) if n_new >= n_old else (old, n_old)
        head = 0
        while head < shorter and content[old + head] == content[new + head]:
            head += 1
        if head == n_old and head == n_new:
            change[r] = SAME
            continue
        tail = 0
        while tail < shorter - head and content[old + n_old - 1 - tail] == content[new + n_new - 1 - tail]:
            tail += 1
        n_more = n_longer - shorter
        if head + tail < shorter or n_more == 0 or n_more > 4:
            change[r] = MORE
            continue
        # Back to where a character of UTF-8 begins, and no further than one character.
        at = longer + head
        while at > longer and content[at] & 0xC0 == 0x80:
            at -= 1
        lead = content[at]
        width = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if width != n_more:
            change[r] = MORE
        elif n_new > n_old:
            change[r], begin[r], length[r] = TYPED, at, width
        else:
            change[r] = TAKEN_BACK
    return change, begin, length
