"""What an attacker needs to know: identification by digraphs, by weeks of typing, and from another course."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.pages.charts import Look, Point, curves
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure
from understudy.errors import DataError, UsageError
from understudy.keystrokes.attacks.identification import Identification, identification
from understudy.keystrokes.attacks.profiles import PROFILE_ATTACKS
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import count_latencies
from understudy.keystrokes.profiles import build_profiles, by_weeks, enough_typed, most_common
from understudy.keystrokes.sweeps.course import Course, SweepOptions
from understudy.keystrokes.sweeps.results import AVERAGES, PUBLISHED, Row, select

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
ProfileAttack = Callable[[Floats, Floats], Floats]

# Measures of a row whose size is a number of digraphs or weeks.
BY_DIGRAPHS, BY_WEEKS, BY_COURSE = "by digraphs", "by weeks", "another course"
NUMBERS = (1, 2, 5, 10, 15, 25, 50, 100, 150, 200, 300)
TITLES = {
    BY_DIGRAPHS: "most common digraphs that the attacker looks at",
    BY_WEEKS: "weeks of typing that the attacker knows",
}


def knowledge(course: Course, options: SweepOptions) -> list[Row]:
    """Identification of typing as it was, by how many digraphs and how many weeks the attacker looks at."""
    n = course.keystrokes.n_learners
    known, unknown = (
        count_latencies(course.keystrokes, side, n) for side in (course.split.known, course.split.unknown)
    )
    common = most_common([known, unknown.named(known.features)], max(NUMBERS))
    names = tuple(known.features[j] for j in common)
    by_all = [build_profiles(side.named(names)).values for side in (known, unknown)]
    numbers = [number for number in NUMBERS if number <= len(names)]
    last_week = build_profiles(unknown.named(course.features)).values
    weeks = _by_weeks(course) if options.split == "weeks" else {}
    attack = PROFILE_ATTACKS[PUBLISHED]
    rows = []
    for k in options.numbers_of_guesses:
        by_digraphs = by_number_of_features(PUBLISHED, attack, by_all[0], by_all[1], numbers, k)
        rows += [_row(BY_DIGRAPHS, number, PUBLISHED, found) for number, found in by_digraphs.items()]
        by_weeks_known = by_training(PUBLISHED, attack, weeks, last_week, k)
        rows += [_row(BY_WEEKS, number, PUBLISHED, found) for number, found in by_weeks_known.items()]
    return rows


def _by_weeks(course: Course) -> dict[int, Floats]:
    """Profiles from the last weeks before the one that is to be identified, by how many these are."""
    keystrokes = course.keystrokes
    return {
        weeks: build_profiles(
            count_latencies(keystrokes, by_weeks(keystrokes, weeks).known, keystrokes.n_learners).named(
                course.features
            )
        ).values
        for weeks in range(1, int(keystrokes.week.max()) + 1)
    }


def from_another_course(here: Keystrokes, there: Keystrokes, options: SweepOptions) -> list[Row]:
    """The learners of one course identified by their typing in another; equal positions are one learner."""
    if here.n_learners != there.n_learners:
        raise DataError("two courses need the same learners at the same positions.")
    enough = [enough_typed(course, options.min_characters) for course in (here, there)]
    both = np.intersect1d(enough[0], enough[1])
    if len(both) <= options.most_guesses:
        raise DataError(
            f"{len(both)} learners typed {options.min_characters} characters in both courses; an attacker with "
            f"{options.most_guesses} guesses would name them all.",
            hint="ask for fewer characters or fewer guesses.",
        )
    totals = [
        count_latencies(course, course.learner, course.n_learners)
        for course in (there.learners(both), here.learners(both))
    ]
    totals[1] = totals[1].named(totals[0].features)
    common = most_common(totals, options.digraphs)
    known, unknown = (build_profiles(part.of(common)).values for part in totals)
    own = np.arange(len(both))
    return [
        _row(BY_COURSE, len(common), name, across_courses(name, attack, known, unknown, own, k))
        for name, attack in PROFILE_ATTACKS.items()
        for k in options.numbers_of_guesses
    ]


def by_number_of_features(
    name: str, attack: ProfileAttack, known: Floats, unknown: Floats, numbers: Iterable[int], k: int
) -> dict[int, Identification]:
    """Identification from the first m features and the speed, which is the last column.

    Features come in order of how common they are, so m is "the m most common" (thesis, section 4.4.1).
    """
    last = known.shape[1] - 1
    result = {}
    for number in numbers:
        if not 0 <= number <= last:
            raise UsageError(f"asked for the first {number} features of {last}.")
        chosen = [*range(number), last]
        result[number] = identification(name, attack(known[:, chosen], unknown[:, chosen]), k)
    return result


def by_training(
    name: str, attack: ProfileAttack, knowns: Mapping[int, Floats], unknown: Floats, k: int
) -> dict[int, Identification]:
    """Identification by how much the attacker knows: `knowns[w]` are profiles from w weeks of typing."""
    return {weeks: identification(name, attack(known, unknown), k) for weeks, known in knowns.items()}


def across_courses(
    name: str, attack: ProfileAttack, known: Floats, unknown: Floats, own: Codes, k: int
) -> Identification:
    """Identification of one course's learners by their typing in another course.

    `known` are profiles of everybody in the other course, `unknown` of those in this one; `own[i]` is the
    position of learner i in the other course, or -1 for somebody who was not there. Those are not judged
    (there is no right answer), but the attack sees them as it would. Both must have the same features.
    """
    there = own >= 0
    return identification(name, attack(known, unknown)[there], k, own[there])


def _row(measure: str, number: int, name: str, found: Identification) -> Row:
    return Row(
        AVERAGES,
        "none",
        float(number),
        measure,
        name,
        found.k,
        found.rate,
        found.low,
        found.high,
        found.chance,
        found.n_learners,
    )


def knowledge_figure(rows: Sequence[Row], measure: str) -> Figure:
    """Identification by what the attacker knows, a line per number of guesses (Figure 5 of the thesis)."""
    shown = select(rows, measure=measure, name=PUBLISHED)
    colours = ("#0a3d4d", ACCENT, "#6fb3c6", MUTED, WARNING)
    numbers = sorted({row.k for row in shown})
    drawing = curves(
        [Point(row.size, row.value, row.low, row.high, _guesses(row.k)) for row in shown],
        TITLES[measure],
        "share named",
        looks={_guesses(k): Look(colour) for k, colour in zip(numbers, colours, strict=False)},
        domain=[0.0, 1.0],
        axis="%",
        number=".0%",
        bands=True,
        logarithmic=measure == BY_DIGRAPHS,
        ticks=sorted({row.size for row in shown}),
        height=220,
    )
    return drawing.figure(f"Share of learners named by the published attack, by {TITLES[measure]}")


def _guesses(k: int) -> str:
    return "1 guess" if k == 1 else f"{k} guesses"
