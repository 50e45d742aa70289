"""A synthesis that is stopped: nothing half, no rows in scratch files, no charge; the same command then does it."""

from __future__ import annotations

import contextlib

import numpy as np
import polars as pl
import pytest

from understudy.core.engine import progress
from understudy.core.engine.engine import running_on
from understudy.core.events import partitions
from understudy.core.files import streams
from understudy.core.privacy.ledger import TAKEN_BACK, Ledger
from understudy.logs.large import parts
from understudy.logs.reading import read_log
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.synthesize import synthesize


class _StopAt:
    """Ctrl-C at the first sign of a step; remembers which steps there were."""

    def __init__(self, name):
        self.name, self.seen = name, []

    @contextlib.contextmanager
    def task(self, name, total):
        self.seen.append(name)
        if name == self.name:
            raise KeyboardInterrupt
        yield self

    def advance(self, n=1):
        pass

    def note(self, text):
        pass


STEPS = ["Reading", "Sorting by learner", "Going through the log", "Sampling and writing"]


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Synthesize a log that counts as large."""
    for name in ("LARGE_ROWS", "LARGE_TEXT", "LARGE_PACKED"):
        monkeypatch.setattr(streams, name, 0)
    monkeypatch.setattr(partitions, "PARTITION_ROWS", 500)
    monkeypatch.setattr(parts, "PART_ROWS", 500)
    log = Classroom(n_learners=150, n_actions=8).simulate(np.random.default_rng(0)).to_polars()
    log.with_columns(learner="pupil " + pl.col("learner").cast(pl.String)).write_csv(tmp_path / "log.csv")
    (tmp_path / "scratch").mkdir()

    def made(reporter):
        with progress.reported_by(reporter), running_on(scratch=str(tmp_path / "scratch")):
            read = read_log(tmp_path / "log.csv", format="csv", public_actions=True)
            options = {"out": tmp_path / "out.csv", "anyway": True}
            return synthesize(read, "markov-dp:epsilon=4", **options)

    return made


@pytest.mark.parametrize("step", STEPS)
def test_a_synthesis_that_is_stopped_is_done_by_the_same_command(make, tmp_path, step):
    with pytest.raises(KeyboardInterrupt) as stop:
        make(_StopAt(step))
    stop.value.__traceback__ = None  # which would keep the log, and its files
    assert not (tmp_path / "out.csv").exists()
    assert list((tmp_path / "scratch").iterdir()) == []
    entries = [entry.kind for entry in Ledger(tmp_path / "understudy.ledger").entries()]
    assert entries == ([] if step in STEPS[:2] else ["synthesize", TAKEN_BACK])
    reporter = _StopAt("")
    again = make(reporter)
    # Every long step is shown.
    assert set(STEPS) <= set(reporter.seen)
    assert again.log.n_learners == 150
    assert (tmp_path / "out.csv").exists()
    assert Ledger(tmp_path / "understudy.ledger").balance(again.charge.account.population).epsilon == 4
