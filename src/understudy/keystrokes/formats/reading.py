"""Keystroke files to records: events, ProgSnap2, snapshots of source code, JSON lines.

Learners' names group rows and join labels; then they are forgotten. Of a file only the columns
that play a role are read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.engine.engine import scratch_parent
from understudy.core.files.columns import plain, reject_duplicates
from understudy.core.files.delimited import SEPARATORS, guess_separator, header_names, read_delimited
from understudy.core.files.json_records import JsonTable, json_table
from understudy.core.files.origin import Origin
from understudy.core.files.people.learner_ids import digests_of_names
from understudy.core.files.simulated import is_simulated
from understudy.core.files.source import Guess, Source, decode, first_lines, open_source
from understudy.core.files.storage.scratch import Scratch
from understudy.core.files.streams import Stream, begin_of_text, open_parquet, open_text
from understudy.core.files.tables import MAGIC as PARQUET_MAGIC
from understudy.core.files.tables import Table, read_parquet
from understudy.core.files.words import counted
from understudy.core.options import settled
from understudy.errors import DataError, UsageError
from understudy.keystrokes.formats.events import read_events
from understudy.keystrokes.formats.labels import read_labels
from understudy.keystrokes.formats.pieces import settle_in_pieces
from understudy.keystrokes.formats.presses import settle_rows
from understudy.keystrokes.formats.progsnap import main_table, main_tables, read_progsnap
from understudy.keystrokes.formats.record import put_together
from understudy.keystrokes.formats.rows import ELSEWHERE, NAMES, KeystrokeColumns, Rows
from understudy.keystrokes.formats.snapshots import read_snapshots
from understudy.keystrokes.formats.times import TimeColumn, check_unit
from understudy.keystrokes.keystrokes import Keystrokes

FORMATS = ("events", "lines", "progsnap2", "snapshots")
# Steps of a clock in milliseconds. Latencies of typing are between 10 and 750 ms (Leinonen 2016, section 4.1).
COARSE, TOO_COARSE = 10.0, 750.0
COARSEST_RHYTHM = 100.0


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
    with Scratch(scratch_parent()) as scratch:
        rows, format, record, names, resolution = _record(path, options, scratch)
    keystrokes = replace(record, simulated=is_simulated(path))
    notes = [*rows.notes, *_about_clock(resolution)]
    codes = None
    if labelled is not None:
        codes, about_labels = labelled.of(names)
        notes += about_labels
    origin = Origin(
        main_table(path) if path.is_dir() and format == "progsnap2" else path,
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


def _record(
    path: Path, options: KeystrokeOptions, scratch: Scratch
) -> tuple[Rows, str, Keystrokes, pl.Series, float]:
    """What is known about the rows, the format, the record, the names of its learners, and the step of its clock."""
    large = _open_large(path, options)
    if large is None:
        rows, format, why = _rows(path, options)
        pieces, zones = settle_rows(rows, options.unit)
    else:
        stream, why = large
        format = "events"
        rows, pieces, zones = settle_in_pieces(stream, options, scratch)
    if why:
        rows.notes.insert(0, f"Read as {format}: {why}.")
    for role, found in zip(("time", "release"), zones, strict=True):
        found.check(TimeColumn(rows.file, rows.place, rows.columns["time"], role))
    if not pieces:
        raise DataError(
            f"{rows.file}: no keystroke is left to read ({_counts(rows.left_out)}).",
            hint="check the export, and the columns chosen.",
            settings=("learner", "time", "key"),
        )
    return rows, format, *put_together(pieces, rows.notes, None if large is None else scratch.folder())


def _open_large(path: Path, options: KeystrokeOptions) -> tuple[Stream, str] | None:
    """A large table of events, and why it is one (empty if that was said); None for anything else."""
    stream: Stream | None = None if main_tables(path) else open_parquet(path)
    begin = None if stream is not None else begin_of_text(path)
    if begin is not None:
        first = first_lines(decode(begin, latin=True), 1)[0]
        if first.lstrip().startswith(("{", "[")) or len(header_names(first, guess_separator(first))) < 2:
            return None
        stream = open_text(path, begin, None)
    if stream is None:
        return None
    format, why = (options.format, "") if options.format else _sniff(stream.head(), options)
    return (stream, why) if format == "events" else None


def _counts(left_out: Counter[str]) -> str:
    reasons = ", ".join(
        f"{counted(number, 'row')}: {reason}" for reason, number in left_out.most_common() if number
    )
    return reasons or "there is no row"


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


def _about_clock(resolution: float) -> list[str]:
    if resolution < COARSE:
        return []
    steps = f"The clock steps by {resolution:g} ms: "
    if resolution >= TOO_COARSE:
        return [steps + "latencies of typing cannot be taken from this file."]
    return [steps + "latencies are multiples of that."]
