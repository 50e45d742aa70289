"""Tables whose first line is a row already: columns by their numbers, and one clear hint."""

from __future__ import annotations

import pytest

from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

# In the shape of the process logs of a laboratory: session, student, exercise, activity, start, end, idle time, keys.
LAB = (
    "1, 1, Es_1_1, Study_Es_1_1, 2.10.2014 11:25:35, 2.10.2014 11:25:40, 5, 0\n"
    "1, 1, Es_1_1, Deeds_Es_1_1, 2.10.2014 11:25:33, 2.10.2014 11:25:34, 0, 7\n"
    "\n"
    "1, 2, Es_1_2, Other, 2.10.2014 11:25:36, 2.10.2014 11:25:41, 5, 0\n"
    "1, 2, Es_1_2, Blank, 2.10.2014 11:26:36, 2.10.2014 11:26:41, 5, 0\n"
)
COLUMNS = {"no_header": True, "no_outcomes": True, "learner": "2", "action": "4", "time": "5"}


def test_columns_are_named_by_their_numbers(write, records):
    log = read_log(write("session.csv", LAB), **COLUMNS)
    assert records(log) == [
        [("Deeds_Es_1_1", "2014-10-02T11:25:33"), ("Study_Es_1_1", "2014-10-02T11:25:35")],
        [("Other", "2014-10-02T11:25:36"), ("Blank", "2014-10-02T11:26:36")],
    ]
    assert [guess.declare for guess in log.origin.guesses] == [{"format": "csv"}]
    assert read_log(write("session.csv", LAB), format="csv", **COLUMNS).origin.guesses == ()
    tabs = read_log(write("session.tsv", LAB.replace(", ", "\t")), format="tsv", **COLUMNS)
    assert records(tabs) == records(log)
    semicolons = read_log(write("session.csv", LAB.replace(",", ";")), **COLUMNS)
    assert records(semicolons) == records(log)
    assert semicolons.origin.guesses[0].settings == ()


def test_a_single_row_is_a_row(write):
    assert read_log(write("session.csv", LAB.split("\n")[0] + "\n"), **COLUMNS).n_rows == 1


def test_a_first_line_that_looks_like_data_gets_a_hint(write):
    for asked in ({}, {"learner": "2", "action": "4"}):
        with pytest.raises(DataError, match="the first line looks like a row") as caught:
            read_log(write("session.csv", LAB.replace("\n\n", "\n")), **asked)
        assert caught.value.code == "no-header"
        assert caught.value.settings == ("no_header", "learner", "action")
        assert "Study" not in str(caught.value)
    with pytest.raises(DataError) as caught:
        read_log(write("log.csv", "pupil,task,mark\na,b,1\na,c,0\n"), learner="2")
    assert caught.value.code == "no-such-column"


def test_errors_name_the_line_of_the_file(write):
    with pytest.raises(DataError, match=r"column '5' orders the rows, .* on line 4"):
        read_log(write("session.csv", LAB.replace("2.10.2014 11:25:36", "noon")), **COLUMNS)
    with pytest.raises(DataError, match="line 4 has 7 fields where the first line has 8"):
        read_log(write("session.csv", LAB.replace("Es_1_2, Other", "Other")), **COLUMNS)
    with pytest.raises(DataError, match="asked for column '9'"):
        read_log(write("session.csv", LAB), **{**COLUMNS, "action": "9"})


def test_other_formats_have_names_of_their_own(write):
    with pytest.raises(UsageError, match="known by its own names"):
        read_log(write("log.json", "{}"), format="xapi", no_header=True)
    with pytest.raises(UsageError, match="a workbook or a Parquet file"):
        read_log(write("log.parquet", b"PAR1xx"), no_header=True)
