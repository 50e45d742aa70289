"""Rows of a keystroke file to key presses: all rows show how the file is written, then each learner's are read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.source import Guess, keeping_values_inside
from understudy.errors import DataError
from understudy.keystrokes.formats.chain import Events, link
from understudy.keystrokes.formats.clock import (
    LONGEST_USUAL_HOLD,
    SHORTEST_USUAL_HOLD,
    ClockFacts,
    Sizes,
    Zones,
)
from understudy.keystrokes.formats.record import Piece
from understudy.keystrokes.formats.rows import (
    NO_LEARNER,
    REASONS,
    Reason,
    Rows,
    coded,
    name_keys,
    names_codes,
    regrouped,
)
from understudy.keystrokes.formats.times import (
    Clock,
    TimeColumn,
    hold_numbers,
    is_stated,
    read_holds,
    read_releases,
    read_times,
    unit_in_name,
)

# "3", "week 3", "W03", and "3.0" from a spreadsheet; empty for a row without a week.
_WEEK = re.compile(r"\s*(?:(?:[a-z]{1,8}[\s_.\-]*)?([0-9]{1,6})(?:\.0*)?)?\s*", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Named:
    """Rows that have a learner and a time, whose learners these are, and where each of them first stands."""

    rows: Rows
    learner: NDArray[np.int32]
    names: pl.Series
    lines: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows) -> Named:
        """Leave out rows without a learner; those without a time as well, but these break chains."""
        # Stripped as partitions are (`partition`), so that a learner's rows are in one of them.
        who, raw = coded(rows.frame["learner"].cast(pl.String).str.strip_chars())
        learner, names = regrouped(who, [name or None for name in raw])
        if n_nobody := int((learner < 0).sum()):
            rows.left_out[NO_LEARNER] += n_nobody
            rows.frame = rows.frame.filter(pl.Series(learner >= 0))
            learner = learner[learner >= 0]
        lines = _first_lines(learner, len(names), rows.frame)
        _drop_without_time(rows, learner)
        if rows.frame.height < len(learner):
            learner = learner[rows.frame["place"].to_numpy()]
        return cls(rows, learner, pl.Series(names, dtype=pl.String), lines)


@dataclass(frozen=True, eq=False)
class FileFacts:
    """What the rows of some learners show about how the file is written; those of all learners decide. Additive."""

    clock: ClockFacts
    keys_are_numbers: bool
    some_key_above_9: bool
    holds: Sizes

    @classmethod
    def of(cls, named: Named, unit: str | None) -> FileFacts:
        """Of some learners' rows; `unit` is that of times, as declared."""
        frame = named.rows.frame
        unit = unit or unit_in_name(named.rows.columns["time"])
        keys = frame["key"].cast(pl.String).drop_nulls().unique()
        holds = hold_numbers(frame["hold"]) if "hold" in frame.columns else np.zeros(0)
        return cls(
            ClockFacts.of(frame["time"], named.learner, frame["line"], unit),
            bool(keys.str.contains(r"^\d{1,5}$").all()),
            bool(keys.str.contains(r"^\d{2,5}$").any()),
            Sizes.of(holds[~np.isnan(holds)], SHORTEST_USUAL_HOLD, LONGEST_USUAL_HOLD),
        )

    def __add__(self, other: FileFacts) -> FileFacts:
        return FileFacts(
            self.clock + other.clock,
            self.keys_are_numbers and other.keys_are_numbers,
            self.some_key_above_9 or other.some_key_above_9,
            self.holds + other.holds,
        )

    @property
    def keys_look_like_codes(self) -> bool:
        """Whether all keys are whole numbers, and some above 9, so that they seem to be numbers of keys."""
        return self.keys_are_numbers and self.some_key_above_9

    @property
    def hold_unit(self) -> str:
        """The unit in which keys are usually down for 5 ms to 5 s."""
        return self.holds.unit(SHORTEST_USUAL_HOLD, LONGEST_USUAL_HOLD) or "ms"


@dataclass(frozen=True)
class Notation:
    """How the times and keys of a file are written, as all of its rows show."""

    clock: Clock
    keys_look_like_codes: bool
    hold_unit: str
    partial: bool = False
    """Whether rows are read in pieces."""

    @classmethod
    def of(cls, facts: FileFacts, column: TimeColumn, unit: str | None, *, partial: bool = False) -> Notation:
        """`unit` is that of times, as declared."""
        clock = facts.clock.clock(unit, column) if facts.clock.n_rows else Clock("")
        return cls(clock, facts.keys_look_like_codes, facts.hold_unit, partial)


@dataclass(frozen=True, repr=False)
class Settled:
    """The presses of some learners, if they have any, and the time zones that their times and releases state."""

    piece: Piece | None
    zones: tuple[Zones, Zones]


def settle_rows(rows: Rows, unit: str | None) -> tuple[list[Piece], tuple[Zones, Zones]]:
    """The presses of a file, in one piece if there are any; `unit` is that of times, as declared."""
    named = Named.of(rows)
    column = TimeColumn(rows.file, rows.place, rows.columns["time"])
    settled = settle(named, Notation.of(FileFacts.of(named, unit), column, unit))
    return [] if settled.piece is None else [settled.piece], settled.zones


def settle(named: Named, notation: Notation) -> Settled:
    """The presses among rows of a file that is written so; what is left out of them is counted, and notes are taken."""
    rows = named.rows
    if not rows.frame.height:
        return Settled(None, (Zones(), Zones()))
    with keeping_values_inside(
        f"{rows.file}: the columns cannot be put together.",
        hint="check the columns chosen, and that the file is valid UTF-8.",
    ):
        events, keys, zones = _events(rows, named.learner, notation)
        key_lines = _first_lines(events.key, len(keys), rows.frame)
        presses = link(events, relative=notation.clock.since_start, left_out=rows.left_out, notes=rows.notes)
        if not len(presses.lengths):
            return Settled(None, zones)
        return Settled(Piece.of(presses, named.names, named.lines, keys, key_lines), zones)


def _events(
    rows: Rows, learner: NDArray[np.int32], notation: Notation
) -> tuple[Events, tuple[str, ...], tuple[Zones, Zones]]:
    """Columns as numbers; rows without a key stay to break chains."""
    frame, clock = rows.frame, notation.clock
    lines = frame["line"]
    column = TimeColumn(rows.file, rows.place, rows.columns["time"], partial=notation.partial)
    if clock.guessed:
        rows.guesses.append(Guess("what times count, from how fast people type", ("unit",)))
    time = read_times(frame["time"], lines, clock, column)
    zones, zones_of_releases = Zones(), Zones()
    if clock.unit is None:
        zones = Zones.of(frame["time"], lines)
    rows.notes.append(clock.note)
    key, keys, reason = _keys(rows, notation)
    events = Events(learner, time, key, reason)
    if "session" in frame.columns:
        events = replace(events, session=_sessions(frame["session"], learner))
    if "week" in frame.columns:
        events = replace(events, week=_weeks(rows, notation))
    if "up" in frame.columns:
        events = replace(events, up=frame["up"].to_numpy(), code=_places(frame))
    if "broken" in frame.columns:
        events = replace(events, broken=frame["broken"].to_numpy())
    if "release" in frame.columns:
        there = replace(column, role="release")
        events = replace(events, hold=read_releases(frame["release"], lines, time, clock, there))
        if clock.unit is None:
            stated = is_stated(frame["release"])
            zones_of_releases = Zones.of(frame["release"].filter(stated), lines.filter(stated))
    elif "hold" in frame.columns:
        unit = unit_in_name(rows.columns["hold"])
        if unit is None:
            unit = notation.hold_unit
            hint = "state the unit in the column's name, as in hold_ms."
            rows.guesses.append(Guess("what times of holding count, from how long keys are down", hint=hint))
        events = replace(events, hold=read_holds(frame["hold"], unit))
    return events, keys, (zones, zones_of_releases)


def _first_lines(codes: NDArray[np.int32], n_codes: int, frame: pl.DataFrame) -> NDArray[np.int64]:
    """The line on which each code first stands."""
    known = codes >= 0
    lines = np.full(n_codes, np.iinfo(np.int64).max)
    np.minimum.at(lines, codes[known], frame["line"].to_numpy()[known])
    return lines


def _drop_without_time(rows: Rows, learner: NDArray[np.int32]) -> None:
    """Leave out rows without a time; the learner's next row then follows none."""
    missing = rows.frame["time"].is_null()
    if rows.frame["time"].dtype == pl.String:
        missing |= rows.frame["time"].str.strip_chars() == ""
    if not missing.any():
        return
    rows.left_out[str(Reason.no_time)] += int(missing.sum())
    missing_before = pl.col("missing").cast(pl.Int64).cum_sum().over("who")
    broken = pl.col("broken") if "broken" in rows.frame.columns else pl.lit(False)
    frame = rows.frame.with_columns(missing.alias("missing"), pl.Series("who", learner))
    frame = (
        frame.with_columns(missing_before.alias("gaps")).with_row_index("place").filter(~pl.col("missing"))
    )
    after_gap = (pl.col("gaps") != pl.col("gaps").shift(1).over("who")).fill_null(False)
    rows.frame = frame.with_columns((broken | after_gap).alias("broken"))


def _keys(rows: Rows, notation: Notation) -> tuple[NDArray[np.int32], tuple[str, ...], NDArray[np.uint8]]:
    which, texts = coded(rows.frame["key"].cast(pl.String))
    codes = names_codes(rows.columns.get("key", ""))
    if not codes and notation.keys_look_like_codes:
        codes = True
        rows.notes.append("Keys are given by numbers, which were kept as their names.")
        rows.guesses.append(Guess("that numbers are those of keys", hint="call the column keycode."))
    names, against = name_keys(texts, codes=codes)
    key, keys = regrouped(which, names)
    reason = np.array([*against, REASONS.index(Reason.no_key)], dtype=np.uint8)[which]
    if "reason" in rows.frame.columns:
        marked = rows.frame["reason"].to_numpy()
        reason = np.where(marked > 0, marked, reason)
    return key, tuple(keys), reason


def _sessions(values: pl.Series, learner: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each learner's sessions as codes, in the order of that learner's rows; a missing one is -1."""
    session, names = coded(values.cast(pl.String).str.strip_chars())
    pair = learner.astype(np.int64) * (len(names) + 1) + session
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.where(session >= 0, rank[which], -1).astype(np.int32)


def _places(frame: pl.DataFrame) -> NDArray[np.int32]:
    """The key on the keyboard by which a release finds its press: its code, or else its name."""
    place = pl.col("key").cast(pl.String)
    if "code" in frame.columns:
        code = pl.col("code").cast(pl.String)
        place = pl.when(code.is_not_null() & (code != "")).then(code).otherwise(place)
    return coded(frame.select(place.alias("place")).to_series())[0]


def _weeks(rows: Rows, notation: Notation) -> NDArray[np.int32]:
    """The number in each cell of the week column; empty cells are -1."""
    which, texts = coded(rows.frame["week"].cast(pl.String))
    numbers: list[int] = []
    for at, text in enumerate(texts):
        number = _WEEK.fullmatch(text)
        if number is None:
            line = rows.frame["line"][int((which == at).argmax())]
            first = "" if notation.partial else "first "
            raise DataError(
                f"{rows.file}: a week is not a number ({first}on {rows.place} {line}, week column).",
                hint="number the weeks, or leave the column out: weeks are then taken from the times.",
            )
        numbers.append(int(number[1] or -1))
    return np.array([*numbers, -1], dtype=np.int32)[which]
