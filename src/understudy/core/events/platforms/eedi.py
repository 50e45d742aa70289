"""Eedi's answers to diagnostic questions: a table, or a folder that also has when and about what a question was.

The subjects of a question are a list from the most general to the most special one; the last one is the action.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from understudy.core.events.event_table import EventTable
from understudy.core.events.folders import Folder, columns_of
from understudy.core.events.log_columns import read_log_columns
from understudy.core.events.read_options import ReadOptions
from understudy.core.files.columns import Columns, plain
from understudy.core.files.tables import FrameTable, Table

_COLUMNS = ("QuestionId", "UserId", "AnswerId", "IsCorrect", "CorrectAnswer", "AnswerValue")
_ANSWERS, _TIMES, _QUESTIONS = "train_task_", "answer_metadata", "question_metadata"
_SUBJECTS = "subject_metadata"


def looks_like_eedi(names: Sequence[str]) -> bool:
    """Whether a header is that of the answers."""
    return {"questionid", "userid", "answerid", "iscorrect"} <= {plain(name) for name in names}


def folder_of_eedi(folder: Folder) -> bool:
    """Whether a folder has the answers."""
    return bool(folder.beginning(_ANSWERS))


def read_eedi(table: Table, options: ReadOptions) -> EventTable:
    """One row per answer, in the order of the file; the action is the question."""
    return read_log_columns(table, options, Columns("UserId", "QuestionId", "IsCorrect"))


def read_eedi_folder(folder: Folder, options: ReadOptions) -> EventTable:
    """One row per answer; the action is the question's subject, where the folder says what that is."""
    answers = folder.table(folder.beginning(_ANSWERS), "answers")
    frame = columns_of(answers, _COLUMNS, ("UserId", "QuestionId", "IsCorrect"))
    defaults = Columns("UserId", "QuestionId", "IsCorrect")
    if folder.beginning(_TIMES) and "AnswerId" in frame.columns:
        times = folder.columns(folder.beginning(_TIMES), "times of answers", "AnswerId", "DateAnswered")
        # pandas writes whole numbers as 7.0 where a cell of the column is empty.
        times = times.with_columns(pl.col("AnswerId").str.strip_suffix(".0"))
        frame = frame.join(
            times.unique("AnswerId", keep="first"), on="AnswerId", how="left", maintain_order="left"
        )
    if folder.beginning(_QUESTIONS):
        frame = frame.join(_subjects(folder), on="QuestionId", how="left", maintain_order="left")
        defaults = Columns("UserId", "Subject", "IsCorrect", item="QuestionId")
    lines = frame.drop_in_place("line")
    names = tuple(frame.columns)
    table = FrameTable(answers.file, names, frame, lines, answers.notes, answers.guesses, answers.place)
    time = "DateAnswered" if "DateAnswered" in names else None
    return read_log_columns(table, options, Columns(**{**vars(defaults), "time": time}))


def _subjects(folder: Folder) -> pl.DataFrame:
    """The most special subject of each question, by its name if the folder has names."""
    questions = folder.columns(
        folder.beginning(_QUESTIONS), "subjects of questions", "QuestionId", "SubjectId"
    )
    last = pl.col("SubjectId").str.extract_all(r"\d+").list.last()
    questions = questions.select("QuestionId", last.alias("SubjectId"))
    if not folder.beginning(_SUBJECTS):
        return questions.rename({"SubjectId": "Subject"})
    names = folder.columns(folder.beginning(_SUBJECTS), "names of subjects", "SubjectId", "Name")
    named = questions.join(names, on="SubjectId", how="left", maintain_order="left")
    return named.select("QuestionId", pl.coalesce("Name", "SubjectId").alias("Subject"))
