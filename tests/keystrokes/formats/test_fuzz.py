"""Whatever a file of keystrokes holds, reading ends in a record or in an error of ours, and tells no value."""

from __future__ import annotations

import gzip
import io
import json
import traceback
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.errors import UnderstudyError
from understudy.keystrokes.formats.reading import FORMATS, KeystrokeSource, read_keystrokes

quick = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
CANARY = "Zq7canary"
START = 1_700_000_000_000

PIECES = (
    *(b"learner time key session week type hold follows KeyDown KeyUp EventType SubjectID File.Edit".split()),
    *(
        b"InsertText DeleteText ClientTimestamp X-CodeState AssignmentID snapshot code a Enter Zq7canary".split()
    ),
    *(b"1700000000000 1700000000 0 -5 1e300 nan inf 99999999999999999999 0.25 { } [ ] : null true".split()),
    *(b"PAR1 \xc3\xa9 \xff \x00 \xed\xa0\x80".split()),
    *(
        b",",
        b"\t",
        b"\n",
        b"\r\n",
        b"\r",
        b'"',
        b'""',
        b";",
        b" ",
        b'"learner"',
        b'"time"',
        b'"key"',
        b"\\ud800",
    ),
    *(b"2024-01-02T03:04:05.678Z", b"2024-01-02 03:04", b"+01:00", b"0001-01-01T00:00:00"),
)
pieces = st.sampled_from(PIECES)
contents = st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=40).map(b"".join))


def outcome(path: Path, **options: object) -> KeystrokeSource | UnderstudyError:
    try:
        return read_keystrokes(path, **options)  # type: ignore[arg-type]
    except UnderstudyError as error:
        return error


def told(result: KeystrokeSource | UnderstudyError) -> list[str]:
    said = [repr(result), str(result)]
    if isinstance(result, KeystrokeSource):
        return [*said, *result.notes, *result.left_out, repr(result.keystrokes)]
    return said + traceback.format_exception(result)


def check(result: KeystrokeSource | UnderstudyError) -> None:
    if isinstance(result, UnderstudyError):
        assert result.hint
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
@quick
@given(content=contents)
def test_arbitrary_bytes(tmp_path, format, content):
    path = tmp_path / "k"
    path.write_bytes(content)
    check(outcome(path, format=format))


def whole_files() -> dict[str, tuple[str, bytes]]:
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
    (tmp_path / name).write_bytes(content)
    result = outcome(tmp_path / name)
    assert isinstance(result, KeystrokeSource)
    assert result.keystrokes.n_rows in (24, 26)
    check(result)


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
    check(result)
    header = content.split(b"\n", 1)[0]
    if CANARY.encode() not in header:
        assert not any(CANARY in text for text in told(result))
    if isinstance(result, KeystrokeSource):
        assert not any(CANARY in key for key in result.keystrokes.keys)


BREAKS = {
    "cut": lambda data: data[: len(data) * 2 // 3],
    "cut short": lambda data: data[:-3],
    "learner as time": lambda data: data.replace(b"time", b"x").replace(b"learner", b"time"),
    "learner as key": lambda data: data.replace(b"key", b"x").replace(b"comment", b"key"),
    "a wrong time": lambda data: data.replace(str(START + 260).encode(), CANARY.encode()),
    "a time in seconds": lambda data: data.replace(str(START + 260).encode(), b"1700000000"),
    "a learner as session": lambda data: data.replace(b"session", b"x").replace(b"comment", b"week"),
    "no header": lambda data: data.split(b"\n", 1)[-1],
    "wrong bytes": lambda data: data.replace(b"canary1", b"canary1\xff\x01", 1),
    "braces": lambda data: data.replace(b"}", b"", 1),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("broken", BREAKS)
def test_no_message_tells_a_value(tmp_path, file, broken):
    name, content = FILES[file]
    path = tmp_path / name
    path.write_bytes(BREAKS[broken](content))
    labels = tmp_path / "labels.csv"
    labels.write_text(f"learner,x,name\n{CANARY}0,{CANARY}1,u\n{CANARY}0,{CANARY}2,v\nq,,\n")
    for options in ({}, {"format": "events"}, {"learner": "nobody"}, {"labels": labels, "label": "x"}):
        result = outcome(path, **options)
        check(result)
        assert not any(CANARY in text for text in told(result))


keys = st.sampled_from(["a", "b", "Enter", "Shift", " ", ",", '"', "é", "", "print"])
moments = st.integers(0, 40).map(lambda n: START + 20 * n)
row = st.tuples(st.sampled_from("xyz"), st.sampled_from("01"), st.sampled_from(["down", "up"]), keys, moments)


@quick
@given(rows=st.lists(row, min_size=1, max_size=30))
def test_every_row_is_a_key_or_counted(tmp_path, rows):
    """Presses are kept or left out for a reason; a latency is one between neighbours of the file."""
    path = tmp_path / "k.csv"
    frame = pl.DataFrame(rows, schema=["learner", "session", "type", "key", "time"], orient="row")
    frame.write_csv(path)
    result = outcome(path)
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
