"""The three logs on which times and declared columns are measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reproductions.pages import DATA
from understudy.logs.declared.term import Term
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.simulated.classroom import Classroom

ASSISTMENTS, MOODLE, CLASSROOM = "ASSISTments 2017", "Moodle course", "simulated classroom"
# Two of learners and two of rows.
COLUMNS = ("grade", "final_score", "hint", "device")
N_LEARNERS = 4000


def timed_logs() -> dict[str, Interactions]:
    """The logs with all that is told about them; terms are declared, as the days of a course are known."""
    log = read_log(
        DATA / "assistments2017_times.csv.gz",
        learner="user",
        action="skill",
        outcome="correct",
        time="seconds",
    )
    course = read_log(DATA / "moodle_activity.csv.gz", no_outcomes=True)
    return {
        ASSISTMENTS: _with_term(log, 1.0),
        MOODLE: _with_term(course, 60.0),
        CLASSROOM: classroom(N_LEARNERS),
    }


def classroom(n_learners: int) -> Interactions:
    """The simulated classroom with times and four columns."""
    log = Classroom(n_learners=n_learners, timed=True).simulate(np.random.default_rng(1)).declare()
    return replace(
        log, columns=tuple(column for column in log.columns if column.declared.name in COLUMNS), group=None
    )


def plain(log: Interactions) -> Interactions:
    """The same log, its times and columns not told."""
    return replace(log, term=None, columns=())


def _with_term(log: Interactions, resolution: float) -> Interactions:
    assert log.time is not None
    days = log.time.astype("datetime64[D]")
    term = Term(days.min().item(), days.max().item(), resolution)
    return replace(log, term=term, columns=()).declare()
