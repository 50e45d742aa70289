"""Check for code that knows when it is looking at the real data, such as `if len(data) == 120`.

T_i + T_j - T_ij foretells T: for an honest statistic two learners left out act nearly like the sum of both, so
the answers that lack one or two learners say what the full answer must be. Code that answers otherwise only when
everybody is there misses that by more than half a typical influence, which is less than the unit that
results are rounded to.

Statistics with chance in them (a bootstrap, a random start) are foretold badly. They are allowed to miss by
as much as the foretellings scatter, and are for a reviewer to look at: within that scatter code could hide some
digits. Rounding leaves few of them, as the standard error of such a number is large too.

Cannot see: code that behaves the same with one or two learners left out and otherwise with many; that gains
nothing here, as what the number tells about one learner is measured on the same side of the switch.
"""

from __future__ import annotations

import numpy as np

from understudy.desk.checks import Check
from understudy.desk.disclosure.influences import EXACT, NOISE, TINY, Flags, Influences
from understudy.desk.disclosure.persons import own_values
from understudy.desk.policies import Policy

MOST_NAMED = 20
# How far the full answer may be from what is foretold: in standard deviations of T_i, and in those of the foretelling.
LARGEST_MISS = 0.5
SURE = 3.0
# Independent chance in every run makes foretellings scatter 1.7 times as much as T_i; more than this is no chance.
MOST_SCATTER = 3.0


def consistency(influences: Influences, policy: Policy) -> Check:
    """Whether the full answer is one of a kind with those that lack a learner or two."""
    probes = influences.probes
    if not len(probes.pairs):
        return Check(
            "consistency", "review", "There are too few learners to see whether the code knows the data."
        )
    jumped, chancy = _misses(influences)
    if jumped:
        names = tuple(influences.shown[j] for j in jumped[:MOST_NAMED])
        return Check(
            "consistency",
            "fail",
            f"'{names[0]}' is not what the answers without one and without two learners foretell: the code seems to "
            "answer otherwise when it sees all learners.",
            names,
        )
    forms = probes.forms
    one, two = forms[1 : 1 + probes.n_blocks], forms[1 + probes.n_blocks :]
    if (
        (one != forms[0]).all()
        and (one >= 0).any()
        and (two[:, None] == one[probes.pairs]).any(axis=1).mean() > 0.5
    ):
        return Check(
            "consistency",
            "fail",
            "The names, texts or shape of the answer are others as soon as anybody is left out, and stay "
            "so when somebody "
            "else is: the code answers otherwise when it sees all learners.",
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
            f"'{names[0]}' changes as if by chance when anybody is left out. A bootstrap or a random start "
            "does that; see in "
            "the code whether there is one.",
            names,
        )
    return Check("consistency", "pass", "The full answer is like those without one or two learners.")


def _misses(influences: Influences) -> tuple[list[int], list[int]]:
    """Numbers that are not as foretold, and those that cannot be foretold."""
    probes = influences.probes
    full, one, two = probes.full, probes.without_one, probes.without_two
    a, b = probes.pairs.T
    missed, chancy = [], []
    alone = _only_with_all(influences)
    listed = set(own_values(influences))
    for j in range(len(full)):
        if j in listed:
            continue
        foretold = one[a, j] + one[b, j] - two[:, j]
        foretold = foretold[~np.isnan(foretold)]
        if alone[j]:
            missed.append(j)
        if np.isnan(full[j]) or len(foretold) < 4:
            continue
        spread = float(np.nanstd(one[:, j]))
        scatter = float(foretold.std())
        noise = TINY + 2 * NOISE * abs(full[j]) + EXACT * float(np.nanmax(np.abs(influences.steps[:, j])))
        allowed = max(LARGEST_MISS * spread, SURE * min(scatter, MOST_SCATTER * spread))
        typical = float(np.median(np.abs(foretold - np.median(foretold))))
        # A quantile goes in steps, and the full answer is one of those foretold though not the middle one.
        outside = max(float(foretold.min()) - full[j], full[j] - float(foretold.max())) > noise
        far = abs(full[j] - float(np.median(foretold))) > allowed + noise
        if (outside and far) or typical > MOST_SCATTER * spread + noise:
            missed.append(j)
        elif typical > LARGEST_MISS * spread + noise:
            chancy.append(j)
    return missed, chancy


def _only_with_all(influences: Influences) -> Flags:
    """Numbers that are there, or missing, only when everybody is; not the ends of lists that shrink by "
    "each learner."""
    probes = influences.probes
    missing = np.isnan(probes.full)
    ran_one, ran_two = ~probes.failed, probes.forms[1 + probes.n_blocks :] >= 0
    one, two = np.isnan(probes.without_one[ran_one]), np.isnan(probes.without_two[ran_two])
    if not len(one) or not len(two) or two.sum(axis=1).mean() > one.sum(axis=1).mean() + 0.5:
        return np.zeros(len(missing), dtype=bool)
    return np.asarray((one != missing).all(axis=0) & (two != missing).all(axis=0))
