"""EdNet (KT1): a folder with one file per learner, and the table of questions that says which answers are right.

A learner's name is that of their file, so that no message names one: files are counted in the order of their names. A
file that cannot be read stops the command, wherever it stands.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from understudy.core.events.event_table import EventTable, ReadOptions
from understudy.core.events.folders import Folder
from understudy.core.events.log_columns import read_log_columns
from understudy.core.files.columns import Columns, plain
from understudy.core.files.source import decode, keeping_values_inside, open_source
from understudy.core.files.tables import FrameTable
from understudy.errors import DataError, UnderstudyError

_HEADER = b"timestamp,solving_id,question_id,user_answer,elapsed_time"
_NAMES = tuple(_HEADER.decode().split(","))
_LEARNER = re.compile(r"u\d+\.csv(?:\.gz)?", re.IGNORECASE)
_QUESTIONS = "questions.csv"


def looks_like_ednet(folder: Folder) -> bool:
    """Whether most files of a folder are learners' by their names, such as u717875.csv."""
    learners = _learners(folder)
    return bool(learners) and 2 * len(learners) > len(folder.files) - len(folder.named(_QUESTIONS))


def _learners(folder: Folder) -> list[Path]:
    return [file for file in folder.files if _LEARNER.fullmatch(file.name)]


def read_ednet(folder: Folder, options: ReadOptions) -> EventTable:
    """One row per answer; the action is the question's tags, or the question where there is no table of questions."""
    frame, lines, learners = _answers(folder)
    defaults = Columns("learner", "question_id", "correct", "timestamp")
    if questions := folder.named(_QUESTIONS):
        known = folder.columns(questions, "questions", "question_id", "correct_answer", "tags")
        right = pl.col("user_answer") == pl.col("correct_answer").str.to_lowercase()
        frame = frame.join(known, on="question_id", how="left", maintain_order="left").with_columns(
            right.cast(pl.Int8).cast(pl.String).alias("correct"),
            pl.col("tags").str.replace_all(";", "+", literal=True).replace(["-1", ""], None),
        )
        frame = frame.drop("correct_answer")
        defaults = Columns("learner", "tags", "correct", "timestamp", "question_id")
    table = FrameTable(folder.name, tuple(frame.columns), frame, lines, place="line of all files together,")
    events = read_log_columns(table, options, defaults, [plain(name) for name in frame.columns])
    events.time_unit = "ms"
    # Whose file is empty is a learner as well.
    events.place_learners(learners)
    if events.columns["action"] == "tags":
        events.drop(pl.col("action").is_null(), "of questions without a tag")
        if options.skills == "keep":
            events.frame = events.frame.with_columns(pl.col("action").str.split("+")).explode("action")
    elif not questions:
        events.notes.append(f"There is no {_QUESTIONS} in the folder: which answers are right is not known.")
    return events


def _answers(folder: Folder) -> tuple[pl.DataFrame, pl.Series, pl.Series]:
    """The answers of all learners, the number of each row in all files together, and the learners."""
    files = _learners(folder)
    if not files:
        raise DataError(
            f"{folder.name}: no file of the folder is a learner's by its name, such as u717875.csv.",
            hint="give the folder KT1, or the one above it that also has the table of questions.",
            code="no-such-table",
        )
    bodies, n_rows = [], np.zeros(len(files), dtype=np.int64)
    for number, file in enumerate(files):
        body = _body(file, f"{folder.name}: file {number + 1:,} of {len(files):,}, by their names,")
        n_rows[number] = body.count(b"\n")
        bodies.append(body)
    with keeping_values_inside(f"{folder.name}: the rows cannot be separated.", hint="check the download."):
        frame = pl.read_csv(
            b"".join(bodies),
            has_header=False,
            quote_char=None,
            schema=dict.fromkeys(_NAMES, pl.String),
        )
    if frame.height != n_rows.sum() or not frame.height:
        raise DataError(f"{folder.name}: no answer could be read.", hint="check the download.")
    learners = pl.Series([file.name.split(".")[0] for file in files], dtype=pl.String)
    owner = np.repeat(np.arange(len(files)), n_rows)
    frame = frame.with_columns(pl.all().str.strip_chars()).with_columns(
        learners.gather(owner).alias("learner")
    )
    return frame, pl.int_range(1, frame.height + 1, eager=True), learners


def _body(file: Path, where: str) -> bytes:
    """A learner's rows without the header, each ended by a line feed."""
    try:
        source = open_source(file)
        data = decode(source, latin=False).data
    except UnderstudyError:
        data = b""
    header, _, body = data.partition(b"\n")
    if header.strip() != _HEADER:
        raise DataError(
            f"{where} does not begin with the columns of EdNet's KT1.",
            hint=f"each learner's file has the columns {', '.join(_NAMES)}.",
            code="not-ednet",
        )
    if body and not body.endswith(b"\n"):
        body += b"\n"
    # Of all rows at once; only where something is wrong each line is looked at.
    wide = len(_NAMES) - 1
    if body.count(b",") != wide * body.count(b"\n") or b"\n\n" in body or body.startswith(b"\n"):
        lines = [(number, line) for number, line in enumerate(body.split(b"\n"), start=2) if line.strip()]
        for number, line in lines:
            if line.count(b",") != wide:
                raise DataError(
                    f"{where} has {line.count(b',') + 1} fields on line {number} where {len(_NAMES)} are needed.",
                    hint="the download may be cut short.",
                    code="not-ednet",
                )
        return b"".join(line + b"\n" for _, line in lines)
    return body
