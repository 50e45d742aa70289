"""Canvas: page views, and tables of the Data Access Platform in each of its formats; nobody's id becomes an action."""

from __future__ import annotations

import gzip
import io
import json

import polars as pl
import pytest

from tests.support.fuzz import CANARY
from tests.support.workbook import workbook
from understudy.errors import DataError, UsageError
from understudy.logs.reading import read_log

VIEWS = (
    "request_id,user_id,url,context_id,context_type,asset_id,asset_type,controller,action,interaction_seconds,"
    "created_at,user_request,render_time,user_agent,participated,account_id,real_user_id,http_method,remote_ip\n"
    "r1,31001,https://c.example/courses/4/assignments/345,4,Course,345,Assignment,assignments,show,12.5,"
    "2024-05-02T10:00:00Z,true,0.1,Mozilla/5.0,,1,,get,192.0.2.7\n"
    "r2,31001,https://c.example/courses/4/users/31002,4,Course,31002,User,context,roster_user,3,"
    "2024-05-02T09:00:00Z,true,0.1,Mozilla/5.0,,1,,get,192.0.2.7\n"
    "r3,31002,https://c.example/users/31002/files/7?user_id=31002,31002,User,7,Attachment,files,show,3,"
    "2024-05-02T09:00:00Z,true,0.1,Mozilla/5.0,true,1,,get,192.0.2.8\n"
    "r4,31002,https://c.example/courses/4,4,Course,,,courses,show,3,2024-05-02T09:30:00Z,true,0.1,M,,1,,get,\n"
    "r5,31002,https://c.example/courses/4,4,Course,,,courses,show,3,2024-05-02T09:40:00Z,true,0.1,M,,1,9,get,\n"
    "r6,,https://c.example/login,,,,,login,new,3,2024-05-02T09:40:00Z,true,0.1,M,,1,,get,\n"
)
LOGS = [
    ("U", {"user_id": 31001, "timestamp": "2024-05-02T10:00:00.000Z", "assignment_id": 345}),
    ("U", {"user_id": 31001, "timestamp": "2024-05-02T09:00:00.000Z"}),
    ("U", {"user_id": 31002, "timestamp": "2024-05-02T09:00:00.000Z", "quiz_id": 7, "conversation_id": 77}),
    ("U", {"user_id": 31002, "timestamp": "2024-05-02T09:10:00.000Z", "discussion_id": 8}),
    ("U", {"user_id": None, "timestamp": "2024-05-02T09:10:00.000Z"}),
    ("U", {"user_id": 31002, "timestamp": "2024-05-02T09:20:00.000Z", "real_user_id": 9}),
    ("D", None),
]
FIELDS = (
    *(
        "user_id",
        "timestamp",
        "real_user_id",
        "quiz_id",
        "discussion_id",
        "conversation_id",
        "assignment_id",
        "url",
    ),
    *("remote_ip", "user_agent", "web_application_controller", "web_application_action"),
)
REQUESTS = [
    ("learner-1", "pages#show"),
    ("learner-1", "pages#show assignment 345"),
    ("learner-2", "pages#show quiz 7"),
    ("learner-2", "pages#show discussion 8"),
]


def web_logs() -> list[dict[str, object]]:
    usual = {
        "url": "/courses/4/users/31002",
        "remote_ip": "192.0.2.7",
        "user_agent": "Mozilla/5.0",
        "web_application_controller": "pages",
        "web_application_action": "show",
    }
    return [
        {
            "meta": {"ts": "2024-05-03T00:00:00Z", "action": action},
            "key": {"id": f"id{number}"},
            **({} if value is None else {"value": {**dict.fromkeys(FIELDS), **usual, **value}}),
        }
        for number, (action, value) in enumerate(LOGS)
    ]


def flat(records: list[dict]) -> pl.DataFrame:
    names = dict.fromkeys(
        f"{part}.{name}"
        for part in ("meta", "key", "value")
        for record in records
        for name in record.get(part, ())
    )
    rows = [
        {name: record.get(name.split(".")[0], {}).get(name.split(".", 1)[1]) for name in names}
        for record in records
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), strict=False)


def written(shape: str, records: list[dict]) -> tuple[str, bytes]:
    table, buffer = flat(records), io.BytesIO()
    lines = "\n".join(map(json.dumps, records)).encode()
    if shape == "csv":
        return "part.csv.gz", gzip.compress(table.write_csv().encode())
    if shape == "tsv":
        return "part.tsv.gz", gzip.compress(table.write_csv(separator="\t", null_value="\\N").encode())
    if shape == "lines":
        return "part.jsonl.gz", gzip.compress(lines)
    if shape == "parquet":
        table.write_parquet(buffer)
    else:
        pl.read_ndjson(io.BytesIO(lines), infer_schema_length=None).write_parquet(buffer)
    return "part.parquet", buffer.getvalue()


SHAPES = ("csv", "tsv", "lines", "parquet", "nested parquet")


def rows_of(log):
    frame = log.to_polars()
    return list(zip(frame["learner"], frame["action"], strict=True))


def test_page_views(write):
    log = read_log(write("views.csv", VIEWS))
    assert (log.origin.format, log.origin.guesses) == ("canvas-page-views", ())
    assert rows_of(log) == [
        ("learner-1", "context#roster_user"),
        ("learner-1", "assignments#show Assignment 345"),
        ("learner-2", "files#show"),
        ("learner-2", "courses#show"),
    ]
    assert log.outcome is None
    assert log.n_learners == 2
    identifying = {found.column: found.kind for found in log.origin.identifiers}
    assert identifying == {"user_agent": "computer", "remote_ip": "IP address"}
    assert "1 rows that someone else did in a learner's name were dropped." in log.origin.notes
    log.origin.refuse_people("the synthetic data", log.actions)
    # What a command prints to declare it reads the same.
    declared = {role: log.origin.columns[role] for role in ("learner", "action", "time")}
    assert rows_of(read_log(write("views.csv", VIEWS), **declared)) == rows_of(log)


def test_addresses_of_page_views_name_nobody(write):
    log = read_log(write("views.csv", VIEWS), action="url")
    assert log.actions == (
        "https://c.example/courses/4",
        "https://c.example/courses/4/assignments/345",
        "https://c.example/courses/4/users/(person)",
        "https://c.example/users/(person)/files/7?user_id=(person)",
    )
    log.origin.refuse_people("the synthetic data", log.actions)


def test_page_views_in_a_workbook(tmp_path):
    path = tmp_path / "views.xlsx"
    path.write_bytes(workbook([line.split(",") for line in VIEWS.splitlines()]))
    assert read_log(path).origin.format == "canvas-page-views"


@pytest.mark.parametrize("shape", SHAPES)
def test_web_logs_in_each_format(tmp_path, shape):
    name, content = written(shape, web_logs())
    path = tmp_path / name
    path.write_bytes(content)
    log = read_log(path)
    assert log.origin.format == "canvas-web-logs"
    # Which fields records have is seen in the first of them; a table says it for all.
    assert bool(log.origin.guesses) == (shape == "lines")
    assert rows_of(log) == REQUESTS
    assert log.n_learners == 2
    assert "1 rows that Canvas deleted were dropped." in log.origin.notes
    kinds = {found.column: found.kind for found in log.origin.identifiers}
    assert kinds == {"value.remote_ip": "IP address", "value.user_agent": "computer"}
    assert log.outcome is None


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("thing", ["assignment", "quiz"])
def test_submissions_with_scores(tmp_path, shape, thing):
    when = "submitted_at" if thing == "assignment" else "finished_at"
    rows = [(1, 5, 80), (1, 6, 40), (2, 5, 50), (2, 6, None)]
    records = [
        {
            "meta": {"ts": "2024-05-03T00:00:00Z", "action": "U"},
            "key": {"id": number},
            "value": {
                "user_id": who,
                f"{thing}_id": what,
                "score": score,
                when: None if score is None else f"2024-05-0{number + 1}T10:00:00Z",
                "workflow_state": "graded",
            },
        }
        for number, (who, what, score) in enumerate(rows)
    ]
    records.append({"meta": {"ts": "2024-05-03T00:00:00Z", "action": "D"}, "key": {"id": 9}})
    name, content = written(shape, records)
    path = tmp_path / name
    path.write_bytes(content)
    log = read_log(path, pass_from=50)
    assert log.origin.format == "canvas-submissions"
    assert list(zip(rows_of(log), log.outcome.tolist(), strict=True)) == [
        (("learner-1", f"{thing} 5"), 1),
        (("learner-1", f"{thing} 6"), 0),
        (("learner-2", f"{thing} 5"), 1),
    ]
    with pytest.raises(DataError, match=r"column 'value.score' holds something other than 0 and 1"):
        read_log(path)
    assert read_log(path, no_outcomes=True).outcome is None


@pytest.mark.parametrize("shape", SHAPES)
def test_other_tables_of_the_platform(tmp_path, shape):
    records = [
        {
            "meta": {"ts": "2024-05-03T00:00:00Z", "action": "U"},
            "key": {"id": 1},
            "value": {"name": CANARY, "x": 1},
        }
    ]
    name, content = written(shape, records)
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match="without events of learners") as caught:
        read_log(path)
    assert caught.value.code == "no-events"
    assert CANARY not in str(caught.value.to_json())


def test_a_line_that_is_wrong_is_named(write):
    lines = list(map(json.dumps, web_logs()))
    lines[2] = lines[2][:-5]
    with pytest.raises(DataError, match="wrong on line 3"):
        read_log(write("part.jsonl", "\n".join(lines) + "\n"))
    lines[2] = json.dumps({"key": {}, "meta": {}, "value": [CANARY]})
    with pytest.raises(DataError, match="line 3 has a 'value' that is not an object") as caught:
        read_log(write("part.jsonl", "\n".join(lines) + "\n"))
    assert CANARY not in str(caught.value)


def test_a_column_that_is_not_there(write):
    with pytest.raises((DataError, UsageError), match="asked for column 'nothing'"):
        read_log(write("views.csv", VIEWS), action="nothing")


def test_a_row_is_read_by_itself(write):
    """Whatever other learners did, a learner's rows become the same actions."""
    header, *rows = VIEWS.splitlines()
    for kept in ("31001", "31002"):
        own = [row for row in rows if row.split(",")[1] == kept]
        alone = read_log(write("views.csv", "\n".join([header, *own]) + "\n"))
        together = read_log(write("views.csv", VIEWS))
        learner = "learner-1" if kept == "31001" else "learner-2"
        assert [action for _, action in rows_of(alone)] == [
            action for who, action in rows_of(together) if who == learner
        ]
