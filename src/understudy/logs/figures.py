"""Figures of attacks on logs."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.core.attacks.estimate import ChanceLevel, RiskEstimate
from understudy.core.pages.charts import Look, Point, dots
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure
from understudy.core.pages.words import GUESSING


def strongest_first(estimates: Sequence[RiskEstimate]) -> list[RiskEstimate]:
    """The attacks by their AUC."""
    return sorted(estimates, key=lambda estimate: -estimate.auc)


def risk_figure(estimates: Sequence[RiskEstimate], chance: ChanceLevel | None = None) -> Figure:
    """Every attack with its interval, the strongest first; guessing is at 0.5, and what luck alone gives is last."""
    ordered = strongest_first(estimates)
    points = [
        Point(estimate.attack, estimate.auc, estimate.low, estimate.high, "attack" if place else "strongest")
        for place, estimate in enumerate(ordered)
    ]
    if chance is not None:
        points.append(Point("luck alone", chance.auc, chance.low, chance.high, "luck"))
    drawing = dots(
        points,
        ["members distinguished (AUC)", "0.5 is guessing, 1 is every time"],
        looks={"strongest": Look(WARNING), "attack": Look(ACCENT), "luck": Look(MUTED)},
        domain=[0.4, 1.0],
        axis=".1f",
        reference=GUESSING,
        legend=None,
    )
    return drawing.figure("AUC of each attack with its interval", "Guessing is 0.5.")
