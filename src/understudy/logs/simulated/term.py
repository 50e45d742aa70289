"""A simulated classroom over a term: when its learners worked, on what, and what a school knows about them.

Learners join in the first weeks and drop out over the later ones, those whom things go badly for earlier. Each has
habits of their own: a pace, a share of work at school, two favourite hours. A session is a run of rows with short gaps;
gaps are longer before another action and after a failure. Times are whole seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
from numba import njit
from numpy.typing import NDArray

from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.declared.term import SESSION_MINUTES, Term
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]

FIRST_DAY = date(2024, 9, 2)
HOURS_OF_WEEK = 168
SECONDS_OF_WEEK = HOURS_OF_WEEK * 3600
# The longest gap of a session in seconds.
LONGEST_GAP = 1500.0

GRADES = ("7", "8", "9")
DEVICES = ("tablet", "laptop", "phone")

COLUMNS = (
    Declared("grade", Kind.category, "learner", values=GRADES),
    Declared("home_language", Kind.flag, "learner"),
    Declared("final_score", Kind.number, "learner", low=0.0, high=100.0, step=1.0, unit="points"),
    Declared("hint", Kind.flag, "row"),
    Declared("device", Kind.category, "row", values=DEVICES),
)


@dataclass(frozen=True)
class Habits:
    """How a classroom works over its term.

    A session has `session_rows` rows on average; of the learners who are still there, the share `leaving` leaves within
    a week; an attempt whose action and outcome are as before takes `attempt_seconds`, in the median.
    """

    n_weeks: int = 14
    session_rows: float = 12.0
    leaving: float = 0.05
    attempt_seconds: float = 24.0


def simulated_term(n_weeks: int) -> Term:
    """The term of the simulated classroom, as a custodian would declare it."""
    last = FIRST_DAY + timedelta(days=7 * n_weeks - 1)
    return Term(FIRST_DAY, last, resolution=1.0, session_minutes=SESSION_MINUTES)


def with_term(log: Interactions, ability: Floats, rng: np.random.Generator, habits: Habits) -> Interactions:
    """The log of a classroom with times, declared columns of rows, and a table of its learners, schools first."""
    n = log.n_learners
    badly = np.clip(0.6 - ability, 0.0, 2.0)
    join = np.minimum(rng.geometric(0.7, n) - 1, min(5, habits.n_weeks - 1))
    stay = rng.geometric(np.clip(habits.leaving * (1.0 + badly), 0.01, 0.5))
    weeks = np.minimum(stay, habits.n_weeks - join)
    # A few rows are no term's work: they lie within two weeks for each session, and a few more.
    n_sessions = 1 + rng.poisson(np.maximum(log.lengths - 1, 0) / habits.session_rows)
    weeks = np.minimum(weeks, 2 * n_sessions + rng.integers(0, 4, n)).astype(np.int64)
    pace = rng.normal(0.0, 0.35, n) - 0.1 * (ability - 0.6)
    seconds, at_school = _live_term(
        rng,
        log.action,
        log.success,
        log.offsets,
        join.astype(np.int64),
        np.maximum(weeks, 1),
        n_sessions.astype(np.int64),
        pace,
        _readiness(n, rng),
        habits.n_weeks,
        habits.attempt_seconds,
    )
    start = np.datetime64(FIRST_DAY, "us")
    columns = (*_of_learners(log, ability, join + weeks, rng), *_of_rows(log, at_school, rng))
    time = start + seconds.astype("timedelta64[s]")
    return replace(log, time=time, term=simulated_term(habits.n_weeks), columns=columns)


def plan_of(log: Interactions, learners: str) -> str:
    """What a custodian would declare about such a log, as the part [log] of a plan; `learners` is the table's file."""
    assert log.term is not None
    lines = [
        "# What is public about this simulated log. A custodian declares it; none of it is read off the rows.",
        "[log]",
        'learner = "learner"',
        'action = "action"',
        'outcome = "outcome"',
        'time = "time"',
        f"learners = {_text(learners)}",
        "",
        "[log.term]",
        f"first = {log.term.first}",
        f"last = {log.term.last}",
    ]
    for column in log.columns:
        declared = column.declared
        lines += [
            "",
            "[[log.columns]]",
            f"name = {_text(declared.name)}",
            f"of = {_text(declared.of)}",
            f"kind = {_text(declared.kind)}",
        ]
        if declared.values:
            lines.append(f"values = [{', '.join(map(_text, declared.values))}]")
        if not declared.coded:
            lines += [f"low = {declared.low:g}", f"high = {declared.high:g}", f"step = {declared.step:g}"]
        if declared.unit:
            lines.append(f"unit = {_text(declared.unit)}")
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _readiness(n: int, rng: np.random.Generator) -> Floats:
    """Learners x hours of the week, from Monday's first on: how readily each begins a session then, summed up."""
    hour = np.arange(24)
    lessons = np.isin(hour, (8, 9, 10, 11, 13)).astype(float)
    evening = np.exp(-0.5 * ((hour - 18.5) / 1.8) ** 2) * (hour <= 21)
    day = np.exp(-0.5 * ((hour - 15.0) / 3.0) ** 2) * ((hour >= 9) & (hour <= 19))
    school = np.concatenate([np.tile(lessons, 5), np.zeros(48)])
    home = np.concatenate([np.tile(evening, 5), np.tile(0.8 * day, 2)])
    share = rng.beta(2.0, 2.0, n)[:, None]
    readiness = share * school / school.sum() + (1.0 - share) * home / home.sum()
    # Two hours of the week that are the learner's own: the lesson of their class, a free evening.
    for hours, weight in ((school, 0.25), (home, 0.2)):
        own = rng.choice(HOURS_OF_WEEK, size=n, p=hours / hours.sum())
        readiness[np.arange(n), own] += weight
    return np.cumsum(readiness / readiness.sum(axis=1, keepdims=True), axis=1)


def _of_learners(
    log: Interactions, ability: Floats, left: NDArray[np.integer], rng: np.random.Generator
) -> list[Column]:
    """The table of learners: what a school knows, and a final score, which some who left early lack."""
    n = log.n_learners
    assert log.group is not None
    school = Declared("school", Kind.category, "learner", values=log.groups)
    grade = np.clip(np.floor(rng.normal(1.4 + 0.35 * (ability - 0.6), 0.75)), 0, len(GRADES) - 1)
    language = rng.random(n) < 1.0 / (1.0 + np.exp(-1.2 - 0.4 * (ability - 0.6)))
    score = np.round(
        55.0
        + 14.0 * (ability - 0.6)
        + 4.0 * np.log(np.maximum(log.lengths, 1) / 25.0)
        + rng.normal(0.0, 7.0, n)
    )
    score = np.where((left <= 4) & (rng.random(n) < 0.4), np.nan, np.clip(score, 0.0, 100.0))
    return [
        Column(school, log.group),
        *(
            Column(declared, cells)
            for declared, cells in zip(COLUMNS[:3], (grade, language, score), strict=True)
        ),
    ]


def _of_rows(log: Interactions, at_school: NDArray[np.bool_], rng: np.random.Generator) -> list[Column]:
    """What a platform writes in each row: whether a hint was asked for, and on what device."""
    hint = rng.random(log.n_rows) < np.where(log.success == 1, 0.08, 0.45)
    own = rng.choice(len(DEVICES), size=log.n_learners, p=(0.2, 0.45, 0.35))
    often = rng.random(log.n_rows) < 0.9
    device = np.where(at_school & often, 0, own[log.learner])
    return [Column(COLUMNS[3], hint), Column(COLUMNS[4], device)]


@njit(cache=True, nogil=True)
def _live_term(  # type: ignore[no-untyped-def]
    rng, action, outcome, offsets, join, weeks, n_sessions, pace, readiness, n_weeks, attempt_seconds
):
    """Seconds since the first day of each row, and whether its session began in a lesson."""
    seconds = np.empty(len(action), dtype=np.int64)
    at_school = np.zeros(len(action), dtype=np.bool_)
    end = n_weeks * SECONDS_OF_WEEK - 1
    pause = 60.0 * SESSION_MINUTES
    for i in range(len(offsets) - 1):
        starts = np.empty(n_sessions[i], dtype=np.int64)
        for k in range(n_sessions[i]):
            # A learner who joins comes in that week, and one who leaves was there in the last.
            week = join[i] + (0 if k == 0 else weeks[i] - 1 if k == 1 else rng.integers(0, weeks[i]))
            hour = min(np.searchsorted(readiness[i], rng.random()), HOURS_OF_WEEK - 1)
            starts[k] = week * SECONDS_OF_WEEK + 3600 * hour + rng.integers(0, 3600)
        starts.sort()
        begin, stop = offsets[i], offsets[i + 1]
        session, left = 0, n_sessions[i]
        clock = starts[0]
        lesson = _in_lesson(clock)
        for row in range(begin, stop):
            if row > begin:
                # Each row begins the next session with the chance that leaves none over.
                begins = left > 1 and rng.random() * (stop - row) < left - 1
                while begins and session + 1 < n_sessions[i]:
                    session += 1
                    left -= 1
                    if starts[session] > clock + pause:
                        break
                if begins and starts[session] > clock + pause:
                    clock = starts[session]
                    lesson = _in_lesson(clock)
                else:
                    middle = np.log(attempt_seconds) + pace[i]
                    middle += 0.5 if action[row] != action[row - 1] else 0.0
                    middle += 0.3 if outcome[row - 1] == 0 else 0.0
                    gap = min(max(np.exp(middle + 0.8 * rng.normal()), 1.0), LONGEST_GAP)
                    # The bell ends the term.
                    clock = min(clock + int(gap), end)
            seconds[row] = clock
            at_school[row] = lesson
    return seconds, at_school


@njit(cache=True, nogil=True)
def _in_lesson(clock):  # type: ignore[no-untyped-def]
    hour = clock // 3600 % 24
    return clock // 86400 % 7 < 5 and 8 <= hour < 14
