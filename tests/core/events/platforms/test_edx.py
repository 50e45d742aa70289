"""edX tracking logs: cut-off lines, events of nobody, usage keys of both kinds, and what identifies people."""

from __future__ import annotations

import json

import pytest

from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

KEY = "block-v1:Org+C1+2024+type@{}+block@{}"


def event(kind, user, time, inside=None, *, text=False, source="server", **context):
    inside = {} if inside is None else inside
    return {
        "username": f"{user}name" if user else "",
        "event_type": kind,
        "event_source": source,
        "ip": "10.9.8.77",
        "agent": "Browser/1.0",
        "referer": "https://school.example/x",
        "session": "0a1b",
        "event": json.dumps(inside) if text else inside,
        "context": {
            "user_id": {"ana": 17, "ben": 23, "": None}[user],
            "course_id": "course-v1:Org+C1+2024",
            **context,
        },
        "time": f"2024-05-31T14:00:{time:02}.5+00:00",
        "page": None,
    }


EVENTS = [
    event(
        "problem_check",
        "ana",
        5,
        {"problem_id": KEY.format("problem", "p1"), "success": "correct", "grade": 1, "max_grade": 2},
    ),
    event("problem_check", "ana", 4, source="browser"),
    event("play_video", "ana", 1, {"id": "ab12", "code": "html5"}, text=True, source="browser"),
    event("problem_check", "ben", 2, {"problem_id": "i4x://Org/C1/problem/p2", "success": "incorrect"}),
    event(
        "seq_next", "ben", 3, {"id": KEY.format("sequential", "s1"), "old": 1}, text=True, source="browser"
    ),
    event("/u/ananame", "ana", 7),
    event("/courses/course-v1:Org+C1+2024/progress/", "ben", 8),
    event("page_close", "", 9),
]


def lines(rows):
    return "\n".join(map(json.dumps, rows)) + "\n"


def test_checked_problems_have_outcomes(write, records):
    log = read_log(write("tracking.log", lines(EVENTS)), single_rows=True)
    assert log.origin.format == "edx"
    assert records(log) == [
        [("problem p1", 1, "2024-05-31T14:00:05")],
        [("problem p2", 0, "2024-05-31T14:00:02")],
    ]
    assert log.origin.notes[1:4] == (
        "1 rows (events) without a user were dropped.",
        "5 rows (events) without an outcome were dropped.",
        "With `no_outcomes` or `empty_outcomes` all events are read.",
    )
    assert [guess.declare for guess in log.origin.guesses] == [{"format": "edx"}]
    graded = read_log(write("tracking.log", lines(EVENTS)), single_rows=True, pass_from=60)
    assert records(graded)[0] == [("problem p1", 0, "2024-05-31T14:00:05")]


def test_all_events_without_outcomes(write, records):
    log = read_log(write("tracking.log.gz", lines(EVENTS)), no_outcomes=True, format="edx")
    assert log.origin.guesses == ()
    assert [[row[0] for row in rows] for rows in records(log)] == [
        ["video ab12", "problem_check", "problem p1", "page u"],
        ["problem p2", "sequential s1", "page progress"],
    ]
    verbs = read_log(write("tracking.log", lines(EVENTS)), no_outcomes=True, verbs=True)
    assert "play_video video ab12" in verbs.actions


def test_lines_that_are_cut_off_concern_themselves(write, records):
    content = lines(EVENTS)
    broken = (
        content[:40] + "\n" + content + '{"username": "x", "event_ty\n7\n[1]\n' + json.dumps(EVENTS[0])[:-9]
    )
    log = read_log(write("tracking.log", broken), single_rows=True)
    assert records(log) == records(read_log(write("whole.log", content), single_rows=True))
    assert "5 lines cut off or not an event: left out." in log.origin.notes


def test_a_server_s_own_file_has_words_before_each_event(write):
    prefix = "2024-05-31 14:00:00,888 INFO 11 [tracking] logger.py:50 - "
    log = read_log(
        write("tracking.log", "".join(prefix + json.dumps(row) + "\n" for row in EVENTS)), no_outcomes=True
    )
    assert (log.origin.format, log.n_learners, log.n_rows) == ("edx", 2, 7)


def test_a_user_without_a_number_is_the_one_of_the_same_name(write):
    rows = [dict(row) for row in EVENTS]
    rows[1] = {**rows[1], "context": {}}
    only = {**rows[1], "username": "carol"}
    log = read_log(write("tracking.log", lines([*rows, only])), no_outcomes=True)
    assert log.n_learners == 3
    gone = read_log(
        write("tracking.log", lines([*rows, only])), no_outcomes=True, exclude=write("gone.txt", "17\n")
    )
    assert gone.n_learners == 2


def test_what_identifies_people_is_named_and_not_read(write):
    log = read_log(write("tracking.log", lines(EVENTS)), no_outcomes=True)
    assert {(found.column, found.role) for found in log.origin.identifiers} >= {
        ("username", "learner"),
        ("ip", "not read"),
        ("agent", "not read"),
        ("session", "not read"),
    }
    assert not any(value in str(vars(log)) for value in ("10.9.8.77", "Browser/1.0", "0a1b", "ananame"))
    spoken = event("edx.forum.viewed.bennameforum", "ana", 1)
    named = read_log(write("tracking.log", lines([*EVENTS, spoken])), no_outcomes=True)
    with pytest.raises(DataError, match="points at people"):
        named.origin.refuse_people("the synthetic file", named.actions)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lines([event("page_close", "", 1)]), "no row is left"),
        ("{}\n{}\n", "no row is left"),
        (
            '{"username": "\\ud800", "event_type": "x", "time": "2024-05-31T14:00:00Z", "context": {}}\n',
            "not valid text",
        ),
        (lines([{**EVENTS[0], "time": "noon"}] * 2), "column 'time' orders the rows"),
    ],
)
def test_logs_that_cannot_be_read(write, content, message):
    with pytest.raises(DataError, match=message):
        read_log(write("tracking.log", content), format="edx")


def test_events_have_no_columns(write):
    with pytest.raises(UsageError, match="no columns to choose from"):
        read_log(write("tracking.log", lines(EVENTS)), action="event_type")
