"""Broken files for readers: reading ends in a record or in an error of ours, and no message has a learner's value.

A reader's test gives good files with `CANARY` where a learner's value is; `Reader` reads them when they were
broken, in the ways of `BREAKS` or by a few wrong bytes, and collects everything that the result tells.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from understudy.errors import UnderstudyError

CANARY = "Zq7canary"
_CANARY = CANARY.encode()

Files = Mapping[str, tuple[str, bytes]]
Edits = list[tuple[float, int, bytes]]

# Bytes that mean something to most readers, so that the fuzzing gets past the first check.
_COMMON = (
    *(b"1 0 2 -5 0.25 1e300 1e999 nan inf 99999999999999999999 a null true { } [ ] : PAR1 PK".split()),
    *(b"\xc3\xa9 \xff \x00 \xed\xa0\x80 \\ud800 Zq7canary".split()),
    *(b",", b"\t", b"\n", b"\r\n", b"\r", b'"', b'""', b";", b" "),
    *(b"2024-01-02T03:04:05.678Z", b"2024-01-02 03:04", b"+01:00", b"0001-01-01T00:00:00"),
)

# Ways to break a file of any format; the canary has a number behind it where it names a learner.
BREAKS: dict[str, Callable[[bytes], bytes]] = {
    "whole": lambda data: data,
    "cut": lambda data: data[: len(data) * 2 // 3],
    "cut short": lambda data: data[:-3],
    "no header": lambda data: data.split(b"\n", 1)[-1],
    "doubled header": lambda data: data.split(b"\n", 1)[0] + b"," + data,
    "ragged": lambda data: data.replace(b",1,", b",1,,", 1).replace(b"\t1\t", b"\t", 1),
    "quotation mark": lambda data: data.replace(_CANARY, b'"' + _CANARY, 1),
    "empty learner": lambda data: data.replace(_CANARY + b"1", b"", 1),
    "a value of another kind": lambda data: data.replace(b",1,", b"," + _CANARY + b",", 2),
    "wrong bytes": lambda data: data.replace(b"canary1", b"canary1\xff\x01", 1),
    "zero": lambda data: data.replace(b"canary1", b"canary1\x00", 1),
    "utf-16 mark": lambda data: b"\xff\xfe" + data,
    "braces": lambda data: data.replace(b"}", b"", 1),
}


def broken_files(files: Files, ways: dict[str, Callable[[bytes], bytes]]) -> list[Any]:
    """Cases (file, way to break it) for `parametrize`, without those that leave the file whole."""
    return [
        pytest.param(file, way, id=f"{way}-{file}")
        for way, change in ways.items()
        for file, (_, content) in files.items()
        if way == "whole" or change(content) != content
    ]


def quick(max_examples: int) -> settings:
    """The same examples in every run, each with the same temporary folder."""
    return settings(
        max_examples=max_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        derandomize=True,
    )


def pieces(words: bytes, *others: bytes) -> st.SearchStrategy[bytes]:
    """Pieces of files: those that mean something to one reader, and those that do to most."""
    return st.sampled_from((*words.split(), *others, *_COMMON))


def contents(parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Whole files of arbitrary bytes or of pieces."""
    return st.one_of(st.binary(max_size=200), st.lists(parts, max_size=40).map(b"".join))


def few_edits(parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[Edits]:
    """A few places in a file, how many bytes are removed there, and the piece that is inserted."""
    return st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), parts), min_size=1, max_size=4)


def edited(content: bytes, edits: Edits) -> bytes:
    """The content with a few wrong bytes."""
    for position, n_removed, inserted in edits:
        at = int(position * len(content))
        content = content[:at] + inserted + content[at + n_removed :]
    return content


@dataclass(frozen=True)
class Reader:
    """A reader under test, and what a record of it tells beside its own text."""

    read: Callable[..., Any]
    messages: Callable[[Any], Iterable[object]]

    def outcome(self, path: Path, content: bytes, **options: Any) -> Any:
        """The record of a file with this content, or the error that the reader raises."""
        path.write_bytes(content)
        try:
            return self.read(path, **options)
        except UnderstudyError as caught:
            error = caught
        assert error.hint
        return error

    def tells_canary(self, result: Any) -> bool:
        """Whether the canary is in anything that a person or a program is told."""
        told = [repr(result), str(result)]
        if isinstance(result, UnderstudyError):
            told += [*traceback.format_exception(result), str(result.to_json())]
        else:
            told += map(str, self.messages(result))
        return any(CANARY in text for text in told)
