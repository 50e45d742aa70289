"""Run numbered inputs of the fuzzing: `make fuzz`, or `python -m tests.fuzz.run --inputs 1000000`.

A run that was stopped goes on with the next number. Inputs are read in child processes with limits of memory and of
processor time for each input; a child that dies is replaced, and its input reported. Nothing is asserted about speed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import multiprocessing
import os
import resource
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Before the libraries are loaded: threads for files as small as these only wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

OUT = Path("out") / "fuzz"
# Of one input: what takes longer hangs, what takes more is out of bounds. Files have some kilobytes.
MOST_PROCESSOR_SECONDS = 30.0
MOST_SECONDS = 300.0
MOST_BYTES = 2 << 30
# A child is replaced after so many inputs, so that what libraries keep does not add up to the limit of memory.
_PER_CHILD = 5_000
_NO_MEMORY = 77


@dataclass
class Found:
    """An input whose reader did not end as it should."""

    number: int
    seed: int
    reader: str
    problem: str

    def keep(self, folder: Path) -> Path:
        """Write the input and what happened to a folder of its own."""
        from tests.fuzz.inputs import numbered_input

        place = folder / f"{self.reader}-{self.seed}-{self.number}"
        place.mkdir(parents=True, exist_ok=True)
        numbered_input(self.seed, self.number).write(place)
        (place / "problem.txt").write_text(self.problem, encoding="utf-8", errors="replace")
        return place


@dataclass
class _Child:
    """A process that reads inputs `first`, `first + step` and so on, and says which one it is at."""

    seed: int
    numbers: range
    folder: Path
    at: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 8))
    since: float = field(default_factory=time.monotonic)
    process: Any = None

    def start(self) -> None:
        """Begin, in a fork: what was loaded stays loaded."""
        self.at[:] = struct.pack("<q", -1)
        self.receive, send = multiprocessing.get_context("fork").Pipe(duplex=False)
        self.process = multiprocessing.get_context("fork").Process(target=self._work, args=(send,))
        self.process.start()
        send.close()

    def _work(self, send: Any) -> None:
        from tests.fuzz.inputs import numbered_input

        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with limited(self.folder / "stderr") as written:
            for number in self.numbers:
                tried = numbered_input(self.seed, number)
                self.at[:] = struct.pack("<q", number)
                signal.setitimer(signal.ITIMER_PROF, MOST_PROCESSOR_SECONDS)
                problem = tried.problem(self.folder / "input") or written()
                signal.setitimer(signal.ITIMER_PROF, 0)
                if "MemoryError" in problem or "allocation_failed" in problem:
                    os._exit(_NO_MEMORY)
                if problem:
                    send.send((number, tried.reader, problem))
        self.at[:] = struct.pack("<q", self.numbers.stop)

    @property
    def number(self) -> int:
        """The input that it is at."""
        return int(struct.unpack("<q", self.at[:])[0])


@contextlib.contextmanager
def limited(stderr: Path) -> Iterator[Callable[[], str]]:
    """Limit the memory of this process, and give a function that says what it wrote to the error stream since.

    Panics of Rust libraries go there before anybody can catch them, and may quote a file.
    """
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stderr.flush()
    descriptor = os.open(stderr, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 2)

    def written() -> str:
        if not os.fstat(descriptor).st_size:
            return ""
        text = os.pread(descriptor, 4000, 0).decode(errors="replace")
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        # Of Python itself, about code that is read and not run.
        return "" if "SyntaxWarning" in text else f"written to the error stream:\n{text}"

    yield written


def run(first: int, last: int, seed: int = 0, n_workers: int = 1) -> Iterator[tuple[int, list[Found]]]:
    """Read the inputs from `first` on, before `last`; gives now and then how many are done in a row, and problems."""
    from tests.fuzz.inputs import corpus

    corpus()
    with tempfile.TemporaryDirectory(prefix="understudy-fuzz-") as scratch:
        tried_again: set[int] = set()
        waiting = [range(at, min(at + _PER_CHILD, last)) for at in range(first, last, _PER_CHILD)][::-1]
        children: list[_Child] = []
        try:
            while waiting or children:
                while waiting and len(children) < n_workers:
                    numbers = waiting.pop()
                    folder = Path(tempfile.mkdtemp(dir=scratch))
                    children.append(_Child(seed, numbers, folder))
                    children[-1].start()
                time.sleep(0.5)
                found: list[Found] = []
                for child in list(children):
                    found += _reported(child, seed)
                    if child.process.is_alive():
                        continue
                    child.process.join()
                    children.remove(child)
                    at = max(child.number, child.numbers.start)
                    if at >= child.numbers.stop:
                        continue
                    # A process that has read thousands of files may be worn out: only a fresh one is to blame.
                    if at in tried_again:
                        found.append(_death(child, at, seed))
                        at += 1
                    tried_again.add(at)
                    waiting.append(range(at, child.numbers.stop))
                ends = [max(child.number, child.numbers.start) for child in children]
                yield min([*ends, *(numbers.start for numbers in waiting), last]), found
        finally:
            for child in children:
                child.process.kill()
                child.process.join()


def _reported(child: _Child, seed: int) -> list[Found]:
    """What a child reported; one that hangs is ended."""
    alive = child.process.is_alive()
    found = []
    with contextlib.suppress(EOFError):
        while child.receive.poll():
            number, reader, problem = child.receive.recv()
            found.append(Found(number, seed, reader, problem))
    if child.number != getattr(child, "last", None):
        child.last, child.since = child.number, time.monotonic()
    if alive and time.monotonic() - child.since > MOST_SECONDS:
        child.process.kill()
        child.process.join()
    return found


def _death(child: _Child, number: int, seed: int) -> Found:
    """Why a child died at an input."""
    from tests.fuzz.inputs import numbered_input

    code = child.process.exitcode
    why = {
        -signal.SIGPROF: "it hangs",
        -signal.SIGKILL: "it waits forever",
        _NO_MEMORY: "it takes more memory than is allowed",
    }
    stderr = (child.folder / "stderr").read_text(errors="replace")[-2000:]
    problem = f"{stderr}\n{why.get(code, f'the process died ({code})')}."
    return Found(number, seed, numbered_input(seed, number).reader, problem)


def main(arguments: list[str] | None = None) -> int:
    """Go on until so many inputs were read since the beginning; exit code 1 if there was a problem."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--inputs", type=int, default=1_000_000, help="how many in all, those of before included"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", type=int, help="one input by its number, in this process")
    parser.add_argument("--again", action="store_true", help="forget what was done before")
    given = parser.parse_args(arguments)
    if given.only is not None:
        from tests.fuzz.inputs import numbered_input

        with tempfile.TemporaryDirectory() as folder:
            problem = numbered_input(given.seed, given.only).problem(Path(folder) / "input")
        print(problem or "no problem.")
        return int(bool(problem))
    OUT.mkdir(parents=True, exist_ok=True)
    state = OUT / f"seed-{given.seed}.json"
    before = {"done": 0, "problems": 0}
    if state.exists() and not given.again:
        before = json.loads(state.read_text())
    begun, done, n_found = time.monotonic(), before["done"], before["problems"]
    try:
        for done, found in run(before["done"], given.inputs, given.seed, given.workers):
            for problem in found:
                n_found += 1
                print(f"\n{problem.keep(OUT)}: {problem.problem.strip().splitlines()[-1]}")
            state.write_text(json.dumps({"done": done, "problems": n_found}))
            rate = (done - before["done"]) / (time.monotonic() - begun)
            left = f", {(given.inputs - done) / rate / 60:.0f} minutes left" if rate else ""
            print(f"\r{done:,} of {given.inputs:,} inputs, {n_found} problems{left}   ", end="", flush=True)
    except KeyboardInterrupt:
        print(f"\nStopped after {done:,}; the same command goes on.")
        return 130
    print(f"\n{done:,} inputs, {n_found} problems{f'; see {OUT}' if n_found else ''}.")
    return int(n_found > 0)


if __name__ == "__main__":
    sys.exit(main())
