"""Runs an analysis in the sandbox, once or on many tables, in an order that nobody can guess."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from understudy.desk.domain.results import Results
from understudy.sandbox.jobs import Job, Limits, Outcome

ENTRY = "analyze"
Progress = Callable[[int, int], None]


class RunsJobs(Protocol):
    """The sandbox, or what stands in for it in a test."""

    def run_many(self, jobs: Sequence[Job], progress: Progress | None = None) -> list[Outcome]:
        """Outcomes in the jobs' order."""
        ...


@dataclass(frozen=True)
class Failure:
    """A run without results: how it ended, and for an error its type and the line of the submitted code."""

    status: str
    error_type: str = ""
    error_line: int | None = None

    def __str__(self) -> str:
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
    """Submitted code with its entry `analyze(data)`, and the seed that the desk gives it."""

    code: str
    seed: int = 0

    def answers(
        self, sandbox: RunsJobs, tables: Sequence[bytes], progress: Progress | None = None
    ) -> list[Answer]:
        """The answer on each table, in their order. The sandbox sees them in another one.

        A run sees clocks, and pipes are numbered: the order of runs must not tell which table is the real one.
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
    """What counts as the answer of a trial: one that holds nothing is none, before anybody reviews it."""
    if isinstance(answer, Results) and not answer.tables and answer.values in (None, {}, []):
        return Failure("empty")
    return answer


def limits_for(wall_seconds: float, output_bytes: int) -> Limits:
    """What one run of an analysis may use."""
    return Limits(wall_seconds=wall_seconds, cpu_seconds=max(1, int(wall_seconds)), output_bytes=output_bytes)
