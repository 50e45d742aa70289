"""Worker processes next to the server, started again when they end by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Self

# A worker that ends by itself is started again, after a pause that doubles up to this.
_LONGEST_PAUSE_SECONDS = 60.0
_SECONDS_TO_END = 20.0


class SupervisedWorker:
    """A worker process that is started again when it ends by itself; `restarted` hears the code it ended with.

    It has a session of its own, so that Ctrl-C reaches the server alone and the worker is ended politely. Its
    standard input is a pipe that closes when the server is gone, however that happens (`end_with_parent`).
    """

    def __init__(self, command: Sequence[str], restarted: Callable[[int], None]) -> None:
        self._command = list(command)
        self._restarted = restarted
        self._ended = threading.Event()
        self._process = self._start()
        threading.Thread(target=self._watch, name="supervision", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Let it give its work back and end."""
        self._ended.set()
        self._process.terminate()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            # Its lease runs out, and another worker takes the job up: nothing is lost.
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True)

    def _watch(self) -> None:
        pause = 1.0
        while not self._ended.is_set():
            code = self._process.wait()
            if self._ended.wait(pause):
                return
            self._restarted(code)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            self._process = self._start()
            if self._ended.is_set():
                self._process.terminate()


def end_with_parent() -> None:
    """Ask this process to end when its standard input does: a thread waits for that."""

    def wait() -> None:
        # Not through sys.stdin: its lock would be held by this thread when Python ends.
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
