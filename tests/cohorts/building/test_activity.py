"""Logs of events and lists of scores: notations, formats, joins, and nobody's name in a message."""

from __future__ import annotations

import gzip
import io
import json
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fuzz import CANARY, Reader, contents, pieces, quick
from understudy.cohorts.building.activity import FORMATS, read_activity
from understudy.cohorts.building.join import even_cuts, join
from understudy.cohorts.building.scores import Match, match_scores, read_scores
from understudy.cohorts.building.sessions import MINUTE, Rule, Term, check_hours, find_sessions
from understudy.cohorts.schema import Feature, Schema
from understudy.core.events.read_options import CellOptions
from understudy.core.files.people.withdrawals import read_withdrawn
from understudy.core.files.times import DateOrder, read_each_time, states_instant
from understudy.errors import DataError, UnderstudyError, UsageError

START = date(2024, 9, 2)
TERM = Term(START, 3)
BERLIN = Term(START, 3, "Europe/Berlin")
SCHEMA = Schema(n_weeks=3, cuts=(40.0, 60.0))


def times_of(activity):
    return [str(np.datetime64(int(time), "us"))[:19] for time in activity.time]


# --- notations of times ------------------------------------------------------------------------


def read_moments(*texts, order=DateOrder.day_first, start=START):
    return read_each_time(pl.Series(texts), order=order, first_day=start).to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("11 Sep, 09:44", "2024-09-11T09:44:00"),
        ("1 Sep, 09:44", "2025-09-01T09:44:00"),  # before the term: a year later
        ("2 Sep, 00:00", "2024-09-02T00:00:00"),
        ("3 Jan, 23:59:58", "2025-01-03T23:59:58"),
        ("11. Mai 2018, 09:44", "2018-05-11T09:44:00"),
        ("Friday, 11 May 2018, 9:44 AM", "2018-05-11T09:44:00"),
        ("Friday, 11 May 2018, 12:44\u202fAM", "2018-05-11T00:44:00"),
        ("May 11, 2018, 12:05 p.m.", "2018-05-11T12:05:00"),
        ("Sep 3, 9:44 PM", "2024-09-03T21:44:00"),
        ("11 de mayo de 2018, 09:44", "2018-05-11T09:44:00"),
        ("3 juin 2018, 09:44", "2018-06-03T09:44:00"),
        ("3 juillet 2018, 09:44", "2018-07-03T09:44:00"),
        ("3 août 2018 09:44", "2018-08-03T09:44:00"),
        ("1. März 2018 09:44", "2018-03-01T09:44:00"),
        ("13/05/24, 09:44:10", "2024-05-13T09:44:10"),
        ("5/13/2024 9:44 PM", "2024-05-13T21:44:00"),
        ("3.4.2024 09:44", "2024-04-03T09:44:00"),
        ("03.10., 09:44", "2024-10-03T09:44:00"),
        ("4/4/2024 09:44", "2024-04-04T09:44:00"),
        ("2024-05-31 14:05:09", "2024-05-31T14:05:09"),
    ],
)
def test_notations(text, expected):
    order = DateOrder.month_first if text.startswith("5/13") else DateOrder.day_first
    assert read_moments(text, order=order) == [datetime.fromisoformat(expected)]
    assert states_instant(pl.Series([text])).to_list() == [False]


@pytest.mark.parametrize(
    "text",
    ["2024-05-31T14:05:09Z", "2024-05-31T16:05:09+02:00", "1717164309", "31 May 2024, 2:05:09 PM UTC"],
)
def test_instants(text):
    assert states_instant(pl.Series([text])).to_list() == [True]
    assert read_moments(text) == [datetime(2024, 5, 31, 14, 5, 9)]


def test_the_order_of_day_and_month_is_declared_and_never_guessed():
    unclear = ("3/4/2024 10:00", "15/4/2024 10:00", "3.4.2024 10:00")
    assert [moment and moment.month for moment in read_moments(*unclear, order=None)] == [None, None, 4]
    assert [moment.month for moment in read_moments(*unclear)] == [4, 4, 4]
    american = read_moments(*unclear, order=DateOrder.month_first)
    assert [moment and moment.month for moment in american] == [3, None, 3]


def test_the_option_for_dates_is_named_where_it_is_needed(write):
    for content, order in (("3/4/2024", None), ("13/4/2024", DateOrder.month_first)):
        path = write("log.csv", f"user,time\na,{content} 10:00\n")
        with pytest.raises(DataError) as caught:
            read_activity(path, TERM, CellOptions(date_order=order))
        assert "date_order" in caught.value.settings


def test_the_unit_of_numbers_is_declared_or_in_the_columns_name_and_never_guessed(write):
    for header, unit in (("time_ms", None), ("time", "ms")):
        path = write("log.csv", f"user,{header}\na,1725357600000\n")
        assert times_of(read_activity(path, BERLIN, CellOptions(time_unit=unit))) == ["2024-09-03T10:00:00"]
    with pytest.raises(DataError) as caught:
        read_activity(path, BERLIN)
    assert "time_unit" in caught.value.settings


def test_a_row_whose_time_cannot_be_read_can_be_set_aside(write):
    path = write("log.csv", "user,time\na,2024-09-03 10:00\nb,never\nb,2024-09-03 11:00\n")
    activity = read_activity(path, TERM, CellOptions(set_aside=True))
    assert times_of(activity) == ["2024-09-03T10:00:00", "2024-09-03T11:00:00"]
    assert "Set aside: 1 event whose time cannot be read." in activity.notes


def test_times_that_mix_zones_are_refused(write):
    for first, second in (("10:00:00Z", "10:00:00"), ("10:00 CET", "10:00 CEST")):
        with pytest.raises(DataError, match="time zone"):
            read_activity(
                write("log.csv", f"user,time\na,2024-09-03 {first}\na,2024-09-03 {second}\n"), BERLIN
            )


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "11 Foo, 09:44",
        "31 Feb, 10:00",
        "29 Feb 2023, 10:00",
        "11 May, 25:00",
        "11 May, 13:00 PM",
        "",
        "11 May",
    ],
)
def test_times_that_do_not_exist(text):
    assert read_moments("11 May, 09:44", text) == [datetime(2025, 5, 11, 9, 44), None]


def test_a_leap_day_without_a_year_needs_a_leap_year_in_the_term():
    assert read_moments("29 Feb, 10:00", start=date(2023, 9, 4))[0].year == 2024
    assert read_moments("29 Feb, 10:00", start=date(2024, 9, 2)) == [None]


# --- formats -----------------------------------------------------------------------------------

MOODLE = (
    "Affected user,Time,User full name,Event context,Component,Event name,Description,IP address,Origin\r"
    '-,"11 Sep, 09:44",Ana,Course: x,System,Course viewed,secret,127.0.0.1,web\r'
    '-,"11 Sep, 09:50",-,Course: x,System,Cron,secret,127.0.0.1,cli\r'
    '-,"3 Sep, 23:59",Ben,Course: x,System,Course viewed,secret,127.0.0.1,web\r'
)


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz"])
def test_moodle(write, name):
    activity = read_activity(write(name, MOODLE), TERM)
    assert activity.format == "moodle"
    assert activity.names.to_list() == ["Ana", "Ben"]
    assert times_of(activity) == ["2024-09-11T09:44:00", "2024-09-03T23:59:00"]
    assert any("1 event with no learner" in note for note in activity.notes)
    assert any("no year" in note for note in activity.notes)
    assert repr(activity) == "<Activity: moodle, 2 events, 2 learners>"


def frame_of_events():
    return pl.DataFrame(
        {
            "student": ["a", "b", "a"],
            "timestamp": [datetime(2024, 9, 3, 10), datetime(2024, 9, 4, 11), datetime(2024, 9, 5, 12)],
            "mail": ["x@y.z"] * 3,
        }
    )


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "xlsx"])
def test_tables(write, suffix):
    frame, buffer = frame_of_events(), io.BytesIO()
    if suffix == "parquet":
        frame.write_parquet(buffer)
    elif suffix == "xlsx":
        frame.write_excel(buffer)
    else:
        frame.write_csv(
            buffer, separator="\t" if suffix == "tsv" else ",", datetime_format="%Y-%m-%d %H:%M:%S"
        )
    activity = read_activity(write(f"log.{suffix}", buffer.getvalue()), TERM)
    assert activity.names.to_list() == ["a", "b"]
    assert activity.learner.tolist() == [0, 1, 0]
    assert times_of(activity) == ["2024-09-03T10:00:00", "2024-09-04T11:00:00", "2024-09-05T12:00:00"]


def test_a_parquet_column_with_a_zone_is_instants(write):
    buffer = io.BytesIO()
    frame_of_events().with_columns(pl.col("timestamp").dt.replace_time_zone("Europe/Berlin")).write_parquet(
        buffer
    )
    path = write("log.parquet", buffer.getvalue())
    assert times_of(read_activity(path, BERLIN))[0] == "2024-09-03T08:00:00"
    with pytest.raises(UsageError, match="instants"):
        read_activity(path, TERM)


def statement(name, time, **more):
    actor = {"account": {"homePage": "https://lms", "name": name}}
    return {"actor": actor, "verb": {"id": "v"}, "object": {"id": "o"}, "timestamp": time, **more}


def test_xapi(write):
    lines = [
        statement("ana", "2024-09-03T10:00:00Z"),
        statement("ben", "2024-09-03T12:00:00+02:00", result={"success": True}),
        {"actor": {"mbox": "mailto:cid@x.y"}, "timestamp": "2024-09-03T10:01:00.5Z"},
        {"actor": {"name": "nobody"}, "timestamp": "2024-09-03T10:01:00Z"},
        {"actor": {"mbox": "mailto:cid@x.y"}},
    ]
    path = write("log.jsonl", "\n".join(map(json.dumps, lines)))
    activity = read_activity(path, BERLIN)
    assert times_of(activity) == ["2024-09-03T10:00:00", "2024-09-03T10:00:00", "2024-09-03T10:01:00"]
    assert activity.aliases.to_list() == ["ana", "ben", "mailto:cid@x.y"]
    assert any("1 event with no learner" in note for note in activity.notes)
    assert any("1 event with no time" in note for note in activity.notes)
    with pytest.raises(UsageError, match="instants"):
        read_activity(path, TERM)
    with pytest.raises(UsageError, match="no columns"):
        read_activity(path, BERLIN, learner="x")
    scores = read_scores(write("s.csv", "student,score\nANA,1\ncid@x.y,2\nben,3\n"))
    assert match_scores(activity, scores).position.tolist() == [0, 2, 1]


def test_voided_statements_are_no_activity(write):
    """Whatever comes first: the statement, or the one that takes it back."""
    one, two, three = (
        {**statement("ana", f"2024-09-0{day}T10:00:00Z"), "id": f"0000000{day}-AAAA"} for day in (3, 4, 5)
    )
    voiding = {
        **statement("admin", "2024-09-06T10:00:00Z"),
        "verb": {"id": "http://adlnet.gov/expapi/verbs/voided"},
        "object": {"objectType": "StatementRef", "id": "00000003-aaaa"},
    }
    early = {**voiding, "object": {"objectType": "StatementRef", "id": "00000005-aaaa"}}
    path = write("log.json", json.dumps([early, one, two, three, voiding]))
    activity = read_activity(path, BERLIN, platform_voids=True)
    assert activity.names.str.contains("admin").sum() == 0
    assert times_of(activity) == ["2024-09-04T10:00:00"]
    assert "2 voided statements left out." in activity.notes
    # Unless that is declared, no other actor's statement takes anything back.
    assert read_activity(path, BERLIN).n_events == 3


def test_a_voiding_statement_cannot_be_voided(write):
    one = {**statement("ana", "2024-09-03T10:00:00Z"), "id": "1"}
    other = {**statement("ben", "2024-09-03T10:00:00Z"), "id": "4"}
    void = {"verb": {"id": "http://adlnet.gov/expapi/verbs/voided"}}
    first = {**statement("x", "2024-09-04T10:00:00Z"), **void, "id": "2", "object": {"id": "1"}}
    second = {**statement("x", "2024-09-05T10:00:00Z"), **void, "id": "3", "object": {"id": "2"}}
    activity = read_activity(
        write("log.json", json.dumps([one, other, first, second])), BERLIN, platform_voids=True
    )
    assert activity.n_events == 1


def test_statements_without_a_zone_are_utc(write):
    path = write(
        "log.json", json.dumps([statement("a", "2024-09-03T10:00:00"), statement("b", "2024-09-03T11:00:00")])
    )
    activity = read_activity(path, BERLIN)
    assert times_of(activity)[0] == "2024-09-03T10:00:00"
    assert any("as xAPI does" in note for note in activity.notes)


def test_clock_times_in_a_zone_and_in_an_hour_that_comes_twice(write):
    path = write(
        "log.csv", "user,time\na,2024-10-27 02:30:00\na,2024-10-27 12:00:00\na,2024-03-31 02:30:00\n"
    )
    activity = read_activity(path, BERLIN)
    assert times_of(activity) == ["2024-10-27T00:30:00", "2024-10-27T11:00:00", "2024-03-31T01:30:00"]
    assert any("2 events lie in an hour" in note for note in activity.notes)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("user,time\na,3/4/2024 10:00\n", DataError, "a time cannot be read"),
        ("user,time\na,3.4.2024 10:00\na,13/4/2024 10:00\na,4/13/2024 10:00\n", DataError, "line 3"),
        ("user,time\na,2024-09-03 10:00\nb,never\n", DataError, "line 3"),
        ("user,action\na,b\n", DataError, "found no column for the time"),
        ("who,time\na,b\n", DataError, "found no column for the learner"),
        ("user,time,TIME\na,1,2\n", DataError, "2 columns could be the time"),
        ("user,time\n-,2024-09-03 10:00\n", DataError, "no event is left"),
        ('[{"actor": 1}]', DataError, "no event is left"),
        ("[1]", DataError, "not an object"),
    ],
)
def test_what_cannot_be_read(write, content, error, message):
    with pytest.raises(error, match=message) as caught:
        read_activity(write("log", content), BERLIN)
    assert caught.value.hint


def test_wrong_options(write):
    path = write("log.csv", "user,time\na,2024-09-03 10:00\n")
    with pytest.raises(UsageError, match="no format"):
        read_activity(path, TERM, format="pdf")
    with pytest.raises(DataError, match="not there"):
        read_activity(path, TERM, learner="pupil")
    with pytest.raises(UsageError, match="two roles"):
        read_activity(path, TERM, learner="time")
    with pytest.raises(UsageError, match="time zone"):
        Term(START, 3, "Europe/Nowhere")
    with pytest.raises(UsageError):
        Term(date(1000, 1, 1), 3)
    for gap, credit in ((0, 0), (30, 31), (30, -1), (float("nan"), 1), (1e6, 1)):
        with pytest.raises(UsageError):
            Rule(gap, credit)
    with pytest.raises(DataError, match="hours"):
        check_hours(Schema(features=(Feature("a", 1.0),)))


# --- sessions ----------------------------------------------------------------------------------


def test_a_gap_ends_a_session_and_doubles_count_once():
    time = np.array([0, 30, 30, 61, 200]) * MINUTE
    sessions = find_sessions(np.zeros(5, dtype=np.int64), time, Rule(30, 2))
    assert (sessions.start // MINUTE).tolist() == [0, 61, 200]
    assert (sessions.end // MINUTE).tolist() == [32, 63, 202]


# --- scores ------------------------------------------------------------------------------------


def test_scores(write):
    path = write("s.csv", "StudentId;Exam\nana;12,5\nben; 85 %\ncid;-\ndan;\n;7\nana;12.5\n")
    scores = read_scores(path)
    assert scores.names.to_list() == ["ana", "ben"]
    assert scores.values.tolist() == [12.5, 85]
    assert scores.n_without == 2
    assert "s.csv: 1 row without a learner dropped." in scores.notes


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("user,exam,overall\na,1,2\n", {}, "2 columns could be the score: 'exam', 'overall'"),
        ("user,x\na,1\n", {}, "no column for the score; found 'user' and 1 other column"),
        (
            "user,score,Bar\na,1,2\n",
            {"score": "Foo"},
            "'Foo', which is not there; found 'user', 'score' and 1 other column",
        ),
        ("user,score\n", {}, "the list of scores is empty"),
        ("user,score\na,b\n", {}, "line 2"),
        ("user,score\na,1\na,2\n", {}, "1 learner with several scores"),
        ("user,score\na,\n", {}, "no score"),
        ("user,score\na,1\n", {"score": "user", "learner": "user"}, "two roles"),
        ("user,score\na,inf\n", {"score": "score"}, "something other than a number"),
    ],
)
def test_scores_that_cannot_be_read(write, content, options, message):
    with pytest.raises(UnderstudyError, match=message) as caught:
        read_scores(write("s.csv", content), **options)
    assert caught.value.hint


def log_of(write, *names):
    rows = "".join(f"{name},2024-09-0{3 + place % 5} 10:00\n" for place, name in enumerate(names))
    return read_activity(write("log.csv", "user,time\n" + rows), TERM)


def test_names_are_matched_as_they_are_then_but_for_case_spaces_and_zeros(write):
    activity = log_of(write, "Ana  Maria", "007", "ben", "Ben", "Dö", "eve", "EVE")
    listed = "user,score\nana maria,1\n7,2\nben,3\nBen,4\nDO\u0308,5\nnobody,6\nEve,7\n"
    matched = match_scores(activity, read_scores(write("s.csv", listed)))
    assert matched.position.tolist() == [0, 1, 2, 3, 4, -1, -1]
    assert (matched.n_without_events, matched.n_not_listed, matched.ambiguous) == (2, 2, (6,))


@pytest.mark.parametrize(
    "listed", ["user,score\nana,1\nEve,7\n", "user,score\nben,4\nana,1\nANA ,2\nAna,3\n"]
)
def test_names_that_could_be_several_learners_are_an_error_and_no_zeros(write, listed):
    activity = log_of(write, "eve", "EVE", "aNA", "ben")
    with pytest.raises(DataError, match="could be several learners") as caught:
        join(activity, read_scores(write("s.csv", listed)), SCHEMA, TERM)
    assert "of s.csv" in str(caught.value)
    assert "scores_learner" in caught.value.settings
    assert not {"eve", "ana"} & set(str(caught.value).lower().split())


def test_which_of_several_columns_was_taken_is_said(write):
    scores = read_scores(write("s.csv", "email,user,score\nx@y,ana,1\n"))
    assert scores.names.to_list() == ["ana"]
    assert any("2 columns could be the learner; 'user' was taken" in note for note in scores.notes)
    activity = read_activity(write("log.csv", "user,time,date\nana,2024-09-03 10:00,x\n"), TERM)
    assert any("2 columns could be the time; 'time' was taken" in note for note in activity.notes)
    chosen = read_scores(write("s.csv", "email,user,score\nx@y,ana,1\n"), learner="email")
    assert chosen.names.to_list() == ["x@y"]
    assert not chosen.notes


def test_a_row_that_is_there_twice_is_said(write):
    scores = read_scores(write("s.csv", "user,score\nana,1\nana,1\nben,2\n"))
    assert len(scores.values) == 2
    assert any("1 row with the name and the score of another" in note for note in scores.notes)


def test_names_are_matched_by_their_number_if_asked(write):
    activity = log_of(write, "Student 12", "Student 7", "Student 3 b 4")
    scores = read_scores(write("s.csv", "user,score\n12,1\n007,2\n3,3\n"))
    with pytest.raises(DataError, match="none of 3 learners"):
        match_scores(activity, scores)
    assert match_scores(activity, scores, Match.number).position.tolist() == [0, 1, -1]


# --- the cohort --------------------------------------------------------------------------------

EVENTS = (
    "user,time\n"
    "ana,2024-09-02 08:00\nana,2024-09-02 08:10\nana,2024-09-09 23:55\nana,2024-09-10 00:05\n"
    "ben,2024-08-30 08:00\nteacher,2024-09-02 08:00\ndan,2024-09-22 12:00\n"
)
SCORES = "user,score\nana,70\nben,50\ncid,110\ndan,-\n"


def made(write, **options):
    activity = read_activity(write("log.csv", EVENTS), TERM)
    return join(activity, read_scores(write("s.csv", SCORES)), SCHEMA, TERM, **options)


def test_a_cohort_is_built_and_everything_left_out_is_counted(write):
    joined = made(write)
    cohort = joined.binned()
    assert cohort.n_learners == 3
    assert cohort.label.tolist() == [2, 1, 2]
    expected = np.zeros((3, 4, 3))
    expected[0, 0, 0] = 11  # ten minutes and one for the last event
    expected[0, 2, 1] = 5
    expected[0, 3, 1] = 6
    np.testing.assert_allclose(cohort.values, expected)
    counts = joined.counts
    # The sessions of ben (before the term), of the teacher and of dan (without a score) are not in the cohort.
    assert (counts.events, counts.events_outside, counts.sessions) == (7, 1, 2)
    # dan is in the list without a score: said once, and not as somebody whom the list lacks.
    assert (counts.without_events, counts.not_listed, counts.listed_without_score) == (2, 1, 1)
    assert "1 learner of the log not in the list of scores, left out." in joined.notes
    assert "1 learner of the list without a score, left out." in joined.notes
    assert (counts.scores_cut, counts.cells_cut) == (1, 0)
    assert not joined.simulated
    # The number of learners, which is public, now says how many had a score.
    assert cohort.schema.without_score == "dropped"


def test_a_list_in_which_everybody_has_a_score_leaves_nobody_out(write):
    activity = read_activity(write("log.csv", EVENTS), TERM)
    scores = read_scores(write("s.csv", SCORES.replace("dan,-", "dan,40")))
    assert join(activity, scores, SCHEMA, TERM).binned().schema.without_score == "kept"


def test_learners_without_events_can_be_dropped(write):
    joined = made(write, keep_without_events=False)
    assert joined.n_learners == 1
    assert "2 learners with a score and no event in the term, dropped." in joined.notes


def test_who_withdrew_is_left_out_of_both_files(write):
    joined = made(write, withdrawn=read_withdrawn(write("gone.txt", "ANA\n")))
    assert joined.n_learners == 2
    assert joined.minutes.sum() == 0
    assert joined.counts.withdrawn == 1


def test_a_term_without_events(write):
    activity = read_activity(write("log.csv", EVENTS), TERM)
    with pytest.raises(DataError, match="none of 7 events"):
        join(activity, read_scores(write("s.csv", SCORES)), SCHEMA, Term(date(2020, 1, 6), 3))


def test_values_beyond_a_bound_are_counted(write):
    small = Schema(features=(Feature("day", 5.0, hours=(0, 24)),), n_weeks=3, cuts=(40.0, 60.0))
    activity = read_activity(write("log.csv", EVENTS), TERM)
    joined = join(activity, read_scores(write("s.csv", SCORES)), small, TERM)
    assert joined.counts.cells_cut == 2
    assert joined.binned().values.max() == 5


def test_even_cuts():
    scores = np.arange(90.0)
    cuts = even_cuts(scores, 3)
    assert np.bincount(np.searchsorted(cuts, scores, side="right")).tolist() == [30, 30, 30]
    with pytest.raises(DataError):
        even_cuts(np.ones(9), 3)


# --- nobody's name, whatever happens -----------------------------------------------------------

PIECES = pieces(
    b'learner user time score Time - 9/9/9999 "actor" "timestamp" {"mbox":"m"}',
    *(b"User full name", b"11 May, 09:44", b'"11 May, 09:44"', b"3/4, 9:44", b"2024-09-03 10:00", b"99:99"),
)
LOGS = Reader(lambda path, **options: read_activity(path, BERLIN, **options), lambda log: log.notes)
SCORES_READER = Reader(read_scores, lambda scores: scores.notes)


@pytest.mark.parametrize("format", [None, *FORMATS])
@quick(60)
@given(
    content=contents(PIECES), header=st.sampled_from([b"", b"user,time\n", b'[{"actor":', b"user,score\n"])
)
def test_arbitrary_bytes(tmp_path, format, content, header):
    LOGS.outcome(tmp_path / "log", header + content, format=format)
    SCORES_READER.outcome(tmp_path / "log", header + content)


texts = st.text(max_size=12) | st.sampled_from(
    ["11 May, 09:44", "3/4, 10:00", "2024-09-03 10:00", "29 Feb, 00:00"]
)


@quick(60)
@given(rows=st.lists(st.tuples(st.text(max_size=8), texts), min_size=1, max_size=5))
def test_arbitrary_cells(tmp_path, rows):
    buffer = io.BytesIO()
    pl.DataFrame(rows, schema=["user", "time"], orient="row").write_parquet(buffer)
    result = LOGS.outcome(tmp_path / "log.parquet", buffer.getvalue())
    if not isinstance(result, UnderstudyError):
        assert result.n_events <= len(rows)
        assert (result.learner < result.n_learners).all()


@pytest.mark.parametrize(
    ("log", "scores"),
    [
        (f"user,time\n{CANARY},{CANARY}\n", "user,score\na,1\n"),
        (f"{CANARY},x\n{CANARY},2024-09-03 10:00\n", "user,score\na,1\n"),
        (f"user,time\n{CANARY},2024-09-03 10:00\n", "user,score\nother,1\n"),
        (f"user,time\n{CANARY},2024-09-03 10:00\n", f"user,score\n{CANARY},{CANARY}\n"),
        (f"user,time\n{CANARY},2024-09-03 10:00\n", f"user,score\n{CANARY},1\n{CANARY},2\n"),
        (f"user,time\n{CANARY},2024-09-03 10:00\n", f"{CANARY},{CANARY} x\n{CANARY},1\n"),
        (
            f"user,time\n{CANARY},2024-09-03 10:00\n{CANARY.upper()},2024-09-03 10:00\n",
            f"user,score\n{CANARY.lower()},1\n",
        ),
        (f"user,time\n{CANARY},1950-09-03 10:00\n", f"user,score\n{CANARY},1\n"),
        (f'[{{"actor": {{"mbox": "{CANARY}"}}, "timestamp": "{CANARY}"}}]', "user,score\na,1\n"),
        (f"user,time\n{CANARY},2024-09-03 10:00\n", f"user,score\n{CANARY},1\n"),
    ],
)
def test_no_message_holds_a_name(write, log, scores):
    said = ""
    try:
        activity = read_activity(write("log.csv", log), BERLIN)
        listed = read_scores(write("s.csv", scores))
        joined = join(activity, listed, SCHEMA, BERLIN)
        said = f"{activity!r} {activity.notes} {listed!r} {listed.notes} {joined!r} {joined.notes} {joined.counts}"
        said += repr(find_sessions(activity.learner, activity.time))
    except UnderstudyError as error:
        said = f"{error} {error.message} {error.hint} {error.__cause__}"
    assert said
    assert CANARY.lower() not in said.lower()


def test_gzip_is_unpacked(tmp_path):
    (tmp_path / "log.gz").write_bytes(gzip.compress(EVENTS.encode()))
    assert read_activity(tmp_path / "log.gz", TERM).n_events == 7


@pytest.mark.parametrize(
    "header", ["Zq7canary,12", "Zq7canary,exam,85", "Zq7canary,gut", "student,z@q7canary.org,x"]
)
def test_a_row_that_stands_where_the_header_should_be_is_not_shown(write, header):
    row = ",".join("1" for _ in header.split(","))
    for options in ({}, {"score": "Foo"}, {"learner": "Foo", "score": "x"}):
        with pytest.raises(UnderstudyError) as caught:
            read_scores(write("s.csv", f"{header}\n{row}\n"), **options)
        assert "q7canary" not in str(caught.value)


@pytest.mark.parametrize(
    "times",
    [
        ("2024-09-02T10:00:00Z", "yesterday Anna"),
        ("2024-09-02 10:00", "yesterday Anna"),
        ("1725271200", "Anna"),
    ],
)
def test_what_is_no_time_is_said_to_be_none(write, times):
    rows = "".join(f"u,{time}\n" for time in times)
    with pytest.raises(DataError, match=r"a time cannot be read \(first on line 3; 1 ") as caught:
        read_activity(write("log.csv", "user,time\n" + rows), TERM)
    assert "zone" not in str(caught.value)
    assert "Anna" not in str(caught.value)


def test_windows_that_overlap_are_refused_and_uncovered_hours_are_said(write):
    activity = read_activity(write("log.csv", EVENTS), TERM)
    scores = read_scores(write("s.csv", SCORES))
    two = (Feature("early", 600.0, hours=(5, 12)), Feature("late", 600.0, hours=(11, 24)))
    with pytest.raises(DataError, match=r"'early' and 'late' overlap \(hours 11 to 12\)"):
        join(activity, scores, Schema(features=two, n_weeks=3, cuts=(40.0, 60.0)), TERM)
    night = (Feature("night", 600.0, hours=(22, 5)), Feature("noon", 600.0, hours=(12, 13)))
    joined = join(activity, scores, Schema(features=night, n_weeks=3, cuts=(40.0, 60.0)), TERM)
    (note,) = [one for one in joined.notes if "in no window" in one]
    assert "16 hours of the day (5 to 12, 13 to 22) in no window" in note
    # Ana's morning: ten minutes and one for the last event.
    assert "11 minutes of these learners (internal" in note
    assert not any("in no window" in one for one in made(write).notes)


def test_weeks_that_do_not_begin_on_a_monday_are_said(write):
    activity = read_activity(write("log.csv", EVENTS), TERM)
    scores = read_scores(write("s.csv", SCORES))
    tuesday = join(activity, scores, SCHEMA, Term(date(2024, 9, 3), 3))
    assert "2024-09-03 is a Tuesday: the weeks of the term begin on Tuesdays." in tuesday.notes
    assert not any(
        "begin on" in note for note in join(activity, scores, SCHEMA, Term(date(2024, 9, 2), 3)).notes
    )


def test_names_without_numbers_cannot_be_matched_by_number(write):
    activity = log_of(write, "ana", "ben")
    with pytest.raises(DataError, match="no name of the log has exactly one number"):
        match_scores(activity, read_scores(write("s.csv", "user,score\n12,1\n")), Match.number)
    with pytest.raises(DataError, match="the log or of the list of scores has exactly one number"):
        match_scores(activity, read_scores(write("s.csv", "user,score\nx,1\n")), Match.number)


def test_events_of_edx_and_caliper_are_activity(tmp_path):
    event = {"event_type": "page_close", "username": "ana", "context": {}, "time": "2024-09-02T08:00:00Z"}
    tracking = tmp_path / "tracking.log"
    tracking.write_text(json.dumps(event) + "\n" + json.dumps({**event, "username": ""}) + '\n{"event_ty')
    found = read_activity(tracking, Term(date(2024, 9, 2), 2, "Europe/Berlin"))
    assert (found.format, found.n_events, found.names.to_list()) == ("edx", 1, ["ana"])
    event = {"actor": {"id": "u/1"}, "action": "Viewed", "object": "p/1", "eventTime": "2024-09-02T08:00:00Z"}
    caliper = tmp_path / "caliper.json"
    caliper.write_text(json.dumps({"sensor": "s", "data": [event]}))
    found = read_activity(caliper, Term(date(2024, 9, 2), 2, "Europe/Berlin"))
    assert (found.format, found.n_events, found.names.to_list()) == ("caliper", 1, ["u/1"])
    with pytest.raises(UsageError, match="no columns"):
        read_activity(caliper, Term(date(2024, 9, 2), 2, "Europe/Berlin"), learner="x")
