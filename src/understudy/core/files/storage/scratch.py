"""Temporary files of large computations: in a folder that other users cannot read, and that is removed in the end."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from understudy.core.files.storage.faults import explaining_disk
from understudy.errors import UsageError

_PREFIX = "understudy-scratch"


class Scratch:
    """A new folder with mode 0700, made when it is first used; it is removed with this object or its `with` block.

    What a killed program left behind, on this machine, is removed by the next one: it may hold rows of real learners.
    """

    def __init__(self, parent: str | None = None) -> None:
        self._parent = parent or tempfile.gettempdir()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def path(self) -> Path:
        """The folder."""
        if self._folder is None:
            if not Path(self._parent).is_dir():
                raise UsageError(
                    f"temporary files were to go to {self._parent}, which is not a folder.",
                    hint="name a folder that is there.",
                    settings=("scratch",),
                )
            host = socket.gethostname()
            prefix = f"{_PREFIX}-{host}-"
            remove_stale(Path(self._parent), prefix)
            with explaining_disk(Path(self._parent) / prefix, settings=("scratch",)):
                self._folder = tempfile.TemporaryDirectory(
                    prefix=f"{prefix}{os.getpid()}-", dir=self._parent, ignore_cleanup_errors=True
                )
        return Path(self._folder.name)

    def folder(self) -> Path:
        """A new folder in it."""
        return Path(tempfile.mkdtemp(dir=self.path))

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *error: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def filling(self) -> AbstractContextManager[None]:
        """Around whatever writes there: a full disk is said as such, with the setting that names another folder."""
        return explaining_disk(Path(self._parent) / "temporary files", settings=("scratch",))


def reserve(path: Path) -> None:
    """Take the room on the disk for all of a file: a map of it that finds none later on kills the process."""
    with path.open("r+b") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, max(path.stat().st_size, 1))


def remove_stale(parent: Path, prefix: str) -> None:
    """Remove files and folders that killed programs left behind: behind the prefix stand their number and a hyphen."""
    if not Path("/proc/self").exists():
        return
    for old in parent.glob(f"{glob.escape(prefix)}*-*"):
        process = old.name.removeprefix(prefix).split("-")[0]
        if process.isdigit() and not Path(f"/proc/{process}").exists():
            if old.is_dir():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.unlink(missing_ok=True)
