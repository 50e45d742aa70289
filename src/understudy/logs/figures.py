"""Figures of attacks on logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from understudy.core.attacks.estimate import ChanceLevel, RiskEstimate
from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure, data
from understudy.core.pages.words import GUESSING


def strongest_first(estimates: Sequence[RiskEstimate]) -> list[RiskEstimate]:
    """The attacks by their AUC."""
    return sorted(estimates, key=lambda estimate: -estimate.auc)


def risk_figure(estimates: Sequence[RiskEstimate], chance: ChanceLevel | None = None) -> Figure:
    """Every attack with its interval, the strongest first; guessing is at 0.5, and what luck alone gives is last."""
    import altair as alt

    values = [
        {"attack": e.attack, "auc": e.auc, "low": e.low, "high": e.high, "kind": "attack"}
        for e in strongest_first(estimates)
    ]
    values[0]["kind"] = "strongest"
    if chance is not None:
        values.append({"attack": "luck alone", **vars(chance), "kind": "luck"})
    x_axis: dict[str, Any] = {
        "scale": alt.Scale(domain=[0.4, 1.0], clamp=True),
        "axis": alt.Axis(tickCount=6, format=".1f"),
        "title": ["members distinguished from others (AUC)", "0.5 is guessing, 1 is every time"],
    }
    y = alt.Y("attack:N", sort=[str(v["attack"]) for v in values], title=None)
    kinds = alt.Scale(domain=["strongest", "attack", "luck"], range=[WARNING, ACCENT, MUTED])
    colour = alt.Color("kind:N", scale=kinds, legend=None)
    base = alt.Chart(data(values))
    interval = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", **x_axis), x2="high:Q", y=y, color=colour
    )
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        x=alt.X("auc:Q", **x_axis), y=y, color=colour
    )
    guess = alt.Chart(data([{"auc": GUESSING}])).mark_rule(color=INK, strokeDash=[4, 4])
    guess = guess.encode(x=alt.X("auc:Q", **x_axis))
    chart = (guess + interval + dots).properties(height=alt.Step(32))
    words = "; ".join(f"{v['attack']} {v['auc']:.2f} ({v['low']:.2f} to {v['high']:.2f})" for v in values)
    return Figure.of(chart, f"AUC of each attack with its interval: {words}. Guessing is 0.5.")
