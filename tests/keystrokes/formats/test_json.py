"""JSON with an object per keystroke: lines, arrays, and errors that name the line."""

from __future__ import annotations

import json

import pytest

from tests.keystrokes.support.files import START, presses
from understudy.errors import DataError
from understudy.keystrokes.formats.reading import read_keystrokes

OBJECTS = [
    {"user": 5, "t": {"x": 1}, "timestamp": START, "key": "i", "note": "Zq7"},
    {"user": 5, "timestamp": START + 120, "key": "\t", "more": [1, 2]},
    {"user": "Zq7", "timestamp": START + 130.5, "key": " "},
    {"user": 5, "timestamp": START + 220, "key": None},
    {"user": 5, "timestamp": START + 300, "key": "é"},
]
EXPECTED = [[("i", 0, False), ("Tab", 120, True), ("é", 300, False)], [(" ", 130, False)]]


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(map(json.dumps, OBJECTS)),
        "\n\n" + "\n \n".join(map(json.dumps, OBJECTS)) + "\n\n",
        json.dumps(OBJECTS),
        json.dumps(OBJECTS, indent=1),
    ],
)
def test_lines_and_arrays(write, content):
    source = read_keystrokes(write("k.jsonl.gz", content))
    assert presses(source) == EXPECTED
    assert source.format == "lines"
    assert source.left_out == {"no key": 1}
    assert "Zq7" not in repr(source) + str(source.notes)


def test_presses_and_releases(write):
    rows = [("keydown", "a", 0), ("keydown", "b", 90), ("keyup", "a", 100), ("keyup", "b", 190)]
    lines = [json.dumps({"user": 1, "type": t, "key": k, "time": START + at}) for t, k, at in rows]
    source = read_keystrokes(write("k.jsonl", "\n".join(lines)))
    assert source.keystrokes.hold is not None
    assert source.keystrokes.hold.tolist() == [100_000_000, 100_000_000]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"user":1,"time":1,"key":"Zq7"}\n{"user":1,',
            r"k.jsonl: the JSON breaks off or is wrong on line 2",
        ),
        ('{"user":1,"time":1,"key":"Zq7"}\n[1]', "k.jsonl: line 2 is JSON, but not an object"),
        ('["Zq7"]', "record 1 is JSON, but not an object"),
        ("{}\n{}", "the objects have no fields"),
        ("[]", "the objects have no fields"),
        ('{"whom":"Zq7","time":1,"key":"x"}\n{"a":2}', "found no column for the learner"),
        ('{"user":1,"time":"Zq7","key":"x"}\n{"user":2}', r"the times .* \(first on line 1, time column\)"),
    ],
)
def test_json_that_cannot_be_read(write, content, message):
    with pytest.raises(DataError, match=message) as caught:
        read_keystrokes(write("k.jsonl", content))
    assert caught.value.hint
    assert "Zq7" not in str(caught.value)
