"""A real scheduler and real workers on loopback: killed in the middle, and with shared storage behind URLs."""

import functools
import gc
import os
import signal
import threading

import numpy as np
import polars as pl
import pytest

pytest.importorskip("distributed")

from tests.logs.support.cluster import processes
from tests.support.command import run
from understudy.core.engine.engine import running_on, scratch_parent
from understudy.core.files.storage.shared_storage import read_array, scratch_at, write_array
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import MissingError, UsageError
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.interactions import Interactions
from understudy.logs.large import parquet_parts, parts
from understudy.logs.large.parquet_parts import write_parts
from understudy.logs.simulated.classroom import Classroom


@pytest.fixture(scope="module")
def log() -> Interactions:
    return Classroom(n_learners=200, n_actions=8).simulate(np.random.default_rng(0)).declare()


def fresh(log):
    """The same log without what was kept for it."""
    return Interactions(log.action, log.outcome, log.offsets, log.actions, declared=True)


def made(log):
    generator = MarkovDP().fit(fresh(log), noise=seeded_noise(np.random.default_rng(2)))
    return generator.sample(50, np.random.default_rng(3))


def assert_same(one, other):
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_array_equal(one.outcome, other.outcome)
    np.testing.assert_array_equal(one.offsets, other.offsets)


@pytest.fixture
def in_small_parts(monkeypatch):
    monkeypatch.setattr(parts, "PART_ROWS", 1000)


def command(folder, address, *more):
    return run(
        *("synthesize", "log.csv", "-o", "out.csv", "-m", "tests.logs.support.cluster:KillsAProcess"),
        *("--engine", address, "--scratch", folder, *more),
        cwd=folder,
    )


def test_a_worker_is_killed_and_the_job_ends_well(log, tmp_path, in_small_parts, monkeypatch):
    log.to_polars().write_csv(tmp_path / "log.csv")
    with processes(tmp_path) as (address, _, workers):
        monkeypatch.setenv("KILLED", str(workers[0].pid))
        done = command(tmp_path, address, "--simulated")
        assert workers[0].wait() == -signal.SIGKILL
    assert done.returncode == 0, done.stderr
    assert f"{log.n_rows} rows" in done.stdout


def test_the_scheduler_is_killed_and_nothing_is_written(log, tmp_path, in_small_parts, monkeypatch, capfd):
    log.to_polars().write_csv(tmp_path / "log.csv")
    with processes(tmp_path) as (address, scheduler, _):
        monkeypatch.setenv("KILLED", str(scheduler.pid))
        done = command(tmp_path, address, "--ledger", tmp_path / "ledger")
    assert done.returncode == 5
    assert done.stderr.count("Error:") == 1
    assert "the scheduler of the cluster is gone; nothing was written." in done.stderr
    assert "the charge was taken back" in done.stderr
    # Nor does the library's own logger say anything.
    assert "Traceback" not in capfd.readouterr().err
    assert not (tmp_path / "out.csv").exists()
    gc.collect()
    assert not list(tmp_path.glob("understudy-scratch*"))


def test_workers_write_their_parts(log, tmp_path, in_small_parts):
    """The same files, whoever writes them, and the same rows as in one file."""
    log.to_polars().write_csv(tmp_path / "log.csv")
    common = ("synthesize", "log.csv", "-m", "markov", "--seed", "1", "--simulated", "--public-actions")
    with processes(tmp_path) as (address, _, _):
        made = {
            name: run(*common, "-o", name, *engine, cwd=tmp_path)
            for name, engine in {
                "one.parquet": (),
                "here": (),
                "there": ("--engine", address, "--scratch", tmp_path),
            }.items()
        }
    assert {name: done.returncode for name, done in made.items()} == dict.fromkeys(made, 0), made
    here, there = (sorted((tmp_path / name).iterdir()) for name in ("here", "there"))
    assert [path.name for path in here] == [f"part-{number:04}.parquet" for number in range(len(here))]
    assert len(here) > 3
    assert [path.read_bytes() for path in here] == [path.read_bytes() for path in there]
    assert [path.name for path in here] == [path.name for path in there]
    assert pl.concat(map(pl.read_parquet, there)).equals(pl.read_parquet(tmp_path / "one.parquet"))


def test_parts_are_written_by_workers_and_again_if_one_dies(log, tmp_path, in_small_parts):
    with processes(tmp_path) as (address, _, workers), running_on(address, str(tmp_path)) as engine:
        writers = set(engine.each(process_of, range(20)))
        assert writers <= {worker.pid for worker in workers}
        os.kill(workers[0].pid, signal.SIGSTOP)  # it is given parts, and dies with them
        killing = threading.Timer(2, workers[0].kill)
        killing.start()
        write_parts(log, tmp_path / "out", "s", kind="synthetic", beside={})
        killing.join()
    rows = pl.concat(map(pl.read_parquet, sorted((tmp_path / "out").iterdir())))
    np.testing.assert_array_equal(rows["outcome"].to_numpy(), log.outcome)
    assert rows["learner"].n_unique() == log.n_learners


def test_a_folder_that_workers_do_not_see_is_said(log, tmp_path, in_small_parts):
    """As on another machine, where a folder of this name is missing: nothing is kept."""
    folder = parquet_parts._Folder(tmp_path / "elsewhere", "s", 200, "synthetic")
    with running_on("1", str(tmp_path)) as engine, pytest.raises(MissingError) as caught:
        list(engine.each(functools.partial(parquet_parts._write_there, folder), enumerated(log)))
    assert (caught.value.code, caught.value.settings) == ("no-shared-storage", ("out",))
    # A folder in the place of a file is refused by every disk, whoever writes.
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "part-0000.parquet").mkdir()
    with running_on("1", str(tmp_path)) as engine, pytest.raises((MissingError, OSError)):
        list(engine.each(functools.partial(parquet_parts._write_there, folder), enumerated(log)))
    (tmp_path / "part-0000.parquet").touch()
    with pytest.raises(MissingError):
        parquet_parts._require_all(tmp_path, {"part-0000.parquet", "part-0001.parquet"})


def enumerated(log):
    return list(enumerate(parts.parts_of(log)))


def process_of(_):
    return os.getpid()


def test_inspect_counts_on_workers_too(log, tmp_path, in_small_parts):
    log.to_polars().write_csv(tmp_path / "log.csv")
    here, there = (
        run("inspect", "log.csv", "--json", *engine, cwd=tmp_path)
        for engine in ((), ("--engine", "1", "--scratch", tmp_path))
    )
    assert there.returncode == 0, there.stderr
    assert here.stdout == there.stdout


def test_workers_read_storage_behind_a_url(log, tmp_path, in_small_parts):
    """Only this machine's storage, by fsspec's own way."""
    with running_on():
        wanted = made(log)
    shared = tmp_path / "shared"
    shared.mkdir()
    with processes(tmp_path) as (address, _, _), running_on(address, f"file://{shared}"):
        assert scratch_parent() is None
        assert_same(made(log), wanted)
    gc.collect()
    assert list(shared.iterdir()) == []


def test_workers_read_s3(log, tmp_path, in_small_parts, monkeypatch):
    """An S3-compatible server on loopback."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        import s3fs

        bucket = s3fs.S3FileSystem()
        bucket.mkdir("learners")
        with running_on():
            wanted = made(log)
        with processes(tmp_path) as (address, _, _), running_on(address, "s3://learners/scratch"):
            assert_same(made(log), wanted)
        gc.collect()
        bucket.invalidate_cache()
        assert bucket.find("learners") == []
        with pytest.raises(MissingError) as caught:
            write_array(str(scratch_at("s3://another/scratch").path), "action", np.zeros(3))
        assert caught.value.code == "no-shared-storage"
        assert bucket.ls("") == ["learners"]
    finally:
        server.stop()


def test_a_part_of_an_array_is_read_wherever_it_is(tmp_path):
    values = np.arange(1000, dtype=np.int32)
    for place in (str(tmp_path), f"file://{tmp_path}"):
        scratch = scratch_at(place)
        write_array(str(scratch.path), "action", values)
        np.testing.assert_array_equal(read_array(str(scratch.path), "action", 17, 400), values[17:400])
        assert len(read_array(str(scratch.path), "action", 5, 5)) == 0
        del scratch
    gc.collect()
    assert not os.listdir(tmp_path)


def test_a_folder_that_a_worker_does_not_see_is_said(log, tmp_path, in_small_parts):
    """As on another machine: the folder is gone when the worker looks for it."""
    stored = parts.StoredWalks.write(log, str(tmp_path))
    (tmp_path / "action.npy").unlink()
    of_part = functools.partial(parts._of_part, len_of, None)
    with pytest.raises(MissingError) as caught, running_on("1") as engine:
        engine.total(of_part, [parts.LogPart(stored, 0, 10), parts.LogPart(stored, 10, 20)])
    assert caught.value.code == "no-shared-storage"
    assert caught.value.settings == ("scratch",)


def len_of(part):
    return part.n_rows


def test_storage_of_no_known_kind_is_refused():
    with pytest.raises(UsageError) as caught:
        scratch_at("nowhere://bucket")
    assert caught.value.code == "no-such-storage"
