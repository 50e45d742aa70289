"""Checks that count people: learners behind every number, who makes up most of it, degrees of freedom.

Cannot see: that two learners are one household, that an attacker is one of the learners behind a number beyond
what the p-percent rule grants him, or a value that everybody in a group shares and that no absence moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from understudy.desk.disclosure.influences import Influences
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import N_ROWS, Check, CheckVerdict, Results

_STEP = " / "
_PLACE = re.compile(r"(row )?(\d+)$")


def column_of(name: str) -> str:
    """The list, dict or column that a number is in: its name without the last part."""
    return _STEP.join(name.split(_STEP)[:-1])


def in_columns(names: Iterable[str]) -> dict[str, list[int]]:
    """Positions of the numbers of every list, dict or column, in their order; numbers of rows are in none."""
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if not name.endswith(_STEP + N_ROWS):
            groups.setdefault(column_of(name), []).append(place)
    return groups


def is_listed(name: str) -> bool:
    """Whether a number is named by its place: an entry of a list, or of a table without row names."""
    return bool(_PLACE.match(name.split(_STEP)[-1]))


MOST_NAMED = 20
# Of an influence that is no contribution: from here on a number is one or two learners with decoration.
NEARLY_ALL = 0.8
_FREEDOM = re.compile(
    r"(^|[^a-z])(df|dof)(_?resid|_?denom)?$|degrees? of freedom|resid\w*[ _](df|dof)", re.IGNORECASE
)


def learners(influences: Influences, trial: Results, policy: Policy) -> Check:
    """The minimum number of learners behind every number, measured by leaving each out."""
    support, least = influences.support, policy.minimum_learners
    moved = np.asarray(influences.moved.any(axis=0))
    few = [j for j in np.argsort(support, kind="stable").tolist() if moved[j] and support[j] < least]
    if few:
        worst = few[0]
        return _check(
            influences,
            "learners",
            "fail",
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
        return _check(
            influences,
            "learners",
            "review",
            f"{_numbers(len(unlike), 'does', 'do')} not move whoever is left out, but came out otherwise in "
            "the trial on synthetic data: such a number may say what all learners of some group have in "
            "common, and how many they are cannot be measured.",
            unlike,
        )
    if shares := [j for j in range(len(influences.names)) if 0 < _minority(influences, j) < least]:
        return _check(
            influences,
            "learners",
            "review",
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
        return Check("learners", "pass", f"No number depends on a single learner.{note}")
    fewest = int(support[moved].min())
    return Check("learners", "pass", f"At least {fewest} learners are behind every number.{note}")


def dominance(influences: Influences, policy: Policy) -> Check:
    """The n-k rule and the p-percent rule where contributions can be worked out, influence elsewhere."""
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
                    f"whoever gave the second largest part of '{name}' could work out the largest to within {p:g} %"
                )
            continue
        size = np.sort(np.abs(influences.sized[:, j]))[::-1]
        taken = float(size[:n].sum() / size.sum()) if size.sum() > 0 else 0.0
        if taken > NEARLY_ALL:
            failed[j] = (
                f"{taken:.0%} of all the influence on '{name}' is that of "
                f"{_people(min(n, int(influences.moved[:, j].sum())))}"
            )
        elif taken > share:
            looked[j] = taken
    if failed:
        first = next(iter(failed.values()))
        return _check(influences, "dominance", "fail", f"{first[0].upper()}{first[1:]}.", list(failed))
    if looked:
        j = max(looked, key=lambda one: looked[one])
        return _check(
            influences,
            "dominance",
            "review",
            f"{looked[j]:.0%} of all the influence on '{influences.shown[j]}' is that of {_people(n)}. It is "
            "neither a total nor a mean, so that no rule says how much is too much.",
            [j, *(other for other in looked if other != j)],
        )
    return Check("dominance", "pass", "No one or two learners make up most of a number.")


def freedom(influences: Influences, policy: Policy) -> Check:
    """Learners behind the estimates of one list or column, minus how many estimates there are.

    Totals and means are left to the other checks: each is worked out on its own, and takes no freedom from the rest.
    """
    least = policy.minimum_freedom
    told = [
        j
        for j, name in enumerate(influences.names)
        if _FREEDOM.search(name.split(" / ")[-1]) or _FREEDOM.search(column_of(name))
        if influences.moved[:, j].any() and influences.probes.full[j] < least
    ]
    if told:
        return _check(
            influences,
            "freedom",
            "fail",
            f"'{influences.shown[told[0]]}' says that a model is left with fewer than {least} degrees of freedom.",
            told,
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
        return _check(
            influences,
            "freedom",
            "fail",
            f"The learners behind '{influences.shown[worst[1][0]]}' outnumber the estimates that rest on them by "
            f"{worst[0]}; at least {least} degrees of freedom are asked for.",
            list(dict.fromkeys(worst[1])),
        )
    return Check("freedom", "pass", f"Every group of estimates leaves at least {least} degrees of freedom.")


def _check(
    influences: Influences, name: str, verdict: CheckVerdict, reason: str, columns: Sequence[int]
) -> Check:
    return Check(name, verdict, reason, tuple(influences.shown[j] for j in columns[:MOST_NAMED]))


def _minority(influences: Influences, j: int) -> int:
    """Of a mean of two values only (a share of yes and no), how many learners have the rarer one; 0 for others."""
    if influences.kinds[j] != "mean" or len(groups := influences.distinct(j)) != 2:
        return 0
    return int(groups.min())


def _same(one: float | None, other: float) -> bool:
    if one is None:
        return False
    return one == other or (np.isnan(one) and np.isnan(other))


def _numbers(n: int, one: str, more: str) -> str:
    return f"One number {one}" if n == 1 else f"{n} numbers {more}"


def _people(n: int) -> str:
    return "one learner" if n == 1 else f"{n} learners"


def _any_of(n: int) -> str:
    return "one learner" if n == 1 else f"any of {n} learners"
