"""Mutants of the mechanisms: each is a small change that breaks a guarantee, and a test has to notice it.

`make mutants` applies those of `mutants.toml` to a copy of the package, one at a time, and runs the tests that are
named for it, then (if these pass) the whole of their files. It fails when a mutant survives, or when the text that it
changes does not occur exactly once any more. `--only WORD` takes the mutants with this word in their file or sentence.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "understudy"
LIST = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """A text of a file, what takes its place, what that breaks, and the tests that should fail then."""

    breaks: str
    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]

    def applied_to(self, source: str) -> str:
        """The source with the change; the text to change occurs exactly once."""
        if (found := source.count(self.text)) != 1:
            raise ValueError(f"{self.file} has {found} times, and not once: {self.text!r}")
        return source.replace(self.text, self.becomes)


def read_mutants() -> list[Mutant]:
    """The list."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**one, "tests": tuple(one["tests"])}) for one in found]


def unmatched(mutants: Sequence[Mutant]) -> list[str]:
    """What is wrong with the list: texts that do not occur exactly once."""
    wrong = []
    for mutant in mutants:
        try:
            mutant.applied_to((PACKAGE / mutant.file).read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            wrong.append(str(error))
    return wrong


class Copy:
    """A copy of the package that tests are run against, unchanged or with one mutant."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(PACKAGE, folder / "understudy", ignore=shutil.ignore_patterns("__pycache__"))

    def failed(self, tests: Sequence[str]) -> str:
        """The first of these tests that fails on the copy; empty if none does."""
        output = self.folder / "output.txt"
        code = _in_child(lambda: self._run(tests, output))
        told = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", output.read_text(encoding="utf-8"), re.MULTILINE)
        if code == 0:
            return ""
        if code != 1 or told is None:
            raise RuntimeError(f"{', '.join(tests)} could not be run:\n{output.read_text()[-3000:]}")
        return told[1]

    def _run(self, tests: Sequence[str], output: Path) -> int:
        import pytest

        # No compiled files: a mutant may have the size and the second of writing of the one before it.
        sys.dont_write_bytecode = True
        os.environ.update(PYTHONPATH=str(self.folder), PYTHONDONTWRITEBYTECODE="1")
        os.chdir(ROOT)
        sys.path.insert(0, str(self.folder))
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(file, stream)
        import understudy

        assert Path(understudy.__file__).is_relative_to(self.folder), "the tests would not run on the copy"
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", f"--basetemp={self.folder / 'tests'}"]
        return int(pytest.main([*options, *tests]))

    def killer_of(self, mutant: Mutant) -> str:
        """The test that fails with the mutant: one that is named for it, else one of the same file, else none."""
        file = self.folder / "understudy" / mutant.file
        original = file.read_text(encoding="utf-8")
        file.write_text(mutant.applied_to(original), encoding="utf-8")
        try:
            files = dict.fromkeys(test.partition("::")[0] for test in mutant.tests)
            return self.failed(mutant.tests) or self.failed(tuple(files))
        finally:
            file.write_text(original, encoding="utf-8")

    def check(self, mutants: Sequence[Mutant]) -> None:
        """Stop if the tests fail without any mutant: then they would prove nothing."""
        if failed := self.failed(sorted({test for mutant in mutants for test in mutant.tests})):
            raise RuntimeError(f"{failed} fails without any mutant")


# What the tests import and no mutant changes: loaded once, so that a process for a mutant starts with it.
_LIBRARIES = ("pytest", "numpy", "scipy.stats", "scipy.optimize", "polars", "opendp.prelude", "dp_accounting.pld",
              "dp_accounting.rdp", "hypothesis", "mpmath", "pydantic", "typer", "torch", "opacus")  # fmt: skip


def _in_child(run: Callable[[], int]) -> int:
    """The code that `run` gives in a forked process: it imports the package anew, and leaves nothing behind."""
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = run()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Apply the mutants; 0 if every one of them is killed."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument(
        "--only", default="", metavar="WORD", help="mutants with this word in file or sentence"
    )
    only = parser.parse_args(arguments).only.casefold()
    mutants = [one for one in read_mutants() if only in f"{one.file} {one.breaks}".casefold()]
    if wrong := unmatched(mutants):
        _say("\n".join(wrong))
        return 1
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        _say(f"Running the tests of {len(mutants)} mutants without any mutant")
        copy.check(mutants)
        for number, mutant in enumerate(mutants, start=1):
            killer = copy.killer_of(mutant)
            survivors += not killer
            beside = "" if any(killer.startswith(test) for test in mutant.tests) else " (not the test named)"
            result = f"killed by {killer}{beside}" if killer else "SURVIVES"
            _say(f"{number:3}/{len(mutants)}  {mutant.file:42} {mutant.breaks}\n         {result}")
    _say(f"{len(mutants) - survivors} of {len(mutants)} mutants are killed.")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
