"""Caliper envelopes and events: scores, descriptions of things, and people as objects."""

from __future__ import annotations

import json

import pytest

from understudy.errors import DataError
from understudy.logs.reading import read_log

SCHOOL = "https://school.example"


def event(actor, action, target, second, score=None, **more):
    made = {
        "@context": "http://purl.imsglobal.org/ctx/caliper/v1p2",
        "id": "urn:uuid:7",
        "type": "Event",
        "actor": {"id": f"{SCHOOL}/users/{actor}", "type": "Person", "name": f"{actor.title()} Alm"},
        "action": action,
        "object": target,
        "eventTime": f"2024-05-31T14:00:{second:02}.000Z",
        "session": {"id": f"{SCHOOL}/sessions/1", "type": "Session"},
        **more,
    }
    if score is not None:
        made["generated"] = {
            "id": f"{SCHOOL}/scores/1",
            "type": "Score",
            "scoreGiven": score,
            "maxScore": 4.0,
        }
    return made


QUIZ = {"id": f"{SCHOOL}/quiz/1", "type": "Assessment", "name": "Quiz One"}
ATTEMPT = {"id": f"{SCHOOL}/quiz/1/users/ana/attempts/1", "type": "Attempt", "assignable": QUIZ}
PAGE = {"id": f"{SCHOOL}/page/2", "type": "Page"}
EVENTS = [
    event("ana", "Graded", ATTEMPT, 4, 4.0),
    event("ana", "Viewed", PAGE, 1),
    event("ben", "http://purl.imsglobal.org/vocab/caliper/v1/action#Graded", QUIZ, 2, 0),
    event("ben", "Invited", {"id": f"{SCHOOL}/users/ana", "type": "Person", "name": "Ana Alm"}, 3),
    event("ben", "Viewed", f"{SCHOOL}/page/2", 5),
]
APPLICATION = {**event("ana", "Graded", QUIZ, 9, 1), "actor": {"id": SCHOOL, "type": "SoftwareApplication"}}
PERSON = {"id": f"{SCHOOL}/users/ana", "type": "Person", "dateCreated": "2018-08-01T06:00:00.000Z"}


def envelope(events, version="v1p2"):
    return {
        "sensor": f"{SCHOOL}/sensors/1",
        "sendTime": "2024-05-31T15:00:00.000Z",
        "dataVersion": f"http://purl.imsglobal.org/ctx/caliper/{version}",
        "data": events,
    }


LINES = "\n".join(json.dumps(envelope([one], "v1p1")) for one in [*EVENTS, APPLICATION, PERSON])


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(envelope([*EVENTS, APPLICATION, PERSON]), indent=1),
        json.dumps([envelope(EVENTS[:2]), envelope([*EVENTS[2:], APPLICATION, PERSON])]),
        LINES,
        "\n".join(map(json.dumps, [*EVENTS, APPLICATION, PERSON])),
    ],
)
def test_envelopes_and_events(write, records, content):
    log = read_log(write("caliper.json", content), single_rows=True)
    assert log.origin.format == "caliper"
    assert records(log) == [
        [(f"Quiz One ({SCHOOL}/quiz/1)", 1, "2024-05-31T14:00:04")],
        [(f"Quiz One ({SCHOOL}/quiz/1)", 0, "2024-05-31T14:00:02")],
    ]
    assert "1 description of things left out: not events." in log.origin.notes
    assert "1 rows (events) without the id of a person were dropped." in log.origin.notes


def test_events_of_any_kind(write, records):
    log = read_log(write("caliper.json", LINES), no_outcomes=True, format="caliper")
    assert log.origin.guesses == ()
    assert [[row[0] for row in rows] for rows in records(log)] == [
        [f"{SCHOOL}/page/2", f"Quiz One ({SCHOOL}/quiz/1)"],
        [f"Quiz One ({SCHOOL}/quiz/1)", "Person", f"{SCHOOL}/page/2"],
    ]
    verbs = read_log(write("caliper.json", LINES), no_outcomes=True, verbs=True)
    assert "Invited Person" in verbs.actions
    assert f"Graded Quiz One ({SCHOOL}/quiz/1)" in verbs.actions


def test_part_of_the_points_needs_a_pass_mark(write, records):
    rows = [event("ana", "Graded", QUIZ, n, score) for n, score in enumerate((1.0, 2.5, 4.0))]
    path = write("caliper.json", json.dumps(envelope(rows)))
    with pytest.raises(DataError) as caught:
        read_log(path)
    assert "pass_from" in caught.value.settings
    assert [row[1] for row in records(read_log(path, pass_from=50))[0]] == [0, 1, 1]


def test_no_event_is_an_error(write):
    for content in (json.dumps(envelope([PERSON])), json.dumps(envelope("x")), json.dumps(envelope(None))):
        with pytest.raises(DataError, match="no row is left"):
            read_log(write("caliper.json", content))
    with pytest.raises(DataError, match="breaks off"):
        read_log(write("caliper.json", LINES + "\n" + LINES[:50]))


def test_what_identifies_people_is_named_and_not_read(write):
    log = read_log(write("caliper.json", LINES), no_outcomes=True)
    assert {(found.column, found.role) for found in log.origin.identifiers} >= {
        ("actor.id", "learner"),
        ("actor.name", "not read"),
        ("session", "not read"),
    }
    assert not any(value in str(vars(log)) for value in ("Ana", "Ben", "sessions/1"))
