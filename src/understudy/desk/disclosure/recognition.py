"""Check for code that knows when it is looking at the real data, such as `if len(data) == 120`.

For an honest statistic the step from all learners to all but one is like the step from there to all but two.
Code that answers otherwise only when everybody is there jumps once and then stands still. The jump that can be
seen is one typical influence of a learner, which is less than the unit that results are rounded to.

Cannot see: code that behaves the same with one or two learners left out and otherwise with many; that gains
nothing here, as what the number tells about one learner is measured on the same side of the switch.
"""

from __future__ import annotations

import numpy as np

from understudy.desk.checks import Check
from understudy.desk.disclosure.influences import EXACT, NOISE, TINY, Influences
from understudy.desk.policies import Policy

MOST_NAMED = 20
# In standard deviations of T_i; and how sure the difference of both mean steps must be, in its standard errors.
LARGEST_JUMP = 1.0
SURE = 5.0


def consistency(influences: Influences, policy: Policy) -> Check:
    """Whether the full answer is one of a kind with those that lack a learner or two."""
    probes = influences.probes
    if not len(probes.pairs):
        return Check("consistency", "review", "There are too few learners to see whether the code knows the data.")
    jumped = _jumps(influences)
    if jumped:
        names = tuple(influences.names[j] for j in jumped[:MOST_NAMED])
        return Check(
            "consistency",
            "fail",
            f"'{names[0]}' jumps when anybody at all is left out and does not jump again when somebody else is left out "
            "too: the code answers otherwise when it sees all learners.",
            names,
        )
    forms = probes.forms
    one, two = forms[1 : 1 + probes.n_blocks], forms[1 + probes.n_blocks :]
    if (one != forms[0]).all() and (one >= 0).any() and (two[:, None] == one[probes.pairs]).any(axis=1).mean() > 0.5:
        return Check(
            "consistency",
            "fail",
            "The names, texts or shape of the answer are others as soon as anybody is left out, and stay so when somebody "
            "else is: the code answers otherwise when it sees all learners.",
        )
    n_failed = int(probes.failed.sum())
    if n_failed:
        few = n_failed < policy.minimum_learners
        return Check(
            "consistency",
            "fail" if few else "review",
            f"The analysis gives no answer when one of {n_failed} {'learners' if n_failed > 1 else 'learner'} is left out, "
            f"and does for everybody else{': it hangs on single learners' if few else ''}.",
        )
    return Check("consistency", "pass", "The full answer is like those without one or two learners.")


def _jumps(influences: Influences) -> list[int]:
    probes = influences.probes
    full, one, two = probes.full, probes.without_one, probes.without_two
    a, b = probes.pairs.T
    # Numbers that are there, or missing, only when everybody is.
    missing = np.isnan(full)
    ran = ~probes.failed
    alone = ran.any() & (np.isnan(one[ran]) != missing).all(axis=0)
    ran_two = probes.forms[1 + probes.n_blocks :] >= 0
    still = ran_two.any() & (np.isnan(two[ran_two]) != missing).all(axis=0)
    found = alone & still & ~_shorter_lists(influences)
    with np.errstate(invalid="ignore"):
        first = full - one
        second = np.concatenate([one[a] - two, one[b] - two])
    for j in range(len(full)):
        before, after = first[~np.isnan(first[:, j]), j], second[~np.isnan(second[:, j]), j]
        if len(before) < 4 or len(after) < 4:
            continue
        # The spread of steps about their own mean: a total has steps of one sign, and steps that are alike are no jump.
        spread = float(before.std())
        noise = TINY + (NOISE + EXACT * 1e-3) * abs(full[j]) + EXACT * float(np.abs(after).max())
        error = float(np.hypot(spread / np.sqrt(len(before)), after.std() / np.sqrt(len(after) / 2)))
        found[j] |= abs(before.mean() - after.mean()) > max(LARGEST_JUMP * spread, SURE * error) + noise
    return [int(j) for j in np.flatnonzero(found)]


def _shorter_lists(influences: Influences) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Last entries of lists that get shorter by one with each learner: they list people and are held for that."""
    probes = influences.probes
    there_one = (~np.isnan(probes.without_one)).sum(axis=1)
    there_two = (~np.isnan(probes.without_two)).sum(axis=1)
    shrinks = bool(there_two.mean() < there_one.mean() - 0.5) if len(there_two) else False
    return np.full(len(probes.full), shrinks)
