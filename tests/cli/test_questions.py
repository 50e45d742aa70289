"""Questions at a real terminal: Ctrl-C stops them at once, and the command's output stays clean."""

import os
import pty
import select
import subprocess
import sys
import time

import pytest

from understudy.core.privacy.ledger import FILE_NAME, Ledger

# Until a command that hangs is given up; nothing is measured.
PATIENCE = 120


class Typist:
    """A command with a terminal of its own, whose output goes to a file if one is named."""

    def __init__(self, folder, *arguments, out=None):
        self._here, there = pty.openpty()
        self.seen = ""
        with open(folder / out, "wb") if out else os.fdopen(os.dup(there), "wb") as stdout:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "understudy", *arguments],
                stdin=there,
                stdout=stdout,
                stderr=there,
                cwd=folder,
                start_new_session=True,
                preexec_fn=_take_terminal,
            )
        os.close(there)

    def waits_for(self, text):
        """Read until the terminal shows a text."""
        until = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < until, self.seen
            if select.select([self._here], [], [], 0.1)[0]:
                self.seen += os.read(self._here, 4096).decode(errors="replace")

    def types(self, text):
        os.write(self._here, text.encode())

    def ends(self):
        """The exit code, and everything that was seen."""
        try:
            code = self._process.wait(PATIENCE)
        finally:
            self._process.kill()
        while select.select([self._here], [], [], 0)[0]:
            try:
                self.seen += os.read(self._here, 4096).decode(errors="replace")
            except OSError:  # how Linux says that the other side is closed
                break
        os.close(self._here)
        return code, self.seen


def _take_terminal():
    """The terminal of the standard input becomes the one whose Ctrl-C ends this process."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


RELEASE = ["release", "log.csv", "-o", "bundle", "--public-actions", "--for", "shares", "--anyway"]


@pytest.fixture
def folder(tmp_path):
    rows = [f"p{n % 20},t{n % 3},{n % 2}" for n in range(200)]
    (tmp_path / "log.csv").write_text("\n".join(["learner,action,outcome", *rows]) + "\n")
    return tmp_path


def has_spent_nothing(folder):
    ledger = folder / FILE_NAME
    return not (folder / "bundle").exists() and not (ledger.exists() and Ledger(ledger).entries())


def test_ctrl_c_stops_the_question_before_a_charge(folder):
    typist = Typist(folder, *RELEASE)
    typist.waits_for("[y/N]: ")
    time.sleep(0.5)  # until the command waits for the answer and nothing else
    typist.types("\x03")
    code, seen = typist.ends()
    assert (code, "Stopped." in seen) == (130, True), seen
    assert has_spent_nothing(folder)


def test_the_end_of_input_stops_it_too(folder):
    typist = Typist(folder, *RELEASE)
    typist.waits_for("[y/N]: ")
    typist.types("\x04")
    assert typist.ends()[0] == 130
    assert has_spent_nothing(folder)


def test_an_answer_that_is_neither_is_asked_again_and_nothing_goes_to_the_output(folder):
    typist = Typist(folder, *RELEASE, "--json", out="out.json")
    typist.waits_for("[y/N]: ")
    typist.types("perhaps\n")
    typist.waits_for("Please answer y or n.")
    typist.types("n\n")
    code, seen = typist.ends()
    assert code == 4
    assert "run the same command again, and answer y" in seen
    assert (folder / "out.json").read_bytes() == b""
    assert has_spent_nothing(folder)
