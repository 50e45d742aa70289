"""Checks of numbers against each other: within an answer, and against everything released before.

Two numbers that are each about enough learners can differ by one: their difference is then that learner's. To see
it without knowing the statistics, the influences of all learners on both are laid side by side. If they fit a line
for nearly all learners and miss it for a few, both are the same statistic, smoothly scaled, on populations that
differ by those few. For combinations of many numbers, `isolation` gives the share of one learner's influence that
some linear combination isolates, rounding considered.

The checks cannot see differences between populations by learners who had no influence at all on either number, what
an attacker knows from elsewhere, and combinations of three and more numbers that are neither totals nor means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.core.files.words import counted
from understudy.desk.disclosure.individual_values import own_values
from understudy.desk.disclosure.influences import EXACT, NOISE, Flags, Influences
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, Floats, Results

MOST_PAIRS = 4000
# Correlation of two columns of influences from which on they are compared.
MIN_CORRELATION = 0.9
# Share of the spread by which a learner on the line may miss it, and share of the learners who have to be on it.
MAX_MISS_ON_LINE = 0.1
MIN_SHARE_ON_LINE = 0.75
# How many times as far as the learners on the line a learner off it is.
MIN_MISS_OFF_LINE = 10.0
# Share of all squared misses that has to be that of the learners off the line; above the second it is all of them.
MIN_SHARE_OF_MISSES = 0.95
ALL_MISSES = 0.999
# Share of the spread from which on a learner is behind a difference.
MIN_TRACE = 1e-4
# Ratio of the smaller to the larger step below which a learner is in one of the two numbers only.
MAX_RATIO_IN_ONE = 0.1
# Share of their distance from the middle by which learners are off the line of two statistics that bend.
MAX_BEND = 0.4
# Share of one learner from which on a combination of numbers gives their part away.
MIN_ISOLATED = 0.9


@dataclass(frozen=True)
class InfluenceColumns:
    """Influences on numbers of one or several answers, with the unit that each is rounded to."""

    labels: tuple[str, ...]
    steps: Floats
    moved: Flags
    full: Floats
    """(d,) the numbers."""
    values: Floats
    """(m, d) the numbers without each learner; NaN where missing."""
    units: Floats
    counts: Flags
    """(d,) numbers into which each learner counts as one."""
    in_steps: Flags
    """(d,) numbers that take a few values only, as quantiles do: on which line they are says nothing."""
    linear: Flags
    """(d,) totals and means, of which adding and subtracting works out."""
    released: Flags
    """(d,) whether it left before."""

    @classmethod
    def of(cls, influences: Influences, units: Sequence[float], request: str = "") -> InfluenceColumns:
        """Of one answer; numbers that no learner moves are left out. `request` names an earlier one."""
        kept = np.setdiff1d(np.flatnonzero(influences.moved.any(axis=0)), own_values(influences))
        places = kept.tolist()
        return cls(
            tuple(
                f"{influences.shown[j]} (released in {request})" if request else influences.names[j]
                for j in places
            ),
            influences.sized[:, kept],
            influences.moved[:, kept],
            influences.probes.full[kept],
            influences.probes.without_one[:, kept],
            np.asarray(units, dtype=float)[kept],
            np.array([influences.counts_learners(j) for j in places], dtype=bool),
            np.array([influences.in_steps(j) for j in places], dtype=bool),
            np.array([influences.kinds[j] in ("total", "mean") for j in places], dtype=bool),
            np.full(len(kept), bool(request)),
        )

    def __add__(self, other: InfluenceColumns) -> InfluenceColumns:
        arrays = [name for name in vars(self) if name != "labels"]
        return InfluenceColumns(
            self.labels + other.labels,
            **{name: np.concatenate([getattr(self, name), getattr(other, name)], axis=-1) for name in arrays},
        )


def differencing(
    columns: InfluenceColumns, policy: Policy, n_other_populations: int = 0, trial: Results | None = None
) -> Check:
    """Whether a new number and another one, new or released, differ by fewer than the minimum of learners."""
    check, labels, least = (
        Check.about("differencing", columns.labels),
        columns.labels,
        policy.minimum_learners,
    )
    found: list[tuple[int, int, int]] = []
    doubtful: list[tuple[int, int]] = []
    pairs = _candidates(columns)
    for j, k in pairs[:MOST_PAIRS]:
        n_apart, sure = _apart(columns, j, k, least)
        if 1 <= n_apart < least:
            if sure:
                found.append((n_apart, j, k))
            else:
                doubtful.append((j, k))
    if found:
        n_apart, j, k = min(found)
        return check.fails(
            f"'{labels[j]}' and '{labels[k]}' are the same statistic on populations that differ by "
            f"{counted(n_apart, 'learner')}: their difference gives "
            f"{'them' if n_apart > 1 else 'that learner'} away. At least {least} are asked for.",
            [place for _, *both in sorted(found) for place in both],
        )
    few_columns = columns.linear.sum() <= len(columns.steps) / 4
    if few_columns and not columns.released.all():
        share, alone = isolation(columns)
        if share.size and (isolated := (share >= MIN_ISOLATED) & (alone < 0.5)).any():
            return check.fails(
                f"Several numbers together, added and subtracted, leave "
                f"{counted(int(isolated.sum()), 'learner')} on their own (to {share[isolated].max():.0%}), "
                "though no single number does.",
                labels,
            )
    if doubtful:
        j, k = doubtful[0]
        return check.asks(
            f"'{labels[j]}' and '{labels[k]}' go together for nearly all learners and not for a few. They may be two "
            "statistics of one model, or one statistic in which a few learners count differently.",
            (j, k),
        )
    if constant := _constants_between(columns, trial or Results()):
        j, k = constant[0]
        return check.asks(
            f"'{labels[j]}' and '{labels[k]}' are the same statistic but for something that no learner's absence moves "
            "and that was different in the trial: it may be a value that two learners share, such as the largest.",
            (j, k),
        )
    if len(pairs) > MOST_PAIRS:
        return check.asks(
            f"{len(pairs):,} pairs of numbers are much alike, more than can be compared ({MOST_PAIRS:,})."
        )
    if n_other_populations:
        answers = "answer was" if n_other_populations == 1 else "answers were"
        return check.asks(
            f"{n_other_populations} earlier {answers} released when the data held other learners (some withdrew or "
            "came): the same statistic before and after gives them away. See whether the questions, or several numbers "
            "together, are alike."
        )
    against = " or released before" if columns.released.any() else ""
    return check.passes(f"No two numbers of this answer{against} differ by fewer than {least} learners.")


def reconstruction(
    columns: InfluenceColumns, policy: Policy, *, n_learners: int, n_new: int, n_released_numbers: int
) -> Check:
    """How many numbers have been released per learner, and whether all of them together isolate a learner."""
    check = Check.about("reconstruction")
    n_all = n_new + n_released_numbers
    if n_all > policy.share_of_learners * n_learners:
        return check.asks(
            f"With this answer {n_all:,} numbers about {n_learners:,} learners would have left. From about as many "
            "numbers as learners on, their values may be worked out from all answers together."
        )
    share, _ = isolation(columns)
    if share.size and share.max() >= MIN_ISOLATED:
        return check.asks(
            f"All numbers together, added and subtracted, leave {int((share >= MIN_ISOLATED).sum())} of "
            f"{len(share)} learners or blocks nearly on their own."
        )
    return check.passes(
        f"With this answer {counted(n_all, 'number')} about {n_learners:,} learners would have left."
    )


def isolation(columns: InfluenceColumns) -> tuple[Floats, Floats]:
    """(m,) the largest share of a combination of all numbers that is each learner's, and (m,) of one number alone.

    The ridge leverage of the influences: if learners' parts are drawn with the same variance, the share of the
    variance of a learner's part that an attacker with all rounded numbers knows. Rounding is noise of variance
    unit^2 / 12. Only totals and means count: a step of another statistic is not a derivative, and two functions of
    one value look like two.
    """
    scale = np.linalg.norm(columns.steps, axis=0)
    kept = columns.linear & (scale > 0)
    if not kept.any():
        return np.zeros(0), np.zeros(0)
    steps = columns.steps[:, kept] / scale[kept]
    noise = (columns.units[kept] / scale[kept]) ** 2 / 12 + 1e-9
    # By singular values of the whitened columns: two nearly equal columns would ruin an inverse.
    left, values, _ = np.linalg.svd(steps / np.sqrt(noise), full_matrices=False)
    together = (left**2 * (values**2 / (values**2 + 1))).sum(axis=1)
    alone = (steps**2 / ((steps**2).sum(axis=0) + noise)).max(axis=1)
    return np.asarray(together), np.asarray(alone)


def _candidates(columns: InfluenceColumns) -> list[tuple[int, int]]:
    """Pairs of which one is new, whose influences are alike but for a few learners; the most alike first."""
    d = len(columns.labels)
    if d < 2 or columns.released.all():
        return []
    support = columns.moved.sum(axis=0)
    common = columns.moved.T.astype(np.int64) @ columns.moved
    apart = support[:, None] + support[None, :] - 2 * common
    # Ranks instead of values: an outlier, whom the check protects, does not hide how alike the others are.
    ranks = np.argsort(np.argsort(columns.steps, axis=0, kind="stable"), axis=0).astype(float)
    clipped = np.clip(columns.steps, *np.quantile(columns.steps, [0.05, 0.95], axis=0))
    alike = np.maximum(correlations(ranks, ranks), correlations(clipped, clipped))
    counts = columns.counts[:, None] & columns.counts[None, :]
    wanted = (alike >= MIN_CORRELATION) & (apart < support.clip(min=1)[:, None]) | counts
    wanted &= ~(columns.in_steps[:, None] | columns.in_steps[None, :])
    wanted &= ~(columns.released[:, None] & columns.released[None, :])
    first = _first_of_each(columns)
    wanted &= first[:, None] & first[None, :]
    j, k = np.nonzero(np.triu(wanted, 1))
    # Pairs with other learners before pairs with the same: code cannot hide one behind thousands of harmless pairs.
    order = np.lexsort((-alike[j, k], apart[j, k], apart[j, k] == 0))
    return list(zip(j[order].tolist(), k[order].tolist(), strict=True))


def _first_of_each(columns: InfluenceColumns) -> Flags:
    """The first new and the first released one of columns that are multiples of each other, on the same learners."""
    first = np.zeros(len(columns.labels), dtype=bool)
    first[[twins[0] for twins in _multiples(columns)]] = True
    return first


def _multiples(columns: InfluenceColumns) -> list[list[int]]:
    """Groups of columns whose steps, but for a constant, are multiples of each other, on the same learners."""
    unit = unit_columns(columns.steps - columns.steps.mean(axis=0))
    unit = (
        np.round(unit * np.where(unit[np.abs(unit).argmax(axis=0), np.arange(unit.shape[1])] < 0, -1, 1), 9)
        + 0.0
    )
    seen: dict[tuple[bytes, bytes, bool], list[int]] = {}
    for j, released in enumerate(columns.released.tolist()):
        seen.setdefault((unit[:, j].tobytes(), columns.moved[:, j].tobytes(), released), []).append(j)
    return list(seen.values())


def _constants_between(columns: InfluenceColumns, trial: Results) -> list[tuple[int, int]]:
    """Pairs of one statistic whose difference is the same whoever is left out, and another one in the trial.

    A total and the total without the largest are such a pair when two learners share the largest value.
    """
    found = []
    groups = [group for group in _multiples(columns) if not columns.released[group[0]]]
    for j, k in ((group[0], other) for group in groups for other in group[1:]):
        u, v = columns.values[:, j], columns.values[:, k]
        spread = float(np.ptp(u))
        if not spread > 0 or np.isnan(v).any():
            continue
        slope = float((v[u.argmax()] - v[u.argmin()]) / spread)
        rest = v - slope * u
        size = float(np.abs(v).max())
        if np.ptp(rest) > EXACT * size or abs(float(np.median(rest))) <= EXACT * size:
            continue
        tried = [trial.numbers.get(columns.labels[place], np.nan) for place in (j, k)]
        here = columns.full[k] - slope * columns.full[j]
        if not abs(tried[1] - slope * tried[0] - here) <= EXACT * size:
            found.append((j, k))
    return found


def correlations(values: Floats, others: Floats) -> Floats:
    """Sizes of the correlations of columns (rows) with other columns."""
    return np.asarray(
        np.abs(unit_columns(values - values.mean(axis=0)).T @ unit_columns(others - others.mean(axis=0)))
    )


def unit_columns(values: Floats) -> Floats:
    """Columns of length 1; a column of zeros stays."""
    length = np.linalg.norm(values, axis=0)
    return np.asarray(values / np.where(length > 0, length, 1.0))


def robust_spread(values: Floats) -> float:
    """The median distance from the median; the mean distance where most values are the same but for noise of floats."""
    away = np.abs(values - np.median(values))
    middle, mean = float(np.median(away)), float(away.mean())
    return middle if middle > EXACT * mean else mean


def _apart(columns: InfluenceColumns, j: int, k: int, least: int) -> tuple[int, bool]:
    """By how many learners the populations of two numbers differ, and whether that is sure.

    0 if they are the same or not comparable.
    """
    union = columns.moved[:, j] | columns.moved[:, k]
    in_first, in_second = columns.moved[union, j], columns.moved[union, k]
    if columns.counts[j] and columns.counts[k]:
        # The difference of two counts is a count of those apart only if one population holds the other.
        nested = not (in_first & ~in_second).any() or not (in_second & ~in_first).any()
        return (int((in_first != in_second).sum()) if nested else 0), True
    u, v = columns.steps[union, j], columns.steps[union, k]
    if len(u) < 4:
        return 0, True
    line = robust_line(u, v)
    missed = np.abs(v - line)
    spread = robust_spread(v)
    if spread == 0:
        return 0, True
    first, second = columns.values[union, j], columns.values[union, k]
    outermost = _without_the_outermost(
        {int(u.argmax()), int(u.argmin()), int(missed.argmax())}, first, second
    )
    if float(np.mean(missed <= MAX_MISS_ON_LINE * spread)) < MIN_SHARE_ON_LINE:
        return int(outermost), False
    # A learner with nothing to add is in a total and does not move it, though they move the mean: on the line.
    if n_sets := int(((in_first != in_second) & (missed > MIN_TRACE * spread)).sum()):
        return n_sets, True
    # Who is behind what is left of one number when as much of the other is taken off, as if it were released? All
    # learners a little, if the statistic bends away from the other.
    behind = int((missed > MIN_TRACE * spread).sum())
    if 1 <= behind < least:
        return behind, True
    off = missed > max(MIN_MISS_OFF_LINE * float(np.quantile(missed, MIN_SHARE_ON_LINE)), MIN_TRACE * spread)
    if outermost:
        return 1, bool(off.any())
    share_of_misses = float((missed[off] ** 2).sum() / max((missed**2).sum(), 1e-300))
    if not off.any() or share_of_misses < MIN_SHARE_OF_MISSES:
        # Two statistics of the same learners that bend away from each other, such as a slope and its t.
        return 0, True
    if _function_of_each_other(first, second):
        # Such as a p value and its statistic.
        return 0, True
    smaller, larger = (pick(np.abs(v), np.abs(line))[off] for pick in (np.minimum, np.maximum))
    in_one_only = bool((smaller <= MAX_RATIO_IN_ONE * larger).all())
    # Where a number changes its sign, a two-sided p value turns back: only their sizes go together then.
    turns = any(np.nanmin(values) < 0 < np.nanmax(values) for values in (first, second))
    if turns and not _sizes_off_line(first, second):
        return 0, True
    if (in_one_only or share_of_misses >= ALL_MISSES) and not turns:
        return int(off.sum()), True
    # A learner who is off the line because two statistics bend is far out on it, and off it by a part of how far.
    far = np.maximum(np.abs(line - np.median(line)), np.abs(v - np.median(v)))
    outer = far >= np.sort(far)[-min(3 * int(off.sum()), len(far))]
    bends = bool(outer[off].all() and (missed[off] < MAX_BEND * far[off]).all())
    return (0 if bends else int(off.sum())), False


def _without_the_outermost(ends: set[int], values: Floats, others: Floats) -> bool:
    """Whether one of two numbers is without the learner furthest out, by any order: `np.delete(x, x.argmax())`.

    Without that learner the number is without the next one as well; and it is without the next one when that one is
    left out. So one number is the same without either of them, and the other is not.
    """
    alike = [(_n_alike(values, end), _n_alike(others, end)) for end in ends]
    found = any(first != second and max(first, second) == 2 for first, second in alike)
    # That is the only pair. Statistics of ranks take the same value for many.
    return found and abs(_n_ties(values) - _n_ties(others)) == 1


def _n_alike(values: Floats, place: int) -> int:
    """How many learners leave the same value when they go as this one does."""
    return int((np.abs(values - values[place]) <= NOISE * np.nanmax(np.abs(values))).sum())


def _n_ties(values: Floats) -> int:
    """How many values more than one learner leaves."""
    near = np.diff(np.sort(values)) <= NOISE * np.nanmax(np.abs(values))
    return int((near & ~np.concatenate([[False], near[:-1]])).sum())


def _sizes_off_line(values: Floats, others: Floats) -> bool:
    """Whether a few learners are off the line of the sizes of two numbers, too."""
    u, v = (np.nan_to_num(np.abs(number)) for number in (values, others))
    missed = np.abs(v - robust_line(u, v))
    off = missed > MIN_MISS_OFF_LINE * float(np.quantile(missed, MIN_SHARE_ON_LINE))
    return bool((missed[off] ** 2).sum() >= MIN_SHARE_OF_MISSES * (missed**2).sum())


def robust_line(u: Floats, v: Floats) -> Floats:
    """The line through most of the points (Theil and Sen), so that a few learners do not turn it."""
    order = np.argsort(u, kind="stable")
    half = len(u) // 2
    low, high = order[:half], order[-half:]
    slopes = []
    for turn in range(min(half, 8)):
        far = np.roll(high, turn)
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes.append((v[far] - v[low]) / (u[far] - u[low]))
    every = np.concatenate(slopes)
    every = every[np.isfinite(every)]
    slope = float(np.median(every)) if len(every) else 0.0
    return np.asarray(slope * u + np.median(v - slope * u))


def _function_of_each_other(values: Floats, others: Floats) -> bool:
    """Whether one only rises or only falls with the other, or with its size, as a two-sided p value does."""
    there = ~(np.isnan(values) | np.isnan(others))
    u, v = values[there], others[there]
    return any(_monotone(*pair) for pair in ((u, v), (np.abs(u), v), (u, np.abs(v))))


def _monotone(u: Floats, v: Floats) -> bool:
    steps = np.diff(v[np.lexsort((v, u))])
    noise = 1e-9 * float(np.abs(v).max(initial=0.0))
    return bool((steps >= -noise).all() or (steps <= noise).all())
