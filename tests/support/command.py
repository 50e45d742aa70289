"""The command line in a process of its own, as a person runs it."""

import subprocess
import sys


def run(*arguments, cwd):
    """Run `understudy` with these arguments in a folder; a traceback is always a bug."""
    done = subprocess.run(
        [sys.executable, "-c", "from understudy.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
    )
    assert "Traceback" not in done.stderr
    return done
