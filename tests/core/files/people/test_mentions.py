"""People who are named in actions are found, since synthetic data would name them; tasks raise no alarm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from understudy.core.files.people import mentions
from understudy.core.files.people.identifiers import Identifier, NamedPeople
from understudy.core.files.people.mentions import identifiers_in_actions
from understudy.errors import DataError
from understudy.logs.reading import read_log


def actions_log(actions: list[str], learners: list[str]) -> str:
    rows = [f'{learner},"{action}",1' for action in actions for learner in learners]
    return "\n".join(["user,skill,correct", *rows]) + "\n"


@pytest.mark.parametrize(
    ("actions", "learners", "kind", "evidence"),
    [
        (["ask a@b.org", "x", "y"], ["1", "2"], "e-mail address", "1 of 3 actions contain an e-mail address"),
        (["from 192.168.1.7", "x"], ["1", "2"], "IP address", "1 of 2 actions contain an IP address"),
        (["call +49 171 1234567", "x"], ["1", "2"], "phone number", "1 of 2 actions contain a phone number"),
        (["essay_Stu77", "x"], ["stu77", "stu78"], "learner id", "1 of 2 actions contain a learner's id"),
        (["essay of Anna", "x"], ["anna", "berta"], "learner id", "1 of 2 actions contain a learner's id"),
        (
            ["xkcd-9f3eab", "9F3E", "x"],
            ["9f3e", "77ab"],
            "learner id",
            "2 of 3 actions contain a learner's id",
        ),
    ],
)
def test_actions_that_point_at_people(write, actions, learners, kind, evidence):
    found = read_log(write("log.csv", actions_log(actions, learners))).origin.identifiers
    assert Identifier("skill", kind, evidence, "action") in found
    assert all(one.role == "action" for one in found)


@pytest.mark.parametrize(
    ("actions", "learners"),
    [
        (["1001", "1002", "problem 1001"], ["1001", "1002"]),
        (["ad", "su", "Ed's car"], ["ad", "su", "ed"]),
        (["Pretest", "Hannah's apples"], ["test", "anna"]),
        (["1.2.3.4", "10.1.2.3", "Section 1.12.13.14"], ["u1", "u2"]),
        (["3 + 4 = 7", "12345678 + 1", "100-20-3000", "2024-05-31"], ["u1", "u2"]),
    ],
)
def test_actions_that_do_not(write, actions, learners):
    assert read_log(write("log.csv", actions_log(actions, learners))).origin.identifiers == ()


def in_actions(path: Path, **options: object) -> list[str]:
    """The kinds of what points at people in the actions."""
    log = read_log(path, **options)  # type: ignore[arg-type]
    return [found.kind for found in log.origin.identifiers if found.role == "action"]


def log_of_people(column: str, people: list[str], actions: list[str]) -> str:
    rows = [f'u{n},"{action}",1,"{person}"' for action in actions for n, person in enumerate(people)]
    return "\n".join([f"user,skill,correct,{column}", *rows]) + "\n"


@pytest.mark.parametrize(
    ("column", "people", "action", "kind"),
    [
        ("fullname", ["Ana Kestrel", "Ben Lund"], "Peer review of Ana Kestrel", "name"),
        ("fullname", ["Ana Kestrel", "Ben Lund"], "essay_ANA-KESTREL.pdf", "name"),
        ("fullname", ["Ana Kestrel", "Ben Lund"], "essay of AnaKestrel", "name"),
        ("fullname", ["Kestrel, Ana", "Lund, Ben"], "Peer review of Ana Kestrel", "name"),
        ("fullname", ["José Núñez", "Ben Lund"], "Peer review of Jose\u0301 Nunez", "name"),
        ("fullname", ["王小明", "李大海"], "王小明的作文", "name"),
        ("student", ["Ana Kestrel", "Ben Lund"], "Peer review of Ana Kestrel", "name"),
        ("name", ["Ana Kestrel", "Ben Lund"], "Peer review of Ana Kestrel", "name"),
        ("first name", ["Ana", "Ben"], "Peer review of Ana", "name"),
        ("surname", ["Kestrel", "Lund"], "lms/by-kestrel/essay", "name"),
        ("login", ["akestrel", "blund"], "lms/by-akestrel/essay", "login name"),
        ("matrikelnr", ["20230001", "20230002"], "portfolio of 20230001", "student number"),
        ("matrikelnr", ["s20230001", "s20230002"], "portfolio_S20230001", "student number"),
        ("email", ["ana.kestrel@uni.example", "b.l@x.example"], "lms/by-ana.kestrel/essay", "e-mail address"),
        ("contact", ["ana.kestrel@uni.example", "-"], "lms/by-ana.kestrel/essay", "e-mail address"),
        ("phone", ["0664-12-345", "0664-12-346"], "ask 0664 12 345", "phone number"),
    ],
)
def test_what_another_column_says_of_a_person(write, column, people, action, kind):
    path = write("log.csv", log_of_people(column, people, [action, "x", "y"]))
    (found,) = [found for found in read_log(path).origin.identifiers if found.role == "action"]
    shown = "column 4" if column == "contact" else f"column '{column}'"
    evidence = f"1 of 3 actions contain what {shown} says of a person"
    assert found == Identifier("skill", kind, evidence, "action")


@pytest.mark.parametrize(
    ("column", "people", "actions"),
    [
        ("surname", ["Winter", "Art"], ["Winterthur", "Cart and Horse", "Party"]),
        ("mobile", ["yes", "no"], ["yes or no", "x"]),
        ("login", ["student", "7"], ["student survey", "task 7"]),
        ("email", ["info@x.example", "abc@x.example"], ["info box", "abc"]),
        ("matrikelnr", ["1234", "20230001"], ["portfolio of 1234", "20230002"]),
    ],
)
def test_what_another_column_says_of_nobody(write, column, people, actions):
    assert in_actions(write("log.csv", log_of_people(column, people, actions))) == []


def test_titles_in_a_column_called_name(write):
    """Such a column may name tasks: it has as many values for each learner as there are tasks."""
    titles = ["Box Plot", "Venn Diagram", "Adding Fractions"]
    rows = [f"u{n},{title},1,{title}" for title in titles for n in range(3)]
    assert in_actions(write("log.csv", "\n".join(["user,skill,correct,name", *rows]))) == []


@pytest.mark.parametrize(
    ("actions", "learners"),
    [
        (["Peer review of ANA", "x"], ["Ana", "Ben"]),
        (["essay_u17.pdf", "x"], ["u17", "u18"]),
        (["portfolio of 20230001", "x"], ["20230001", "20230002"]),
        (["portfolio_0012345", "x"], ["12345", "12346"]),
        (["20230001", "20230002", *"abcdefgh"], ["20230001", "20230002"]),
        (["lms/by-ana.kestrel/essay", "x"], ["ana.kestrel@uni.example", "b@uni.example"]),
        (["lms/by-kestrel/essay", "x"], ["Kestrel+math@uni.example", "b@uni.example"]),
        (["review of ana_kestrel", "x"], ["Ana Kestrel", "Ben Lund"]),
    ],
)
def test_learners_in_actions(write, actions, learners):
    assert in_actions(write("log.csv", actions_log(actions, learners))) == ["learner id"]


@pytest.mark.parametrize(
    ("actions", "learners"),
    [
        (["Banana", "Anagram"], ["Ana", "Ben"]),
        (["An apple", "U1 x"], ["an", "u1"]),
        (["20230001", *(str(n) for n in range(90000, 90009))], ["20230001", "20230002"]),
        (["Problem 20230001", "question_20230002", "skill 20230001"], ["20230001", "20230002"]),
        (["portfolio of 120230001", "portfolio of 2023000"], ["20230001", "20230002"]),
        (["portfolio of 1234", "x"], ["1234", "1235"]),
        (["abc box", "x"], ["abc@uni.example", "b@uni.example"]),
    ],
)
def test_no_learner_in_actions(write, actions, learners):
    assert in_actions(write("log.csv", actions_log(actions, learners))) == []


@pytest.mark.parametrize(
    "number",
    [
        *("0664/1234567", "0664 1234567", "(0664) 123 45 67", "+43 664 1234567", "0664-1234567"),
        *("0043 664 1234567", "030/123456", "01/5137777", "(555) 123-4567", "06 12 34 56 78"),
        *("0664/12 34 567", "+43(664)1234567", "Tel. 6641234567"),
    ],
)
@pytest.mark.parametrize("text", ["{}", "ask {} for help", "Help ({})", "call {}."])
def test_telephone_numbers(write, number, text):
    assert in_actions(write("log.csv", actions_log([text.format(number), "x"], ["u1", "u2"]))) == [
        "phone number"
    ]


@pytest.mark.parametrize(
    "action",
    [
        *(
            "1.2.3",
            "2023-05-01",
            "12/34",
            "Problem 1234567",
            "Version 10.2.33",
            "01/02/2023",
            "01-02-2023 12:30",
        ),
        *("ISBN 978-3-16-148410-0", "ISBN 0-306-40615-2", "ISBN 978-0-306-40615-7", "ISBN 0306406152"),
        *("lesson 012 2023-05-01", "lesson 012 20230501", "05/12/2023 10 20", "task 01/02", "0.6641234567"),
        *(
            "004915112345",
            "007 12345",
            "unit 03 task 12345",
            "Add 100 200 3000",
            "12:30:45",
            "3 + 4567",
            "1234567 - 12",
        ),
    ],
)
def test_numbers_that_are_no_telephone_numbers(write, action):
    for text in (action, f"see {action} again"):
        assert in_actions(write("log.csv", actions_log([text, *"xyz"], ["u1", "u2"]))) == []


def test_those_who_withdrew_are_searched_for(write):
    """Their rows are gone, and others' actions name them all the same; so do names that only the list has."""
    path = write("log.csv", "user,skill,correct\nKestrel,a,1\nu1,review of kestrel,1\nu1,a,0\nu2,a,0\n")
    log = read_log(path, exclude=write("gone.txt", "Kestrel\n"))
    assert [found.role for found in log.origin.identifiers] == ["action"]
    path = write("log.csv", "user,skill,correct\nu3,a,1\nu1,review of lund,1\nu1,a,0\nu2,a,0\n")
    assert in_actions(path) == []
    assert in_actions(path, exclude=write("gone.txt", "u3\nLund\n")) == ["learner id"]
    # The reason is nobody's name.
    assert in_actions(path, exclude=write("gone.csv", "u3,review\nu9,moved\n")) == []


def test_a_column_of_learners_as_the_action(write):
    path = write("log.csv", "class,student_id,correct\n" + "".join(f"k{n % 2},{n},1\n" for n in range(6)))
    log = read_log(path, learner="class", action="student_id")
    assert log.origin.identifiers == (Identifier("student_id", "learner id", "by its name", "action"),)
    path = write("log.csv", "class,email,correct\n" + "".join(f"k{n % 2},x{n},1\n" for n in range(6)))
    log = read_log(path, learner="class", action="email")
    assert log.origin.identifiers == (Identifier("email", "e-mail address", "by its name", "action"),)


def test_names_of_actors_in_statements(write):
    statements = [
        {
            "actor": {"name": "Ana Kestrel", "account": {"homePage": "h", "name": f"a{n % 2}"}},
            "object": {"id": "o", "definition": {"name": {"en": "Peer review of Ana Kestrel"}}},
            "result": {"success": True},
            "timestamp": "2024-05-31T14:00:00Z",
        }
        for n in range(4)
    ]
    assert in_actions(write("log.jsonl", "\n".join(map(json.dumps, statements)))) == ["name"]


def test_people_in_actions_are_refused_and_not_named(write):
    path = write("log.csv", log_of_people("fullname", ["Ana Kestrel", "Ben Lund"], ["for Ana Kestrel", "x"]))
    log = read_log(path)
    with pytest.raises(DataError, match=r"column 'skill' .* points at people: name \(1 of 2") as caught:
        log.origin.refuse_people("the synthetic file", log.actions)
    assert "Kestrel" not in str(caught.value)


def test_many_actions_and_many_people():
    n = 20_000
    actions = pl.Series([f"Topic {i} of chapter {i % 97}" for i in range(n)])
    learners = pl.Series([f"learner-{i:06}" for i in range(n)])
    names = pl.Series([f"Given{i} Family{i}" for i in range(n)])
    assert identifiers_in_actions("skill", actions, learners, [NamedPeople("fullname", "name", names)]) == []


@pytest.mark.oracle
def test_of_many_ids_the_same_are_found_as_by_searching_for_each(monkeypatch):
    """Few texts and many ids: pieces are looked up. Each id searched for by itself must give the same."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        letters = "ab é" if rng.random() < 0.5 else "abc"
        texts = pl.Series(["".join(rng.choice(list(letters), rng.integers(0, 9))) for _ in range(5)] + [None])
        ids = ["".join(rng.choice(list(letters), rng.integers(1, 7))) for _ in range(rng.integers(0, 60))]
        found = mentions._contains_any(texts, pl.Series(ids, dtype=pl.String))
        expected = [text is not None and any(name in text for name in ids) for text in texts]
        assert found.fill_null(False).to_list() == expected or not ids


def test_one_of_very_many_learners_is_found_in_an_item(write):
    learners = pl.Series([f"simulated-{i}" for i in range(20_000)])
    items = pl.Series(["item 1", "simulated-", "simulated-19999b", "an essay of Simulated 77"])
    (found,) = identifiers_in_actions("the header", items, learners)
    assert found.evidence == "2 of 4 actions contain a learner's id"
