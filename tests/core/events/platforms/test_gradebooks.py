"""Gradebooks of Moodle and Canvas become tables of learners, and are refused as logs of events."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given

from tests.support.fuzz import BREAKS, CANARY, Files, Reader, broken_files, edited, few_edits, pieces, quick
from tests.support.workbook import workbook
from understudy.core.events.platforms.gradebooks import (
    GradeTable,
    looks_like_canvas_gradebook,
    looks_like_moodle_gradebook,
    tidy_canvas_gradebook,
    tidy_moodle_gradebook,
)
from understudy.core.files.delimited import table_in
from understudy.core.files.source import open_source
from understudy.core.files.tables import Table
from understudy.core.files.workbooks import read_workbook
from understudy.errors import DataError
from understudy.logs.reading import read_log

MOODLE = """First name,Last name,ID number,Institution,Department,Email address,Quiz: One (Real),Quiz: One (Feedback),\
Assignment: Two (Percentage),Course total (Real),Course total (Letter),Last downloaded from this course
Ada,Loveday,12001,,,ada@school.example,7.50,Well done Ada,85.00 %,92.5,A-,1715000000
Bob,Marsh,12002,,,bob@school.example,-,,-,-,-,1715000000
"""
GERMAN = """Vorname;Nachname;ID-Nummer;E-Mail-Adresse;Test: Eins (Punkte);Kurs gesamt (Prozentsatz)
Ada;Loveday;12001;ada@school.example;7,50;85,00 %
Bob;Marsh;12002;bob@school.example;-;-
"""
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Quiz 1 (501),"Essay, long (502)",Quizzes Final Score,\
Current Score,Final Score,Final Grade
,,,,,Manual Posting,,,,,
    Points Possible,,,,,10.00,20,(read only),(read only),(read only),(read only)
"Loveday, Ada",31,s31,ada31,Section A,7.50,18,75.0,85.00,80.00,B
"Marsh, Bob",32,s32,bob32,Section A and Section B,EX,N/A,,,,
"Student, Test",99,,0a1b2c,Section A,10,20,100,100,100,A
"""


def table_of(path, content) -> Table:
    path.write_text(content, encoding="utf-8")
    return table_in(open_source(path))


def rows_of(table: Table) -> list[dict[str, object]]:
    return table.read({name: at for at, name in enumerate(table.names)}).to_dicts()


def test_a_gradebook_of_moodle(tmp_path):
    table = table_of(tmp_path / "grades.csv", MOODLE)
    assert looks_like_moodle_gradebook(table.names)
    assert not looks_like_canvas_gradebook(table.names)
    tidy = tidy_moodle_gradebook(table)
    first, second = rows_of(tidy)
    assert first == {
        "First name": "Ada",
        "Last name": "Loveday",
        "ID number": "12001",
        "Institution": None,
        "Department": None,
        "Email address": "ada@school.example",
        "Quiz: One (Real)": "7.50",
        "Assignment: Two (Percentage)": "85.00",
        "Course total (Real)": "92.5",
        "Course total (Letter)": "A-",
        "User full name": "Ada Loveday",
        "line": 2,
    }
    grades = [name for name in tidy.names if "(" in name]
    assert [second[name] for name in grades] == [None] * 4
    assert tidy.maxima == {"Assignment: Two (Percentage)": 100.0}
    assert "2 columns with feedback or times of a download left out." in tidy.notes


def test_commas_of_a_german_gradebook(tmp_path):
    tidy = tidy_moodle_gradebook(table_of(tmp_path / "grades.csv", GERMAN))
    assert rows_of(tidy)[0]["Test: Eins (Punkte)"] == "7.50"
    assert rows_of(tidy)[0]["Kurs gesamt (Prozentsatz)"] == "85.00"
    assert tidy.maxima == {"Kurs gesamt (Prozentsatz)": 100.0}


def test_a_gradebook_of_canvas(tmp_path):
    table = table_of(tmp_path / "grades.csv", CANVAS)
    assert looks_like_canvas_gradebook(table.names)
    assert not looks_like_moodle_gradebook(table.names)
    tidy = tidy_canvas_gradebook(table)
    first, second = rows_of(tidy)
    assert first == {
        "Student": "Loveday, Ada",
        "user_id": "31",
        "SIS User ID": "s31",
        "SIS Login ID": "ada31",
        "Section": "Section A",
        "Quiz 1 (501)": "7.50",
        "Essay, long (502)": "18",
        "Quizzes Final Score": "75.0",
        "Current Score": "85.00",
        "Final Score": "80.00",
        "Final Grade": "B",
        "line": 4,
    }
    assert [second[name] for name in tidy.names[5:]] == [None] * 6
    assert tidy.maxima == {
        "Quiz 1 (501)": 10.0,
        "Essay, long (502)": 20.0,
        "Quizzes Final Score": 100.0,
        "Current Score": 100.0,
        "Final Score": 100.0,
    }
    assert any(note.startswith("3 rows of no learner") for note in tidy.notes)


def test_names_of_canvas_in_two_columns(tmp_path):
    content = (
        "LastName,FirstName,ID,SIS Login ID,Section,Quiz 1 (501)\n"
        "    Points Possible,,,,,10\nLoveday,Ada,31,ada31,A,9\nStudent,Test,99,,A,1\nStudent,Ada,33,ada33,A,1\n"
    )
    tidy = tidy_canvas_gradebook(table_of(tmp_path / "grades.csv", content))
    assert [row["user_id"] for row in rows_of(tidy)] == ["31", "33"]
    assert tidy.maxima == {"Quiz 1 (501)": 10.0}


def test_a_row_is_judged_by_its_own_cells(tmp_path):
    """A learner keeps what they have whatever the rows of others hold, and wherever they stand."""
    lines = CANVAS.splitlines()
    ada = next(line for line in lines if "Ada" in line)
    other = [ada, *(line for line in lines[1:] if line != ada and "Bob" not in line)]
    alone = tidy_canvas_gradebook(table_of(tmp_path / "a.csv", "\n".join([lines[0], *other]) + "\n"))
    with_bob = tidy_canvas_gradebook(table_of(tmp_path / "b.csv", CANVAS))
    (row,) = rows_of(alone)
    assert {**row, "line": 4} == rows_of(with_bob)[0]
    assert alone.maxima == with_bob.maxima


@pytest.mark.parametrize(
    ("content", "platform"), [(MOODLE, "Moodle"), (GERMAN, "Moodle"), (CANVAS, "Canvas")]
)
def test_a_gradebook_is_not_a_log(tmp_path, content, platform):
    path = tmp_path / "grades.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=f"a gradebook of {platform}") as caught:
        read_log(path)
    assert (caught.value.code, caught.value.exit_code) == ("gradebook", 3)
    assert "difficulties" in str(caught.value.hint)
    assert "Ada" not in str(caught.value)


def test_a_workbook_with_a_gradebook(tmp_path):
    path = tmp_path / "grades.xlsx"
    path.write_bytes(workbook([line.split(",") for line in MOODLE.splitlines()]))
    with pytest.raises(DataError, match="a gradebook of Moodle"):
        read_log(path)
    tidy = tidy_moodle_gradebook(read_workbook(open_source(path)))
    assert rows_of(tidy)[0]["User full name"] == "Ada Loveday"


def test_a_sheet_of_points_without_learners_names_is_no_gradebook():
    assert not looks_like_moodle_gradebook(["learner", "Task 1 (15 points)", "Total (Real)"])
    assert not looks_like_canvas_gradebook(["Student", "Score", "Quiz 1 (501)"])


def tidied(path, **_):
    table = table_in(open_source(path))
    if looks_like_moodle_gradebook(table.names):
        return tidy_moodle_gradebook(table)
    return tidy_canvas_gradebook(table) if looks_like_canvas_gradebook(table.names) else table


READER = Reader(tidied, lambda table: [*table.notes, repr(table)])
FILES: Files = {
    "moodle": ("grades.csv", MOODLE.replace("Ada", f"{CANARY}1").encode()),
    "canvas": ("grades.csv", CANVAS.replace("Ada", f"{CANARY}1").encode()),
}
PIECES = pieces(
    b"Student ID Section (501) (Real) Test Points", b"Points Possible", b"Student, Test", b"First name"
)


@pytest.mark.parametrize("file", FILES)
@quick(40)
@given(edits=few_edits(PIECES))
def test_files_with_a_few_wrong_bytes(tmp_path, file, edits):
    name, content = FILES[file]
    result = READER.outcome(tmp_path / name, edited(content, edits))
    assert not READER.tells_canary(result)
    if isinstance(result, GradeTable):
        assert result.frame.height == len(result.rows)
        assert result.frame.dtypes.count(pl.String) == result.frame.width


@pytest.mark.parametrize(("file", "broken"), broken_files(FILES, BREAKS))
def test_no_message_tells_a_value(tmp_path, file, broken):
    name, content = FILES[file]
    assert not READER.tells_canary(READER.outcome(tmp_path / name, BREAKS[broken](content)))
