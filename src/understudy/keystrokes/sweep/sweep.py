"""The sweep: identification and inference for every coarseness of typing, by both published ways.

Both are tried on a profile's averages, as in the thesis, and on the events, which is what one would release.
Attacks on nearest profiles run at every size; attackers who learn, and the inference of a label, at every
`coarse_step`. Every task has a seed of its own, so results depend on neither order nor number of cores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.engine import progress
from understudy.core.engine.cells import FinishedCells
from understudy.core.engine.tasks import run_tasks
from understudy.core.extras import needs_extra
from understudy.errors import DataError, UsageError
from understudy.keystrokes.attacks.events import EVENT_ATTACKS, histogram_likelihood, text
from understudy.keystrokes.attacks.identification import (
    Identification,
    identification,
    smallest_group,
    strongest,
)
from understudy.keystrokes.attacks.profiles import PROFILE_ATTACKS
from understudy.keystrokes.attacks.trained import TRAINED_ATTACKS, PersonWindows, cell_likelihood
from understudy.keystrokes.coarsening import Bucketing, Rounding
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import LONGEST, SHORTEST, by_size, count_histograms, count_latencies
from understudy.keystrokes.profiles import (
    LEAST_CHARACTERS,
    N_FEATURES,
    Split,
    build_profiles,
    by_sessions,
    by_weeks,
    enough_typed,
    most_common,
)
from understudy.keystrokes.sweep.results import (
    AVERAGES,
    BY_TEXT,
    EVENTS,
    GROUPS,
    IDENTIFICATION,
    INFERENCE,
    PRESERVED,
    PUBLISHED,
    STRONGEST,
    Row,
)
from understudy.keystrokes.traits.inference import TraitEstimate, infer_trait
from understudy.keystrokes.traits.preservation import preserved

with needs_extra("keystrokes", "the sweep"):
    from threadpoolctl import threadpool_limits  # type: ignore[import-not-found,import-untyped,unused-ignore]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

WAYS = {"bucket": Bucketing, "round": Rounding}
# Keys of a window, for attackers who learn from several of a person.
LARGEST_WINDOW, SMALLEST_WINDOW = 1500, 50
# Digraphs for an attacker who is not content with the 25 of the thesis; only distributions gain from so many.
N_MANY = 300

# Profiles and labels become an estimate per classifier.
Infer = Callable[[Floats, NDArray[np.int32], np.random.Generator], Mapping[str, TraitEstimate]]

Bounds = tuple[float, float]  # of latencies that count, in milliseconds
TYPING: Bounds = (SHORTEST, LONGEST)


@dataclass(frozen=True)
class SweepPlan:
    """What is tried. Sizes go from 0 to `largest` milliseconds."""

    largest: float = 750.0
    fine_step: float = 10.0
    coarse_step: float = 50.0
    guesses: tuple[int, ...] = (1, 5, 10)
    n_features: int = N_FEATURES
    n_trait_features: int = 500
    least_characters: int = LEAST_CHARACTERS
    split: str = "weeks"
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.fine_step <= self.coarse_step <= self.largest:
            raise UsageError(
                f"asked for sizes up to {self.largest:g} ms in steps of {self.fine_step:g} ms, with trained attackers "
                f"every {self.coarse_step:g} ms; steps must grow in this order: step, trained step, largest.",
                hint="for example --step 10 --trained-step 50 --largest 750.",
            )
        if not self.guesses or min(self.guesses) < 1:
            raise UsageError("the number of guesses is 1 or more.", hint="the thesis used 10.")

    @property
    def sizes(self) -> list[float]:
        """All sizes, from the finest."""
        return [float(size) for size in np.arange(0.0, self.largest + 1e-6, self.fine_step)]

    def is_full(self, size: float) -> bool:
        """Whether attackers who learn, and the inference, run at this size."""
        steps = size / self.coarse_step
        return abs(steps - round(steps)) < 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Course:
    """What a sweep works on: learners who typed enough, split into what is known and what is to be named."""

    keystrokes: Keystrokes
    labels: NDArray[np.int32] | None
    split: Split
    features: tuple[str, ...]
    many_features: tuple[str, ...]
    trait_features: tuple[str, ...]
    n_left_out: int
    infer: Infer = infer_trait


def prepare(keystrokes: Keystrokes, labels: NDArray[np.int32] | None, plan: SweepPlan) -> Course:
    """Choose learners and features as the thesis does; say clearly when there are too few."""
    # Without weeks, a first one is nothing to ask for.
    chosen = enough_typed(keystrokes, plan.least_characters, first_week_only=plan.split == "weeks")
    _check_enough(len(chosen), keystrokes.n_learners, plan)
    split = _split(keystrokes.learners(chosen), plan)
    both = _typed_on_both_sides(split, len(chosen))
    chosen = chosen[both]
    _check_enough(len(chosen), keystrokes.n_learners, plan)
    kept = keystrokes.learners(chosen)
    split = _split(kept, plan)
    known, unknown, whole = (
        count_latencies(kept, owner, kept.n_learners) for owner in (split.known, split.unknown, kept.learner)
    )
    common = most_common([known, unknown.named(known.features)], max(plan.n_features, N_MANY))
    features = tuple(known.features[j] for j in common[: plan.n_features])
    if not features:
        raise DataError(
            "no digraph is typed by half of the learners in both parts.",
            hint="ask for learners with more text: --min-characters.",
        )
    traits = most_common([whole], plan.n_trait_features)
    return Course(
        kept,
        None if labels is None else labels[chosen],
        split,
        features,
        tuple(known.features[j] for j in common[:N_MANY]),
        tuple(whole.features[j] for j in traits),
        keystrokes.n_learners - len(chosen),
    )


def _split(keystrokes: Keystrokes, plan: SweepPlan) -> Split:
    return by_weeks(keystrokes) if plan.split == "weeks" else by_sessions(keystrokes)


def _typed_on_both_sides(split: Split, n_learners: int) -> Codes:
    counts = [np.bincount(side[side >= 0], minlength=n_learners) for side in (split.known, split.unknown)]
    return np.flatnonzero((counts[0] > 0) & (counts[1] > 0))


def _check_enough(n_learners: int, n_all: int, plan: SweepPlan) -> None:
    if n_learners <= max(plan.guesses):
        raise DataError(
            f"{n_learners} of {n_all} learners typed {plan.least_characters} characters, on both sides of the split; "
            f"an attacker with {max(plan.guesses)} guesses would name them all.",
            hint="allow fewer --guesses"
            + ("." if n_learners == n_all else ", or include more learners with --min-characters."),
        )


# One coarsening at a time


@dataclass(frozen=True, eq=False, repr=False)
class _Sides:
    """Profiles and windows of both sides of the split, at one coarseness.

    `weeks` are windows of the known side that are as long as what is to be named; the others are half as long.
    """

    known: Floats
    unknown: Floats
    windows: PersonWindows
    unknown_windows: PersonWindows
    weeks: PersonWindows


def sweep_tasks(course: Course, plan: SweepPlan) -> dict[str, Callable[[], list[Row]]]:
    """The tasks by name; each gives the rows of one level, way and size."""
    tasks: dict[str, Callable[[], list[Row]]] = {}
    fine = _sides(course, course.keystrokes, TYPING, course.features)
    many = _sides(course, course.keystrokes, TYPING, course.trait_features)
    for way in WAYS:
        for size in plan.sizes:
            tasks[f"{AVERAGES} {way} {size:g}"] = partial(_on_averages, course, plan, fine, many, way, size)
            # Events: every fine size costs a pass over all keys, and they show no dip.
            if plan.is_full(size):
                tasks[f"{EVENTS} {way} {size:g}"] = partial(_on_events, course, plan, way, size)
    tasks["text"] = partial(_by_text, course, plan)
    return tasks


def _sides(course: Course, keystrokes: Keystrokes, bounds: Bounds, features: tuple[str, ...]) -> _Sides:
    n = keystrokes.n_learners

    def profiles(owner: NDArray[np.int32], n_owners: int) -> Floats:
        totals = count_latencies(keystrokes, owner, n_owners, shortest=bounds[0], longest=bounds[1])
        return build_profiles(totals.named(features)).values

    def windows(owner: NDArray[np.int32], size: int) -> PersonWindows:
        cut = by_size(owner, size)
        return PersonWindows(profiles(cut.window, cut.n_windows), cut.owner, n)

    known, unknown = course.split.known, course.split.unknown
    typed = int(np.median(np.bincount(unknown[unknown >= 0])))
    half = int(np.clip(typed // 2, SMALLEST_WINDOW, LARGEST_WINDOW))
    return _Sides(
        profiles(known, n),
        profiles(unknown, n),
        windows(known, half),
        windows(unknown, half),
        windows(known, max(typed, SMALLEST_WINDOW)),
    )


def _on_averages(
    course: Course, plan: SweepPlan, fine: _Sides, many: _Sides, way: str, size: float
) -> list[Row]:
    """The thesis's experiment: averages are computed finely and then made coarse.

    Nearest profiles look at the most common digraphs, as in the thesis. Whoever is given enough averages to
    infer a label from can attack all of them (`many`).
    """
    coarse = WAYS[way](size).averages
    known, unknown = coarse(fine.known), coarse(fine.unknown)
    distances = {name: attack(known, unknown) for name, attack in PROFILE_ATTACKS.items()}
    rows = _groups(AVERAGES, way, size, unknown)
    if plan.is_full(size):
        rng = _rng(plan, AVERAGES, way, size)
        # A profile is released, not its windows; attackers cut what they know as they like.
        theirs = replace(fine.windows, values=coarse(fine.windows.values))
        released = PersonWindows(unknown, np.arange(len(unknown)), len(unknown))
        distances |= {name: trained(theirs, released, rng) for name, trained in TRAINED_ATTACKS.items()}
        if size:  # fine averages share no cells
            distances["cell-likelihood"] = cell_likelihood(fine.weeks, unknown, coarse, rng)
            distances["cell-likelihood-many"] = cell_likelihood(many.weeks, coarse(many.unknown), coarse, rng)
        all_known, all_unknown = coarse(many.known), coarse(many.unknown)
        for name in (PUBLISHED, "manhattan", "rank-people"):
            distances[f"{name}-many"] = PROFILE_ATTACKS[name](all_known, all_unknown)
        distances["within-mahalanobis-many"] = TRAINED_ATTACKS["within-mahalanobis"](
            replace(many.windows, values=coarse(many.windows.values)),
            PersonWindows(all_unknown, np.arange(len(all_unknown)), len(all_unknown)),
            rng,
        )
        rows += _usefulness(course, plan, AVERAGES, way, size, course.keystrokes, TYPING)
    return rows + _identified(plan, AVERAGES, way, size, distances)


def _on_events(course: Course, plan: SweepPlan, way: str, size: float) -> list[Row]:
    """What a release holds: every latency is coarse, and attackers average or count as they like."""
    rng = _rng(plan, EVENTS, way, size)
    coarsening = WAYS[way](size)
    # Sessions stay in order and rows stay where they are, so the split still fits.
    released = coarsening.events(course.keystrokes, rng) if size else course.keystrokes
    bounds = coarsening.typing_range() if size else TYPING
    sides = _sides(course, released, bounds, course.features)
    distances = {name: attack(sides.known, sides.unknown) for name, attack in PROFILE_ATTACKS.items()}
    counts = [
        count_histograms(
            released, owner, released.n_learners, course.features, shortest=bounds[0], longest=bounds[1]
        ).count
        for owner in (course.split.known, course.split.unknown)
    ]
    distances |= {name: attack(*counts) for name, attack in EVENT_ATTACKS.items()}
    many = [
        count_histograms(
            released, owner, released.n_learners, course.many_features, shortest=bounds[0], longest=bounds[1]
        ).count
        for owner in (course.split.known, course.split.unknown)
    ]
    distances["histogram-many"] = histogram_likelihood(*many)
    distances |= {
        name: trained(sides.windows, sides.unknown_windows, rng) for name, trained in TRAINED_ATTACKS.items()
    }
    return [
        *_groups(EVENTS, way, size, sides.unknown),
        *_usefulness(course, plan, EVENTS, way, size, released, bounds),
        *_identified(plan, EVENTS, way, size, distances),
    ]


def _identified(
    plan: SweepPlan, level: str, way: str, size: float, distances: dict[str, Floats]
) -> list[Row]:
    rows = []
    for k in plan.guesses:
        found = [identification(name, matrix, k) for name, matrix in distances.items()]
        rows += [_row(level, way, size, one, one.attack) for one in found]
        # Where only nearest profiles were tried, "the strongest" would be of another list.
        if plan.is_full(size):
            rows.append(_row(level, way, size, strongest(found), STRONGEST))
    return rows


def _row(level: str, way: str, size: float, one: Identification, name: str) -> Row:
    return Row(
        level, way, size, IDENTIFICATION, name, one.k, one.rate, one.low, one.high, one.chance, one.n_learners
    )


def _by_text(course: Course, plan: SweepPlan) -> list[Row]:
    """What the text alone reveals: counted without bounds on latencies, or the counts would depend on speed."""
    n = course.keystrokes.n_learners
    known, unknown = (
        count_latencies(course.keystrokes, side, n, shortest=0.0, longest=np.inf)
        for side in (course.split.known, course.split.unknown)
    )
    distances = text(known.count, unknown.named(known.features).count)
    found = [identification(BY_TEXT, distances, k) for k in plan.guesses]
    size = float(len(known.features))
    return [replace(_row(AVERAGES, "none", size, one, BY_TEXT), measure=BY_TEXT) for one in found]


def _groups(level: str, way: str, size: float, released: Floats) -> list[Row]:
    """How many are alone with their profile, and how much of everything lies in one cell of the grid."""
    groups = smallest_group(released)
    _, cells = np.unique(np.round(released[:, :-1], 6), return_counts=True)
    figures = {
        "smallest group": float(groups.smallest),
        "unique": groups.share_unique,
        "fullest cell": float(cells.max() / cells.sum()),
    }
    n = len(released)
    return [
        Row(level, way, size, GROUPS, name, 0, value, value, value, 0.0, n) for name, value in figures.items()
    ]


def _usefulness(
    course: Course,
    plan: SweepPlan,
    level: str,
    way: str,
    size: float,
    released: Keystrokes,
    bounds: Bounds,
) -> list[Row]:
    """What can still be learned: the label, and who types how fast."""
    fine = _traits(course, course.keystrokes, TYPING)
    coarse = WAYS[way](size).averages(fine) if level == AVERAGES else _traits(course, released, bounds)
    outcome = None if course.labels is None else np.where(course.labels >= 0, course.labels, np.nan)
    kept = preserved(fine[:, :-1], coarse[:, :-1], fine[:, -1], coarse[:, -1], outcome)
    n = len(fine)
    figures = {
        "error of a digraph (ms)": kept.digraph_error,
        "order of learners": kept.kendall,
        "speed with the label": kept.link_coarse,
    }
    rows = [
        Row(level, way, size, PRESERVED, name, 0, one.value, one.low, one.high, 0.0, n)
        for name, one in figures.items()
        if one is not None and np.isfinite(one.value)
    ]
    if course.labels is None:
        return rows
    # The same folds at every size, so that sizes can be compared.
    found = course.infer(coarse, course.labels, np.random.default_rng([plan.seed, 11]))
    rows += [
        Row(
            level,
            way,
            size,
            INFERENCE,
            one.classifier,
            0,
            one.accuracy,
            one.low,
            one.high,
            one.majority,
            one.n_learners,
        )
        for one in found.values()
    ]
    return rows


def _traits(course: Course, keystrokes: Keystrokes, bounds: Bounds) -> Floats:
    totals = count_latencies(
        keystrokes, keystrokes.learner, keystrokes.n_learners, shortest=bounds[0], longest=bounds[1]
    )
    return build_profiles(totals.named(course.trait_features)).values


def _rng(plan: SweepPlan, level: str, way: str, size: float) -> np.random.Generator:
    return np.random.default_rng(
        [plan.seed, [AVERAGES, EVENTS].index(level), list(WAYS).index(way), round(1000 * size)]
    )


# All of them, with what was done before


def run_sweep(course: Course, plan: SweepPlan, folder: Path | None = None) -> list[Row]:
    """All rows. With a folder, finished tasks are kept there and not done again when the sweep is resumed."""
    tasks = sweep_tasks(course, plan)
    cells = None if folder is None else FinishedCells(folder, "sweep", asdict(plan), _data(course))
    done = {}
    if cells is not None:
        kept = {name: cells.find(name) for name in tasks}
        done = {name: [Row(**row) for row in rows] for name, rows in kept.items() if rows is not None}
    pending = {name: task for name, task in tasks.items() if name not in done}
    # Tasks fill the cores already; libraries that start threads of their own in each would only get in the way.
    with threadpool_limits(1), progress.task("Trying coarsenings", len(tasks)) as step:
        step.advance(len(done))
        results = run_tasks(
            [partial(_measure, cells, name, task) for name, task in pending.items()], step.advance
        )
    done |= dict(zip(pending, results, strict=True))
    return [row for name in tasks for row in done[name]]


def _data(course: Course) -> tuple[NDArray[Any] | None, ...]:
    data = course.keystrokes
    return (data.key, data.time, data.follows, data.offsets, data.session, data.week, course.labels)


def _measure(cells: FinishedCells | None, name: str, task: Callable[[], list[Row]]) -> list[Row]:
    rows = task()
    if cells is not None:
        cells.keep(name, [asdict(row) for row in rows])
    return rows
