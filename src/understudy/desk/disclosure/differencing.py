"""Checks of numbers against each other: within an answer, and against everything released before.

Two numbers that are each about enough learners can differ by one: their difference is then that learner's. To see
it without knowing the statistics, the influences of all learners on both are laid side by side. If they fit a line
for nearly all learners and miss it for a few, both are the same statistic, smoothly scaled, on populations that
differ by those few. For combinations of many numbers the share of one learner's influence that some
linear combination isolates, rounding considered, is what `isolation` returns.

Cannot see: differences between populations by learners who had no influence at all on either number, and what an
attacker knows from elsewhere; combinations of three and more numbers that are neither totals nor means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.desk.disclosure.individual_values import own_values
from understudy.desk.disclosure.influences import EXACT, NOISE, Flags, Influences
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, Floats, Results

MOST_NAMED = 20
MOST_PAIRS = 4000
# How alike two columns of influences must be to be looked at; by how much of the spread most may miss the line; and
# how many times as far as those the few are off.
ALIKE = 0.9
ON_LINE = 0.1
OFF_LINE = 10.0
MOST = 0.75
# How much of all that is missed must be missed by the few.
THEIRS = 0.95
ALL_THEIRS = 0.999
A_TRACE = 1e-4
HARDLY = 0.1
BENT = 0.4
# A combination that isolates one learner to this share tells their part.
ISOLATED = 0.9


@dataclass(frozen=True)
class Columns:
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
    def of(cls, influences: Influences, units: Sequence[float], request: str = "") -> Columns:
        """Of one answer; numbers that nobody moves are left out. `request` names an earlier one."""
        kept = np.setdiff1d(np.flatnonzero(influences.moved.any(axis=0)), own_values(influences))
        counts = [
            (parts := influences.contributions(j)) is not None
            and influences.kinds[j] == "total"
            and bool((np.abs(parts - parts[0]) < 1e-6 * np.abs(parts[0])).all())
            for j in kept.tolist()
        ]
        return cls(
            tuple(
                f"{influences.shown[j]} (released in {request})" if request else influences.names[j]
                for j in kept
            ),
            influences.sized[:, kept],
            influences.moved[:, kept],
            influences.probes.full[kept],
            influences.probes.without_one[:, kept],
            np.asarray(units, dtype=float)[kept],
            np.array(counts, dtype=bool),
            np.array([influences.in_steps(j) for j in kept.tolist()], dtype=bool),
            np.array([influences.kinds[j] in ("total", "mean") for j in kept.tolist()], dtype=bool),
            np.full(len(kept), bool(request)),
        )

    def __add__(self, other: Columns) -> Columns:
        return Columns(
            self.labels + other.labels,
            np.hstack([self.steps, other.steps]),
            np.hstack([self.moved, other.moved]),
            np.concatenate([self.full, other.full]),
            np.hstack([self.values, other.values]),
            np.concatenate([self.units, other.units]),
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.in_steps, other.in_steps]),
            np.concatenate([self.linear, other.linear]),
            np.concatenate([self.released, other.released]),
        )


def differencing(
    columns: Columns, policy: Policy, n_other_populations: int = 0, trial: Results | None = None
) -> Check:
    """Whether a new number and another one, new or released, differ by fewer than the minimum of learners."""
    least = policy.minimum_learners
    found: list[tuple[int, int, int]] = []
    doubtful: list[tuple[int, int]] = []
    pairs = _candidates(columns)
    for j, k in pairs[:MOST_PAIRS]:
        n_apart, sure = _apart(columns, j, k, least)
        if 1 <= n_apart < least and sure:
            found.append((n_apart, j, k))
        elif 1 <= n_apart < least:
            doubtful.append((j, k))
    if found:
        n_apart, j, k = min(found)
        names = dict.fromkeys(columns.labels[place] for _, *both in sorted(found) for place in both)
        return Check(
            "differencing",
            "fail",
            f"'{columns.labels[j]}' and '{columns.labels[k]}' are the same statistic on populations that differ by "
            f"{n_apart} {'learners' if n_apart > 1 else 'learner'}: their difference tells about "
            f"{'them' if n_apart > 1 else 'that learner'}. At least {least} are asked for.",
            tuple(names)[:MOST_NAMED],
        )
    few_columns = columns.linear.sum() <= len(columns.steps) / 4
    if few_columns and not columns.released.all():
        share, alone = isolation(columns)
        if share.size and (isolated := (share >= ISOLATED) & (alone < 0.5)).any():
            return Check(
                "differencing",
                "fail",
                f"Several numbers together, added and subtracted, leave {int(isolated.sum())} "
                f"{'learner' if isolated.sum() == 1 else 'learners'} on their own (to "
                f"{share[isolated].max():.0%}), though "
                "no single number does.",
                columns.labels[:MOST_NAMED],
            )
    if doubtful:
        j, k = doubtful[0]
        return Check(
            "differencing",
            "review",
            f"'{columns.labels[j]}' and '{columns.labels[k]}' go together for nearly all learners and not "
            "for a few. They may be two statistics of one model, or one statistic in which a few learners "
            "count otherwise.",
            (columns.labels[j], columns.labels[k]),
        )
    if beside := _constants_between(columns, trial or Results()):
        j, k = beside[0]
        return Check(
            "differencing",
            "review",
            f"'{columns.labels[j]}' and '{columns.labels[k]}' are the same statistic but for something that nobody's "
            "absence moves and that was otherwise in the trial: it may be a value that two learners share, such as "
            "the largest.",
            (columns.labels[j], columns.labels[k]),
        )
    if len(pairs) > MOST_PAIRS:
        return Check(
            "differencing",
            "review",
            f"{len(pairs):,} pairs of numbers are much alike, more than can be compared ({MOST_PAIRS:,}).",
        )
    if n_other_populations:
        return Check(
            "differencing",
            "review",
            f"{n_other_populations} earlier {'answer was' if n_other_populations == 1 else 'answers were'} released "
            "when the data held other learners (somebody withdrew or came): what is told before and after tells "
            "about them. See whether the questions, or several numbers together, are alike.",
        )
    against = " or released before" if columns.released.any() else ""
    return Check(
        "differencing",
        "pass",
        f"No two numbers of this answer{against} differ by fewer than {least} learners.",
    )


def reconstruction(
    columns: Columns, policy: Policy, *, n_learners: int, n_new: int, n_released_numbers: int
) -> Check:
    """How many numbers have left for how many learners, and whether all of them together isolate somebody."""
    n_all = n_new + n_released_numbers
    if n_all > policy.share_of_learners * n_learners:
        return Check(
            "reconstruction",
            "review",
            f"With this answer {n_all:,} numbers about {n_learners:,} learners would have left. From about as many "
            "numbers as learners on, their values may be worked out from all answers together.",
        )
    share, _ = isolation(columns)
    if share.size and share.max() >= ISOLATED:
        return Check(
            "reconstruction",
            "review",
            f"All numbers together, added and subtracted, leave {int((share >= ISOLATED).sum())} of "
            f"{len(share)} learners or blocks nearly on their own.",
        )
    return Check(
        "reconstruction",
        "pass",
        f"With this answer {n_all:,} number{'s' * (n_all != 1)} about {n_learners:,} learners would have left.",
    )


def isolation(columns: Columns) -> tuple[Floats, Floats]:
    """(m,) for each learner the largest share of one combination of all numbers that is theirs, and of one number.

    The ridge leverage of the influences: of a learner's part, drawn with the same variance for all, the share of
    the variance that somebody who holds all rounded numbers knows. Rounding is noise of variance unit^2 / 12. Of
    totals and means only: of other statistics a step is no derivative, and two functions of one value look like two.
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


def _candidates(columns: Columns) -> list[tuple[int, int]]:
    """Pairs of which one is new, whose influences are alike but for a few learners; the most alike first."""
    d = len(columns.labels)
    if d < 2 or columns.released.all():
        return []
    support = columns.moved.sum(axis=0)
    common = columns.moved.T.astype(np.int64) @ columns.moved
    apart = support[:, None] + support[None, :] - 2 * common
    # Ranks instead of values: an outlier, who is whom to protect, does not hide how alike the others are.
    ranks = np.argsort(np.argsort(columns.steps, axis=0, kind="stable"), axis=0).astype(float)
    clipped = np.clip(columns.steps, *np.quantile(columns.steps, [0.05, 0.95], axis=0))
    alike = np.maximum(_correlations(ranks), _correlations(clipped))
    counts = columns.counts[:, None] & columns.counts[None, :]
    wanted = (alike >= ALIKE) & (apart < support.clip(min=1)[:, None]) | counts
    wanted &= ~(columns.in_steps[:, None] | columns.in_steps[None, :])
    wanted &= ~(columns.released[:, None] & columns.released[None, :])
    first = _first_of_each(columns)
    wanted &= first[:, None] & first[None, :]
    j, k = np.nonzero(np.triu(wanted, 1))
    # Pairs with other learners before pairs with the same: nobody hides one behind thousands of harmless pairs.
    order = np.lexsort((-alike[j, k], apart[j, k], apart[j, k] == 0))
    return list(zip(j[order].tolist(), k[order].tolist(), strict=True))


def _first_of_each(columns: Columns) -> Flags:
    """Of columns that are multiples of each other, on the same learners, the first new and the first released one."""
    first = np.zeros(len(columns.labels), dtype=bool)
    first[[twins[0] for twins in _multiples(columns)]] = True
    return first


def _multiples(columns: Columns) -> list[list[int]]:
    """Columns of which the steps, but for a constant, are multiples of each other, on the same learners."""
    centred = columns.steps - columns.steps.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(length > 0, length, 1.0)
    unit = (
        np.round(unit * np.where(unit[np.abs(unit).argmax(axis=0), np.arange(unit.shape[1])] < 0, -1, 1), 9)
        + 0.0
    )
    seen: dict[tuple[bytes, bytes, bool], list[int]] = {}
    for j, released in enumerate(columns.released.tolist()):
        seen.setdefault((unit[:, j].tobytes(), columns.moved[:, j].tobytes(), released), []).append(j)
    return list(seen.values())


def _constants_between(columns: Columns, trial: Results) -> list[tuple[int, int]]:
    """Pairs of one statistic of which a difference remains that is the same whoever is left out, and not the trial's.

    A total and the total without the largest are so when two learners share the largest value.
    """
    found = []
    twins = [one for one in _multiples(columns) if not columns.released[one[0]]]
    for j, k in ((one[0], other) for one in twins for other in one[1:]):
        u, v = columns.values[:, j], columns.values[:, k]
        spread = float(np.ptp(u))
        if not spread > 0 or np.isnan(v).any():
            continue
        slope = float((v[u.argmax()] - v[u.argmin()]) / spread)
        rest = v - slope * u
        size = float(np.abs(v).max())
        if np.ptp(rest) > EXACT * size or abs(float(np.median(rest))) <= EXACT * size:
            continue
        tried = [trial.numbers.get(columns.labels[one], np.nan) for one in (j, k)]
        here = columns.full[k] - slope * columns.full[j]
        if not abs(tried[1] - slope * tried[0] - here) <= EXACT * size:
            found.append((j, k))
    return found


def _correlations(values: Floats) -> Floats:
    centred = values - values.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(length > 0, length, 1.0)
    return np.asarray(np.abs(unit.T @ unit))


def _apart(columns: Columns, j: int, k: int, least: int) -> tuple[int, bool]:
    """By how many learners the populations of two numbers differ, and whether that is sure.

    0 if they are the same or not comparable.
    """
    union = columns.moved[:, j] | columns.moved[:, k]
    one, other = columns.moved[union, j], columns.moved[union, k]
    if columns.counts[j] and columns.counts[k]:
        # The difference of two counts is a count of those apart only if one population holds the other.
        nested = not (one & ~other).any() or not (other & ~one).any()
        return (int((one != other).sum()) if nested else 0), True
    u, v = columns.steps[union, j], columns.steps[union, k]
    if len(u) < 4:
        return 0, True
    line = _line(u, v)
    missed = np.abs(v - line)
    spread = float(np.median(np.abs(v - np.median(v)))) or float(np.abs(v - np.median(v)).mean())
    if spread == 0:
        return 0, True
    outermost = _without_the_outermost(
        {int(u.argmax()), int(u.argmin()), int(missed.argmax())},
        columns.values[union, j],
        columns.values[union, k],
    )
    if float(np.mean(missed <= ON_LINE * spread)) < MOST:
        return int(outermost), False
    # A learner with nothing to add is in a total and does not move it, though they move the mean: on the line.
    if n_sets := int(((one != other) & (missed > A_TRACE * spread)).sum()):
        return n_sets, True
    # What is left of one when as much of the other is taken off, as if it were released: who is behind it? For a
    # statistic that bends away from the other, everybody is a little.
    behind = int((missed > A_TRACE * spread).sum())
    if 1 <= behind < least:
        return behind, True
    off = missed > max(OFF_LINE * float(np.quantile(missed, MOST)), A_TRACE * spread)
    if outermost:
        return 1, bool(off.any())
    theirs = float((missed[off] ** 2).sum() / max((missed**2).sum(), 1e-300))
    if not off.any() or theirs < THEIRS:
        return (
            0,
            True,
        )  # two statistics of the same people that bend away from each other, such as a slope and its t
    if _function_of_each_other(columns.values[union, j], columns.values[union, k]):
        return 0, True  # one is a function of the other, such as a p value of its statistic
    hardly = np.minimum(np.abs(v), np.abs(line))[off] <= HARDLY * np.maximum(np.abs(v), np.abs(line))[off]
    # Where a number changes its sign, a two-sided p value turns back: only their sizes go together then.
    turns = any(np.nanmin(one) < 0 < np.nanmax(one) for one in columns.values[union][:, [j, k]].T)
    if turns and not _still_off(columns, union, j, k):
        return 0, True
    if (hardly.all() or theirs >= ALL_THEIRS) and not turns:
        return int(off.sum()), True
    # Who is off the line since two statistics bend is far out on it, and off it by a part of how far.
    far = np.maximum(np.abs(line - np.median(line)), np.abs(v - np.median(v)))
    outer = far >= np.sort(far)[-min(3 * int(off.sum()), len(far))]
    bends = bool(outer[off].all() and (missed[off] < BENT * far[off]).all())
    return (0 if bends else int(off.sum())), False


def _without_the_outermost(ends: set[int], one: Floats, other: Floats) -> bool:
    """Whether one of two numbers is without the learner furthest out, by any order: `np.delete(x, x.argmax())`.

    Without that learner it is without the next one as well, and so it is without the next one: the two cannot be told
    apart by one number, and can by the other.
    """
    alike = [(_like(one, end), _like(other, end)) for end in ends]
    found = any(first != second and max(first, second) == 2 for first, second in alike)
    # That is the only pair. Statistics of ranks take the same value for many.
    return found and abs(_n_ties(one) - _n_ties(other)) == 1


def _like(values: Floats, place: int) -> int:
    """How many learners leave the same value when they go as this one does."""
    return int((np.abs(values - values[place]) <= NOISE * np.nanmax(np.abs(values))).sum())


def _n_ties(values: Floats) -> int:
    """How many values more than one learner leaves."""
    near = np.diff(np.sort(values)) <= NOISE * np.nanmax(np.abs(values))
    return int((near & ~np.concatenate([[False], near[:-1]])).sum())


def _still_off(columns: Columns, union: Flags, j: int, k: int) -> bool:
    """Whether a few learners are off the line of the sizes of two numbers, too."""
    u, v = (np.nan_to_num(np.abs(columns.values[union, place])) for place in (j, k))
    missed = np.abs(v - _line(u, v))
    off = missed > OFF_LINE * float(np.quantile(missed, MOST))
    return bool((missed[off] ** 2).sum() >= THEIRS * (missed**2).sum())


def _line(u: Floats, v: Floats) -> Floats:
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


def _function_of_each_other(one: Floats, other: Floats) -> bool:
    """Whether one only rises or only falls with the other, or with its size, as a two-sided p value does."""
    there = ~(np.isnan(one) | np.isnan(other))
    one, other = one[there], other[there]
    return any(
        _monotone(first, second)
        for first, second in ((one, other), (np.abs(one), other), (one, np.abs(other)))
    )


def _monotone(one: Floats, other: Floats) -> bool:
    steps = np.diff(other[np.lexsort((other, one))])
    noise = 1e-9 * float(np.abs(other).max(initial=0.0))
    return bool((steps >= -noise).all() or (steps <= noise).all())
