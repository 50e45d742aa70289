"""Commands on machines that refuse: a full disk, limits, permissions, no memory. One sentence, and no charge."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys

import polars as pl
import pytest

from tests.support.command import run, run_in_process
from tests.support.small_disk import leave, small_disk
from understudy.cli import logs
from understudy.core.engine.engine import running_on
from understudy.core.events import partitions
from understudy.core.files import streams
from understudy.core.files.storage.faults import DiskError
from understudy.core.privacy.ledger import TAKEN_BACK, Ledger
from understudy.logs.reading import read_log

pytestmark = pytest.mark.functional
__all__ = ["small_disk"]


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with the log of learners who are not marked as simulated."""
    folder = tmp_path_factory.mktemp("room")
    run("simulate", "simulated.csv", "--learners", 400, "--actions", 12, cwd=folder)
    pl.read_csv(folder / "simulated.csv").write_csv(folder / "log.csv")
    return folder


def kinds(ledger):
    return [entry.kind for entry in Ledger(ledger).entries()]


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_a_release_without_room_is_not_paid(room, small_disk, tmp_path, out):
    leave(small_disk, 40_000)
    ledger = tmp_path / "ledger"
    words = ("synthesize", room / "log.csv", "-o", small_disk / out, "-m", "markov-dp:epsilon=8")
    done = run(*words, "--public-actions", "--ledger", ledger, "--n-learners", 4000, cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "there is no room for" in done.stderr
    assert "free some space" in done.stderr
    assert "(-o)" in done.stderr
    assert kinds(ledger) == []
    assert [path.name for path in small_disk.iterdir()] == ["else"]


def test_a_bundle_that_fills_the_disk_is_paid(room, small_disk, tmp_path, monkeypatch):
    """How large it is, noise decided."""
    monkeypatch.setattr("understudy.logs.synthesize.BYTES_PER_ROW", 1)
    ledger = tmp_path / "ledger"
    leave(small_disk, 200_000)
    words = ("release", room / "log.csv", "-o", small_disk / "bundle", "-m", "markov-dp:epsilon=8")
    done = run(*words, "--public-actions", "--ledger", ledger, "--anyway", cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "there is no room for" in done.stderr
    assert kinds(ledger) == ["release"]
    assert "stays in the ledger" in done.stderr
    assert [path.name for path in small_disk.iterdir()] == ["else"]


def test_a_study_without_room_keeps_what_was_finished(room, small_disk, tmp_path):
    """Its cells are small; the figures and the report are not."""
    leave(small_disk, 40_000)
    words = ("study", room / "log.csv", "-m", "drop:0.5", "--seeds", 1, "--shadows", 8)
    done = run(*words, "-o", small_disk / "study", cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "there is no room for" in done.stderr
    assert not [path for path in small_disk.rglob("*") if "unfinished" in path.name]
    (small_disk / "else").unlink()
    again = run(*words, "-o", small_disk / "study", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (small_disk / "study" / "report.html").exists()


def test_a_limit_of_files(room, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    words = ("synthesize", room / "log.csv", "-o", "out.parquet", "-m", "markov", "--n-learners", 20_000)
    done = run_in_process(*words, "--ledger", "ledger", cwd=tmp_path, preexec_fn=limit)
    assert done.returncode == 5, done.stderr
    assert "larger than a file may be here" in done.stderr
    assert kinds(tmp_path / "ledger") == ["synthesize", TAKEN_BACK]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("words", [["inspect", "log.csv"], ["inspect", "log.csv", "--json"], ["--help"]])
def test_an_output_that_is_full(room, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "understudy", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=room,
            check=False,
        )
    assert done.returncode == 5, done.stderr
    assert "the output could not be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def _obey_permissions():
    """Root may write everywhere; without these two capabilities, which go at the next exec, it may not."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_a_user_who_may_not_write_or_read(room, tmp_path):
    log = tmp_path / "log.csv"
    log.write_bytes((room / "log.csv").read_bytes())
    tmp_path.chmod(0o555)
    options = {"cwd": tmp_path, "preexec_fn": _obey_permissions if os.getuid() == 0 else None}
    written = run_in_process("simulate", "out.csv", **options)
    assert written.returncode == 5, written.stderr
    assert "Permission denied" in written.stderr
    assert "who may write" in written.stderr
    ledger = run_in_process("synthesize", "log.csv", "-o", "out.csv", "-m", "markov", **options)
    assert ledger.returncode == 5, ledger.stderr
    assert "the ledger" in ledger.stderr
    log.chmod(0)
    for words in (
        ["inspect", "log.csv"],
        ["describe", "log.csv"],
        ["difficulties", "log.csv", "--epsilon", "1"],
    ):
        read = run_in_process(*words, **options)
        assert read.returncode == 2, read.stderr
        assert "is not readable" in read.stderr or "check who may read the file" in read.stderr
    tmp_path.chmod(0o755)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_scratch_folder_that_is_full(room, small_disk, monkeypatch):
    for name in ("LARGE_ROWS", "LARGE_TEXT", "LARGE_PACKED"):
        monkeypatch.setattr(streams, name, 0)
    monkeypatch.setattr(partitions, "PARTITION_ROWS", 2000)
    leave(small_disk, 40_000)
    with running_on(scratch=str(small_disk)), pytest.raises(DiskError, match="no room") as caught:
        read_log(room / "log.csv")
    assert caught.value.settings == ("scratch",)
    assert [path.name for path in small_disk.iterdir()] == ["else"]


def test_a_lack_of_memory_is_said(room, monkeypatch):
    def inspected(*_, **__):
        raise MemoryError

    monkeypatch.setattr(logs, "inspect_log", inspected)
    done = run("inspect", "log.csv", cwd=room)
    assert done.returncode == 5
    assert "not enough memory" in done.stderr
