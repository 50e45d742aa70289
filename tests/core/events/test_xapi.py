"""xAPI statements, in lines, in an array and as a store's answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from understudy.core.files.identifiers import Identifier
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
    assert log.origin.notes[1:3] == (
        "1 rows (statements) without a result.success were dropped.",
        "1 rows (statements) without an actor's id were dropped.",
    )
    assert log.origin.identifiers == (
        Identifier("actor.mbox", "e-mail address", "by its name", "learner"),
        Identifier("actor.account", "login name", "by its name", "learner"),
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
        log = read_log(write("log.json", content))
        assert records(log) == [RECORDS[0], RECORDS[2], []]
        assert "1 voided statement left out." in log.origin.notes
