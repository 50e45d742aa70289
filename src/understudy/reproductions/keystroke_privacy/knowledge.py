"""What an attacker needs: identification by number of digraphs, weeks of known typing, and from another course."""

from __future__ import annotations

import numpy as np

from understudy.errors import DataError
from understudy.keystrokes.attacks.events import text
from understudy.keystrokes.attacks.profiles import (
    PROFILE_ATTACKS,
    Identification,
    across_courses,
    by_number_of_features,
    by_training,
    identification,
)
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import count_latencies
from understudy.keystrokes.profiles import build_profiles, by_weeks, enough_typed, most_common
from understudy.keystrokes.sweep.results import (
    AVERAGES,
    BY_COURSE,
    BY_DIGRAPHS,
    BY_TEXT,
    BY_WEEKS,
    PUBLISHED,
    Row,
)
from understudy.keystrokes.sweep.sweep import Course, Floats, SweepPlan

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
    common = most_common([known, unknown.named(known.features)], max(NUMBERS))
    names = tuple(known.features[j] for j in common)
    by_all = [build_profiles(side.named(names)).values for side in (known, unknown)]
    numbers = [number for number in NUMBERS if number <= len(names)]
    last_week = build_profiles(unknown.named(course.features)).values
    weeks = _by_weeks(course) if plan.split == "weeks" else {}
    attack = PROFILE_ATTACKS[PUBLISHED]
    for k in plan.guesses:
        by_digraphs = by_number_of_features(PUBLISHED, attack, by_all[0], by_all[1], numbers, k)
        rows += [_row(BY_DIGRAPHS, number, PUBLISHED, one) for number, one in by_digraphs.items()]
        by_weeks_known = by_training(PUBLISHED, attack, weeks, last_week, k)
        rows += [_row(BY_WEEKS, number, PUBLISHED, one) for number, one in by_weeks_known.items()]
    return rows


def _by_weeks(course: Course) -> dict[int, Floats]:
    """Profiles from the last weeks before the one that is to be named, by how many these are."""
    data = course.keystrokes
    return {
        weeks: build_profiles(
            count_latencies(data, by_weeks(data, weeks).known, data.n_learners).named(course.features)
        ).values
        for weeks in range(1, int(data.week.max()) + 1)
    }


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
