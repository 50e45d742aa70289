"""Tables that belong to a log: learners, one row each, and results, several each; joined by learner.

One guarantee covers all of them, since a learner is protected with everything that any of the files has about them.
Results are further rows of the log: their items are actions, and what else is declared of rows is read from them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.further_columns import further
from understudy.core.events.learner_table import LearnerTable
from understudy.core.events.read_options import CellOptions, ReadOptions
from understudy.core.events.reading import read_events
from understudy.core.files.columns import Columns
from understudy.core.files.words import counted
from understudy.errors import DataError, UsageError
from understudy.logs.declared.cells import ReadColumn, read_column
from understudy.logs.declared.columns import Column, Declared


def open_learners(path: Path | str) -> LearnerTable:
    """The table of learners in a file; a number in its place is a mistake that has an answer."""
    if not Path(path).exists() and str(path).isdigit():
        raise UsageError(
            f"'{path}' is not a file with a table of learners.",
            hint="give the file; how many synthetic learners are drawn is another setting.",
            code="no-such-file",
            settings=("learners", "n_learners"),
        )
    return LearnerTable.open(path)


def learner_columns(
    rows: EventTable, declared: Sequence[Declared], everyone: pl.Series, options: CellOptions
) -> list[ReadColumn]:
    """The declared columns of a table of learners, a cell for each learner of the log; empty for those it lacks."""
    lines = rows.frame["line"]
    place = everyone.to_frame("learner").join(
        rows.frame.select("learner").with_row_index("row"), on="learner", how="left", maintain_order="left"
    )["row"]
    columns = []
    for column in declared:
        try:
            read = read_column(rows.frame[further(column.name)], column, lines, options, rows.place)
        except DataError as error:
            raise error.about(rows.file) from None
        # A missing learner takes the empty cell behind the last one.
        padded = read.column.with_missing(1)
        cells = padded.cells[place.fill_null(rows.frame.height).to_numpy()]
        columns.append(replace(read, column=Column(read.column.declared, cells)))
    return columns


def learners_file(out: Path) -> Path:
    """Where the table of learners is written that belongs to a synthetic log: beside it, also if that is a folder."""
    return out.with_name(f"{out.stem}-learners{out.suffix or '.parquet'}")


def learners_beside(log: Path) -> Path | None:
    """The table of learners that was written with a log, if there is one; in a bundle it is `learners`."""
    whole = "".join(log.suffixes) or ".parquet"
    names = [f"{log.name.removesuffix(whole)}-learners{whole}"]
    names += [f"learners{whole}"] if log.name == f"synthetic{whole}" else []
    return next((path for name in names if (path := log.with_name(name)).is_file()), None)


def note_learners(rows: EventTable, events: EventTable, *, active_only: bool) -> list[str]:
    """What to know about a table of learners: who is in one of the two only, and columns that are left out."""
    of_table, of_log = rows.frame["learner"], events.frame["learner"].unique()
    n_common = int(of_table.is_in(of_log.implode()).sum())
    n_alike = _n_nearly_alike(of_table, of_log)
    if not n_common:
        alike = f"{counted(n_alike, 'name')} differ in capitals, spaces or hyphens only: write them alike. "
        raise DataError(
            f"{rows.file}: no learner of the table is in the log, so that it cannot be joined.",
            hint=(alike if n_alike else "")
            + "the table has to name learners as the log does; name the column that does, or replace the names.",
            code="no-common-learner",
            settings=("learners_key",),
        )
    notes = [f"{rows.file}: {counted(n_common, 'learner')} of the table and of the log."]
    if n_idle := rows.frame.height - n_common:
        kept = "left out" if active_only else "who count as well"
        notes.append(f"{rows.file}: {counted(n_idle, 'learner')} without a row in the log, {kept}.")
    if n_absent := len(of_log) - n_common:
        notes.append(f"{rows.file}: {counted(n_absent, 'learner')} of the log not in the table: empty cells.")
    if n_alike:
        notes.append(
            f"{rows.file}: {counted(n_alike, 'learner')} of the log in the table under a name that differs in "
            "capitals, spaces or hyphens only, taken for another learner. Write the names alike in both files."
        )
    return [*rows.notes, *notes]


def _n_nearly_alike(of_table: pl.Series, of_log: pl.Series) -> int:
    """Learners who are in only one of the two by their exact names, and in both by names written otherwise."""

    def written_plainly(names: pl.Series, others: pl.Series) -> pl.Series:
        alone = names.filter(~names.is_in(others.implode())).drop_nulls()
        return alone.str.normalize("NFKC").str.to_lowercase().str.replace_all(r"[\s._-]+", "").unique()

    of_both = written_plainly(of_table, of_log)
    return int(of_both.is_in(written_plainly(of_log, of_table).implode()).sum())


def read_results(
    path: Path, options: ReadOptions, events: EventTable, named: Mapping[str, str] = MappingProxyType({})
) -> EventTable:
    """The results in a file, read as rows of the log: with outcomes and times where the log has them.

    Columns that were named for the log are those of the results too, where they have them; `named` are the results'
    own, by role.
    """
    columns = replace(options.columns, **named)
    has_outcomes = "outcome" in events.columns or options.empty_outcomes
    wanted = replace(options, outcomes="wanted" if has_outcomes else "left out", sheet=None)
    while True:
        try:
            results, _ = read_events(path, replace(wanted, columns=columns, single_rows=True))
            break
        except DataError as error:
            role = next(iter(error.fields.get("roles", ())), "")
            asked = error.code == "no-such-column" and "column" in error.fields
            if not asked or not hasattr(columns, role) or role in named:
                raise
            columns = Columns(**{**columns.given(), role: None})
    if "outcome" in events.columns and "outcome" not in results.columns:
        raise DataError(
            f"{results.file}: the log has outcomes, and the results have none.",
            hint="name the results' column with the outcomes, or read the log without outcomes.",
            code="results-unlike-log",
            settings=("results_columns", "no_outcomes"),
        )
    return results


def with_results(events: EventTable, results: EventTable, *, included: bool) -> None:
    """Add results to the events of a log; without times they follow the other rows of their learner.

    `included` says that times are part of what is synthesized.
    """
    timed = "time" in events.columns
    if timed and "time" not in results.columns and included:
        raise DataError(
            f"{results.file}: the times of the log are included, and the results have none.",
            hint="name the results' column with the times, or let times only put the rows in order.",
            code="results-unlike-log",
            settings=("results_columns", "time_for_order"),
        )
    frame = results.frame if timed else results.frame.drop("time", strict=False)
    if "outcome" not in events.columns:
        frame = frame.drop("outcome", strict=False)
    if timed and "time" not in frame.columns:
        last = events.frame.group_by("learner").agg(pl.col("time").max())
        frame = frame.join(last, on="learner", how="left", maintain_order="left")
        # Rows of a learner who has no others: all of them at one time, whichever it is.
        frame = frame.with_columns(pl.col("time").fill_null(pl.lit(0).cast(pl.Datetime("us"))))
    kept = [name for name in frame.columns if name in events.frame.columns or name.startswith(further(""))]
    events.frame = pl.concat([events.frame, frame.select(kept)], how="diagonal_relaxed")
    events.add_learners(results)
    events.file = f"{events.file} and {results.file}"
    events.notes += [f"{results.file}: {note}" for note in results.notes if not note.startswith("Read as")]
    events.notes.append(f"{results.file}: {counted(frame.height, 'result')} added as rows.")
