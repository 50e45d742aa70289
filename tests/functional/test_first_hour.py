"""A custodian's first hour: files as people have them, the command that was typed, and what the person sees.

Each file is followed to its end: where a command stops, the line that it prints ("Run next") is typed as it stands.
"""

from __future__ import annotations

import io
import json
import random
import shlex
from datetime import UTC, datetime, timedelta

import pytest
import xlsxwriter

from tests.support.command import run

pytestmark = pytest.mark.functional

# Ids that no message may hold, whatever goes wrong.
SECRET = "Zq7-pupil"


def rows(n_learners=14, n_attempts=8, seed=5):
    """Attempts of learners: learner, task, whether it went well, when."""
    rng = random.Random(seed)
    start = datetime(2024, 3, 1, 9, tzinfo=UTC)
    return [
        (
            f"{SECRET}{learner:02}",
            f"Task {rng.randrange(5) + 1}",
            rng.random() < 0.6,
            start + timedelta(minutes=n),
        )
        for learner in range(n_learners)
        for n in range(n_attempts)
    ]


ROWS = rows()


def csv(header, cells, separator=","):
    """A table of the attempts as text: `cells` writes a row, given its number and its attempt."""
    lines = [header, *(separator.join(cells(number, *row)) for number, row in enumerate(ROWS))]
    return ("\n".join(lines) + "\n").encode()


def workbook(sheets):
    """A workbook: for each sheet its name and its rows."""
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        for name, cells in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(cells):
                sheet.write_row(number, 0, row)
    return buffer.getvalue()


@pytest.fixture
def desk(tmp_path):
    """A person at a terminal, with one file: types a command, and follows the advice that it prints."""

    class Person:
        def has(self, name, content):
            (tmp_path / name).write_bytes(content)

        def types(self, command, code=0):
            done = run(*shlex.split(command)[1:], cwd=tmp_path)
            seen = done.stdout + done.stderr
            assert SECRET not in seen, "a learner was named"
            assert done.returncode == code, seen
            return seen

        def follows(self, seen):
            """The command that the last line but the notes advises."""
            (advice,) = [line for line in seen.splitlines() if line.startswith("Run next: ")]
            return advice.removeprefix("Run next: ")

    return Person()


def fact(seen, name):
    """The value of a fact in the table of `inspect`."""
    (line,) = [line for line in seen.splitlines() if line.startswith(name + "  ")]
    return line.removeprefix(name).strip()


SUCCESS_RATE = f"{100 * sum(row[2] for row in ROWS) / len(ROWS):.1f} %"


@pytest.mark.parametrize(
    "words", ["TRUE/FALSE", "WAHR/FALSCH", "VRAI/FAUX", "Yes/No", "ja/nein", "oui/non", "Y/N", "1,0/0,0"]
)
def test_1_a_spreadsheet_in_the_language_of_its_owner(desk, words):
    right, wrong = words.split("/")
    desk.has(
        "log.csv",
        csv(
            "learner;action;outcome",
            lambda n, who, what, well, at: (who, what, right if well else wrong),
            ";",
        ),
    )
    seen = desk.types("understudy inspect log.csv")
    assert fact(seen, "success rate") == SUCCESS_RATE


def test_2_percentages_with_a_decimal_comma(desk):
    cells = lambda n, who, what, well, at: (who, what, f"{50 + n % 50 if well else n % 50},5 %")  # noqa: E731
    desk.has("quiz.csv", csv("learner;action;result", cells, ";"))
    seen = desk.types("understudy inspect quiz.csv", code=3)
    assert "column 'result' holds something other than 0 and 1 on line 2" in seen
    assert "declare the number from which on they are a success, such as 50" in seen
    seen = desk.types(desk.follows(seen).replace("NUMBER", "50"))
    assert "is a success from 50 on, as declared." in seen
    assert fact(seen, "success rate") == SUCCESS_RATE


def test_3_points_in_a_column_that_nobody_calls_an_outcome(desk):
    cells = lambda n, who, what, well, at: (who, what, str(6 + n % 5 if well else n % 6))  # noqa: E731
    desk.has("points.csv", csv("learner,action,points reached", cells))
    seen = desk.types("understudy inspect points.csv", code=3)
    assert (
        "perhaps column 3 is the outcome (numbers, which need one from which on they are a success)" in seen
    )
    command = desk.follows(seen)
    assert command == "understudy inspect points.csv --outcome 'points reached' --pass NUMBER"
    assert fact(desk.types(command.replace("NUMBER", "6")), "success rate") == SUCCESS_RATE


def test_4_a_few_rows_are_incomplete(desk):
    cells = lambda n, who, what, well, at: (who, what, "" if n in (3, 40, 41) else str(int(well)))  # noqa: E731
    desk.has("log.csv", csv("learner,action,outcome", cells))
    seen = desk.types("understudy inspect log.csv", code=3)
    assert "column 'outcome' has no value on line 5 (3 such rows)." in seen
    assert desk.follows(seen) == "understudy inspect log.csv --skip-incomplete"
    seen = desk.types(desk.follows(seen))
    assert f"Skipped as incomplete: 3 rows of {len(ROWS)} with an empty cell in column 'outcome'." in seen
    assert fact(seen, "rows") == str(len(ROWS) - 3)


def test_5_names_of_columns_that_only_their_owner_knows(desk):
    cells = lambda n, who, what, well, at: (who, what, str(int(well)), at.strftime("%Y-%m-%d %H:%M"))  # noqa: E731
    desk.has("export.csv", csv("wer,was,ok,wann genau", cells))
    seen = desk.types("understudy inspect export.csv", code=3)
    assert "column 3 is the outcome (it holds only 0 and 1)" in seen
    command = desk.follows(seen)
    assert command == (
        "understudy inspect export.csv --outcome ok --time 'wann genau' --learner wer --action was"
    )
    seen = desk.types(command)
    assert fact(seen, "from") == "2024-03-01 to 2024-03-01"
    # A name that is nearly right.
    seen = desk.types("understudy inspect export.csv --learner wer --action was --outcome okay", code=3)
    assert "perhaps column 3 is the outcome (a similar name)" in seen
    assert desk.follows(seen).endswith("--outcome ok")


def test_6_a_file_without_a_header(desk):
    cells = lambda n, who, what, well, at: (who, what, str(int(well)))  # noqa: E731
    desk.has("log.csv", csv("", cells).lstrip())
    seen = desk.types("understudy inspect log.csv", code=3)
    assert "the first line looks like a row, not like names" in seen
    assert "else the first line has to hold the columns' names (--no-header" in seen
    assert "Run next" not in seen


def test_7_times_that_count_from_the_start_of_a_session(desk):
    cells = lambda n, who, what, well, at: (who, what, str(int(well)), f"{30.5 * (n % 8):g}")  # noqa: E731
    desk.has("log.csv", csv("learner,action,outcome,time", cells))
    seen = desk.types("understudy inspect log.csv", code=3)
    assert "seem to count from the start of a session or a course, not from 1970" in seen
    seen = desk.types(desk.follows(seen))
    assert "they have no date, and only their order and differences are used" in seen
    assert "1970" not in seen
    assert fact(seen, "times count from a start, up to") == "214 s"


def test_8_a_workbook_with_a_cover_a_title_and_notes(desk):
    """What is found by looking serves to look at the log; a guarantee needs the custodian's word."""
    table = [[who, what, well] for who, what, well, _ in ROWS]

    def has(*notes):
        title = (["Results of spring"], ["Course", "Maths"], [], ["Schüler", "Aufgabe", "richtig"])
        sheets = {"Cover": [["Exported for the board"]], "Spring": [*title, *table, *notes]}
        desk.has("results.xlsx", workbook(sheets))

    has([], ["* without those who left"])
    last = 4 + len(ROWS)
    seen = desk.types("understudy inspect results.xlsx")
    assert f"The table has its header on row 4 and ends on row {last} of sheet 2." in seen
    assert fact(seen, "success rate") == SUCCESS_RATE
    private = (
        "understudy synthesize results.xlsx -o fake.csv -m markov-dp:epsilon=2 --public-actions --for shares"
    )
    seen = desk.types(private, code=2)
    assert "it was guessed where the workbook's table ends" in seen
    assert "delete what stands below the table" in seen
    # The rows were declared: what is wrong with that is said, not that they were not.
    seen = desk.types(f"{private} --sheet '2!4:{last}'", code=2)
    assert "something stands below the rows that were named" in seen
    assert "guessed" not in seen
    assert "delete what stands below the table" in seen
    has()
    seen = desk.types(private, code=2)
    assert "it was guessed where the workbook's table is" in seen
    assert desk.follows(seen) == f"{private} --sheet '2!4:{last}'"
    seen = desk.types(desk.follows(seen))
    assert "epsilon 2" in seen
    assert "has no table" in desk.types("understudy inspect results.xlsx --sheet Cover", code=3)
    assert "there is no sheet 'Autumn' among the 2" in desk.types(
        "understudy inspect results.xlsx --sheet Autumn", code=2
    )


def test_13_german_grades_are_a_question_and_then_read_as_declared(desk):
    """Twelve files were made for the first version; in this one 1 is the best grade, which nothing in it says."""
    rows = [f"{SECRET}{n // 5:02};Fach {n % 3};{('1', '2,3', '4', '5', '6')[n % 5]}" for n in range(60)]
    desk.has("noten.csv", "\n".join(["schüler;thema;Note", *rows]).encode())
    seen = desk.types("understudy inspect noten.csv", code=3)
    assert "Run next: understudy inspect noten.csv --outcome Note --pass '<=NUMBER'" in seen
    again = desk.types("understudy inspect noten.csv --outcome Note --pass '<=NUMBER'", code=2)
    assert "a pass mark is a number such as 50, or '<=4' where a low number is good" in again
    read = desk.types("understudy inspect noten.csv --outcome Note --pass '<=4'")
    assert "is a success up to 4, as declared" in read
    assert "60.0 %" in read
    sheet = [f"{SECRET}{n:02};{1 + n % 6};{1 + n % 5};{1 + n % 4}" for n in range(24)]
    desk.has("klausur.csv", "\n".join(["schüler;Aufgabe 1;Aufgabe 2;Aufgabe 3", *sheet]).encode())
    seen = desk.types("understudy inspect klausur.csv", code=3)
    assert "Run next: understudy difficulties klausur.csv --explain --pass '<=NUMBER'" in seen


def test_9_an_exam_sheet_is_given_to_the_log_reader(desk):
    learners = [f"{SECRET}{n:02}" for n in range(12)]
    answers = [
        f"{who},{','.join(str((n * k) % 3 % 2) for k in range(1, 7))}" for n, who in enumerate(learners)
    ]
    desk.has("exam.csv", "\n".join(["student,Q1,Q2,Q3,Q4,Q5,Q6", *answers]).encode())
    seen = desk.types("understudy inspect exam.csv", code=3)
    assert "the file seems to be an exam sheet" in seen
    # Advice that is followed without a thought spends nothing and writes no real figure.
    assert desk.follows(seen) == "understudy difficulties exam.csv --explain"
    desk.types(desk.follows(seen))


def test_10_keystrokes_are_given_to_the_log_reader_and_a_log_without_outcomes_to_that_of_exams(desk):
    typed = [
        f"{who},{130 * n + 37 * (n % 7)},{'abcdefgh'[n % 8]}" for n, (who, *_) in enumerate(rows(14, 400))
    ]
    desk.has("typing.csv", "\n".join(["learner,time_ms,key", *typed]).encode())
    seen = desk.types("understudy release typing.csv -o bundle", code=3)
    assert "the file seems to be keystrokes" in seen
    desk.types(desk.follows(seen) + " --min-characters 5")
    moodle = [f'"{at:%d.%m.%y, %H:%M}",{who},Course viewed' for who, _, _, at in ROWS]
    desk.has("moodle.csv", "\n".join(["Time,User full name,Event name", *moodle]).encode())
    seen = desk.types("understudy difficulties moodle.csv -o d.json", code=3)
    assert "the file seems to be a log of actions without outcomes" in seen
    assert desk.follows(seen) == "understudy inspect moodle.csv"
    assert fact(desk.types(desk.follows(seen)), "success rate") == "no outcomes"


def test_11_a_log_is_given_to_the_reader_of_keystrokes(desk):
    desk.has(
        "log.csv", csv("learner,action,outcome", lambda n, who, what, well, at: (who, what, str(int(well))))
    )
    seen = desk.types("understudy keystrokes profile log.csv -o profiles.csv", code=3)
    assert "the file seems to be a log of actions" in seen
    desk.types(desk.follows(seen))
    # Also where a cell of the log is empty.
    desk.has(
        "log.csv", csv("learner,action,outcome", lambda n, who, what, well, at: (who, what, "1" if n else ""))
    )
    seen = desk.types("understudy keystrokes profile log.csv -o profiles.csv", code=3)
    assert desk.follows(seen) == "understudy inspect log.csv"


def test_12_three_files_of_an_audit_that_name_their_columns_differently(desk):
    def part(header, *wanted):
        lines = [
            f"{who},{what},{int(well)}" for who, what, well, _ in rows(60) if int(who[-2:]) % 3 in wanted
        ]
        return "\n".join([header, *lines]).encode()

    desk.has("members.csv", part("pupil,skill,ok", 0))
    desk.has("outsiders.csv", part("learner,task,correct", 1))
    desk.has("synthetic.csv", part("id,action,outcome", 2).replace(SECRET.encode(), b"fake-"))
    files = "--members members.csv --outsiders outsiders.csv --synthetic synthetic.csv"
    seen = desk.types(f"understudy audit {files}", code=3)
    assert "members.csv: found no column for the outcome" in seen
    seen = desk.types(f"{desk.follows(seen)} --synthetic-columns learner=id --json")
    assert json.loads(seen)["notes"] == []
    both = files.replace("outsiders.csv", "members.csv")
    seen = desk.types(f"understudy audit {both} --outcome ok --synthetic-columns learner=id", code=3)
    assert "20 learners of the outsiders are among the members, with the same rows." in seen


MOODLE = {
    "German": (
        "Zeit;Vollständiger Name;Betroffene/r Nutzer/in;Ereigniskontext;Komponente;Ereignisname",
        "Vollständiger Name",
        "Ereigniskontext",
    ),
    "French": (
        "Heure;Nom complet de l’utilisateur;Utilisateur touché;Contexte de l’événement;Composant;Nom de l’événement",
        "Nom complet de l’utilisateur",
        "Contexte de l’événement",
    ),
    "Spanish": (
        "Hora;Nombre completo del usuario;Usuario afectado;Contexto del evento;Componente;Nombre evento",
        "Nombre completo del usuario",
        "Contexto del evento",
    ),
    "English": (
        "Time;User full name;Affected user;Event context;Component;Event name",
        "User full name",
        "Event context",
    ),
}


@pytest.mark.parametrize("language", MOODLE)
def test_14_moodles_log_in_the_language_of_the_school(desk, language):
    header, learner, action = MOODLE[language]
    # In the order of time, as Moodle writes it: learners alternate, and activities stay for a while.
    rows = sorted(ROWS, key=lambda row: row[3])
    lines = [f"{at:%d.%m.%y, %H:%M};{who};-;{what};Test;Versuch" for who, what, _, at in rows]
    desk.has("moodle.csv", "\n".join([header, *lines]).encode())
    seen = desk.types("understudy inspect moodle.csv")
    assert f"learner = {learner}, action = {action}, time = " in seen
    assert fact(seen, "success rate") == "no outcomes"
    # With grades it is a log of attempts.
    graded = [f"{line};{int(row[2])}" for line, row in zip(lines, rows, strict=True)]
    desk.has("graded.csv", "\n".join([f"{header};Bewertung", *graded]).encode())
    seen = desk.types("understudy inspect graded.csv", code=3)
    seen = desk.types(desk.follows(seen))
    assert f"learner = {learner}, action = {action}, time = " in seen
    assert fact(seen, "learners") == "14"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("Schüler;Übung;richtig", "ja/nein"),
        ("Schüler;Übung;richtig", "1/0"),
        ("Schüler/in;Aktivität;gelöst", "wahr/falsch"),
        ("élève;exercice;réussi", "VRAI/FAUX"),
        ("estudiante;ejercicio;correcto", "sí/no"),
        ("Matrikelnr.;Aufgabe;bestanden", "ja/nein"),
    ],
)
def test_15_headers_of_schools_are_headers(desk, header, words):
    right, wrong = words.split("/")
    desk.has(
        "log.csv", csv(header, lambda n, who, what, well, at: (who, what, right if well else wrong), ";")
    )
    assert fact(desk.types("understudy inspect log.csv"), "success rate") == SUCCESS_RATE
    # The same with one column that nobody knows: the header is still one.
    first, _, third = header.split(";")
    desk.has(
        "log.csv",
        csv(
            f"{first};Modul;{third}",
            lambda n, who, what, well, at: (who, what, right if well else wrong),
            ";",
        ),
    )
    seen = desk.types("understudy inspect log.csv", code=3)
    assert "seems to hold data" not in seen
    assert desk.follows(seen) == "understudy inspect log.csv --action Modul"


def test_16_a_date_whose_day_and_month_may_be_either_way_round(desk):
    for days, order in ((timedelta(), "ORDER"), (timedelta(days=17), "day-first")):

        def cells(n, who, what, well, at, days=days):
            return who, what, f"{at + days:%d/%m/%Y}", str(int(well))

        desk.has("log.csv", csv("learner,action,date,correct", cells))
        seen = desk.types("understudy inspect log.csv", code=3)
        assert desk.follows(seen) == f"understudy inspect log.csv --date-order {order}"
    private = desk.follows(seen).replace("inspect log.csv", "release log.csv -o bundle --public-actions")
    desk.types(f"{private} --write-plan plan.toml")
    desk.types("understudy release --plan plan.toml --plan-page page.html")


def test_17_points_without_a_maximum(desk):
    rows = [f"{700000 + n},{n % 6},{n % 5},{n % 11},{n % 6 + n % 5 + n % 11}" for n in range(40)]
    desk.has("exam.csv", "\n".join(["Matrikelnummer,A1,A2,A3,Total", *rows]).encode())
    seen = desk.types("understudy inspect exam.csv", code=3)
    assert "is the learner" not in seen
    seen = desk.types(desk.follows(seen), code=3)
    assert desk.follows(seen) == "understudy difficulties exam.csv --explain --items ITEMS"
    desk.has("items.csv", b"item,points\nA1,5\nA2,4\nA3,10\n")
    assert "Items: A1, A2, A3." in desk.types(desk.follows(seen).replace("ITEMS", "items.csv"))
