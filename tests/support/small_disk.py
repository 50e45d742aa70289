"""A disk with little room, for tests of what happens when it is full; needs root, and is skipped without."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOM = 4 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own, with room for four megabytes."""
    place = tmp_path / "small disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "understudy-test", str(place)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def leave(disk: Path, n_bytes: int) -> None:
    """Fill the disk, but for so much."""
    (disk / "else").write_bytes(bytes(ROOM - n_bytes))
