"""Temporary files of large computations: in a folder that nobody else can read, and that is gone in the end."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path

_PREFIX = "understudy-scratch"


class Scratch:
    """A new folder with mode 0700; it is removed with this object, at the latest when the program ends.

    What a killed program left behind, on this machine, is removed by the next one: it may hold rows of real learners.
    """

    def __init__(self, parent: str | None = None) -> None:
        parent = parent or tempfile.gettempdir()
        host = socket.gethostname()
        _remove_stale(Path(parent), host)
        prefix = f"{_PREFIX}-{host}-{os.getpid()}-"
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)


def _remove_stale(parent: Path, host: str) -> None:
    if not Path("/proc/self").exists():
        return
    for old in parent.glob(f"{_PREFIX}-{host}-*-*"):
        process = old.name.removeprefix(f"{_PREFIX}-{host}-").split("-")[0]
        if process.isdigit() and not Path(f"/proc/{process}").exists():
            shutil.rmtree(old, ignore_errors=True)
