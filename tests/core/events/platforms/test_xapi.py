"""xAPI statements, in lines, in an array and as a store's answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from understudy.core.files.people.identifiers import Identifier
from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

HOME = "https://school.example"


def statement(actor: dict[str, Any], target: str, success: object, time: str, **names: str) -> dict[str, Any]:
    made: dict[str, Any] = {"actor": actor, "verb": {"id": "answered"}, "object": {"id": target}}
    if names:
        made["object"]["definition"] = {
            "name": {key.replace("_", "-"): value for key, value in names.items()}
        }
    if success is not None:
        made["result"] = {"success": success}
    return {**made, "timestamp": time}


ANA = {"name": "Ana Alm", "account": {"homePage": HOME, "name": "a1"}}
BEN = {"mbox": "mailto:ben@school.example"}
STATEMENTS = [
    statement(ANA, "q/2", True, "2024-05-31T16:00:01+02:00", en_US="Second"),
    statement(ANA, "q/1", False, "2024-05-31T14:00:00Z", de="Erste"),
    statement(BEN, "q/2", True, "2024-05-31T14:00:00.250Z"),
    statement(BEN, "q/3", None, "2024-05-31T14:00:00Z"),
    statement({"objectType": "Agent"}, "q/3", True, "2024-05-31T14:00:00Z"),
    statement({"mbox_sha1sum": "0" * 40}, "q/1", False, "2024-05-31T14:00:00Z"),
]
RECORDS = [
    [("q/1", 0, "2024-05-31T14:00:00"), ("Second (q/2)", 1, "2024-05-31T14:00:01")],
    [("q/2", 1, "2024-05-31T14:00:00")],
    [("q/1", 0, "2024-05-31T14:00:00")],
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lines.jsonl", "\n".join(map(json.dumps, STATEMENTS)) + "\n\n"),
        ("array.json", json.dumps(STATEMENTS)),
        ("pretty.json", json.dumps(STATEMENTS, indent=2)),
        ("answer.json", json.dumps({"statements": STATEMENTS, "more": ""})),
        ("lines.jsonl.gz", "\n".join(map(json.dumps, STATEMENTS))),
        ("mark.json", "\ufeff" + json.dumps(STATEMENTS)),
    ],
)
def test_statements(write, records, name, content):
    log = read_log(write(name, content))
    assert log.origin.format == "xapi"
    assert records(log) == RECORDS
    assert log.origin.notes[1:4] == (
        "1 rows (statements) without the id of a single actor were dropped.",
        "1 rows (statements) without an outcome were dropped.",
        "With `no_outcomes` or `empty_outcomes` all statements are read.",
    )
    assert log.origin.identifiers == (
        Identifier("actor.account", "login name", "by its name", "learner"),
        Identifier("actor.mbox", "e-mail address", "by its name", "learner"),
        Identifier("actor.name", "name", "by its name", "not read"),
    )


def test_objects_that_share_a_name_are_distinguished(write, records):
    rows = [statement(BEN, f"quiz/{n}", True, "2024-05-31T14:00:00Z", en="Question 1") for n in (1, 2)]
    log = read_log(write("log.json", json.dumps(rows)))
    assert log.actions == ("Question 1 (quiz/1)", "Question 1 (quiz/2)")


def test_accounts_of_two_platforms_are_two_learners(write):
    other = {"account": {"homePage": "https://other.example", "name": "a1"}}
    rows = [statement(actor, "q", True, "2024-05-31T14:00:00Z") for actor in (ANA, other, ANA, other)]
    assert read_log(write("log.json", json.dumps(rows))).n_learners == 2


def test_a_statement_without_a_timestamp_stops_or_concerns_its_own_row(write, records):
    rows = [dict(row) for row in STATEMENTS[:2]]
    del rows[0]["timestamp"]
    path = write("log.json", json.dumps(rows))
    with pytest.raises(DataError, match="column 'timestamp' orders the rows"):
        read_log(path)
    assert records(read_log(path, in_order=True)) == [[("Second (q/2)", 1), ("q/1", 0)]]
    assert records(read_log(path, set_aside=True)) == [[("q/1", 0, "2024-05-31T14:00:00")]]


def test_withdrawn_actors_are_known_by_their_account_or_address(write):
    path = write("log.json", json.dumps(STATEMENTS))
    log = read_log(path, exclude=write("gone.txt", "a1\nben@school.example\nnobody\n"))
    assert log.n_learners == 1
    assert (
        "2 learners who withdrew were left out, with 4 rows; 1 names of the list are not in the log."
        in log.origin.notes
    )


LINES = [json.dumps(row) for row in STATEMENTS]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n".join([*LINES[:2], LINES[2][:-9]]), "the JSON breaks off or is wrong on line 3"),
        (json.dumps(STATEMENTS, indent=1)[:-40], "the JSON breaks off or is wrong on line"),
        ("\n".join([*LINES[:2], "7"]), "line 3 is JSON, but not an object"),
        ("[1, 2]", "record 1 is JSON, but not an object"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "no row is left"),
        ('{"a": 1}', "no row is left"),
        (json.dumps([statement(BEN, "q", "yes", "2024-05-31T14:00:00Z")]), "neither true nor false"),
        ('[{"actor": {"mbox": "\\ud800"}}]', "not valid text"),
        ('[{"a": ' + "9" * 5000 + "}]", "a number that is too long"),
    ],
)
def test_statements_that_cannot_be_read(write, content, message):
    with pytest.raises(DataError, match=message):
        read_log(write("log.json", content))


def test_statements_have_no_columns(write):
    with pytest.raises(UsageError, match="no columns to choose from"):
        read_log(write("log.json", json.dumps(STATEMENTS)), time="stored")
    assert read_log(write("log.json", json.dumps(STATEMENTS)), time="timestamp").has_times


def test_voided_statements_are_left_out(write, records):
    rows = [{**one, "id": f"id-{place}"} for place, one in enumerate(STATEMENTS)]
    voiding = {
        **statement(
            {"name": "Zq7canary", "mbox": "mailto:admin@school.example"}, "", True, "2024-06-01T10:00:00Z"
        ),
        "verb": {"id": "http://adlnet.gov/expapi/verbs/voided"},
        "object": {"objectType": "StatementRef", "id": "ID-2"},
    }
    for content in (
        json.dumps([*rows, voiding]),
        json.dumps([voiding, *rows]),
        "\n".join(map(json.dumps, [voiding, *rows])),
    ):
        log = read_log(write("log.json", content), platform_voids=True)
        assert records(log) == [RECORDS[0], RECORDS[2], []]
        assert "1 voided statement left out." in log.origin.notes
        kept = read_log(write("log.json", content))
        assert records(kept) == RECORDS
        assert any(
            note.startswith("1 statement that another actor voided: kept") for note in kept.origin.notes
        )


def test_statements_of_any_verb_are_read_without_outcomes(write, records):
    rows = [
        statement(ANA, f"page/{n}", None, f"2024-05-31T14:00:0{n}Z", de="Seite", en="Page") for n in (1, 2)
    ]
    log = read_log(write("log.json", json.dumps(rows)))
    assert (log.outcome, log.actions) == (None, ("Page (page/1)", "Page (page/2)"))
    assert [guess.settings for guess in log.origin.guesses] == [("no_outcomes",), ("format",)]
    declared = read_log(write("log.json", json.dumps(rows)), format="xapi", no_outcomes=True, language="de")
    assert declared.origin.guesses == ()
    assert declared.actions == ("Seite (page/1)", "Seite (page/2)")
    mixed = read_log(write("log.json", json.dumps(STATEMENTS)), no_outcomes=True)
    assert [len(rows) for rows in records(mixed)] == [2, 2, 1]


def test_the_verb_says_what_was_done(write):
    rows = [statement(ANA, "v/1", None, "2024-05-31T14:00:00Z") for _ in range(3)]
    rows[0]["verb"] = {"id": "https://w3id.org/xapi/video/verbs/played", "display": {"en": "played"}}
    rows[1]["verb"] = {"display": {"de": "angehalten", "en-GB": "stopped"}}
    rows[2]["verb"] = "played"
    log = read_log(write("log.json", json.dumps(rows)), verbs=True)
    assert set(log.actions) == {"played v/1", "stopped v/1", "v/1"}
    assert log.origin.columns["action"] == "verb and object"
    with pytest.raises(UsageError, match="has no verbs"):
        read_log(write("log.csv", "learner,action,outcome\na,x,1\na,y,0\n"), verbs=True)


def test_scores_count_by_a_declared_pass_mark(write, records):
    scores = [{"scaled": 0.6}, {"raw": 3, "min": 1, "max": 5}, {"raw": 4}, {"scaled": True}]
    rows = [statement(BEN, "q", None, f"2024-05-31T14:00:0{n}Z") for n in range(5)]
    for row, score in zip(rows, scores, strict=False):
        row["result"] = {"score": score}
    rows[4]["result"] = {"success": False, "score": {"scaled": 1}}
    path = write("log.json", json.dumps(rows))
    assert [row[1] for row in records(read_log(path, pass_from=60))[0]] == [1, 0, 0]
    assert [row[1] for row in records(read_log(path))[0]] == [0]


def test_people_besides_the_actor_are_not_read_but_searched_for(write):
    rows = [statement(ANA, f"q/{n}", None, "2024-05-31T14:00:00Z", en="Talk with Zoe Quill") for n in (1, 2)]
    rows[0]["context"] = {
        "instructor": {"name": "Zoe Quill", "mbox": "mailto:zoe@school.example"},
        "team": {"objectType": "Group", "name": "Red", "member": [{"name": "Bo Deer"}]},
        "extensions": {
            "http://id.tincanapi.com/extension/ip-address": "10.1.2.3",
            "http://id.tincanapi.com/extension/geojson": {"type": "Point"},
            "http://id.tincanapi.com/extension/browser-info": {"name": "b"},
            "http://id.tincanapi.com/extension/observer": {"name": "Bo Deer"},
        },
    }
    rows[1]["object"] = {"objectType": "Agent", "name": "Bo Deer", "mbox": "mailto:bo@school.example"}
    group = {"objectType": "Group", "account": {"homePage": HOME, "name": "red"}}
    log = read_log(
        write("log.json", json.dumps([*rows, statement(group, "q/1", None, "2024-05-31T14:00:00Z")]))
    )
    assert log.actions == ("Agent", "Talk with Zoe Quill (q/1)")
    assert (log.n_learners, log.n_rows) == (1, 2)
    assert {(found.column, found.kind) for found in log.origin.identifiers if found.role == "not read"} >= {
        ("context.instructor.name", "name"),
        ("context.team.member.name", "name"),
        ("context.extensions: ip-address", "IP address"),
        ("context.extensions: geojson", "place"),
        ("context.extensions: browser-info", "computer"),
        ("context.extensions: observer", "name"),
        ("object.mbox", "e-mail address"),
    }
    with pytest.raises(DataError) as caught:
        log.origin.refuse_people("the synthetic file", log.actions)
    assert caught.value.code == "names-of-people"
    assert "Zoe" not in str(caught.value)
