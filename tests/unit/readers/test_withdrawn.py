"""Learners who withdrew are gone before anything is checked or counted; their names are never told."""

from __future__ import annotations

import pytest

from understudy.errors import DataError, UsageError
from understudy.readers import read_log

LOG = "user,skill,correct\nana,a,1\nana,b,0\nben,a,bad\nben,b,1\nc c,a,1\n"
KEPT = [[("a", 1), ("b", 0)], [("a", 1)]]


@pytest.mark.parametrize(
    "gone",
    [
        "ben\nzoe\n",
        "user\nben\nzoe\n",
        "Learner\nben\nzoe",
        "zoe\nben\n",
        "user,reason\nben,moved\nzoe,\n",
        "reason;student id\nmoved;ben\n;zoe\n",
        '"ben"\n\n"zoe"\n',
        "\ufeffben\r\n zoe \r\n",
    ],
)
def test_leaves_them_out_first(write, records, gone):
    log = read_log(write("log.csv", LOG), exclude=write("gone.csv", gone))
    assert records(log.interactions) == KEPT
    note = "1 learners who withdrew were left out, with 2 rows; 1 names of the list are not in the log."
    assert note in log.notes
    assert not any("ben" in text or "zoe" in text for text in log.notes)


def test_names_with_commas(write):
    content = LOG.replace("ben", '"Bo, Ben"')
    log = read_log(write("log.csv", content), exclude=write("gone.txt", '"Bo, Ben"\n"Yu, Zoe"\n'))
    assert (
        "1 learners who withdrew were left out, with 2 rows; 1 names of the list are not in the log."
        in log.notes
    )


def test_every_name_found(write):
    log = read_log(write("log.csv", LOG), exclude=write("gone.txt", "ben\nc c\n"))
    assert "2 learners who withdrew were left out, with 3 rows." in log.notes


def test_lists_that_do_not_work(write, tmp_path):
    path = write("log.csv", LOG)
    with pytest.raises(UsageError, match="there is no file"):
        read_log(path, exclude=tmp_path / "absent.txt")
    with pytest.raises(DataError, match=r"gone.csv: the file is empty"):
        read_log(path, exclude=write("gone.csv", "\n"))
    with pytest.raises(DataError, match=r"gone.csv: found no column for the learner") as caught:
        read_log(path, exclude=write("gone.csv", "ben,moved\nzoe,left\n"))
    assert "zoe" not in str(caught.value)
    assert "ben" not in str(caught.value)
    with pytest.raises(DataError, match=r"log.csv: no row is left"):
        read_log(path, exclude=write("gone.csv", "ana\nben\nc c\n"))


def test_applies_before_rows_are_merged_or_counted(write):
    content = "order_id,user_id,problem_id,correct,skill_id,skill_name\n1,7,1,1,1,a\n2,7,1,1,1,b\n3,8,1,1,,\n"
    log = read_log(write("log.csv", content), exclude=write("gone.txt", "8\n"))
    assert log.notes[1:] == ("1 learners who withdrew were left out, with 1 rows.",)
