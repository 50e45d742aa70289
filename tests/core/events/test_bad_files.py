"""Files that cannot be read: every one ends in an error with a hint, naming a line or the file."""

from __future__ import annotations

import gzip
import io

import polars as pl
import pytest

from tests.support.workbook import workbook
from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

HEADER = "learner,action,outcome\n"
ROWS = "ana,add,1\nana,sub,0\n"


def parquet(n_rows: int = 100) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(
        {"learner": ["a"] * n_rows, "action": ["x"] * n_rows, "outcome": [1] * n_rows}
    ).write_parquet(buffer)
    return buffer.getvalue()


XLSX = workbook([["learner", "action", "outcome"], ["a", "x", 1], ["a", "y", 0]])
RUBBISH = bytes(range(256)) * 20


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.csv", b"", "log.csv: the file is empty"),
        ("log.csv", b"\n \n\n", "log.csv: the file is empty"),
        ("log.csv", b"\xa0\n", "log.csv: the file is empty"),
        ("log.csv", b"\xff\xfe", "log.csv: the file is empty"),
        ("log.csv", b"\xef\xbb\xbf", "log.csv: the file is empty"),
        ("log.csv", RUBBISH, "log.csv: line 1 holds bytes that do not occur in text"),
        (
            "log.csv",
            (HEADER + ROWS).encode() + b"b\x00n,add,1\n",
            "line 4 holds bytes that do not occur in text",
        ),
        ("log.csv", (HEADER + ROWS).encode() + b"b\xffn\x01,add,1\n", "line 4 holds bytes that do not occur"),
        (
            "log.csv",
            (HEADER + ROWS).encode() + b"b\x81n,add,1\n",
            "line 4 holds bytes that are neither UTF-8 nor",
        ),
        ("log.csv", b"\xff\xfea", "begins like UTF-16 text, but is not"),
        ("log.jsonl", b'{"a": 1}\n{"b": "\xff"}', "line 2 holds bytes that are not UTF-8"),
        ("log.csv", HEADER.encode(), "there is a header but no row"),
        ("log.csv", b"one line of text", "in no format that the reader knows"),
        (
            "log.csv",
            (HEADER + ROWS + "ben,add\n" + ROWS).encode(),
            "line 4 has 2 fields where the first line has 3",
        ),
        (
            "log.csv",
            (HEADER + ROWS + "ben,a,b,1\n").encode(),
            r"line 4 has 4 fields .* has 3 \(1 such lines\)",
        ),
        (
            "log.csv",
            (HEADER + 'ana,"a\nb",1\nx\n').encode(),
            "line 4 has 1 fields where the first line has 3",
        ),
        (
            "log.csv",
            (HEADER + ROWS + 'ben,"add,1\n').encode(),
            "quotation mark that opens on line 4 is never closed",
        ),
        (
            "log.csv",
            (HEADER + 'ben,"add" x,y",1\n').encode(),
            "a quotation mark on line 2 stands inside a field",
        ),
        (
            "log.csv",
            b"learner,action,outcome,action\na,x,1,y\na,x,1,y\n",
            "columns 2 and 4 have the same name",
        ),
        (
            "log.csv.gz",
            gzip.compress((HEADER + ROWS * 100).encode(), mtime=0)[:-12],
            "gzip compression is damaged",
        ),
        ("log.csv", b"\x1f\x8brubbish", "gzip compression is damaged"),
        ("log.parquet", parquet()[:-20], "Parquet file is damaged or cut short"),
        ("log.parquet", b"PAR1" + RUBBISH + b"PAR1", "Parquet file is damaged or cut short"),
        ("log.parquet", parquet(0), "there is no row"),
        ("log.xlsx", XLSX[: len(XLSX) // 2], "Excel workbook is damaged|zip archive"),
        ("log.xlsx", b"PK\x03\x04xl/" + RUBBISH, "Excel workbook is damaged"),
        ("log.xlsx", workbook([["learner", "action", "outcome"]]), "there is a header but no row"),
        ("log.xlsx", workbook([]), "no table|damaged|no row"),
        ("log.xlsx", workbook([["learner", "learner"], ["a", "b"]]), "columns 1 and 2 have the same name"),
        ("log.zip", b"PK\x03\x04" + RUBBISH, "zip archive and no Excel workbook"),
    ],
)
def test_bad_files(write, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_log(path)
    assert caught.value.hint
    assert name in caught.value.message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_group_that_changes_within_a_learner(write):

    path = write("log.csv", "learner,action,outcome,class\na,x,1,k\na,y,1,m\n")
    with pytest.raises(DataError, match=r"log.csv: the group column changes within a learner"):
        read_log(path, group="class")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="there is no file") as caught:
        read_log(tmp_path / "absent.csv")
    assert caught.value.hint
    with pytest.raises(UsageError, match="is a folder"):
        read_log(tmp_path)
    with pytest.raises(UsageError):
        read_log("a\0b")


def test_ragged_rows_are_found_across_chunks(write, monkeypatch):
    import understudy.core.files.delimited

    monkeypatch.setattr(understudy.core.files.delimited, "CHUNK", 7)
    content = HEADER + 'ana,"a ""b"",\nc",1\n\n' * 9 + ROWS
    assert read_log(write("log.csv", content)).n_rows == 11
    with pytest.raises(DataError, match="line 31 has 2 fields where the first line has 3"):
        read_log(write("log.csv", content + "ana,1\n"))
