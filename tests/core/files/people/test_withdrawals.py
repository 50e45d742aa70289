"""Learners who withdrew are gone before anything is checked or counted; their names are never told."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.core.files.columns import Columns
from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

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
    assert records(log) == KEPT
    note = "1 learners who withdrew were left out, with 2 rows; 1 names of the list are not in the log."
    assert note in log.origin.notes
    assert not any("ben" in text or "zoe" in text for text in log.origin.notes)


def test_names_with_commas(write):
    content = LOG.replace("ben", '"Bo, Ben"')
    log = read_log(write("log.csv", content), exclude=write("gone.txt", '"Bo, Ben"\n"Yu, Zoe"\n'))
    assert (
        "1 learners who withdrew were left out, with 2 rows; 1 names of the list are not in the log."
        in log.origin.notes
    )


def test_every_name_found(write):
    log = read_log(write("log.csv", LOG), exclude=write("gone.txt", "ben\nc c\n"))
    assert "2 learners who withdrew were left out, with 3 rows." in log.origin.notes


def test_lists_that_do_not_work(write, tmp_path):
    path = write("log.csv", LOG)
    with pytest.raises(UsageError, match="there is no file"):
        read_log(path, exclude=tmp_path / "absent.txt")
    with pytest.raises(DataError, match=r"gone.csv: the file is empty"):
        read_log(path, exclude=write("gone.csv", "\n"))
    with pytest.raises(DataError, match=r"gone.csv: the list .* removes nobody: none of its 2") as caught:
        read_log(path, exclude=write("gone.csv", "yan\nzoe\n"))
    assert "zoe" not in str(caught.value)
    assert caught.value.hint
    with pytest.raises(DataError, match=r"log.csv: no row is left"):
        read_log(path, exclude=write("gone.csv", "ana\nben\nc c\n"))


def test_applies_before_rows_are_merged_or_counted(write):
    content = "order_id,user_id,problem_id,correct,skill_id,skill_name\n1,7,1,1,1,a\n2,7,1,1,1,b\n3,8,1,1,,\n"
    log = read_log(write("log.csv", content), exclude=write("gone.txt", "8\n"))
    assert log.origin.notes[1:] == ("1 learners who withdrew were left out, with 1 rows.",)


@pytest.mark.parametrize(
    ("learners", "gone", "n_withdrawn", "n_absent"),
    [
        (["Ana", "Ben", "Cleo"], "ana\n BEN \n", 2, 0),
        (["007", "0012", "13"], "7\n12\n0013\n", 3, 0),
        (["Ana", "ANA", "Ben"], "ana\nben\n", 1, 1),  # who is meant?
        (["Ana", "ana", "Ben"], "ana\n", 1, 0),  # the one who is written like that
        (["07", "007", "8"], "7\n8\n", 1, 1),
        (["07", "7", "8"], "7\n", 1, 0),
        (["ana", "ben", "cleo"], "ana,ben\n", 2, 0),
        (["ana", "ben", "cleo"], "ana; ben ;zoe\n", 2, 1),
        (["ana", "ben", "cleo"], "ana\tben\ncleo\n", 3, 0),
        (["ana", "ben", "cleo"], "user: ana\nben, zoe\n", 1, 2),
        (["ana", "ben", "cleo"], "ana,moved\nben,left\n", 2, 2),
        (["ana", "ben", "cleo"], "user,ana,ben\n", 2, 0),
        (["Bo, Ben", "Ben", "Yu, Zoe"], "bo, ben\nLund, Ben\n", 1, 1),  # a comma ends no name here
        (["ana", "ben", "cleo"], "Kennung,reason\nana,moved\n", 1, 0),
    ],
)
def test_how_names_are_compared(write, learners, gone, n_withdrawn, n_absent):
    rows = "".join(f'"{learner}",{action},1\n' for learner in (*learners, "other") for action in "ab")
    columns = Columns(learner="Kennung")
    path = write("log.csv", "Kennung,skill,correct\n" + rows)
    log = read_log(path, **vars(columns), exclude=write("gone.csv", gone))
    assert (log.origin.n_withdrawn, log.origin.n_absent) == (n_withdrawn, n_absent)
    assert log.n_learners == len(learners) + 1 - n_withdrawn
    absent = f"; {n_absent} names of the list are not in the log"
    assert any(absent in note for note in log.origin.notes) == (n_absent > 0)


def test_without_a_list_nobody_is_counted(write):
    log = read_log(write("log.csv", LOG.replace("bad", "1")))
    assert (log.origin.n_withdrawn, log.origin.n_absent) == (0, 0)


pieces = st.sampled_from(["ana", "ben", "zoe", "user", "007", "7", *',;\t\n" |'])


@settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gone=st.lists(pieces, max_size=12).map("".join))
def test_any_list_removes_somebody_or_is_refused(write, gone):
    path = write("log.csv", LOG.replace("bad", "1"))
    with contextlib.suppress(DataError):
        log = read_log(path, exclude=write("gone.csv", gone))
        assert log.origin.n_withdrawn == 3 - log.n_learners > 0
