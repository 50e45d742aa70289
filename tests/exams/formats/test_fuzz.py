"""Whatever a file of responses holds, reading ends in responses or in an error of ours, and tells no value."""

from __future__ import annotations

import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fuzz import (
    BREAKS,
    CANARY,
    Files,
    Reader,
    broken_files,
    contents,
    edited,
    few_edits,
    pieces,
    quick,
)
from tests.support.workbook import workbook
from understudy.core.events.reading import formats
from understudy.exams.formats.item_list import read_items
from understudy.exams.formats.reading import read_responses
from understudy.exams.responses import Responses

READER = Reader(
    read_responses, lambda responses: [*responses.origin.notes, repr(responses.origin.identifiers)]
)
PIECES = pieces(
    b"learner item correct Student Q1 Q2 TOTAL time user_id no NA - (2 points) (0 pts) /10.00",
    *(b"Q1 (2 points)", b"Q. 2 /3,00", b"Overall average", b"Grade/10.00", b"Response 1", b"Right answer 1"),
    *(b"17: a", b"attempt", b"n correct", b"n incorrect", b"score"),
)


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("layout", [None, "wide", "long"])
@pytest.mark.parametrize("format", [None, *formats()])
@quick(60)
@given(content=contents(PIECES))
def test_arbitrary_bytes(tmp_path, format, layout, content):
    result = READER.outcome(tmp_path / "exam", content, format=format, layout=layout)
    if isinstance(result, Responses):
        assert result.n_learners > 0
        assert result.n_items > 0


cells = st.sampled_from(["1", "0", "true", "no", "", "-", "0.5", "2", "x", "3,5", "é", '"', "\n", ",", "nan"])
headings = st.sampled_from(
    ["learner", "Q1", "Q2 (2 points)", "Q 3 /3.00", "Total", "x", "item", "correct", ""]
)


@quick(60)
@given(
    names=st.lists(headings, min_size=2, max_size=4, unique=True),
    rows=st.lists(st.lists(cells, min_size=4, max_size=4), min_size=1, max_size=5),
    kind=st.sampled_from(["csv", "parquet"]),
)
def test_any_table(tmp_path, names, rows, kind):
    frame = pl.DataFrame(
        [row[: len(names)] for row in rows], schema=dict.fromkeys(names, pl.String), orient="row"
    )
    content = frame.write_csv().encode() if kind == "csv" else parquet(frame)
    result = READER.outcome(tmp_path / f"exam.{kind}", content)
    if isinstance(result, Responses):
        assert 0 < result.n_learners <= len(rows)


def whole_files() -> Files:
    """Good files with the canary as learners' names and in columns that are not items."""
    rows = [[f"{CANARY}{n}", n % 2, n % 3, f"{CANARY} text {n}", f"{CANARY}@x{n}.example"] for n in range(9)]
    names = ["Student", "Q1", "Q2 (2 points)", "remark", "contact"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    long = "learner,item,correct,comment\n" + "".join(
        f"{CANARY}{n % 3},q{n},{n % 2},{CANARY} {n}\n" for n in range(9)
    )
    people = [f"{CANARY}{n},{CANARY},{CANARY}{n}@x.example,Finished,a,b,c,{n % 3}.00" for n in range(9)]
    moodle = "Last name,First name,Email address,State,Started on,Completed,Time taken,Grade/2.00"
    grades = "".join(f"{who},{n % 2}.00,-\n" for n, who in enumerate(people))
    responses = "".join(f"{who},{CANARY} {n % 2},{CANARY} 1\n" for n, who in enumerate(people))
    canvas = "name,id,sis_id,submitted,attempt,17: What?,1.0,n correct,n incorrect,score\n" + "".join(
        f"{CANARY}{n},{CANARY}{n % 6},,x,{n},{CANARY},{n % 2}.0,0,0,{n % 2}\n" for n in range(9)
    )
    return {
        "moodle": (
            "exam.csv",
            f"{moodle},Q. 1 /1.00,Q. 2 /1.00\n{grades}Overall average,,,,,,,1.00,0.50,-\n".encode(),
        ),
        "moodle responses": ("exam.csv", f"{moodle},Response 1,Right answer 1\n{responses}".encode()),
        "canvas": ("exam.csv", canvas.encode()),
        "csv": ("exam.csv", frame.write_csv().encode()),
        "headerless": ("exam.csv", frame.write_csv(include_header=False).encode()),
        "two columns": ("exam.csv", frame.select("remark", "Q1").write_csv(include_header=False).encode()),
        "unnamed": ("exam.csv", frame.drop("Student").write_csv().encode()),
        "excel": ("exam.xlsx", workbook([names, *rows])),
        "parquet": ("exam.parquet", parquet(frame)),
        "long": ("exam.csv", long.encode()),
    }


FILES = whole_files()
BROKEN = BREAKS | {
    "points": lambda data: data.replace(b",2,", b",77,", 2),
    "learner twice": lambda data: data.replace(b"canary2,", b"canary1,", 2),
}
ASKED = (
    {},
    {"layout": "wide"},
    {"layout": "long"},
    {"attempts": "last"},
    {"format": "csv"},
    {"learner": "remark"},
    {"learner": "nobody"},
)


@pytest.mark.parametrize(("file", "broken"), broken_files(FILES, BROKEN))
def test_no_message_tells_a_value(tmp_path, file, broken):
    name, content = FILES[file]
    gone = tmp_path / "gone.txt"
    gone.write_text(f"{CANARY}3\n{CANARY}nobody\n")
    for options in ASKED:
        for exclude in (None, gone):
            result = READER.outcome(tmp_path / name, BROKEN[broken](content), exclude=exclude, **options)
            assert not READER.tells_canary(result), options
    if broken == "whole":
        read = READER.outcome(tmp_path / name, content, keep_names=True)
        assert isinstance(read, Responses) == (file not in ("headerless", "two columns"))
        assert not READER.tells_canary(read)


@pytest.mark.parametrize("file", FILES)
@quick(60)
@given(edits=few_edits(PIECES))
def test_files_with_a_few_wrong_bytes(tmp_path, file, edits):
    name, whole = FILES[file]
    content = edited(whole, edits)
    result = READER.outcome(tmp_path / name, content)
    # A first line that lost its end may hold half a row of data among good names, and names are told.
    if content.startswith(whole.partition(b"\n")[0] + b"\n"):
        assert not READER.tells_canary(result)


@quick(60)
@given(content=contents(PIECES))
def test_any_list_of_items(tmp_path, content):
    reader = Reader(read_items, lambda names: [])
    result = reader.outcome(tmp_path / "items.txt", content)
    if isinstance(result, list):
        assert result
        assert all(name.strip() == name != "" for name in result)


def test_a_list_of_items_as_a_spreadsheet_saves_it(tmp_path):
    (tmp_path / "items.txt").write_bytes("\ufeffÜbung 1\r\nÜbung 2\r\n\r\n".encode())
    (tmp_path / "latin.txt").write_bytes("Übung 1\nÜbung 2\n".encode("cp1252"))
    for name in ("items.txt", "latin.txt"):
        assert list(read_items(tmp_path / name).points) == ["Übung 1", "Übung 2"]
