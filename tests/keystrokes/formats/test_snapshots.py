"""Snapshots: the character between neighbours, whatever the alphabet; anything more is no key press."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.keystrokes.support.files import START, presses
from understudy.errors import DataError
from understudy.keystrokes.formats.reading import read_keystrokes

quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
SEVERAL = "several characters at once (paste, completion or replacement)"


def table(texts, learner="a", step=100, **columns):
    frame = pl.DataFrame(
        {
            "learner": [learner] * len(texts),
            "time": [START + step * n for n in range(len(texts))],
            "snapshot": texts,
            **columns,
        }
    )
    buffer = io.BytesIO()
    frame.write_csv(buffer, quote_style="non_numeric")
    return buffer.getvalue()


def test_a_character_typed_or_taken_back(write):
    texts = ["", "i", "if", "if\n", "if", "if(", "if()", 'if("")', 'if("x")', 'if("x")', 'f("x")']
    source = read_keystrokes(write("s.csv", table(texts)))
    assert presses(source) == [
        [
            *(
                ("i", 0, False),
                ("f", 100, True),
                ("Enter", 200, True),
                ("Backspace", 300, True),
                ("(", 400, True),
            ),
            *((")", 500, True), ("x", 700, False), ("Backspace", 900, True)),
        ]
    ]
    assert source.left_out == {"first text of a document": 1, "text unchanged": 1, SEVERAL: 1}
    assert source.format == "snapshots"
    assert any("a column of texts" in note for note in source.notes)


def test_documents_are_compared_apart(write):
    frame = table(["a", "x", "ab", "xy"], exercise=["1", "2", "1", "2"])
    source = read_keystrokes(write("s.csv", frame))
    assert [row[0] for row in presses(source)[0]] == ["b", "y"]
    assert source.left_out == {"first text of a document": 2}


def test_newest_first(write):
    texts = ["", "i", "if", "if("]
    expected = presses(read_keystrokes(write("s.csv", table(texts))))
    source = read_keystrokes(write("s.csv", table(texts[::-1], step=-100)))
    assert presses(source) == expected
    assert "The texts were not in the order of time and were sorted." in source.notes


def test_json_lines(write):
    texts = ["class", "class ", "class A", "class A {}"]
    lines = [
        {"student": "Zq7", "timestamp": f"2024-05-31T10:00:0{n}.250Z", "code": text, "mail": "q@x.example"}
        for n, text in enumerate(texts)
    ]
    source = read_keystrokes(write("s.jsonl", "\n".join(map(json.dumps, lines))))
    assert presses(source) == [[(" ", 0, False), ("A", 1000, True)]]
    assert source.left_out == {"first text of a document": 1, SEVERAL: 1}


def test_no_key_between_snapshots(write):
    with pytest.raises(DataError, match="no keystroke is left to read"):
        read_keystrokes(write("s.csv", table(["a", "bcd", "xyz"])))


characters = st.text(alphabet="aéèb€𝒳𝒴\n ", max_size=6)


@quick
@given(before=characters, after=characters)
def test_as_brute_force_finds_it(tmp_path, before, after):
    """One insertion or deletion of one character, tried at every place."""
    path = tmp_path / "s.jsonl"
    lines = [
        {"learner": "a", "time": START + n, "snapshot": text}
        for n, text in enumerate(("q", "qq", before, after))
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    source = read_keystrokes(path)
    record = source.keystrokes
    last = record.keys[record.key[-1]] if record.time[-1] == (START + 3) * 1_000_000 else None
    inserted = {after[n] for n in range(len(after)) if after[:n] + after[n + 1 :] == before}
    deleted = any(before[:n] + before[n + 1 :] == after for n in range(len(before)))
    if inserted:
        assert last == {"\n": "Enter"}.get(one := inserted.pop(), one)
    else:
        assert last == ("Backspace" if deleted else None)
