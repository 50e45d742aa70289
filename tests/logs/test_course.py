"""The table that declares a course: chapters and positions of actions."""

import numpy as np
import pytest

from understudy.errors import UnderstudyError
from understudy.logs.action_names import read_names
from understudy.logs.interactions import POOLED
from understudy.logs.reading import read_log


def written(tmp_path, text):
    path = tmp_path / "actions.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_list_of_names_declares_no_order(tmp_path):
    assert read_names(written(tmp_path, "b\na\n\nb\n")) == (["b", "a"], None)
    assert read_names(written(tmp_path, "action\nchapter one\n")) == (["action", "chapter one"], None)


@pytest.mark.parametrize(
    "text",
    [
        "action,chapter,position\nc,Two,1\na,One,2\nb,One,1\n",
        "action;position;chapter\nc;1;Two\na;2;One\nb;1,0;One\n",
        "\ufeffAction\tChapter\tPosition\r\nc\tTwo\t1\r\na\tOne\t2\r\nb\tOne\t1\r\n",
    ],
)
def test_chapters_are_in_the_order_of_the_table_and_actions_by_position(tmp_path, text):
    assert read_names(written(tmp_path, text)) == (["c", "b", "a"], [0, 1, 1])


def test_without_positions_lines_are_in_order_and_without_chapters_there_is_one(tmp_path):
    assert read_names(written(tmp_path, 'action,chapter\n"b, c",One\na,One\n')) == (["b, c", "a"], [0, 0])
    assert read_names(written(tmp_path, "action,position\nb,2\na,1\n")) == (["a", "b"], [0, 0])


@pytest.mark.parametrize("line", ["a,One,first", "a,One,", ",One,1", "b,One,3", "a,One,nan"])
def test_a_line_that_cannot_be_used_is_named_by_its_number(tmp_path, line):
    with pytest.raises(UnderstudyError, match="line 3") as error:
        read_names(written(tmp_path, f"action,chapter,position\nb,One,1\n{line}\n"))
    assert error.value.code == "bad-course"


def test_whatever_the_file_holds_there_is_a_list_or_an_error_of_ours(tmp_path):
    """Fuzzed: bytes, and tables with cells, marks and lines in any order."""
    rng = np.random.default_rng(0)
    parts = [
        "action",
        "chapter",
        "position",
        ",",
        ";",
        "\t",
        "\n",
        '"',
        "\r\n",
        "1",
        "nan",
        "-2,5",
        "a",
        "é",
        " ",
        "\0",
    ]
    path = tmp_path / "actions.csv"
    for turn in range(400):
        head = "action,chapter,position\n" if turn % 2 else ""
        text = head + "".join(rng.choice(parts, int(rng.integers(0, 25))))
        path.write_bytes(text.encode() if turn % 5 else rng.bytes(int(rng.integers(0, 40))))
        try:
            names, chapters = read_names(path)
        except UnderstudyError:
            continue
        assert len(names) == len(set(names))
        assert chapters is None or len(chapters) == len(names)
        assert chapters is None or chapters == sorted(chapters)


def test_a_log_has_the_declared_course(tmp_path):
    (tmp_path / "log.csv").write_text(
        "learner,action,outcome\n" + "".join(f"{who},{what},1\n" for who in "xy" for what in "abz"),
        encoding="utf-8",
    )
    table = written(tmp_path, "action,chapter,position\nb,One,1\na,One,2\n")
    log = read_log(tmp_path / "log.csv", actions_file=table)
    assert log.actions == ("b", "a", POOLED)
    assert log.chapters.tolist() == [0, 0, 1]
    assert log.declared
