"""EdNet (KT1 to KT4): a folder with one file per learner, and the table of questions that says which answers are right.

KT1 has answers; the others have all that learners did with questions, bundles of them, explanations and lectures, of
which only answers (`respond`) have an outcome. A learner's name is that of their file, so that no message names one:
files are counted in the order of their names. A file that cannot be read stops the command, wherever it stands.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.folders import Folder
from understudy.core.events.log_columns import read_log_columns
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import Columns, plain
from understudy.core.files.source import decode, keeping_values_inside, open_source
from understudy.core.files.tables import FrameTable
from understudy.errors import DataError, UnderstudyError

_ANSWERS = ("timestamp", "solving_id", "question_id", "user_answer", "elapsed_time")
# KT2 and KT3 have these columns; KT4, which has purchases and players as well, one more.
_ACTIONS = ("timestamp", "action_type", "item_id", "source", "user_answer", "platform")
_ALL_ACTIONS = ("timestamp", "action_type", "item_id", "cursor_time", "source", "user_answer", "platform")
_HEADERS = {",".join(names).encode(): names for names in (_ANSWERS, _ACTIONS, _ALL_ACTIONS)}
# What an item is, by the letter before its number.
_THINGS = {"q": "question", "b": "bundle", "e": "explanation", "l": "lecture", "p": "payment", "c": "coupon"}
_LEARNER = re.compile(r"u\d+\.csv(?:\.gz)?", re.IGNORECASE)
_QUESTIONS = "questions.csv"


def looks_like_ednet(folder: Folder) -> bool:
    """Whether most files of a folder are learners' by their names, such as u717875.csv."""
    learners = _learners(folder)
    return bool(learners) and 2 * len(learners) > len(folder.files) - len(folder.named(_QUESTIONS))


def _learners(folder: Folder) -> list[Path]:
    return [file for file in folder.files if _LEARNER.fullmatch(file.name)]


def read_ednet(folder: Folder, options: ReadOptions) -> EventTable:
    """One row per answer; the action is the question's tags, or the question where there is no table of questions.

    Of KT2 to KT4 one row per thing done: an action that is no answer is named by its type and the kind of its item, and
    has no outcome.
    """
    frame, lines, learners = _rows(folder)
    answers = "question_id" in frame.columns
    if not answers:
        responds = pl.col("action_type") == "respond"
        frame = frame.with_columns(pl.when(responds).then("item_id").alias("question_id"))
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
    if not answers:
        frame = frame.with_columns(_named("tags" if questions else "question_id").alias("done"))
        frame = frame.drop("question_id")
        defaults = Columns("learner", "done", "correct" if questions else None, "timestamp", "item_id")
    table = FrameTable(folder.name, tuple(frame.columns), frame, lines, place="line of all files together,")
    events = read_log_columns(table, options, defaults, [plain(name) for name in frame.columns])
    events.time_unit = "ms"
    # Whose file is empty is a learner as well.
    events.place_learners(learners)
    if events.columns["action"] in ("tags", "done"):
        events.drop(pl.col("action").is_null(), "of questions without a tag")
        if options.skills == "keep":
            events.frame = events.frame.with_columns(pl.col("action").str.split("+")).explode("action")
    if not questions:
        events.notes.append(f"There is no {_QUESTIONS} in the folder: which answers are right is not known.")
    elif not answers and "outcome" in events.columns:
        events.keep_graded(options, "events")
    return events


def _named(question: str) -> pl.Expr:
    """What was done: an answer by its question, or by what that is about, and all else by type and kind of item."""
    thing = pl.col("item_id").str.slice(0, 1).replace_strict(_THINGS, default="item", return_dtype=pl.String)
    other = pl.concat_str([pl.col("action_type"), thing], separator=" ")
    return pl.when(pl.col("action_type") == "respond").then(question).otherwise(other)


def _rows(folder: Folder) -> tuple[pl.DataFrame, pl.Series, pl.Series]:
    """The rows of all learners, the number of each in all files together, and the learners."""
    files = _learners(folder)
    if not files:
        raise DataError(
            f"{folder.name}: no file of the folder is a learner's by its name, such as u717875.csv.",
            hint="give the folder KT1, or the one above it that also has the table of questions.",
            code="no-such-table",
        )
    bodies, n_rows, names = [], np.zeros(len(files), dtype=np.int64), None
    for number, file in enumerate(files):
        where = f"{folder.name}: file {number + 1:,} of {len(files):,}, by their names,"
        names, body = _body(file, where, names)
        n_rows[number] = body.count(b"\n")
        bodies.append(body)
    assert names is not None
    with keeping_values_inside(f"{folder.name}: the rows cannot be separated.", hint="check the download."):
        frame = pl.read_csv(
            b"".join(bodies),
            has_header=False,
            quote_char=None,
            schema=dict.fromkeys(names, pl.String),
        )
    if frame.height != n_rows.sum() or not frame.height:
        raise DataError(f"{folder.name}: no answer could be read.", hint="check the download.")
    learners = pl.Series([file.name.split(".")[0] for file in files], dtype=pl.String)
    owner = np.repeat(np.arange(len(files)), n_rows)
    frame = frame.with_columns(pl.all().str.strip_chars()).with_columns(
        learners.gather(owner).alias("learner")
    )
    return frame, pl.int_range(1, frame.height + 1, eager=True), learners


def _body(file: Path, where: str, wanted: tuple[str, ...] | None) -> tuple[tuple[str, ...], bytes]:
    """The columns of a learner's file, which are the same in all, and its rows, each ended by a line feed."""
    try:
        source = open_source(file)
        data = decode(source, latin=False).data
    except UnderstudyError:
        data = b""
    header, _, body = data.partition(b"\n")
    names = _HEADERS.get(header.strip())
    if names is None or (wanted is not None and names != wanted):
        raise DataError(
            f"{where} does not begin with the columns of EdNet"
            + (", KT1 to KT4." if names is None else ", of the part that the first file is of."),
            hint=f"each learner's file of KT1 has the columns {', '.join(_ANSWERS)}; give the folder of one part.",
            code="not-ednet",
        )
    if body and not body.endswith(b"\n"):
        body += b"\n"
    # Of all rows at once; only where something is wrong each line is looked at.
    wide = len(names) - 1
    if body.count(b",") != wide * body.count(b"\n") or b"\n\n" in body or body.startswith(b"\n"):
        lines = [(number, line) for number, line in enumerate(body.split(b"\n"), start=2) if line.strip()]
        for number, line in lines:
            if line.count(b",") != wide:
                raise DataError(
                    f"{where} has {line.count(b',') + 1} fields on line {number} where {len(names)} are needed.",
                    hint="the download may be cut short.",
                    code="not-ednet",
                )
        return names, b"".join(line + b"\n" for _, line in lines)
    return names, body
