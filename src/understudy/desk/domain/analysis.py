"""Runs an analysis in the sandbox, once or on many tables, in an order that code cannot guess."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Protocol

from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.sandbox.code_review import UnparsableError, entries, parameters, parse
from understudy.sandbox.jobs import Job, Limits, Outcome

ENTRY = "analyze"
# What the entry of code with private questions is given, in place of data: a recorder, and never a table.
ASK = "ask"
# What can change an answer, by the names that packages are installed under.
_LIBRARIES = ("numpy", "pandas", "scipy", "statsmodels", "scikit-learn", "lingam", "understudy")
_LEAST_OUTPUT_BYTES = 1 << 20
Progress = Callable[[int, int], None]


class RunsJobs(Protocol):
    """The sandbox, or its substitute in a test."""

    def run_many(self, jobs: Sequence[Job], progress: Progress | None = None) -> list[Outcome]:
        """Outcomes in the jobs' order."""
        ...


@dataclass(frozen=True)
class Failure:
    """A run without results: how it ended, and for an error its type and the line of the submitted code."""

    status: str
    error_type: str = ""
    error_line: int | None = None
    words: str = ""
    """Of private questions that were not taken: why not. They are about the request and what is public."""

    def __str__(self) -> str:
        if self.words:
            return self.words
        if self.status == "error":
            place = f" in line {self.error_line}" if self.error_line else ""
            return f"{self.error_type or 'Error'}{place}"
        ends = {
            "time": "it took too long",
            "memory": "it needed too much memory",
            "output": "its output is too large",
            "empty": f"{ENTRY} returned nothing; it has to end with return {{...}}",
        }
        return ends.get(self.status, "it ended without a result")


Answer = Results | Failure


@dataclass(frozen=True)
class Analysis:
    """Submitted code with its entry `analyze(data)`, and its seed, which the desk gives it."""

    code: str
    seed: int = 0

    @classmethod
    def seeded(cls, code: str) -> Analysis:
        """Code with its seed, which the desk gives it: the same for the same code, at the desk and at home."""
        # 52 bits of the code's hash: as JSON, every reader takes it for the same number.
        return cls(code, seed=int(code_hash(code)[:13], 16))

    def answers(
        self, sandbox: RunsJobs, tables: Sequence[bytes], progress: Progress | None = None
    ) -> list[Answer]:
        """The answer on each table, in order. The sandbox sees the tables in another order.

        A run sees clocks, and pipes are numbered: the order of runs must not reveal which table is the real one.
        """
        order = list(range(len(tables)))
        secrets.SystemRandom().shuffle(order)
        jobs = [Job(self.code, ENTRY, tables={"data": tables[place]}, seed=self.seed) for place in order]
        outcomes = sandbox.run_many(jobs, progress)
        answers: list[Answer] = [Failure("killed")] * len(tables)
        for place, outcome in zip(order, outcomes, strict=True):
            answers[place] = answer_of(outcome)
        return answers

    def answer(self, sandbox: RunsJobs, table: bytes) -> Answer:
        """The answer on one table."""
        return self.answers(sandbox, [table])[0]


def answer_of(outcome: Outcome) -> Answer:
    """Results, or how the run failed."""
    if outcome.status == "done":
        return Results.of(outcome)
    return Failure(outcome.status, outcome.error_type, outcome.error_line)


def of_a_trial(answer: Answer) -> Answer:
    """What counts as the answer of a trial: an empty one does not count, and is not reviewed."""
    if isinstance(answer, Results) and not answer.tables and answer.values in (None, {}, []):
        return Failure("empty")
    return answer


def asks_privately(code: str) -> bool:
    """Whether code asks private questions: its entry is `analyze(ask)`, and not `analyze(data)`."""
    try:
        found = entries(parse(code), ENTRY)
    except UnparsableError:
        return False
    return bool(found) and parameters(found[-1])[:1] == [ASK]


def code_hash(code: str) -> str:
    """The hash of submitted code; public, unlike hashes of data."""
    return hashlib.sha256(code.encode()).hexdigest()


def limits_of(policy: Policy) -> Limits:
    """What one run may use, at the desk and at home. An answer that is a little too large fails its check."""
    return Limits(
        wall_seconds=policy.run_seconds,
        cpu_seconds=max(1, int(policy.run_seconds)),
        output_bytes=max(_LEAST_OUTPUT_BYTES, 8 * policy.most_output_bytes),
    )


def environment() -> dict[str, str]:
    """Versions of what an answer is computed with."""
    return dict(_environment())


@cache
def _environment() -> tuple[tuple[str, str], ...]:
    found = {"python": python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return tuple(found.items())
