"""What an attacker needs: identification by number of digraphs, weeks of known typing, and from another course."""

from __future__ import annotations

import numpy as np

from understudy.attacks.typing import PROFILE_ATTACKS, Identification, across_courses, identification
from understudy.attacks.typing_events import text
from understudy.errors import DataError
from understudy.keystrokes.latencies import count_latencies
from understudy.keystrokes.profiles import build_profiles, by_weeks, enough_typed, most_common
from understudy.records.keystrokes import Keystrokes
from understudy.studies.keystroke_results import (
    AVERAGES,
    BY_COURSE,
    BY_DIGRAPHS,
    BY_TEXT,
    BY_WEEKS,
    PUBLISHED,
    Row,
)
from understudy.studies.keystroke_sweep import Course, Floats, SweepPlan

NUMBERS = (1, 2, 5, 10, 15, 25, 50, 100, 150, 200, 300)


def knowledge(course: Course, plan: SweepPlan) -> list[Row]:
    """Identification of typing as it was, by how many digraphs and how many weeks the attacker looks at.

    `size` holds the number of digraphs or weeks; attacks are those on nearest profiles.
    """
    n = course.keystrokes.n_learners
    rows = _by_text(course, plan)
    known, unknown = (
        count_latencies(course.keystrokes, side, n) for side in (course.split.known, course.split.unknown)
    )
    unknown = unknown.named(known.features)
    common = most_common([known, unknown], max(NUMBERS))
    for number in NUMBERS:
        if number <= len(common):
            profiles = [build_profiles(side.of(common[:number])).values for side in (known, unknown)]
            rows += _rows(BY_DIGRAPHS, number, profiles[0], profiles[1], plan)
    if plan.split == "weeks":
        for weeks in range(1, int(course.keystrokes.week.max()) + 1):
            side = by_weeks(course.keystrokes, weeks).known
            fewer = count_latencies(course.keystrokes, side, n).named(course.features)
            profiles = [build_profiles(one).values for one in (fewer, unknown.named(course.features))]
            if np.isfinite(profiles[0]).all():
                rows += _rows(BY_WEEKS, weeks, profiles[0], profiles[1], plan)
    return rows


def _by_text(course: Course, plan: SweepPlan) -> list[Row]:
    """What the text alone gives away: counted without bounds, or the counts would tell the speed."""
    sides = [
        count_latencies(course.keystrokes, side, course.keystrokes.n_learners, shortest=0.0, longest=np.inf)
        for side in (course.split.known, course.split.unknown)
    ]
    distances = text(sides[0].count, sides[1].named(sides[0].features).count)
    n_digraphs = len(sides[0].features)
    return [_row(BY_TEXT, n_digraphs, BY_TEXT, identification(BY_TEXT, distances, k)) for k in plan.guesses]


def from_another_course(here: Keystrokes, there: Keystrokes, plan: SweepPlan) -> list[Row]:
    """The learners of one course named by their typing in another; positions say who is who."""
    if here.n_learners != there.n_learners:
        raise DataError("two courses need the same learners at the same positions.")
    enough = [enough_typed(one, plan.least_characters) for one in (here, there)]
    both = np.intersect1d(enough[0], enough[1])
    if len(both) <= max(plan.guesses):
        raise DataError(
            f"{len(both)} learners typed {plan.least_characters} characters in both courses; naming one of them "
            f"with {max(plan.guesses)} guesses is no feat.",
            hint="ask for less with --min-characters, or for fewer --guesses.",
        )
    totals = [
        count_latencies(one, one.learner, one.n_learners)
        for one in (there.learners(both), here.learners(both))
    ]
    totals[1] = totals[1].named(totals[0].features)
    common = most_common(totals, plan.n_features)
    known, unknown = (build_profiles(one.of(common)).values for one in totals)
    own = np.arange(len(both))
    return [
        _row(BY_COURSE, len(common), name, across_courses(name, attack, known, unknown, own, k))
        for name, attack in PROFILE_ATTACKS.items()
        for k in plan.guesses
    ]


def _rows(measure: str, number: int, known: Floats, unknown: Floats, plan: SweepPlan) -> list[Row]:
    attack = PROFILE_ATTACKS[PUBLISHED]
    distances = attack(known, unknown)
    return [_row(measure, number, PUBLISHED, identification(PUBLISHED, distances, k)) for k in plan.guesses]


def _row(measure: str, number: int, name: str, one: Identification) -> Row:
    return Row(
        AVERAGES,
        "none",
        float(number),
        measure,
        name,
        one.k,
        one.rate,
        one.low,
        one.high,
        one.chance,
        one.n_learners,
    )
