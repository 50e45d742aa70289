"""Logs of Moodle and Canvas: how a learner's rows are read does not depend on other learners' rows."""

import json

import pytest

from tests.privacy.support.neighbours import NUMBERS, check_others, delimited, excel, neighbours, parquet
from understudy.logs.reading import read_log

REPORT = [
    "Time",
    "User full name",
    "Affected user",
    "Event context",
    "Component",
    "Event name",
    "Description",
]
VIEWS = ["user_id", "url", "context_type", "asset_type", "asset_id", "controller", "action", "created_at"]
REQUESTS = ["user_id", "timestamp", "url", "quiz_id", "web_application_controller", "web_application_action"]


@pytest.fixture(autouse=True)
def _without_search_for_people(monkeypatch):
    """A search that only ever refuses takes most of the time of reading a tiny file."""
    monkeypatch.setattr("understudy.core.events.event_table.identifiers_in_actions", lambda *names: [])


def events(rng, name):
    """The rows of a learner: learner, thing, text, time; some of them at one time, and from new to old for some."""
    clock = 1_600_000_000 + rng.randrange(10**7)
    rows = []
    for _ in range(rng.randint(1, 8)):
        clock += rng.choice([0, 60, 600])
        text = f"The user with id '{name}' saw /users/{rng.randrange(9)}"
        rows.append([name, str(rng.randrange(10, 15)), text, str(clock)])
    return rows[::-1] if rng.random() < 0.5 else rows


def report(row):
    who, what, text, time = row
    return [time, who, "-", f"Quiz: {what}", "Quiz", what, text]


def view(row):
    who, what, text, time = row
    return [who, text, "Course", "Quiz", what, "quizzes", "show", time]


def request(row):
    who, what, text, time = row
    value = dict(zip(REQUESTS, [who, time, text, what, "quizzes", "show"], strict=True))
    return {"meta": {"ts": "t", "action": "U"}, "key": {"id": "x"}, "value": value}


def flat(row):
    return ["t", "U", "x", *request(row)["value"].values()]


FLAT = ["meta.ts", "meta.action", "key.id", *(f"value.{name}" for name in REQUESTS)]
ARRAYS = [*REPORT, "Origin", "IP address"]
FORMATS = {
    "moodle": (lambda rows: delimited(",", REPORT)(list(map(report, rows))), {}),
    "moodle, description": (
        lambda rows: delimited(",", REPORT)(list(map(report, rows))),
        {"action": "Description"},
    ),
    "moodle workbook": (lambda rows: excel(REPORT)(list(map(report, rows))), {}),
    "moodle arrays": (lambda rows: json.dumps([[[*report(row), "web", ""] for row in rows]]).encode(), {}),
    "moodle objects": (
        lambda rows: json.dumps([[dict(zip(REPORT, report(row), strict=True)) for row in rows]]).encode(),
        {},
    ),
    "page views": (lambda rows: delimited(",", VIEWS)(list(map(view, rows))), {}),
    "addresses": (lambda rows: delimited(",", VIEWS)(list(map(view, rows))), {"action": "url"}),
    "web logs, csv": (lambda rows: delimited(",", FLAT)(list(map(flat, rows))), {}),
    "web logs, tsv": (lambda rows: delimited("\t", FLAT)(list(map(flat, rows))), {}),
    "web logs, parquet": (lambda rows: parquet(FLAT)(list(map(flat, rows))), {}),
    "web logs, lines": (lambda rows: "\n".join(json.dumps(request(row)) for row in rows).encode(), {}),
}


@pytest.mark.parametrize("set_aside", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_other_learners_are_read_alike(tmp_path, name, set_aside):
    write, options = FORMATS[name]

    def read(path):
        log = read_log(path, set_aside=set_aside, skip_incomplete=set_aside, single_rows=True, **options)
        assert log.outcome is None
        assert bool(log.origin.guesses) == ("lines" in name)
        rows = list(zip([log.actions[code] for code in log.action], map(str, log.time), strict=True))
        return [tuple(rows[a:b]) for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)]

    files = neighbours(events) if set_aside else neighbours(events, NUMBERS, n_files=15)
    check_others(tmp_path / "log", files, write, read)


@pytest.mark.parametrize("backwards", [False, True])
def test_only_a_learners_own_rows_turn_them_round(tmp_path, backwards):
    """Rows of one time are in the order of the file for a learner, whichever way another learner's many rows run."""
    times = [str(1_600_000_000 + 60 * n) for n in range(20)]
    other = [["u2", "10", "x", time] for time in (times[::-1] if backwards else times)]
    rows = [["u1", str(what), "x", times[0]] for what in (13, 11, 12)] + [["u1", "14", "x", times[1]], *other]
    (tmp_path / "log.csv").write_bytes(FORMATS["moodle"][0](rows))
    log = read_log(tmp_path / "log.csv")
    own = [log.actions[code] for code in log.action[: log.offsets[1]]]
    assert own == ["Quiz: 13", "Quiz: 11", "Quiz: 12", "Quiz: 14"]
