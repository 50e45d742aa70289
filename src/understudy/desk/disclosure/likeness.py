"""Check for code that behaves otherwise on shadows, which hold learners twice, so that its price looks small.

To first order, a statistic on a shadow is T plus the sum over learners of (how often they are in it - 1) times
their influence, T - T_i: what leaving out each learner showed foretells what the shadows give, and how much they
scatter (the jackknife's standard error). Code that recognises a shadow, by its double rows, does not follow that.

Cannot see: statistics that bend so much that a first order says little; those are for a reviewer to look at.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from understudy.desk.checks import Check
from understudy.desk.disclosure.influences import Influences
from understudy.desk.results import Floats
from understudy.desk.risk.parts import parts_differ
from understudy.desk.risk.shadows import ShadowBank

NAME = "shadows"
MOST_NAMED = 20
# Standard deviation over shadows, in standard errors of the jackknife: 1 for means, whoever is far out.
HARDLY = 0.02
CALM = 0.25
# Correlation with what is foretold; answers that have nothing to do with it scatter around 0 by 1 / sqrt(n_shadows).
FORETOLD = 0.3


def likeness(influences: Influences, values: Floats, bank: ShadowBank) -> Check:
    """Whether the answers on shadows (rows) are those of the same code as the answers without single learners."""
    values = values[:, : len(influences.names)]
    failed = float(np.isnan(values).all(axis=1).mean()) if values.size else 0.0
    if failed > 0.5 and not influences.probes.failed.any():
        return Check(
            NAME,
            "fail",
            f"The analysis gave no answer on {failed:.0%} of the shadows and always when single learners were left "
            "out: its price was not measured.",
        )
    if not influences.probes.one_by_one:
        return Check(NAME, "pass", "With so many learners, left out in blocks, shadows are not compared.")
    still, strange = _unlike(influences, values, bank)
    if still:
        names = tuple(influences.shown[j] for j in still[:MOST_NAMED])
        return Check(
            NAME,
            "fail",
            f"'{names[0]}' moves when single learners are left out and hardly on the shadows: the code seems to "
            "know them, and its price is not to be believed.",
            names,
        )
    if strange:
        names = tuple(influences.shown[j] for j in strange[:MOST_NAMED])
        return Check(
            NAME,
            "review",
            f"What '{names[0]}' is on the shadows has little to do with what leaving out single learners foretells. "
            "Statistics that jump do that, and so does code that recognises learners who are in twice: see whether "
            "it counts learners or looks for equal rows.",
            names,
        )
    return Check(NAME, "pass", "Answers on the shadows are as leaving out single learners foretells.")


def _unlike(influences: Influences, values: Floats, bank: ShadowBank) -> tuple[list[int], list[int]]:
    foretold = (bank.counts - 1.0) @ influences.steps
    still, strange = [], []
    for j in range(len(influences.names)):
        there = ~np.isnan(values[:, j])
        error = float(influences.standard_error[j])
        if error <= 0 or not influences.moved[:, j].any() or there.sum() < 20:
            continue
        spread = float(values[there, j].std())
        if spread < HARDLY * error:
            still.append(j)
        elif (
            spread < CALM * error
            or _rank_correlation(values[there, j], foretold[there, j]) < FORETOLD
            or parts_differ(
                values[:, j], bank, influences.probes.full[j], influences.probes.without_one[:, j]
            )
        ):
            strange.append(j)
    return still, strange


def _rank_correlation(one: Floats, other: Floats) -> float:
    """Of ranks: a p value bends, and goes the same way."""
    found = float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])
    return 0.0 if np.isnan(found) else found
