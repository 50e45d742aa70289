"""Finds out what code asks for: it runs in the sandbox without any data, and what comes out is read by code of ours.

Inside, a call of a known name is noted with its arguments, and nothing is computed. What comes out may be whatever the
code wanted it to be, so it is taken for nothing but data: names and arguments are bound to the methods of `Ask` here,
and every question is read as strictly as one from a file.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.core.files.documents import ContractError
from understudy.core.privacy.noise import seeded_noise
from understudy.desk.domain.analysis import ENTRY, Analysis, Failure, RunsJobs
from understudy.desk.domain.learners import LearnerTable
from understudy.desk.private.answers import Answers
from understudy.desk.private.mechanism import answer_privately
from understudy.desk.private.plan import Plan, propose
from understudy.desk.private.public_schema import records_of
from understudy.desk.private.questions import MOST_QUESTIONS, Question, read_question
from understudy.desk.private.trial import Ask
from understudy.errors import UnderstudyError, UsageError
from understudy.sandbox.code_review import UnparsableError, parse
from understudy.sandbox.jobs import Job, Outcome

EPSILON = "EPSILON"
METHODS = tuple(name for name in vars(Ask) if not name.startswith("_"))
# Of all calls together, as JSON.
MOST_BYTES = 100_000
_MOST_WORDS = 600
_NOT_TAKEN = "questions"
# A module of its own inside, so that an error is said to be in the line of the submitted code.
_RECORDER = """
def recorded(analyze, names, most):
    calls = []

    class Ask:
        def __getattr__(self, name):
            if name not in names:
                raise AttributeError(name)

            def asked(*given, **named):
                if len(calls) >= most:
                    raise OverflowError
                calls.append([name, list(given), named])

            return asked

    analyze(Ask())
    return {"calls": calls}
"""
_TAIL = f"""


def __recorded__(names, most):
    space = {{}}
    exec(compile({_RECORDER!r}, "<recorder>", "exec"), space)
    return space["recorded"]({ENTRY}, names, most)
"""


@dataclass(frozen=True)
class Asked:
    """What code asks for, and the epsilon that it declares for all of it."""

    questions: tuple[Question, ...]
    epsilon: float


def record(code: str, sandbox: RunsJobs) -> Asked | Failure:
    """The questions of code with `analyze(ask)` and `EPSILON = ...`; or why there are none, in words for its author."""
    arguments = {"names": list(METHODS), "most": MOST_QUESTIONS}
    job = Job(code + _TAIL, "__recorded__", arguments, seed=Analysis.seeded(code).seed)
    (outcome,) = sandbox.run_many([job])
    if outcome.status != "done":
        return _failed(outcome, code)
    try:
        return Asked(_questions(outcome), declared_epsilon(code))
    except (UsageError, ContractError) as error:
        return not_taken(error)


def not_taken(error: UnderstudyError) -> Failure:
    """A refusal of questions, which is about the request and what is public, for their author."""
    return Failure(_NOT_TAKEN, words=in_sentences(error)[:_MOST_WORDS].rstrip("."))


def in_sentences(error: UnderstudyError) -> str:
    """What was asked and what to do, as text: hints begin with a small letter."""
    return f"{error.message} {error.hint[:1].upper()}{error.hint[1:]}"


def declared_epsilon(code: str) -> float:
    """The number that the code assigns to EPSILON; it is read, not run."""
    found = None
    try:
        for node in parse(code).body:
            if isinstance(node, ast.Assign) and any(
                isinstance(one, ast.Name) and one.id == EPSILON for one in node.targets
            ):
                found = ast.literal_eval(node.value)
    except (UnparsableError, ValueError, TypeError, RecursionError):
        found = None
    # A number without end, or a whole number with hundreds of digits, is none.
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < 1e300:
        raise UsageError(
            f"the code does not say what its questions may cost: there is no line such as {EPSILON} = 1.0.",
            hint="write it out as a number, outside of functions.",
            code="no-epsilon",
        )
    return float(found)


def answer_trial(plan: Plan, code: str, table: LearnerTable) -> Answers:
    """The answers from a synthetic table, with as much noise as the real ones; the same code gives the same ones."""
    records = records_of(table, plan.schema)
    there = propose(plan.questions, plan.schema, records.n_learners, plan.epsilon, plan.delta)
    noise = seeded_noise(np.random.default_rng(Analysis.seeded(code).seed))
    return answer_privately(there, records, noise)


def _questions(outcome: Outcome) -> tuple[Question, ...]:
    """The questions in what the sandbox gave, each once."""
    calls = outcome.values.get("calls") if isinstance(outcome.values, dict) else None
    if not isinstance(calls, list) or outcome.tables:
        raise _unreadable()
    if len(json.dumps(calls)) > MOST_BYTES or len(calls) > MOST_QUESTIONS:
        raise UsageError(
            f"the code asks for too much: {MOST_QUESTIONS} questions and {MOST_BYTES:,} bytes are the most.",
            hint="ask less.",
            code="questions",
        )
    return tuple(dict.fromkeys(_question(call) for call in calls))


def _question(call: Any) -> Question:
    match call:
        case [str(name), list(given), dict(named)] if name in METHODS:
            try:
                question = getattr(Ask(), name)(*given, **named)
            except (TypeError, ValueError, OverflowError):
                raise UsageError(
                    f"ask.{name} was called with arguments that it does not take.",
                    hint="see what it takes with help(private.Ask).",
                    code="bad-arguments",
                ) from None
            return read_question(question.to_json(), f"ask.{name}")
    raise _unreadable()


def _unreadable() -> UsageError:
    return UsageError("what the code gave cannot be read as questions.", hint="call the methods of `ask`.")


def _failed(outcome: Outcome, code: str) -> Failure:
    line = outcome.error_line
    inside = line is not None and line <= code.count("\n") + 1
    return Failure(outcome.status, outcome.error_type, line if inside else None)
