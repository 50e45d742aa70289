"""Whatever a file of keystrokes holds, reading ends in a record or in an error of ours, and tells no value."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
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
from understudy.errors import UnderstudyError
from understudy.keystrokes.formats.reading import FORMATS, KeystrokeSource, read_keystrokes

START = 1_700_000_000_000
READER = Reader(
    read_keystrokes, lambda source: [*source.notes, *source.messages, *source.left_out, source.keystrokes]
)
PIECES = pieces(
    b"learner time key session week type hold follows KeyDown KeyUp EventType SubjectID File.Edit InsertText "
    b"DeleteText ClientTimestamp X-CodeState AssignmentID snapshot code Enter 1700000000000 1700000000",
    *(b'"learner"', b'"time"', b'"key"'),
)


def check(result: KeystrokeSource | UnderstudyError) -> None:
    if isinstance(result, UnderstudyError):
        return
    record = result.keystrokes
    assert record.n_rows > 0
    assert (record.lengths > 0).all()
    within = np.diff(record.learner) == 0
    assert (np.diff(record.time)[within] >= 0).all()
    assert (np.diff(record.session)[within & record.follows[1:]] == 0).all()
    assert result.resolution_ms > 0
    assert all(number > 0 for number in result.left_out.values())


@pytest.mark.parametrize("format", [None, *FORMATS])
@quick(30)
@given(content=contents(PIECES))
def test_arbitrary_bytes(tmp_path, format, content):
    check(READER.outcome(tmp_path / "k", content, format=format))


def whole_files() -> Files:
    """A good file in every format, with the canary as a learner's id and in a column that nobody asked for."""
    rows = [
        (f"{CANARY}{n % 3}", START + 130 * n, "while(x) {"[n % 10], n // 9, f"{CANARY} text")
        for n in range(24)
    ]
    names = ["learner", "time", "key", "session", "comment"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    both = pl.concat(
        [
            frame.with_columns(type=pl.lit("KeyDown")),
            frame.with_columns(pl.col("time") + 60, type=pl.lit("KeyUp")),
        ]
    ).sort("time")
    text = "for (int i = 0; i < 9; i++)"
    snapshots = pl.DataFrame(
        {
            "learner": [CANARY] * len(text),
            "time": [f"2024-05-31T10:00:{n:02}.250Z" for n in range(len(text))],
            "exercise": [1] * len(text),
            "snapshot": [text[:n] for n in range(len(text))],
        }
    )
    progsnap = pl.DataFrame(
        {
            "EventID": range(24),
            "SubjectID": [row[0] for row in rows],
            "ClientTimestamp": [row[1] for row in rows],
            "EventType": ["File.Edit"] * 24,
            "EditType": ["Insert"] * 24,
            "InsertText": [row[2] for row in rows],
            "DeleteText": [""] * 24,
            "X-Name": [CANARY] * 24,
        }
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return {
        "events": ("k.csv", frame.write_csv().encode()),
        "releases": ("k.csv", both.write_csv(separator=";").encode()),
        "gzip": ("k.csv.gz", gzip.compress(frame.write_csv(quote_style="always").encode(), mtime=0)),
        "parquet": ("k.parquet", buffer.getvalue()),
        "lines": ("k.jsonl", frame.write_ndjson().encode()),
        "array": ("k.json", json.dumps(frame.to_dicts(), indent=1).encode()),
        "snapshots": ("s.csv", snapshots.write_csv().encode()),
        "snapshot lines": ("s.jsonl", snapshots.write_ndjson().encode()),
        "progsnap2": ("MainTable.csv", progsnap.write_csv().encode()),
    }


FILES = whole_files()


@pytest.mark.parametrize("file", FILES)
def test_whole_files(tmp_path, file):
    name, content = FILES[file]
    result = READER.outcome(tmp_path / name, content)
    assert isinstance(result, KeystrokeSource)
    assert result.keystrokes.n_rows in (24, 26)
    check(result)


@pytest.mark.parametrize("file", FILES)
@quick(30)
@given(edits=few_edits(PIECES))
def test_files_with_a_few_wrong_bytes(tmp_path, file, edits):
    name, content = FILES[file]
    content = edited(content, edits)
    result = READER.outcome(tmp_path / name, content)
    check(result)
    header = content.split(b"\n", 1)[0]
    if CANARY.encode() not in header:
        assert not READER.tells_canary(result)
    if isinstance(result, KeystrokeSource) and not any(CANARY.encode() in piece for *_, piece in edits):
        assert not any(CANARY in key for key in result.keystrokes.keys)


BROKEN = BREAKS | {
    "learner as time": lambda data: data.replace(b"time", b"x").replace(b"learner", b"time"),
    "learner as key": lambda data: data.replace(b"key", b"x").replace(b"comment", b"key"),
    "a wrong time": lambda data: data.replace(str(START + 260).encode(), CANARY.encode()),
    "a time in seconds": lambda data: data.replace(str(START + 260).encode(), b"1700000000"),
    "a learner as session": lambda data: data.replace(b"session", b"x").replace(b"comment", b"week"),
}


@pytest.mark.parametrize(("file", "broken"), broken_files(FILES, BROKEN))
def test_no_message_tells_a_value(tmp_path, file, broken):
    name, content = FILES[file]
    labels = tmp_path / "labels.csv"
    labels.write_text(f"learner,x,name\n{CANARY}0,{CANARY}1,u\n{CANARY}0,{CANARY}2,v\nq,,\n")
    for options in ({}, {"format": "events"}, {"learner": "nobody"}, {"labels": labels, "label": "x"}):
        result = READER.outcome(tmp_path / name, BROKEN[broken](content), **options)
        check(result)
        assert not READER.tells_canary(result)


keys = st.sampled_from(["a", "b", "Enter", "Shift", " ", ",", '"', "é", "", "print"])
moments = st.integers(0, 40).map(lambda n: START + 20 * n)
row = st.tuples(st.sampled_from("xyz"), st.sampled_from("01"), st.sampled_from(["down", "up"]), keys, moments)


@quick(30)
@given(rows=st.lists(row, min_size=1, max_size=30))
def test_every_row_is_a_key_or_counted(tmp_path, rows):
    """Presses are kept or left out for a reason; a latency is one between neighbours of the file."""
    frame = pl.DataFrame(rows, schema=["learner", "session", "type", "key", "time"], orient="row")
    result = READER.outcome(tmp_path / "k.csv", frame.write_csv().encode())
    check(result)
    n_presses = int((frame["type"] == "down").sum())
    if not isinstance(result, KeystrokeSource):
        usable = frame.filter((pl.col("type") == "down") & ~pl.col("key").is_in(["", "print"]))
        assert usable.height == 0
        return
    left_out = dict(result.left_out)
    n_repeated = left_out.pop("exact repeat", 0)
    left_out.pop("clock ran backwards (the key is kept, its latency is not)", None)
    left_out.pop("released without having been pressed", None)
    n_kept = result.keystrokes.n_rows + sum(left_out.values())
    assert n_presses - n_repeated <= n_kept <= n_presses
