"""What a user gets wrong in a plan or an option is answered with what to do about it."""

from __future__ import annotations

import pytest

from understudy.core.files.times import unit_of
from understudy.errors import DataError, UnderstudyError, UsageError
from understudy.logs.inspect import inspect
from understudy.logs.plan_draft import draft_plan
from understudy.logs.reading import read_log

PLAN = """[log]
learner = "student"
time = "at"
public_actions = true
learners = "learners.csv"

[[log.columns]]
name = "device"
of = "row"
kind = "category"
values = ["phone", "pc"]

[[log.columns]]
name = "age"
of = "learner"
kind = "number"
low = 15
high = 70
"""


@pytest.fixture
def folder(tmp_path):
    rows = [
        f"s{n % 6},{'abc'[n % 3]},{n % 2},2024-09-0{1 + n % 5} 10:{n:02d}:00,{n * 37 % 97},"
        f"{'phone' if n % 2 else 'pc'},v1"
        for n in range(48)
    ]
    log = "student,skill,correct,at,seconds_spent,device,version\n" + "\n".join(rows)
    (tmp_path / "log.csv").write_text(log)
    (tmp_path / "learners.csv").write_text("student,age\n" + "\n".join(f"s{n},{20 + n}" for n in range(6)))
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ('"device"', '"devise"', "did you mean 'device'"),
        ("values", "valeus", "did you mean 'values'"),
        ("public_actions", "public_action", "did you mean 'public_actions'"),
        ("low = 15", "low =", "fill the value in"),
        ('of = "learner"', 'of = "row"', 'of = "learner"'),
        ('"learners.csv"', '"nope.csv"', "as seen from the plan's folder"),
        ("public_actions = true", 'time_unit = "hours"', "ms (milliseconds)"),
    ],
)
def test_mistakes_in_a_plan(folder, before, after, hint):
    (folder / "plan.toml").write_text(PLAN.replace(before, after))

    with pytest.raises(UnderstudyError) as caught:
        read_log(folder / "log.csv", plan=folder / "plan.toml")

    assert hint in caught.value.hint


def test_a_column_that_is_not_a_time(folder):
    with pytest.raises(DataError, match="none of its cells can be read as a time") as caught:
        read_log(folder / "log.csv", time="device")

    assert "name the column with the times" in caught.value.hint
    assert "time_unit" not in caught.value.settings


def test_a_duration_is_noted_and_has_no_days(folder):
    log = read_log(folder / "log.csv", time="seconds_spent")

    assert any("how long something took" in note for note in log.origin.notes)
    found = inspect(log)
    assert "action and day" not in {share.points for share in found.uniqueness}
    assert "no dates" in next(each.state for each in found.declarations if each.what == "times")


@pytest.mark.parametrize(
    ("word", "unit"), [("milliseconds", "ms"), ("Seconds", "s"), ("days", "d"), ("us", "us")]
)
def test_units_in_words(word, unit):
    assert unit_of(word) == unit


def test_a_unit_that_does_not_exist():
    with pytest.raises(UsageError) as caught:
        unit_of("fortnights")
    assert caught.value.settings == ("time_unit",)


def test_names_that_nearly_match_are_counted(folder):
    table = "student,age\nS0,20\ns 1,21\n" + "\n".join(f"s{n},{20 + n}" for n in range(2, 6))
    (folder / "learners.csv").write_text(table)
    log = read_log(folder / "log.csv", learners=folder / "learners.csv")
    notes = [note for note in log.origin.notes if "capitals, spaces or hyphens" in note]
    assert len(notes) == 1
    assert "2 learners" in notes[0]


def test_an_identifying_column_that_is_declared_changes_the_heading(folder):
    text = (folder / "log.csv").read_text().replace("device", "email").replace("phone", "a@x.org")
    (folder / "log.csv").write_text(text)
    plan = PLAN.replace('"device"', '"email"').replace('"phone"', '"x"')
    (folder / "plan.toml").write_text(plan)
    found = inspect(read_log(folder / "log.csv", plan=folder / "plan.toml"))
    assert "refused" in found.identifying
    assert "None of these reaches" not in found.page()
    assert "`" not in found.page().partition("<h2>")[0].partition("<body")[2]


def test_a_draft_offers_no_sessions_and_addresses_and_takes_constants_for_rows(folder):
    rows = [
        f"u{n % 5},https://c/users/{n % 5},quizzes,show,2024-09-01T10:{n:02d}:00Z,ab,web" for n in range(40)
    ]
    header = "user_id,url,controller,action,created_at,session_id,origin"
    (folder / "views.csv").write_text(header + "\n" + "\n".join(rows))

    drafted = draft_plan(folder / "views.csv")

    assert {(column.name, column.of) for column in drafted.columns} == {("origin", "row")}
    assert {"url", "session_id"} <= {each.column for each in drafted.identifiers}


def test_a_draft_names_no_column_that_is_in_neither_file(folder):
    header = (
        "Zeit,Vollständiger Name,Betroffene/r Nutzer/in,Ereigniskontext,Komponente,Ereignisname,Beschreibung"
    )
    rows = [
        f"0{1 + n % 5}.09.2024 10:{n:02d},Ana {'AB'[n % 2]},-,Test: {n % 3},Test,seen,text" for n in range(20)
    ]
    (folder / "moodle.csv").write_text(header + "\n" + "\n".join(rows))
    (folder / "grades.csv").write_text(
        "Vorname,Nachname,ID-Nummer,Kurs gesamt (Punkte)\nAna,A,1234567,5\nAna,B,1234568,7\n"
    )

    drafted = draft_plan(folder / "moodle.csv", learners=folder / "grades.csv")

    assert "User full name" not in {each.column for each in drafted.identifiers}
    assert "ID-Nummer" not in {column.name for column in drafted.columns}


@pytest.mark.parametrize("in_plan", [False, True])
def test_results_have_columns_of_their_own(folder, in_plan):
    (folder / "tests.csv").write_text(
        "who,exam,passed_it\n" + "\n".join(f"s{n % 6},Exam {n % 2},1" for n in range(12))
    )
    columns = {"learner": "who", "action": "exam", "outcome": "passed_it"}
    if in_plan:
        table = "\n".join(f'{role} = "{name}"' for role, name in columns.items())
        (folder / "plan.toml").write_text(
            f'[log]\nlearner = "student"\n\n[log.results]\nfile = "tests.csv"\n{table}\n'
        )
        log = read_log(folder / "log.csv", plan=folder / "plan.toml", time="at", time_for_order=True)
    else:
        written = ",".join(f"{role}={name}" for role, name in columns.items())
        log = read_log(
            folder / "log.csv",
            results=folder / "tests.csv",
            results_columns=written,
            time="at",
            time_for_order=True,
        )
    assert {"Exam 0", "Exam 1"} <= set(log.actions)
    assert log.n_rows == 60


def test_mistakes_about_results(folder):
    with pytest.raises(UsageError, match="no results were given"):
        read_log(folder / "log.csv", results_columns="learner=who")
    with pytest.raises(UsageError, match="role=column"):
        read_log(folder / "log.csv", results=folder / "log.csv", results_columns="lerner=who")
    (folder / "plan.toml").write_text('[log.results]\nfile = "log.csv"\nlerner = "who"\n')
    with pytest.raises(DataError, match="line 3: unknown key 'lerner'") as caught:
        read_log(folder / "log.csv", plan=folder / "plan.toml")
    assert "did you mean 'learner'" in caught.value.hint


def test_a_language_in_a_plan(folder):
    (folder / "plan.toml").write_text('[log]\nlanguage = "de-AT"\n')
    assert read_log(folder / "log.csv", plan=folder / "plan.toml").n_learners == 6
