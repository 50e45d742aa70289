"""Tables with a row per key event: presses alone, presses and releases, or presses with a hold time."""

from __future__ import annotations

import numpy as np
import polars as pl

from understudy.core.files.columns import ColumnChooser, reject_duplicates
from understudy.core.files.source import Guess
from understudy.core.files.tables import Table
from understudy.core.names import SIMULATED_PREFIX
from understudy.errors import DataError
from understudy.keystrokes.formats.rows import KeystrokeColumns, Reason, Rows
from understudy.keystrokes.keystrokes import NANOSECONDS, Keystrokes

# As they stand in a type column, without case, spaces, underscores and hyphens.
_DOWN = ("keydown", "down", "press", "pressed", "keypressed", "kd", "d", "keystroke", "insert")
_UP = ("keyup", "up", "release", "released", "keyreleased", "ku", "u")
# A browser sends it between the two; where it is alone it is the press.
_PRESS = ("keypress",)
_KINDS = "call presses keydown and releases keyup, or leave the column out."


def choose_columns(table: Table, columns: KeystrokeColumns) -> ColumnChooser:
    """The columns of a table of events."""
    reject_duplicates(table.names, table.file)
    chooser = columns.chooser(table)
    chooser.require("learner", "time", "key")
    chooser.allow("session")
    chooser.allow("week")
    if chooser.allow("type"):
        # The place of a key does not change when Shift is let go before it.
        chooser.allow("code")
    elif not chooser.allow("release"):
        chooser.allow("hold")
    chooser.allow("follows")
    return chooser


def read_events(table: Table, columns: KeystrokeColumns, types: pl.Series | None = None) -> Rows:
    """The events of a table; its type column, if it has one, distinguishes presses from releases.

    Of a part of a file, `types` are all that the column holds in the whole of it.
    """
    chooser = choose_columns(table, columns)
    rows = Rows.of(table, chooser)
    if "type" in chooser.positions:
        _split_releases(rows, types)
    if "follows" in chooser.positions:
        broken = pl.col("follows").cast(pl.String).str.strip_chars().str.to_lowercase().is_in(["0", "false"])
        rows.frame = rows.frame.with_columns(broken.fill_null(False).alias("broken")).drop("follows")
    return rows


def _split_releases(rows: Rows, types: pl.Series | None) -> None:
    kinds = rows.frame["type"].cast(pl.String)
    known = (kinds if types is None else types).drop_nulls().unique()
    words = known.str.to_lowercase().str.replace_all(r"[\s_.\-]+", "")
    down, up, press = words.is_in(_DOWN), words.is_in(_UP), words.is_in(_PRESS)
    if not (down | up | press).any():
        rows.frame = rows.frame.drop("type", "code", strict=False)
        rows.columns.pop("type")
        rows.guesses.append(Guess("that every row is a press, since no row says that it is one", hint=_KINDS))
        rows.notes.append(
            "A column looked by its name as if it distinguished key-down from key-up, but does not: "
            "every row was taken for a press."
        )
        return
    if not (down | press).any():
        raise DataError(
            f"{rows.file}: there are releases of keys, but no presses (type column).",
            hint="export key-down events too.",
        )
    if not down.any():
        down = press
        rows.guesses.append(Guess("that a keypress is a press, since there is no keydown", hint=_KINDS))
    is_up = kinds.is_in(known.filter(up).implode()).fill_null(False)
    is_down = kinds.is_in(known.filter(down).implode()).fill_null(False)
    rows.left_out[str(Reason.other_event)] += int((~(is_up | is_down)).sum())
    rows.frame = rows.frame.drop("type").with_columns(is_up.alias("up")).filter(is_up | is_down)
    if not rows.left_out[str(Reason.other_event)]:
        del rows.left_out[str(Reason.other_event)]
    if not up.any():
        rows.frame = rows.frame.drop("up", "code", strict=False)


def event_table(keystrokes: Keystrokes) -> pl.DataFrame:
    """A row per key press: learner (a number behind a prefix), session, week, time, key, hold.

    Times are whole milliseconds where the clock has no finer ones, else nanoseconds; the columns' names
    say which. `follows` is there only if it shows more than where sessions begin.
    """
    prefix = SIMULATED_PREFIX if keystrokes.simulated else "learner-"
    numbers = pl.Series(keystrokes.learner).cast(pl.Int64) + 1
    fine = bool((keystrokes.time % NANOSECONDS).any())
    held = keystrokes.hold
    if held is not None:
        fine = fine or bool((held[held >= 0] % NANOSECONDS).any())
    unit, per_unit = ("ns", 1) if fine else ("ms", NANOSECONDS)
    table = pl.DataFrame(
        {
            "learner": prefix + numbers.cast(pl.String),
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


def _same_session(keystrokes: Keystrokes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the row before is of the same learner and session."""
    same = np.zeros(keystrokes.n_rows, dtype=bool)
    same[1:] = (np.diff(keystrokes.learner) == 0) & (np.diff(keystrokes.session) == 0)
    return same
