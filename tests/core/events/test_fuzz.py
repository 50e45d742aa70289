"""Whatever a file holds, reading ends in a log or in an error of ours, and no learner's value is told."""

from __future__ import annotations

import gzip
import io
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fuzz import (
    BREAKS,
    CANARY,
    Files,
    Reader,
    broken_files,
    contents,
    edited,
    few_edits,
    pieces,
    quick,
)
from tests.support.workbook import workbook
from understudy.core.events.reading import formats
from understudy.errors import UnderstudyError
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log

READER = Reader(
    read_log, lambda log: [*log.origin.notes, repr(log.origin.identifiers), repr(log.origin.columns)]
)
PIECES = pieces(
    b"learner action outcome time order_id user_id correct skill_name Outcome # user:x",
    *(b"value.user_id", b"meta.ts", b"key.id", b'"key"', b'"meta"', b"controller", b'"value":{'),
    *(b"Event context", b"Event name", b"User full name", b"[[[", b"Description"),
    *(b"Anon Student Id", b"KC (x)", b'"actor"', b'{"mbox":"m"}', b'"object"', b'{"id":"q"}'),
    *(b'"event_type"', b'"username"', b'"context"', b'{"user_id":7}', b'"sensor"', b'"data"', b'"eventTime"'),
)


@pytest.mark.parametrize("format", [None, *formats()])
@quick(40)
@given(content=contents(PIECES))
def test_arbitrary_bytes(tmp_path, format, content):
    result = READER.outcome(tmp_path / "log", content, format=format)
    if isinstance(result, Interactions):
        assert result.n_rows > 0


words = st.sampled_from(
    ["learner", "action", "outcome", "time", "a", "b", "1", "0", "", '"', "\n", ",", "é", "\u2028"]
)


@quick(40)
@given(rows=st.lists(st.tuples(words, words, words), min_size=1, max_size=8), time=words)
def test_what_was_written_is_read(tmp_path, rows, time):
    """A csv written by another library is read field by field as it was written."""
    frame = pl.DataFrame(rows, schema=["learner", "action", "outcome"], orient="row").with_columns(
        time=pl.lit(time)
    )
    result = READER.outcome(tmp_path / "log.csv", frame.write_csv().encode(), single_rows=True)
    names = frame.select(pl.col("learner", "action").str.strip_chars())
    if frame["outcome"].is_in(["0", "1"]).all() and (names != "").to_numpy().all():
        assert isinstance(result, Interactions)
        assert result.n_rows == len(rows)
        assert result.n_learners == names["learner"].n_unique()
        assert set(result.actions) == set(names["action"])
    else:
        assert isinstance(result, UnderstudyError)


def whole_files() -> Files:
    """A good file in every format with the canary as a learner's id and in a column that nobody asked for."""
    rows = [
        (f"{CANARY}{n % 3}", f"s{n % 4}", n % 2, f"2024-05-31 10:00:{n:02}", f"{CANARY} text")
        for n in range(12)
    ]
    names = ["learner", "action", "outcome", "time", "comment"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    assistments = "order_id,user_id,problem_id,correct,skill_id,skill_name,note\n" + "".join(
        f"{n},{row[0]},7,{row[2]},1,{row[1]},{CANARY}\n" for n, row in enumerate(rows)
    )
    datashop = "Anon Student Id\tTime\tProblem Name\tOutcome\tKC (a)\tnote\n" + "".join(
        f"{row[0]}\t{row[3]}\tp\t{'CORRECT' if row[2] else 'HINT'}\t{row[1]}\t{CANARY}\n" for row in rows
    )
    slam = "".join(f"# user:{row[0]}  days:1\nid {row[1]} NOUN {CANARY} nsubj 4 {row[2]}\n\n" for row in rows)
    statements = [
        {
            "actor": {"name": CANARY, "mbox": f"mailto:{row[0]}@school.example"},
            "object": {"id": row[1]},
            "result": {"success": bool(row[2]), "response": CANARY},
            "timestamp": f"2024-05-31T10:00:{n:02}Z",
        }
        for n, row in enumerate(rows)
    ]
    tracking = [
        {
            "username": f"{CANARY} {row[0]}",
            "ip": CANARY,
            "event_type": "problem_check",
            "event": json.dumps({"problem_id": f"i4x://o/c/problem/{row[1]}", "success": "correct"}),
            "context": {"user_id": row[0]},
            "time": f"2024-05-31T10:00:{n:02}Z",
        }
        for n, row in enumerate(rows)
    ]
    envelopes = [
        {
            "sensor": CANARY,
            "data": [
                {
                    "actor": {"id": row[0], "name": f"{CANARY} name", "type": "Person"},
                    "action": "Graded",
                    "object": {"id": row[1]},
                    "eventTime": f"2024-05-31T10:00:{n:02}Z",
                    "generated": {"scoreGiven": row[2], "maxScore": 1},
                    "extensions": {"x": CANARY},
                }
            ],
        }
        for n, row in enumerate(rows)
    ]
    # Cells of Moodle's report, one event per row; no outcomes.
    moodle = [
        [
            f"1 May, 10:{n:02}",
            row[0],
            "-",
            row[1],
            "Quiz",
            "viewed",
            f"The user with id '{CANARY}'",
            "web",
            "",
        ]
        for n, row in enumerate(rows)
    ]
    report = [
        "Time",
        "User full name",
        "Affected user",
        "Event context",
        "Component",
        "Event name",
        "Description",
    ]
    report += ["Origin", "IP address"]
    junyi = "timestamp_TW,uuid,ucid,upid,problem_number,is_correct,level,note\n" + "".join(
        f"2018-08-01 00:{n:02}:00 UTC,{row[0]},{row[1]},p{n % 5},{n},{str(bool(row[2])).lower()},1,{CANARY}\n"
        for n, row in enumerate(rows)
    )
    junyi_2015 = "user_id,exercise,problem_type,time_done,correct,note\n" + "".join(
        f"{row[0]},{row[1]},t,14{n:02}000000000000,{str(bool(row[2])).lower()},{CANARY}\n"
        for n, row in enumerate(rows)
    )
    eedi = "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue,Note\n" + "".join(
        f"{row[1]},{row[0]},{n},{row[2]},2,2,{CANARY}\n" for n, row in enumerate(rows)
    )
    views = "user_id,url,context_type,asset_type,asset_id,controller,action,created_at,remote_ip\n" + "".join(
        f"{row[0]},/users/{CANARY},Course,Quiz,{row[1]},quizzes,show,2024-05-31T10:00:{n:02}Z,{CANARY}\n"
        for n, row in enumerate(rows)
    )
    requests = [
        {
            "meta": {"ts": "2024-06-01T00:00:00Z", "action": "U"},
            "key": {"id": f"{CANARY}{n}"},
            "value": {
                "user_id": row[0],
                "timestamp": f"2024-05-31T10:00:{n:02}Z",
                "quiz_id": row[1],
                "url": f"/users/{CANARY}",
                "web_application_controller": "quizzes",
                "web_application_action": "show",
            },
        }
        for n, row in enumerate(rows)
    ]
    return {
        "canvas-page-views": ("log.csv", views.encode()),
        "canvas-web-logs": ("log.jsonl", "\n".join(map(json.dumps, requests)).encode()),
        "moodle": ("log.csv", pl.DataFrame(moodle, schema=report, orient="row").write_csv().encode()),
        "moodle workbook": ("log.xlsx", workbook([report, *map(list, moodle)])),
        "moodle arrays": ("log.json", json.dumps([moodle]).encode()),
        "moodle objects": (
            "log.json",
            json.dumps([[dict(zip(report, cells, strict=True)) for cells in moodle]], indent=1).encode(),
        ),
        "csv": ("log.csv", frame.write_csv().encode()),
        "quoted": ("log.csv", frame.write_csv(quote_style="always").encode()),
        "headerless": ("log.csv", frame.write_csv(include_header=False).encode()),
        "tsv": ("log.tsv", frame.write_csv(separator="\t").encode()),
        "gzip": ("log.csv.gz", gzip.compress(frame.write_csv().encode())),
        "parquet": ("log.parquet", buffer.getvalue()),
        "excel": ("log.xlsx", workbook([names, *map(list, rows)])),
        "assistments": ("log.csv", assistments.encode()),
        "datashop": ("log.txt", datashop.encode()),
        "junyi": ("log.csv", junyi.encode()),
        "junyi 2015": ("log.csv", junyi_2015.encode()),
        "eedi": ("log.csv", eedi.encode()),
        "slam": ("log.slam", slam.encode()),
        "xapi": ("log.jsonl", "\n".join(map(json.dumps, statements)).encode()),
        "array": ("log.json", json.dumps(statements, indent=1).encode()),
        "edx": ("tracking.log", "\n".join(map(json.dumps, tracking)).encode()),
        "caliper": ("caliper.json", json.dumps(envelopes, indent=1).encode()),
        "three-line": ("log.txt", b"3\na,b,a\n1,0,1\n"),
    }


FILES = whole_files()


@pytest.mark.parametrize("file", FILES)
@quick(40)
@given(edits=few_edits(PIECES))
def test_files_with_a_few_wrong_bytes(tmp_path, file, edits):
    name, content = FILES[file]
    content = edited(content, edits)
    result = READER.outcome(tmp_path / name, content)
    assert not READER.tells_canary(result)


grids = st.lists(
    st.lists(
        st.sampled_from(
            [
                None,
                "learner",
                "action",
                "outcome",
                "Title",
                f"{CANARY}1",
                f"{CANARY}2",
                "x",
                "y",
                0,
                1,
                "7 %",
                1.5,
                True,
            ]
        ),
        max_size=4,
    ),
    max_size=8,
)


@quick(80)
@given(rows=grids, place=st.sampled_from([None, "1", "1!1:3", "2:4", "2"]))
def test_any_workbook(tmp_path, rows, place):
    result = READER.outcome(tmp_path / "log.xlsx", workbook(rows), sheet=place)
    assert not READER.tells_canary(result)


BROKEN = BREAKS | {
    "learner as outcome": lambda data: data.replace(b"outcome", b"x", 1).replace(b"learner", b"outcome", 1),
    "learner as time": lambda data: data.replace(b"time", b"x", 1).replace(b"comment", b"time", 1),
    "no column": lambda data: data.replace(b"action", b"x").replace(b"skill", b"x").replace(b"object", b"x"),
    "success": lambda data: data.replace(b"true", b'"' + CANARY.encode() + b'"', 1),
}


@pytest.mark.parametrize(("file", "broken"), broken_files(FILES, BROKEN))
def test_no_message_tells_a_value(tmp_path, file, broken):
    name, content = FILES[file]
    asked = {"time": "time", "group": "comment"}
    said = {"action": "Description"}
    declared = {"skip_incomplete": True, "pass_from": 50.0}
    for options in (
        {},
        asked,
        {"format": "csv"},
        {"learner": "nobody"},
        {"outcome": "outcom"},
        declared,
        said,
    ):
        result = READER.outcome(tmp_path / name, BROKEN[broken](content), **options)
        assert not READER.tells_canary(result)
    if broken == "whole" and file not in ("headerless", "three-line"):
        log = READER.outcome(tmp_path / name, content)
        assert isinstance(log, Interactions)
        assert log.n_learners == 3
