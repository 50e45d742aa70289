"""Checks that count learners: how many are behind every number, who makes up most of it, degrees of freedom.

They cannot see that two learners are one household, that an attacker is one of the learners behind a number beyond
what the p-percent rule grants them, or a value that all learners of a group share and that no absence moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from understudy.desk.disclosure.influences import Influences
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import N_ROWS, STEP, Check, Results

_PLACE = re.compile(r"(row )?(\d+)$")


def column_of(name: str) -> str:
    """The list, dict or column that a number is in: its name without the last part."""
    return STEP.join(name.split(STEP)[:-1])


def in_columns(names: Iterable[str]) -> dict[str, list[int]]:
    """Positions of the numbers of every list, dict or column, in their order; numbers of rows are in none."""
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if not name.endswith(STEP + N_ROWS):
            groups.setdefault(column_of(name), []).append(place)
    return groups


def is_listed(name: str) -> bool:
    """Whether a number is named by its place: an entry of a list, or of a table without row names."""
    return bool(_PLACE.match(name.split(STEP)[-1]))


# Where influences are not contributions: from this share on, a number is one or two learners with decoration.
MAX_SHARE_OF_INFLUENCE = 0.8
_FREEDOM = re.compile(
    r"(^|[^a-z])(df|dof)(_?resid|_?denom)?$|degrees? of freedom|resid\w*[ _](df|dof)", re.IGNORECASE
)


def learners(influences: Influences, trial: Results, policy: Policy) -> Check:
    """The minimum number of learners behind every number, measured by leaving each out."""
    check = Check.about("learners", influences.shown)
    support, least = influences.support, policy.minimum_learners
    moved = np.asarray(influences.moved.any(axis=0))
    few = [j for j in np.argsort(support, kind="stable").tolist() if moved[j] and support[j] < least]
    if few:
        worst = few[0]
        return check.fails(
            f"{_numbers(len(few), 'rests', 'rest')} on fewer than {least} learners: "
            f"'{influences.shown[worst]}' moves "
            f"when {_any_of(int(support[worst]))} is left out and hardly or not at all for others"
            f"{'' if influences.probes.one_by_one else ' (learners were left out in blocks)'}.",
            few,
        )
    unlike = [
        j
        for j in np.flatnonzero(np.logical_not(moved)).tolist()
        if not _same(trial.numbers.get(influences.names[j]), influences.probes.full[j])
    ]
    if unlike:
        return check.asks(
            f"{_numbers(len(unlike), 'does', 'do')} not move whoever is left out, but came out differently in the "
            "trial on synthetic data: such a number may state what all learners of some group have in common, and how "
            "many they are cannot be measured.",
            unlike,
        )
    if shares := [j for j in range(len(influences.names)) if 0 < _minority(influences, j) < least]:
        return check.asks(
            f"Enough learners are behind every number, but '{influences.shown[shares[0]]}' is a share of "
            f"which one side is {_people(_minority(influences, shares[0]))}: fewer than {least}.",
            shares,
        )
    n_unmoved = int((~moved).sum())
    note = (
        f" {_numbers(n_unmoved, 'is', 'are')} the same whoever is left out and in the trial."
        if n_unmoved
        else ""
    )
    if not moved.any():
        return check.passes(f"No number depends on a single learner.{note}")
    fewest = int(support[moved].min())
    return check.passes(f"At least {fewest} learners are behind every number.{note}")


def dominance(influences: Influences, policy: Policy) -> Check:
    """The n-k rule and the p-percent rule where contributions can be worked out, influence elsewhere."""
    check = Check.about("dominance", influences.shown)
    n, share, p = policy.dominance_learners, policy.dominance_share, policy.p_percent
    failed: dict[int, str] = {}
    looked: dict[int, float] = {}
    for j, name in enumerate(influences.shown):
        parts = influences.contributions(j)
        if influences.kinds[j] == "constant" or influences.support[j] < 1:
            continue
        if parts is not None and (parts >= -1e-6 * np.abs(parts).max()).all():
            largest = np.sort(parts)[::-1]
            total = largest.sum()
            if largest[:n].sum() > share * total:
                failed[j] = (
                    f"{largest[:n].sum() / total:.0%} of '{name}' come from "
                    f"{_people(min(n, len(largest)))}; the policy "
                    f"allows {share:.0%}"
                )
            elif largest[2:].sum() < p / 100 * largest[0]:
                failed[j] = (
                    f"the learner with the second largest part of '{name}' could work out the largest to within {p:g} %"
                )
            continue
        size = np.sort(np.abs(influences.sized[:, j]))[::-1]
        taken = float(size[:n].sum() / size.sum()) if size.sum() > 0 else 0.0
        if taken > MAX_SHARE_OF_INFLUENCE:
            failed[j] = (
                f"{taken:.0%} of all the influence on '{name}' is that of "
                f"{_people(min(n, int(influences.moved[:, j].sum())))}"
            )
        elif taken > share:
            looked[j] = taken
    if failed:
        first = next(iter(failed.values()))
        return check.fails(f"{first[0].upper()}{first[1:]}.", failed)
    if looked:
        j = max(looked, key=looked.__getitem__)
        return check.asks(
            f"{looked[j]:.0%} of all the influence on '{influences.shown[j]}' is that of {_people(n)}. It is "
            "neither a total nor a mean, so that no rule says how much is too much.",
            [j, *looked],
        )
    return check.passes("No one or two learners make up most of a number.")


def freedom(influences: Influences, policy: Policy) -> Check:
    """Learners behind the estimates of one list or column, minus how many estimates there are.

    Totals and means are left to the other checks: each is worked out on its own, and takes no freedom from the rest.
    """
    check = Check.about("freedom", influences.shown)
    least = policy.minimum_freedom
    stated = [
        j
        for j, name in enumerate(influences.names)
        if _FREEDOM.search(name.split(STEP)[-1]) or _FREEDOM.search(column_of(name))
        if influences.moved[:, j].any() and influences.probes.full[j] < least
    ]
    if stated:
        return check.fails(
            f"'{influences.shown[stated[0]]}' states that a model is left with fewer than {least} degrees of freedom.",
            stated,
        )
    groups: dict[str, list[int]] = {}
    for j, name in enumerate(influences.names):
        if influences.kinds[j] == "other" and not name.endswith(N_ROWS):
            groups.setdefault(column_of(name), []).append(j)
    worst: tuple[int, list[int]] | None = None
    for members in groups.values():
        moved = influences.moved[:, members].astype(np.int64)
        support = moved.sum(axis=0)
        # Estimates whose learners are all among those of another one, each value once (a table may mirror itself).
        _, first = np.unique(influences.probes.full[members], return_index=True)
        within = (moved.T @ moved)[first] == support[first][:, None]
        left = support - within.sum(axis=0)
        if left.min() < least and len(first) > 1 and (worst is None or left.min() < worst[0]):
            worst = int(left.min()), [members[int(left.argmin())], *members]
    if worst is not None:
        return check.fails(
            f"The learners behind '{influences.shown[worst[1][0]]}' outnumber the estimates that rest on them by "
            f"{worst[0]}; at least {least} degrees of freedom are asked for.",
            worst[1],
        )
    return check.passes(f"Every group of estimates leaves at least {least} degrees of freedom.")


def _minority(influences: Influences, j: int) -> int:
    """Of a mean of two values only (a share of yes and no), how many learners have the rarer one; 0 for others."""
    if influences.kinds[j] != "mean" or len(groups := influences.distinct(j)) != 2:
        return 0
    return int(groups.min())


def _same(value: float | None, other: float) -> bool:
    if value is None:
        return False
    return value == other or (np.isnan(value) and np.isnan(other))


def _numbers(n: int, singular: str, plural: str) -> str:
    return f"One number {singular}" if n == 1 else f"{n} numbers {plural}"


def _people(n: int) -> str:
    return "one learner" if n == 1 else f"{n} learners"


def _any_of(n: int) -> str:
    return "one learner" if n == 1 else f"any of {n} learners"
