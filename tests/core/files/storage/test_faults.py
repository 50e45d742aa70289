"""Full disks, limits of files and missing permissions: one sentence, and nothing half written."""

from __future__ import annotations

import errno
import os

import numpy as np
import polars as pl
import pytest

from tests.support.small_disk import leave, small_disk
from understudy.core.files.storage.faults import DiskError, disk_error, explaining_disk
from understudy.core.files.storage.scratch import Scratch, reserve
from understudy.core.files.writing import new_folder, write_bytes, write_table
from understudy.core.privacy.ledger import Ledger
from understudy.errors import MissingError, UsageError

__all__ = ["small_disk"]

FRAME = pl.DataFrame({"a": np.arange(1_000_000), "b": np.random.default_rng(0).random(1_000_000)})
WAYS = {
    "bytes": lambda place: write_bytes(place / "out.bin", bytes(5_000_000)),
    "csv": lambda place: write_table(FRAME, place / "out.csv", kind="test"),
    "lazy csv": lambda place: write_table(FRAME.lazy(), place / "out.csv", kind="test"),
    "parquet": lambda place: write_table(FRAME, place / "out.parquet", kind="test"),
    "lazy parquet": lambda place: write_table(FRAME.lazy(), place / "out.parquet", kind="test"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_is_said_and_nothing_stays(small_disk, way):
    with pytest.raises(DiskError, match=r"no room for .*out.* MB are free") as caught:
        WAYS[way](small_disk)
    assert (caught.value.code, caught.value.exit_code, caught.value.settings) == ("disk-full", 5, ("out",))
    assert caught.value.hint
    assert list(small_disk.iterdir()) == []


def test_an_old_file_stays_when_the_new_one_has_no_room(small_disk):
    write_bytes(small_disk / "out.bin", b"old")
    with pytest.raises(DiskError):
        WAYS["bytes"](small_disk)
    assert [path.read_bytes() for path in small_disk.iterdir()] == [b"old"]


def test_a_folder_that_fills_the_disk_vanishes(small_disk):
    def write():
        with new_folder(small_disk / "bundle") as folder:
            (folder / "a.txt").write_bytes(b"a")
            np.savez(folder / "model.npz", weights=FRAME["b"].to_numpy())

    with pytest.raises(DiskError, match=r"no room for .*bundle"):
        write()
    assert list(small_disk.iterdir()) == []


def test_a_full_scratch_folder_names_its_own_setting(small_disk):
    def fill():
        with Scratch(str(small_disk)) as scratch, scratch.filling():
            np.save(scratch.path / "rows.npy", FRAME["b"].to_numpy())

    with pytest.raises(DiskError, match="no room") as caught:
        fill()
    assert caught.value.settings == ("scratch",)
    assert list(small_disk.iterdir()) == []


def test_a_map_of_a_file_takes_its_room_beforehand(small_disk):
    """Without it the process dies of SIGBUS at the first page that finds no room."""

    def fill():
        with explaining_disk(small_disk / "rows.npy"):
            np.lib.format.open_memmap(small_disk / "rows.npy", mode="w+", dtype=np.int64, shape=(10**6,))
            reserve(small_disk / "rows.npy")

    with pytest.raises(DiskError, match="no room"):
        fill()


def test_a_ledger_on_a_full_disk(small_disk):
    leave(small_disk, 6000)
    with pytest.raises(MissingError, match=r"no room for .*ledger|disk is full"):
        Ledger(small_disk / "understudy.ledger").set_limit("a class", 4.0)


def test_a_scratch_folder_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="is not a folder") as caught:
        _ = Scratch(str(tmp_path / "nowhere")).path
    assert caught.value.settings == ("scratch",)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk-full"),
        (errno.EDQUOT, "disk-full"),
        (errno.EFBIG, "file-too-large"),
        (errno.EACCES, "not-permitted"),
        (errno.EROFS, "not-permitted"),
        (errno.EIO, "disk-broken"),
        (errno.ECONNRESET, None),
    ],
)
def test_what_a_system_says_by_number(tmp_path, number, code):
    errors = [
        OSError(number, os.strerror(number)),
        # As polars and other libraries pass it on.
        pl.exceptions.ComputeError(
            f"parquet: underlying IO error: {os.strerror(number)} (os error {number})"
        ),
    ]
    for error in errors:
        explained = disk_error(error, tmp_path / "out.csv")
        assert (None if explained is None else explained.code) == code
        # A fault of the machine: what was charged for nothing is taken back.
        assert explained is None or isinstance(explained, OSError)


def test_other_errors_are_left_alone(tmp_path):
    with pytest.raises(ValueError, match="mine"), explaining_disk(tmp_path / "out"):
        raise ValueError("mine")
    with pytest.raises(UsageError), explaining_disk(tmp_path / "out"):
        raise UsageError("ours", hint="none")
