"""Whatever a file holds, reading ends in a log or in an error of ours, and no learner's value is told."""

from __future__ import annotations

import gzip
import io
import json
import traceback
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.workbook import workbook
from understudy.core.events.reading import formats
from understudy.core.files.columns import Columns
from understudy.errors import UnderstudyError
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log

quick = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
CANARY = "Zq7canary"


def outcome(path: Path, **options: object) -> Interactions | UnderstudyError:
    try:
        return read_log(path, **options)  # type: ignore[arg-type]
    except UnderstudyError as error:
        return error


# Bytes that mean something to one of the readers, so that the fuzzing gets past the first check.
PIECES = (
    *(b"learner action outcome time order_id user_id correct skill_name Outcome 1 0 2 1e999 nan a".split()),
    *(b"# user:x { } [ ] : null true PAR1 PK \xc3\xa9 \xff \x00 9999999999999999999999".split()),
    *(b",", b"\t", b"\n", b"\r\n", b"\r", b'"', b'""', b";", b" ", b"Anon Student Id", b"KC (x)"),
    *(b"2024-01-02 03:04", b"+01:00", b'"actor"', b'{"mbox":"m"}', b'"object"', b'{"id":"q"}', b"\\ud800"),
)
pieces = st.sampled_from(PIECES)
contents = st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=40).map(b"".join))


@pytest.mark.parametrize("format", [None, *formats()])
@quick
@given(content=contents)
def test_arbitrary_bytes(tmp_path, format, content):
    path = tmp_path / "log"
    path.write_bytes(content)
    result = outcome(path, format=format)
    if isinstance(result, Interactions):
        assert result.n_rows > 0
    else:
        assert result.hint


words = st.sampled_from(
    ["learner", "action", "outcome", "time", "a", "b", "1", "0", "", '"', "\n", ",", "é", "\u2028"]
)


@quick
@given(rows=st.lists(st.tuples(words, words, words), min_size=1, max_size=8), time=words)
def test_what_was_written_is_read(tmp_path, rows, time):
    """A csv written by another library is read field by field as it was written."""
    path = tmp_path / "log.csv"
    frame = pl.DataFrame(rows, schema=["learner", "action", "outcome"], orient="row").with_columns(
        time=pl.lit(time)
    )
    frame.write_csv(path)
    result = outcome(path, single_rows=True)
    names = frame.select(pl.col("learner", "action").str.strip_chars())
    if frame["outcome"].is_in(["0", "1"]).all() and (names != "").to_numpy().all():
        assert isinstance(result, Interactions)
        assert result.n_rows == len(rows)
        assert result.n_learners == names["learner"].n_unique()
        assert set(result.actions) == set(names["action"])
    else:
        assert isinstance(result, UnderstudyError)


def whole_files() -> dict[str, tuple[str, bytes]]:
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
    return {
        "csv": ("log.csv", frame.write_csv().encode()),
        "quoted": ("log.csv", frame.write_csv(quote_style="always").encode()),
        "headerless": ("log.csv", frame.write_csv(include_header=False).encode()),
        "tsv": ("log.tsv", frame.write_csv(separator="\t").encode()),
        "gzip": ("log.csv.gz", gzip.compress(frame.write_csv().encode())),
        "parquet": ("log.parquet", buffer.getvalue()),
        "excel": ("log.xlsx", workbook([names, *map(list, rows)])),
        "assistments": ("log.csv", assistments.encode()),
        "datashop": ("log.txt", datashop.encode()),
        "slam": ("log.slam", slam.encode()),
        "xapi": ("log.jsonl", "\n".join(map(json.dumps, statements)).encode()),
        "array": ("log.json", json.dumps(statements, indent=1).encode()),
        "three-line": ("log.txt", b"3\na,b,a\n1,0,1\n"),
    }


FILES = whole_files()


@pytest.mark.parametrize("file", FILES)
@quick
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), pieces), min_size=1, max_size=4))
def test_files_with_a_few_wrong_bytes(tmp_path, file, edits):
    name, content = FILES[file]
    for position, n_removed, inserted in edits:
        at = int(position * len(content))
        content = content[:at] + inserted + content[at + n_removed :]
    path = tmp_path / name
    path.write_bytes(content)
    result = outcome(path)
    told = [repr(result), str(result)]
    if isinstance(result, Interactions):
        told += result.origin.notes
    assert not any(CANARY in text for text in told)


BREAKS = {
    "whole": lambda data: data,
    "cut": lambda data: data[: len(data) * 2 // 3],
    "cut short": lambda data: data[:-3],
    "ragged": lambda data: data.replace(b",1,", b",1,,", 1).replace(b"\t1\t", b"\t", 1),
    "no outcome": lambda data: data.replace(b",1,", b"," + CANARY.encode() + b",", 2),
    "learner as outcome": lambda data: data.replace(b"outcome", b"x", 1).replace(b"learner", b"outcome", 1),
    "learner as time": lambda data: data.replace(b"time", b"x", 1).replace(b"comment", b"time", 1),
    "no column": lambda data: data.replace(b"action", b"x").replace(b"skill", b"x").replace(b"object", b"x"),
    "no header": lambda data: data.split(b"\n", 1)[-1],
    "quotation mark": lambda data: data.replace(CANARY.encode(), b'"' + CANARY.encode(), 1),
    "wrong bytes": lambda data: data.replace(b"canary1", b"canary1\xff\x01", 1),
    "zero": lambda data: data.replace(b"canary1", b"canary1\x00", 1),
    "utf-16 mark": lambda data: b"\xff\xfe" + data,
    "braces": lambda data: data.replace(b"}", b"", 1),
    "success": lambda data: data.replace(b"true", b'"' + CANARY.encode() + b'"', 1),
    "empty learner": lambda data: data.replace(CANARY.encode() + b"1", b"", 1),
    "doubled header": lambda data: data.split(b"\n", 1)[0] + b"," + data,
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("broken", BREAKS)
def test_no_message_tells_a_value(tmp_path, file, broken):
    name, content = FILES[file]
    path = tmp_path / name
    path.write_bytes(BREAKS[broken](content))
    asked = Columns(time="time", group="comment")
    for options in ({}, {"columns": asked}, {"format": "csv"}, {"columns": Columns(learner="nobody")}):
        result = outcome(path, **options)
        told = [repr(result), str(result)]
        if isinstance(result, UnderstudyError):
            told += traceback.format_exception(result)
        else:
            told += [
                *result.origin.notes,
                repr(result.origin.identifiers),
                repr(result.origin.columns),
                repr(result),
            ]
        assert not any(CANARY in text for text in told)
    if broken == "whole" and file not in ("headerless", "three-line"):
        log = outcome(path)
        assert isinstance(log, Interactions)
        assert log.n_learners == 3
