"""Check for code that knows when it is looking at the real data, such as `if len(data) == 120`.

T_i + T_j - T_ij foretells T, and T_ij + T_ik - T_ijk foretells T_i: for an honest statistic two learners left out act
nearly like the sum of both. What leaves the desk is the foretold number, rounded, and not that of the full run,
so code that answers otherwise only when everybody is there writes into nothing. That it tries is seen here: the
full answer may miss what is foretold by a quarter of the rounding unit, or by what foretellings themselves are
off by, which the unit is four times as large as. Whether a number is missing is foretold like a number.

Statistics with chance in them (a bootstrap, a random split) are foretold badly: the answers without one learner
differ as if they were of other data. Their units are four times as large as the scatter, and a reviewer looks at the
code; a number that is nothing but chance fails.

Cannot see: code that behaves the same with one, two and three learners left out and otherwise with many. What it
writes is then an influence of the learner concerned, which the other checks measure, but the price, measured on
shadows, does not know of it; whether shadows are answered alike is a check of its own (`shadows`). And how
many digits a number has left follows from the scatter of its foretellings: code can choose, by making that
scatter, whether one digit more is rounded off, and tell a bit by it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from understudy.desk.disclosure.individual_values import own_values
from understudy.desk.disclosure.influences import EXACT, NOISE, TINY, Flags, Influences
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check

MOST_NAMED = 20
# How far the full answer may be from what is foretold: in standard deviations of T_i, and in those of the foretelling.
LARGEST_MISS = 0.5
SURE = 3.0
# Independent chance in every run makes foretellings scatter 1.7 times as much as T_i; more than this is no chance.
MOST_SCATTER = 3.0
# Of numbers that are nothing but chance the larger part of foretellings scatter by 2.2 times as much as T_i.
ALL_CHANCE = 1.75
# Share of pairs that may be wrong about whether a number is missing: some learner may be one that it hangs on.
MOST_GAPS = 0.25


def consistency(influences: Influences, units: Mapping[str, float], policy: Policy) -> Check:
    """Whether the full answer is one of a kind with those that lack a learner or two, given the units it leaves in."""
    probes = influences.probes
    if not len(probes.pairs):
        return Check(
            "consistency", "review", "There are too few learners to see whether the code knows the data."
        )
    jumped, lost, chancy = _misses(influences, units)
    if jumped:
        names = tuple(influences.shown[j] for j in jumped[:MOST_NAMED])
        return Check(
            "consistency",
            "fail",
            f"'{names[0]}' is not what the answers without one, two and three learners foretell: the code seems to "
            "answer otherwise when it sees all learners.",
            names,
        )
    if lost:
        names = tuple(influences.shown[j] for j in lost[:MOST_NAMED])
        return Check(
            "consistency",
            "fail",
            f"'{names[0]}' changes by nothing but chance when anybody is left out. If the code resamples or splits "
            "learners, it has to do so often enough, or learner by learner.",
            names,
        )
    forms = probes.forms
    one, two = forms[1 : 1 + probes.n_blocks], probes.forms_of_two
    if (
        (one != forms[0]).all()
        and (one >= 0).any()
        and (two[:, None] == one[probes.pairs]).any(axis=1).mean() > 0.5
    ):
        return Check(
            "consistency",
            "fail",
            "The names, texts or shape of the answer are others as soon as anybody is left out, and stay so "
            "when somebody else is: the code answers otherwise when it sees all learners.",
        )
    n_failed = int(probes.failed.sum())
    if n_failed:
        few = n_failed < policy.minimum_learners
        return Check(
            "consistency",
            "fail" if few else "review",
            f"The analysis gives no answer when one of {n_failed} "
            f"{'learners' if n_failed > 1 else 'learner'} is left out, "
            f"and does for everybody else{': it hangs on single learners' if few else ''}.",
        )
    if chancy:
        names = tuple(influences.shown[j] for j in chancy[:MOST_NAMED])
        return Check(
            "consistency",
            "review",
            f"'{names[0]}' changes as if by chance when anybody is left out, and was rounded to four times that. "
            "A bootstrap or a random start does that; see in the code whether there is one.",
            names,
        )
    return Check("consistency", "pass", "The full answer is like those without one or two learners.")


def _misses(influences: Influences, units: Mapping[str, float]) -> tuple[list[int], list[int], list[int]]:
    """Numbers that are not as foretold, those that are nothing but chance, and those with some chance in them."""
    probes, told = influences.probes, influences.foretold
    moved = np.asarray(influences.moved.any(axis=0))
    one = probes.without_one
    missed: list[int] = np.flatnonzero(_unforeseen_gaps(influences)).tolist()
    lost: list[int] = []
    chancy: list[int] = []
    listed = set(own_values(influences))
    for j, name in enumerate(influences.names):
        if j in listed or np.isnan(probes.full[j]) or np.isnan(told.values[j]):
            continue
        full, spread, unit = float(probes.full[j]), float(np.nanstd(one[:, j])), units.get(name, 0.0)
        noise = TINY + 2 * NOISE * abs(full) + EXACT * float(np.nanmax(np.abs(influences.steps[:, j])))
        allowed = max(LARGEST_MISS * spread, SURE * min(float(told.spread[j]), MOST_SCATTER * spread))
        miss, error = abs(full - float(told.values[j])), float(told.error[j])
        # A quantile goes in steps, and the full answer is one of those foretold though not the middle one.
        outside = max(float(told.lowest[j]) - full, full - float(told.highest[j])) > noise
        gross = outside and miss > allowed + noise
        deeper = abs(float(np.nan_to_num(told.deeper[j]))) > allowed + noise and not influences.in_steps(j)
        # Less than that is what foretelling itself is off by: with the unit, which is as coarse, nothing is gained.
        switched = bool(moved[j]) and miss > max(unit / 4, error) + noise
        if gross or deeper or switched or told.scatter[j] > 2 * MOST_SCATTER * spread + noise:
            missed.append(j)
        elif told.scatter[j] > LARGEST_MISS * spread + noise and not influences.in_steps(j):
            (lost if told.scatter[j] > ALL_CHANCE * spread else chancy).append(j)
    return missed, lost, chancy


def _unforeseen_gaps(influences: Influences) -> Flags:
    """Numbers of which being there or missing is not what answers without one and two learners foretell."""
    probes = influences.probes
    missing = np.isnan(probes.full)
    ran_one, ran_two = ~probes.failed, probes.forms_of_two >= 0
    one, two = np.isnan(probes.without_one), np.isnan(probes.without_two)
    usable = ran_two & ran_one[probes.pairs].all(axis=1)
    if not usable.any():
        return np.zeros(len(missing), dtype=bool)
    foretold = one[probes.pairs].sum(axis=1, dtype=np.int64) - two
    off = (foretold != missing)[usable].mean(axis=0) > MOST_GAPS
    found = off | ((one[ran_one] != missing).mean(axis=0) > 0.5)
    # A list of learners' own values loses its end with each of them, and fails for what it is.
    found[own_values(influences)] = False
    return np.asarray(found)
