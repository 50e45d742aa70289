"""Keystroke files to records: events, ProgSnap2, snapshots of source code, JSON lines.

Learners' names group rows and join labels; then they are forgotten. Of a file only the columns
that play a role are read.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.columns import plain, reject_duplicates
from understudy.core.files.delimited import SEPARATORS, guess_separator, header_names, read_delimited
from understudy.core.files.json_records import JsonTable, json_table
from understudy.core.files.learner_ids import digests_of_names
from understudy.core.files.origin import Origin
from understudy.core.files.simulated import is_simulated
from understudy.core.files.source import (
    Guess,
    Source,
    decode,
    first_lines,
    keeping_values_inside,
    open_source,
)
from understudy.core.files.tables import MAGIC as PARQUET_MAGIC
from understudy.core.files.tables import Table, read_parquet
from understudy.core.files.words import counted
from understudy.core.options import settled
from understudy.errors import DataError, UsageError
from understudy.keystrokes.formats.chain import Events, link
from understudy.keystrokes.formats.events import read_events
from understudy.keystrokes.formats.labels import read_labels
from understudy.keystrokes.formats.progsnap import main_table, read_progsnap
from understudy.keystrokes.formats.rows import (
    ELSEWHERE,
    NAMES,
    NO_LEARNER,
    REASONS,
    KeystrokeColumns,
    Reason,
    Rows,
    coded,
    look_like_codes,
    name_keys,
    names_codes,
    regrouped,
)
from understudy.keystrokes.formats.snapshots import read_snapshots
from understudy.keystrokes.formats.times import (
    TimeColumn,
    check_unit,
    find_clock,
    read_holds,
    read_releases,
    read_times,
)
from understudy.keystrokes.keystrokes import Keystrokes

FORMATS = ("events", "lines", "progsnap2", "snapshots")
# Steps of a clock in milliseconds. Latencies of typing are between 10 and 750 ms (Leinonen 2016, section 4.1).
COARSE, TOO_COARSE = 10.0, 750.0
COARSEST_RHYTHM = 100.0
# "3", "week 3", "W03", and "3.0" from a spreadsheet; empty for a row without a week.
_WEEK = re.compile(r"\s*(?:(?:[a-z]{1,8}[\s_.\-]*)?([0-9]{1,6})(?:\.0*)?)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class KeystrokeOptions(KeystrokeColumns):
    """How keystrokes are read from a file."""

    format: Annotated[
        str | None, "events, lines, snapshots or progsnap2, when the file is not recognised."
    ] = None


@dataclass(frozen=True, repr=False)
class KeystrokeSource:
    """The keystrokes of a file, and what is known about it.

    `n_learners` is the number of the learner column, of whom some may have no keystroke. The path of the `origin` is
    the file itself, of a ProgSnap2 folder its main table. `labels` holds, per learner, a position in `label_names`
    or -1; `label` is the name of their column. `left_out` counts rows by the reason why they are not a keystroke:
    facts about learners, for the custodian only. `resolution_ms` is the finest step of the file's clock: 1000 for
    whole seconds.
    """

    keystrokes: Keystrokes
    n_learners: int
    labels: NDArray[np.int32] | None
    label_names: tuple[str, ...]
    left_out: dict[str, int]
    resolution_ms: float
    origin: Origin
    label: str | None = None

    def __repr__(self) -> str:
        return f"<KeystrokeSource: {self.format}, {self.keystrokes!r}>"

    @property
    def path(self) -> Path:
        """The file."""
        assert self.origin.path is not None
        return self.origin.path

    @property
    def format(self) -> str:
        """The name of the file's format."""
        return self.origin.format

    @property
    def notes(self) -> tuple[str, ...]:
        """How the file was read."""
        return self.origin.notes

    @property
    def messages(self) -> tuple[str, ...]:
        """What the custodian should know about how the file was read."""
        left_out = (f"Left out: {count:,} ({reason})." for reason, count in self.left_out.items() if count)
        return (*self.notes, *left_out)

    def require_rhythm(self) -> None:
        """Refuse times that are too coarse to hold a rhythm."""
        if self.resolution_ms > COARSEST_RHYTHM:
            raise DataError(
                f"{self.path.name}: its clock has steps of {self.resolution_ms:g} ms, so it holds no typing rhythm.",
                hint="export the times in milliseconds, if the system kept them.",
                code="coarse-clock",
            )


def read_keystrokes(
    path: Path | str,
    options: KeystrokeOptions = KeystrokeOptions(),  # noqa: B008 (frozen)
    *,
    labels: Path | str | None = None,
    label: str | None = None,
    **settings: Any,
) -> KeystrokeSource:
    """The keystrokes of a file, or of a ProgSnap2 folder.

    The settings of `KeystrokeOptions` may be given as keywords. The format is found from the content unless it
    is named; so are columns. `key` names the column with the key, the inserted text or the snapshot. `unit`
    (ns, us, ms, s) is guessed from the times unless it or the column's name states it. Without a session
    column a session ends when no key is pressed for 30 minutes; without a week column weeks are periods
    of seven days from the earliest key of the file. `labels` is a table with a row per learner, `label` its
    column.
    """
    return _read(Path(path), settled(options, settings), None if labels is None else Path(labels), label)[0]


def read_courses(
    first: Path | str,
    second: Path | str,
    options: KeystrokeOptions = KeystrokeOptions(),  # noqa: B008 (frozen)
    *,
    labels: Path | str | None = None,
    label: str | None = None,
    **settings: Any,
) -> tuple[KeystrokeSource, KeystrokeSource]:
    """Two courses of the same learners, each learner at the same position in both.

    Learners who typed in one of them only are left out and counted.
    """
    options = settled(options, settings)
    labels = None if labels is None else Path(labels)
    one, names_of_one = _read(Path(first), options, labels, label)
    other, names_of_other = _read(Path(second), options, labels, label)
    place = {name: at for at, name in enumerate(names_of_other)}
    here = np.array([at for at, name in enumerate(names_of_one) if name in place], dtype=np.int64)
    if not len(here):
        raise DataError(
            f"none of {len(names_of_one)} learners of {one.path.name} is one of {len(names_of_other)} "
            f"learners of {other.path.name}.",
            hint="both files have to write learners in the same way; choose the column that names them.",
            settings=("learner",),
        )
    there = np.array([place[names_of_one[int(at)]] for at in here], dtype=np.int64)
    return _only(one, here), _only(other, there)


def _only(source: KeystrokeSource, chosen: NDArray[np.int64]) -> KeystrokeSource:
    keystrokes = source.keystrokes.learners(chosen)
    left_out, notes = dict(source.left_out), source.notes
    if n_gone := source.keystrokes.n_learners - len(chosen):
        left_out[ELSEWHERE] = source.keystrokes.n_rows - keystrokes.n_rows
        notes = (*notes, f"{counted(n_gone, 'learner')} who typed in one of the courses only left out.")
    return replace(
        source,
        keystrokes=keystrokes,
        labels=None if source.labels is None else source.labels[chosen],
        n_learners=len(chosen),
        left_out=left_out,
        origin=replace(source.origin, notes=notes),
    )


def _read(
    path: Path, options: KeystrokeOptions, labels: Path | None, label: str | None
) -> tuple[KeystrokeSource, pl.Series]:
    if options.format is not None and options.format not in FORMATS:
        raise UsageError(
            f"there is no format '{options.format}'.",
            hint="the formats are " + ", ".join(FORMATS) + ".",
            code="no-such-format",
            settings=("format",),
        )
    if label is not None and labels is None:
        raise UsageError(
            "a label was named, but no file of labels.", hint="name the file.", settings=("labels",)
        )
    options = replace(options, unit=check_unit(options.unit))
    labelled = None if labels is None else read_labels(labels, options.learner, label)
    rows, format, why = _rows(path, options)
    if why:
        rows.notes.insert(0, f"Read as {format}: {why}.")
    keystrokes, names, resolution = _settle(rows, options)
    keystrokes = replace(keystrokes, simulated=is_simulated(path))
    notes = [*rows.notes, *_about_clock(resolution)]
    codes = None
    if labelled is not None:
        codes, about_labels = labelled.of(names)
        notes += about_labels
    origin = Origin(
        main_table(path) if path.is_dir() else path,
        format,
        rows.columns,
        tuple(notes),
        digests=digests_of_names(names),
        guesses=(*rows.guesses, *(labelled.guesses if labelled else ())),
    )
    source = KeystrokeSource(
        keystrokes,
        rows.n_learners,
        codes,
        () if labelled is None else labelled.names,
        dict(rows.left_out),
        resolution,
        origin,
        None if labelled is None else labelled.column,
    )
    return source, names


def _rows(path: Path, options: KeystrokeOptions) -> tuple[Rows, str, str]:
    """The rows of the file, its format, and why it was taken for that (empty if it was named)."""
    why, format = "", options.format
    folder = path.parent
    if path.is_dir():
        if format not in (None, "progsnap2"):
            raise UsageError(f"'{path}' is a folder, not a file.", hint="give one file of the folder.")
        path = main_table(path)
        folder, why = path.parent, "" if format else "it is a folder with a main table"
        format = "progsnap2"
    source = open_source(path)
    table = _table(source)
    reject_duplicates(table.names, table.file)
    if format is None:
        format, why = _sniff(table, options)
    if format == "lines" and not isinstance(table, JsonTable):
        raise DataError(
            f"{source.name}: this is not JSON.",
            hint="leave the format out, or name another.",
            settings=("format",),
        )
    if format == "progsnap2":
        rows = read_progsnap(table, options, folder)
    elif format == "snapshots":
        rows = read_snapshots(table, options)
    else:
        rows = read_events(table, options)
    if isinstance(table, JsonTable) and not table.all_alike():
        fields = "write every field into every object, null where there is none."
        rows.guesses.append(Guess("which fields there are, from the first objects", hint=fields))
    return rows, format, why


def _table(source: Source) -> Table:
    if source.data.startswith(PARQUET_MAGIC):
        return read_parquet(source)
    text = decode(source, latin=True)
    first = first_lines(text, 1)[0]
    if first.lstrip().startswith(("{", "[")):
        return json_table(text)
    separator = guess_separator(first)
    if len(header_names(first, separator)) < 2:
        raise DataError(
            f"{source.name}: the content is in no format that the reader knows.",
            hint="a file of keystrokes begins with a line of column names, by "
            + ", ".join(SEPARATORS.values())
            + ", or is JSON.",
        )
    return read_delimited(text, separator)


def _sniff(table: Table, columns: KeystrokeColumns) -> tuple[str, str]:
    names = {plain(name) for name in table.names}
    if "eventtype" in names and names & {"subjectid", "codestateid", "edittype", "inserttext"}:
        return "progsnap2", "its header has the columns of a ProgSnap2 main table"
    texts = columns.key is None or plain(columns.key) in NAMES["text"]
    if texts and names.isdisjoint(NAMES["key"]) and not names.isdisjoint(NAMES["text"]):
        return "snapshots", "it has a column of texts and none of keys"
    if isinstance(table, JsonTable):
        return "lines", "it begins like JSON"
    return "events", "it has a row per key event"


def _settle(rows: Rows, columns: KeystrokeColumns) -> tuple[Keystrokes, pl.Series, float]:
    """The record, the names of its learners, and the finest step of its clock."""
    with keeping_values_inside(
        f"{rows.file}: the columns cannot be put together.",
        hint="check the columns chosen, and that the file is valid UTF-8.",
    ):
        events, keys, relative, names = _events(rows, columns)
        if len(events.time):
            found = link(events, keys, relative=relative, left_out=rows.left_out, notes=rows.notes)
    if not len(events.time) or not found[0].n_rows:
        raise DataError(
            f"{rows.file}: no keystroke is left to read ({_counts(rows.left_out)}).",
            hint="check the export, and the columns chosen.",
            settings=("learner", "time", "key"),
        )
    keystrokes, present, resolution = found
    names = names.gather(present)
    return keystrokes, names, resolution


def _counts(left_out: Counter[str]) -> str:
    reasons = ", ".join(
        f"{counted(number, 'row')}: {reason}" for reason, number in left_out.items() if number
    )
    return reasons or "there is no row"


def _events(rows: Rows, columns: KeystrokeColumns) -> tuple[Events, tuple[str, ...], bool, pl.Series]:
    """Columns as numbers; rows without a learner go, those without a time or key stay to break chains."""
    who, raw = coded(rows.frame["learner"].cast(pl.String))
    learner, names = regrouped(who, [name.strip() or None for name in raw])
    if n_nobody := int((learner < 0).sum()):
        rows.left_out[NO_LEARNER] += n_nobody
        rows.frame = rows.frame.filter(pl.Series(learner >= 0))
        learner = learner[learner >= 0]
    _drop_without_time(rows, learner)
    if rows.frame.height < len(learner):
        learner = learner[rows.frame["place"].to_numpy()]
    frame = rows.frame
    if not frame.height:
        return (
            Events(learner, np.zeros(0, np.int64), learner, learner.astype(np.uint8)),
            (),
            False,
            pl.Series(),
        )
    column = TimeColumn(rows.file, rows.place, frame["line"], rows.columns["time"])
    clock = find_clock(frame["time"], learner, columns.unit, column)
    if clock.guessed:
        rows.guesses.append(Guess("what times count, from how fast people type", ("unit",)))
    time = read_times(frame["time"], clock, column)
    rows.notes.append(clock.note)
    key, keys, reason = _keys(rows)
    events = Events(learner, time, key, reason)
    if "session" in frame.columns:
        events = replace(events, session=_sessions(frame["session"], learner))
    if "week" in frame.columns:
        events = replace(events, week=_weeks(rows))
    if "up" in frame.columns:
        events = replace(events, up=frame["up"].to_numpy(), code=_places(frame))
    if "broken" in frame.columns:
        events = replace(events, broken=frame["broken"].to_numpy())
    if "release" in frame.columns:
        events = replace(events, hold=read_releases(frame["release"], time, clock, column))
    elif "hold" in frame.columns:
        events = replace(events, hold=read_holds(frame["hold"], rows.columns["hold"]))
    return events, keys, clock.since_start, pl.Series(names, dtype=pl.String)


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


def _keys(rows: Rows) -> tuple[NDArray[np.int32], tuple[str, ...], NDArray[np.uint8]]:
    which, texts = coded(rows.frame["key"].cast(pl.String))
    codes = names_codes(rows.columns.get("key", ""))
    if not codes and look_like_codes(texts):
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


def _weeks(rows: Rows) -> NDArray[np.int32]:
    """The number in each cell of the week column; empty cells are -1."""
    which, texts = coded(rows.frame["week"].cast(pl.String))
    numbers: list[int] = []
    for at, text in enumerate(texts):
        number = _WEEK.fullmatch(text)
        if number is None:
            row = int((which == at).argmax())
            raise DataError(
                f"{rows.file}: a week is not a number (first on {rows.place} {rows.frame['line'][row]}, week column).",
                hint="number the weeks, or leave the column out: weeks are then taken from the times.",
            )
        numbers.append(int(number[1] or -1))
    return np.array([*numbers, -1], dtype=np.int32)[which]


def _about_clock(resolution: float) -> list[str]:
    if resolution < COARSE:
        return []
    steps = f"The clock steps by {resolution:g} ms: "
    if resolution >= TOO_COARSE:
        return [steps + "latencies of typing cannot be taken from this file."]
    return [steps + "latencies are multiples of that."]
