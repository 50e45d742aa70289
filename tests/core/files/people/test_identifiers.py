"""Columns that identify people are found; columns of tasks and numbers raise no alarm."""

from __future__ import annotations

import pytest

from understudy.core.files.people.identifiers import Identifier
from understudy.logs.reading import read_log


def log_with(column: str, values: list[str]) -> str:
    rows = [f'u{n % 3},s{n % 4},{n % 2},"{value}"' for n, value in enumerate(values)]
    return "\n".join([f"user,skill,correct,{column}", *rows]) + "\n"


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("First Name", "name"),
        ("surname", "name"),
        ("Nachname", "name"),
        ("prénom", "name"),
        ("apellidos", "name"),
        ("User full name", "name"),
        ("E-Mail", "e-mail address"),
        ("correo_electronico", "e-mail address"),
        ("Tel.", "phone number"),
        ("teléfono", "phone number"),
        ("Matrikelnummer", "student number"),
        ("student_number", "student number"),
        ("SSN", "student number"),
        ("IP address", "IP address"),
        ("login", "login name"),
    ],
)
def test_by_name(write, column, kind):
    log = read_log(write("log.csv", log_with(column, ["1", "2", "3", "4"])))
    assert log.origin.identifiers == (Identifier(column, kind, "by its name", "not read"),)


@pytest.mark.parametrize(
    ("column", "values", "kind", "evidence"),
    [
        (
            "contact",
            ["a@b.org", "c.d@e-f.co.uk", "none", "-"],
            "e-mail address",
            "by its content (50 % of values)",
        ),
        (
            "note",
            ["write to a@b.org please", *["-"] * 19],
            "e-mail address",
            "by its content (5 % of values)",
        ),
        ("host", ["192.168.1.7", "10.0.0.99", "127.0.0.1"], "IP address", "by its content (100 % of values)"),
        ("host", ["2001:db8::1", "fe80::1:2", "::"], "IP address", "by its content (67 % of values)"),
        (
            "contact",
            ["+49 171 1234567", "(555) 123-4567"],
            "phone number",
            "by its content (100 % of values)",
        ),
        (
            "contact",
            ["06 12 34 56 78", "030/1234567", ""],
            "phone number",
            "by its content (100 % of values)",
        ),
        ("name", ["Ada Lovelace", "Émilie du Châtelet", "Sofia Kovalevskaja"], "name", None),
        (
            "teacher",
            ["Lovelace, Ada", "Jean-Luc O'Neil"],
            "name",
            "by its name and its content (100 % of values)",
        ),
    ],
)
def test_by_content(write, column, values, kind, evidence):
    (found,) = read_log(write("log.csv", log_with(column, values * 2))).origin.identifiers
    # A header that we do not know, of a column that nobody asked for, may be a value itself.
    shown = column if column in ("name", "teacher") else "column 4"
    assert (found.column, found.kind, found.role) == (shown, kind, "not read")
    assert evidence is None or found.evidence == evidence


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("problem_number", ["5551234567", "004915112345", "1234567890123"]),
        ("section", ["1.2.3.4", "1.2.3.5", "12.1.3.2"]),
        ("when", ["2024-05-31", "31.05.2024", "05/31/2024"]),
        ("clock", ["12:30:45", "01:02:03", "10:11:12"]),
        ("skill_name2", ["Adding Fractions", "Box Plot", "Venn Diagram"]),
        ("name", ["adding fractions", "box plots", "Venn diagram"]),
        ("score", ["0.25", "-3", "1e5"]),
        ("expression", ["3+4", "+5", "100-20-3000"]),
        ("handle", ["@ana", "a@b", "x @ y"]),
        ("student_id", ["1001", "1002", "1003"]),
    ],
)
def test_no_false_alarm(write, column, values):
    assert read_log(write("log.csv", log_with(column, values * 2))).origin.identifiers == ()


def test_the_role_of_the_column_is_told(write):
    content = "email,skill,correct,class\na@b.org,x,1,k\nc@d.org,y,0,k\na@b.org,y,0,k\n"
    log = read_log(write("log.csv", content), learner="email")
    assert log.origin.identifiers == (Identifier("email", "e-mail address", "by its name", "learner"),)


@pytest.mark.parametrize("header", ["ana@kestrel.example", "+43 664 1234567", "Ana Kestrel", "note"])
def test_a_header_that_may_be_a_value_is_not_told(write, header):
    log = read_log(write("log.csv", log_with(header, ["a@b.org", "c@d.org"] * 3)))
    assert [found.column for found in log.origin.identifiers] == ["column 4"]
    assert header not in repr(log.origin.identifiers)


def test_a_header_that_is_known_or_chosen_is_told(write):
    content = log_with("thing", ["a@b.org", "c@d.org"] * 3).replace("skill", "problem name")
    log = read_log(write("log.csv", content), action="thing")
    assert {found.column for found in log.origin.identifiers} == {"thing"}
