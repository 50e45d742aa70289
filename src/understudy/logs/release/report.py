"""The custodian's report: everything measured, with pictures. It stays inside."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.core.attacks.transcript import EXPOSED
from understudy.core.pages.charts import Look, Point, curves
from understudy.core.pages.figures import ACCENT, MUTED, Figure, data
from understudy.core.pages.levels import levels_figure, risk_levels
from understudy.core.pages.render import render
from understudy.core.pages.words import certainty, verdict
from understudy.core.privacy.guarantee import Guarantee
from understudy.logs.audit import risk_figure, strongest_first
from understudy.logs.description import n_by_one_learner
from understudy.logs.interactions import Interactions, common_vocabulary
from understudy.logs.release.assessment import Assessment
from understudy.logs.utility import METRICS

# More would not be legible in the figure of shares.
MOST_ACTIONS = 60


def report_page(
    log: Interactions,
    synthetic: Interactions,
    assessment: Assessment,
    guarantee: Guarantee,
    card: dict[str, Any],
    report: dict[str, Any],
) -> str:
    """The report as a page."""
    n_actions, declared = log.n_actions, log.declared
    log, synthetic = common_vocabulary(log, synthetic)
    worst = assessment.worst
    levels = [
        dict(vars(level)) for level in risk_levels(guarantee, assessment.strongest, assessment.white_box)
    ]
    return render(
        "logs/release/report.html",
        card=card,
        report=report,
        assessment=assessment,
        metrics=METRICS,
        log=log,
        n_actions=n_actions,
        declared=declared,
        n_single=n_by_one_learner(log),
        verdict=verdict(worst.attack, worst.auc, assessment.low, assessment.high),
        certainty=certainty(assessment, assessment.chance),
        levels=levels,
        exposed=EXPOSED,
        levels_figure=levels_figure(levels),
        strongest_first=strongest_first(assessment.estimates),
        attacks_figure=risk_figure(assessment.estimates, assessment.chance),
        actions_figure=shares_figure(log, synthetic),
        lengths_figure=lengths_figure(log, synthetic),
    )


def shares_figure(log: Interactions, synthetic: Interactions) -> Figure:
    """Share of each action, real against synthetic, most frequent first (Vie, Rigaux and Minn 2022, Figure 3)."""
    import altair as alt

    real = np.bincount(log.action, minlength=log.n_actions) / max(log.n_rows, 1)
    fake = np.bincount(synthetic.action, minlength=log.n_actions) / max(synthetic.n_rows, 1)
    order = np.argsort(-real, kind="stable")[:MOST_ACTIONS]
    values = [
        {"rank": rank + 1, "share": float(share[j]), "log": name}
        for name, share in (("real", real), ("synthetic", fake))
        for rank, j in enumerate(order)
    ]
    base = alt.Chart(data(values)).encode(
        x=alt.X("rank:Q", title="actions, most frequent first", scale=alt.Scale(nice=False)),
        y=alt.Y("share:Q", title="share of attempts", axis=alt.Axis(format=".0%", tickCount=5)),
        color=_real_and_synthetic(),
    )
    area = base.transform_filter("datum.log == 'real'").mark_area(interpolate="step", opacity=0.35)
    line = base.transform_filter("datum.log == 'synthetic'").mark_line(interpolate="step", strokeWidth=2.5)
    distance = 0.5 * float(np.abs(real - fake).sum())
    return Figure.of(
        (area + line).properties(height=220),
        f"Shares of actions in the real and the synthetic log; they differ by {distance:.3f} in total variation.",
    )


def lengths_figure(log: Interactions, synthetic: Interactions) -> Figure:
    """Share of learners with at most so many rows."""
    points = [
        # The axis is logarithmic, and a learner without rows has no place on it.
        Point(max(1.0, float(np.quantile(lengths, share))), float(share), series=name)
        for name, lengths in (("real", log.lengths), ("synthetic", synthetic.lengths))
        for share in np.linspace(0.01, 0.99, 50)
    ]
    longest = max(float(point.at) for point in points)
    drawing = curves(
        points,
        ["attempts of a learner", "(about three times as many from mark to mark)"],
        "learners with at most so many",
        looks={"real": Look(MUTED, dots=False), "synthetic": Look(ACCENT, dots=False)},
        domain=[0.0, 1.0],
        axis=".0%",
        bands=True,
        logarithmic=True,
        ticks=[m * 10**e for e in range(7) for m in (1, 3) if m * 10**e <= max(longest, 3)],
        height=220,
    )
    medians = f"median {np.median(log.lengths):g} real, {np.median(synthetic.lengths):g} synthetic"
    return Figure.of(drawing.chart, f"Lengths of real and synthetic sequences: {medians}.")


def _real_and_synthetic() -> Any:
    import altair as alt

    return alt.Color(
        "log:N",
        scale=alt.Scale(domain=["real", "synthetic"], range=[MUTED, ACCENT]),
        legend=alt.Legend(orient="top", title=None),
    )
