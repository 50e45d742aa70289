"""What tests of every wing use: logs that never happened, files, a browser."""

from __future__ import annotations

import gc
import gzip
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

# Before these are loaded: tests run side by side, and threads for data as small as theirs only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import numpy as np
import pytest

from tests.desk.support.postgresql import find_postgresql
from tests.support.browser import CHROMIUM, browser
from tests.support.processor_time import longest_first
from tests.support.warm_sandbox import kept_warm
from understudy.core.events import partitions
from understudy.core.files import streams
from understudy.core.pages.figures import Figure
from understudy.logs.interactions import Interactions

__all__ = ["browser", "kept_warm"]

MakeLog = Callable[..., Interactions]
Write = Callable[..., Path]
Record = tuple[object, ...]


def _simulated_log(
    rng: np.random.Generator,
    n_learners: int = 30,
    n_actions: int = 8,
    mean_length: float = 12.0,
    concentration: float = 0.5,
    easiness: float = 0.5,
) -> Interactions:
    """Walks on a random chain with Rasch outcomes; every learner has at least two rows.

    The chain depends on the sizes only, so that logs drawn with different generators come
    from the same law.
    """
    law = np.random.default_rng([n_learners, n_actions])
    chain = law.dirichlet(np.full(n_actions, concentration), size=n_actions).cumsum(axis=1)
    difficulty = law.normal(size=n_actions)
    sequences, outcomes = [], []
    for length in 2 + rng.poisson(mean_length - 2, n_learners):
        walk = [int(rng.integers(n_actions))]
        for u in rng.random(length - 1):
            walk.append(min(int(np.searchsorted(chain[walk[-1]], u)), n_actions - 1))
        chance = 1 / (1 + np.exp(difficulty[walk] - rng.normal() - easiness))
        sequences.append(walk)
        outcomes.append((rng.random(length) < chance).astype(int))
    return Interactions.from_sequences(sequences, outcomes, actions=[str(j) for j in range(n_actions)])


@pytest.fixture(scope="session")
def make_log() -> MakeLog:
    """Makes a simulated log: `make_log(rng, n_learners=..., n_actions=..., mean_length=...)`."""
    return _simulated_log


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
    """Per learner the records: the action and, where the log has them, outcome, item and time."""

    def of(log: Interactions) -> list[list[Record]]:
        columns: list[list[object]] = [[log.actions[code] for code in log.action]]
        if log.outcome is not None:
            columns.append(log.outcome.tolist())
        if log.item is not None:
            columns.append([log.items[code] for code in log.item])
        if log.time is not None:
            columns.append([str(time)[:19] for time in log.time])
        rows = list(zip(*columns, strict=True))
        return [rows[a:b] for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)]

    return of


@pytest.fixture
def quick_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases of logs with few refits and without pictures, for tests in which neither plays a part.

    The two take most of the time of a release; how it measures and how its pages look is tested elsewhere.
    """
    from understudy.logs.release import assessment, bundle

    monkeypatch.setattr(bundle, "assess", partial(assessment.assess, n_halves=1, n_shadows=8))
    monkeypatch.setattr(Figure, "_drawn", lambda figure, width: "<svg></svg>")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported stays to the end: looking through all of it for garbage again and again takes a while."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where workers share the modules, the last ones are short, so that none waits for another."""
    if hasattr(config, "workerinput"):
        longest_first(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the machine lacked, where it is easy to miss among the skipped tests."""
    if not CHROMIUM.exists():
        terminalreporter.write_line(
            "No browser here: no page was looked at (.ci/browser installs Debian's chromium as root)."
        )
    if find_postgresql() is None:
        terminalreporter.write_line(
            "No PostgreSQL here: the desk was tested on SQLite only (.ci/postgres installs it)."
        )


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call it, and from then on files are read in blocks of a few rows, and in several partitions."""

    def large(partition_rows: int = 60) -> None:
        for name, value in (("LARGE_ROWS", 0), ("LARGE_TEXT", 0), ("LARGE_PACKED", 0)):
            monkeypatch.setattr(streams, name, value)
        monkeypatch.setattr(streams, "BLOCK_ROWS", 50)
        monkeypatch.setattr(streams, "BLOCK_BYTES", 700)
        monkeypatch.setattr(partitions, "PARTITION_ROWS", partition_rows)

    return large
