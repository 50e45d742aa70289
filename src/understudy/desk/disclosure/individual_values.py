"""Checks for results that are single learners: extremes and quantiles, and lists or tables of learners' values.

They cannot see a quantile over many rows per learner (it moves in many small steps, like a mean), or a random sample
of rows, which changes altogether when a learner is left out; rounding to the error of such a number leaves little
of it, and the review of the code warns.
"""

from __future__ import annotations

import re

import numpy as np

from understudy.desk.disclosure.influences import EXACT, MOST_STEPS, NOISE, TINY, Influences
from understudy.desk.disclosure.people_checks import column_of, in_columns, is_listed
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, Results

# A column with an entry for more than this share of the learners is nearly a table of them.
MAX_LENGTH_PER_LEARNER = 0.5
_A_LEARNER = re.compile(r"learner-\d+")


def extremes(influences: Influences, policy: Policy) -> Check:
    """Numbers that change only when a learner at an edge is left out: maxima, minima, quantiles."""
    check = Check.about("extremes", influences.shown)
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
        return check.fails(
            f"'{influences.shown[failed[0]]}' behaves like a maximum, a minimum or an outer quantile: it changes in a "
            f"few steps only, and fewer than {least} learners are on one side of it, so that it is or nearly is one "
            "learner's value.",
            failed,
        )
    if looked:
        return check.asks(
            f"'{influences.shown[looked[0]]}' changes in a few steps only, whoever is left out: it may be a median or "
            "a quantile, which is the value of one or two learners, or a statistic of yes-or-no answers. See in the "
            "code which it is.",
            looked,
        )
    return check.passes("No number behaves like a maximum, a minimum or a quantile of learners.")


def individuals(influences: Influences, answer: Results, policy: Policy) -> Check:
    """Lists and columns whose entries are learners, and texts that name them."""
    check = Check.about("individuals", influences.shown)
    n, least = influences.n_learners, policy.minimum_learners
    named = [text for text in answer.texts if _A_LEARNER.search(text)]
    if named:
        return check.fails(f"{len(named)} texts of the result are numbers of learners.")
    longest = max(in_columns(answer.text_cells).values(), key=len, default=[])
    # A list of texts that is always the same is part of the code.
    if influences.probes.entries and len(longest) >= MAX_LENGTH_PER_LEARNER * n:
        return check.fails(
            f"A list or column has {len(longest)} texts for {n} learners, and texts change when a learner is left out: "
            "it is nearly a table of learners."
        )
    for members in in_columns(influences.names).values():
        column = column_of(influences.shown[members[0]])
        few = int((influences.support[members] < least).sum() - _unmoved(influences, members))
        if len(members) >= MAX_LENGTH_PER_LEARNER * n and few > len(members) / 2:
            return check.fails(
                f"'{column}' has {len(members)} entries for {n} learners, and most rest on a few learners "
                "each: it is nearly a table of learners.",
                members,
            )
        if _moves_up(influences, members):
            return check.fails(
                f"The entries of '{column}' move up by a place when a learner is left out: it is a list of "
                "learners' or rows' own values.",
                members,
            )
    longest = max(in_columns(influences.names).values(), key=len, default=[])
    if len(longest) >= max(MAX_LENGTH_PER_LEARNER * n, least):
        return check.asks(
            f"'{column_of(influences.shown[longest[0]])}' has {len(longest)} entries for {n} learners. Each rests on "
            "enough learners, but look whether it is a curve or a table of learners.",
            longest,
        )
    return check.passes("No list or table has entries that are single learners.")


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
    # Counts and means come near each other by chance, and are distinguished by what they add up to.
    plain = np.array([influences.kinds[j] == "other" for j in members])
    moved = influences.moved[:, members] & ~np.isnan(after) & plain
    # An entry that was the same as its neighbour shows nothing when it becomes the neighbour.
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
    # A pair of which both have a part distinguished a mean from a median already.
    return not both and len(groups) == 2 and groups[0] == groups[1]
