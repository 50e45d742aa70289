"""Checks for results that are individuals: extremes and quantiles, and lists or tables of learners' values.

Cannot see: a quantile over many rows per learner (it moves in many small steps, like a mean), or a random sample
of rows, which changes altogether when anybody is left out; rounding to the error of such a number leaves little
of it, and the reading of the code warns.
"""

from __future__ import annotations

import re

import numpy as np

from understudy.desk.disclosure.influences import EXACT, MOST_STEPS, NOISE, TINY, Influences
from understudy.desk.disclosure.people_checks import column_of, in_columns, is_listed
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, Results

MOST_NAMED = 20
# Of the learners: a column as long as this is nearly a table of them.
NEARLY_ALL = 0.5
_A_LEARNER = re.compile(r"learner-\d+")


def extremes(influences: Influences, policy: Policy) -> Check:
    """Numbers that stand still except when a learner on their edge goes: maxima, minima, quantiles."""
    least = policy.minimum_learners
    failed: list[int] = []
    looked: list[int] = []
    for j in range(len(influences.names)):
        if influences.kinds[j] == "constant":
            continue
        groups = influences.distinct(j)
        movers = int(influences.moved[:, j].sum())
        parts = influences.contributions(j)
        # A count or a share of yes and no has two steps as well, and each learner gives 0 or 1.
        if parts is not None and (np.abs(parts - np.rint(parts)) < 1e-6).all():
            continue
        if influences.kinds[j] == "total" or not 0 < len(groups) <= MOST_STEPS:
            continue
        if parts is not None and not _even_halves(influences, j):
            continue
        steps = influences.steps[influences.moved[:, j], j]
        beside = min(int((steps > 0).sum()), int((steps < 0).sum()))
        if movers < least or (beside < least and len(groups) < movers):
            failed.append(j)
        else:
            looked.append(j)
    if failed:
        names = tuple(influences.shown[j] for j in failed[:MOST_NAMED])
        return Check(
            "extremes",
            "fail",
            f"'{names[0]}' behaves like a maximum, a minimum or an outer quantile: it changes in a few steps "
            f"only, and fewer than {least} learners are on one side of it, so it is or nearly is one "
            "learner's value.",
            names,
        )
    if looked:
        names = tuple(influences.shown[j] for j in looked[:MOST_NAMED])
        return Check(
            "extremes",
            "review",
            f"'{names[0]}' changes in a few steps only, whoever is left out: it may be a median or a quantile, which "
            "is the value of one or two learners, or a statistic of yes-or-no answers. See in the code which.",
            names,
        )
    return Check("extremes", "pass", "No number behaves like a maximum, a minimum or a quantile of learners.")


def individuals(influences: Influences, answer: Results, policy: Policy) -> Check:
    """Lists and columns whose entries are learners, and texts that name them."""
    n, least = influences.n_learners, policy.minimum_learners
    named = [text for text in answer.texts if _A_LEARNER.search(text)]
    if named:
        return Check("individuals", "fail", f"{len(named)} texts of the result are numbers of learners.")
    listed = _listed_texts(influences, answer)
    if listed is not None:
        return listed
    for members in in_columns(influences.names).values():
        column = column_of(influences.shown[members[0]])
        shown = tuple(influences.shown[j] for j in members[:MOST_NAMED])
        few = int((influences.support[members] < least).sum() - _unmoved(influences, members))
        if len(members) >= NEARLY_ALL * n and few > len(members) / 2:
            return Check(
                "individuals",
                "fail",
                f"'{column}' has {len(members)} entries for {n} learners, and most rest on a few learners "
                "each: it is nearly a table of individuals.",
                shown,
            )
        if _moves_up(influences, members):
            return Check(
                "individuals",
                "fail",
                f"The entries of '{column}' move up by a place when a learner is left out: it is a list of "
                "learners' or rows' own values.",
                shown,
            )
    longest = max(in_columns(influences.names).values(), key=len, default=[])
    if len(longest) >= max(NEARLY_ALL * n, least):
        members, column = longest, column_of(influences.shown[longest[0]])
        return Check(
            "individuals",
            "review",
            f"'{column}' has {len(members)} entries for {n} learners. Each rests on enough learners, but "
            "look whether it is a curve or a table of people.",
            tuple(influences.shown[j] for j in members[:MOST_NAMED]),
        )
    return Check("individuals", "pass", "No list or table has entries that are single learners.")


def _listed_texts(influences: Influences, answer: Results) -> Check | None:
    """A list or column of texts that is nearly as long as there are learners, unless it is always the same."""
    longest = max(in_columns(answer.text_cells).values(), key=len, default=[])
    if not influences.probes.entries or len(longest) < NEARLY_ALL * influences.n_learners:
        return None
    return Check(
        "individuals",
        "fail",
        f"A list or column has {len(longest)} texts for {influences.n_learners} learners, and texts change when "
        "somebody is left out: it is nearly a table of individuals.",
    )


def _unmoved(influences: Influences, members: list[int]) -> int:
    return int((~influences.moved[:, members].any(axis=0)).sum())


def own_values(influences: Influences) -> list[int]:
    """Positions of the numbers in lists of learners' own values, which no statistic of them explains."""
    columns = in_columns(influences.names).values()
    return [j for members in columns if _moves_up(influences, members) for j in members]


def _moves_up(influences: Influences, members: list[int]) -> bool:
    """Whether most entries that move become another entry of the same list, exactly."""
    if len(members) < 3 or not all(is_listed(influences.names[j]) for j in members):
        return False
    full = influences.probes.full[members]
    after = influences.probes.without_one[:, members]
    # Counts and means come near each other by chance, and are told by what they add up to.
    plain = np.array([influences.kinds[j] == "other" for j in members])
    moved = influences.moved[:, members] & ~np.isnan(after) & plain
    # An entry that stood the same as its neighbour tells nothing when it becomes the neighbour.
    order = np.unique(full[~np.isnan(full)])
    if len(order) < 3 or not moved.any():
        return False
    size = NOISE * np.abs(after) + TINY + EXACT * np.diff(order).min()
    place = np.clip(np.searchsorted(order, after), 1, len(order) - 1)
    copied = np.minimum(np.abs(after - order[place]), np.abs(after - order[place - 1])) <= size
    return bool(copied[moved].mean() > 0.5)


def _even_halves(influences: Influences, j: int) -> bool:
    """A mean in two steps of which each half of the learners takes one: a median of an even number looks so."""
    groups = influences.distinct(j)
    both = (
        influences.moved[influences.probes.pairs, j].all(axis=1).any()
        if len(influences.probes.pairs)
        else False
    )
    # A pair of which both have a part told a mean from a median already.
    return not both and len(groups) == 2 and groups[0] == groups[1]
