"""The table that declares a course: chapters and positions of actions."""

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError, UnderstudyError
from understudy.logs.declared.course import Course, read_course
from understudy.logs.generators.baselines import Markov
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import POOLED
from understudy.logs.reading import read_log


def written(tmp_path, text):
    path = tmp_path / "actions.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_list_of_names_declares_no_order(tmp_path):
    assert read_course(written(tmp_path, "b\na\n\nb\n")) == Course(("b", "a"))
    assert read_course(written(tmp_path, "action\nchapter one\n")) == Course(("action", "chapter one"))


@pytest.mark.parametrize(
    "text",
    [
        "action,chapter,position\nc,Two,1\na,One,2\nb,One,1\n",
        "action;position;chapter\nc;1;Two\na;2;One\nb;1,0;One\n",
        "\ufeffAction\tChapter\tPosition\r\nc\tTwo\t1\r\na\tOne\t2\r\nb\tOne\t1\r\n",
    ],
)
def test_chapters_are_in_the_order_of_the_table_and_actions_by_position(tmp_path, text):
    assert read_course(written(tmp_path, text)) == Course(("c", "b", "a"), (0, 1, 1))


def test_without_positions_lines_are_in_order_and_without_chapters_there_is_one(tmp_path):
    assert read_course(written(tmp_path, 'action,chapter\n"b, c",One\na,One\n')) == Course(
        ("b, c", "a"), (0, 0)
    )
    assert read_course(written(tmp_path, "action,position\nb,2\na,1\n")) == Course(("a", "b"), (0, 0))


@pytest.mark.parametrize("line", ["a,One,first", "a,One,", ",One,1", "b,One,3", "a,One,nan"])
def test_a_line_that_cannot_be_used_is_named_by_its_number(tmp_path, line):
    with pytest.raises(UnderstudyError, match="line 3") as error:
        read_course(written(tmp_path, f"action,chapter,position\nb,One,1\n{line}\n"))
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
        head = ("", "action,chapter,position\n", "action,outcome\n")[turn % 3]
        text = head + "".join(rng.choice(parts, int(rng.integers(0, 25))))
        path.write_bytes(text.encode() if turn % 5 else rng.bytes(int(rng.integers(0, 40))))
        try:
            course = read_course(path)
        except UnderstudyError:
            continue
        names, chapters = course.actions, course.chapters
        assert len(names) == len(set(names))
        assert chapters is None or len(chapters) == len(names)
        assert chapters is None or list(chapters) == sorted(chapters)
        assert set(course.with_outcome or ()) <= set(names)


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


def test_which_actions_have_outcomes_may_be_public(tmp_path):
    """Then it is exact however few the learners are, and only rows that may have an outcome are asked about."""
    rng = np.random.default_rng(5)
    rows = []
    for learner in range(120):
        for _ in range(int(rng.integers(10, 40))):
            graded = rng.random() < 0.15
            action = f"problem {rng.integers(12)}" if graded else f"page {rng.integers(48)}"
            rows.append(f"s{learner},{action},{int(rng.random() < 0.7) if graded else ''}")
    (tmp_path / "log.csv").write_text("\n".join(["learner,action,outcome", *rows, "s1,page 1,1"]))
    names = [*(f"problem {n},yes" for n in range(12)), *(f"page {n},no" for n in range(48))]
    table = written(tmp_path, "\n".join(["action,outcome", *names]))
    assert read_course(table).chapters is None
    log = read_log(tmp_path / "log.csv", actions_file=table, empty_outcomes=True)
    assert any("as declared: 1 row, left out" in note for note in log.origin.notes)
    for kind in (RunsDP(8.0), Markov()):
        frame = kind.fit(log, rng, seeded_noise(rng)).sample(None, rng).to_polars()
        problems = frame["action"].str.starts_with("problem")
        assert frame.filter(~problems & (frame["action"] != POOLED))["outcome"].is_null().all()
        outcomes = frame.filter(problems)["outcome"]
        assert outcomes.is_null().mean() < 0.1
        assert (outcomes.drop_nulls() == "yes").mean() == pytest.approx(0.7, abs=0.1)
    with pytest.raises(DataError, match="line 2: whether the action has an outcome is not said"):
        read_course(written(tmp_path, "action,outcome\na,perhaps\n"))
    # A log all of whose rows have outcomes is as it was.
    whole = tmp_path / "whole.csv"
    whole.write_text("learner,action,outcome\nx,a,1\nx,b,0\ny,a,1\ny,a,0\n")
    assert (
        read_log(whole, actions_file=written(tmp_path, "action,outcome\na,yes\nb,no\n")).outcome is not None
    )
