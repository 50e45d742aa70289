"""The command line as a person runs it: in this process, which is fast, or in one of its own."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

from understudy.cli import app as command_line


def run(*arguments, cwd):
    """Run `understudy` with these arguments in a folder; a traceback is always a bug."""
    # As a terminal has it: text on top of bytes.
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    before = os.getcwd()
    os.chdir(cwd)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            code = command_line.run([str(argument) for argument in arguments])
    finally:
        os.chdir(before)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    assert "Traceback" not in texts[1]
    return SimpleNamespace(returncode=code, stdout=texts[0], stderr=texts[1])


def run_in_process(*arguments, cwd, **options):
    """The same in a process of its own, for what only that shows: signals, imports, the real streams."""
    done = subprocess.run(
        [sys.executable, "-m", "understudy", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        **options,
    )
    assert "Traceback" not in done.stderr
    return done
