"""Suggestions for columns: by similar names and by content; names only where the first row is a header for sure."""

from itertools import combinations_with_replacement

import polars as pl
import pytest

from understudy.core.files import suggestions
from understudy.core.files.times import DateOrder, read_each_time
from understudy.errors import DataError
from understudy.exams.formats.reading import read_responses
from understudy.logs.reading import read_log

LINES = [f"s{n // 4},t{n % 3},{n % 2},2024-05-{1 + n % 28:02}" for n in range(24)]


def refusal(tmp_path, header, lines=LINES, **asked):
    path = tmp_path / "log.csv"
    path.write_text("\n".join([header, *lines] if header else lines) + "\n")
    with pytest.raises(DataError) as caught:
        read_log(path, **asked)
    return caught.value


@pytest.mark.parametrize(
    ("first", "others"), [("ja", "nein"), ("true", "false"), ("ok", "falsch"), ("richtig", "falsch")]
)
def test_a_first_row_that_may_be_a_learners_is_never_repeated(tmp_path, first, others):
    lines = [f"Anna Muster{n // 3},skill{n % 3},{others}" for n in range(30)]
    error = refusal(tmp_path, f"Maria Meier,fractions,{first}", lines)
    assert "Maria" not in f"{error} {error.hint} {error.fields}"


def test_all_columns_by_content(tmp_path):
    error = refusal(tmp_path, "a,b,c,d")
    assert error.fields["declare"] == {"outcome": "c", "time": "d", "learner": "a", "action": "b"}
    assert "column 1 is the learner (it repeats its values row after row)" in error.hint


@pytest.mark.parametrize(
    ("header", "asked", "declare"),
    [
        ("studnt,skills,ok,x", {}, {"outcome": "ok", "time": "x", "learner": "studnt", "action": "skills"}),
        ("wer,was,ok,x", {"learner": "wr"}, {"learner": "wer"}),
        ("wer,was,ok,x", {"outcome": "k"}, {"outcome": "ok"}),
        ("wer,was,ok,x", {"learner": "zebra"}, None),
    ],
)
def test_similar_names(tmp_path, header, asked, declare):
    assert refusal(tmp_path, header, **asked).fields.get("declare") == declare


def test_a_similar_name_in_an_exam_sheet(tmp_path):
    path = tmp_path / "exam.csv"
    path.write_text("pupil code,Q1,Q2\na,1,0\nb,0,1\n")
    with pytest.raises(DataError, match="asked for column 'pupil cod'") as caught:
        read_responses(path, learner="pupil cod")
    assert caught.value.fields["declare"] == {"learner": "pupil code"}


def test_two_columns_that_could_be_the_outcome_are_not_chosen_from(tmp_path):
    lines = [f"{line},{n % 2}" for n, line in enumerate(LINES)]
    error = refusal(tmp_path, "learner,action,a,time,b", lines)
    assert "declare" not in error.fields
    assert "perhaps" not in error.hint


@pytest.mark.parametrize("line", [None, "s0,t1,,2024-05-01", "s0,t1,n/a,2024-05-01"])
def test_a_row_of_data_in_the_headers_place_is_not_quoted(tmp_path, line):
    error = refusal(tmp_path, "", LINES if line is None else [line, *LINES])
    assert "declare" not in error.fields
    assert not {"s0", "t1", "t0"} & set(str(error).replace(",", " ").replace("'", " ").split())


def test_a_name_that_is_a_word_for_right_is_a_name(tmp_path):
    """ "Richtig?" over true and false; a first line without names has its words again below."""
    lines = [f"s{n // 4},t{n % 3},{('VRAI', 'FAUX')[n % 2]}" for n in range(24)]
    error = refusal(tmp_path, "learner,action,juste", lines)
    assert error.fields["declare"] == {"outcome": "juste"}
    error = refusal(tmp_path, "learner,action,Vrai", lines)
    assert "declare" not in error.fields
    assert "the first line seems to hold data" in error.hint


def test_a_pass_mark_is_asked_for(tmp_path):
    lines = [f"s{n // 4},t{n % 3},{10 + n}" for n in range(24)]
    error = refusal(tmp_path, "learner,action,total points", lines)
    assert error.fields["declare"] == {"outcome": "total points", "pass_from": "NUMBER"}
    declared = refusal(tmp_path, "learner,action,total points", lines, pass_from=20)
    assert declared.fields["declare"] == {"outcome": "total points"}


@pytest.mark.parametrize("asked", [{}, {"outcome": "Endnote"}])
def test_grades_of_which_1_may_be_the_best_are_a_question(tmp_path, asked):
    lines = [f"s{n // 4},t{n % 3},{1 + n % 6}" for n in range(24)]
    error = refusal(tmp_path, "learner,action,Endnote", lines, **asked)
    assert error.fields["declare"]["pass_from"] == "<=NUMBER"
    assert "if 1 is the best" in error.hint.lower()


@pytest.mark.parametrize(
    ("header", "learner"),
    [
        ("candidate,question,score", None),  # known by its name: not lacking
        ("ident,Ereigniskontext,ok", "ident"),
        ("task name,ident,ok", None),
        ("points,ident,ok", None),
    ],
)
def test_a_column_that_is_called_otherwise_is_not_the_learner(tmp_path, header, learner):
    error = refusal(tmp_path, header, [line.rsplit(",", 1)[0] for line in LINES])
    assert error.fields.get("declare", {}).get("learner") == learner
    assert "time" not in error.fields["suggested"]


def test_a_log_in_the_order_of_time_has_no_learner_by_content(tmp_path):
    """Activities stay for a while, and learners alternate: what repeats row after row is not the learner."""
    lines = [f"x{n % 7},y{n // 6 % 3},{n % 2}" for n in range(42)]
    assert "learner" not in refusal(tmp_path, "a,b,ok", lines).fields["suggested"]


def test_columns_that_identify_people_are_suggested(tmp_path):
    lines = [f"t{n % 3},{n % 2},p{n % 5}@example.org" for n in range(24)]
    assert refusal(tmp_path, "task,correct,contact", lines).fields["declare"] == {"learner": "contact"}


@pytest.mark.oracle
def test_a_column_holds_times_if_some_order_reads_every_cell():
    cells = ["s1", "2024-05-31 10:00", "31.12.2024", "12/31/2024", "31/12/2024", "3.4", "\u00a01/2/24 "]
    found = set()
    for pair in combinations_with_replacement(cells, 2):
        column = pl.Series(pair)
        orders = [read_each_time(column, order=order) for order in (None, *DateOrder)]
        found.add(expected := any(not times.null_count() for times in orders))
        assert suggestions._are_times(column) == expected, pair
    assert found == {True, False}
