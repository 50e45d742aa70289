"""A drafted plan declares nothing by itself, and has everything that can be declared, with no value of a learner."""

import json
import re
import tomllib

import polars as pl
import pytest

from tests.support.command import run
from tests.support.fuzz import CANARY
from understudy.logs.plan_draft import draft_plan
from understudy.logs.reading import read_log


@pytest.fixture
def place(tmp_path):
    rows = [
        (
            *(f"{CANARY}{n % 5}", f"s{n % 4}", n % 2, f"2024-05-31 10:00:{n:02}", f"{CANARY} {n}", n % 2),
            *(f"{CANARY}-{n % 2}", 10 * n, f"{CANARY}{n % 5}@example.org", f"{CANARY} school {n % 5 % 2}"),
        )
        for n in range(40)
    ]
    names = ["user", "skill", "correct", "start", "comment", "hint", "device", "ms", "mail", "school"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "log.csv")
    (tmp_path / "learners.csv").write_text(
        "".join(["user,Last name,band\n", *(f"{CANARY}{n},{CANARY},{n % 2}\n" for n in range(5))])
    )
    return tmp_path


def test_a_draft_is_a_plan_that_tells_nothing_more(place):
    drafted = draft_plan(place / "log.csv", learners=place / "learners.csv", out=place / "understudy.toml")
    found = {(column.name, column.of, column.kind.value) for column in drafted.columns}
    assert found == {
        ("start", "row", "time"),
        ("hint", "row", "yes/no"),
        ("device", "row", "category"),
        ("ms", "row", "number"),
        ("school", "learner", "category"),
        ("band", "learner", "yes/no"),
    }
    assert {identifier.column for identifier in drafted.identifiers} == {"mail", "Last name"}
    assert list(drafted.free_texts) == ["comment"]
    assert CANARY not in json.dumps(drafted.to_json())
    assert CANARY not in "\n".join(drafted.lines())
    content = tomllib.loads((place / "understudy.toml").read_text())["log"]
    assert content == {
        "format": "csv",
        "learner": "user",
        "action": "skill",
        "outcome": "correct",
        "learners": "learners.csv",
    }
    log = read_log(place / "log.csv", plan=place / "understudy.toml")
    assert not log.columns
    assert log.term is None


def test_a_draft_that_was_filled_in_is_read(place):
    text = re.sub(r"^# (\[\[?log\.|[a-z_]+ =)", r"\1", draft_plan(place / "log.csv").text, flags=re.MULTILINE)
    for blank, filled in (("values = []", 'values = ["a"]'), ("low =", "low = 0"), ("high =", "high = 500")):
        text = text.replace(blank, filled)
    head, *columns = text.replace("step =", "step = 1").replace('time = "ms"', "").split("[[log.columns]]")
    # The time of a row is not told twice.
    plan = "[[log.columns]]".join([head, *(column for column in columns if '"start"' not in column)])
    (place / "p.toml").write_text(plan)
    log = read_log(place / "log.csv", plan=place / "p.toml")
    assert log.has_times
    assert {column.declared.name for column in log.columns} == {"hint", "device", "ms", "school"}


def test_the_command_writes_a_draft_and_says_what_identifies_people(place):
    made = run("describe", "log.csv", "-o", "understudy.toml", cwd=place)
    assert made.returncode == 0, made.stderr
    assert "Identifies people, and is left out: mail" in made.stdout
    assert CANARY not in made.stdout + made.stderr + (place / "understudy.toml").read_text()
    again = run("describe", "log.csv", "-o", "understudy.toml", cwd=place)
    assert again.returncode == 2
    assert run("inspect", "log.csv", "--plan", "understudy.toml", cwd=place).returncode == 0
