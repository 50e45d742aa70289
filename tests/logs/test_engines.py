"""The same log from threads, from worker processes, and however it is divided."""

import functools
import gc
import os
import signal

import numpy as np
import pytest

from understudy.core.engine.engine import running_on
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import MissingError, UsageError
from understudy.logs.generators.baselines import Markov
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import Interactions
from understudy.logs.large import parts
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.models.rasch_in_parts import fit_rasch_of
from understudy.logs.simulated.classroom import Classroom

METHODS = {"markov": Markov, "markov-dp": MarkovDP, "runs-dp": RunsDP}


@pytest.fixture(scope="module")
def log() -> Interactions:
    return Classroom(n_learners=300, n_actions=12).simulate(np.random.default_rng(0)).declare()


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("distributed")
    with running_on("2") as engine:
        yield engine


def made(log, method):
    generator = METHODS[method]().fit(log, np.random.default_rng(1), seeded_noise(np.random.default_rng(2)))
    return generator.sample(50, np.random.default_rng(3))


@pytest.mark.parametrize("method", METHODS)
def test_engines_and_parts_change_no_bit(log, method, cluster, monkeypatch):
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    with running_on():
        here = made(log, method)
        monkeypatch.setattr(parts, "PART_ROWS", 3000)
        fewer = made(log, method)
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    with running_on(cluster):
        there = made(log, method)
    for other in (fewer, there):
        np.testing.assert_array_equal(here.action, other.action)
        np.testing.assert_array_equal(here.outcome, other.outcome)
        np.testing.assert_array_equal(here.offsets, other.offsets)


@pytest.mark.oracle
def test_rasch_in_parts_finds_the_same_optimum(log, monkeypatch):
    whole = fit_rasch(log)
    monkeypatch.setattr(parts, "PART_ROWS", 2000)
    found = fit_rasch_of(log)
    np.testing.assert_allclose(found.difficulty, whole.difficulty, atol=1e-4)
    np.testing.assert_allclose(found.ability, whole.ability, atol=1e-4)


def test_parts_have_every_learner_once(log, monkeypatch):
    monkeypatch.setattr(parts, "PART_ROWS", 100)
    ranges = parts.ranges_of(log.offsets)
    assert [first for first, _ in ranges] == [0, *(last for _, last in ranges)][:-1]
    assert ranges[-1][1] == log.n_learners
    rows = [log.offsets[last] - log.offsets[first] for first, last in ranges]
    assert all(n <= 100 or last - first == 1 for n, (first, last) in zip(rows, ranges, strict=True))


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(UsageError, match="not an engine"), running_on("fast"):
        pass


def test_a_scheduler_that_is_not_there_is_said(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("understudy.core.engine.cluster.CONNECT_WITHIN", "1s")
    with pytest.raises(MissingError, match="no scheduler"), running_on("tcp://127.0.0.1:9"):
        pass


def test_a_worker_that_dies_changes_nothing(log, monkeypatch, tmp_path):
    """It is killed while it has a part; the others, and the one that takes its place, finish the job."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    once = tmp_path / "died"
    with running_on():
        wanted = sum_rows(log)
    with running_on("2", str(tmp_path)):
        found = parts.sum_over(log, functools.partial(rows_after_a_death, str(once)))
    assert once.exists()
    assert found == wanted == log.n_rows


def sum_rows(log):
    return parts.sum_over(log, rows_of)


def rows_of(part):
    return part.n_rows


def rows_after_a_death(once, part):
    """Rows of a part; whoever comes first is killed."""
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return part.n_rows
    os.kill(os.getpid(), signal.SIGKILL)


def test_nothing_stays_in_the_scratch_folder(log, monkeypatch, tmp_path):
    pytest.importorskip("distributed")
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    again = Interactions(log.action, log.outcome, log.offsets, log.actions)
    with running_on("1", str(tmp_path)):
        assert sum_rows(again) == log.n_rows
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
    del again
    gc.collect()
    assert list(tmp_path.iterdir()) == []
