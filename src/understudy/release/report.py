"""The custodian's report: everything measured, with pictures. It stays inside."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.pages import Figure, render
from understudy.pages.figures import ACCENT, MUTED, WARNING, data
from understudy.records import Interactions
from understudy.release.assessment import Assessment
from understudy.utility import METRICS


def report_page(
    log: Interactions,
    synthetic: Interactions,
    assessment: Assessment,
    card: dict[str, Any],
    report: dict[str, Any],
) -> str:
    """The report as a page."""
    return render(
        "release/report.html",
        card=card,
        report=report,
        assessment=assessment,
        metrics=METRICS,
        log=log,
        attacks_figure=attacks_figure(assessment),
        actions_figure=shares_figure(log, synthetic),
        lengths_figure=lengths_figure(log, synthetic),
    )


def attacks_figure(assessment: Assessment) -> Figure:
    """Every attack with its interval; guessing is at 0.5."""
    import altair as alt

    values = [
        {"attack": e.attack, "auc": e.auc, "low": e.low, "high": e.high, "kind": "attack"}
        for e in assessment.estimates
    ]
    auc, low, high = assessment.control
    values.append({"attack": "control (strongest)", "auc": auc, "low": low, "high": high, "kind": "control"})
    scale = alt.Scale(domain=[0.4, 1.0], clamp=True)
    y = alt.Y("attack:N", sort=[str(v["attack"]) for v in values], title=None)
    colour = alt.Color(
        "kind:N", scale=alt.Scale(domain=["attack", "control"], range=[WARNING, MUTED]), legend=None
    )
    base = alt.Chart(data(values))
    interval = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", scale=scale, title="members found (AUC): 0.5 is guessing, 1 is everybody"),
        x2="high:Q",
        y=y,
        color=colour,
    )
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("auc:Q", scale=scale), y=y, color=colour
    )
    guess = alt.Chart(data([{"auc": 0.5}])).mark_rule(color=MUTED, strokeDash=[4, 4]).encode(x="auc:Q")
    chart = (guess + interval + dots).properties(width=520, height=alt.Step(28))
    words = "; ".join(f"{v['attack']} {v['auc']:.2f} ({v['low']:.2f} to {v['high']:.2f})" for v in values)
    return Figure.of(chart, f"AUC of each attack with its interval: {words}.")


def shares_figure(log: Interactions, synthetic: Interactions) -> Figure:
    """Share of each action, real against synthetic (seed, Figure 3), most frequent first."""
    import altair as alt

    real = np.bincount(log.action, minlength=log.n_actions) / max(log.n_rows, 1)
    fake = np.bincount(synthetic.action, minlength=log.n_actions) / max(synthetic.n_rows, 1)
    order = np.argsort(-real)[:60]
    values = [
        {"rank": rank + 1, "share": float(share[j]), "log": name}
        for name, share in (("real", real), ("synthetic", fake))
        for rank, j in enumerate(order)
    ]
    chart = (
        alt.Chart(data(values))
        .mark_line(interpolate="step")
        .encode(
            x=alt.X("rank:Q", title="actions, most frequent first (up to 60)"),
            y=alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="%")),
            color=_real_and_synthetic(),
        )
        .properties(width=520, height=220)
    )
    distance = 0.5 * float(np.abs(real - fake).sum())
    return Figure.of(
        chart,
        f"Shares of actions in the real and the synthetic log; they differ by {distance:.3f} in total variation.",
    )


def lengths_figure(log: Interactions, synthetic: Interactions) -> Figure:
    """Share of learners with at most so many rows."""
    import altair as alt

    values = []
    for name, lengths in (("real", log.lengths), ("synthetic", synthetic.lengths)):
        for share in np.linspace(0.01, 0.99, 50):
            values.append({"rows": float(np.quantile(lengths, share)), "share": float(share), "log": name})
    chart = (
        alt.Chart(data(values))
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("rows:Q", scale=alt.Scale(type="log"), title="rows of a learner"),
            y=alt.Y("share:Q", title="learners with at most so many", axis=alt.Axis(format="%")),
            color=_real_and_synthetic(),
        )
        .properties(width=520, height=220)
    )
    medians = f"median {np.median(log.lengths):g} real, {np.median(synthetic.lengths):g} synthetic"
    return Figure.of(chart, f"Lengths of real and synthetic sequences: {medians}.")


def _real_and_synthetic() -> Any:
    import altair as alt

    return alt.Color(
        "log:N",
        scale=alt.Scale(domain=["real", "synthetic"], range=[MUTED, ACCENT]),
        legend=alt.Legend(orient="top", title=None),
    )
