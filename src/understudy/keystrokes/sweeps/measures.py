"""What one coarseness of typing identifies and still teaches.

A coarseness is tried on a profile's averages, as in Leinonen (2016), and on the events, which is what one would
release. Attacks on nearest profiles run at every size; attackers who learn, and the inference of a label, at some.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.keystrokes.attacks.events import EVENT_ATTACKS, histogram_likelihood, text
from understudy.keystrokes.attacks.identification import (
    Identification,
    identification,
    matched,
    smallest_group,
    strongest,
)
from understudy.keystrokes.attacks.profiles import PROFILE_ATTACKS
from understudy.keystrokes.attacks.trained import TRAINED_ATTACKS, PersonWindows, cell_likelihood
from understudy.keystrokes.coarsening import Bucketing, Rounding
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import LONGEST, SHORTEST, by_size, count_histograms, count_latencies
from understudy.keystrokes.profiles import build_profiles
from understudy.keystrokes.sweeps.course import Course, SweepOptions
from understudy.keystrokes.sweeps.results import (
    AVERAGES,
    BY_TEXT,
    EVENTS,
    GROUPS,
    IDENTIFICATION,
    INFERENCE,
    MATCHED,
    PRESERVED,
    PUBLISHED,
    STRONGEST,
    Row,
)
from understudy.keystrokes.traits.preservation import preserved

Floats = NDArray[np.float64]
Distances = dict[str, Floats]
Bounds = tuple[float, float]  # of latencies that count, in milliseconds

# Attacks whose distances are log-likelihoods, which add up: everybody can be matched at once by them.
LIKELIHOODS = ("histogram", "histogram-many", "forest", "cell-likelihood", "cell-likelihood-many")

TYPING: Bounds = (SHORTEST, LONGEST)
WAYS = {"bucket": Bucketing, "round": Rounding}
# Keys of a window, for attackers who learn from several of a learner.
LARGEST_WINDOW, SMALLEST_WINDOW = 1500, 50


@dataclass(frozen=True)
class Coarseness:
    """What is made coarse (averages or events), in which way, to which size in milliseconds."""

    level: str
    way: str
    size: float

    def __str__(self) -> str:
        return f"{self.level} {self.way} {self.size:g}"

    def rng(self, seed: int) -> np.random.Generator:
        """A generator of its own, so that results depend on neither order nor number of cores."""
        level, way = [AVERAGES, EVENTS].index(self.level), list(WAYS).index(self.way)
        return np.random.default_rng([seed, level, way, round(1000 * self.size)])

    def row(self, measure: str, name: str, found: Identification) -> Row:
        """A row on how often an attack identifies."""
        values = (found.k, found.rate, found.low, found.high, found.chance, found.n_learners)
        return Row(self.level, self.way, self.size, measure, name, *values)


@dataclass(frozen=True, eq=False, repr=False)
class Sides:
    """Profiles and windows of both sides of the split, at one coarseness.

    `weeks` are windows of the known side that are as long as what is to be identified; the others are half as long.
    """

    known: Floats
    unknown: Floats
    windows: PersonWindows
    unknown_windows: PersonWindows
    weeks: PersonWindows


def both_sides(
    course: Course,
    features: tuple[str, ...],
    keystrokes: Keystrokes | None = None,
    bounds: Bounds = TYPING,
) -> Sides:
    """Both sides of the split, of typing as it was or as it is released."""
    typing = course.keystrokes if keystrokes is None else keystrokes

    def windows(owner: NDArray[np.int32], size: int) -> PersonWindows:
        cut = by_size(owner, size)
        return PersonWindows(
            _profiles(typing, cut.window, cut.n_windows, features, bounds), cut.owner, typing.n_learners
        )

    known, unknown = course.split.known, course.split.unknown
    typed = int(np.median(np.bincount(unknown[unknown >= 0])))
    half = int(np.clip(typed // 2, SMALLEST_WINDOW, LARGEST_WINDOW))
    return Sides(
        _profiles(typing, known, typing.n_learners, features, bounds),
        _profiles(typing, unknown, typing.n_learners, features, bounds),
        windows(known, half),
        windows(unknown, half),
        windows(known, max(typed, SMALLEST_WINDOW)),
    )


def _profiles(
    keystrokes: Keystrokes, owner: NDArray[Any], n_owners: int, features: tuple[str, ...], bounds: Bounds
) -> Floats:
    totals = count_latencies(keystrokes, owner, n_owners, shortest=bounds[0], longest=bounds[1])
    return build_profiles(totals.named(features)).values


def measure_averages(
    course: Course, options: SweepOptions, fine: Sides, many: Sides, coarseness: Coarseness
) -> list[Row]:
    """The experiment of Leinonen (2016): averages are computed finely and then made coarse.

    Nearest profiles look at the most common digraphs, as published. A reader who is given enough averages to
    infer a label from can attack all of them (`many`).
    """
    size = coarseness.size
    coarse = WAYS[coarseness.way](size).averages
    known, unknown = coarse(fine.known), coarse(fine.unknown)
    distances = {name: attack(known, unknown) for name, attack in PROFILE_ATTACKS.items()}
    rows = _groups(coarseness, unknown)
    if options.is_full(size):
        rng = coarseness.rng(options.seed)
        # A profile is released, not its windows; attackers cut what they know as they like.
        cut = replace(fine.windows, values=coarse(fine.windows.values))
        distances |= {
            name: attack(cut, _one_window_each(unknown), rng) for name, attack in TRAINED_ATTACKS.items()
        }
        all_known, all_unknown = coarse(many.known), coarse(many.unknown)
        if size:  # fine averages share no cells
            distances["cell-likelihood"] = cell_likelihood(fine.weeks, unknown, coarse, rng)
            distances["cell-likelihood-many"] = cell_likelihood(many.weeks, all_unknown, coarse, rng)
        for name in (PUBLISHED, "manhattan", "rank-people"):
            distances[f"{name}-many"] = PROFILE_ATTACKS[name](all_known, all_unknown)
        distances["within-mahalanobis-many"] = TRAINED_ATTACKS["within-mahalanobis"](
            replace(many.windows, values=coarse(many.windows.values)), _one_window_each(all_unknown), rng
        )
        as_typed = _trait_profiles(course, course.keystrokes, TYPING)
        rows += _usefulness(course, options, coarseness, as_typed, coarse(as_typed))
    return rows + _identified(options, coarseness, distances)


def _one_window_each(profiles: Floats) -> PersonWindows:
    return PersonWindows(profiles, np.arange(len(profiles)), len(profiles))


def measure_events(course: Course, options: SweepOptions, coarseness: Coarseness) -> list[Row]:
    """What a release holds: every latency is coarse, and attackers average or count as they like."""
    rng = coarseness.rng(options.seed)
    coarsening = WAYS[coarseness.way](coarseness.size)
    released, bounds = course.keystrokes, TYPING
    if coarseness.size:
        # Sessions stay in order and rows stay where they are, so the split still fits.
        released, bounds = coarsening.events(course.keystrokes, rng), coarsening.typing_range()
    sides = both_sides(course, course.features, released, bounds)

    def histograms(features: tuple[str, ...]) -> list[NDArray[np.int32]]:
        return [
            count_histograms(
                released, owner, released.n_learners, features, shortest=bounds[0], longest=bounds[1]
            ).count
            for owner in (course.split.known, course.split.unknown)
        ]

    distances = {name: attack(sides.known, sides.unknown) for name, attack in PROFILE_ATTACKS.items()}
    few = histograms(course.features)
    distances |= {name: attack(*few) for name, attack in EVENT_ATTACKS.items()}
    distances["histogram-many"] = histogram_likelihood(*histograms(course.many_features))
    distances |= {
        name: attack(sides.windows, sides.unknown_windows, rng) for name, attack in TRAINED_ATTACKS.items()
    }
    as_typed, coarse = (
        _trait_profiles(course, keystrokes, within)
        for keystrokes, within in ((course.keystrokes, TYPING), (released, bounds))
    )
    return [
        *_groups(coarseness, sides.unknown),
        *_usefulness(course, options, coarseness, as_typed, coarse),
        *_identified(options, coarseness, distances),
    ]


def measure_text(course: Course, options: SweepOptions) -> list[Row]:
    """What the text alone reveals: counted without bounds on latencies, or the counts would depend on speed."""
    known, unknown = (
        count_latencies(course.keystrokes, side, course.keystrokes.n_learners, shortest=0.0, longest=np.inf)
        for side in (course.split.known, course.split.unknown)
    )
    distances = text(known.count, unknown.named(known.features).count)
    as_typed = Coarseness(AVERAGES, "none", float(len(known.features)))
    return [
        as_typed.row(BY_TEXT, BY_TEXT, identification(BY_TEXT, distances, k))
        for k in options.numbers_of_guesses
    ]


def _identified(options: SweepOptions, coarseness: Coarseness, distances: Distances) -> list[Row]:
    full = options.is_full(coarseness.size)
    together = {name: matched(distances[name]) for name in LIKELIHOODS if full and name in distances}
    rows = []
    for k in options.numbers_of_guesses:
        found = [identification(name, matrix, k) for name, matrix in distances.items()]
        found += [
            identification(f"{name}{MATCHED}", matrix, k, together=True) for name, matrix in together.items()
        ]
        rows += [coarseness.row(IDENTIFICATION, estimate.attack, estimate) for estimate in found]
        # Where only nearest profiles were tried, "the strongest" would be of another list.
        if full:
            rows.append(coarseness.row(IDENTIFICATION, STRONGEST, strongest(found)))
    return rows


def _groups(coarseness: Coarseness, released: Floats) -> list[Row]:
    """How many learners are alone with their profile, and how much of everything is in one cell of the grid."""
    groups = smallest_group(released)
    _, cells = np.unique(np.round(released[:, :-1], 6), return_counts=True)
    figures = {
        "smallest group": float(groups.smallest),
        "unique": groups.share_unique,
        "fullest cell": float(cells.max() / cells.sum()),
    }
    place = (coarseness.level, coarseness.way, coarseness.size, GROUPS)
    return [Row(*place, name, 0, value, value, value, 0.0, len(released)) for name, value in figures.items()]


def _trait_profiles(course: Course, keystrokes: Keystrokes, bounds: Bounds) -> Floats:
    return _profiles(keystrokes, keystrokes.learner, keystrokes.n_learners, course.trait_features, bounds)


def _usefulness(
    course: Course, options: SweepOptions, coarseness: Coarseness, fine: Floats, coarse: Floats
) -> list[Row]:
    """What can still be learned from profiles: the label, and who types how fast."""
    place = (coarseness.level, coarseness.way, coarseness.size)
    outcome = None if course.labels is None else np.where(course.labels >= 0, course.labels, np.nan)
    kept = preserved(fine[:, :-1], coarse[:, :-1], fine[:, -1], coarse[:, -1], outcome)
    figures = {
        "error of a digraph (ms)": kept.digraph_error,
        "order of learners": kept.kendall,
        "speed with the label": kept.link_coarse,
    }
    rows = [
        Row(*place, PRESERVED, name, 0, figure.value, figure.low, figure.high, 0.0, len(fine))
        for name, figure in figures.items()
        if figure is not None and np.isfinite(figure.value)
    ]
    if course.labels is None:
        return rows
    # The same folds at every size, so that sizes can be compared.
    found = course.infer(coarse, course.labels, np.random.default_rng([options.seed, 11]))
    return rows + [
        Row(
            *place,
            INFERENCE,
            name,
            0,
            trait.accuracy,
            trait.low,
            trait.high,
            trait.majority,
            trait.n_learners,
        )
        for name, trait in found.items()
    ]
