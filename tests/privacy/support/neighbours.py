"""Neighbouring files: one learner's rows replaced by others, with nasty cells, other lengths and other orders.

Reading is part of the guarantee: all other learners reach a mechanism as they did before, or the file is refused,
which happens before anything is charged.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tests.support.workbook import workbook
from understudy.errors import UnderstudyError

N_LEARNERS = 12
# Cells that may give a whole column another type, or another unit.
NUMBERS = ("0", "1.5", "2", "-1", "1600000000000")
NASTY = (
    *NUMBERS,
    *("", " ", "not a time", "99999999999999", "nan", "inf", "1e400", "3/4/2024"),
    *("31/12/2023", "2024-05-31T10:00:00+02:00", "2024-05-31 CEST", "31.5.2024", "5 May 2024, 10:00"),
    *('"', 'a"b', '"quoted"', "a,b", "a;b", "a\tb", "é", "NA", "null", "true", "keydown", "average"),
    *("maximum", "#", "other actions", "1,5", "85 %", "١٢", "\u202f1600000000"),
)

Row = list[str]
Write = Callable[[Sequence[Row]], bytes]


def neighbours(
    ordinary: Callable[[random.Random, str], list[Row]],
    cells: Sequence[str] = NASTY,
    n_files: int = 12,
    seed: int = 7,
) -> Iterator[list[Row]]:
    """The rows of a file, and then those of its neighbours.

    `ordinary` makes a learner's rows, of which the first cell is the learner's name. A neighbour has other ones
    for one learner, wherever that learner stands. Nasty cells are dealt out over the neighbours, such that each
    stands once in each column; a row has one at most, or it would hide another one.
    """
    rng = random.Random(seed)
    learners = [ordinary(rng, f"u{number}") for number in range(N_LEARNERS)]
    yield [row for rows in learners for row in rows]
    nasty = [(cell, column) for cell in cells for column in range(1, len(learners[0][0]))]
    rng.shuffle(nasty)
    for number in range(n_files):
        place = rng.choice([0, 0, 1, N_LEARNERS - 1, rng.randrange(N_LEARNERS)])
        rows = ordinary(rng, f"u{place}")
        rows = rows[: rng.randint(1, len(rows))]
        for cell, column in nasty[number::n_files]:
            row = ordinary(rng, f"u{place}")[0]
            row[column] = cell
            rows.insert(rng.randrange(len(rows) + 1), row)
        yield [row for other in (*learners[:place], rows, *learners[place + 1 :]) for row in other]


def check_others(path: Path, files: Iterator[list[Row]], write: Write, read: Callable[[Path], Any]) -> None:
    """Assert that all learners but one are the same in every neighbour that is not refused.

    `read` gives what a mechanism takes of each learner, as a list.
    """
    path.write_bytes(write(next(files)))
    before = Counter(read(path))
    assert before.total() == N_LEARNERS
    n_compared = 0
    for number, rows in enumerate(files):
        path.write_bytes(write(rows))
        try:
            after = Counter(read(path))
        except UnderstudyError:
            continue
        n_compared += 1
        assert after.total() == N_LEARNERS, number
        assert (before - after).total() <= 1, number
    assert n_compared > 0, "no pair could be compared"


def delimited(separator: str, header: Row) -> Write:
    """A writer of text whose fields are separated so."""

    def cell(text: str) -> str:
        if separator == "\t":
            return text.replace("\t", " ")
        special = separator in text or '"' in text or "\n" in text
        return '"' + text.replace('"', '""') + '"' if special else text

    return lambda rows: "\n".join(separator.join(map(cell, row)) for row in [header, *rows]).encode() + b"\n"


def latin(header: Row) -> Write:
    """A writer of Windows-1252."""
    return lambda rows: delimited(",", header)(rows).decode().encode("cp1252", errors="replace")


def parquet(header: Row) -> Write:
    """A writer of Parquet, every column as text."""

    def written(rows: Sequence[Row]) -> bytes:
        buffer = io.BytesIO()
        pl.DataFrame(rows, schema=header, orient="row").write_parquet(buffer)
        return buffer.getvalue()

    return written


def excel(header: Row) -> Write:
    """A writer of workbooks, in which what looks like a number is one."""

    def cell(text: str) -> object:
        return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else text

    return lambda rows: workbook([list(header), *([cell(text) for text in row] for row in rows)])
