"""Writes keystrokes as events, csv or parquet, so that the reader of events gives the same record again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from understudy.core.files.writing import write_with
from understudy.errors import UsageError
from understudy.keystrokes.keystrokes import NANOSECONDS, Keystrokes
from understudy.logs.interactions import SIMULATED_PREFIX

PREFIX = "learner-"


def event_table(keystrokes: Keystrokes, prefix: str | None = None) -> pl.DataFrame:
    """A row per key press: learner (a number behind a prefix), session, week, time, key, hold.

    Times are whole milliseconds where the clock has no finer ones, else nanoseconds; the columns' names
    say which. `follows` is there only if it tells more than where sessions begin.
    """
    begin = prefix or (SIMULATED_PREFIX if keystrokes.simulated else PREFIX)
    numbers = pl.Series(keystrokes.learner).cast(pl.Int64) + 1
    fine = bool((keystrokes.time % NANOSECONDS).any())
    held = keystrokes.hold
    if held is not None:
        fine = fine or bool((held[held >= 0] % NANOSECONDS).any())
    unit, per_unit = ("ns", 1) if fine else ("ms", NANOSECONDS)
    table = pl.DataFrame(
        {
            "learner": begin + numbers.cast(pl.String),
            "session": keystrokes.session,
            f"time_{unit}": keystrokes.time // per_unit,
            "key": pl.Series(keystrokes.keys, dtype=pl.String).gather(keystrokes.key),
        }
    )
    if (keystrokes.week >= 0).any():
        week = pl.Series("week", keystrokes.week)
        table.insert_column(2, pl.select(pl.when(week >= 0).then(week).alias("week")).to_series())
    if held is not None:
        known = pl.Series(held >= 0)
        table = table.with_columns(pl.when(known).then(pl.Series(held // per_unit)).alias(f"hold_{unit}"))
    if not np.array_equal(keystrokes.follows, _same_session(keystrokes)):
        table = table.with_columns(pl.Series("follows", keystrokes.follows.astype(np.int8)))
    return table


def write_keystrokes(keystrokes: Keystrokes, path: Path, *, kind: str, prefix: str | None = None) -> None:
    """Write the events whole or not at all, csv or parquet by the extension; `kind` says what they are."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise UsageError(
            f"asked to write {path.name}; keystrokes are written as .csv or .parquet.",
            hint="choose one of these by the extension of -o.",
        )
    table = event_table(keystrokes, prefix)
    if suffix == ".csv":
        write_with(path, lambda temporary: table.write_csv(temporary))
    else:
        write_with(path, lambda temporary: table.write_parquet(temporary, metadata={"understudy": kind}))


def _same_session(keystrokes: Keystrokes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the row before is of the same learner and session."""
    same = np.zeros(keystrokes.n_rows, dtype=bool)
    same[1:] = (np.diff(keystrokes.learner) == 0) & (np.diff(keystrokes.session) == 0)
    return same
