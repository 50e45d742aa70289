"""Moodle's log report: headers in several languages, days without a year, people's pages, events of nobody."""

import pytest

from understudy.errors import UsageError
from understudy.logs.inspect import inspect
from understudy.logs.reading import read_log

ENGLISH = "Time,User full name,Affected user,Event context,Component,Event name,Description,Origin,IP address"
GERMAN = "Zeit,Vollständiger Name,Betroffene/r Nutzer/in,Ereigniskontext,Komponente,Ereignisname,Beschreibung"


def exported(path, header, *rows, end="\n"):
    path.write_bytes((end.join((header, *rows)) + end).encode())
    return path


def rows_of(log):
    frame = log.to_polars()
    return list(zip(frame["learner"], frame["action"], strict=True))


def test_an_english_report(tmp_path):
    path = exported(
        tmp_path / "logs.csv",
        ENGLISH,
        '"12 May, 09:44",Ada L,-,Quiz: First,Quiz,Course module viewed,seen,web,10.1.2.3',
        '"11 May, 09:44",Ada L,-,Course: C,System,Course viewed,seen,web,10.1.2.3',
        '"11 May, 08:00",Bob M,-,Course: C,System,Course viewed,seen,web,10.1.2.4',
        '"11 May, 07:00",-,-,Course: C,System,Something ran,seen,cli,',
        end="\r",
    )
    log = read_log(path)
    assert log.origin.format == "moodle"
    assert log.origin.guesses == ()
    assert log.outcome is None
    assert rows_of(log) == [
        ("learner-1", "Course: C"),
        ("learner-1", "Quiz: First"),
        ("learner-2", "Course: C"),
    ]
    assert "1 rows that no person caused were dropped." in log.origin.notes


def test_a_german_report_and_the_page_of_a_person(tmp_path):
    path = exported(
        tmp_path / "logs.csv",
        GERMAN,
        '"3.10.2024, 09:44",Ada L,-,Nutzer/in: Bob M,System,Profil angezeigt,gesehen',
        '"4.10.2024, 09:44",Ada L,-,Test: Eins,Test,Kursmodul angezeigt,gesehen',
    )
    log = read_log(path, single_rows=True)
    assert [action for _, action in rows_of(log)] == ["Nutzer/in", "Test: Eins"]
    assert "Bob" not in str(log.actions)
    assert "1 row about a person's page: they are one action, without the name." in log.origin.notes
    assert {found.role for found in log.origin.identifiers} == {"learner", "not read"}


def test_a_year_begins_where_it_is_declared(tmp_path):
    path = exported(
        tmp_path / "logs.csv",
        ENGLISH,
        '"2 Jan, 09:00",Ada L,-,January,Quiz,seen,x,web,',
        '"30 Dec, 09:00",Ada L,-,December,Quiz,seen,x,web,',
    )
    log = read_log(path)
    assert [action for _, action in rows_of(log)] == ["December", "January"]
    assert dict(inspect(log).facts())["from"] == "12-30 to 01-02 (month and day; no year is known)"
    calendar = read_log(path, first_day="2024-01-01")
    assert [action for _, action in rows_of(calendar)] == ["January", "December"]
    with pytest.raises(UsageError):
        read_log(path, first_day="1 January")
