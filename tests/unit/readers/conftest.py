"""Files written for a test, and logs as plain records to compare with."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy.logs.interactions import Interactions

Write = Callable[..., Path]
Record = tuple[object, ...]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write text or bytes to a file of the given name; names in .gz are compressed."""

    def to_file(name: str, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return to_file


@pytest.fixture
def records() -> Callable[[Interactions], list[list[Record]]]:
    """Per learner the records (action, outcome) and, where the log has them, item and time."""

    def of(log: Interactions) -> list[list[Record]]:
        columns: list[list[object]] = [[log.actions[code] for code in log.action], log.outcome.tolist()]
        if log.item is not None:
            columns.append([log.items[code] for code in log.item])
        if log.time is not None:
            columns.append([str(time)[:19] for time in log.time])
        rows = list(zip(*columns, strict=True))
        return [rows[a:b] for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)]

    return of
