"""csv, tsv, Parquet and Excel: columns by known names or as given, every row where it belongs."""

from __future__ import annotations

import datetime as dt
import io
import re

import polars as pl
import pytest

from tests.support.workbook import workbook
from understudy.core.events.reading import formats
from understudy.core.files.columns import Columns
from understudy.core.files.times import DateOrder
from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

PLAIN = "learner,action,outcome\nana,add,1\nben,add,0\nana,sub,0\nben,mul,1\n"
PLAIN_RECORDS = [[("add", 1), ("sub", 0)], [("add", 0), ("mul", 1)]]


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("log.csv", PLAIN, "csv"),
        ("log.csv.gz", PLAIN, "csv"),
        ("log.dat", PLAIN, "csv"),
        ("no-line-feed-at-the-end.csv", PLAIN.rstrip(), "csv"),
        ("semicolons.csv", PLAIN.replace(",", ";"), "csv"),
        ("bars.csv", PLAIN.replace(",", "|"), "csv"),
        ("called.csv", PLAIN.replace(",", "\t"), "tsv"),
        ("log.tsv.gz", PLAIN.replace(",", "\t"), "tsv"),
        ("mark.csv", b"\xef\xbb\xbf" + PLAIN.encode(), "csv"),
        ("utf16.csv", PLAIN.encode("utf-16"), "csv"),
        ("crlf.csv", PLAIN.replace("\n", "\r\n"), "csv"),
        ("cr.csv", PLAIN.replace("\n", "\r"), "csv"),
        ("blank.csv", "\n" + PLAIN.replace("\nben,mul", "\n\n\nben,mul") + "\n\n", "csv"),
        ("quoted.csv", PLAIN.replace("add", '"add"').replace("learner", '"learner"'), "csv"),
        ("spaces.csv", PLAIN.replace(",", " , "), "csv"),
        ("cases.csv", PLAIN.replace("learner", "Student_ID").replace("outcome", "Is Correct"), "csv"),
    ],
)
def test_delimited_text(write, records, name, content, format):
    log = read_log(write(name, content))
    assert log.origin.format == format
    assert records(log) == PLAIN_RECORDS
    assert log.origin.notes[0].startswith(f"Read as {format}:")


def test_quotation_marks_enclose_separators_and_line_breaks(write, records):
    content = 'user,skill,correct\nana,"add, then\nsub",1\nana,"say ""a""",0\n'
    log = read_log(write("log.csv", content))
    assert records(log) == [[("add, then\nsub", 1), ('say "a"', 0)]]


def test_quotation_marks_as_ordinary_characters(write, records):
    log = read_log(write("log.tsv", 'user\tskill\tcorrect\nana\t5" pipe\t1\nana\t"half\t0\n'))
    assert records(log) == [[('5" pipe', 1), ('"half', 0)]]
    assert any("Quotation marks" in note for note in log.origin.notes)


def test_latin_text_is_read_with_a_note(write, records):
    log = read_log(write("log.csv", PLAIN.replace("mul", "Brüche").encode("latin-1")))
    assert records(log)[1] == [("add", 0), ("Brüche", 1)]
    assert "Read as Windows-1252 (Latin-1): 1 line not in UTF-8." in log.origin.notes
    windows = read_log(write("log.csv", PLAIN.replace("mul", "“Brüche”").encode("cp1252")))
    assert records(windows)[1] == [("add", 0), ("“Brüche”", 1)]


def test_user_item_skill_keeps_the_item(write, records):
    log = read_log(write("log.csv", "user,item,skill,correct\n7,p1,add,1\n7,p2,sub,0\n8,p1,add,1\n"))
    assert log.origin.format == "user-item-skill"
    assert dict(log.origin.columns) == {
        "learner": "user",
        "action": "skill",
        "outcome": "correct",
        "item": "item",
    }
    assert records(log) == [[("add", 1, "p1"), ("sub", 0, "p2")], [("add", 1, "p1")]]
    asked = read_log(write("log.csv", "user,item,skill,correct\n7,p1,a,1\n7,p2,a,0\n"), action="item")
    assert records(asked) == [[("p1", 1), ("p2", 0)]]


def test_an_item_is_the_action_if_there_is_nothing_better(write, records):
    log = read_log(write("log.csv", "Anon Student Id,problem-id,success\n7,p1,true\n7,p2,no\n"))
    assert dict(log.origin.columns) == {
        "learner": "Anon Student Id",
        "action": "problem-id",
        "outcome": "success",
    }
    assert records(log) == [[("p1", 1), ("p2", 0)]]


def test_columns_as_given(write, records):
    content = "who,what,how,where,class\na,x,1,p,k1\nb,y,0,p,k2\na,y,0,q,k1\n"
    asked = Columns(learner="who", action="What", outcome="how", item="where", group="class")
    log = read_log(write("log.csv", content), **vars(asked))
    assert records(log) == [[("x", 1, "p"), ("y", 0, "q")], [("y", 0, "p")]]
    assert [log.groups[code] for code in log.group] == ["k1", "k2"]
    assert log.origin.columns["action"] == "what"


def test_group_is_never_guessed_and_other_columns_are_not_kept(write):
    content = "learner,action,outcome,group,comment\na,x,1,g,secret\na,y,0,g,secret\n"
    log = read_log(write("log.csv", content))
    assert set(log.origin.columns) == {"learner", "action", "outcome"}
    assert log.group is None
    assert "secret" not in repr(vars(log))


def test_a_column_that_is_not_there(write):
    with pytest.raises(
        DataError, match=r"log.csv: asked for column 'skil'.*found 'learner', 'action', 'outcome'"
    ):
        read_log(write("log.csv", PLAIN), action="skil")
    with pytest.raises(
        DataError, match="no column for the action and the outcome; found 'learner' and 1 other col"
    ):
        read_log(write("log.csv", "learner,x\na,1\na,2\n"))
    with pytest.raises(UsageError, match="two roles"):
        read_log(write("log.csv", PLAIN), action="learner", learner="learner")


def test_a_program_is_given_the_facts(write):
    """Which roles have no column, which column was asked for, and how many cells are empty."""
    with pytest.raises(DataError) as caught:
        read_log(write("log.csv", PLAIN.replace("outcome", "remark")))
    assert (caught.value.code, caught.value.fields) == (
        "no-such-column",
        {"roles": ["outcome"], "taken": [0, 1], "suggested": ["outcome"], "declare": {"outcome": "remark"}},
    )
    with pytest.raises(DataError) as caught:
        read_log(write("log.csv", PLAIN), action="skill")
    assert (caught.value.code, caught.value.fields) == (
        "no-such-column",
        {"roles": ["action"], "column": "skill", "taken": [], "suggested": []},
    )
    with pytest.raises(DataError) as caught:
        read_log(write("log.csv", PLAIN.replace("add", "")))
    assert (caught.value.code, caught.value.fields) == (
        "empty-cells",
        {"role": "action", "column": "action", "n_rows": 2, "declare": {"skip_incomplete": True}},
    )


def test_without_a_header_no_value_is_named(write):
    with pytest.raises(DataError) as caught:
        read_log(write("log.csv", "ana,add,1\nben,sub,0\nana,sub,1\n"))
    assert "found 3 columns, none with a name that the reader knows" in str(caught.value)
    assert "ana" not in str(caught.value)
    with pytest.raises(DataError) as caught:
        read_log(write("log.csv", "ana,problem,correct\nben,skill,incorrect\nana,sub,correct\n"))
    assert "found no column for the learner; found 'problem', 'correct' and 1 other column" in str(
        caught.value
    )
    assert "ana" not in str(caught.value)


@pytest.mark.parametrize(
    ("first", "second", "declared"),
    [
        ("2024-05-31 14:05:09", "2024-05-31 14:05:10", {}),
        ("2024-05-31T14:05:09Z", "2024-05-31T14:05:10Z", {}),
        ("2024-05-31T16:05:09.000+02:00", "2024-05-31T16:05:10.000+02:00", {}),
        ("2024-05-31T09:05:09-0500", "2024-05-31T09:05:10-0500", {}),
        ("2024/5/31 14:05:09", "2024/5/31 14:05:10", {}),
        ("31.05.2024 14:05:09", "31.05.2024 14:05:10", {}),
        ("31 May 2024 14:05:09", "31 May 2024 14:05:10", {}),
        ("5/31/2024 2:05:09 PM", "5/31/2024 2:05:10 PM", {"date_order": DateOrder.month_first}),
        ("31/05/2024 14:05:09", "31/05/2024 14:05:10", {"date_order": DateOrder.day_first}),
        ("2024-05-31 14:05:09 CEST", "2024-05-31 14:05:10 CEST", {}),
        ("1717164309", "1717164310", {}),
        ("1717164309000", "1717164310000.0", {"time_unit": "ms"}),
    ],
)
def test_times_order_the_rows(write, records, first, second, declared):
    content = f"user,skill,correct,timestamp\nana,b,1,{second}\nana,a,0,{first}\n"
    log = read_log(write("log.csv", content), **declared)
    times = ("2024-05-31T14:05:09", "2024-05-31T14:05:10")
    assert records(log) == [[("a", 0, times[0]), ("b", 1, times[1])]]
    assert "The rows of each learner are in the order of column 'timestamp'." in log.origin.notes


def test_the_name_of_a_column_states_its_unit(write, records):
    path = write("log.csv", "user,skill,correct,time_ms\nana,b,1,1717164310000\nana,a,0,1717164309000\n")
    assert [action for action, *_ in records(read_log(path))[0]] == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        ("soon", "later", 2),
        ("2024-05-31 14:05", "later", 3),
        ("2024-05-31 14:05", "2024-13-31 14:05", 3),
        ("2024-05-31 14:05", "", 3),
        ("3/4/2024", "4/4/2024", 2),
        ("31/4/2024", "13/4/2024", 2),
        ("12", "9", 2),
        ("1717164309", "inf", 3),
        ("1717164309", "1717164309000", 3),
    ],
)
def test_a_time_that_cannot_be_read_stops_or_concerns_its_own_row(write, records, first, second, line):
    content = f"user,skill,correct,time\nana,b,1,{first}\nana,a,0,{second}\nben,c,1,2024-05-31\nben,d,1,2024-06-01\n"
    path = write("log.csv", content)
    with pytest.raises(DataError, match=f"column 'time' orders the rows.*on line {line} ") as caught:
        read_log(path)
    assert caught.value.code == "not-a-time"
    only_order = "/4/2024" in first and "31/" not in first
    others = () if only_order else ("time_unit", "in_order")
    assert {"date_order", "set_aside", *others} <= set(caught.value.settings)
    assert caught.value.fields.get("declare") == ({"date_order": "ORDER"} if only_order else None)
    assert records(read_log(path, in_order=True)) == [[("b", 1), ("a", 0)], [("c", 1), ("d", 1)]]
    log = read_log(path, set_aside=True)
    # The learner whose times cannot be read is still one of the learners.
    assert log.n_learners == 2
    readable = [["b"], ["c", "d"]] if line == 3 else [["c", "d"], []]
    assert [[action for action, *_ in rows] for rows in records(log)] == readable
    assert any(note.startswith("Set aside: ") for note in log.origin.notes)


def test_numbers_of_a_column_that_was_named_may_count_from_any_start(write, records):
    path = write("log.csv", "user,skill,correct,time\nana,b,1,12\nana,a,0,9\n")
    assert [action for action, *_ in records(read_log(path, time="time"))[0]] == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("2024-05-31 14:05", "2024-05-31 14:05Z", "mix time zones"),
        ("2024-05-31T14:05:00+02:00", "2024-05-31T14:05:00Z", "mix time zones"),
    ],
)
@pytest.mark.parametrize("asked", [Columns(), Columns(time="time")])
def test_mixed_time_zones_are_refused(write, asked, first, second, reason):
    path = write("log.csv", f"user,skill,correct,time\nana,b,1,{first}\nana,a,0,{second}\n")
    with pytest.raises(DataError, match=re.escape(f"log.csv: the times in column 'time' {reason}")):
        read_log(path, **vars(asked))


def test_parquet(write, records):
    frame = pl.DataFrame(
        {
            "student": [1.0, 2.0, 1.0, None],
            "skill": pl.Series(["a", "b", "b", "a"], dtype=pl.Categorical),
            "correct": [True, False, False, True],
            "time": [dt.datetime(2024, 5, 31, hour) for hour in (3, 2, 1, 0)],
            "answers": [[1], [2], [3], [4]],
        }
    )
    buffer = io.BytesIO()
    frame.head(3).write_parquet(buffer)
    log = read_log(write("log.bin", buffer.getvalue()))
    assert log.origin.format == "parquet"
    hours = [f"2024-05-31T0{hour}:00:00" for hour in range(4)]
    assert records(log) == [[("b", 0, hours[1]), ("a", 1, hours[3])], [("b", 0, hours[2])]]
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    with pytest.raises(DataError, match=r"log.parquet: column 'student' has no value on row 4"):
        read_log(write("log.parquet", buffer.getvalue()))
    with pytest.raises(DataError, match="a column of type List cannot be read as text"):
        read_log(write("log.parquet", buffer.getvalue()), action="answers")


def test_excel(write, records):
    rows = [
        ["Student ID", "Skill", "Correct", "Date"],
        [101, "a", 1, dt.datetime(2024, 5, 31, 12)],
        [102, 7, 0, dt.datetime(2024, 5, 31, 11)],
        [],
        [101, "b", 0, dt.datetime(2024, 5, 31, 10)],
    ]
    log = read_log(write("log.xlsx", workbook(rows, "other")))
    assert log.origin.format == "excel"
    noon = "2024-05-31T1{}:00:00"
    assert records(log) == [
        [("b", 0, noon.format(0)), ("a", 1, noon.format(2))],
        [("7", 0, noon.format(1))],
    ]
    assert "Only the first of 2 sheets was read." in log.origin.notes
    rows[4][2] = "maybe"
    with pytest.raises(
        DataError, match=r"log.xlsx: column 'Correct' holds something other than 0 and 1 on row 5"
    ):
        read_log(write("log.xlsx", workbook(rows)))


def test_format_as_asked(write):
    path = write("log.txt", PLAIN)
    log = read_log(path, format="csv")
    assert (log.origin.format, log.origin.notes) == ("csv", ("Read as csv, as asked.",))
    with pytest.raises(UsageError, match="there is no format 'cvs'") as caught:
        read_log(path, format="cvs")
    assert all(name in caught.value.hint for name in formats())
    with pytest.raises(DataError):
        read_log(path, format="parquet")


def test_single_rows_are_admitted_on_request(write, records):
    path = write("log.csv", "learner,action,outcome\na,x,1\nb,y,0\n")
    with pytest.raises(DataError, match="different value on each of the 2 rows"):
        read_log(path)
    assert records(read_log(path, single_rows=True)) == [[("x", 1)], [("y", 0)]]


def test_lines_are_named_as_an_editor_counts_them(write):
    content = 'learner,action,outcome\nana,"a\nb",1\n\nana,b,1\nana,c,\n'
    with pytest.raises(DataError, match=r"column .outcome. has no value on line 6 \(1 such row\)"):
        read_log(write("log.csv", content))
    with pytest.raises(DataError, match="column 'action' has no value on line 3"):
        read_log(write("log.csv", "learner,action,outcome\nana,a,1\nana,,1\n"))
