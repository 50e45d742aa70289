"""Check for code that recognises the real data, such as `if len(data) == 120`.

T_i + T_j - T_ij predicts T, and T_ij + T_ik - T_ijk predicts T_i: for an honest statistic, leaving out two learners
acts nearly like the sum of leaving out each. What leaves the desk is the predicted number, rounded, and not that of
the full run, so code that answers differently only when all learners are there writes into nothing. That it tries is
seen here: the full answer may miss the prediction by a quarter of the rounding unit, or by the error of predictions
themselves, four times which the unit is. Whether a number is missing is predicted like a number.

Statistics with chance in them (a bootstrap, a random split) are predicted badly: the answers without one learner
differ as if they were about other data. Their units are four times as large as the scatter, and a reviewer looks at
the code; a number that is nothing but chance fails.

The check cannot see code that behaves the same with one, two and three learners left out and differently with many.
What it writes is then an influence of the learner concerned, which the other checks measure, but the price, measured
on shadows, does not know of it; whether shadows are answered alike is a check of its own (`shadows`). And how many
digits of a number are left follows from the scatter of its predictions: by making that scatter, code can choose
whether one more digit is rounded off, and so reveal a bit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from understudy.desk.disclosure.individual_values import own_values
from understudy.desk.disclosure.influences import EXACT, NOISE, TINY, Flags, Influences
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check

# How far the full answer may be from the prediction: in standard deviations of T_i, and in those of the prediction.
MAX_MISS = 0.5
MAX_MISS_IN_SPREADS = 3.0
# Independent chance in every run makes predictions scatter 1.7 times as much as T_i; more than this is not chance.
MAX_SCATTER = 3.0
# Most predictions of a number that is nothing but chance scatter 2.2 times as much as T_i.
MIN_SCATTER_OF_CHANCE = 1.75
# Share of pairs that may be wrong about whether a number is missing: it may depend on one of the learners.
MAX_SHARE_OF_GAPS = 0.25


def consistency(influences: Influences, units: Mapping[str, float], policy: Policy) -> Check:
    """Whether the full answer is one of a kind with those that lack a learner or two, given the units it leaves in."""
    check, probes = Check.about("consistency", influences.shown), influences.probes
    if not len(probes.pairs):
        return check.asks("There are too few learners to see whether the code recognises the data.")
    missed, random, partly_random = _misses(influences, units)
    if missed:
        return check.fails(
            f"'{influences.shown[missed[0]]}' is not what the answers without one, two and three learners predict: the "
            "code seems to answer differently when it sees all learners.",
            missed,
        )
    if random:
        return check.fails(
            f"'{influences.shown[random[0]]}' changes by nothing but chance when a learner is left out. If the code "
            "resamples or splits learners, it has to do so often enough, or learner by learner.",
            random,
        )
    forms = probes.forms
    without_one, without_two = forms[1 : 1 + probes.n_blocks], probes.forms_of_two
    if (
        (without_one != forms[0]).all()
        and (without_one >= 0).any()
        and (without_two[:, None] == without_one[probes.pairs]).any(axis=1).mean() > 0.5
    ):
        return check.fails(
            "The names, texts or shape of the answer change as soon as any learner is left out, and stay so when "
            "another one is: the code answers differently when it sees all learners."
        )
    n_failed = int(probes.failed.sum())
    if n_failed:
        few = n_failed < policy.minimum_learners
        return (check.fails if few else check.asks)(
            f"The analysis gives no answer when {_one_of(n_failed)} is left out, and does for all others"
            f"{': it depends on single learners' if few else ''}."
        )
    if partly_random:
        return check.asks(
            f"'{influences.shown[partly_random[0]]}' changes as if by chance when a learner is left out, and was "
            "rounded to four times that. A bootstrap or a random start does that: see whether the code has one.",
            partly_random,
        )
    return check.passes("The full answer is like those without one or two learners.")


def _one_of(n: int) -> str:
    return "one learner" if n == 1 else f"one of {n} learners"


def _misses(influences: Influences, units: Mapping[str, float]) -> tuple[list[int], list[int], list[int]]:
    """Numbers that are not as predicted, those that are nothing but chance, and those with some chance in them."""
    probes, predicted = influences.probes, influences.predicted
    moved = np.asarray(influences.moved.any(axis=0))
    missed: list[int] = np.flatnonzero(_unpredicted_gaps(influences)).tolist()
    random: list[int] = []
    partly_random: list[int] = []
    listed = set(own_values(influences))
    for j, name in enumerate(influences.names):
        if j in listed or np.isnan(probes.full[j]) or np.isnan(predicted.values[j]):
            continue
        full, spread, unit = (
            float(probes.full[j]),
            float(np.nanstd(probes.without_one[:, j])),
            units.get(name, 0.0),
        )
        noise = TINY + 2 * NOISE * abs(full) + EXACT * float(np.nanmax(np.abs(influences.steps[:, j])))
        allowed = max(
            MAX_MISS * spread, MAX_MISS_IN_SPREADS * min(float(predicted.spread[j]), MAX_SCATTER * spread)
        )
        miss, error = abs(full - float(predicted.values[j])), float(predicted.error[j])
        # A quantile goes in steps, and the full answer is one of those predicted though not the middle one.
        outside = max(float(predicted.lowest[j]) - full, full - float(predicted.highest[j])) > noise
        gross = outside and miss > allowed + noise
        deeper = abs(float(np.nan_to_num(predicted.deeper[j]))) > allowed + noise and not influences.in_steps(
            j
        )
        # Less than that is the error of prediction itself: with the unit, which is as coarse, nothing is gained.
        switched = bool(moved[j]) and miss > max(unit / 4, error) + noise
        scatter = float(predicted.scatter[j])
        if gross or deeper or switched or scatter > 2 * MAX_SCATTER * spread + noise:
            missed.append(j)
        elif scatter > MAX_MISS * spread + noise and not influences.in_steps(j):
            (random if scatter > MIN_SCATTER_OF_CHANCE * spread else partly_random).append(j)
    return missed, random, partly_random


def _unpredicted_gaps(influences: Influences) -> Flags:
    """Numbers that are there or missing although answers without one and two learners predict otherwise."""
    probes = influences.probes
    missing = np.isnan(probes.full)
    ran_one, ran_two = ~probes.failed, probes.forms_of_two >= 0
    one, two = np.isnan(probes.without_one), np.isnan(probes.without_two)
    usable = ran_two & ran_one[probes.pairs].all(axis=1)
    if not usable.any():
        return np.zeros(len(missing), dtype=bool)
    predicted = one[probes.pairs].sum(axis=1, dtype=np.int64) - two
    off = (predicted != missing)[usable].mean(axis=0) > MAX_SHARE_OF_GAPS
    found = off | ((one[ran_one] != missing).mean(axis=0) > 0.5)
    # A list of learners' own values loses its end with each of them, and fails by another check.
    found[own_values(influences)] = False
    return np.asarray(found)
