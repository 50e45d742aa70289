"""ProgSnap2: the main table's edits, as inserted and deleted text or as states of the code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from understudy.core.files.columns import ColumnChooser, plain
from understudy.core.files.delimited import guess_separator, read_delimited
from understudy.core.files.source import Guess, decode, first_lines, open_source
from understudy.core.files.tables import Table
from understudy.errors import DataError, UsageError
from understudy.keystrokes.formats.rows import NAMES, KeystrokeColumns, Reason, Rows
from understudy.keystrokes.formats.snapshots import BACKSPACE, compare_texts

MAIN_TABLE = "MainTable.csv"
# Names as `plain` writes them. Whatever else changes a text is not typed by a person.
_EDITS = ("fileedit", "keystroke", "xkeystroke")
_TYPED = ("", "insert", "delete", "edit", "genericedit", "replace", "keystroke", "type")
_STAMPS = ("clienttimestamp", "servertimestamp")
_ELAPSED = ("xelapsedtime", "elapsedtime")
_STATES = ("xcodestate", "codestate")
_ROLES = {"event": "eventtype", "edit": "edittype", "inserted": "inserttext", "deleted": "deletetext"}


def main_tables(folder: Path) -> list[Path]:
    """The main tables of a folder, itself or one level below."""
    wanted = (MAIN_TABLE.lower(), MAIN_TABLE.lower() + ".gz")
    return [one for one in (*folder.glob("*"), *folder.glob("*/*")) if one.name.lower() in wanted]


def main_table(folder: Path) -> Path:
    """The main table of a folder."""
    found = main_tables(folder)
    if not found:
        raise UsageError(
            f"'{folder}' is a folder without a {MAIN_TABLE}.", hint="give one file, or a ProgSnap2 folder."
        )
    return min(found)


def read_progsnap(table: Table, columns: KeystrokeColumns, folder: Path | None) -> Rows:
    """The edits of a main table; `folder` is where a table of code states is looked for."""
    plains = {plain(name): at for at, name in enumerate(table.names)}
    if "eventtype" not in plains:
        raise DataError(
            f"{table.file}: found no column EventType, which every ProgSnap2 main table has.",
            hint="choose another format.",
            settings=("format",),
        )
    clock, passed_over = (None, False) if columns.time else _clock(table, plains)
    learner = "SubjectID" if "subjectid" in plains else None
    chooser = columns.chooser(table, "inserted", learner=learner, time=clock)
    chooser.require("learner", "time")
    for role, name in _ROLES.items():
        chooser.allow(role, known=(name,))
    chooser.allow("session")
    chooser.allow("week")
    elapsed = plain(chooser.columns["time"]) in _ELAPSED
    texts: pl.DataFrame | None = None
    of_texts: tuple[Guess, ...] = ()
    if "inserted" not in chooser.positions:
        texts, of_texts = _choose_states(chooser, plains, folder, table.file)
    if "assignmentid" in plains and (elapsed or texts is not None):
        chooser.positions["document"] = plains["assignmentid"]
    rows = Rows.of(table, chooser)
    rows.guesses += of_texts
    if passed_over:
        rows.guesses.append(Guess("which column has the times, since another one is empty", ("time",)))
    if elapsed and "document" in chooser.positions and "session" not in chooser.positions:
        rows.frame = rows.frame.with_columns(pl.col("document").alias("session"))
        rows.notes.append(
            "A learner's work on one assignment was taken for a session, as the clock starts with it."
        )
    _mark_what_is_not_typed(rows)
    if texts is None:
        _from_edits(rows)
    else:
        if "text" not in rows.frame.columns:
            rows.frame = rows.frame.join(texts, on="state", how="left", maintain_order="left").drop("state")
        compare_texts(rows)
    return rows


def _clock(table: Table, plains: dict[str, int]) -> tuple[str | None, bool]:
    """The learner's own clock before the server's: a network delays keys; and whether an empty one was passed over."""
    named = [plains[name] for name in (*_STAMPS, *_ELAPSED) if name in plains]
    for place, at in enumerate(named):
        values = table.read({"time": at})["time"]
        if values.null_count() < len(values):
            return table.names[at], place > 0
    return None, False


def _choose_states(
    chooser: ColumnChooser, plains: dict[str, int], folder: Path | None, file: str
) -> tuple[pl.DataFrame, tuple[Guess, ...]]:
    """Choose the column with the code, or the one with its id and give the table that it points to.

    With what was guessed about that table.
    """
    inline = next((plains[name] for name in _STATES if name in plains), None)
    if inline is not None:
        chooser.positions["text"] = inline
        return pl.DataFrame(), ()
    if "codestateid" in plains and folder is not None:
        for place in (folder / "CodeStates" / "CodeStates.csv", folder / "CodeStates.csv"):
            if place.is_file():
                chooser.positions["state"] = plains["codestateid"]
                text = decode(open_source(place), latin=True)
                states = read_delimited(text, guess_separator(first_lines(text, 1)[0]))
                within = ColumnChooser(states.names, states.file, known={**NAMES, "state": ("codestateid",)})
                within.require("state", "text")
                frame = states.read(within.positions)
                found = frame.select("state", "text").unique(maintain_order=True)
                if found["state"].is_duplicated().any():
                    raise DataError(
                        f"{states.file}: one state of the code has two texts.", hint="check the export."
                    )
                hint = "give a main table in Parquet with the code itself, in a column X-CodeState."
                return found, tuple(replace(guess, hint=hint) for guess in states.guesses)
    raise DataError(
        f"{file}: found neither inserted text nor the code after each edit.",
        hint="the main table needs InsertText or X-CodeState, or CodeStates/CodeStates.csv beside it; "
        "or name another column with inserted text.",
        settings=("key",),
    )


def _mark_what_is_not_typed(rows: Rows) -> None:
    def word(column: str) -> pl.Expr:
        return (
            pl.col(column).cast(pl.String).fill_null("").str.to_lowercase().str.replace_all(r"[\s_.\-]+", "")
        )

    rows.mark(~word("event").is_in(_EDITS), Reason.other_event)
    if (rows.frame["reason"] > 0).all():
        raise DataError(
            f"{rows.file}: no event is a File.Edit (EventType column).",
            hint="the data set may hold runs and submissions only, which are not keystrokes.",
        )
    if "edit" in rows.frame.columns:
        rows.mark(~word("edit").is_in(_TYPED), Reason.not_typed)
    rows.frame = rows.frame.drop("event", "edit", strict=False)


def _from_edits(rows: Rows) -> None:
    """One inserted character is its key, one deleted character a Backspace; anything more was not typed."""
    inserted = pl.col("inserted").cast(pl.String).fill_null("")
    inserted = inserted.str.replace_all("\r\n", "\n", literal=True)
    deleted = (
        pl.col("deleted").cast(pl.String).fill_null("") if "deleted" in rows.frame.columns else pl.lit("")
    )
    n_inserted, n_deleted = inserted.str.len_chars(), deleted.str.len_chars()
    rows.mark((n_inserted == 0) & (n_deleted == 0), Reason.no_key)
    rows.mark(n_inserted + n_deleted > 1, Reason.several)
    key = pl.when(n_inserted > 0).then(inserted).when(n_deleted > 0).then(pl.lit(BACKSPACE))
    rows.frame = rows.frame.with_columns(key.alias("key")).drop(
        "inserted", "deleted", "document", strict=False
    )
