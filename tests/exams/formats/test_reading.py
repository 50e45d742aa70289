"""Exam responses: sheets, tables of answers and logs, each read as what it is; nobody's name or value is told."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest

from tests.support.workbook import workbook
from understudy.core.files.simulated import mark_simulated
from understudy.errors import DataError, UsageError
from understudy.exams.formats.reading import ResponseOptions, read_responses
from understudy.exams.responses import Responses

SHEET = "Student ID,Q1,Q2,Q3\nana,1,0,\nben,true,FALSE,1\n"
MATRIX = [[1, 0, -1], [1, 0, 1]]
LONG = "learner,item,correct\nana,q2,1\nana,q10,0\nben,q2,\nben,q10,yes\n"
MOODLE = (
    '"Last name","First name","Email address",Status,"Started on",Completed,"Time taken","Grade/10.00",'
    '"Q. 1 /2.00","Q. 2 /8.00"\n'
    'Lund,Ana,ana@school.example,Finished,"31 May 2024, 10:00","31 May 2024, 11:00","1 hour",9.00,1.00,8.00\n'
    'Okoro,Ben,ben@school.example,Finished,"31 May 2024, 10:00","31 May 2024, 11:00","1 hour",3.99,0.00,3.99\n'
    'Yu,Zoe,zoe@school.example,"In progress","31 May 2024, 10:00",-,-,-,-,-\n'
    '"Overall average",,,,,,,6.50,0.50,6.00\n'
)


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def matrix(read: Responses) -> list[list[int]]:
    return read.correct.tolist()


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("sheet.csv", SHEET, "csv"),
        ("sheet.csv.gz", SHEET, "csv"),
        ("sheet.tsv", SHEET.replace(",", "\t"), "tsv"),
        ("semicolons.csv", SHEET.replace(",", ";"), "csv"),
        ("crlf.csv", SHEET.replace("\n", "\r\n"), "csv"),
        ("dashes.csv", SHEET.replace("0,\n", "0,-\n"), "csv"),
        ("words.csv", SHEET.replace("0,\n", "0,NA\n").replace("true", " Correct "), "csv"),
        ("separators at the end.csv", SHEET.replace("\n", ",\n"), "csv"),
        ("blank rows.csv", SHEET + ",,,\n,,,\n", "csv"),
        ("learner last.csv", "Q1,Q2,Q3,user\n1,0,,ana\n1,0,1,ben\n", "csv"),
        (
            "sheet.xlsx",
            workbook([["Student ID", "Q1", "Q2", "Q3"], ["ana", 1, 0, None], ["ben", "true", "FALSE", 1]]),
            "excel",
        ),
        (
            "sheet.parquet",
            parquet(
                pl.DataFrame(
                    {"learner": ["ana", "ben"], "Q1": [True, True], "Q2": [0.0, 0.0], "Q3": [None, 1]}
                )
            ),
            "parquet",
        ),
    ],
)
def test_sheets(write, name, content, format):
    read = read_responses(write(name, content))
    assert (read.origin.layout, read.origin.format) == ("wide", format)
    assert matrix(read) == MATRIX
    assert read.items == ("Q1", "Q2", "Q3")
    assert read.declared
    assert not read.simulated
    assert read.origin.learners == ()
    assert repr(read) == "<Responses: 2 learners, 3 items>"
    assert (read.origin.format, read.origin.layout) == (format, "wide")


def test_names_are_kept_only_for_those_who_ask(write):
    path = write("sheet.csv", SHEET)
    assert read_responses(path, keep_names=True).origin.learners == ("ana", "ben")
    assert read_responses(write("long.csv", LONG), keep_names=True).origin.learners == ("ana", "ben")
    log = read_responses(write("log.txt", "2\na,b\n1,0\n"), keep_names=True)
    assert log.origin.learners == ()
    assert "not by their names" in log.origin.notes[-1]


def test_a_sheet_without_learners(write):
    read = read_responses(write("sheet.csv", "Q1,Q2\n1,0\n1,0\n,\n0,\n"))
    # An empty row is a learner who answered nothing: who counts must not depend on the answers.
    assert matrix(read) == [[1, 0], [1, 0], [-1, -1], [0, -1]]
    assert not read.origin.named
    # Whether that will do is for the caller to say.
    assert not any("learner" in note for note in read.origin.notes)
    with pytest.raises(DataError, match="no column names the learners"):
        read_responses(write("sheet.csv", "Q1,Q2\n1,0\n"), exclude=write("gone.txt", "ana\n"))


def test_rows_numbered_by_a_statistics_program(write):
    for header in ("", "Unnamed: 0"):
        read = read_responses(write("sheet.csv", f"{header},a,b\n1,1,0\n2,0,1\n"), keep_names=True)
        assert matrix(read) == [[1, 0], [0, 1]]
        assert read.origin.learners == ("1", "2")


def test_one_learner_is_enough(write):
    assert matrix(read_responses(write("sheet.csv", "learner,Q1\nana,1\n"))) == [[1]]
    assert matrix(read_responses(write("long.csv", "learner,item,correct\nana,q,0\n"))) == [[0]]


def test_the_learner_column_as_asked(write):
    path = write("sheet.csv", "Kennung,user,Q1\nx,1,1\ny,1,0\n")
    read = read_responses(path, learner="kennung", keep_names=True)
    assert read.origin.learners == ("x", "y")
    assert "1 column that is not an item was left out: 'user'." in read.origin.notes
    with pytest.raises(DataError, match="asked for column 'nobody', which is not there"):
        read_responses(path, learner="nobody")


@pytest.mark.parametrize(
    ("heading", "title", "maximum"),
    [
        ("ES 4.1  (15 points)", "ES 4.1", 15),
        ("Q1 (2 pts)", "Q1", 2),
        ("Q1(1 pt.)", "Q1", 1),
        ("Q. 1 /10.00", "Q. 1", 10),
        ("Q1/2.50", "Q1", 2.5),
        ("F 1 /10,00", "F 1", 10),
        ("Aufgabe 1 [7,5 Punkte]", "Aufgabe 1", 7.5),
        ("Quiz(out of 15)", "Quiz", 15),
        ("Q1 (max. 4)", "Q1", 4),
        ("Q1 (/4)", "Q1", 4),
        ("Age (4 points)", "Age", 4),
    ],
)
def test_points_are_rounded(write, heading, title, maximum):
    half = f"{maximum / 2:g}"
    header = f"learner\t{heading}\n"
    body = f"a\t{half}\nb\t{maximum}\nc\t{maximum / 2 - 0.01}\nd\t0\ne\t\nf\t-\n"
    read = read_responses(write("sheet.csv", header + body))
    assert read.items == (title,)
    assert matrix(read) == [[1], [1], [0], [0], [-1], [-1]]
    assert "The points of 1 item were rounded: correct from half of the points on." in read.origin.notes
    # Decimal commas.
    assert matrix(read_responses(write("comma.csv", header + body.replace(".", ",")))) == matrix(read)


def test_the_share_that_passes(write):
    path = write("sheet.csv", "learner,Q1 (20 points),Q2 (3 marks)\na,11,2\nb,10.99,3\n")
    assert matrix(read_responses(path, pass_share=0.55)) == [[1, 1], [0, 1]]
    assert matrix(read_responses(path, pass_share=1)) == [[0, 0], [0, 1]]
    for share in (0, -1, 1.01, "50"):
        with pytest.raises(UsageError, match="a share above 0 and up to 1"):
            read_responses(path, pass_share=share)
    for share in (float("nan"), "half", "<=x"):
        with pytest.raises(UsageError, match="a pass mark is a number") as caught:
            read_responses(path, pass_share=share)
        assert caught.value.settings == ("pass_share",)


@pytest.mark.parametrize(
    ("mark", "right"), [("<=4", [[1, 0], [0, -1], [1, 1]]), (">=4", [[1, 1], [1, -1], [0, 0]])]
)
def test_grades_in_a_sheet_and_in_a_list(write, mark, right):
    sheet = 'learner,Q1,Q2\na,4,5\nb,"4,3",\nc,1,2.7\n'
    read = read_responses(write("sheet.csv", sheet), pass_share=mark)
    assert (matrix(read), read.origin.pass_share) == (right, mark)
    cells = [("a", "Q1", "4"), ("a", "Q2", "5"), ("b", "Q1", "4.3"), ("c", "Q1", "1"), ("c", "Q2", "2.7")]
    rows = "".join(f"{who},{what},{grade}\n" for who, what, grade in cells)
    read = read_responses(write("list.csv", f"learner,item,correct\n{rows}"), pass_share=mark)
    assert (matrix(read), read.origin.pass_share) == (right, mark)


def test_grades_are_suggested_and_not_read(write):
    grades = "learner,Q1,Q2\na,1,2\nb,3,5\n"
    with pytest.raises(DataError, match="no maximum of points") as caught:
        read_responses(write("sheet.csv", grades))
    assert caught.value.fields["declare"] == {"pass_share": "<=NUMBER"}
    assert "If 1 is the best" in caught.value.hint
    rows = "learner,item,Note\na,Q1,1\na,Q2,2\nb,Q1,3\nb,Q2,5\n"
    with pytest.raises(DataError) as caught:
        read_responses(write("list.csv", rows), outcome="Note")
    assert caught.value.fields["declare"] == {"pass_share": "<=NUMBER"}
    with pytest.raises(DataError) as caught:
        read_responses(write("list.csv", rows.replace("5", "15")), outcome="Note")
    assert caught.value.fields["declare"] == {"pass_share": ">=NUMBER"}


def test_a_mark_in_points_does_not_fit_maxima(write):
    path = write("sheet.csv", "learner,Q1 (20 points),Q2\na,11,1\n")
    with pytest.raises(UsageError, match="the maximum of 1 item") as caught:
        read_responses(path, pass_share=">=10")
    assert caught.value.code == "maxima-and-mark"


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64, pl.Decimal(6, 2), pl.String, pl.Categorical])
def test_points_of_any_type(write, dtype):
    text = pl.Series(["0.70", "0.69", "1.00", None])
    points = text.cast(dtype) if dtype in (pl.String, pl.Categorical) else text.cast(pl.Float64).cast(dtype)
    content = parquet(pl.DataFrame({"learner": list("abcd"), "Q (1 point)": points}))
    assert matrix(read_responses(write("a.parquet", content), pass_share=0.7)) == [[1], [0], [1], [-1]]


@pytest.mark.parametrize("name", ["1/2", "3/4", "Q1 (2)", "task 1/2", "sum of fractions", "grades of ore"])
def test_what_looks_a_little_like_a_maximum_or_a_total(write, name):
    read = read_responses(write("sheet.csv", f"learner,{name}\na,1\nb,0\n"))
    assert read.items == (name,)
    assert matrix(read) == [[1], [0]]


def test_a_quiz_from_moodle(write):
    read = read_responses(write("quiz.csv", MOODLE), keep_names=True)
    assert read.items == ("Q. 1", "Q. 2")
    assert matrix(read) == [[1, 1], [0, 0], [-1, -1]]
    assert read.origin.learners == ("ana@school.example", "ben@school.example", "zoe@school.example")
    notes = read.origin.notes
    assert "1 row of averages below the learners was left out." in notes
    assert "Moodle's report of grades: the learner is in 'Email address'; 2 questions by the header." in notes
    # Two attempts of one person are not two learners.
    twice = read_responses(write("quiz.csv", MOODLE.replace("zoe@", "ben@")))
    assert matrix(twice) == [[1, 1], [0, 0]]


def test_columns_that_are_no_items(write):
    content = (
        "learner,Q1,Remark,TOTAL (2 points),Born,Gender,Total,Empty\n"
        "ana,1,well done,1,2001-02-03,1,1,\nben,0,,0,2001-02-04,0,0,\n"
    )
    read = read_responses(write("sheet.csv", content.replace("Total,", "Sum,")))
    assert read.items == ("Q1", "Empty")
    assert matrix(read) == [[1, -1], [0, -1]]
    assert "2 columns that sum up items were left out: 'TOTAL', 'Sum'." in read.origin.notes
    assert "1 column that is not an item was left out: 'Gender'." in read.origin.notes
    assert "2 columns that hold no answers were left out: 'Remark', 'Born'." in read.origin.notes


def test_columns_of_a_parquet_file_that_are_no_items(write):
    frame = pl.DataFrame(
        {
            "learner": [7, 8],
            "Q1": pl.Series([1, None], dtype=pl.UInt64),
            "nested": [[1], [2]],
            "bytes": [b"1", b"0"],
            "born": [pl.Series(["2001-02-03"]).str.to_date()[0]] * 2,
            "nothing": pl.Series([None, None], dtype=pl.Null),
            "gap": pl.Series([float("nan"), 0.0]),
        }
    )
    read = read_responses(write("sheet.parquet", parquet(frame)), keep_names=True)
    assert read.items == ("Q1", "nothing", "gap")
    assert matrix(read) == [[1, -1, -1], [-1, -1, 0]]
    assert read.origin.learners == ("7", "8")
    assert "3 columns that hold no answers were left out: 'nested', 'bytes', 'born'." in read.origin.notes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("learner,Q1,Q2\na,1,0\nb,2,0\n", "column 'Q1' holds a number other than 0 and 1.* on line 3"),
        (
            "learner,Q1 (2 points)\na,1\n\nb,2.1\n",
            r"column 'Q1' holds more points .* on line 4 \(1 such row\)",
        ),
        ("learner,Q1 (2 points)\na,-1\nb,-2\n", r"'Q1' holds a negative number of points on line 2 \(2 such"),
        ("learner,Q1 (2 points)\na,well\nb,2\n", "'Q1' holds something that is neither .* on line 2"),
        ("learner,Q1 (2 points)\na,1e999\nb,2\n", "'Q1' holds something that is neither .* on line 2"),
        ("learner,Q1\na,1\nb,0\nc,O\n", "'Q1' holds something that is neither a number nor .* on line 4"),
        ("learner,Q1 (0 points)\na,0\n", "header of column 2 gives a maximum that is not a positive number"),
        ("learner,Q1\na,1\nb,1\n a ,0\n", "'learner' names a learner for a second time on line 4"),
        ("learner,Q1\na,1\n,1\n", "'learner' names no learner on line 3"),
        ("learner,Q1\n,\n", "no learner is left"),
        ("learner,Q1,Q1\na,1,1\n", "columns 2 and 3 have the same name"),
        ("learner,Q1 (2 points),Q1 (3 points)\na,1,1\n", "columns 2 and 3 are items of the same name"),
        ("learner,remark\na,good\n", "none of the 2 columns holds answers"),
        ("learner,total\na,1\n", "none of the 2 columns holds answers"),
        ("learner,Q1\n", "there is a header but no row"),
        ("ana,1,0\nben,0,1\n", "the first line holds answers where the items' names should be"),
        ("ana,3.5,2\nben,7,1\n", "column 2 holds a number other than 0 and 1"),
        ("ana,1,1,0\nben,1,1,0\n", "columns 2 and 3 have the same name"),
    ],
)
def test_sheets_that_cannot_be_read(write, content, message):
    with pytest.raises(DataError, match=message) as caught:
        read_responses(write("sheet.csv", content))
    assert caught.value.message.startswith("sheet.csv: ")
    assert caught.value.hint


def test_numbers_without_a_maximum_are_explained(write):
    with pytest.raises(DataError) as caught:
        read_responses(write("sheet.csv", "learner,Q1\na,7\n"))
    assert "'Q1 (15 points)'" in caught.value.hint
    assert caught.value.settings == ("items", "pass_share")
    assert caught.value.fields["declare"] == {"items": "ITEMS"}
    assert "a table of the items (csv) with the columns item and points" in caught.value.hint


TABLE = "item;points\nA1;5\nB1;2,5\nC1;\n"


def test_maxima_are_declared_in_a_table_of_the_items(write):
    sheet = write("sheet.csv", "Matrikel,A1,B1,C1,Total\n700001,5,1,1,7\n700002,2,1.25,0,3.25\n")
    read = read_responses(sheet, items=write("items.csv", TABLE))
    assert read.items == ("A1", "B1", "C1")
    assert read.correct.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert "The learner is in column 'Matrikel'." in read.origin.notes
    assert any("that is not an item was left out: 'Total'" in note for note in read.origin.notes)


@pytest.mark.parametrize(
    ("table", "guesses"),
    [
        ("item,choices\nB1,4\nA1,\nC1,0\n", (0.25, 0.0, 0.0)),
        ("Item;Points;Choices\nB1;;5\nA1;2,5;2\nC1;\n", (0.2, 0.5, 0.0)),
        ("item,points\nB1,\nA1,2\nC1,\n", None),
        ("B1\nA1\nC1\n", None),
    ],
)
def test_choices_are_declared_in_a_table_of_the_items(write, table, guesses):
    read = read_responses(
        write("sheet.csv", "learner,A1,B1,C1\na,1,1,0\nb,0,1,1\n"), items=write("items.csv", table)
    )
    assert read.items == ("B1", "A1", "C1")
    assert read.guesses == guesses


@pytest.mark.parametrize(
    ("header", "settings", "share"),
    [
        ("Q1,Q2", {}, None),
        ("Q1 (1 point),Q2", {}, 0.5),
        ("Q1,Q2", {"pass_share": 0.6}, 0.6),
    ],
)
def test_a_share_of_the_points_is_told_where_there_are_points(write, header, settings, share):
    read = read_responses(write("sheet.csv", f"learner,{header}\na,1,0\nb,0,1\n"), **settings)
    assert read.origin.pass_share == share


@pytest.mark.parametrize(
    ("header", "table", "code"),
    [
        ("A1,B1,C1", "item,points\nA1,5\nA1,4\n", "bad-items"),
        ("A1,B1,C1", "item,points\nA1,0\n", "bad-items"),
        ("A1,B1,C1", "item,points\nA1,many\n", "bad-items"),
        ("A1,B1,C1", "item,points\nA9,5\n", "no-such-item"),
        ("A1,B1,C1", "item,choices\nA1,1\n", "bad-items"),
        ("A1,B1,C1", "item,choices\nA1,2.5\n", "bad-items"),
        ("A1,B1,C1", "item,choices\nA1,-4\n", "bad-items"),
        ("A1,B1,C1", "item,choices\nA1,²\n", "bad-items"),
        ("A1,B1,C1", "item,choices\nA1,99999999999\n", "bad-items"),
        ("A1 (4 points),B1,C1", "item,points\nA1,5\n", "two-maxima"),
    ],
)
def test_a_table_of_items_that_cannot_be_meant(write, header, table, code):
    sheet = write("sheet.csv", f"learner,{header}\na,3,1,1\nb,2,1,0\n")
    with pytest.raises(UsageError) as caught:
        read_responses(sheet, items=write("items.csv", table))
    assert caught.value.code == code


def test_learners_numbers_under_a_name_that_nobody_knows_are_not_points(write):
    rows = "".join(f"{700001 + n},{n % 2},{n % 3 % 2}\n" for n in range(9))
    with pytest.raises(DataError, match="column 1 has a different number on each row") as caught:
        read_responses(write("sheet.csv", f"x,c,d\n{rows}"))
    assert "declare" not in caught.value.fields  # the file may lack its header
    with pytest.raises(DataError) as caught:
        read_responses(write("sheet.csv", f"registration,Q1,Q2\n{rows}"))
    assert caught.value.fields["declare"] == {"learner": "registration"}


@pytest.mark.parametrize(
    ("share", "words"), [(0.5, "half of the points"), (1, "all points"), (0.6, "60 % of the")]
)
def test_the_share_is_told_in_words(write, share, words):
    read = read_responses(write("sheet.csv", "learner,Q1 (2 points)\na,1\nb,2\n"), pass_share=share)
    assert any(f"correct from {words}" in note for note in read.origin.notes)


def test_a_separator_is_told_once(write):
    content = SHEET.replace(",", ";")
    read = read_responses(write("sheet.csv", content))
    assert read.origin.notes[0] == "Read as csv: its first line has semicolons."
    assert not any("separated" in note for note in read.origin.notes)
    asked = read_responses(write("sheet.csv", content), format="csv")
    assert "Fields were separated by semicolons." in asked.origin.notes


@pytest.mark.parametrize("name", ["Maximum", "OUT OF", "   Points Possible", "Maximalpunktzahl:"])
@pytest.mark.parametrize("last", [False, True])
def test_a_row_of_maxima_is_left_out(write, name, last):
    rows = ["ana,,1,0", "ben,,0,2"]
    rows.insert(2 if last else 0, f"{name},,1,2")
    content = "learner,comment,Q1,Q2 (2 points)\n" + "\n".join(rows) + "\n"
    read = read_responses(write("sheet.csv", content), keep_names=True)
    assert matrix(read) == [[1, 0], [0, 1]]
    assert read.origin.learners == ("ana", "ben")
    assert "1 row of maxima was left out." in read.origin.notes


def test_max_may_be_somebody(write):
    with pytest.raises(DataError, match="line 2 is named like a row of maxima") as caught:
        read_responses(write("sheet.csv", "learner,Q1\nMax,1\nana,0\n"))
    assert "in full" in caught.value.hint
    full = "First name,Last name,Email,Q1\nMax,Lund,m@x.example,1\nana,Yu,a@x.example,0\n"
    assert matrix(read_responses(write("sheet.csv", full))) == [[1], [0]]
    within = "learner,Q1\nana,0\nmax,1\nzoe,1\n"
    assert matrix(read_responses(write("sheet.csv", within))) == [[0], [1], [1]]


@pytest.mark.parametrize(
    ("name", "content", "header"),
    [
        ("a.csv", "Midterm,,,\nStudent ID,Q1,Q2,Q3\nana,1,0,1\n", "line 2"),
        ("a.csv", "Midterm\n\nStudent ID,Q1,Q2,Q3\nana,1,0,1\n", "line 3"),
        ("a.csv", "Midterm;;\nMay 2024;;\nlearner;Q1;Q2\nana;1;0\n", "line 3"),
        ("a.tsv", "Midterm exam\nlearner\tQ1\nana\t1\n", "line 2"),
    ],
)
def test_a_title_above_the_header_is_told(write, name, content, header):
    place = header.split()[0]
    with pytest.raises(DataError, match=rf"{place} 1 looks like a title; .* on {header}\.") as caught:
        read_responses(write(name, content))
    assert "remove the lines above" in caught.value.hint
    assert "Midterm" not in str(caught.value)


def test_a_title_in_a_workbook_is_passed_over_and_that_is_a_guess(write):
    title = [["Midterm", None, None], ["learner", "Q1", "Q2"], ["ana", 1, 0]]
    found = read_responses(write("a.xlsx", workbook(title)))
    assert found.items == ("Q1", "Q2")
    assert found.origin.guesses[0].declare == {"sheet": "1!2:3"}
    assert not read_responses(write("a.xlsx", workbook(title)), sheet="1!2:3").origin.guesses


@pytest.mark.parametrize(
    "content",
    [
        "wer,was,wie\nana,x,1\nana,y,0\nben,x,1\nben,y,1\n",
        "wer,was,wie\n17,x,1\n17,y,0\n18,x,1\n18,y,1\n",
        "student,was,wie\nana,x,1\nana,y,0\nben,x,1\nben,y,1\n",
    ],
)
def test_a_list_of_answers_with_unknown_names(write, content):
    with pytest.raises(DataError) as caught:
        read_responses(write("own.csv", content))
    assert caught.value.settings == ("learner", "item", "outcome")


def test_a_sheet_that_repeats_its_first_column_is_no_list(write):
    assert matrix(read_responses(write("a.csv", "a,b,c\n1,0,1\n1,0,1\n"))) == [[1, 0, 1], [1, 0, 1]]
    with pytest.raises(DataError) as caught:
        read_responses(write("a.csv", "Q1,Q2,Q3\n3,0,1\n3,0,1\n"))
    assert "--item" not in caught.value.hint


def test_who_withdrew_is_gone_before_a_cell_is_looked_at(write):
    content = "learner,Q1\nana,1\nben,much\nben,0\ncleo,0\n"
    read = read_responses(
        write("sheet.csv", content), exclude=write("gone.txt", "BEN\nzoe\n"), keep_names=True
    )
    assert matrix(read) == [[1], [0]]
    assert read.origin.learners == ("ana", "cleo")
    assert (read.origin.n_withdrawn, read.origin.n_absent) == (1, 1)
    with pytest.raises(DataError, match="no learner is left"):
        read_responses(write("sheet.csv", content), exclude=write("gone.txt", "ana\nben\ncleo\n"))
    long = read_responses(
        write("long.csv", LONG.replace("yes", "bad")), exclude=write("gone.txt", "ben\n"), keep_names=True
    )
    assert (long.origin.n_withdrawn, long.origin.n_absent, long.origin.learners) == (1, 0, ("ana",))


def test_simulated_is_a_mark_beside_the_file_and_not_a_name(write):
    path = write("a.csv", "learner,Q1\nsimulated-1,1\nsimulated-2,0\n")
    assert not read_responses(path).simulated
    mark_simulated(path)
    assert read_responses(path).simulated
    long = write("long.csv", LONG)
    mark_simulated(long)
    assert read_responses(long).simulated


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("long.csv", LONG),
        ("skill.csv", LONG.replace(",q", ",s,q").replace("item,", "skill,question,")),
        ("action.csv", LONG.replace("item", "action")),
        ("spread.csv", "learner,item,correct\nana,q2,1\nben,q10,1\nana,q10,0\nben,q2,NA\n"),
        ("long.xlsx", workbook([["user", "task", "correct"], *(r.split(",") for r in LONG.split()[1:])])),
        (
            "long.parquet",
            parquet(
                pl.DataFrame(
                    {
                        "student": ["ana", "ana", "ben", "ben"],
                        "problem": ["q2", "q10", "q2", "q10"],
                        "success": [True, False, None, True],
                    }
                )
            ),
        ),
    ],
)
def test_tables_of_answers(write, name, content):
    read = read_responses(write(name, content), keep_names=True)
    assert read.origin.layout == "long"
    assert read.items == ("q10", "q2")
    assert matrix(read) == [[0, 1], [1, -1]]
    assert read.origin.learners == ("ana", "ben")
    assert not read.declared
    assert "Taken as not answered: 1 row without an outcome." in read.origin.notes


def test_learners_and_items_without_an_answer_stay(write):
    content = "learner,item,correct\nzoe,3,\nana,1,1\nzoe,2,\nben,2,0\nben,1,\nana,2,1\n"
    read = read_responses(write("long.csv", content), keep_names=True)
    assert read.items == ("1", "2", "3")
    assert read.origin.learners == ("zoe", "ana", "ben")
    assert matrix(read) == [[-1, -1, -1], [1, 1, -1], [-1, 0, -1]]
    # The first row that counts is not that of the learner who was met first.
    content = "learner,item,correct\nana,1,\nben,1,0\nana,2,1\ncleo,1,\n"
    read = read_responses(write("long.csv", content), keep_names=True)
    assert read.origin.learners == ("ana", "ben", "cleo")
    assert matrix(read) == [[-1, 1], [0, -1], [-1, -1]]


REPEATED = (
    "learner,item,correct,time\nana,a,0,2024-01-03 10:00\nana,a,1,2024-01-02 10:00\nana,b,1,2024-01-01 10:00\n"
    "ana,a,0,2024-01-04 10:00\nben,b,0,2024-01-01 10:00\n"
)


def test_repeated_answers(write):
    path = write("long.csv", REPEATED)
    with pytest.raises(
        DataError, match=r"column 'item' names an item .* on line 3 \(2 such rows\)"
    ) as caught:
        read_responses(path)
    assert caught.value.settings == ("attempts",)
    rows = [row.split(",")[:3] for row in REPEATED.splitlines()]
    untimed = write("untimed.csv", "\n".join(map(",".join, rows)))
    for attempt, ordered, as_written in (("first", 1, 0), ("last", 0, 0), ("best", 1, 1)):
        read = read_responses(path, attempts=attempt)
        assert matrix(read) == [[ordered, 1], [-1, 0]]
        assert f"Left out: 2 repeated attempts; the {attempt} one at each item counts." in read.origin.notes
        assert matrix(read_responses(untimed, attempts=attempt)) == [[as_written, 1], [-1, 0]]


def test_a_log_counts_the_first_attempt(write):
    content = (
        "order_id,user_id,problem_id,correct,skill_id,skill_name\n1,7,1,0,1,a\n2,7,2,1,1,a\n3,8,1,1,2,b\n"
    )
    path = write("log.csv", content)
    read = read_responses(path)
    assert (read.origin.layout, read.origin.format) == ("log", "assistments")
    assert read.items == ("a", "b")
    assert matrix(read) == [[0, -1], [-1, 1]]
    assert matrix(read_responses(path, attempts="last")) == [[1, -1], [-1, 1]]
    assert not read.declared
    by_item = read_responses(path, layout="long")
    assert (by_item.origin.layout, by_item.origin.format, by_item.items) == ("long", "csv", ("1", "2"))
    gone = read_responses(path, exclude=write("gone.txt", "8\n9\n"))
    assert (gone.n_learners, gone.origin.n_withdrawn, gone.origin.n_absent) == (1, 1, 1)
    assert read_responses(write("log.txt", "2\na,b\n1,0\n")).origin.format == "three-line"
    skills = read_responses(write("uis.csv", "user,item,skill,correct\nu,1,s,1\nu,2,s,0\n"))
    assert (skills.origin.layout, skills.items, matrix(skills)) == ("log", ("s",), [[1]])


def test_items_that_name_people_are_reported(write):
    content = "learner,item,correct\nana lund,essay by ana lund,1\nben,sums,0\n"
    found = read_responses(write("long.csv", content)).origin.identifiers
    assert [(one.column, one.kind, one.role) for one in found] == [("item", "learner id", "action")]


def test_the_layout_as_asked(write):
    content = "learner,item,correct\na,1,0\nb,0,1\n"
    path = write("both.csv", content)
    assert read_responses(path).origin.layout == "long"
    wide = read_responses(path, layout="wide")
    assert (wide.items, matrix(wide)) == (("item", "correct"), [[1, 0], [0, 1]])
    with pytest.raises(DataError, match="found no column for the action and the outcome"):
        read_responses(write("sheet.csv", SHEET), layout="long")
    named = read_responses(
        write("own.csv", "wer,was,wie\na,x,1\na,y,0\n"),
        learner="wer",
        item="was",
        outcome="wie",
    )
    assert (named.origin.layout, matrix(named)) == ("long", [[1, 0]])


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (SHEET, {"format": "word"}, "there is no format 'word'"),
        (SHEET, {"layout": "tall"}, "there is no layout 'tall'"),
        (SHEET, {"attempts": "second"}, "there is no attempt 'second'"),
        (SHEET, {"attempts": "first"}, "one row per learner has one answer per item"),
        (SHEET, {"layout": "wide", "item": "Q1"}, "but a column for the item was given"),
        ("2\na,b\n1,0\n", {"layout": "wide"}, "a file of format three-line is a log"),
        (SHEET, {"format": "assistments", "layout": "long"}, "a file of format assistments is a log"),
    ],
)
def test_wrong_use(write, content, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        read_responses(write("file.csv", content), **options)
    assert caught.value.hint


def test_large_sheets_are_read_in_groups_of_columns(write, monkeypatch):
    answers = np.random.default_rng(1).integers(0, 2, (50, 9))
    frame = pl.DataFrame(answers, schema=[f"Q{n}" for n in range(9)])
    frame = frame.with_columns(Q4=pl.lit("text")).insert_column(0, pl.Series("user", range(50)))
    monkeypatch.setattr("understudy.exams.formats.sheet._CELLS_AT_A_TIME", 150)
    expected = np.delete(answers, 4, axis=1).tolist()
    assert matrix(read_responses(write("a.csv", frame.write_csv()))) == expected
    assert matrix(read_responses(write("a.parquet", parquet(frame)))) == expected


def test_more_learners_and_items_than_a_matrix_holds(write, monkeypatch):
    monkeypatch.setattr("understudy.exams.formats.answer_pieces._MOST_CELLS", 3)
    for content in (LONG, "2\na,b\n1,0\n2\nc,d\n1,0\n"):
        with pytest.raises(DataError, match=r"2 learners and \d items are more than a matrix"):
            read_responses(write("long.csv", content))


@pytest.mark.parametrize(
    "word",
    [
        "Schnitt",
        "Klassenschnitt:",
        "Ø",
        "Mittel",
        "Median",
        "Summe",
        "Gesamt",
        "Anzahl",
        "Moyenne",
        "Mediana",
    ],
)
def test_a_row_that_sums_up_the_learners_is_not_one(write, word):
    read = read_responses(write("exam.csv", f"Name,Q1,Q2\na,1,0\nb,0,1\n{word},1,1\n"))
    assert read.n_learners == 2
    assert any("below the learners was left out" in note for note in read.origin.notes)


@pytest.mark.parametrize(
    ("table", "guesses"),
    [("Aufgabe;Punkte\nQ1;2\nQ2;4\n", None), ("Frage;Auswahl\nQ1;4\nQ2;\n", (0.25, 0.0)),
     ("Pregunta;Puntos;Opciones\nQ1;2;2\nQ2;4;4\n", (0.5, 0.25)), ("Exercice,Barème\nQ1,2\nQ2,4\n", None)],
)  # fmt: skip
def test_a_table_of_items_in_other_languages(write, table, guesses):
    exam = write("exam.csv", "learner,Q1,Q2\na,1,0\nb,0,1\n")
    assert read_responses(exam, items=write("items.csv", table)).guesses == guesses


def test_a_table_of_items_by_other_names_is_not_a_list(write):
    exam = write("exam.csv", "learner,Q1,Q2\na,1,0\nb,0,1\n")
    with pytest.raises(UsageError, match="looks like a table") as caught:
        read_responses(exam, items=write("items.csv", "what;worth\nQ1;2\nQ2;4,5\n"))
    assert "item and points" in caught.value.hint


@pytest.mark.parametrize("mark", [0.6, ">=50"])
def test_points_and_a_pass_mark_contradict_each_other(mark):
    with pytest.raises(UsageError, match="points count as they are") as caught:
        ResponseOptions(points=0.5, pass_share=mark)
    assert caught.value.settings == ("points", "pass_share")


def test_a_step_may_have_a_decimal_comma():
    assert ResponseOptions(points="0,5").step == 0.5
    with pytest.raises(UsageError, match="steps of half"):
        ResponseOptions(points="half")
