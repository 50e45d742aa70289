"""Formats in which data for research is published, each on a small invented file."""

from __future__ import annotations

import pytest

from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

ASSISTMENTS = """order_id,assignment_id,user_id,assistment_id,problem_id,original,correct,skill_id,skill_name
30,1,501,9,71,1,0,11,Fractions
30,1,501,9,71,1,0,12,Addition
10,1,501,9,70,1,1,12,Addition
20,1,502,9,70,1,1,12,Addition
25,1,502,9,72,1,1,,
40,1,502,9,73,1,0,13,
"""


def test_assistments_merges_the_skills_of_an_attempt(write, records):
    log = read_log(write("skill_builder.csv", ASSISTMENTS))
    assert log.origin.format == "assistments"
    assert records(log) == [
        [("Addition", 1, "70"), ("Addition+Fractions", 0, "71")],
        [("Addition", 1, "70"), ("13", 0, "73")],
    ]
    assert log.origin.notes[1:3] == (
        "1 rows without a skill were dropped.",
        "1 rows were merged: the skills of one attempt are one action, by '+'.",
    )


def test_assistments_keeps_a_row_per_skill(write, records):
    log = read_log(write("skill_builder.csv", ASSISTMENTS), keep_skills=True)
    assert records(log)[0] == [
        ("Addition", 1, "70"),
        ("Fractions", 0, "71"),
        ("Addition", 0, "71"),
    ]


def test_assistments_in_latin_1_with_another_action(write, records):
    content = ASSISTMENTS.replace("Fractions", "Brüche").encode("latin-1")
    log = read_log(write("skill_builder.csv", content))
    assert "Addition+Brüche" in log.actions
    log = read_log(write("skill_builder.csv", content), action="skill_id", item="assistment_id")
    assert records(log)[0] == [("12", 1, "9"), ("11+12", 0, "9")]


def test_assistments_that_contradict_themselves(write):
    content = ASSISTMENTS.replace("71,1,0,12", "71,1,1,12")
    assert "1 attempts have outcomes that differ" in " ".join(
        read_log(write("log.csv", content)).origin.notes
    )
    with pytest.raises(DataError, match="column 'order_id' holds something other than a number on line 4"):
        read_log(write("log.csv", ASSISTMENTS.replace("10,1,501", "x,1,501")))
    with pytest.raises(DataError, match="no column 'order_id'"):
        read_log(write("log.csv", ASSISTMENTS.replace("order_id", "order")), format="assistments")


THREE_LINES = "3\n5,6,5\n1,0,1\n0\n\n\n2,\n6,8,\n0,1,\n"


@pytest.mark.parametrize("content", [THREE_LINES, THREE_LINES + "\n", THREE_LINES.replace("\n", "\r\n")])
def test_three_lines(write, records, content):
    log = read_log(write("train.txt", content))
    assert log.origin.format == "three-line"
    # The learner without an attempt is a learner all the same, the last one here.
    assert records(log) == [[("5", 1), ("6", 0), ("5", 1)], [("6", 0), ("8", 1)], []]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("2\n1,2\n1,0\n2\n1,2\n", "the learner that begins on line 4 is incomplete"),
        ("2\n1,2\n1,0\n3\n1,2\n1,0\n", "line 5 has not as many values"),
        ("2\n1,2\n1,0\n2\n1,2\n1\n", "line 6 has not as many values"),
        ("2\n1,2\n1,0\nx\n1,2\n1,0\n", "line 4 is not a number of attempts"),
        ("2\n1,2\n1,0\n2\n1,2\n1,7\n", "column 'third line' holds something other than 0 and 1 on line 6"),
        ("2\n1,2\n1,0\n2\n1,\n1,0\n", "line 5 has not as many values"),
        ("0\n\n\n", "no row is left"),
    ],
)
def test_three_lines_that_do_not_fit(write, content, message):
    with pytest.raises(DataError, match=message):
        read_log(write("train.txt", content), format="three-line")


SLAM = """# prompt:Yo soy
# user:AbC+1  countries:CO  days:0.003  client:web  session:lesson  format:reverse_translate  time:9
id0101  I           PRON    Case=Nom|Number=Sing  nsubj       4  0
id0102  am          VERB    Mood=Ind              cop         4  1

# user:XyZ/2  countries:MX  days:0.010  client:ios  session:lesson  format:listen  time:5
id0201  Am          VERB    Mood=Ind              cop         4  0

# user:AbC+1  countries:CO  days:1.003  client:web  session:lesson  format:listen  time:null
id0301  ÉL          PRON    Case=Nom              nsubj       4  1
"""


def test_slam(write, records):
    log = read_log(write("train.gz", SLAM))
    assert log.origin.format == "slam"
    assert records(log) == [[("i", 1), ("am", 0), ("él", 0)], [("am", 1)]]
    assert dict(log.origin.columns) == {"learner": "user", "action": "token", "outcome": "label"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n".join(line[:-3] if line.startswith("id") else line for line in SLAM.split("\n")), "no labels"),
        (SLAM.replace("cop         4  1", "cop         4  2"), "line 4 has a label other than 0 and 1"),
        (
            SLAM.replace("VERB    Mood=Ind              cop         4  1", "VERB"),
            "line 4 has not the 7 fields",
        ),
        (SLAM.split("\n", 2)[2], "line 1 comes before any line with 'user:'"),
        ("# user:AbC+1  days:0\n", "there is no token"),
    ],
)
def test_slam_that_does_not_fit(write, content, message):
    with pytest.raises(DataError, match=message):
        read_log(write("train", content), format="slam")


def test_formats_without_columns_refuse_columns(write):
    for content in (SLAM, THREE_LINES):
        with pytest.raises(UsageError, match="no columns to choose from, but one was given for the action"):
            read_log(write("train", content), action="x")


DATASHOP = (
    "Row\tAnon Student Id\tTime\tProblem Name\tStep Name\tOutcome\tKC (Default)\tKC Category (Default)"
    "\tKC (Default)\tKC (Other)\n"
    "1\tStu_a1\t2024-05-31 10:00:02\tP1\tS1\tCORRECT\tmul\t\tadd\tz\n"
    "2\tStu_a1\t2024-05-31 10:00:01.5\tP1\tS1\tINCORRECT\tadd~~mul\t\t\tz\n"
    "3\tStu_b2\t2024-05-31 10:00:03\tP1\tS2\tHINT\tadd\t\t\tz\n"
    "4\tStu_b2\t2024-05-31 10:00:04\tP1\tS2\tCORRECT\tadd\t\t\tz\n"
    "5\tStu_b2\t2024-05-31 10:00:05\tP2\tS1\tCORRECT\t\t\t\tz\n"
    "6\tStu_b2\t2024-05-31 10:00:06\tP2\tS1\t\tadd\t\t\tz\n"
)


def test_datashop(write, records):
    log = read_log(write("tx.txt", DATASHOP))
    assert log.origin.format == "datashop"
    seconds = "2024-05-31T10:00:0{}"
    assert records(log) == [
        [("add~~mul", 0, "P1", seconds.format(1)), ("add~~mul", 1, "P1", seconds.format(2))],
        [("add", 1, "P1", seconds.format(4))],
    ]
    assert log.origin.columns["action"] == "KC (Default)"
    assert log.origin.notes[1:4] == (
        "1 rows that ask for a hint were dropped.",
        "1 rows without an outcome were dropped.",
        "1 rows without a knowledge component were dropped.",
    )


def test_datashop_keeps_components_apart_or_takes_another_column(write, records):
    log = read_log(write("tx.txt", DATASHOP), keep_skills=True)
    assert [row[:2] for row in records(log)[0]] == [
        ("add", 0),
        ("mul", 0),
        ("add", 1),
        ("mul", 1),
    ]
    log = read_log(write("tx.txt", DATASHOP), action="KC (Other)")
    assert log.actions == ("z",)


def test_datashop_without_components_takes_the_step(write, records):
    lines = [line.split("\t")[:6] for line in DATASHOP.strip().split("\n")]
    log = read_log(write("tx.txt", "\n".join("\t".join(line) for line in lines)))
    assert [[row[0] for row in rows] for rows in records(log)] == [
        ["P1 / S1", "P1 / S1"],
        ["P1 / S2", "P2 / S1"],
    ]
    assert log.origin.columns["action"] == "Problem Name + Step Name"
    assert "item" not in log.origin.columns


def test_assistments_of_2012_are_ordered_by_time_and_partial_credit_is_no_success(write, records):
    content = (
        "problem_log_id,skill,problem_id,user_id,start_time,end_time,original,correct,skill_id\n"
        "9,Rounding,71,501,2012-09-28 15:11:30.5,2012-09-28 15:12:00,1,0.25,5\n"
        "8,Addition,70,501,2012-09-28 15:10:30.5,2012-09-28 15:11:00,1,1,6\n"
        "7,,70,502,2012-09-28 15:10:30.5,2012-09-28 15:11:00,1,1,\n"
        "6,Addition,70,502,2012-09-28 15:12:30.5,2012-09-28 15:13:00,1,0,6\n"
    )
    log = read_log(write("2012.csv", content))
    assert log.origin.format == "assistments"
    assert [[row[:3] for row in rows] for rows in records(log)] == [
        [("Addition", 1, "70"), ("Rounding", 0, "71")],
        [("Addition", 0, "70")],
    ]
    assert (
        "1 row with credit in part: no success unless `pass_from` declares from where on." in log.origin.notes
    )
    assert [row[1] for row in records(read_log(write("2012.csv", content), pass_from=0.2))[0]] == [1, 1]


def test_assistments_of_2015_and_2017(write, records):
    content = "user_id,log_id,sequence_id,correct\n50121,167478035,7014,0\n50121,167478030,7014,0.5\n50122,3,7015,1\n"
    log = read_log(write("2015.csv", content))
    assert log.origin.format == "assistments"
    assert records(log) == [[("7015", 1)], [("7014", 0), ("7014", 0)]]
    content = (
        "studentId,MiddleSchoolId,SY ASSISTments Usage,AveCorrect,actionId,skill,problemId,startTime,endTime,correct\n"
        "8,2,2004-2005,0.4,9950,properties,104,1096470350,1096470357,0\n"
        "8,2,2004-2005,0.4,9949,noskill,104,1096470301,1096470350,0\n"
        "8,2,2004-2005,0.4,9948,sum,103,1096470300,1096470301,1\n"
    )
    for name in ("studentId", "ITEST_id"):
        log = read_log(write("2017.csv", content.replace("studentId", name)))
        assert log.origin.columns["learner"] == name
        assert [row[:3] for row in records(log)[0]] == [("sum", 1, "103"), ("properties", 0, "104")]


def test_junyi(write, records):
    earlier = (
        "user_id,exercise,problem_type,problem_number,topic_mode,suggested,review_mode,time_done,time_taken,correct\n"
        "12884,time_terms,analog_word,1,true,false,false,1420714810324490,8,false\n"
        "12884,sum,x,1,true,false,false,1420714800000000,8,true\n"
    )
    log = read_log(write("junyi.csv", earlier))
    assert log.origin.format == "junyi"
    assert records(log) == [
        [("sum", 1, "x", "2015-01-08T11:00:00"), ("time_terms", 0, "analog_word", "2015-01-08T11:00:10")]
    ]
    later = (
        "timestamp_TW,uuid,ucid,upid,problem_number,exercise_problem_repeat_session,is_correct,level\n"
        "2018-09-09 08:45:00 UTC,Kpq2=,KDOm=,LVN=,1,1,True,0\n"
        "2018-09-09 08:30:00 UTC,Kpq2=,KDOm=,LVM=,2,1,False,0\n"
    )
    log = read_log(write("Log_Problem.csv", later))
    assert log.origin.format == "junyi"
    assert records(log) == [
        [("KDOm=", 0, "LVM=", "2018-09-09T08:30:00"), ("KDOm=", 1, "LVN=", "2018-09-09T08:45:00")]
    ]
